//! A tree of files under any root, or of those in an archive, read without ever leaving it,
//! blocking on it, or filling memory with it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::archive::Files;
use model::{Entry, Snapshot};

/// Files larger than this are stored as errno `EFBIG`: sysfs attributes end at 4 KiB, /proc files
/// that we keep whole stay far below.
const FILE_LIMIT: usize = 1 << 20;

/// Text of all entries together. A host with 2048 CPUs takes some megabytes.
const TOTAL_LIMIT: usize = 64 << 20;

/// Entries of one folder that are looked at.
const NAMES_LIMIT: usize = 1 << 17;

/// CPUs that Linux is built for; of what else it numbers there are fewer.
const NUMBERED_LIMIT: usize = 8192;

const EFBIG: i32 = 27;

pub(super) struct Tree {
    source: Source,
    stored: usize,
    entries: BTreeMap<String, Entry>,
    /// Content of folders stored so far, to the first folder with it.
    folders: BTreeMap<String, String>,
}

enum Source {
    Folder(Folder),
    Files(Files),
}

struct Folder {
    root: OwnedFd,
    path: PathBuf,
    /// The running system itself: its kernel's own folders need no guard against links that lead
    /// out.
    live: bool,
}

impl Tree {
    pub fn open(path: &Path) -> io::Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let live = path == Path::new("/");
        Ok(Tree::of(Source::Folder(Folder { root, path: path.to_path_buf(), live })))
    }

    pub fn of_files(files: Files) -> Tree {
        Tree::of(Source::Files(files))
    }

    /// The same with a folder of it as root.
    pub fn below(self, folder: &str) -> io::Result<Tree> {
        match self.source {
            Source::Folder(tree) => Tree::open(&tree.path.join(folder.trim_start_matches('/'))),
            Source::Files(files) => Ok(Tree::of_files(files.below(folder))),
        }
    }

    fn of(source: Source) -> Tree {
        Tree { source, stored: 0, entries: BTreeMap::new(), folders: BTreeMap::new() }
    }

    /// Whether it is the running system itself.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Folder(folder) if folder.live)
    }

    /// All that was stored; the tree can go on reading.
    pub fn finish(&mut self) -> Snapshot {
        Snapshot { entries: std::mem::take(&mut self.entries) }
    }

    /// What was stored so far, for parsers that decide what else to read.
    pub fn so_far(&mut self, use_it: impl FnOnce(&Snapshot) -> Vec<String>) -> Vec<String> {
        let snapshot = Snapshot { entries: std::mem::take(&mut self.entries) };
        let answer = use_it(&snapshot);
        self.entries = snapshot.entries;
        answer
    }

    /// Reads a file as it is; `None` where there is no such file.
    pub fn read(&self, path: &str) -> Option<Entry> {
        self.read_up_to(path, FILE_LIMIT)
    }

    pub fn read_up_to(&self, path: &str, limit: usize) -> Option<Entry> {
        match self.bytes(path, limit) {
            Ok(bytes) => Some(match String::from_utf8(bytes) {
                Ok(text) => Entry::Text(text),
                Err(error) => Entry::Bytes(error.into_bytes()),
            }),
            // Missing, a link that leads nowhere or out of the root, no plain file.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::ISDIR) => None,
            Err(errno) => Some(Entry::Failed(errno.raw_os_error())),
        }
    }

    fn bytes(&self, path: &str, limit: usize) -> Result<Vec<u8>, Errno> {
        match &self.source {
            Source::Folder(folder) => folder.bytes(path, limit),
            Source::Files(files) => files.bytes(path, limit),
        }
    }

    /// The path that links lead to, as seen from the root.
    pub fn real(&self, path: &str) -> Option<String> {
        match &self.source {
            Source::Folder(folder) => folder.real(path),
            Source::Files(files) => files.real(path),
        }
    }

    /// Where a link leads by its own text; `None` for what is no link.
    pub fn link(&self, path: &str) -> Option<String> {
        match &self.source {
            Source::Folder(folder) => folder.link(path),
            Source::Files(files) => files.link(path),
        }
    }

    /// Names in a folder, sorted; none where there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        match &self.source {
            Source::Folder(tree) => tree.names(folder),
            Source::Files(files) => files.names(folder, NAMES_LIMIT),
        }
    }

    /// Numbers N of the names `prefixN` in a folder.
    pub fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let number = |name: &String| {
            let digits = name.strip_prefix(prefix)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        let mut numbers: Vec<u32> = self.names(folder).iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.truncate(NUMBERED_LIMIT);
        numbers
    }

    pub fn store(&mut self, path: &str, entry: Entry) {
        let size = path.len()
            + match &entry {
                Entry::Text(text) | Entry::Link(text) => text.len(),
                Entry::Bytes(bytes) => bytes.len(),
                Entry::Failed(_) => 0,
            };
        let entry = if self.stored + size > TOTAL_LIMIT { Entry::Failed(EFBIG) } else { entry };
        self.stored += size.min(TOTAL_LIMIT - self.stored.min(TOTAL_LIMIT));
        self.entries.insert(path.to_string(), entry);
    }

    /// Reads and stores a file, if it is there.
    pub fn take(&mut self, path: &str) -> bool {
        let entry = self.read(path);
        let found = entry.is_some();
        entry.into_iter().for_each(|entry| self.store(path, entry));
        found
    }

    /// Stores that something of this name is there (links between nodes and CPUs say all by their
    /// names).
    pub fn take_name(&mut self, path: &str) {
        self.store(path, Entry::Text(String::new()));
    }

    /// Stores the files of a folder; a folder that says word for word what another said is stored
    /// as a link to it.
    pub fn take_folder(&mut self, folder: &str, content: Vec<(String, Entry)>) {
        if content.is_empty() {
            return;
        }
        let words: Vec<String> = content.iter().map(|(name, entry)| format!("{name}\0{entry:?}")).collect();
        let words = words.join("\0");
        if let Some(first) = self.folders.get(&words) {
            let link = Entry::Link(first.clone());
            self.store(folder, link);
            return;
        }
        for (name, entry) in content {
            self.store(&format!("{folder}/{name}"), entry);
        }
        self.folders.insert(words, folder.to_string());
    }
}

impl Folder {
    fn bytes(&self, path: &str, limit: usize) -> Result<Vec<u8>, Errno> {
        // NONBLOCK: a pipe or a terminal must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if !self.live {
            // Opening a device can do things (a watchdog, a tape); so look before opening for
            // reading.
            let look = self.resolve(path, OFlags::PATH | OFlags::CLOEXEC)?;
            if !is_file(&look)? {
                return Err(Errno::ISDIR);
            }
        }
        let file = self.resolve(path, flags)?;
        if !is_file(&file)? {
            return Err(Errno::ISDIR);
        }
        let mut bytes = Vec::with_capacity(4096);
        let mut chunk = [0u8; 16 << 10];
        loop {
            match rustix::io::read(&file, &mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            if bytes.len() > limit {
                return Err(Errno::FBIG);
            }
        }
    }

    /// Opens a path inside the root: absolute links are relative to it, `..` stops at it.
    fn resolve(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = path.trim_start_matches('/');
        let relative = if relative.is_empty() { "." } else { relative };
        if self.live {
            return rustix::fs::openat(&self.root, relative, flags, Mode::empty());
        }
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.root, relative, flags, Mode::empty(), resolve) {
            // Kernels before 5.6 and some sandboxes: links that lead out are then not followed at
            // all.
            Err(Errno::NOSYS | Errno::PERM) => self.resolve_by_name(relative, flags),
            other => other,
        }
    }

    fn resolve_by_name(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT);
        let root = self.path.canonicalize().map_err(errno)?;
        let full = root.join(relative).canonicalize().map_err(errno)?;
        if !full.starts_with(&root) {
            return Err(Errno::XDEV);
        }
        rustix::fs::open(&full, flags, Mode::empty())
    }

    fn link(&self, path: &str) -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let folder = self.resolve(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).ok()?;
        rustix::fs::readlinkat(folder, name, Vec::new()).ok()?.into_string().ok()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = self.resolve(folder, flags).and_then(Dir::new) else { return Vec::new() };
        let mut names: Vec<String> = directory
            .take(NAMES_LIMIT)
            .map_while(Result::ok)
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_string))
            .filter(|name| name != "." && name != "..")
            .collect();
        names.sort_unstable();
        names
    }

    fn real(&self, path: &str) -> Option<String> {
        let root = self.path.canonicalize().ok()?;
        let full = root.join(path.trim_start_matches('/')).canonicalize().ok()?;
        let inner = full.strip_prefix(&root).ok()?;
        Some(format!("/{}", inner.to_str()?))
    }
}

fn is_file(file: &OwnedFd) -> Result<bool, Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    Ok(kind == FileType::RegularFile)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tree = Tree::open(folder.path()).expect("opens");
        (folder, tree)
    }

    #[test]
    fn links_stay_inside() {
        let (folder, tree) = tree();
        let outside = tempfile::tempdir().expect("a temporary folder");
        fs::write(outside.path().join("secret"), "out").expect("writes");
        fs::create_dir_all(folder.path().join("sys/a")).expect("creates");
        fs::write(folder.path().join("sys/a/file"), "in").expect("writes");
        symlink("/sys/a", folder.path().join("sys/b")).expect("links");
        symlink(outside.path().join("secret"), folder.path().join("sys/c")).expect("links");
        symlink("../../../../../../../etc/hostname", folder.path().join("sys/d")).expect("links");
        symlink("e", folder.path().join("sys/e")).expect("links");
        // Where the kernel has no openat2, links with absolute targets are not followed.
        let Source::Folder(inner) = &tree.source else { panic!("a folder was opened") };
        let known =
            rustix::fs::openat2(&inner.root, "sys", OFlags::RDONLY, Mode::empty(), ResolveFlags::IN_ROOT);
        let inside = known.is_ok().then(|| Entry::Text("in".into()));
        assert_eq!(tree.read("/sys/b/file"), inside);
        for path in ["/sys/c", "/sys/d", "/sys/e", "/sys/none", "/sys/a", "/sys/a/file/x"] {
            assert_eq!(tree.read(path), None, "{path}");
        }
        let by_name = inner.resolve_by_name("sys/c", OFlags::RDONLY);
        assert_eq!(by_name.err(), Some(Errno::XDEV));
        assert!(inner.resolve_by_name("sys/a/file", OFlags::RDONLY).is_ok());
    }

    #[test]
    fn nothing_blocks_and_sizes_are_bounded() {
        let (folder, mut tree) = tree();
        rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0)
            .expect("makes a pipe");
        assert_eq!(tree.read("/pipe"), None);
        fs::write(folder.path().join("big"), vec![b'x'; FILE_LIMIT + 1]).expect("writes");
        assert_eq!(tree.read("/big"), Some(Entry::Failed(EFBIG)));
        fs::write(folder.path().join("bytes"), b"\xff").expect("writes");
        assert_eq!(tree.read("/bytes"), Some(Entry::Bytes(vec![0xff])));
        tree.stored = TOTAL_LIMIT;
        assert!(tree.take("/bytes"));
        assert_eq!(tree.finish().get("/bytes"), Some(&Entry::Failed(EFBIG)));
    }

    #[test]
    fn equal_folders_are_stored_once() {
        let (_folder, mut tree) = tree();
        let content = |text: &str| vec![("size".to_string(), Entry::Text(text.to_string()))];
        tree.take_folder("/a", content("1"));
        tree.take_folder("/b", content("1"));
        tree.take_folder("/c", content("2"));
        tree.take_folder("/d", Vec::new());
        let snapshot = tree.finish();
        assert_eq!(snapshot.get("/b"), Some(&Entry::Link("/a".into())));
        assert_eq!(snapshot.text("/c/size"), Some("2"));
        assert_eq!(snapshot.entries.len(), 3);
    }
}

//! A user's files that look like ours, and the check that they stay unchanged.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What stands at a path.
#[derive(Clone, Debug, PartialEq)]
enum Mark {
    Folder(u32),
    /// Its permissions and the checksum of what it holds.
    File(u32, String),
    Link(PathBuf),
}

/// Folders, files and links that must stay as they are.
pub struct Decoys {
    marks: BTreeMap<PathBuf, Mark>,
}

/// Files with some text, each in folders of its own where its name has any.
const FILES: [&str; 21] = [
    "assay-tree-src/.git/HEAD",
    "assay-tree-src/main.c",
    "assay-files-results/r.csv",
    "assay-files-1-0/notes.txt",
    "assay-tree-1-0/a/b/c",
    // Names like ours that Assay did not make.
    "assay-files-4711-0badcafe/data",
    "assay-files-4711-00c0ffee0badcafe/data",
    "assay-tree-4711-0badcafe/job/conf.yaml",
    // Markers that say nothing.
    "assay-files-4712-00c0ffee0badcafe/.assay-owner",
    "assay-files-4712-00c0ffee0badcafe/0",
    "assay-files-4712-0badcafe/.assay",
    "assay-files-4712-0badcafe/.assay-owner",
    "assay-files-4712-0badcafe/kept",
    "assay-files-a-file",
    ".tmpAbCdEf",
    ".assay-tmp-4711-0badcafe",
    "assay-minimal",
    "knobs.json",
    "journal.json",
    "mine.assay.jsonl",
    "report.html.bak",
];
const EMPTY_FOLDERS: [&str; 3] = ["assay-files-4713-0badcafe", "assay-tree-4713-0badcafe", "assay-empty"];
/// Links to the watched folder, or to the file in it.
const LINKS: [(&str, &str); 5] = [
    ("assay-files-2-0", ""),
    ("assay-tree-2-0", ""),
    ("assay-tree-4714-0badcafe", "inner"),
    (".tmpLinked", "data"),
    ("linked.assay.jsonl", "data"),
];

impl Decoys {
    /// Plants all in each of these folders, whose links lead to a further one.
    pub fn plant(folders: &[&Path], watched: &Path) -> Decoys {
        fs::create_dir_all(watched.join("inner")).expect("a folder");
        fs::write(watched.join("data"), "somebody's data\n").expect("a file");
        fs::write(watched.join("inner/more"), "more of it\n").expect("a file");
        let mut decoys = Decoys { marks: BTreeMap::new() };
        decoys.adopt(watched);
        for folder in folders {
            for name in FILES {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(&path, format!("{name} is somebody's\n")).expect("a file");
            }
            EMPTY_FOLDERS.iter().for_each(|name| fs::create_dir(folder.join(name)).expect("a folder"));
            for (name, to) in LINKS {
                symlink(watched.join(to), folder.join(name)).expect("a link");
            }
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                decoys.adopt(&entry.path());
            }
        }
        decoys
    }

    /// Has what is at a path now watched, with all that is in it.
    pub fn adopt(&mut self, path: &Path) {
        walk(path, &mut self.marks);
    }

    /// Whether a path is one of them.
    pub fn has(&self, path: &Path) -> bool {
        self.marks.contains_key(path)
    }

    /// What is not as it was.
    pub fn harmed(&self) -> Vec<String> {
        let mut harmed = Vec::new();
        for (path, was) in &self.marks {
            // What lies in a lost folder is lost with it.
            let parent = path.parent().filter(|parent| self.marks.contains_key(*parent));
            if parent.is_some_and(|parent| fs::symlink_metadata(parent).is_err()) {
                continue;
            }
            match mark(path) {
                None => harmed.push(format!("{} is gone", path.display())),
                Some(is) if is != *was => harmed.push(format!("{} was changed", path.display())),
                Some(Mark::Folder(_)) => {
                    let inside = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                    let new = inside.filter(|inner| !self.marks.contains_key(inner));
                    harmed.extend(
                        new.map(|inner| format!("{} was put into somebody's folder", inner.display())),
                    );
                }
                Some(_) => {}
            }
        }
        harmed
    }
}

fn walk(path: &Path, marks: &mut BTreeMap<PathBuf, Mark>) {
    let mark = mark(path).expect("it is there");
    let folder = matches!(mark, Mark::Folder(_));
    marks.insert(path.to_path_buf(), mark);
    if folder {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            walk(&entry.path(), marks);
        }
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let about = fs::symlink_metadata(path).ok()?;
    let mode = about.permissions().mode();
    Some(match () {
        () if about.is_symlink() => Mark::Link(fs::read_link(path).ok()?),
        () if about.is_dir() => Mark::Folder(mode),
        () => Mark::File(mode, checksum(&fs::read(path).ok()?)),
    })
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes all");
        text
    })
}

#[test]
fn whatever_happens_to_a_users_file_is_seen() {
    let ground = tempfile::tempdir().expect("a folder");
    let path = |name: &str| ground.path().join("tmp").join(name);
    let fresh = || {
        let _ = fs::remove_dir_all(ground.path().join("tmp"));
        let _ = fs::remove_dir_all(ground.path().join("watched"));
        fs::create_dir_all(ground.path().join("tmp")).expect("a folder");
        Decoys::plant(&[&ground.path().join("tmp")], &ground.path().join("watched"))
    };
    type Harm<'a> = (&'a str, &'a dyn Fn());
    let harms: [Harm; 8] = [
        ("tmp/assay-tree-src is gone", &|| fs::remove_dir_all(path("assay-tree-src")).expect("removed")),
        ("tmp/assay-empty is gone", &|| fs::remove_dir(path("assay-empty")).expect("removed")),
        ("tmp/.tmpAbCdEf is gone", &|| fs::remove_file(path(".tmpAbCdEf")).expect("removed")),
        ("r.csv was changed", &|| fs::write(path("assay-files-results/r.csv"), "x").expect("written")),
        ("watched/data was changed", &|| fs::write(path("linked.assay.jsonl"), "x").expect("written")),
        ("watched/inner/more is gone", &|| {
            fs::remove_file(path("assay-files-2-0/inner/more")).expect("removed")
        }),
        ("assay-empty/x was put into", &|| fs::write(path("assay-empty/x"), "x").expect("written")),
        ("knobs.json was changed", &|| {
            fs::set_permissions(path("knobs.json"), fs::Permissions::from_mode(0o600)).expect("changed");
        }),
    ];
    for (said, harm) in harms {
        let decoys = fresh();
        assert_eq!(decoys.harmed(), Vec::<String>::new());
        harm();
        let harmed = decoys.harmed();
        assert!(harmed.len() == 1 && harmed[0].contains(said), "{said}: {harmed:?}");
    }
}

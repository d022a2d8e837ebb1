//! Files of an archive in memory, as a tree whose links are followed inside of it alone.

use std::collections::BTreeMap;

use rustix::io::Errno;

/// Links on the way to one file: as many as Linux follows.
const LINKS: usize = 40;

/// Folders nested: paths of /sys stay far below.
const MAX_DEPTH: usize = 64;

#[derive(Debug)]
pub(super) enum Node {
    File(Vec<u8>),
    /// It is there, and larger than what is kept, or in pieces.
    LeftOut,
    Link(String),
    Folder(BTreeMap<String, Node>),
}

/// A tree of files below a root, which readers see as `/`.
#[derive(Debug)]
pub(crate) struct Files(BTreeMap<String, Node>);

impl Files {
    pub(super) fn new() -> Files {
        Files(BTreeMap::new())
    }

    /// The parts of a path; `None` for one that leads out of its root, or deeper than any of ours.
    pub(super) fn parts(path: &str) -> Option<Vec<&str>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        (parts.len() <= MAX_DEPTH && !parts.contains(&"..")).then_some(parts)
    }

    /// Puts something in its place, with the folders above it. What would lie below a file or a
    /// link stays out: no link decides where something is written.
    pub(super) fn insert(&mut self, path: &str, node: Node) -> bool {
        let Some(parts) = Files::parts(path) else { return false };
        let Some((name, above)) = parts.split_last() else { return false };
        let mut folder = &mut self.0;
        for part in above {
            let next = folder.entry(part.to_string()).or_insert_with(|| Node::Folder(BTreeMap::new()));
            let Node::Folder(inner) = next else { return false };
            folder = inner;
        }
        match (folder.get(*name), &node) {
            (Some(Node::Folder(_)), _) => return matches!(node, Node::Folder(_)),
            (Some(_), Node::Folder(_)) => return false,
            _ => folder.insert(name.to_string(), node),
        };
        true
    }

    /// The content of a plain file by its own path: what a hard link names.
    pub(super) fn plain(&self, path: &str) -> Option<&[u8]> {
        match self.at(&Files::parts(path)?)? {
            Node::File(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The same with a folder of it as root.
    pub(crate) fn below(mut self, folder: &str) -> Files {
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            match self.0.remove(part) {
                Some(Node::Folder(inner)) => self.0 = inner,
                _ => return Files::new(),
            }
        }
        self
    }

    pub(crate) fn bytes(&self, path: &str, limit: usize) -> Result<Vec<u8>, Errno> {
        let place = self.resolve(path).ok_or(Errno::NOENT)?;
        match self.at(&place) {
            Some(Node::File(bytes)) if bytes.len() > limit => Err(Errno::FBIG),
            Some(Node::File(bytes)) => Ok(bytes.clone()),
            Some(Node::LeftOut) => Err(Errno::FBIG),
            Some(Node::Folder(_)) => Err(Errno::ISDIR),
            Some(Node::Link(_)) | None => Err(Errno::NOENT),
        }
    }

    pub(crate) fn names(&self, folder: &str, most: usize) -> Vec<String> {
        let place = self.resolve(folder).unwrap_or_default();
        match self.at(&place) {
            _ if place.is_empty() && Files::parts(folder).is_none_or(|parts| !parts.is_empty()) => Vec::new(),
            None if place.is_empty() => self.0.keys().take(most).cloned().collect(),
            Some(Node::Folder(inner)) => inner.keys().take(most).cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn real(&self, path: &str) -> Option<String> {
        Some(format!("/{}", self.resolve(path)?.join("/")))
    }

    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let (folder, name) = path.rsplit_once('/')?;
        let mut place = self.resolve(folder)?;
        place.push(name.to_string());
        match self.at(&place)? {
            Node::Link(target) => Some(target.clone()),
            _ => None,
        }
    }

    /// The node at a path without links; `None` also for the root itself.
    fn at<T: AsRef<str>>(&self, parts: &[T]) -> Option<&Node> {
        let (name, above) = parts.split_last()?;
        let mut folder = &self.0;
        for part in above {
            match folder.get(part.as_ref())? {
                Node::Folder(inner) => folder = inner,
                _ => return None,
            }
        }
        folder.get(name.as_ref())
    }

    /// Where a path leads, links followed: absolute ones begin at the root, `..` stops at it.
    fn resolve(&self, path: &str) -> Option<Vec<String>> {
        let mut ahead: Vec<String> = path.split('/').rev().map(str::to_string).collect();
        let mut place: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => drop(place.pop()),
                _ => {
                    place.push(part);
                    match self.at(&place)? {
                        Node::Link(target) => {
                            links += 1;
                            if links > LINKS || target.len() > 4096 {
                                return None;
                            }
                            place.pop();
                            if target.starts_with('/') {
                                place.clear();
                            }
                            ahead.extend(target.split('/').rev().map(str::to_string));
                        }
                        Node::Folder(_) => {}
                        _ if ahead.iter().all(|part| part.is_empty()) => {}
                        _ => return None,
                    }
                }
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_alone() {
        let mut files = Files::new();
        let file = |text: &str| Node::File(text.as_bytes().to_vec());
        let link = |target: &str| Node::Link(target.to_string());
        assert!(files.insert("x/sos_commands/hardware/dmidecode", file("d")));
        assert!(files.insert("x/dmidecode", link("sos_commands/hardware/dmidecode")));
        assert!(files.insert("./x/proc/mounts", link("self/mounts")));
        assert!(files.insert("x/proc/self", link("4711")));
        assert!(files.insert("x/proc/4711/mounts", file("m")));
        assert!(files.insert("x/up", link("../../../../proc/mounts")));
        assert!(files.insert("x/absolute", link("/proc/mounts")));
        assert!(files.insert("x/round", link("round")));
        // Nothing is put below a link, in place of a folder, or out of the root.
        for bad in ["x/proc/self/status", "x/proc", "../etc/passwd", "x/../../y", ""] {
            assert!(!files.insert(bad, file("bad")), "{bad}");
        }
        let files = files.below("/x");
        let text =
            |path: &str| files.bytes(path, 9).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(text("/dmidecode").as_deref(), Some("d"));
        for path in ["/proc/mounts", "/proc/self/mounts", "/up", "/absolute", "//proc/./mounts"] {
            assert_eq!(text(path).as_deref(), Some("m"), "{path}");
        }
        for path in ["/round", "/proc/mounts/x", "/none", "/proc", "/"] {
            assert_eq!(text(path), None, "{path}");
        }
        assert_eq!(files.bytes("/dmidecode", 0), Err(Errno::FBIG));
        assert_eq!(files.real("/proc/self").as_deref(), Some("/proc/4711"));
        assert_eq!(files.link("/proc/self").as_deref(), Some("4711"));
        assert_eq!(files.names("/proc/self", 9), ["mounts"]);
        assert_eq!(files.names("/proc", 9), ["4711", "mounts", "self"]);
        assert_eq!(files.names("/", 9).len(), 6);
        assert_eq!(files.names("/", 2).len(), 2);
        assert!(files.names("/none", 9).is_empty() && files.names("/dmidecode", 9).is_empty());
    }
}

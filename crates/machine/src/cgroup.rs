//! Where this process stands in the control-group hierarchies: the folders that hold its limits.
//!
//! Used twice: by the reader, to know which files to read, and by `limits`, to know which of them
//! count.

use model::{Entry, Snapshot};

/// One hierarchy that binds this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// 1 or 2.
    pub version: u32,
    /// Controllers of a version 1 hierarchy; empty for version 2.
    pub controllers: Vec<String>,
    /// Folders from the process's own group up to the mount point.
    pub folders: Vec<String>,
    /// A cpuset mount of old whose files have no `cpuset.` in their names.
    pub noprefix: bool,
    /// A version 1 cpuset mounted with `cpuset_v2_mode`: its effective sets may be smaller than the
    /// configured ones.
    pub effective: bool,
    /// Groups of this process are not seen, and neither are their limits: only a part of the
    /// hierarchy is mounted, or the process's own group lies outside of its namespace.
    pub is_part: bool,
}

impl Place {
    /// Whether the named controller's files are here; version 2 holds all that no version 1
    /// hierarchy took.
    pub fn controls(&self, controller: &str) -> bool {
        self.version == 2 || self.controllers.iter().any(|known| known == controller)
    }
}

/// A mounted hierarchy.
struct Mount {
    root: String,
    point: String,
    version: u32,
    options: Vec<String>,
}

/// Groups nested deeper than this are cut off at the top: no one has them.
const MAX_DEPTH: usize = 64;

/// The hierarchies that bind this process, from its mount table and group list.
pub fn places(snapshot: &Snapshot) -> Vec<Place> {
    let memberships = memberships(snapshot);
    mounts(snapshot).into_iter().filter_map(|mount| place(&mount, &memberships)).collect()
}

/// The folder of a process's own group in the hierarchy of version 2, or in that of a controller of
/// version 1, by what /proc says about its groups and mounts.
pub fn cgroup_folder(groups: &str, mounts: &str, version: u32, controller: &str) -> Option<String> {
    let mut snapshot = Snapshot::default();
    for (path, text) in [("/proc/self/cgroup", groups), ("/proc/self/mountinfo", mounts)] {
        snapshot.entries.insert(path.to_string(), Entry::Text(text.to_string()));
    }
    let mut places = places(&snapshot).into_iter();
    let place = places.find(|place| place.version == version && place.controls(controller))?;
    place.folders.into_iter().next()
}

/// (controllers, path) of each line of /proc/self/cgroup; kernels without it may report the cpuset
/// alone.
pub(super) fn memberships(snapshot: &Snapshot) -> Vec<(Vec<String>, String)> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    for line in snapshot.text("/proc/self/cgroup").unwrap_or("").lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        if let (Some(controllers), Some(path)) = (parts.next(), parts.next()) {
            let controllers = controllers.split(',').filter(|name| !name.is_empty());
            found.push((controllers.map(str::to_string).collect(), path.to_string()));
        }
    }
    let has_cpuset = found.iter().any(|(controllers, _)| controllers.iter().any(|name| name == "cpuset"));
    if let (Some(path), false) = (snapshot.text("/proc/self/cpuset"), has_cpuset) {
        found.push((vec!["cpuset".to_string()], path.to_string()));
    }
    found
}

fn place(mount: &Mount, memberships: &[(Vec<String>, String)]) -> Option<Place> {
    let mine = memberships.iter().find(|(controllers, _)| match mount.version {
        2 => controllers.is_empty(),
        _ => controllers.iter().any(|name| mount.options.contains(name)),
    });
    // Without a membership line (a captured tree may lack it) the mount's own root still binds.
    let path = mine.map_or("/", |(_, path)| path.as_str());
    let controllers = match (mount.version, mine) {
        (2, _) => Vec::new(),
        (_, Some((controllers, _))) => controllers.clone(),
        (_, None) => mount.options.clone(),
    };
    let option = |name: &str| mount.options.iter().any(|option| option == name);
    Some(Place {
        version: mount.version,
        controllers,
        folders: folders(&mount.point, below(&mount.root, path)),
        noprefix: option("noprefix"),
        effective: option("cpuset_v2_mode"),
        is_part: mount.root != "/" || leads_out(path),
    })
}

/// The part of a group's path below what is mounted: a container often sees only its own part of
/// the hierarchy.
fn below<'a>(root: &str, path: &'a str) -> &'a str {
    // Outside of the visible part the mount point is the nearest that is seen.
    if leads_out(path) {
        return "";
    }
    let root = root.trim_end_matches('/');
    match path.strip_prefix(root) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_matches('/'),
        _ => "",
    }
}

/// Whether a group's path goes up and out of the namespace of who asks ("/../..").
fn leads_out(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

fn folders(point: &str, path: &str) -> Vec<String> {
    let point = point.trim_end_matches('/');
    let mut folders = vec![point.to_string()];
    for part in path.split('/').filter(|part| !part.is_empty()).take(MAX_DEPTH) {
        let deeper = format!("{}/{part}", folders[folders.len() - 1]);
        folders.push(deeper);
    }
    folders.reverse();
    folders
}

fn mounts(snapshot: &Snapshot) -> Vec<Mount> {
    if let Some(text) = snapshot.text("/proc/self/mountinfo") {
        return text.lines().filter_map(mountinfo_line).collect();
    }
    let text = snapshot.text("/proc/self/mounts").or_else(|| snapshot.text("/proc/mounts"));
    text.unwrap_or("").lines().filter_map(mounts_line).collect()
}

/// `36 35 98:0 /root /point opts - cgroup source rw,cpu,cpuacct`
fn mountinfo_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, point) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    mount(root, point, right.next()?, right.nth(1).unwrap_or(""))
}

/// `cgroup /point cgroup rw,cpu 0 0`
fn mounts_line(line: &str) -> Option<Mount> {
    let mut words = line.split_whitespace().skip(1);
    let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
    mount("/", point, kind, options)
}

fn mount(root: &str, point: &str, kind: &str, options: &str) -> Option<Mount> {
    let version = match kind {
        "cgroup2" => 2,
        "cgroup" | "cpuset" => 1,
        _ => return None,
    };
    let mut options: Vec<String> = options.split(',').map(str::to_string).collect();
    if kind == "cpuset" {
        options.extend(["cpuset".to_string(), "noprefix".to_string()]);
    }
    Some(Mount { root: unescaped(root), point: unescaped(point), version, options })
}

/// The kernel writes blanks and backslashes in mount tables as `\040`.
pub fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                plain.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    #[test]
    fn version_2_up_to_the_mount_point() {
        let snapshot = tree(&[
            ("/proc/self/cgroup", "0::/user.slice/user-1.slice\n"),
            ("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"),
        ]);
        let places = places(&snapshot);
        assert_eq!(places.len(), 1);
        assert_eq!(
            places[0].folders,
            ["/sys/fs/cgroup/user.slice/user-1.slice", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]
        );
    }

    #[test]
    fn a_container_sees_its_part_only() {
        let mountinfo = "1 1 0:1 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        let at = |path: &str| {
            let groups = format!("4:cpu,cpuacct:{path}\n");
            let snapshot = tree(&[("/proc/self/cgroup", &groups), ("/proc/self/mountinfo", mountinfo)]);
            places(&snapshot).remove(0).folders
        };
        assert_eq!(at("/docker/abc"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(at("/docker/abc/x"), ["/sys/fs/cgroup/cpu,cpuacct/x", "/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(at("/docker/abcd"), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(at("/../other"), ["/sys/fs/cgroup/cpu,cpuacct"]);
    }

    #[test]
    fn a_cpuset_of_old_with_mounts_only() {
        let snapshot = tree(&[
            ("/proc/self/cpuset", "/prout"),
            (
                "/proc/mounts",
                "cpuset /dev/cpu\\040set cgroup rw,relatime,cpuset,noprefix 0 0\nx /y ext4 rw 0 0\n",
            ),
        ]);
        let places = places(&snapshot);
        assert_eq!(places[0].folders, ["/dev/cpu set/prout", "/dev/cpu set"]);
        assert!(places[0].noprefix && places[0].controls("cpuset") && !places[0].controls("cpu"));
    }

    #[test]
    fn escapes() {
        assert_eq!(unescaped("a\\040b\\134\\x\\0"), "a b\\\\x\\0");
        assert_eq!(unescaped("\\é40"), "\\é40");
    }
}

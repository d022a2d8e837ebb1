//! Long files shortened to the lines that matter, without changing what those say.

use std::collections::BTreeMap;

/// What changes from moment to moment in /proc/cpuinfo and says nothing about the host.
const VOLATILE: &[&str] =
    &["cpu MHz", "cpu MHz dynamic", "bogomips", "BogoMIPS", "Bogo MIPS", "initial apicid", "clock"];

/// /proc/cpuinfo with the first CPU's block whole, and of the others the processor number and the
/// lines that differ from the first: two thousand CPUs repeat two kilobytes each. A reader takes a
/// missing line from the first block.
pub fn cpuinfo(text: &str) -> String {
    let mut kept = String::new();
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let numbered = block.lines().any(|line| key(line) == "processor");
        if !numbered || first.is_empty() {
            if numbered {
                first = block.lines().map(|line| (key(line), line)).collect();
            }
            kept.push_str(block.trim_end());
            kept.push_str("\n\n");
            continue;
        }
        for line in block.lines() {
            let same = first.get(key(line)) == Some(&line);
            if !same && !VOLATILE.contains(&key(line)) && !line.trim().is_empty() {
                kept.push_str(line);
                kept.push('\n');
            }
        }
        kept.push('\n');
    }
    kept
}

fn key(line: &str) -> &str {
    line.split(':').next().unwrap_or("").trim()
}

/// The lines of a file whose key (what stands before `:` or white space) is wanted.
pub fn lines(text: &str, wanted: &[&str]) -> String {
    let key = |line: &str| {
        let start = line.trim_start();
        let end = start.find(|c: char| c == ':' || c.is_whitespace()).unwrap_or(start.len());
        start[..end].to_string()
    };
    kept(text, |line| wanted.contains(&key(line).as_str()))
}

pub fn kept(text: &str, keep: impl Fn(&str) -> bool) -> String {
    let mut kept = String::new();
    for line in text.lines().filter(|line| keep(line)) {
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// Mount points that container engines make inside of a container.
const CONTAINER_POINTS: &[&str] = &[
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/.containerenv",
    "/run/secrets/kubernetes.io/serviceaccount",
    "/var/run/secrets/kubernetes.io/serviceaccount",
    "/dev/termination-log",
    "/dev/.lxd-mounts",
    "/dev/.incus-mounts",
];

/// Folders of engines on their host, from which they mount files into a container.
const ENGINE_FOLDERS: &[&str] = &["/docker/containers/", "/overlay-containers/", "/kubelet/pods/"];

/// A mount table's lines about control groups, and those of mountinfo that show a container.
/// Only these parts are kept: the rest of a path may name a user, a pod or a server.
pub fn mounts(text: &str) -> String {
    let line = |line: &str| {
        let is_group = line.split_whitespace().any(|word| matches!(word, "cgroup" | "cgroup2" | "cpuset"));
        let kept = if is_group { Some(line.to_string()) } else { container_mount(line) };
        kept.map(|line| line + "\n")
    };
    text.lines().filter_map(line).collect()
}

fn container_mount(line: &str) -> Option<String> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, point) = (left.next()?, left.next()?);
    let kind = right.split(' ').next()?;
    let is_lxcfs = kind == "fuse.lxcfs" && (point.starts_with("/proc/") || point.starts_with("/sys/"));
    if !is_lxcfs && !CONTAINER_POINTS.contains(&point) {
        return None;
    }
    let folders: String = ENGINE_FOLDERS.iter().copied().filter(|folder| root.contains(folder)).collect();
    let folder = if folders.is_empty() { "/" } else { &folders };
    Some(format!("0 0 0:0 {folder} {point} rw - {kind} none rw"))
}

/// The first two columns of /proc/bus/pci/devices: place, vendor and device.
pub fn pci_devices(text: &str) -> String {
    let columns = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join("\t");
    text.lines().map(|line| columns(line) + "\n").collect()
}

/// Bytes of /proc/schedstat that are kept: enough for the domains of several hundred CPUs.
const SCHEDSTAT_LIMIT: usize = 256 << 10;

/// /proc/schedstat without its counters: `cpuN` and `domainM [NAME] MASK`, whole CPUs up to the
/// limit.
pub fn schedstat(text: &str) -> String {
    let mut kept = String::new();
    let mut whole = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let head = words.next().unwrap_or("");
        if head.starts_with("cpu") {
            whole = kept.len();
            kept.push_str(head);
            kept.push('\n');
        } else if head.starts_with("domain") {
            // A name before the mask is no number; a mask after it is the last that matters.
            let mut keep = vec![head];
            if let Some(word) = words.next() {
                keep.push(word);
                let named = word.chars().any(|c| !c.is_ascii_hexdigit() && c != ',');
                keep.extend(words.next().filter(|_| named));
            }
            kept.push_str(&keep.join(" "));
            kept.push('\n');
        }
        if kept.len() > SCHEDSTAT_LIMIT {
            kept.truncate(whole);
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_keeps_what_differs() {
        let block = |n: u32, package: u32| {
            format!("processor\t: {n}\nmodel name\t: X\ncpu MHz\t\t: 80{n}.1\nphysical id\t: {package}\n")
        };
        let text = format!("{}\n{}\n{}\nplatform : Y\n", block(0, 0), block(1, 0), block(2, 1));
        let kept = cpuinfo(&text);
        let expected = format!(
            "{}\nprocessor\t: 1\n\nprocessor\t: 2\nphysical id\t: 1\n\nplatform : Y\n\n",
            block(0, 0)
        );
        assert_eq!(kept, expected);
        assert_eq!(cpuinfo(&kept), kept);
        assert_eq!(cpuinfo(""), "");
    }

    #[test]
    fn wanted_lines() {
        let text = "Name:\tx\nCpus_allowed_list:\t0-1\nse.slice   : 3\n";
        assert_eq!(
            lines(text, &["Cpus_allowed_list", "se.slice"]),
            "Cpus_allowed_list:\t0-1\nse.slice   : 3\n"
        );
    }

    #[test]
    fn schedstat_without_counters() {
        let text =
            "version 15\ncpu0 1 2\ndomain0 00000003 9 9\ncpu1 3\ndomain0 MC 00000003 1\ndomain1 DIE ff 2\n";
        assert_eq!(schedstat(text), "cpu0\ndomain0 00000003\ncpu1\ndomain0 MC 00000003\ndomain1 DIE ff\n");
        let long: String = (0..20_000).map(|cpu| format!("cpu{cpu} 1\ndomain0 00000003 0\n")).collect();
        let kept = schedstat(&long);
        assert!(kept.len() <= SCHEDSTAT_LIMIT && kept.ends_with("domain0 00000003\n"));
    }

    #[test]
    fn tables() {
        assert_eq!(mounts("a b cgroup2 rw\nx / ext4 rw\n"), "a b cgroup2 rw\n");
        assert_eq!(pci_devices("0010\t80eebeef\tb\te0000008\n"), "0010\t80eebeef\n");
    }

    #[test]
    fn mounts_of_a_container_without_the_names_in_them() {
        let hosts = "40 30 254:1 /home/alice/docker/containers/0a1b2c/hosts /etc/hosts rw - ext4 /dev/mapper/alice-vg rw";
        let kept = mounts(&format!("{hosts}\n30 1 0:9 / / rw - overlay overlay rw,upperdir=/home/alice/x\n"));
        assert_eq!(kept, "0 0 0:0 /docker/containers/ /etc/hosts rw - ext4 none rw\n");
        assert_eq!(mounts(&kept), kept);
        let lxcfs = "9 8 0:51 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw,user_id=0\n";
        assert_eq!(mounts(lxcfs), "0 0 0:0 / /proc/stat rw - fuse.lxcfs none rw\n");
        // On the host lxcfs stands where engines fetch it.
        assert_eq!(mounts("9 8 0:51 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw\n"), "");
    }
}

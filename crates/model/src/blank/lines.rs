//! Files of lines and of words in which some say who someone is.

use super::words::without_ids;

/// Stands for what is blanked.
pub(super) const BLANK: &str = "***";

/// /proc/cpuinfo without the serial numbers that boards of ARM and s390's processors report, and
/// without what User-Mode Linux reports about its host.
pub(super) fn cpuinfo(text: &str) -> String {
    each(text, |line| {
        let (name, value) = line.split_once(':')?;
        let name = name.trim();
        if name == "host" {
            return Some(format!("{}: {BLANK}", &line[..line.find(':')?]));
        }
        if name.eq_ignore_ascii_case("serial") || name.eq_ignore_ascii_case("system serial number") {
            return Some(format!("{}: {BLANK}", &line[..line.find(':')?]));
        }
        let at = value.find("identification = ").filter(|_| name.starts_with("processor "))?;
        let from = line.len() - value.len() + at + "identification = ".len();
        let rest = line[from..].find(',').map_or("", |end| &line[from + end..]);
        Some(format!("{}{BLANK}{rest}", &line[..from]))
    })
}

/// s390's /proc/sysinfo without serial numbers.
pub(super) fn sysinfo(text: &str) -> String {
    each(text, |line| {
        let (name, _) = line.split_once(':')?;
        (name.contains("Sequence Code") || name.contains("UUID")).then(|| format!("{name}: {BLANK}"))
    })
}

/// Leaf 3 is the serial number of processors of old.
pub(super) fn cpuid(text: &str) -> String {
    each(text, |line| {
        let (asked, _) = line.split_once("=>")?;
        (asked.split_whitespace().nth(1) == Some("3")).then(|| format!("{asked}=> 0 0 0 0"))
    })
}

/// Filesystems whose source is a folder of another host's.
const REMOTE: [&str; 12] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "afs", "9p", "gfs2", "ocfs2", "fuse"];

/// Options of mounts whose values name users, hosts and folders.
const NAMING: [&str; 22] = [
    "username",
    "user",
    "domain",
    "pass",
    "password",
    "secret",
    "name",
    "addr",
    "clientaddr",
    "mountaddr",
    "srcaddr",
    "ip",
    "mds_namespace",
    "mon_addr",
    "fsid",
    "uuid",
    "upperdir",
    "workdir",
    "lowerdir",
    "subvol",
    "journal_path",
    "logdev",
];

/// The disk below a directory. The directory is the user's own word.
pub(super) fn disk(text: &str) -> String {
    let kind = text.lines().find_map(|line| line.strip_prefix("filesystem ")).unwrap_or("").to_string();
    let remote = REMOTE.iter().any(|name| kind == *name) || kind.starts_with("fuse.");
    let plain = |value: &str| !value.contains(['/', ':', '@', '\\']);
    let text = each(text, |line| {
        let (name, value) = line.split_once(' ')?;
        Some(match name {
            "source" if remote || !(value.starts_with("/dev/") || plain(value)) => format!("source {BLANK}"),
            "options" => format!("options {}", options(value)),
            "mount" | "upper" | "loop/backing_file" => format!("{name} {}", without_homes(value)),
            _ => return None,
        })
    });
    without_ids(&text)
}

fn options(value: &str) -> String {
    let option = |option: &str| match option.split_once('=') {
        Some((name, _)) if NAMING.contains(&name) => format!("{name}={BLANK}"),
        _ => option.to_string(),
    };
    value.split(',').map(option).collect::<Vec<_>>().join(",")
}

/// Paths without the names of those whose homes they are in.
pub(super) fn without_homes(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/home/") {
        let from = at + "/home/".len();
        whole.push_str(&rest[..from]);
        let end = rest[from..].find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(rest.len() - from);
        whole.push_str(if end > 0 { BLANK } else { "" });
        rest = &rest[from + end..];
    }
    whole + rest
}

/// Hardware addresses (six bytes and more with colons between them) as stars.
pub(super) fn without_hardware_addresses(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|c: char| !(c.is_ascii_hexdigit() || c == ':')).unwrap_or(rest.len());
        let word = &rest[..length];
        let parts: Vec<&str> = word.split(':').collect();
        if parts.len() >= 6 && parts.iter().all(|part| part.len() == 2) {
            whole.push_str(BLANK)
        } else {
            whole.push_str(word)
        }
        let next = rest[length..].chars().next().map_or(0, char::len_utf8);
        whole.push_str(&rest[length..length + next]);
        rest = &rest[length + next..];
    }
    whole
}

/// Each line as it is, or as something else; ends of lines stay.
fn each(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let line = |line: &str| {
        let end = line.trim_end_matches(['\n', '\r']).len();
        match change(&line[..end]) {
            Some(changed) => changed + &line[end..],
            None => line.to_string(),
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

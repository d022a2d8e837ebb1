//! What a directory's disk hangs on, and what the kernel reports about every device on the way.
//!
//! The text of [`describe`] is lines of a name, a space and a value, nearly as /sys has them. Lines
//! before the first `block` are about the filesystem; each `block NAME` begins a device, from the
//! one that the filesystem lies on down to the disks. `machine::disk` makes sense of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::{Entry, Snapshot};

use super::tree::Tree;
use machine::cgroup::unescaped;

/// Lines to add to the entry `probe:directory` that has this text: where its block device stands in
/// /sys, and the link of the PCI device that it hangs on; none for a filesystem that lies on no
/// device or on several.
pub fn of_directory(probe: &str) -> String {
    let device = probe.lines().find_map(|line| line.strip_prefix("device ")).unwrap_or_default();
    let found = fs::canonicalize(format!("/sys/dev/block/{device}"));
    let Some(place) = found.ok().filter(|place| place.starts_with("/sys/devices")) else {
        return String::new();
    };
    let mut text = format!("sysfs {}\n", place.display());
    for name in LINK {
        let told = place.ancestors().find_map(|folder| fs::read_to_string(folder.join(name)).ok());
        text.extend(told.map(|value| format!("{name} {}\n", value.trim())));
    }
    text
}

const LINK: [&str; 2] = ["current_link_speed", "current_link_width"];

/// What is to be described.
pub enum Subject<'a> {
    /// A directory, by its path with no links in it, and the number (`8:1`) of what it lies on
    /// where that is known.
    Directory { path: &'a str, number: Option<&'a str> },
    /// A whole block device, by the path that the user gave and its number.
    Device { path: &'a str, number: &'a str },
}

/// Attributes of a device as /sys has them below its folder; those of a partition are few.
const ATTRIBUTES: &[&str] = &[
    "partition",
    "size",
    "ro",
    "removable",
    "queue/rotational",
    "queue/scheduler",
    "queue/nr_requests",
    "queue/write_cache",
    "queue/fua",
    "queue/discard_max_bytes",
    "queue/discard_max_hw_bytes",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/io_poll",
    "queue/read_ahead_kb",
    "queue/wbt_lat_usec",
    "queue/max_sectors_kb",
    "queue/zoned",
    "queue/iostats",
    "device/vendor",
    "device/model",
    "device/transport",
    "device/queue_depth",
    "device/numa_node",
    "loop/backing_file",
    "loop/offset",
    "loop/dio",
    "dm/name",
    "md/level",
    "md/raid_disks",
    "md/degraded",
    "md/array_state",
    "md/sync_action",
    "md/chunk_size",
];

/// Modules that report how many queues may be polled, by the names of their drivers.
const POLLED: [(&str, &str); 2] =
    [("nvme", "nvme/parameters/poll_queues"), ("virtio_blk", "virtio_blk/parameters/poll_queues")];

/// Folders in which the timer of fstrim stands where it is switched on.
const TIMERS: [&str; 3] = [
    "/etc/systemd/system/timers.target.wants",
    "/usr/lib/systemd/system/timers.target.wants",
    "/lib/systemd/system/timers.target.wants",
];

const CRON: [&str; 4] = ["/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly"];

/// More devices below one filesystem than anyone has.
const MAX_DEVICES: usize = 256;

/// Layers of devices and of filesystems on filesystems (an overlay, a loop device's file) that are
/// gone through.
const MAX_DEPTH: usize = 16;

/// Everything about the disk below a directory, or about a device; of any tree that holds /sys and
/// a mount table. What cannot be read is left out.
pub fn describe(root: &Path, subject: &Subject) -> String {
    match Tree::open(root) {
        Ok(tree) => described(tree, subject),
        Err(_) => String::new(),
    }
}

fn described(tree: Tree, subject: &Subject) -> String {
    let mut walk = Walk { tree, text: String::new(), seen: BTreeSet::new() };
    match subject {
        Subject::Directory { path, number } => {
            walk.line("path", path);
            walk.room(path);
            walk.directory(path, *number, 0);
        }
        Subject::Device { path, number } => {
            walk.line("device", path);
            walk.line("number", number);
            if let Some(name) = walk.name_of(number) {
                walk.block(&name, 0);
            }
        }
    }
    walk.text
}

/// The directory whose disk stands for a captured tree: its root, if it has a mount table.
pub(super) fn of_tree(tree: Tree) -> Option<String> {
    let text = described(tree, &Subject::Directory { path: "/", number: None });
    text.lines().any(|line| line.starts_with("mount ")).then_some(text)
}

/// Adds the description under its name.
pub fn store(snapshot: &mut Snapshot, text: String) {
    snapshot.entries.insert(model::vocabulary::disk::probe::DISK.to_string(), Entry::Text(text));
}

struct Walk {
    tree: Tree,
    text: String,
    seen: BTreeSet<String>,
}

impl Walk {
    /// Adds a line; a value of several lines as one.
    fn line(&mut self, name: &str, value: &str) {
        let value: Vec<&str> =
            value.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).collect();
        if !value.is_empty() {
            self.text.push_str(&format!("{name} {}\n", value.join(" ")));
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        let text = match self.tree.read(path)? {
            Entry::Text(text) => text,
            Entry::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => return None,
        };
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_string())
    }

    /// The room on a live filesystem.
    fn room(&mut self, path: &str) {
        if !self.tree.is_live() {
            return;
        }
        let Ok(room) = rustix::fs::statvfs(path) else { return };
        let bytes = |blocks: u64| blocks.saturating_mul(room.f_frsize).to_string();
        self.line("total_bytes", &bytes(room.f_blocks));
        self.line("free_bytes", &bytes(room.f_bfree));
        self.line("available_bytes", &bytes(room.f_bavail));
    }

    fn directory(&mut self, path: &str, number: Option<&str>, depth: usize) {
        let Some(mount) = self.mount_of(path, number) else { return };
        if depth == 0 {
            self.line("mount", &mount.point);
            self.line("filesystem", &mount.kind);
            self.line("source", &mount.source);
            self.line("options", &mount.options);
            self.trim_timer();
        }
        let overlay = mount.kind == "overlay";
        let upper = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir="));
        let tops = self.tops(&mount);
        for top in &tops {
            self.block(top, depth);
        }
        if let (true, Some(upper), true) = (overlay && tops.is_empty(), upper, depth < MAX_DEPTH) {
            let upper = unescaped(upper);
            // A container's overlay names folders of the host, which are not to be seen from
            // inside.
            if self.tree.is_live() && !Path::new(&upper).is_dir() {
                return;
            }
            self.line("upper", &upper);
            self.directory(&upper, None, depth + 1);
        }
    }

    /// The mount that a path belongs to: the longest mount point above it, the last of several
    /// there.
    fn mount_of(&self, path: &str, number: Option<&str>) -> Option<Mount> {
        let table = self.read("/proc/self/mountinfo");
        let mounts: Vec<Mount> = match &table {
            Some(table) => table.lines().filter_map(Mount::of_mountinfo).collect(),
            None => {
                let table = self.read("/proc/self/mounts").or_else(|| self.read("/proc/mounts"))?;
                table.lines().filter_map(Mount::of_mounts).collect()
            }
        };
        let above = |mount: &&Mount| Path::new(path).starts_with(&mount.point);
        let longest = |mount: &&Mount| mount.point.len();
        let own = mounts
            .iter()
            .filter(above)
            .filter(|mount| number.is_some() && Some(mount.number.as_str()) == number);
        own.max_by_key(longest).or_else(|| mounts.iter().filter(above).max_by_key(longest)).cloned()
    }

    /// The devices that a mounted filesystem lies on.
    fn tops(&self, mount: &Mount) -> Vec<String> {
        if let Some(name) = self.name_of(&mount.number) {
            return vec![name];
        }
        let Some(source) = mount.source.strip_prefix("/dev/") else { return Vec::new() };
        let folder = |name: &str| !self.tree.names(&format!("/sys/class/block/{name}")).is_empty();
        let found = match source.strip_prefix("mapper/") {
            Some(wanted) => self.tree.names("/sys/block").into_iter().find(|name| {
                name.starts_with("dm-")
                    && self.read(&format!("/sys/block/{name}/dm/name")).as_deref() == Some(wanted)
            }),
            None => source.split('/').next_back().map(str::to_string).filter(|name| folder(name)),
        };
        let Some(name) = found else { return Vec::new() };
        // A filesystem of its own devices lists all of them.
        let all = self.tree.names("/sys/fs/btrfs").into_iter().find_map(|uuid| {
            let members = self.tree.names(&format!("/sys/fs/btrfs/{uuid}/devices"));
            members.contains(&name).then_some(members)
        });
        all.unwrap_or_else(|| vec![name])
    }

    /// A device's name by its number.
    fn name_of(&self, number: &str) -> Option<String> {
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let place =
            self.tree.real(&format!("/sys/dev/block/{number}")).filter(|_| plain && !number.is_empty())?;
        let name = place.rsplit('/').next()?.to_string();
        // A tree of plain copies has the folder under its number.
        if name != number {
            return Some(name);
        }
        let event = self.read(&format!("{place}/uevent"))?;
        event.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_string)
    }

    fn block(&mut self, name: &str, depth: usize) {
        if depth > MAX_DEPTH || self.seen.len() >= MAX_DEVICES || !self.seen.insert(name.to_string()) {
            return;
        }
        let found = ["/sys/class/block/", "/sys/block/"]
            .iter()
            .find_map(|folder| self.tree.real(&format!("{folder}{name}")));
        let Some(place) = found else { return };
        self.line("block", name);
        self.line("sysfs", &place);
        let number = self.read(&format!("{place}/dev"));
        self.line("number", number.as_deref().unwrap_or(""));
        for attribute in ATTRIBUTES {
            if let Some(value) = self.read(&format!("{place}/{attribute}")) {
                self.line(attribute, &value);
            }
        }
        // What stands before its first dash says what kind of mapping it is; what follows names the
        // owner's volumes.
        if let Some(uuid) = self.read(&format!("{place}/dm/uuid")) {
            self.line("dm/uuid", uuid.split('-').next().unwrap_or(""));
        }
        self.driver(&place);
        for attribute in LINK {
            let told = Path::new(&place)
                .ancestors()
                .find_map(|folder| self.read(&format!("{}/{attribute}", folder.display())));
            self.line(attribute, told.as_deref().unwrap_or(""));
        }
        let mut below = self.tree.names(&format!("{place}/slaves"));
        below.truncate(MAX_DEVICES);
        let parent = self
            .read(&format!("{place}/partition"))
            .and_then(|_| place.rsplit('/').nth(1).map(str::to_string));
        below.extend(parent);
        let file = self.read(&format!("{place}/loop/backing_file")).filter(|_| depth < MAX_DEPTH);
        let mount = file.as_deref().and_then(|file| self.mount_of(file, None));
        below.extend(mount.map(|mount| self.tops(&mount)).unwrap_or_default());
        below.iter().for_each(|name| self.line("below", name));
        for holder in self.tree.names(&format!("{place}/holders")) {
            self.line("holder", &holder);
        }
        for name in &below {
            self.block(name, depth + 1);
        }
        if let Some(file) = file {
            self.directory(&file, None, depth + 1);
        }
    }

    fn driver(&mut self, place: &str) {
        let folders = ["device/driver", "device/device/driver"];
        let driver = folders.iter().find_map(|folder| self.tree.real(&format!("{place}/{folder}")));
        let Some(driver) = driver.as_deref().and_then(|path| path.rsplit('/').next()) else { return };
        self.line("driver", driver);
        let module = POLLED.iter().find(|(known, _)| *known == driver);
        let queues = module.and_then(|(_, path)| self.read(&format!("/sys/module/{path}")));
        self.line("poll_queues", queues.as_deref().unwrap_or(""));
    }

    /// Whether something trims the filesystem now and then; nothing where no folder shows it.
    fn trim_timer(&mut self) {
        let mut looked = false;
        for (folders, name) in [(TIMERS.as_slice(), "fstrim.timer"), (CRON.as_slice(), "fstrim")] {
            for folder in folders {
                let names = self.tree.names(folder);
                looked |= !names.is_empty();
                if names.iter().any(|known| known == name) {
                    return self.line("trim_timer", &format!("{folder}/{name}"));
                }
            }
        }
        if looked {
            self.line("trim_timer", "none");
        }
    }
}

/// A line of the mount table.
#[derive(Clone)]
struct Mount {
    number: String,
    point: String,
    kind: String,
    source: String,
    /// Of the mount and of the filesystem, without those that both have.
    options: String,
}

impl Mount {
    /// `36 35 98:0 /root /point opts shared:1 - ext4 /dev/sda1 rw,errors=continue`
    fn of_mountinfo(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let (kind, source) = (right.next()?, right.next()?);
        let mut options: Vec<&str> = left.get(5)?.split(',').collect();
        for option in right.next().unwrap_or("").split(',') {
            // The folders below an overlay are many, and of no use.
            if !options.contains(&option) && !option.starts_with("lowerdir") {
                options.push(option);
            }
        }
        Some(Mount {
            number: left.get(2)?.to_string(),
            point: unescaped(left.get(4)?),
            kind: kind.to_string(),
            source: unescaped(source),
            options: options.join(","),
        })
    }

    /// `/dev/sda1 /point ext4 rw,relatime 0 0`
    fn of_mounts(line: &str) -> Option<Mount> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(Mount {
            number: String::new(),
            source: unescaped(words.first()?),
            point: unescaped(words.get(1)?),
            kind: words.get(2)?.to_string(),
            options: words.get(3)?.to_string(),
        })
    }
}

#[cfg(test)]
mod tests;

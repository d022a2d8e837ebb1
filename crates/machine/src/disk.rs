//! The disk that a run measures: the filesystem, and every device from the one that it lies on down
//! to the disks, from `probe:disk` (`snapshot/disk.rs` has its form) and the limits of our control
//! group.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::cgroup::places;
use super::directory::{Link, PLAIN, link_of};
use super::text::chosen;
use model::Snapshot;
use model::vocabulary::disk as ids;

/// What a run's I/O goes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Disk {
    /// The directory with the run's files, or the raw device.
    pub path: String,
    /// A whole device was named (`--device`), and no filesystem is in the way.
    pub raw: bool,
    pub mount_point: Option<String>,
    /// `ext4`, `xfs`, `tmpfs`, …, as the mount table calls it.
    pub filesystem: Option<String>,
    /// What the mount table says that is mounted there.
    pub source: Option<String>,
    /// Of the mount and of the filesystem.
    pub options: Vec<String>,
    pub total_bytes: Option<u64>,
    /// Free blocks of the filesystem, those kept for root included.
    pub free_bytes: Option<u64>,
    pub available_bytes: Option<u64>,
    /// The devices from the one that the filesystem lies on down to the disks; empty where it lies
    /// on none, or where that is unknown from in here.
    pub stack: Vec<Block>,
    /// What carries every byte: of the only disk, where it is reported and no layer could make it
    /// look faster.
    pub link: Option<Link>,
    /// What control groups allow of it.
    pub throttles: Vec<Throttle>,
    /// The timer that runs fstrim, as a path; `none` where there is none; null where that is not
    /// reported.
    pub trim_timer: Option<String>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Block {
    pub name: String,
    /// Major and minor.
    pub number: Option<String>,
    pub kind: Kind,
    /// What it lies on, by names in this stack.
    pub below: Vec<String>,
    /// What lies on it.
    pub holders: Vec<String>,
    pub model: Option<String>,
    pub driver: Option<String>,
    pub size_bytes: Option<u64>,
    pub read_only: Option<bool>,
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
    pub nr_requests: Option<u32>,
    /// `write back`: the device may keep what was written in a cache that a power cut empties,
    /// until it is flushed. `write through`: no such cache.
    pub write_cache: Option<String>,
    pub fua: Option<bool>,
    /// The most that one request may discard; 0: it cannot.
    pub discard_max_bytes: Option<u64>,
    pub logical_block_bytes: Option<u32>,
    pub physical_block_bytes: Option<u32>,
    pub read_ahead_kb: Option<u32>,
    /// Latency that throttling of background writes aims at, µs; 0: it is off.
    pub wbt_us: Option<u32>,
    /// Whether requests may be polled for.
    pub io_poll: Option<bool>,
    pub poll_queues: Option<u32>,
    pub numa_node: Option<u32>,
    /// The file below a loop device.
    pub backing_file: Option<String>,
    /// Whether a loop device goes past the page cache of its file.
    pub direct_io: Option<bool>,
    /// `raid1, 2 disks, clean`.
    pub raid: Option<String>,
    pub link: Option<Link>,
}

/// What kind of device it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Partition,
    Lvm,
    Crypt,
    Multipath,
    DeviceMapper,
    Raid,
    Bcache,
    Loop,
    Nvme,
    /// SATA, SAS, USB and all else that speaks SCSI.
    Scsi,
    Virtio,
    Xen,
    Zram,
    Ram,
    Mmc,
    Network,
    #[default]
    Other,
}

impl Kind {
    pub fn words(self) -> &'static str {
        match self {
            Kind::Partition => "partition",
            Kind::Lvm => "LVM",
            Kind::Crypt => "dm-crypt",
            Kind::Multipath => "multipath",
            Kind::DeviceMapper => "device mapper",
            Kind::Raid => "md RAID",
            Kind::Bcache => "bcache",
            Kind::Loop => "loop",
            Kind::Nvme => "NVMe",
            Kind::Scsi => "SCSI or SATA",
            Kind::Virtio => "virtio",
            Kind::Xen => "Xen",
            Kind::Zram => "zram",
            Kind::Ram => "RAM disk",
            Kind::Mmc => "MMC",
            Kind::Network => "network",
            Kind::Other => "device",
        }
    }
}

/// One limit of a control group for one device.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Throttle {
    /// `read` or `write`.
    pub op: String,
    /// `bytes` or `operations`, per second.
    pub of: String,
    pub per_s: f64,
    /// The device's name in the stack.
    pub device: String,
    /// The file that says so.
    pub at: String,
}

/// More devices than any probe of Assay writes.
const MAX_DEVICES: usize = 256;

pub(super) fn parse(snapshot: &Snapshot) -> Option<Disk> {
    let text = snapshot.text(ids::probe::DISK)?;
    let mut parts: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        if name == "block" && parts.len() <= MAX_DEVICES {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push((name, value.trim()));
        }
    }
    let (first, blocks) = parts.split_first()?;
    let words = Words(first.iter().copied().collect());
    let raw = words.text("device");
    let mut disk = Disk {
        path: raw.clone().or_else(|| words.text("path"))?,
        raw: raw.is_some(),
        mount_point: words.text("mount"),
        filesystem: words.text("filesystem"),
        source: words.text("source"),
        options: words
            .get("options")
            .map_or(Vec::new(), |text| text.split(',').map(str::to_string).collect()),
        total_bytes: words.number("total_bytes"),
        free_bytes: words.number("free_bytes"),
        available_bytes: words.number("available_bytes"),
        stack: blocks.iter().map(|lines| block(lines)).collect(),
        link: None,
        throttles: Vec::new(),
        trim_timer: words.text("trim_timer"),
    };
    disk.link = disk.only_link();
    disk.throttles = throttles(snapshot, &disk.stack);
    Some(disk)
}

struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl Words<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).copied()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_string)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
}

fn block(lines: &[(&str, &str)]) -> Block {
    let all = |name: &str| -> Vec<String> {
        lines.iter().filter(|(own, _)| *own == name).map(|(_, value)| value.to_string()).collect()
    };
    let words = Words(lines.iter().copied().collect());
    let name = words.text("block").unwrap_or_default();
    let place = words.get("sysfs").unwrap_or("");
    let kind = kind(&name, place, &words);
    // Virtio's vendor is a number of its bus; SATA's is the word ATA.
    let vendor = words
        .get("device/vendor")
        .filter(|vendor| !["ATA", "NVMe"].contains(vendor) && !vendor.starts_with("0x"));
    let model = words
        .get("device/model")
        .map(|model| vendor.map_or(model.to_string(), |vendor| format!("{vendor} {model}")));
    let raid = words.get("md/level").map(|level| {
        let mut said = vec![level.to_string()];
        said.extend(words.get("md/raid_disks").map(|disks| format!("{disks} disks")));
        said.extend(words.text("md/array_state"));
        said.extend(words.get("md/degraded").filter(|n| *n != "0").map(|n| format!("{n} of them missing")));
        said.extend(words.text("md/sync_action").filter(|action| action != "idle"));
        said.join(", ")
    });
    Block {
        number: words.text("number"),
        below: all("below"),
        holders: all("holder"),
        driver: words.text("driver"),
        // Sectors of 512 bytes, whatever the device's own are.
        size_bytes: words.number::<u64>("size").and_then(|sectors| sectors.checked_mul(512)),
        read_only: words.flag("ro"),
        rotational: words.flag("queue/rotational"),
        scheduler: words.get("queue/scheduler").and_then(chosen),
        nr_requests: words.number("queue/nr_requests"),
        write_cache: words.text("queue/write_cache"),
        fua: words.flag("queue/fua"),
        discard_max_bytes: words.number("queue/discard_max_bytes"),
        logical_block_bytes: words.number("queue/logical_block_size"),
        physical_block_bytes: words.number("queue/physical_block_size"),
        read_ahead_kb: words.number("queue/read_ahead_kb"),
        wbt_us: words.number("queue/wbt_lat_usec"),
        io_poll: words.flag("queue/io_poll"),
        poll_queues: words.number("poll_queues"),
        numa_node: words.number("device/numa_node"),
        backing_file: words.text("loop/backing_file"),
        direct_io: words.flag("loop/dio"),
        link: link_of(place, words.get("current_link_speed"), words.get("current_link_width")),
        name,
        kind,
        model,
        raid,
    }
}

fn kind(name: &str, place: &str, words: &Words) -> Kind {
    if words.get("partition").is_some() {
        return Kind::Partition;
    }
    let begins = |start: &str| name.starts_with(start);
    match words.get("dm/uuid") {
        Some("LVM") => return Kind::Lvm,
        Some("CRYPT") => return Kind::Crypt,
        Some("mpath") => return Kind::Multipath,
        _ => {}
    }
    match () {
        () if words.get("dm/name").is_some() || begins("dm-") => Kind::DeviceMapper,
        () if words.get("md/level").is_some() || begins("md") => Kind::Raid,
        () if begins("bcache") => Kind::Bcache,
        () if begins("loop") => Kind::Loop,
        () if begins("nvme") => Kind::Nvme,
        () if begins("vd") || place.contains("/virtio") && !begins("sd") && !begins("sr") => Kind::Virtio,
        () if begins("xvd") || place.contains("/vbd-") => Kind::Xen,
        () if begins("zram") => Kind::Zram,
        () if begins("ram") || begins("pmem") => Kind::Ram,
        () if begins("mmcblk") => Kind::Mmc,
        () if begins("nbd") || begins("rbd") || begins("drbd") => Kind::Network,
        () if begins("sd") || begins("sr") => Kind::Scsi,
        () => Kind::Other,
    }
}

/// Limits for the devices of the stack on the way from our control group to the root of its
/// hierarchy; one of version 1 has no hierarchy here: only our own group binds.
fn throttles(snapshot: &Snapshot, stack: &[Block]) -> Vec<Throttle> {
    const OF_OLD: [(&str, &str, &str); 4] = [
        ("blkio.throttle.read_bps_device", "read", "bytes"),
        ("blkio.throttle.write_bps_device", "write", "bytes"),
        ("blkio.throttle.read_iops_device", "read", "operations"),
        ("blkio.throttle.write_iops_device", "write", "operations"),
    ];
    const OF_NOW: [(&str, &str, &str); 4] = [
        ("rbps=", "read", "bytes"),
        ("wbps=", "write", "bytes"),
        ("riops=", "read", "operations"),
        ("wiops=", "write", "operations"),
    ];
    let mut found: Vec<Throttle> = Vec::new();
    let mut add = |number: &str, value: &str, op: &str, of: &str, at: &str| {
        let device = stack.iter().find(|block| block.number.as_deref() == Some(number));
        let per_s = value.parse::<u64>().ok().filter(|per_s| *per_s > 0 && *per_s < u64::MAX / 2);
        if let (Some(device), Some(per_s)) = (device, per_s) {
            let (op, of, device, at) = (op.into(), of.into(), device.name.clone(), at.into());
            found.push(Throttle { op, of, per_s: per_s as f64, device, at });
        }
    };
    for place in places(snapshot) {
        if place.version == 1 && place.controls("blkio") {
            for (file, op, of) in OF_OLD {
                let at = format!("{}/{file}", place.folders[0]);
                for line in snapshot.text(&at).unwrap_or("").lines() {
                    if let Some((number, value)) = line.split_once(' ') {
                        add(number, value.trim(), op, of, &at);
                    }
                }
            }
        }
        for folder in place.folders.iter().filter(|_| place.version == 2) {
            let at = format!("{folder}/io.max");
            for line in snapshot.text(&at).unwrap_or("").lines() {
                let mut words = line.split_whitespace();
                let number = words.next().unwrap_or("");
                for word in words {
                    for (name, op, of) in OF_NOW {
                        if let Some(value) = word.strip_prefix(name) {
                            add(number, value, op, of, &at);
                        }
                    }
                }
            }
        }
    }
    found
}

impl Disk {
    /// The device that the filesystem lies on, or the raw one.
    pub fn top(&self) -> Option<&Block> {
        self.stack.first()
    }

    /// Devices that lie on no other one.
    pub fn leaves(&self) -> impl Iterator<Item = &Block> {
        self.stack.iter().filter(|block| block.is_leaf())
    }

    /// The only disk.
    pub fn only(&self) -> Option<&Block> {
        let mut leaves = self.leaves();
        leaves.next().filter(|_| leaves.next().is_none())
    }

    /// A filesystem that stores bytes as they are, on one disk below layers that neither mirror nor
    /// stripe nor cache.
    fn only_link(&self) -> Option<Link> {
        let plain = self.raw || self.filesystem.as_deref().is_some_and(|kind| PLAIN.contains(&kind));
        let straight = |block: &Block| {
            block.is_leaf()
                || matches!(block.kind, Kind::Partition | Kind::Lvm | Kind::Crypt) && block.below.len() == 1
        };
        let same = plain && self.stack.iter().all(straight);
        self.only().filter(|_| same)?.link.clone()
    }

    /// Whether a hypervisor or this kernel only plays one of the disks; `None` where no disk is
    /// known.
    pub fn is_virtual(&self) -> Option<bool> {
        self.leaves().next()?;
        Some(self.stack.iter().any(Block::is_virtual))
    }

    /// Whether no disk of it turns; `None` where some disk does not report it, or where a
    /// hypervisor invents the answer.
    pub fn is_solid(&self) -> Option<bool> {
        let told: Option<Vec<bool>> =
            self.leaves().map(|leaf| leaf.rotational.filter(|_| !leaf.is_virtual())).collect();
        told.filter(|told| !told.is_empty()).map(|told| told.iter().all(|turns| !turns))
    }

    /// Whether its files live in memory only.
    pub fn is_memory(&self) -> bool {
        matches!(self.filesystem.as_deref(), Some("tmpfs" | "ramfs"))
            || self.leaves().next().is_some()
                && self.leaves().all(|leaf| matches!(leaf.kind, Kind::Zram | Kind::Ram))
    }

    /// Share of the filesystem that is used, those blocks included that are kept for root.
    pub fn used_share(&self) -> Option<f64> {
        let (total, free) = (self.total_bytes? as f64, self.free_bytes? as f64);
        (total > 0.0 && free <= total).then(|| 1.0 - free / total)
    }

    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| {
            option == name || option.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
        })
    }

    /// `ext4 on vda`, `nvme0n1p2 → nvme0n1`.
    pub fn name(&self) -> String {
        let device = self.top().map(|top| format!("/dev/{}", top.name));
        match (&self.filesystem, device) {
            (Some(kind), Some(device)) => format!("{kind} on {device}"),
            (Some(kind), None) => kind.clone(),
            (None, Some(device)) => device,
            (None, None) => self.path.clone(),
        }
    }
}

impl Block {
    fn is_leaf(&self) -> bool {
        self.below.is_empty()
    }

    /// A disk that a hypervisor plays: what it says about itself is what that one wants it to.
    pub fn is_virtual(&self) -> bool {
        // Parts of models in small letters, as firmware is not of one mind about large ones ("Msft
        // Virtual Disk", "MSFT NVMe Accelerator"). Google's disks on NVMe are called nvme_card, and
        // nvme_card-pd where they come by the network. "Amazon EC2 NVMe Instance Storage" is none
        // of them: a real device of the host's.
        const PLAYED: [&str; 9] = [
            "qemu",
            "vmware",
            "vbox",
            "virtual",
            "google",
            "nvme_card",
            "amazon elastic block store",
            "msft",
            "xen",
        ];
        let model = self.model.as_deref().unwrap_or("").to_lowercase();
        matches!(self.kind, Kind::Virtio | Kind::Xen | Kind::Loop | Kind::Zram | Kind::Ram | Kind::Network)
            || PLAYED.iter().any(|word| model.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_place_say_what_a_device_is() {
        let scsi_over_virtio = "/sys/devices/pci0000:00/0000:00:04.0/virtio1/host0/target0:0:1/0:0:1:0";
        for (name, place, expected) in [
            ("vda", "", Kind::Virtio),
            ("disk1", "/sys/devices/pci0000:00/0000:00:05.0/virtio2/block", Kind::Virtio),
            // A controller on virtio has SCSI disks.
            ("sda", scsi_over_virtio, Kind::Scsi),
            ("sr0", scsi_over_virtio, Kind::Scsi),
            ("xvda", "", Kind::Xen),
            ("disk2", "/sys/devices/vbd-51712/block", Kind::Xen),
            ("nvme0n1", "", Kind::Nvme),
            ("md0", "", Kind::Raid),
            ("dm-0", "", Kind::DeviceMapper),
            ("loop0", "", Kind::Loop),
            ("zram0", "", Kind::Zram),
            ("ram0", "", Kind::Ram),
            ("pmem0", "", Kind::Ram),
            ("mmcblk0", "", Kind::Mmc),
            ("nbd0", "", Kind::Network),
            ("rbd0", "", Kind::Network),
            ("disk3", "", Kind::Other),
        ] {
            assert_eq!(kind(name, place, &Words(BTreeMap::new())), expected, "{name} {place}");
        }
    }
}

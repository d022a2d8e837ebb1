//! Which block devices are the same storage, wholly or in part: partitions and their disk, a disk
//! by two ways, what lies on one file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{Backing, KernelQueries, number};

/// A block device and what it is made of.
#[derive(Debug, Default)]
pub(super) struct Device {
    /// `8:1`.
    pub number: String,
    /// The disk that it is a partition of, and which one.
    part_of: Option<(String, String)>,
    /// Of a partition: begin and end on its disk, bytes; the whole disk if the kernel does not say.
    extent: (u64, u64),
    pub holders: Vec<String>,
    /// The kernel's names for what this one lies on: of a mapped device, an array, a loop device on
    /// another one.
    slaves: Vec<String>,
    /// The same whatever way a disk is reached by, and no two disks'.
    identities: Vec<String>,
    /// Of a loop device: the file, and the path that it had.
    pub backing: Option<(Backing, String)>,
    pub in_bcache: bool,
}

/// How a device shares storage with the one that is asked about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SharedStorage {
    /// In words, to stand before what is said about it; empty of the one that is asked about.
    pub what: String,
    /// Nothing else is there; without this it is the disk of such a partition, beside which others
    /// may lie.
    whole: bool,
    /// That one lies on it, beside others perhaps.
    pub below: bool,
    /// The very same storage by another name: no one may have claimed it, where it is a whole one.
    pub again: bool,
}

pub(super) struct Devices(pub BTreeMap<String, Device>);

/// Files that identify a disk, below its folder. Those of NVMe's namespaces, of
/// SCSI and of nbd.
const IDENTITIES: [&str; 6] = ["wwid", "nguid", "uuid", "eui", "device/wwid", "backend"];

impl Devices {
    pub fn read(root: &Path, asked: &KernelQueries) -> Devices {
        let class = root.join("sys/class/block");
        let names = fs::read_dir(&class).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: BTreeMap<String, Device> =
            names.map(|name| (name.clone(), device(root, &class.join(&name), &name, asked))).collect();
        // A loop device on a block device lies on it as a mapped one does.
        let names: BTreeMap<String, String> =
            all.iter().map(|(name, device)| (device.number.clone(), name.clone())).collect();
        for device in all.values_mut() {
            let Some((backing, _)) = &device.backing else { continue };
            device.slaves.extend(names.get(&number(backing.special)).cloned());
        }
        Devices(all)
    }

    /// Every device that shares storage with this one, and how.
    pub fn sharing(&self, name: &str) -> BTreeMap<String, SharedStorage> {
        let share = |what: String, whole, below| SharedStorage { what, whole, below, again: false };
        let mut found = BTreeMap::from([(name.to_string(), share(String::new(), true, false))]);
        for part in self.parts(name) {
            found.insert(part.clone(), share(format!("{part}, a partition of it,"), true, false));
        }
        let mut upper = vec![name.to_string()];
        if let Some((disk, _)) = self.part_of(name) {
            found.insert(disk.clone(), share(format!("{disk}, which it is a part of,"), false, false));
            upper.push(disk.clone());
        }
        while let Some(device) = upper.pop().and_then(|name| self.0.get(&name)) {
            for slave in &device.slaves {
                // On a whole disk it lies on its partitions, too.
                for part in self.parts(slave).into_iter().filter(|part| device.reaches(&self.0[part])) {
                    let what = format!("{part}, a partition of {slave}, which it lies on,");
                    found.entry(part).or_insert(share(what, true, false));
                }
                let disk = self.part_of(slave).map(|(disk, _)| disk);
                for (lower, whole) in [(slave, true)].into_iter().chain(disk.map(|disk| (disk, false))) {
                    if !found.contains_key(lower) {
                        let below = !(whole && device.is_all_of_its_slave());
                        found.insert(
                            lower.clone(),
                            share(format!("{lower}, which it lies on,"), whole, below),
                        );
                        upper.push(lower.clone());
                    }
                }
            }
        }
        let known: Vec<String> =
            found.iter().filter(|(_, one)| one.whole).map(|(name, _)| name.clone()).collect();
        for known in known {
            let part = self.part_of(&known);
            let (disk, number) = part.map_or((&known, None), |(disk, number)| (disk, Some(number)));
            for (other, why) in self.same(disk) {
                let mut add = |name: &str, whole| {
                    let share =
                        SharedStorage { what: format!("{name}, {why},"), whole, below: false, again: whole };
                    found.entry(name.to_string()).or_insert(share);
                };
                add(&other, number.is_none());
                for part in self.parts(&other) {
                    if number.is_none() || self.part_of(&part).map(|(_, number)| number) == number {
                        add(&part, true);
                    }
                }
            }
        }
        found
    }

    /// Loop devices on a block device.
    pub fn loops_on(&self, name: &str) -> impl Iterator<Item = &String> {
        let lies =
            move |device: &Device| device.backing.is_some() && device.slaves.iter().any(|one| one == name);
        self.0.iter().filter(move |(_, device)| lies(device)).map(|(name, _)| name)
    }

    fn part_of(&self, name: &str) -> Option<&(String, String)> {
        self.0.get(name)?.part_of.as_ref()
    }

    fn parts(&self, disk: &str) -> Vec<String> {
        let of = |device: &Device| device.part_of.as_ref().is_some_and(|(whole, _)| whole == disk);
        self.0.iter().filter(|(_, device)| of(device)).map(|(name, _)| name.clone()).collect()
    }

    /// Other devices that are this whole one, and why.
    fn same(&self, disk: &str) -> Vec<(String, String)> {
        let Some(own) = self.0.get(disk) else { return Vec::new() };
        let why = |other: &Device| {
            if let Some(identity) = own.identities.iter().find(|one| other.identities.contains(one)) {
                return Some(format!("which is the same disk ({identity})"));
            }
            let ((ours, path), (theirs, _)) = (own.backing.as_ref()?, other.backing.as_ref()?);
            ours.overlaps(theirs).then(|| format!("which lies on the same file ({path})"))
        };
        let others = self.0.iter().filter(|(name, _)| *name != disk);
        others.filter_map(|(name, other)| Some((name.clone(), why(other)?))).collect()
    }
}

impl Device {
    /// Whether it has bytes of a partition, where it lies on that one's disk.
    fn reaches(&self, part: &Device) -> bool {
        let (from, to) = match &self.backing {
            Some((backing, _)) => (backing.offset, backing.end()),
            None => (0, u64::MAX),
        };
        from < part.extent.1 && part.extent.0 < to
    }

    /// Whether it is a loop device over the whole of another device.
    fn is_all_of_its_slave(&self) -> bool {
        self.backing.as_ref().is_some_and(|(backing, _)| backing.offset == 0 && backing.limit == 0)
    }
}

fn device(root: &Path, link: &Path, name: &str, asked: &KernelQueries) -> Device {
    let place = fs::canonicalize(link).unwrap_or_else(|_| link.to_path_buf());
    let told = |file: &str| {
        let text = fs::read_to_string(place.join(file)).unwrap_or_default();
        text.trim().trim_matches('\0').to_string()
    };
    let inside = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(place.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let partition = told("partition");
    let disk = place.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let part_of = if partition.is_empty() { None } else { disk.map(|disk| (disk, partition)) };
    let mut identities = Vec::new();
    if part_of.is_none() {
        let all = IDENTITIES.iter().map(|file| (*file, told(file))).filter(|(_, id)| is_identity(id));
        identities.extend(all.map(|(file, id)| format!("{} {id}", file.trim_start_matches("device/"))));
        // A serial may be chosen, as in virtual machines: with the same size, too, it is no
        // accident.
        let serial = Some(told("serial")).filter(|serial| is_identity(serial));
        identities.extend(serial.map(|serial| format!("serial {serial}, {} sectors", told("size"))));
    }
    // Sectors are of 512 bytes, whatever the disk's are.
    let sectors = |file: &str| told(file).parse::<u64>().ok().map(|sectors| sectors.saturating_mul(512));
    let extent = match (sectors("start"), sectors("size")) {
        (Some(start), Some(size)) => (start, start.saturating_add(size)),
        _ => (0, u64::MAX),
    };
    let path = told("loop/backing_file");
    let backing = (!path.is_empty()).then(|| {
        let looked = || of_path(root, &path, [told("loop/offset"), told("loop/sizelimit")]);
        (asked.backing)(name).or_else(looked)
    });
    Device {
        number: told("dev"),
        part_of,
        extent,
        holders: inside("holders"),
        slaves: inside("slaves"),
        identities,
        backing: backing.flatten().map(|backing| (backing, path)),
        in_bcache: place.join("bcache").exists() && !name.starts_with("bcache"),
    }
}

/// What is at a path, where the kernel cannot be asked.
fn of_path(root: &Path, path: &str, [offset, limit]: [String; 2]) -> Option<Backing> {
    let meta = fs::metadata(root.join(path.trim_start_matches('/'))).ok()?;
    let special = if meta.file_type().is_block_device() { meta.rdev() } else { 0 };
    let (offset, limit) = (offset.parse().unwrap_or(0), limit.parse().unwrap_or(0));
    Some(Backing { file: [meta.dev(), meta.ino()], special, offset, limit })
}

/// Zeros, and next to nothing, are what a device says that has none.
fn is_identity(text: &str) -> bool {
    text.len() >= 4 && text.chars().any(|c| c.is_ascii_alphanumeric() && c != '0')
}

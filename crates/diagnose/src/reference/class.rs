//! The class of a host: what of the table's rows it can be compared with, and what of it narrows
//! them.

use std::collections::BTreeMap;

use super::table::{Distance, Place, Row, is_number_of_model};
use machine::disk::{Block, Kind};
use machine::{Generation, Hypervisor, Machine};
use model::CpuSet;
use model::pattern::KeyParts;
use model::vocabulary::memory::param::BYTES;

/// What a host is, as far as figures depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct HostClass {
    /// Classes of the processor from the nearest on: its generation, its cores, vendor, set of
    /// instructions, any.
    pub processor: Vec<String>,
    /// Classes of the disk from the nearest on; `any` alone where it is of no known kind.
    pub disk: Vec<String>,
    pub generation: Option<Generation>,
    /// `None`: unknown.
    pub is_guest: Option<bool>,
    /// Whether the kernel has page tables of its own; `None`: unknown.
    pub isolation: Option<bool>,
    /// The processor's number (`8480`); `None` where its name has none or is hidden.
    pub model: Option<String>,
    pub sockets: u32,
    /// Whether all cores of its sockets are there and may be used.
    pub has_whole_sockets: bool,
    /// Of one last-level cache, and of all together.
    pub cache_bytes: Option<[u64; 2]>,
    pub cpus: usize,
    cores: Vec<CpuSet>,
    caches: Vec<CpuSet>,
    packages: Vec<CpuSet>,
}

/// The class that a class is part of; `None` of the widest and of one that is unknown.
pub fn parent(class: &str) -> Option<&'static str> {
    Some(match class {
        "intel" | "amd" => "x86",
        "x86" | "arm" | "disk" | "network" => "any",
        "disk/nvme-pcie3" | "disk/nvme-pcie4" | "disk/nvme-pcie5" => "disk/nvme",
        // Nothing says what a hypervisor's disk lies on: it is read against what it could be best.
        "disk/virtio" => "disk/nvme",
        "disk/nvme" | "disk/sata-ssd" => "disk/ssd",
        "disk/ssd" => "disk",
        class => match class.split_once('/')? {
            ("intel", _) => "intel",
            ("amd", _) => "amd",
            ("arm", _) => "arm",
            ("disk", _) => "disk",
            ("network", _) => "network",
            _ => return None,
        },
    })
}

/// Whether a class is another one or a part of it.
pub fn is_within(class: &str, wider: &str) -> bool {
    class == wider || parent(class).is_some_and(|parent| is_within(parent, wider))
}

/// A class in words.
pub fn words(class: &str) -> String {
    let fixed = match class {
        "intel" => "Intel",
        "amd" => "AMD",
        "arm" => "Arm",
        "any" => "any host",
        "disk/nvme" => "any NVMe",
        "disk/nvme-pcie3" => "NVMe, PCIe 3",
        "disk/nvme-pcie4" => "NVMe, PCIe 4",
        "disk/nvme-pcie5" => "NVMe, PCIe 5",
        "disk/ssd" => "any SSD",
        "disk/sata-ssd" => "SATA SSD",
        "disk/virtio" => "virtual disk",
        _ => "",
    };
    match (fixed, Generation::of_class(class)) {
        ("", Some(generation)) => generation.words(),
        ("", None) => class.to_string(),
        (fixed, _) => fixed.to_string(),
    }
}

impl HostClass {
    pub fn of(machine: &Machine) -> HostClass {
        let generation = machine.generation();
        let cpus = &machine.cpus;
        let sets = |machine: &Machine| machine.llc_groups().unwrap_or_default();
        let packages: Vec<CpuSet> =
            cpus.packages.iter().flatten().map(|package| package.cpus.clone()).collect();
        let is_guest = match &machine.hypervisor {
            Hypervisor::Unknown => None,
            Hypervisor::None => Some(false),
            Hypervisor::Guest(_) => Some(true),
        };
        let of = |bytes: &Option<u64>| bytes.filter(|bytes| *bytes > 0);
        let caches = sets(machine);
        let sizes = caches.iter().map(|set| of(&machine.last_level_cache(set.first()?)?.size_bytes));
        let sizes: Option<Vec<u64>> = sizes.collect();
        let name = cpus.model.as_deref().unwrap_or_default();
        HostClass {
            processor: processor(machine, generation),
            disk: disk(machine),
            generation,
            is_guest,
            isolation: isolation(&machine.kernel.mitigations),
            model: name.split_whitespace().find(|word| is_number_of_model(word)).map(str::to_string),
            sockets: packages.len().max(1) as u32,
            has_whole_sockets: is_guest == Some(false)
                && cpus.offline.is_empty()
                && cpus.allowed == cpus.online
                && !packages.is_empty(),
            cache_bytes: sizes.and_then(|sizes| Some([*sizes.iter().max()?, sizes.iter().sum()])),
            cpus: cpus.allowed.len(),
            cores: cpus.cores.iter().flatten().map(|core| core.cpus.clone()).collect(),
            caches,
            packages,
        }
    }

    /// `Intel Xeon 6 (Granite Rapids)`; of an unknown generation the nearest class.
    pub fn words(&self) -> String {
        let vendor = |class: &str| match parent(class) {
            Some(vendor @ ("intel" | "amd")) => format!("{} ", words(vendor)),
            _ => String::new(),
        };
        match (self.generation, self.processor.first()) {
            (Some(generation), _) => vendor(generation.class) + &generation.words(),
            (None, Some(class)) => words(class),
            (None, None) => words("any"),
        }
    }

    /// The classes that a figure is read by, from the nearest on, and how many of them are its own:
    /// a band of another is wide.
    pub fn classes(&self, bench: &str) -> (&[String], usize) {
        match bench.split('.').next() {
            Some("disk") => (&self.disk, 1),
            // Provider and way are unknown, and a loopback is no network: `any`, the last, remains.
            Some("network") => (&self.processor[self.processor.len().saturating_sub(1)..], 0),
            _ => (&self.processor, if self.generation.is_some() { 2 } else { 0 }),
        }
    }

    /// Whether a row is of its processor's or its disk's own class.
    pub fn is_of(&self, row: &Row) -> bool {
        let own = if self.generation.is_some() { 2 } else { 0 };
        let classes = self.processor.iter().take(own).chain(self.disk.first());
        self.has_place(row) && classes.into_iter().any(|class| row.subjects().any(|subject| subject == class))
    }

    /// A guest is read against the bare metal that it runs on; a run that the user kept, only
    /// against its like.
    fn has_place(&self, row: &Row) -> bool {
        match row.place {
            None => true,
            Some(Place::BareMetal) => !row.is_own() || self.is_guest == Some(false),
            Some(Place::Guest) => self.is_guest == Some(true),
        }
    }

    /// Whether a row is of such hosts, but for its class and for page-table isolation.
    pub fn fits(&self, row: &Row, key: &KeyParts) -> bool {
        let distance = match row.distances() {
            None => true,
            Some(wanted) => self.distance(key).is_some_and(|own| wanted.contains(&own)),
        };
        let model = match (row.model(), &self.model) {
            (Some(wanted), Some(own)) if wanted != "top model" => wanted == own,
            _ => true,
        };
        self.has_place(row)
            && distance
            && model
            && (!row.is_of_whole_sockets() || self.has_whole_sockets)
            && (!row.is_of_memory() || self.is_beyond_caches(key))
    }

    /// Whether a row is of a model that this host may not be.
    pub fn is_of_another_model(&self, row: &Row) -> bool {
        row.model().is_some_and(|wanted| self.model.as_deref() != Some(wanted))
    }

    /// Whether a figure is of two CPUs of a guest: their distance is what the host reports, and
    /// the host may put them elsewhere.
    pub fn relies_on_reported_cores(&self, key: &KeyParts) -> bool {
        self.is_guest == Some(true) && key.param("from").is_some()
    }

    /// How far the two CPUs of a figure are from each other.
    fn distance(&self, key: &KeyParts) -> Option<Distance> {
        let cpu = |name: &str| key.param(name)?.parse::<u32>().ok();
        if let Some((one, other)) = cpu("from").zip(cpu("to")) {
            let share = |sets: &[CpuSet]| sets.iter().any(|set| set.contains(one) && set.contains(other));
            let known = |sets: &[CpuSet]| !sets.is_empty();
            let all_known = known(&self.cores) && known(&self.caches) && known(&self.packages);
            return match () {
                () if !all_known => None,
                () if share(&self.cores) => Some(Distance::Siblings),
                () if share(&self.caches) => Some(Distance::SameCache),
                () if share(&self.packages) => Some(Distance::SameSocket),
                () => Some(Distance::OtherSocket),
            };
        }
        match key.placement {
            "smt-sibling" => Some(Distance::Siblings),
            "same-cluster" | "same-llc" => Some(Distance::SameCache),
            "other-llc" => Some(Distance::SameSocket),
            // The nearest other node of a host with one socket is a part of that socket.
            "other-node" if self.sockets == 1 => Some(Distance::SameSocket),
            "other-package" => Some(Distance::OtherSocket),
            _ => None,
        }
    }

    /// Whether the block of a figure is larger than the caches that its CPUs have, as reported.
    fn is_beyond_caches(&self, key: &KeyParts) -> bool {
        // A pattern without a block means the largest.
        let Some(bytes) = key.param(&BYTES) else { return true };
        let Some((block, [one, all])) = bytes.parse::<u64>().ok().zip(self.cache_bytes) else { return false };
        match key.placement {
            "all" => block.saturating_mul(self.cpus as u64) > all,
            _ => block > one,
        }
    }
}

fn processor(machine: &Machine, generation: Option<Generation>) -> Vec<String> {
    let vendor = match (machine.cpus.vendor.as_deref(), machine.cpus.architecture.as_deref()) {
        (Some("GenuineIntel"), _) => "intel",
        (Some("AuthenticAMD"), _) => "amd",
        (_, Some("x86_64")) => "x86",
        (_, Some("aarch64")) => "arm",
        _ => "any",
    };
    let own = generation.into_iter().flat_map(|one| [one.class, one.core_class]);
    let wider = std::iter::successors(Some(vendor), |class| parent(class));
    own.chain(wider).map(str::to_string).collect()
}

/// The kernel's words about Meltdown: with page-table isolation every system call changes tables.
fn isolation(mitigations: &BTreeMap<String, String>) -> Option<bool> {
    mitigations.get("meltdown").map(|words| words.contains("PTI"))
}

/// Of one disk below layers that neither mirror nor stripe nor cache.
fn disk(machine: &Machine) -> Vec<String> {
    let plain = |block: &Block| {
        block.below.is_empty() || matches!(block.kind, Kind::Partition | Kind::Lvm | Kind::Crypt)
    };
    let disk = machine.disk.as_ref().filter(|disk| !disk.is_memory() && disk.stack.iter().all(plain));
    let own = disk.and_then(|disk| class_of_disk(disk.only()?)).unwrap_or("any");
    let wider = std::iter::successors(Some(own), |class| parent(class));
    wider.filter(|class| *class != "disk").map(str::to_string).collect()
}

fn class_of_disk(block: &Block) -> Option<&'static str> {
    let link = block.link.as_ref().map_or("", |link| link.name.as_str());
    match block.kind {
        Kind::Virtio | Kind::Xen => Some("disk/virtio"),
        Kind::Nvme if !block.is_virtual() => Some(match () {
            () if link.contains(" 8 GT/s") => "disk/nvme-pcie3",
            () if link.contains(" 16 GT/s") => "disk/nvme-pcie4",
            () if link.contains(" 32 GT/s") => "disk/nvme-pcie5",
            () => "disk/nvme",
        }),
        Kind::Scsi if block.is_virtual() => Some("disk/virtio"),
        Kind::Scsi if block.rotational == Some(false) => {
            Some(if link == "SATA" { "disk/sata-ssd" } else { "disk/ssd" })
        }
        _ => None,
    }
}

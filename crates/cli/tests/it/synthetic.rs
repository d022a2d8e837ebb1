//! Invented hosts: trees of /proc and /sys made by the tests.

use std::fs;
use std::path::Path;

use model::CpuSet;
use tempfile::TempDir;

/// A tree of files under a temporary root.
pub struct Tree {
    folder: TempDir,
}

/// How a regular host is built.
#[derive(Clone, Copy)]
pub struct Shape {
    pub packages: u32,
    /// Cores in a package, and how many of them share an L3.
    pub cores: u32,
    pub cores_per_l3: u32,
    pub threads: u32,
    /// CPU number of the first thread; leaves a hole before it.
    pub first: u32,
    /// Distance between neighbouring CPU numbers.
    pub step: u32,
    /// Whether there are lists beside the masks, as kernels since 2.6.26 have.
    pub lists: bool,
}

/// A temporary folder, in memory where that is possible: a hundred thousand small files take a disk
/// a minute.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

impl Tree {
    pub fn new() -> Tree {
        Tree { folder: folder() }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn bytes(&self, path: &str, content: &[u8]) -> &Tree {
        let path = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a parent")).expect("creates folders");
        fs::write(path, content).expect("writes");
        self
    }

    pub fn file(&self, path: &str, text: &str) -> &Tree {
        self.bytes(path, format!("{text}\n").as_bytes())
    }

    pub fn cpu(&self, cpu: u32, file: &str, text: &str) -> &Tree {
        self.file(&format!("/sys/devices/system/cpu/cpu{cpu}/{file}"), text)
    }

    /// Topology, caches and one node per package of a regular host, masks of `words` words of 32
    /// bits each.
    pub fn build(&self, shape: Shape, words: usize) -> &Tree {
        let number = |thread: u32| shape.first + shape.step * thread;
        let all_cores = shape.packages * shape.cores;
        // As firmware numbers them: all first threads, then all second ones.
        let threads_of = |core: u32| (0..shape.threads).map(move |thread| number(thread * all_cores + core));
        let cores_of = |from: u32, count: u32| (from..from + count).flat_map(threads_of).collect::<Vec<_>>();
        for core in 0..all_cores {
            let package = core / shape.cores;
            let own: Vec<u32> = threads_of(core).collect();
            let whole = cores_of(package * shape.cores, shape.cores);
            let near = cores_of(core / shape.cores_per_l3 * shape.cores_per_l3, shape.cores_per_l3);
            for cpu in threads_of(core) {
                self.cpu(cpu, "topology/physical_package_id", &package.to_string());
                self.cpu(cpu, "topology/core_id", &(core % shape.cores).to_string());
                self.cache(cpu, 0, 1, "Data", "48K", &mask(&own, words));
                self.cache(cpu, 1, 1, "Instruction", "32K", &mask(&own, words));
                self.cache(cpu, 2, 2, "Unified", "2048K", &mask(&own, words));
                self.cache(cpu, 3, 3, "Unified", "32768K", &mask(&near, words));
                let sets = [
                    ("topology/core_cpus", "topology/core_cpus_list", &own),
                    ("topology/package_cpus", "topology/package_cpus_list", &whole),
                    ("cache/index0/shared_cpu_map", "cache/index0/shared_cpu_list", &own),
                    ("cache/index1/shared_cpu_map", "cache/index1/shared_cpu_list", &own),
                    ("cache/index2/shared_cpu_map", "cache/index2/shared_cpu_list", &own),
                    ("cache/index3/shared_cpu_map", "cache/index3/shared_cpu_list", &near),
                ];
                for (as_mask, as_list, cpus) in sets {
                    self.cpu(cpu, as_mask, &mask(cpus, words));
                    if shape.lists {
                        self.cpu(cpu, as_list, &cpus.iter().copied().collect::<CpuSet>().to_string());
                    }
                }
            }
        }
        for package in 0..shape.packages {
            let node = format!("/sys/devices/system/node/node{package}");
            self.file(&format!("{node}/cpumap"), &mask(&cores_of(package * shape.cores, shape.cores), words));
            self.file(&format!("{node}/meminfo"), &format!("Node {package} MemTotal:       67108864 kB"));
            let distance = |other: u32| if other == package { "10" } else { "32" };
            let distances: Vec<&str> = (0..shape.packages).map(distance).collect();
            self.file(&format!("{node}/distance"), &distances.join(" "));
        }
        self
    }

    /// SMBIOS tables with these slots: name, size in MiB, rated and configured speed.
    pub fn memory_modules(&self, slots: &[(&str, u16, u16, u16)]) -> &Tree {
        let devices = slots
            .iter()
            .flat_map(|(name, size, rated, configured)| memory_device(name, *size, *rated, *configured));
        let table: Vec<u8> = devices.chain([127, 4, 0, 0, 0, 0]).collect();
        let mut entry = b"_SM3_\0\x18\x03\x02\0\x01\0".to_vec();
        entry.extend((table.len() as u32).to_le_bytes());
        entry.extend([0; 8]);
        entry[5] = 0u8.wrapping_sub(entry.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        self.bytes("/sys/firmware/dmi/tables/DMI", &table);
        self.bytes("/sys/firmware/dmi/tables/smbios_entry_point", &entry)
    }

    pub fn cache(&self, cpu: u32, index: u32, level: u32, kind: &str, size: &str, map: &str) {
        let files = [("level", level.to_string()), ("type", kind.to_string()), ("size", size.to_string())];
        for (file, text) in files.into_iter().chain([("shared_cpu_map", map.to_string())]) {
            self.cpu(cpu, &format!("cache/index{index}/{file}"), &text);
        }
    }
}

/// A memory device of SMBIOS 2.8: size in MiB, rated and configured speed.
fn memory_device(locator: &str, mebibytes: u16, rated: u16, configured: u16) -> Vec<u8> {
    let mut bytes = vec![0u8; 0x28];
    (bytes[0], bytes[1], bytes[0x10], bytes[0x11]) = (17, 0x28, 1, 2);
    bytes[0x0c..0x0e].copy_from_slice(&mebibytes.to_le_bytes());
    bytes[0x15..0x17].copy_from_slice(&rated.to_le_bytes());
    bytes[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
    bytes.extend(locator.as_bytes());
    bytes.extend(b"\0BANK\0\0");
    bytes
}

/// CPUs as the kernel's mask of `words` words.
pub fn mask(cpus: &[u32], words: usize) -> String {
    let mut bits = vec![0u32; words];
    for cpu in cpus {
        bits[*cpu as usize / 32] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = bits.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

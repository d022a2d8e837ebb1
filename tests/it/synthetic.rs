//! Machines that nobody gave us: trees of /proc and /sys made by the tests.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

/// A tree of files under a temporary root.
pub struct Tree {
    folder: TempDir,
}

/// How a regular machine is built.
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
}

impl Tree {
    pub fn new() -> Tree {
        Tree { folder: tempfile::tempdir().expect("a temporary folder") }
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

    /// Topology, caches and one node per package of a regular machine, masks only (`words` words of 32 bits each).
    pub fn build(&self, shape: Shape, words: usize) -> &Tree {
        let number = |thread: u32| shape.first + shape.step * thread;
        let all_cores = shape.packages * shape.cores;
        // As firmware numbers them: all first threads, then all second ones.
        let threads_of = |core: u32| (0..shape.threads).map(move |thread| number(thread * all_cores + core));
        let cores_of = |from: u32, count: u32| (from..from + count).flat_map(threads_of).collect::<Vec<_>>();
        for core in 0..all_cores {
            let package = core / shape.cores;
            let own = mask(&threads_of(core).collect::<Vec<_>>(), words);
            let whole = mask(&cores_of(package * shape.cores, shape.cores), words);
            let first = core / shape.cores_per_l3 * shape.cores_per_l3;
            let near = mask(&cores_of(first, shape.cores_per_l3), words);
            for cpu in threads_of(core) {
                self.cpu(cpu, "topology/physical_package_id", &package.to_string());
                self.cpu(cpu, "topology/core_id", &(core % shape.cores).to_string());
                self.cpu(cpu, "topology/core_cpus", &own);
                self.cpu(cpu, "topology/package_cpus", &whole);
                self.cache(cpu, 0, 1, "Data", "48K", &own);
                self.cache(cpu, 1, 1, "Instruction", "32K", &own);
                self.cache(cpu, 2, 2, "Unified", "2048K", &own);
                self.cache(cpu, 3, 3, "Unified", "32768K", &near);
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

    pub fn cache(&self, cpu: u32, index: u32, level: u32, kind: &str, size: &str, map: &str) {
        let files = [("level", level.to_string()), ("type", kind.to_string()), ("size", size.to_string())];
        for (file, text) in files.into_iter().chain([("shared_cpu_map", map.to_string())]) {
            self.cpu(cpu, &format!("cache/index{index}/{file}"), &text);
        }
    }
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

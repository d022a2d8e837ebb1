//! Trees that the tests make: sizes, shapes and hostility that no recording has.

use serde_json::{Value, json};

use super::{check_consistency, json as machine_of, run, set, text};
use crate::synthetic::{Shape, Tree, mask};

fn lines(tree: &Tree) -> usize {
    super::lines("--root", tree.root())
}

#[test]
fn two_thousand_cpus() {
    let tree = Tree::new();
    let shape =
        Shape { packages: 8, cores: 128, cores_per_l3: 16, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, 64);
    let saved = tree.root().join("saved.json");
    let args = [
        "--root",
        tree.root().to_str().expect("a path"),
        "--json",
        "--save",
        saved.to_str().expect("a path"),
    ];
    let output = run(&args);
    assert!(output.status.success());
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_consistency("2048 CPUs", &machine);
    let summary = &machine["summary"];
    let numbers =
        ["packages", "numa_nodes", "cores", "cpus"].map(|key| summary[key].as_u64().expect("a number"));
    assert_eq!(numbers, [8, 8, 1024, 2048]);
    assert_eq!(summary["threads_per_core"], json!([2]));
    let l3 = summary["l3"].as_array().expect("a list");
    assert_eq!(l3.len(), 64);
    assert_eq!(l3[63], json!({"cpus": "1008-1023,2032-2047", "size_bytes": 32 << 20}));
    let size = std::fs::metadata(&saved).expect("a file").len();
    assert!(size < 2_000_000, "{size} bytes for 2048 CPUs");
    assert!(lines(&tree) < 60);
}

#[test]
fn sparse_numbers_above_a_thousand() {
    let tree = Tree::new();
    let shape =
        Shape { packages: 2, cores: 12, cores_per_l3: 6, threads: 2, first: 5, step: 77, lists: false };
    tree.build(shape, 128);
    let machine = machine_of("--root", tree.root());
    check_consistency("sparse", &machine);
    assert_eq!(machine["summary"]["cpus"], 48);
    assert_eq!(machine["summary"]["cores"], 24);
    assert_eq!(set(&machine["cpus"]["online"]).last(), Some(5 + 77 * 47));
    assert_eq!(machine["summary"]["l3"].as_array().map(Vec::len), Some(4));
}

#[test]
fn one_cpu() {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 1, cores: 1, cores_per_l3: 1, threads: 1, first: 0, step: 1, lists: false },
        1,
    );
    let machine = machine_of("--root", tree.root());
    check_consistency("one CPU", &machine);
    assert_eq!(machine["summary"]["cpus"], 1);
    assert_eq!(machine["summary"]["threads_per_core"], json!([1]));
    assert!(text("--root", tree.root()).contains("1 core"));
}

#[test]
fn an_empty_root_is_unknown_and_says_so() {
    let tree = Tree::new();
    let root = tree.root().to_str().expect("a path");
    let output = run(&["--root", root, "--json"]);
    assert_eq!(output.status.code(), Some(3));
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (key, value) in machine["summary"].as_object().expect("an object") {
        assert_eq!(*value, Value::Null, "{key}");
    }
    let errors = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(errors.contains(root) && errors.contains("/proc and /sys"), "{errors}");
    assert_eq!(run(&["--cpuid", root]).status.code(), Some(3));
}

#[test]
fn mistakes_are_explained() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--root", "/nowhere/at/all"], 3, "cannot open /nowhere/at/all"),
        (&["--from", "/nowhere.json"], 3, "cannot open /nowhere.json"),
        (&["--from", "/etc/passwd"], 3, "give a file of `assay machine --save`"),
        (&["--save", "/nowhere/x.json"], 3, "cannot write /nowhere/x.json"),
        (&["--root", "a", "--from", "b"], 2, "cannot be used with"),
        (&["--frobnicate"], 2, "--frobnicate"),
    ];
    for (args, code, words) in cases {
        let output = run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {errors}");
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

#[test]
fn no_sys_at_all() {
    let tree = Tree::new();
    let cpu = |n: u32| {
        format!(
            "processor\t: {n}\nmodel name\t: X\nphysical id\t: 0\ncore id\t\t: {n}\ncpu cores\t: 2\nflags\t\t: fpu lm\n\n"
        )
    };
    tree.file("/proc/cpuinfo", &(cpu(0) + &cpu(1)));
    tree.file("/proc/meminfo", "MemTotal:       1024 kB");
    let machine = machine_of("--root", tree.root());
    let summary = &machine["summary"];
    assert_eq!(
        (&summary["cpus"], &summary["cores"], &summary["packages"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!((&summary["numa_nodes"], &summary["l3"]), (&Value::Null, &Value::Null));
    assert_eq!(summary["hypervisor"], "none");
    assert_eq!(machine["memory"]["total_bytes"], 1 << 20);
}

#[test]
fn hostile_strings_stay_strings() {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 1, cores: 2, cores_per_l3: 2, threads: 1, first: 0, step: 1, lists: false },
        1,
    );
    let evil = "\x1b]0;owned\x07\x1b[2J<script>alert('x')</script>\u{202e}";
    tree.file("/proc/sys/kernel/hostname", evil);
    tree.file("/proc/cpuinfo", &format!("processor : 0\nmodel name : {evil}\nflags : fpu {evil}"));
    tree.file("/proc/cmdline", &format!("quiet {evil} {}", "x".repeat(1_000_000)));
    tree.file("/proc/version", evil);
    tree.bytes("/sys/class/dmi/id/sys_vendor", b"\xff\xfe\x1b[31mACME\x00\xc3");
    tree.file("/sys/class/dmi/id/product_name", &"A".repeat(1_000_000));
    tree.file("/sys/class/dmi/id/board_name", &"B".repeat(3_000_000));
    tree.file("/sys/devices/system/cpu/vulnerabilities/evil", "Vulnerable\x1b[31m");
    tree.cpu(0, "cpufreq/scaling_governor", evil);
    tree.cpu(0, "cpuidle/state0/name", evil);
    let machine = machine_of("--root", tree.root());
    assert_eq!(machine["host"], evil);
    assert!(machine["dmi"]["vendor"].as_str().is_some_and(|vendor| vendor.contains("ACME")));
    assert_eq!(machine["dmi"]["board"], Value::Null);
    let shown = text("--root", tree.root());
    assert!(!shown.contains(['\x1b', '\x07', '\u{202e}', '\0']), "{shown}");
    assert!(shown.contains("\\x1b]0;owned\\x07"), "{shown}");
    assert!(shown.len() < 20_000 && shown.contains('…'));
}

#[test]
fn limits_of_cgroup_version_2() {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 1, cores: 4, cores_per_l3: 4, threads: 2, first: 0, step: 1, lists: false },
        1,
    );
    tree.file("/proc/self/cgroup", "0::/kubepods/pod1/main");
    tree.file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
    let group = "/sys/fs/cgroup/kubepods";
    tree.file(&format!("{group}/pod1/main/cpu.max"), "max 100000");
    tree.file(&format!("{group}/pod1/cpu.max"), "250000 100000");
    tree.file(&format!("{group}/cpu.max"), "400000 100000");
    tree.file(&format!("{group}/pod1/memory.max"), "536870912");
    tree.file(&format!("{group}/pod1/memory.current"), "1048576");
    tree.file(&format!("{group}/pod1/main/cpuset.cpus.effective"), "1-2,6");
    tree.file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1,6\n");
    let machine = machine_of("--root", tree.root());
    let limits = &machine["limits"];
    assert_eq!(limits["versions"], json!([2]));
    assert_eq!((&limits["cpu_quota"], &limits["memory_bytes"]), (&json!(2.5), &json!(536870912)));
    assert_eq!(limits["cpu_quota_at"], format!("{group}/pod1"));
    assert_eq!(machine["cpus"]["allowed"], "1,6");
    let shown = text("--root", tree.root());
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    // Two CPUs are less than a quota of two and a half.
    assert!(words.contains("2 of 8 CPUs (affinity)") && words.contains("CPUs 1,6 of 8 online"), "{shown}");
    assert!(words.contains(&format!("(limit of {group}/pod1, 1 MiB used)")), "{shown}");
    assert!(shown.contains("(0) (4)"), "{shown}");
}

#[test]
fn limits_of_a_hybrid_hierarchy() {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 1, cores: 4, cores_per_l3: 4, threads: 1, first: 0, step: 1, lists: false },
        1,
    );
    tree.file("/proc/self/cgroup", "4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/c\n0::/u");
    tree.file(
        "/proc/self/mountinfo",
        "1 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         2 1 0:2 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
         3 1 0:3 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         4 1 0:4 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    );
    tree.file("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "50000");
    tree.file("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000");
    tree.file("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712");
    tree.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824");
    tree.file("/sys/fs/cgroup/cpuset/s/cpuset.cpus", "2-3");
    tree.file("/sys/fs/cgroup/cpuset/s/cpuset.mems", "0");
    let machine = machine_of("--root", tree.root());
    let limits = &machine["limits"];
    assert_eq!(limits["versions"], json!([1, 2]));
    assert_eq!((&limits["cpu_quota"], &limits["memory_bytes"]), (&json!(0.5), &json!(1 << 30)));
    assert_eq!(machine["cpus"]["allowed"], "2-3");
}

#[test]
fn a_node_with_memory_only_and_one_with_its_cpus_off() {
    let tree = Tree::new();
    tree.build(
        Shape { packages: 2, cores: 2, cores_per_l3: 2, threads: 1, first: 0, step: 1, lists: false },
        1,
    );
    tree.cpu(2, "online", "0");
    tree.cpu(3, "online", "0");
    let node = "/sys/devices/system/node/node7";
    tree.file(&format!("{node}/cpumap"), "0");
    tree.file(&format!("{node}/meminfo"), "Node 7 MemTotal:       16777216 kB");
    let machine = machine_of("--root", tree.root());
    assert_eq!((&machine["summary"]["cpus"], &machine["summary"]["packages"]), (&json!(2), &json!(1)));
    assert_eq!(machine["summary"]["numa_nodes"], 3);
    assert_eq!(machine["cpus"]["offline"], "2-3");
    let shown = text("--root", tree.root());
    assert!(shown.contains("NUMA node 7: memory only, 16 GiB"), "{shown}");
    assert!(shown.contains("NUMA node 1: all CPUs offline, 64 GiB"), "{shown}");
}

/// What old kernels call packages of Arm, as a fixture shows it, and as servers did.
#[test]
fn clusters_of_arm_are_no_packages() {
    let folder = testkit::root().join("../shared/fixtures/faults/arm-clusters-as-packages/root");
    if !folder.is_dir() {
        return crate::host::skipped(
            "clusters_of_arm_are_no_packages",
            format!("{} is missing", folder.display()),
        );
    }
    let machine = machine_of("--root", &folder);
    check_consistency("two kinds of core", &machine);
    assert_eq!(machine["summary"]["packages"], 1);
    assert_eq!(machine["cpus"]["clusters"], json!(["0-1", "2-5"]));
    assert!(machine["remarks"].to_string().contains("clusters of one Arm chip"), "{}", machine["remarks"]);
    let shown = text("--root", &folder);
    assert!(shown.contains("1 package, ? NUMA nodes"), "{shown}");
    // Sixteen groups of four on four nodes: of two sockets, which no id reports.
    let tree = Tree::new();
    for cpu in 0..64u32 {
        let group = cpu / 4;
        tree.cpu(cpu, "topology/physical_package_id", &(group / 4 * 256 + group % 4).to_string());
        tree.cpu(cpu, "topology/core_siblings", &mask(&(group * 4..group * 4 + 4).collect::<Vec<_>>(), 2));
        tree.cpu(cpu, "topology/thread_siblings", &mask(&[cpu], 2));
    }
    for node in 0..4u32 {
        let cpus: Vec<u32> = (node * 16..node * 16 + 16).collect();
        tree.file(&format!("/sys/devices/system/node/node{node}/cpumap"), &mask(&cpus, 2));
    }
    tree.file("/proc/cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd08\n");
    tree.file("/proc/version", "Linux version 4.11.0-45.6.1.el7a.aarch64 (x@y) #1 SMP");
    let machine = machine_of("--root", tree.root());
    check_consistency("clusters on four nodes", &machine);
    assert_eq!(machine["summary"]["packages"], Value::Null);
    assert_eq!((&machine["summary"]["numa_nodes"], &machine["summary"]["cores"]), (&json!(4), &json!(64)));
    assert!(machine["remarks"].to_string().contains("the number of packages is unknown"));
}

#[test]
fn nodes_that_claim_the_same_cpus_are_one_memory() {
    for (line, words) in [("quiet", "firmware"), ("numa=fake=2", "numa=fake")] {
        let tree = Tree::new();
        tree.build(
            Shape { packages: 1, cores: 4, cores_per_l3: 4, threads: 1, first: 0, step: 1, lists: false },
            1,
        );
        let node = "/sys/devices/system/node/node1";
        tree.file(&format!("{node}/cpumap"), "f");
        tree.file(&format!("{node}/meminfo"), "Node 1 MemTotal:       16777216 kB");
        tree.file("/proc/cmdline", line);
        let machine = machine_of("--root", tree.root());
        check_consistency("one memory twice", &machine);
        assert_eq!(machine["summary"]["numa_nodes"], 1);
        assert_eq!(machine["nodes"][0]["total_bytes"], json!((64u64 + 16) << 30));
        let remarks = machine["remarks"].to_string();
        assert!(remarks.contains("list the same CPUs (0-3)") && remarks.contains(words), "{remarks}");
    }
}

#[test]
fn hybrid_cores() {
    let tree = Tree::new();
    // Two P-cores of two threads, four E-cores that share an L2.
    for (cpu, core) in [(0, 0b11), (1, 0b11), (2, 0b1100), (3, 0b1100)] {
        tree.cpu(cpu, "topology/core_cpus", &format!("{core:x}"));
        tree.cache(cpu, 0, 1, "Data", "48K", &format!("{core:x}"));
        tree.cache(cpu, 2, 2, "Unified", "1280K", &format!("{core:x}"));
    }
    for cpu in 4..8 {
        tree.cpu(cpu, "topology/core_cpus", &mask(&[cpu], 1));
        tree.cache(cpu, 0, 1, "Data", "32K", &mask(&[cpu], 1));
        tree.cache(cpu, 2, 2, "Unified", "2048K", "f0");
    }
    tree.file("/sys/devices/cpu_core/cpus", "0-3").file("/sys/devices/cpu_atom/cpus", "4-7");
    let machine = machine_of("--root", tree.root());
    check_consistency("hybrid", &machine);
    assert_eq!(machine["summary"]["cores"], 6);
    assert_eq!(machine["summary"]["threads_per_core"], json!([1, 2]));
    assert_eq!(machine["cpus"]["kinds"], json!({"P-core": "0-3", "E-core": "4-7"}));
    assert_eq!(machine["summary"]["packages"], Value::Null);
}

#[test]
fn memory_modules() {
    let tree = Tree::new();
    tree.memory_modules(&[("A1", 16384, 2933, 2400), ("A2", 0, 0, 0), ("B1", 16384, 2933, 2400)]);
    tree.file("/proc/meminfo", "MemTotal: 32000000 kB");
    let machine = machine_of("--root", tree.root());
    let slots: Vec<Value> =
        machine["dimms"].as_array().expect("a list").iter().map(|d| d["size_bytes"].clone()).collect();
    assert_eq!(slots, [json!(16u64 << 30), json!(0), json!(16u64 << 30)]);
    assert_eq!(machine["dimms"][0]["locator"], "A1");
    let shown = text("--root", tree.root());
    assert!(shown.contains("2 × 16 GiB at 2400 MT/s (rated 2933), 1 slot empty"), "{shown}");
}

#[test]
fn a_sosreport_with_links_of_its_own() {
    let tree = Tree::new();
    tree.file("/sosreport-db7/proc/version", "Linux version 5.14.0-1 (x@y) #1 SMP PREEMPT_DYNAMIC");
    tree.file("/sosreport-db7/sys/devices/virtual/dmi/id/sys_vendor", "ACME");
    let class = tree.root().join("sosreport-db7/sys/class/dmi");
    std::fs::create_dir_all(&class).expect("creates folders");
    std::os::unix::fs::symlink("/sys/devices/virtual/dmi/id", class.join("id")).expect("links");
    // A capture must never show the files of the host that reads it.
    std::os::unix::fs::symlink("/proc/meminfo", tree.root().join("sosreport-db7/proc/meminfo"))
        .expect("links");
    let machine = machine_of("--root", tree.root());
    assert_eq!(machine["kernel"]["release"], "5.14.0-1");
    assert_eq!(machine["dmi"]["vendor"], "ACME");
    assert_eq!(machine["memory"]["total_bytes"], Value::Null);
}

#[test]
fn this_machine_agrees_with_its_c_library() {
    let output = run(&["--json"]);
    assert!(output.status.success());
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_consistency("this machine", &machine);
    let online = std::process::Command::new("getconf").arg("_NPROCESSORS_ONLN").output();
    if let Ok(online) = online {
        let online: u64 = String::from_utf8_lossy(&online.stdout).trim().parse().expect("a number");
        assert_eq!(machine["summary"]["cpus"], online);
    }
    let usable = std::thread::available_parallelism().expect("a number").get();
    let allowed = set(&machine["cpus"]["allowed"]).len();
    assert!(usable <= allowed, "{usable} usable by the library, {allowed} by us");
}

//! Containers and sandboxes by trees that look like one, and what may be used by real limits.

use std::fmt::Display;
use std::process::Command;

use serde_json::{Value, json};

use super::{json as machine_of, shown, text};
use crate::host::{Group, skipped, works};
use crate::synthetic::Tree;

/// A host of eight CPUs and 8 GiB, to which a kind adds its signs.
fn host() -> Tree {
    let tree = Tree::new();
    tree.file("/sys/devices/system/cpu/online", "0-7");
    tree.file("/proc/meminfo", "MemTotal: 8388608 kB");
    tree.file("/proc/sys/kernel/osrelease", "6.12.9-amd64");
    tree.file("/proc/sys/kernel/hostname", "db7");
    tree.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm");
    tree.file("/proc/self/cgroup", "0::/user.slice");
    tree
}

/// Its container's own mounts, by an engine that keeps them in this folder.
fn mounts_from(tree: &Tree, folder: &str) {
    let line = |at: &str| format!("9 8 254:1 {folder}/{at} /etc/{at} rw - ext4 /dev/mapper/alice-vg rw\n");
    let lines: String = ["hosts", "hostname", "resolv.conf"].map(line).concat();
    tree.file("/proc/self/mountinfo", &lines);
}

/// What a kind, or what only looks like one, leaves in a tree.
type Signs = fn(&Tree);

const ID: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";

#[test]
fn every_kind_is_named_with_its_sign_and_what_it_hides() {
    let kinds: &[(&str, &str, Signs)] = &[
        ("kubernetes", "Kubernetes pod", |tree| {
            tree.file("/proc/self/cgroup", &format!("0::/kubepods/burstable/pod6b1f/{ID}"));
        }),
        ("docker", "Docker container", |tree| mounts_from(tree, &format!("/docker/containers/{ID}"))),
        ("podman", "Podman container", |tree| {
            tree.file("/run/.containerenv", &format!("engine=\"podman-4.9.3\"\nname=\"alice\"\nid=\"{ID}\""));
        }),
        ("lxc", "LXC container", |tree| {
            tree.file("/run/systemd/container", "lxc");
        }),
        ("systemd-nspawn", "systemd-nspawn container", |tree| {
            tree.file("/run/host/container-manager", "systemd-nspawn");
        }),
        ("container", "container", |tree| {
            std::fs::create_dir_all(tree.root().join("proc/self/ns")).expect("creates");
            let link = tree.root().join("proc/self/ns/pid");
            std::os::unix::fs::symlink("pid:[4026532188]", link).expect("a link");
        }),
        ("lxcfs", "lxcfs", |tree| {
            tree.file("/proc/self/mountinfo", "9 8 0:51 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw");
        }),
        ("gvisor", "gVisor sandbox", |tree| {
            let version = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";
            tree.file("/proc/version", version).file("/proc/sys/kernel/osrelease", "4.4.0");
        }),
        ("wsl1", "WSL 1", |tree| {
            tree.file("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft");
        }),
        ("wsl2", "WSL 2", |tree| {
            tree.file("/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2");
        }),
        ("user-mode-linux", "User-Mode Linux", |tree| {
            tree.file(
                "/proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: User Mode Linux\nhost\t\t: Linux alice 6.1",
            );
        }),
        ("firecracker", "Firecracker microVM", |tree| {
            let mut table = b"FACP\x14\x01\0\0\x06\xffFIRECKFCVMFADT".to_vec();
            table.extend([0; 250]);
            tree.bytes("/sys/firmware/acpi/tables/FACP", &table);
        }),
        ("nested-guest", "nested guest", |tree| {
            tree.file("/proc/sysinfo", "VM00 Control Program: KVM/Linux\nVM01 Control Program: z/VM 7.2");
        }),
        ("guest-with-virtualization", "guest that can run guests", |tree| {
            tree.file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor vmx");
        }),
    ];
    for (kind, name, signs) in kinds {
        let tree = host();
        signs(&tree);
        let machine = machine_of("--root", tree.root());
        let found = machine["enclosures"].as_array().expect("a list");
        assert_eq!(found.len(), 1, "{kind}: {found:#?}");
        assert_eq!((&found[0]["kind"], &found[0]["name"]), (&json!(kind), &json!(name)));
        let hidden = found[0]["hides"].as_array().expect("a list");
        assert!(!hidden.is_empty(), "{kind}");
        // No names and ids that identify users.
        let whole = machine.to_string();
        assert!(!whole.contains("alice") && !whole.contains(&ID[..12]), "{kind}: {whole}");
        let all = text("--root", tree.root());
        assert!(all.contains(&format!("inside        {name}, by /")), "{kind}:\n{all}");
        let first = shown("--root", tree.root(), &[]);
        let is_around = *kind != "guest-with-virtualization";
        assert_eq!(first.contains("sandbox "), is_around, "{kind}:\n{first}");
        let mut rows = first.lines().map(|line| line.trim_start().trim_start_matches("inside ").trim());
        assert_eq!(rows.any(|row| row == *name), is_around, "{kind}:\n{first}");
    }
}

#[test]
fn hosts_and_machines_made_from_images_are_no_containers() {
    let looks: &[(&str, Signs)] = &[
        ("a plain host", |_| ()),
        ("a host of Docker containers", |tree| {
            let line = format!("9 8 0:51 / /var/lib/docker/overlay2/{ID}/merged rw - overlay overlay rw");
            tree.file("/proc/self/mountinfo", &line);
            tree.file("/proc/self/cgroup", "0::/system.slice/docker.service");
        }),
        ("a host of LXD's", |tree| {
            tree.file("/proc/self/mountinfo", "9 8 0:51 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw");
            tree.file("/proc/self/cgroup", "0::/system.slice/snap.lxd.daemon.service");
        }),
        ("a machine whose disk was an image", |tree| {
            tree.file("/.dockerenv", "");
            tree.file("/proc/self/mountinfo", "1 0 254:0 / / rw - ext4 /dev/vda rw");
        }),
        ("a machine that is only called so", |tree| {
            tree.file("/proc/sys/kernel/hostname", "firecracker-gvisor-docker");
        }),
    ];
    for (what, look) in looks {
        let tree = host();
        look(&tree);
        let machine = machine_of("--root", tree.root());
        assert_eq!(machine["enclosures"], json!([]), "{what}");
        assert!(!shown("--root", tree.root(), &[]).contains("inside "), "{what}");
    }
}

/// One line, in its long and in its short form.
#[test]
fn what_may_be_used_is_one_line_with_the_tightest_of_each() {
    let tree = host();
    tree.file("/proc/sys/kernel/pid_max", "32768");
    // The first screen, and the facts behind it.
    let lines = || {
        let mut command = crate::assay();
        command.args(["machine", "--all", "--root"]).arg(tree.root()).env("COLUMNS", "300");
        let text = String::from_utf8(command.output().expect("assay runs").stdout).expect("UTF-8");
        let mut found = text.lines().filter_map(|line| line.trim_start().strip_prefix("may use"));
        let mut next = || found.next().expect("two lines").trim().to_string();
        (next(), next())
    };
    assert_eq!(
        lines(),
        (
            "all 8 CPUs; all 8 GiB; 32768 tasks".to_string(),
            "all 8 CPUs; all 8 GiB; 32768 tasks (kernel.pid_max)".to_string(),
        )
    );
    tree.file("/proc/self/cgroup", "0::/a/b");
    tree.file("/proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw");
    tree.file("/cg/a/b/cpu.max", "150000 100000");
    tree.file("/cg/a/memory.max", "2147483648");
    tree.file("/cg/a/b/pids.max", "4096");
    assert_eq!(
        lines(),
        (
            "1.5 of 8 CPUs (quota); 2 GiB of 8 GiB (limit); 4096 tasks".to_string(),
            "1.5 of 8 CPUs (quota of /cg/a/b, period 100 ms); 2 GiB of 8 GiB (limit of /cg/a); \
         4096 tasks (pids.max of /cg/a/b)"
                .to_string(),
        )
    );
    // A part of the hierarchy: a pod's limit above the container's own is not there to be read.
    tree.file("/proc/self/mountinfo", "31 23 0:28 /a /cg rw - cgroup2 cgroup2 rw");
    let (short, long) = lines();
    assert!(short.ends_with("; limits above unseen"), "{short}");
    assert!(long.ends_with("; limits of control groups above these cannot be seen"), "{long}");
}

/// (CPUs, what binds them, the control group) and (memory, tasks) as this host's limits are with
/// these programs around ours.
fn usable(around: impl Fn(&Command) -> Command) -> Value {
    let mut command = crate::assay();
    command.args(["machine", "--json"]);
    let output = around(&command).output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    machine["usable"].clone()
}

/// The command as the last words of another.
fn behind(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    outer
}

#[test]
fn a_real_affinity_mask_is_the_tightest() {
    let cpus = crate::host::allowed_cpus();
    let (first, all) = (cpus.first().expect("a CPU").to_string(), cpus.len());
    if all < 2 || !works("taskset", &["-c", &first, "true"]) {
        return skipped("a_real_affinity_mask_is_the_tightest", "taskset is not here, or one CPU only");
    }
    let told = usable(|command| behind(&["taskset", "-c", &first], command));
    assert_eq!(
        (&told["cpus"]["cpus"], &told["cpus"]["bound_by"]),
        (&json!(1.0), &json!("affinity")),
        "{told}"
    );
}

#[test]
fn real_control_groups_are_the_tightest() {
    let test = "real_control_groups_are_the_tightest";
    let first = crate::host::allowed_cpus().first().expect("a CPU").to_string();
    let bound = |part: &str, bound: &str, controller: &str, files: &[(&str, &dyn Display)], amount: Value| {
        let group = match Group::new(controller, files) {
            Ok(group) => group,
            Err(why) => return skipped(&format!("{test} ({controller})"), why),
        };
        let told = usable(|command| group.inside(command));
        let name = group.folder().file_name().expect("a name").to_string_lossy().into_owned();
        let found = &told[part];
        assert_eq!(found["bound_by"], bound, "{controller}: {told}");
        assert!(found["at"].as_str().is_some_and(|at| at.ends_with(&name)), "{controller}: {told}");
        let key =
            ["cpus", "bytes", "tasks"].into_iter().find(|key| found[key].is_number()).expect("a number");
        assert_eq!(found[key], amount, "{controller}: {told}");
    };
    let quota: [(&str, &dyn Display); 2] = [("cpu.cfs_period_us", &50_000), ("cpu.cfs_quota_us", &25_000)];
    bound("cpus", "quota", "cpu", &quota, json!(0.5));
    if crate::host::allowed_cpus().len() > 1 {
        let mems = Group::new("cpuset", &[]).map(|group| {
            let parent = group.folder().parent().expect("a parent").join("cpuset.mems");
            std::fs::read_to_string(parent).unwrap_or_default().trim().to_string()
        });
        let mems = mems.unwrap_or_default();
        bound("cpus", "cpuset", "cpuset", &[("cpuset.mems", &mems), ("cpuset.cpus", &first)], json!(1.0));
    }
    bound("memory", "memory-limit", "memory", &[("memory.limit_in_bytes", &(1 << 30))], json!(1 << 30));
    bound("tasks", "pids-max", "pids", &[("pids.max", &500)], json!(500));
}

/// What a PID namespace hides is reported, and what a cgroup namespace hides is not called "none".
#[test]
fn real_namespaces_are_told() {
    let unshare = ["unshare", "-f", "--mount-proc", "-m", "-p", "-u", "-C"];
    if !works(unshare[0], &[&unshare[1..], &["true"]].concat()) {
        return skipped("real_namespaces_are_told", "unshare is not here, or may not make namespaces");
    }
    let mut command = crate::assay();
    command.args(["machine", "--json"]);
    let output = behind(&unshare, &command).output().expect("assay runs");
    let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(machine["limits"]["groups_above"], true, "{}", machine["limits"]);
    let kinds: Vec<&Value> =
        machine["enclosures"].as_array().expect("a list").iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds.first(), Some(&&json!("container")), "{kinds:?}");
    let mut quiet = crate::assay();
    quiet.arg("machine");
    let output = behind(&unshare, &quiet).output().expect("assay runs");
    let first = String::from_utf8_lossy(&output.stdout);
    assert!(first.contains("limits above unseen") && !first.contains("o CPU quota"), "{first}");
}

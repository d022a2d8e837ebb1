//! What the reader takes: patterns, sets in two forms, trees one folder down, dumps of
//! cpuid.

use std::fs;

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
    fs::write(path, text).expect("writes");
}

#[test]
fn patterns() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in ["/a/n1/x/y", "/a/n10/x/y", "/a/nope/x/y", "/a/m2/z/y"] {
        write(folder.path(), path, "");
    }
    let tree = Tree::open(folder.path()).expect("opens");
    assert_eq!(expand(&tree, "/a/n#/x/{y,q}"), ["/a/n1/x/y", "/a/n1/x/q", "/a/n10/x/y", "/a/n10/x/q"]);
    assert_eq!(expand(&tree, "/a/m2/*/y"), ["/a/m2/z/y"]);
    assert_eq!(expand(&tree, "/b/*/{y}"), Vec::<String>::new());
    assert_eq!(expand(&tree, "/b/c"), ["/b/c"]);
}

#[test]
fn a_set_is_stored_once_unless_its_two_forms_differ() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cpu = |n: u32, file: &str| format!("{CPUS}/cpu{n}/topology/{file}");
    write(folder.path(), &cpu(0, "core_cpus"), "00000000,00000003\n");
    write(folder.path(), &cpu(0, "core_cpus_list"), "0-1\n");
    write(folder.path(), &cpu(0, "thread_siblings"), "3\n");
    write(folder.path(), &cpu(1, "core_cpus"), "3\n");
    write(folder.path(), &cpu(1, "core_cpus_list"), "0-7\n");
    // An older name that says something else.
    write(folder.path(), &cpu(2, "core_cpus_list"), "2\n");
    write(folder.path(), &cpu(2, "thread_siblings"), "c\n");
    write(folder.path(), &cpu(2, "thread_siblings_list"), "2-3\n");
    let snapshot = read(folder.path());
    let names: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
            "/sys/devices/system/cpu/cpu1/topology/core_cpus",
            "/sys/devices/system/cpu/cpu1/topology/core_cpus_list",
            "/sys/devices/system/cpu/cpu2/topology/core_cpus_list",
            "/sys/devices/system/cpu/cpu2/topology/thread_siblings",
            "probe:folders/cpu",
        ]
    );
}

#[test]
fn a_tree_one_folder_down_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "/sosreport-x/proc/version", "Linux version 5.0");
    write(folder.path(), "/sosreport-x/sos_commands/x", "");
    assert_eq!(read(folder.path()).text("/proc/version"), Some("Linux version 5.0"));
    write(folder.path(), "/other/sys/x", "");
    assert_eq!(read(folder.path()), Snapshot::default());
    assert_eq!(read(&folder.path().join("none")), Snapshot::default());
}

#[test]
fn signs_of_containers_without_the_names_in_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    write(root, "/.dockerenv", "SECRET=alice\n");
    write(root, "/run/.containerenv", "engine=\"podman-4.9\"\nname=\"alice\"\nid=\"0a1b\"\n");
    write(root, "/dev/kvm", "");
    write(
        root,
        "/sys/firmware/acpi/tables/FACP",
        &format!("FACP\u{14}\u{1}..\u{6}fFIRECKFCVMFADT{}", "s".repeat(99)),
    );
    fs::create_dir_all(root.join("proc/self/ns")).expect("creates");
    for (kind, target) in [("pid", "pid:[4026532188]"), ("cgroup", "/home/alice")] {
        std::os::unix::fs::symlink(target, root.join("proc/self/ns").join(kind)).expect("a link");
    }
    let snapshot = read(root);
    let names: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
    let paths = ["/.dockerenv", "/dev/kvm", "/proc/self/ns/pid", "/run/.containerenv"];
    assert_eq!(names, [&paths[..], &["/sys/firmware/acpi/tables/FACP"]].concat());
    assert_eq!(snapshot.text("/.dockerenv"), Some(""));
    assert_eq!(snapshot.text("/run/.containerenv"), Some("engine=\"podman-4.9\""));
    assert_eq!(snapshot.text("/proc/self/ns/pid"), Some("pid:[4026532188]"));
    let header = snapshot.lossy("/sys/firmware/acpi/tables/FACP").expect("a header");
    assert!(header.ends_with("FIRECKFCVMFADT") && header.len() == ACPI_OEM, "{header:?}");
}

#[test]
fn cpuid_dumps() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "/pu0", "1 0 0 0 0 => 1 2 3 4");
    write(folder.path(), "/pu10", "x");
    write(folder.path(), "/README", "no");
    write(folder.path(), "/pux", "no");
    let snapshot = read_cpuid(folder.path());
    let names: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
    assert_eq!(names, ["probe:cpuid/0", "probe:cpuid/10"]);
}

//! This host, and trees of hosts that no one has here.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

#[test]
fn what_is_no_device_is_refused() {
    let refused = |path: &str| node(Path::new(path)).expect_err("refused");
    assert!(refused("/").contains("not a block device"));
    assert!(refused("/dev/null").contains("not a block device"));
    assert!(refused("/nowhere/at/all").contains("cannot access"));
}

#[test]
fn lines_of_a_mount_table() {
    let table =
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 1 0:40 /@ /a\\040b rw shared:1 - btrfs /dev/sdb rw\nx\n";
    let found = mounted(table);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1], ("0:40".to_string(), "/dev/sdb".to_string(), "/a b".to_string()));
}

const NOTHING: KernelQueries = KernelQueries { backing: &|_| None, claimed: &|_| false };

#[test]
fn a_mounted_device_has_a_user() {
    // Whatever this host runs on, if known.
    let table = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let root = mounted(&table).into_iter().find(|(_, source, _)| node(Path::new(source)).is_ok());
    if let Some((_, source, point)) = root {
        let node = node(Path::new(&source)).expect("a device");
        let users = users(Path::new("/"), &node.name, &NOTHING);
        assert!(users.iter().any(|why| why.contains(&point)), "{node:?}: {users:?}");
    }
}

/// A tree with what /sys and /proc report about block devices.
struct Tree {
    folder: TempDir,
    mounts: String,
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("sys/class/block")).expect("made");
        fs::create_dir_all(folder.path().join("proc/self")).expect("made");
        Tree { folder, mounts: String::new() }
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn disk(&self, name: &str, number: &str, told: &[(&str, &str)]) {
        self.device(name, name, number, told);
    }

    fn part(&self, disk: &str, name: &str, number: &str, which: &str) {
        self.device(&format!("{disk}/{name}"), name, number, &[("partition", which)]);
    }

    fn device(&self, place: &str, name: &str, number: &str, told: &[(&str, &str)]) {
        for (file, text) in [("dev", number), ("size", "1000")].iter().chain(told) {
            self.file(&format!("sys/devices/{place}/{file}"), &format!("{text}\n"));
        }
        let link = self.folder.path().join("sys/class/block").join(name);
        symlink(format!("../../devices/{place}"), link).expect("a link");
    }

    /// One lies on the other, as a mapped device or an array does.
    fn lies(&self, upper: &str, lower: &str) {
        self.file(&format!("sys/class/block/{upper}/slaves/{lower}"), "");
        self.file(&format!("sys/class/block/{lower}/holders/{upper}"), "");
    }

    fn mount(&mut self, number: &str, source: &str) {
        self.mounts += &format!("27 1 {number} / /mnt rw - ext4 {source} rw\n");
    }

    fn users_asked(&self, name: &str, asked: &KernelQueries) -> Vec<String> {
        self.file("proc/self/mountinfo", &self.mounts);
        users(self.folder.path(), name, asked)
    }

    fn users(&self, name: &str) -> Vec<String> {
        self.users_asked(name, &NOTHING)
    }

    /// Whose users are these, and no others.
    fn only(&self, name: &str, what: &[&str]) {
        let users = self.users(name);
        assert_eq!(users.len(), what.len(), "{name}: {users:?}");
        for (user, words) in users.iter().zip(what) {
            assert!(user.contains(words), "{name}: {users:?}");
        }
    }
}

#[test]
fn partitions_share_with_their_disk_and_not_with_each_other() {
    let mut tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    tree.part("sda", "sda1", "8:1", "1");
    tree.part("sda", "sda2", "8:2", "2");
    tree.only("sda", &[]);
    tree.mount("8:1", "/dev/sda1");
    tree.only("sda", &["sda1, a partition of it, is mounted: /dev/sda1 on /mnt"]);
    tree.only("sda1", &["it is mounted"]);
    tree.only("sda2", &[]);
    tree.mount("8:0", "/dev/sda");
    tree.only("sda2", &["sda, which it is a part of, is mounted"]);
}

#[test]
fn one_disk_by_two_ways_is_one() {
    for (file, value, other, size) in [
        ("device/wwid", "naa.6001405abc", "naa.6001405abd", "1000"),
        ("wwid", "eui.0025385b71b1", "eui.0025385b71b2", "1000"),
        ("nguid", "0025385b-71b1-0000-0000-000000000001", "0025385b-71b1-0000-0000-000000000002", "1000"),
        ("uuid", "b8a5e1a1-77aa-4d2f-a32e-000000000001", "b8a5e1a1-77aa-4d2f-a32e-000000000002", "1000"),
        ("backend", "disk-one", "disk-two", "1000"),
        ("serial", "serial-one", "serial-two", "1000"),
    ] {
        let mut tree = Tree::new();
        tree.disk("one", "8:0", &[(file, value)]);
        tree.part("one", "one1", "8:1", "1");
        tree.part("one", "one2", "8:2", "2");
        tree.disk("two", "8:16", &[(file, value), ("size", size)]);
        tree.part("two", "two1", "8:17", "1");
        tree.part("two", "two2", "8:18", "2");
        tree.disk("else", "8:32", &[(file, other)]);
        tree.mount("8:1", "/dev/one1");
        for device in ["two", "two1"] {
            tree.only(device, &["one1, which is the same disk ("]);
        }
        tree.only("two2", &[]);
        tree.only("else", &[]);
        tree.lies("dm-0", "one");
        tree.only("two2", &["one, which is the same disk ("]);
        let asked = KernelQueries { claimed: &|name| name == "one2", ..NOTHING };
        let users = tree.users_asked("two2", &asked);
        assert!(
            users.iter().any(|user| user.contains("one2") && user.contains("exclusively in another process")),
            "{users:?}"
        );
    }
}

#[test]
fn what_has_no_identity_is_like_nothing_else() {
    let mut tree = Tree::new();
    let nothing =
        [("wwid", ""), ("nguid", "00000000-0000-0000-0000-000000000000"), ("serial", "0"), ("eui", "00 00")];
    tree.disk("one", "8:0", &nothing);
    tree.disk("two", "8:16", &nothing);
    tree.mount("8:0", "/dev/one");
    tree.only("two", &[]);
    // Two controllers' namespaces have one serial of the controller, and what a host's owner
    // chose may be chosen twice.
    tree.disk("three", "8:32", &[("device/serial", "controller"), ("serial", "mine"), ("size", "7")]);
    tree.disk("four", "8:48", &[("device/serial", "controller"), ("serial", "mine"), ("size", "8")]);
    tree.mount("8:32", "/dev/three");
    tree.only("four", &[]);
}

#[test]
fn what_lies_on_it_and_what_it_lies_on() {
    let mut tree = Tree::new();
    let ways = [("device/wwid", "naa.6001405abc")];
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        tree.disk(name, number, &ways);
    }
    for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2")] {
        tree.disk(name, number, &[]);
    }
    // Two ways of three as one, and two volumes on it.
    for (upper, lower) in [("dm-0", "sda"), ("dm-0", "sdb"), ("dm-1", "dm-0"), ("dm-2", "dm-0")] {
        tree.lies(upper, lower);
    }
    tree.only("dm-1", &[]);
    tree.only(
        "sda",
        &["it is part of dm-0", "sdb, which is the same disk (wwid naa.6001405abc), is part of dm-0"],
    );
    let by_the_third = ["sda, which is the same disk", "sdb, which is the same disk"];
    tree.only("sdc", &by_the_third);
    // Volumes lie beside each other.
    tree.mount("253:2", "/dev/mapper/two");
    tree.only("dm-1", &[]);
    tree.only("dm-2", &["it is mounted"]);
    // The third way is below both.
    tree.mount("8:32", "/dev/sdc");
    for volume in ["dm-0", "dm-1"] {
        let users = tree.users(volume);
        assert!(
            users.iter().any(|user| user.starts_with("sdc, which is the same disk")),
            "{volume}: {users:?}"
        );
    }
}

#[test]
fn arrays_and_caches_are_users() {
    let tree = Tree::new();
    tree.disk("sda", "8:0", &[]);
    tree.part("sda", "sda1", "8:1", "1");
    tree.disk("md0", "9:0", &[]);
    tree.lies("md0", "sda1");
    tree.only("sda", &["sda1, a partition of it, is part of md0"]);
    tree.only("md0", &[]);
    tree.disk("sdb", "8:16", &[("bcache/state", "clean")]);
    tree.only("sdb", &["it belongs to a bcache"]);
}

#[test]
fn loop_devices_share_a_file_where_they_overlap() {
    let mut tree = Tree::new();
    tree.file("images/one", "");
    tree.file("images/two", "");
    fs::hard_link(tree.folder.path().join("images/one"), tree.folder.path().join("images/again"))
        .expect("a link");
    let on = |file: &'static str| [("loop/backing_file", file)];
    tree.disk("loop0", "7:0", &on("/images/one"));
    tree.disk("loop1", "7:1", &on("/images/again"));
    tree.disk("loop2", "7:2", &on("/images/two"));
    tree.part("loop0", "loop0p1", "259:0", "1");
    let far = [("loop/backing_file", "/images/one"), ("loop/offset", "4096"), ("loop/sizelimit", "4096")];
    let near = [("loop/backing_file", "/images/two"), ("loop/offset", "0"), ("loop/sizelimit", "4096")];
    let beside = [("loop/backing_file", "/images/two"), ("loop/offset", "4096"), ("loop/sizelimit", "0")];
    for (name, number, told) in [("loop3", "7:3", far), ("loop4", "7:4", near), ("loop5", "7:5", beside)] {
        tree.disk(name, number, &told);
    }
    tree.mount("7:0", "/dev/loop0");
    for sharing in ["loop1", "loop3"] {
        tree.only(sharing, &["loop0, which lies on the same file (/images/"]);
    }
    tree.only("loop2", &[]);
    tree.mount("7:4", "/dev/loop4");
    tree.only("loop2", &["loop4, which lies on the same file (/images/two), is mounted"]);
    tree.only("loop5", &[]);
    // What the kernel says about itself counts for more than a path.
    let all = |name: &str| match name {
        "loop5" | "loop2" => Some(Backing { file: [1, 2], ..Backing::default() }),
        _ => Some(Backing { file: [1, 3], ..Backing::default() }),
    };
    let users = tree.users_asked("loop5", &KernelQueries { backing: &all, ..NOTHING });
    assert_eq!(users, Vec::<String>::new());
    // Swap on the file itself, and a filesystem mounted from it.
    tree.file("proc/swaps", "Filename Type Size Used Priority\n/images/two file 4 0 -1\n");
    tree.mount("0:77", "/images/two");
    let users = tree.users("loop5");
    for words in ["is swap: /images/two", "is mounted: /images/two"] {
        assert!(users.iter().any(|user| user.contains(words)), "{users:?}");
    }
}

#[test]
fn loop_devices_on_devices() {
    let mut tree = Tree::new();
    let device = rustix::fs::makedev(8, 0);
    tree.disk("sda", "8:0", &[]);
    tree.disk("loop0", "7:0", &[("loop/backing_file", "/dev/sda")]);
    tree.disk("loop1", "7:1", &[("loop/backing_file", "/dev/sda")]);
    tree.disk("loop2", "7:2", &[("loop/backing_file", "/dev/sda")]);
    let backing = |name: &str| {
        let offset = if name == "loop2" { 4096 } else { 0 };
        Some(Backing { file: [5, 6], special: device, offset, limit: 4096 })
    };
    let asked = KernelQueries { backing: &backing, ..NOTHING };
    let users = tree.users_asked("sda", &asked);
    assert_eq!(users, ["it carries loop0", "it carries loop1", "it carries loop2"]);
    assert_eq!(tree.users_asked("loop0", &asked), Vec::<String>::new());
    tree.mount("7:1", "/dev/loop1");
    assert_eq!(tree.users_asked("loop2", &asked), Vec::<String>::new());
    let users = tree.users_asked("loop0", &asked);
    assert_eq!(users.len(), 1, "{users:?}");
    assert!(users[0].starts_with("loop1, which lies on the same file (/dev/sda), is mounted"), "{users:?}");
    tree.mount("8:0", "/dev/sda");
    let users = tree.users_asked("loop2", &asked);
    assert_eq!(users, ["sda, which it lies on, is mounted: /dev/sda on /mnt"]);
}

#[test]
fn a_loop_device_on_a_disk_lies_on_its_partitions() {
    let mut tree = Tree::new();
    let device = rustix::fs::makedev(8, 0);
    tree.disk("sda", "8:0", &[]);
    // 1000 sectors each, one after the other.
    for (part, number, start) in [("sda1", "8:1", "0"), ("sda2", "8:2", "1000")] {
        tree.part("sda", part, number, &part[3..]);
        tree.file(&format!("sys/devices/sda/{part}/start"), start);
    }
    tree.disk("dm-0", "253:0", &[]);
    for name in ["loop0", "loop1", "loop2", "loop3"] {
        tree.disk(name, &format!("7:{}", &name[4..]), &[("loop/backing_file", "/dev/sda")]);
    }
    // All of the disk, the first partition, the second one, and a device on the first.
    let backing = |name: &str| {
        let (special, offset, limit) = match name {
            "loop0" => (device, 0, 0),
            "loop1" => (device, 0, 512_000),
            "loop2" => (device, 512_000, 512_000),
            _ => (rustix::fs::makedev(7, 0), 0, 0),
        };
        name.starts_with("loop").then_some(Backing { file: [5, 6], special, offset, limit })
    };
    let asked = KernelQueries { backing: &backing, ..NOTHING };
    tree.mount("8:1", "/dev/sda1");
    let mounted = "sda1, a partition of sda, which it lies on, is mounted: /dev/sda1 on /mnt";
    for (name, is_used) in [("loop0", true), ("loop1", true), ("loop2", false), ("loop3", true)] {
        let users = tree.users_asked(name, &asked);
        assert_eq!(users.iter().any(|user| user == mounted), is_used, "{name}: {users:?}");
    }
    // What lies on all of it shares it with whatever else does.
    tree.lies("dm-0", "sda");
    let held = |users: Vec<String>| users.iter().any(|user| user.contains("is part of dm-0"));
    assert!(held(tree.users_asked("loop0", &asked)) && held(tree.users_asked("loop3", &asked)));
}

#[test]
fn who_has_a_file_open_or_mapped_is_named() {
    let tree = Tree::new();
    tree.file("images/one", "some bytes");
    tree.disk("loop0", "7:0", &[("loop/backing_file", "/images/one")]);
    let image = tree.folder.path().join("images/one");
    let meta = fs::metadata(&image).expect("a file");
    tree.file("proc/41/comm", "opener\n");
    fs::create_dir_all(tree.folder.path().join("proc/41/fd")).expect("made");
    symlink(&image, tree.folder.path().join("proc/41/fd/3")).expect("a link");
    tree.file("proc/42/comm", "mapper\n");
    let line = format!("7f00-7f01 rw-s 00000000 {} {} /images/one\n", hexadecimal(meta.dev()), meta.ino());
    tree.file("proc/42/maps", &format!("7e00-7e01 rw-p 00000000 00:00 0 [heap]\n{line}"));
    tree.only("loop0", &["it is open in process 41 (opener)", "it is open in process 42 (mapper)"]);
    // The asking process has it open itself.
    let own = tree.folder.path().join("proc/self");
    fs::remove_dir_all(&own).expect("removed");
    symlink("41", own).expect("a link");
    tree.only("loop0", &["it is open in process 42 (mapper)"]);
}

//! Disks of made-up trees, from the reader to what the parser makes of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use machine::Machine;
use machine::disk::*;
use model::{Entry, Snapshot};

use super as reader;

/// A tree with a mount table.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(mounts: &str) -> Tree {
        let tree = Tree(tempfile::tempdir().expect("a folder"));
        tree.file("/proc/self/mountinfo", mounts);
        for folder in ["/sys/dev/block", "/sys/class/block", "/sys/block"] {
            fs::create_dir_all(tree.path(folder)).expect("a folder");
        }
        tree
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("written");
    }

    /// A device below /sys/devices, with its links and these files in it.
    fn block(&self, place: &str, number: &str, files: &[(&str, &str)]) {
        let name = place.rsplit('/').next().expect("a name");
        self.file(&format!("/sys/devices/{place}/dev"), &format!("{number}\n"));
        for (file, text) in files {
            self.file(&format!("/sys/devices/{place}/{file}"), &format!("{text}\n"));
        }
        let link =
            |at: String, up: &str| symlink(format!("{up}devices/{place}"), self.path(&at)).expect("a link");
        link(format!("/sys/dev/block/{number}"), "../../");
        link(format!("/sys/class/block/{name}"), "../../");
        if !files.iter().any(|(file, _)| *file == "partition") {
            link(format!("/sys/block/{name}"), "../");
        }
    }

    fn below(&self, place: &str, names: &[&str]) {
        names.iter().for_each(|name| self.file(&format!("/sys/devices/{place}/slaves/{name}/x"), ""));
    }

    fn disk(&self, directory: &str) -> Disk {
        let mut whole = crate::read(self.0.path());
        let subject = reader::Subject::Directory { path: directory, number: None };
        reader::store(&mut whole, reader::describe(self.0.path(), &subject));
        Machine::from(&whole).disk.expect("described")
    }
}

const NVME: &str = "pci0000:00/0000:00:1d.0/0000:3d:00.0/nvme/nvme0/nvme0n1";
const SATA: &str = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";

fn nvme(tree: &Tree) {
    tree.file("/sys/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0/current_link_speed", "8.0 GT/s PCIe");
    tree.file("/sys/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0/current_link_width", "4");
    tree.file("/sys/module/nvme/parameters/poll_queues", "2");
    fs::create_dir_all(tree.path("/sys/bus/pci/drivers/nvme")).expect("a folder");
    tree.block(
        NVME,
        "259:0",
        &[
            ("size", "1000215216"),
            ("ro", "0"),
            ("queue/rotational", "0"),
            ("queue/scheduler", "[none] mq-deadline"),
            ("queue/nr_requests", "1023"),
            ("queue/write_cache", "write back"),
            ("queue/fua", "1"),
            ("queue/discard_max_bytes", "2199023255040"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/io_poll", "1"),
            ("device/model", "Example 980 PRO"),
        ],
    );
    symlink(
        "../../../../../../../../bus/pci/drivers/nvme",
        tree.path(&format!("/sys/devices/{NVME}/device/driver")),
    )
    .expect("a link");
    tree.block(&format!("{NVME}/nvme0n1p3"), "259:3", &[("partition", "3"), ("size", "900000000")]);
}

fn lvm(tree: &Tree, uuid: &str, discards: &str) {
    tree.block(
        "virtual/block/dm-0",
        "253:0",
        &[
            ("size", "800000000"),
            ("dm/name", "vg-data"),
            ("dm/uuid", uuid),
            ("queue/discard_max_bytes", discards),
            ("queue/rotational", "0"),
        ],
    );
    tree.below("virtual/block/dm-0", &["nvme0n1p3"]);
}

const ON_LVM: &str = "22 1 253:0 / / rw,noatime shared:1 - xfs /dev/mapper/vg-data rw,attr2,noquota\n\
                      30 22 0:30 / /tmp rw - tmpfs tmpfs rw,size=1g\n";

#[test]
fn nvme_below_a_partition_and_lvm() {
    let tree = Tree::new(ON_LVM);
    nvme(&tree);
    lvm(&tree, "LVM-abcdefghijkl", "1048576");
    tree.file("/etc/systemd/system/timers.target.wants/fstrim.timer", "");
    let disk = tree.disk("/var/lib/data");
    let names: Vec<&str> = disk.stack.iter().map(|block| block.name.as_str()).collect();
    assert_eq!(names, ["dm-0", "nvme0n1p3", "nvme0n1"]);
    let kinds: Vec<Kind> = disk.stack.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [Kind::Lvm, Kind::Partition, Kind::Nvme]);
    assert_eq!((disk.filesystem.as_deref(), disk.mount_point.as_deref()), (Some("xfs"), Some("/")));
    assert!(disk.has_option("noatime") && disk.has_option("attr2") && !disk.has_option("discard"));
    let leaf = disk.only().expect("one disk");
    assert_eq!(leaf.model.as_deref(), Some("Example 980 PRO"));
    assert_eq!(
        (leaf.scheduler.as_deref(), leaf.nr_requests, leaf.poll_queues),
        (Some("none"), Some(1023), Some(2))
    );
    assert_eq!(
        (leaf.size_bytes, leaf.rotational, leaf.fua),
        (Some(1_000_215_216 * 512), Some(false), Some(true))
    );
    assert_eq!((leaf.driver.as_deref(), leaf.io_poll), (Some("nvme"), Some(true)));
    assert_eq!((disk.is_virtual(), disk.is_solid(), disk.is_memory()), (Some(false), Some(true), false));
    let link = disk.link.as_ref().expect("straight down to one disk");
    assert!(link.name.contains("8 GT/s × 4") && (link.gb_per_s - 3.938).abs() < 0.001, "{link:?}");
    assert_eq!(disk.trim_timer.as_deref(), Some("/etc/systemd/system/timers.target.wants/fstrim.timer"));
    assert_eq!(disk.name(), "xfs on /dev/dm-0");
    // The volume's own identity is of no use.
    assert!(
        !reader::of_tree(crate::tree::Tree::open(tree.0.path()).expect("opens"))
            .expect("a mount table")
            .contains("abcdefghijkl")
    );
}

#[test]
fn dm_crypt_by_the_beginning_of_its_name() {
    let tree = Tree::new(ON_LVM);
    nvme(&tree);
    lvm(&tree, "CRYPT-LUKS2-0123-data", "0");
    let disk = tree.disk("/");
    assert_eq!((disk.stack[0].kind, disk.stack[0].discard_max_bytes), (Kind::Crypt, Some(0)));
}

#[test]
fn a_mirror_of_two_disks_that_turn() {
    let tree = Tree::new("22 1 9:1 / /srv rw - ext4 /dev/md1 rw\n");
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        let place = SATA.replace("sda", name);
        tree.block(
            &place,
            number,
            &[("queue/rotational", "1"), ("device/vendor", "ATA"), ("device/model", "Example 4TB")],
        );
        tree.block(
            &format!("{place}/{name}1"),
            &number.replace(":0", ":1").replace("16", "17"),
            &[("partition", "1")],
        );
    }
    tree.block(
        "virtual/block/md1",
        "9:1",
        &[
            ("md/level", "raid1"),
            ("md/raid_disks", "2"),
            ("md/degraded", "1"),
            ("md/array_state", "active"),
            ("md/sync_action", "recover"),
        ],
    );
    tree.below("virtual/block/md1", &["sda1", "sdb1"]);
    let disk = tree.disk("/srv/files");
    let names: Vec<&str> = disk.stack.iter().map(|block| block.name.as_str()).collect();
    assert_eq!(names, ["md1", "sda1", "sda", "sdb1", "sdb"]);
    assert_eq!(disk.stack[0].raid.as_deref(), Some("raid1, 2 disks, active, 1 of them missing, recover"));
    assert_eq!((disk.stack[0].kind, disk.leaves().count(), disk.only().is_none()), (Kind::Raid, 2, true));
    assert_eq!(disk.stack[2].model.as_deref(), Some("Example 4TB"));
    assert_eq!((disk.is_solid(), disk.is_virtual(), &disk.link), (Some(false), Some(false), &None));
    assert_eq!(disk.stack[2].link.as_ref().map(|link| link.name.as_str()), Some("SATA"));
}

#[test]
fn a_sata_disk_and_what_it_is_worth() {
    let tree = Tree::new("22 1 8:0 / / rw - ext4 /dev/sda rw\n");
    tree.block(SATA, "8:0", &[("queue/rotational", "1"), ("queue/scheduler", "mq-deadline [bfq]")]);
    let disk = tree.disk("/");
    assert_eq!(disk.link.as_ref().map(|link| link.gb_per_s), Some(0.6));
    assert_eq!(disk.stack[0].scheduler.as_deref(), Some("bfq"));
    // One that stores something else than what it is given shows no link.
    let other = Tree::new("22 1 8:0 / / rw - btrfs /dev/sda rw,compress=zstd:1\n");
    other.block(SATA, "8:0", &[]);
    assert_eq!((other.disk("/").link, other.disk("/").has_option("compress")), (None, true));
}

#[test]
fn virtio_is_played() {
    let tree = Tree::new("22 1 254:1 / / rw - ext4 /dev/vda1 rw\n");
    let place = "pci0000:00/0000:00:02.0/virtio1/block/vda";
    tree.block(place, "254:0", &[("queue/rotational", "1"), ("device/vendor", "0x1af4")]);
    tree.block(&format!("{place}/vda1"), "254:1", &[("partition", "1")]);
    let disk = tree.disk("/");
    assert_eq!((disk.is_virtual(), disk.is_solid(), disk.link.is_none()), (Some(true), None, true));
    assert_eq!(disk.stack[1].kind, Kind::Virtio);
}

#[test]
fn a_loop_device_down_to_the_disk_of_its_file() {
    let tree = Tree::new(
        "22 1 8:0 / / rw - ext4 /dev/sda rw\n23 22 7:3 / /mnt/small\\040one rw - ext4 /dev/loop3 rw\n",
    );
    tree.block(SATA, "8:0", &[("queue/rotational", "0")]);
    tree.block(
        "virtual/block/loop3",
        "7:3",
        &[("loop/backing_file", "/srv/image"), ("queue/rotational", "0")],
    );
    let disk = tree.disk("/mnt/small one/a");
    let names: Vec<&str> = disk.stack.iter().map(|block| block.name.as_str()).collect();
    assert_eq!((names, disk.mount_point.as_deref()), (vec!["loop3", "sda"], Some("/mnt/small one")));
    assert_eq!(disk.stack[0].backing_file.as_deref(), Some("/srv/image"));
    assert_eq!((disk.is_virtual(), disk.link.is_none(), disk.only().is_some()), (Some(true), true, true));
}

#[test]
fn an_overlay_down_to_its_upper_folder_and_a_container_s_not() {
    let overlay =
        "30 22 0:40 / / rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/var/up,workdir=/var/work\n";
    let tree = Tree::new(&format!("{overlay}22 1 8:0 / /var rw - ext4 /dev/sda rw\n"));
    tree.block(SATA, "8:0", &[]);
    let disk = tree.disk("/home");
    assert_eq!((disk.filesystem.as_deref(), disk.stack.len()), (Some("overlay"), 1));
    assert!(!disk.options.iter().any(|option| option.starts_with("lowerdir")), "{:?}", disk.options);
    // Where only the overlay itself is mounted nothing below it is reported, and nothing turns in
    // circles.
    let disk = Tree::new(overlay).disk("/home");
    assert_eq!((disk.stack.len(), disk.is_virtual(), disk.is_solid()), (0, None, None));
}

#[test]
fn memory_has_no_devices() {
    let disk = Tree::new("30 22 0:30 / /tmp rw - tmpfs tmpfs rw,size=1g\n").disk("/tmp/x");
    assert!(disk.is_memory() && disk.stack.is_empty() && disk.name() == "tmpfs");
}

#[test]
fn btrfs_on_several_devices() {
    let tree = Tree::new("30 1 0:40 /@ / rw - btrfs /dev/sda rw\n");
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        tree.block(&SATA.replace("sda", name), number, &[]);
        tree.file(&format!("/sys/fs/btrfs/0-1-2/devices/{name}/x"), "");
    }
    assert_eq!(tree.disk("/").leaves().count(), 2);
}

#[test]
fn trees_with_an_old_mount_table_only() {
    let tree = Tree::new("");
    fs::remove_file(tree.path("/proc/self/mountinfo")).expect("there");
    assert_eq!(reader::of_tree(crate::tree::Tree::open(tree.0.path()).expect("opens")), None);
    tree.file("/proc/mounts", "/dev/sda / ext4 rw,relatime 0 0\n");
    tree.block(SATA, "8:0", &[]);
    let text =
        reader::of_tree(crate::tree::Tree::open(tree.0.path()).expect("opens")).expect("a mount table");
    assert!(text.contains("block sda\n"), "{text}");
}

#[test]
fn limits_of_both_versions() {
    let groups = |tree: &Tree, mounts: &str, own: &str| {
        tree.file("/proc/self/mountinfo", mounts);
        tree.file("/proc/self/cgroup", own);
    };
    let base = "22 1 8:0 / / rw - ext4 /dev/sda rw\n";
    let tree = Tree::new(base);
    tree.block(SATA, "8:0", &[]);
    groups(&tree, &format!("{base}31 22 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"), "0::/a/b\n");
    tree.file(
        "/sys/fs/cgroup/a/io.max",
        "8:0 rbps=max wbps=10485760 riops=max wiops=max\n9:9 rbps=1 wbps=1\n",
    );
    tree.file("/sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=max riops=500 wiops=max\n");
    let found: Vec<(String, String, f64, String)> =
        tree.disk("/").throttles.into_iter().map(|one| (one.op, one.of, one.per_s, one.at)).collect();
    let told =
        |op: &str, of: &str, per_s: f64, at: &str| (op.to_string(), of.to_string(), per_s, at.to_string());
    assert_eq!(
        found,
        [
            told("read", "operations", 500.0, "/sys/fs/cgroup/a/b/io.max"),
            told("write", "bytes", 10_485_760.0, "/sys/fs/cgroup/a/io.max")
        ]
    );
    let old = Tree::new(base);
    old.block(SATA, "8:0", &[]);
    groups(
        &old,
        &format!("{base}31 22 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"),
        "7:blkio:/a\n",
    );
    old.file("/sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device", "8:0 4194304\n");
    // Only our own group binds: version 1 has no hierarchy here.
    old.file("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device", "8:0 1\n");
    let found = old.disk("/").throttles;
    assert_eq!((found.len(), found[0].per_s, found[0].device.as_str()), (1, 4_194_304.0, "sda"));
}

/// Nothing that a probe may say breaks the parser.
#[test]
fn any_text_is_read() {
    let lines = [
        "path /x",
        "device /dev/y",
        "block",
        "block sda",
        "block ",
        "size 18446744073709551615",
        "size -1",
        "number 8:0",
        "below sda",
        "queue/rotational 2",
        "queue/scheduler ][",
        "md/level ",
        "options ,,=",
        "total_bytes 0",
        "free_bytes 99",
        "partition",
        "\u{0}",
        "current_link_speed NaN GT/s",
        "current_link_width 0",
        "sysfs /sys/devices/nvme1/ata9",
        "filesystem ext4",
        "  ",
        "dm/uuid LVM",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..3000 {
        let text: String =
            (0..random.usize(0..20)).map(|_| format!("{}\n", lines[random.usize(0..lines.len())])).collect();
        let mut snapshot = Snapshot::default();
        snapshot.entries.insert(model::vocabulary::disk::probe::DISK.to_string(), Entry::Text(text.clone()));
        snapshot
            .entries
            .insert("/proc/self/mountinfo".into(), Entry::Text("1 1 0:1 / /c rw - cgroup2 c rw".into()));
        snapshot
            .entries
            .insert("/c/io.max".into(), Entry::Text("8:0 rbps=0 wbps=x riops= 8:0\n\n8:0".into()));
        if let Some(disk) = Machine::from(&snapshot).disk {
            let _ =
                (disk.name(), disk.is_virtual(), disk.is_solid(), disk.used_share(), disk.only().is_some());
            assert!(
                disk.link.as_ref().is_none_or(|link| link.gb_per_s.is_finite() && link.gb_per_s > 0.0),
                "{text}"
            );
        }
    }
}

/// What is below a directory of this host is found, whatever it is.
#[test]
fn this_machine() {
    let text = reader::describe(Path::new("/"), &reader::Subject::Directory { path: "/proc", number: None });
    assert!(text.contains("path /proc\n"), "{text}");
    let text =
        reader::describe(Path::new("/nowhere"), &reader::Subject::Directory { path: "/", number: None });
    assert_eq!(text, "");
}

#[test]
fn models_that_hypervisors_name_are_known_in_any_letters() {
    let played = |model: &str| {
        let block = Block { name: "nvme0n1".into(), kind: Kind::Nvme, ..Block::default() };
        Block { model: Some(model.into()), ..block }.is_virtual()
    };
    for model in [
        "MSFT NVMe Accelerator v1.0",
        "Msft Virtual Disk",
        "nvme_card-pd",
        "nvme_card",
        "Google PersistentDisk",
        "Amazon Elastic Block Store",
        "QEMU NVMe Ctrl",
        "VMware Virtual NVMe Disk",
    ] {
        assert!(played(model), "{model}");
    }
    for model in ["Amazon EC2 NVMe Instance Storage", "Samsung SSD 980 PRO 1TB", "INTEL SSDPE2KX010T8", ""] {
        assert!(!played(model), "{model}");
    }
}

#[test]
fn what_lies_on_no_device_has_no_lines() {
    for probe in ["", "path /x\n", "device 0:4095\n", "device \n", "device ../../../etc\n"] {
        assert_eq!(reader::of_directory(probe), "", "{probe:?}");
    }
}

//! What the state of the filesystem and of its layers does to a disk.

use super::points::{DiskPoint, device, disk, points, speed_keys};
use crate::words::{bytes, clipped, percent, shell};
use crate::{Evidence, Rule};
use machine::Disk;
use machine::disk::Block;
use model::vocabulary::disk as ids;
use model::{Fact, Finding};

pub const NEARLY_FULL: Rule = Rule {
    id: ids::rule::DISK_NEARLY_FULL,
    title: "The filesystem is nearly full",
    topic: "disk space",
    meaning: "A nearly full filesystem has its free space in small pieces. Flash below it has few free \
        blocks, and must move old data before it can write new. Writes are slower and less even than with \
        space.",
    action: "Free space and discard it (fstrim -v), then measure again; or name another disk's directory \
        with --dir. See it: df -h DIRECTORY",
    when: "90 % of the filesystem's blocks are in use, and disk benchmarks wrote files there. Blocks \
        reserved for root count as free.",
    how: "Filesystems advise to stay below 80–90 %, since their allocators search longer above. Drives keep \
        7–28 % in reserve, so the effect differs by drive.",
    calm: "filesystem has room",
    looked_at: "statfs",
    source: file!(),
    check: nearly_full,
};

/// A filesystem that is fuller is slower to write to.
pub const MAX_USED_SHARE: f64 = 0.9;

fn nearly_full(evidence: &Evidence) -> Option<Vec<Finding>> {
    let points = points(evidence)?;
    let disk = disk(evidence).filter(|disk| !disk.raw && !disk.is_memory())?;
    let used = disk.used_share()?;
    if used < MAX_USED_SHARE {
        return Some(Vec::new());
    }
    let writes: Vec<&DiskPoint> =
        points.iter().filter(|point| point.op() != "read" && point.op() != "stat").collect();
    let flash = match disk.is_solid() {
        Some(true) => " The disk below is flash, which slows down when it has few free blocks.",
        Some(false) => " What is free lies on the inner, slower tracks of the disk, in pieces.",
        None => "",
    };
    let at = disk.mount_point.as_deref().unwrap_or(&disk.path);
    let of_disk = |label: &str, size: u64| Fact::new(label, bytes(size as f64), ids::probe::DISK);
    let headline = format!(
        "The filesystem at {} is {} full. Writes are slower than with room.",
        clipped(at),
        percent(used)
    );
    Some(vec![
        Finding::warning(NEARLY_FULL.id, headline)
            .cause(format!("Free space is short and in pieces.{flash}"))
            .fact("used", percent(used), ids::probe::DISK)
            .facts(disk.free_bytes.map(|free| of_disk("free", free)))
            .facts(disk.total_bytes.map(|all| of_disk("of", all)))
            .confirm(format!("df {}", shell(at)))
            .advice("Free space and discard it (`fstrim -v`), or name another disk's directory with --dir.")
            .explains(speed_keys(&writes)),
    ])
}

pub const NO_TRIM: Rule = Rule {
    id: ids::rule::DISK_NO_TRIM,
    title: "The disk never receives discards (TRIM)",
    topic: "discards",
    meaning: "Flash must know which blocks are free, to write at full speed and to wear evenly. Without \
        discards the drive treats everything ever written as data. It slows down over months, and a fresh \
        drive seems better than it will be.",
    action: "Enable the timer that discards (systemctl enable --now fstrim.timer), and let layers such as \
        dm-crypt pass discards (allow_discards). See it: lsblk --discard",
    when: "The disk or a layer above it accepts no discards (discard_max_bytes is 0). Or the filesystem is \
        mounted without the discard option and no timer runs fstrim.",
    how: "Spinning disks are left out. Of virtual disks only the layers above them are judged, since the \
        host invents what they report. Such layers are dm-crypt without allow_discards and some RAID levels. \
        Where no folder shows timers, the timer is not judged.",
    calm: "discards reach the disk",
    looked_at: "mount, fstrim",
    source: file!(),
    check: no_trim,
};

fn no_trim(evidence: &Evidence) -> Option<Vec<Finding>> {
    points(evidence)?;
    let disk = disk(evidence).filter(|disk| !disk.raw && !disk.is_memory())?;
    let leaves: Vec<&Block> = disk.leaves().filter(|leaf| leaf.discard_max_bytes.is_some()).collect();
    let flash = disk.is_solid() == Some(true);
    let played = disk.is_virtual() == Some(true);
    if leaves.is_empty() || !flash && !played {
        return None;
    }
    let takes = |block: &Block| block.discard_max_bytes.is_some_and(|most| most > 0);
    let swallows =
        disk.stack.iter().find(|block| !block.below.is_empty() && block.discard_max_bytes == Some(0));
    let swallows = swallows.filter(|_| leaves.iter().all(|leaf| takes(leaf)));
    let mute = leaves.iter().find(|leaf| flash && !takes(leaf));
    let max_bytes = |block: &Block| {
        let most = bytes(block.discard_max_bytes.unwrap_or(0) as f64);
        let path = format!("/sys/class/block/{}/queue/discard_max_bytes", block.name);
        Fact::new(format!("largest discard of {}", block.name), most, path)
    };
    let (draft, advice) = if let Some(layer) = swallows {
        let headline = format!(
            "Layer `{}` ({}) drops discards on their way to the disk",
            layer.name,
            layer.kind.words()
        );
        (
            Finding::note(NO_TRIM.id, headline)
                .cause("The disk takes discards, and a layer above it does not pass them on.")
                .facts(leaves.iter().map(|leaf| max_bytes(leaf)))
                .facts([max_bytes(layer)]),
            "Let the layer pass them (dm-crypt: `allow_discards`, which shows free blocks).",
        )
    } else if let Some(leaf) = mute {
        let headline = format!("Disk `{}` accepts no discards. It slows down as it fills.", leaf.name);
        (
            Finding::note(NO_TRIM.id, headline)
                .cause("The drive, or the controller in front of it, offers none.")
                .facts([max_bytes(leaf)]),
            "See whether a RAID controller can pass them, or leave part of the drive unused.",
        )
    } else if flash && !disk.has_option("discard") && disk.trim_timer.as_deref() == Some("none") {
        let disk_name = clipped(&disk.name());
        let headline = format!("Disk `{disk_name}` never receives discards. It slows down as it fills.");
        (
            Finding::note(NO_TRIM.id, headline)
                .cause("The filesystem is mounted without discard, and no timer runs fstrim.")
                .fact("mounted with", clipped(&disk.options.join(",")), "/proc/self/mountinfo")
                .fact("timer of fstrim", "none", "/etc/systemd/system/timers.target.wants"),
            "Switch the timer on: `systemctl enable --now fstrim.timer`, or run `fstrim -av` once a week.",
        )
    } else {
        return Some(Vec::new());
    };
    Some(vec![draft.confirm(confirm(evidence, disk)).advice(advice)])
}

fn confirm(evidence: &Evidence, disk: &Disk) -> String {
    let at = disk.mount_point.as_deref().unwrap_or(&disk.path);
    let device = device(evidence).map_or(String::new(), |name| format!("lsblk --discard /dev/{name}; "));
    format!("{device}fstrim --dry-run -v {}; systemctl status fstrim.timer", shell(at))
}

//! The disk that a run measures, as facts.

use super::super::plain::plain;
use diagnose::words;
use machine::Disk;
use machine::disk::{Block, Throttle};

/// Devices of a stack that are described each; of more, the first ones.
const MOST: usize = 8;

/// Where it is: directory, filesystem, options, how full.
pub(super) fn place(disk: &Disk) -> String {
    let mut said = vec![format!("{}: {}", plain(&disk.path, 80), plain(&disk.name(), 60))];
    match disk.is_virtual() {
        Some(true) => said.push("virtual".into()),
        Some(false) => said.push("no known virtual disk".into()),
        None if disk.is_memory() => said.push("in memory".into()),
        None => said.push("the devices below are unknown".into()),
    }
    if disk.raw {
        said.push("the whole device, no filesystem".into());
    }
    said.extend(disk.mount_point.as_ref().map(|point| format!("mounted on {}", plain(point, 80))));
    if !disk.options.is_empty() {
        said.push(format!("options {}", plain(&disk.options.join(","), 160)));
    }
    if let (Some(total), Some(share)) = (disk.total_bytes, disk.used_share()) {
        said.push(format!("{:.0} % of {} used", share * 100.0, words::bytes(total as f64)));
    }
    said.extend(
        disk.link.as_ref().map(|link| format!("{} carries {:.2} GB/s", plain(&link.name, 60), link.gb_per_s)),
    );
    match disk.trim_timer.as_deref() {
        Some("none") => said.push("no timer runs fstrim".into()),
        Some(_) => said.push("fstrim runs by a timer".into()),
        None => {}
    }
    said.join(", ")
}

/// Every device from the filesystem's down to the disks.
pub(super) fn devices(disk: &Disk) -> Option<String> {
    let mut said: Vec<String> = disk.stack.iter().take(MOST).map(device).collect();
    if disk.stack.len() > MOST {
        said.push(format!("and {} more (all of them in --json)", disk.stack.len() - MOST));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn device(block: &Block) -> String {
    let mut said = vec![format!("{}: {}", plain(&block.name, 40), block.kind.words())];
    said.extend(block.model.as_ref().map(|model| plain(model, 60)));
    said.extend(block.size_bytes.map(|bytes| words::bytes(bytes as f64)));
    said.extend(block.raid.as_ref().map(|raid| plain(raid, 80)));
    said.extend(block.backing_file.as_ref().map(|file| format!("file {}", plain(file, 80))));
    if !block.below.is_empty() {
        said.push(format!("on {}", plain(&block.below.join(" and "), 80)));
    }
    // What a layer says of its queue is what it passes on.
    if block.below.is_empty() {
        said.extend(
            block.rotational.filter(|turns| *turns && !block.is_virtual()).map(|_| "turning".to_string()),
        );
        said.extend(block.scheduler.as_ref().map(|name| format!("scheduler {}", plain(name, 20))));
        said.extend(block.nr_requests.map(|count| format!("{count} requests")));
        said.extend(block.write_cache.as_ref().map(|kind| format!("{} cache", plain(kind, 20))));
        said.extend(
            block.discard_max_bytes.map(|most| if most > 0 { "discards" } else { "no discard" }.to_string()),
        );
        if let (Some(logical), Some(physical)) = (block.logical_block_bytes, block.physical_block_bytes) {
            said.push(format!("blocks of {logical}/{physical} B"));
        }
        said.extend(
            block.poll_queues.filter(|count| *count > 0).map(|count| format!("{count} polled queues")),
        );
    }
    said.join(", ")
}

/// What control groups allow.
pub(super) fn limits(disk: &Disk) -> Option<String> {
    let said = |throttle: &Throttle| {
        let most = match throttle.of.as_str() {
            "bytes" => format!("{:.3} GB/s", throttle.per_s / 1e9),
            _ => format!("{:.0} operations per second", throttle.per_s),
        };
        format!(
            "{} at most {most} of {} ({})",
            throttle.op,
            plain(&throttle.device, 40),
            plain(&throttle.at, 120)
        )
    };
    let all: Vec<String> = disk.throttles.iter().take(MOST).map(said).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

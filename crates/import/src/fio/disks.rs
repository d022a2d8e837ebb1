//! The devices that fio names behind a run's files, and what they show about where its data were.

use serde_json::Value;

use super::numbers::{named, plain};
use super::{Direction, Job};
use crate::faults::short;

/// Devices that a result lists.
const MAX_DISKS: usize = 8;

/// I/Os from which on a share of them says something.
const MIN_IOS: f64 = 100.0;

/// Engines whose I/O goes to a file or device that fio finds under Linux.
pub const OF_FILES: [&str; 9] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "mmap", "splice"];

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    name: String,
    /// Per cent of the time.
    busy: Option<f64>,
    /// Reads and writes that it was given, those that were put into others among them.
    ios: [Option<f64>; 2],
}

impl Disk {
    /// `vda: ios=58783/6907, merge=0/1, ticks=5021/1519, in_queue=6541, util=79.71%`
    pub fn of_line(line: &str) -> Option<Disk> {
        let (name, rest) = line.split_once(": ios=")?;
        let rest = format!("ios={rest}");
        let pair = |name: &str| {
            let both = named(&rest, name).and_then(|text| text.split_once('/'));
            both.map_or([None; 2], |(read, write)| [plain(read), plain(write)])
        };
        let (given, merged) = (pair("ios"), pair("merge"));
        let busy = named(&rest, "util").and_then(|text| plain(text.trim_end_matches('%')));
        Some(Disk { name: short(name), busy, ios: sums(given, merged) })
    }

    /// `vda;8584;1165;0;222;1182;1259;2442;72.75%`
    pub fn of_terse(values: &[&str]) -> Option<Disk> {
        let (name, busy) = (values.first()?, plain(values.last()?.strip_suffix('%')?));
        let pair = |at: usize| [plain(values[at]), plain(values[at + 1])];
        let is_disk = plain(name).is_none() && (1..8).all(|at| plain(values[at]).is_some());
        is_disk.then(|| Disk { name: short(name), busy, ios: sums(pair(1), pair(3)) })
    }

    fn of_json(value: &Value) -> Option<Disk> {
        let pair = |names: [&str; 2]| names.map(|name| value[name].as_f64());
        let ios = sums(pair(["read_ios", "write_ios"]), pair(["read_merges", "write_merges"]));
        Some(Disk { name: short(value["name"].as_str()?), busy: value["util"].as_f64(), ios })
    }
}

fn sums(given: [Option<f64>; 2], merged: [Option<f64>; 2]) -> [Option<f64>; 2] {
    [0, 1].map(|way| given[way].map(|given| given + merged[way].unwrap_or(0.0)))
}

/// The devices of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disks {
    known: Vec<Disk>,
    left_out: usize,
    /// The report is there to its end, and names none.
    pub is_without: bool,
}

impl Disks {
    pub fn of_json(value: &Value, is_cut: bool) -> Disks {
        let mut disks = Disks::default();
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Disk::of_json).for_each(|disk| disks.put(disk));
        disks.is_without = disks.known.is_empty() && !is_cut;
        disks
    }

    /// Takes a device; a later line replaces an earlier one.
    pub fn put(&mut self, disk: Disk) {
        match self.known.iter().position(|known| known.name == disk.name) {
            Some(at) => self.known[at] = disk,
            None if self.known.len() < MAX_DISKS => self.known.push(disk),
            None => self.left_out += 1,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn names(&self) -> Vec<&str> {
        self.known.iter().map(|disk| disk.name.as_str()).collect()
    }

    /// How busy each was: two runs on one device are on one device, however busy it was.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let busy = self.known.iter().filter_map(|disk| Some((&disk.name, disk.busy?)));
        busy.map(|(name, percent)| {
            format!("the device {name} was busy {:.0} % of the time", percent.clamp(0.0, 1e6))
        })
    }

    /// Notes in jobs where their data were, from the counters of their devices.
    pub fn tell(&self, jobs: &mut [Job]) {
        let ways = [Direction::Read, Direction::Write];
        let saw = ways.map(|way| {
            let asked: f64 = jobs.iter().filter_map(|job| job.side(way).ios).sum();
            let ios = self.known.iter().map(|disk| disk.ios[way as usize]);
            let given = ios.sum::<Option<f64>>().filter(|_| !self.is_empty() && self.left_out == 0);
            given.filter(|given| asked >= MIN_IOS && given * 2.0 < asked).map(|given| {
                let why = match way {
                    Direction::Read => "a cache served the rest, or read ahead",
                    _ => "a cache kept or merged the rest",
                };
                format!("of {asked:.0} {}s {given:.0} reached the devices: {why}", way.word())
            })
        });
        for job in jobs.iter_mut() {
            let own = ways.iter().zip(&saw).filter(|(way, _)| !job.side(**way).is_empty());
            let hints: Vec<String> = own.filter_map(|(_, hint)| hint.clone()).collect();
            job.hints.extend(hints);
            let of_files = job.option(&["ioengine"]).is_some_and(|engine| OF_FILES.contains(&engine));
            let worked = job.sides.iter().any(|side| !side.is_empty()) || job.unified.is_some();
            job.no_device_named =
                self.is_without && of_files && worked && job.option(&["disk_util"]) != Some("0");
        }
    }
}

//! Jobs of one kind that ran at once, and how their case is named.

use super::{Direction, Job, SEVERAL, disks, numbers};
use crate::faults::short;
use model::vocabulary::disk as ids;
use model::{Params, Value};

/// Options that make the work another one, as they are named in a key.
const ALTERS: [(&str, &[&str]); 22] = [
    ("verify", &["verify"]),
    ("rate", &["rate"]),
    ("rate_iops", &["rate_iops"]),
    ("thinktime", &["thinktime"]),
    ("fsync", &["fsync"]),
    ("fdatasync", &["fdatasync"]),
    ("writes_a_sync", &["writes_a_sync"]),
    ("sync", &["sync"]),
    ("end_fsync", &["end_fsync"]),
    ("bsrange", &["bsrange", "blocksize_range"]),
    ("bssplit", &["bssplit"]),
    ("distribution", &["random_distribution"]),
    ("zonemode", &["zonemode"]),
    ("hipri", &["hipri"]),
    ("sqpoll", &["sqthread_poll"]),
    ("fixedbufs", &["fixedbufs"]),
    ("compressed", &["buffer_compress_percentage"]),
    ("dedupe", &["dedupe_percentage"]),
    ("latency_target", &["latency_target"]),
    ("batch", &["iodepth_batch", "iodepth_batch_submit"]),
    ("replay", &["read_iolog"]),
    ("flow", &["flow"]),
];

/// Values of those that change nothing.
pub const OFF: [&str; 4] = ["0", "none", "", "1:1"];

/// fio's own, bytes.
const DEFAULT_BLOCK: i64 = 4096;

/// Options by which blocks have other sizes than `bs`.
const OTHER_SIZES: [&str; 7] = [
    "bsrange",
    "blocksize_range",
    "bssplit",
    "bs_unaligned",
    "blocksize_unaligned",
    "bs_is_seq_rand",
    "read_iolog",
];

/// What is said of files behind which no device is named.
const UNNAMED: &str = "the device behind its files is unknown: memory (tmpfs), an overlay on it, a network file system, or fio did not record it (disk_util=0)";

/// Engines that have one I/O in flight, whatever the depth.
pub const ONE_IN_FLIGHT: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

/// The time that a report is of, ms. Jobs that verify write first and read then; others go both
/// ways at once.
fn longest_ms(job: &Job) -> f64 {
    let times = job.sides.iter().filter_map(|side| side.runtime_ms);
    if job.verifies() { times.sum() } else { times.fold(0.0, f64::max) }
}

/// How jobs of one kind that ran at once are named together.
#[derive(Default)]
pub struct JobGroup<'a> {
    pub jobs: Vec<&'a Job>,
    /// How many ran, as far as is known; counted once all are there.
    pub count: u64,
    /// These figures are of jobs of several kinds in one.
    pub merged: bool,
    /// Other jobs ran at the same time.
    pub among: Vec<&'a str>,
    /// By libaio, next to the same job by io_uring, which Assay uses.
    pub beside_ours: bool,
}

/// The directions of a pattern.
pub fn ways_of(pattern: &str) -> &'static [Direction] {
    let pattern = pattern.split(':').next().unwrap_or_default();
    match pattern.trim_start_matches("rand") {
        "read" => &[Direction::Read],
        "write" => &[Direction::Write],
        "trim" => &[Direction::Trim],
        "trimwrite" => &[Direction::Write, Direction::Trim],
        _ => &[Direction::Read, Direction::Write],
    }
}

pub fn text(value: &str) -> Value {
    let cut: String = value.chars().filter(|one| !one.is_control()).take(60).collect();
    cut.parse().map_or(Value::Text(cut), Value::Int)
}

impl JobGroup<'_> {
    pub fn job(&self) -> &Job {
        self.jobs[0]
    }

    /// How many jobs the figures are of: those of this name, those that a report is of, or what
    /// their times come to.
    pub fn count(&mut self) {
        let job = self.job();
        let asked =
            job.option(&["numjobs"]).and_then(|text| text.parse().ok()).unwrap_or(1u64).clamp(1, 1 << 20);
        let longest = longest_ms(job);
        let ran =
            job.job_runtime_ms.filter(|_| longest > 100.0).map_or(1, |all| (all / longest).round() as u64);
        let count = job.jobs.unwrap_or(1).max(self.jobs.len() as u64);
        // Fewer than were asked for are jobs that ended at different times.
        (self.count, self.merged) = match self.reported_as_one() {
            true if ran > asked.max(count) => (ran, true),
            _ => (count.max(asked), job.merged),
        };
    }

    /// Whether one report stands for all jobs of the name. fio leaves an option without a value out
    /// of what it prints of a job, but the jobs' time shows it, too: without group_reporting it is
    /// the report's own.
    pub fn reported_as_one(&self) -> bool {
        let job = self.job();
        let longest = longest_ms(job);
        let several = job.job_runtime_ms.is_some_and(|all| longest > 0.0 && all > longest * 1.05 + 2.0);
        self.jobs.len() == 1 && (job.option(&["group_reporting"]).is_some() || several)
    }

    /// Where its tasks were: several are wherever the scheduler puts them.
    pub fn place(&self) -> &'static str {
        let several = self.count > 1 || self.job().option(&["numjobs"]) == Some(SEVERAL);
        if several { "free" } else { "one-cpu" }
    }

    pub fn engine(&self) -> Option<&str> {
        self.job().option(&["ioengine"])
    }

    /// What it did, as keys describe it.
    pub fn work(&self) -> (&'static str, &'static str, Params, [Params; 3]) {
        (self.bench(), self.place(), self.params(""), Direction::ALL.map(|way| self.point(way)))
    }

    pub fn params(&self, op: &str) -> Params {
        let job = self.job();
        let mut params = Params::new();
        let mut put = |name: &str, value: &str| params.set(name, text(value));
        put(&ids::param::OP, op);
        put(&ids::param::CACHE, self.cache());
        match self.engine() {
            Some("io_uring") => {}
            Some("libaio") if !self.beside_ours => {}
            Some(engine) => put(&ids::param::ENGINE, engine),
            None => put(&ids::param::ENGINE, "untold"),
        }
        for (name, options) in ALTERS {
            if let Some(value) = job.option(options).filter(|value| !OFF.contains(value)) {
                put(name, value);
            }
        }
        // Assay's mix has seven reads to three writes.
        if op == "mixed"
            && let Some(share) = self.read_share().filter(|share| share != "70")
        {
            put("read_share", &share);
        }
        if self.rw().contains(':') || job.untold {
            put("rw", self.rw());
        }
        let sizes: Vec<String> = self.ways().iter().map(|way| self.block(*way).to_string()).collect();
        if sizes.iter().any(|size| *size != sizes[0]) {
            put("bs", &sizes.join(","));
        }
        match job.option(&["numjobs"]) {
            Some(SEVERAL) => put(&ids::param::JOBS, SEVERAL),
            _ if self.count > 1 => put(&ids::param::JOBS, &self.count.to_string()),
            _ => {}
        }
        if self.merged {
            put("of", "several-kinds");
        }
        if !self.among.is_empty() || job.untold {
            put("job", &job.name);
        }
        params
    }

    /// Reads of a hundred I/Os: from an option, or as counted if there is none or it is of another
    /// job; `None` for jobs that do not read and write.
    fn read_share(&self) -> Option<String> {
        if self.ways() != [Direction::Read, Direction::Write] {
            return None;
        }
        let job = self.job();
        let number = |name: &str| job.option(&[name]).and_then(numbers::plain);
        let printed = number("rwmixread").or(number("rwmixwrite").map(|writes| 100.0 - writes));
        let printed = printed.or((!job.direct_untold).then_some(50.0)).filter(|_| !self.merged);
        let of = |job: &Job, way: Direction| job.mix.map(|mix| mix[way as usize]).or(job.side(way).ios);
        let sum = |way: Direction| -> f64 { self.jobs.iter().filter_map(|job| of(job, way)).sum() };
        let (reads, writes) = (sum(Direction::Read), sum(Direction::Write));
        let (done, count) = (100.0 * reads / (reads + writes), reads + writes);
        if reads == 0.0 || writes == 0.0 {
            return Some(printed.map_or("untold".to_string(), |printed| printed.to_string()));
        }
        // Each I/O is drawn.
        let noise = 3.0 * (done * (100.0 - done) / count).sqrt();
        let near = |share: &f64| (share - done).abs() <= noise;
        let five = Some((done / 5.0).round() * 5.0);
        let round = five.filter(|share| (share - done).abs() <= noise + 0.25);
        let share = printed.filter(|printed| near(printed) || (printed - done).abs() <= 3.0).or(round);
        Some(share.unwrap_or(done.round()).clamp(1.0, 99.0).to_string())
    }

    pub fn cache(&self) -> &'static str {
        let job = self.job();
        let is = |name: &str, value: &str| job.option(&[name]).is_some_and(|found| found == value);
        match () {
            () if is("direct", "1") || is("buffered", "0") => "direct",
            () if job.direct_untold || job.untold => "untold",
            () => "buffered",
        }
    }

    pub fn rw(&self) -> &str {
        if self.job().untold { "untold" } else { self.job().option(&["rw", "readwrite"]).unwrap_or("read") }
    }

    /// The pattern without what may follow it: `randread:8`.
    pub fn pattern(&self) -> &str {
        self.rw().split(':').next().unwrap_or_default()
    }

    /// The directions that the job asks for; where that is not given, those that it went.
    pub fn ways(&self) -> &'static [Direction] {
        if self.job().untold {
            let went = Direction::ALL.map(|way| !self.job().side(way).is_empty());
            return match went {
                [true, true, false] => &[Direction::Read, Direction::Write],
                [true, true, true] => &Direction::ALL,
                [true, false, true] => &[Direction::Read, Direction::Trim],
                [false, true, true] => &[Direction::Write, Direction::Trim],
                [false, true, false] => &[Direction::Write],
                [false, false, true] => &[Direction::Trim],
                [_, false, false] => &[Direction::Read],
            };
        }
        ways_of(self.rw())
    }

    pub fn bench(&self) -> &'static str {
        match self.pattern() {
            "untold" => "fio.job",
            pattern if pattern.starts_with("rand") => ids::RANDOM.as_str(),
            _ => ids::SEQUENTIAL.as_str(),
        }
    }

    /// Whether reads of a job that writes are its reading back. In a text, which has no line for
    /// `verify`, as many reads as writes say so (fewer where it ended with an error).
    pub fn verify_phase(&self, way: Direction) -> bool {
        let job = self.job();
        if way != Direction::Read || self.ways() != [Direction::Write] {
            return false;
        }
        let ios = |way: Direction| -> f64 { self.jobs.iter().filter_map(|job| job.side(way).ios).sum() };
        let (reads, writes) = (ios(Direction::Read), ios(Direction::Write));
        job.verifies() || job.direct_untold && (reads == writes || job.error != 0 && reads < writes)
    }

    fn block(&self, way: Direction) -> Value {
        let job = self.job();
        if job.untold {
            return self.moved_each(way).map_or_else(|| text("untold"), Value::Int);
        }
        let Some(block) = job.option(&["bs", "blocksize"]) else {
            // Where no size is asked for it is fio's default, unless the bytes say otherwise.
            return match job.option(&["bsrange", "blocksize_range", "bssplit"]) {
                Some(several) => text(several),
                // A line that was cut does not say that it is.
                None if job.direct_untold => self.moved_each(way).map_or_else(|| text("untold"), Value::Int),
                None => Value::Int(self.moved_each(way).unwrap_or(DEFAULT_BLOCK)),
            };
        };
        let parts: Vec<&str> = block.split(',').collect();
        // What is left out is fio's default.
        let own =
            parts.get(way as usize).or(parts.last()).copied().filter(|text| !text.is_empty()).unwrap_or("4k");
        // It counts in thousands from where it was set to: what was moved says which it was.
        let thousands = job.option(&["kb_base"]) == Some("1000");
        let sizes = [thousands, !thousands].map(|thousands| numbers::parse_size(own, thousands));
        let is_moved = |size: &&Option<f64>| {
            let each = self.bytes_each(way).zip(**size);
            each.is_some_and(|(each, size)| (each / size - 1.0).abs() < 0.01)
        };
        let bytes = sizes.iter().find(is_moved).unwrap_or(&sizes[0]).filter(|bytes| *bytes >= 1.0);
        bytes.map_or_else(|| text(own), |bytes| Value::Int(bytes as i64))
    }

    /// The size of the blocks that a job asks for, bytes, where each of its I/Os has to be one.
    pub fn block_size(&self, way: Direction) -> Option<f64> {
        let job = self.job();
        let fixed = job.option(&["bs", "blocksize"]).is_some() && job.option(&OTHER_SIZES).is_none();
        let is_io = self.engine().is_none_or(|engine| disks::OF_FILES.contains(&engine));
        let printed = fixed && is_io && !self.merged && !job.untold && job.error == 0;
        match self.block(way) {
            Value::Int(bytes) if printed && self.ways().contains(&way) => Some(bytes as f64),
            _ => None,
        }
    }

    /// I/Os that a job may have in flight at its ends.
    pub fn in_flight(&self) -> f64 {
        let depth = self.job().option(&["iodepth"]).and_then(numbers::plain).unwrap_or(1.0);
        depth * self.count as f64
    }

    /// The bytes that went this way over the I/Os.
    fn bytes_each(&self, way: Direction) -> Option<f64> {
        let sum = |of: fn(&super::DirectionStats) -> Option<f64>| -> Option<f64> {
            self.jobs.iter().map(|job| of(job.side(way))).sum()
        };
        Some(sum(|side| side.bytes)? / sum(|side| side.ios)?)
    }

    /// What each I/O moved, where it is a size that blocks have.
    fn moved_each(&self, way: Direction) -> Option<i64> {
        const SECTOR: f64 = 512.0;
        let each = self.bytes_each(way)?;
        (each >= SECTOR && each % SECTOR == 0.0).then_some(each as i64)
    }

    pub fn point(&self, way: Direction) -> Params {
        let job = self.job();
        // In one report of several kinds, a direction that the known job does not have is another
        // one's.
        let others = self.merged && !self.ways().contains(&way);
        let depth: Option<i64> = job.option(&["iodepth"]).and_then(|text| text.parse().ok());
        let single = self.engine().is_some_and(|engine| ONE_IN_FLIGHT.contains(&engine));
        let depth = match single {
            _ if job.untold || others => text("untold"),
            true => Value::Int(1),
            // A text always has it, unless the line was cut.
            false if job.direct_untold && depth.is_none() => text("untold"),
            false => Value::Int(depth.unwrap_or(1)),
        };
        let block = if others { text("untold") } else { self.block(way) };
        Params::from([(ids::param::BLOCK, block), (ids::param::DEPTH, depth)])
    }

    /// Why its figures are none of a device, as far as the file shows.
    fn no_device(&self) -> Option<String> {
        let job = self.job();
        let places = job.option(&["filename", "directory"]).unwrap_or_default();
        let place = |begins: &[&str]| {
            let is_below = |place: &&str| begins.iter().any(|begin| place.starts_with(begin));
            places.split(':').find(is_below)
        };
        if self.engine() == Some("null") {
            return Some("the null engine does no I/O".to_string());
        }
        if let Some(place) = place(&["/dev/zero", "/dev/null", "/dev/full"]) {
            return Some(format!("{} is not a device: it stores nothing", short(place)));
        }
        if place(&["/dev/shm", "/run/shm"]).is_some() {
            return Some("its files are in memory (tmpfs), not on a disk".to_string());
        }
        if let Some(place) = place(&["/dev/ram", "/dev/zram"]) {
            return Some(format!("{} is memory, not a disk", short(place)));
        }
        job.no_device_named.then(|| UNNAMED.to_string())
    }

    /// What is to be known of all its figures.
    pub fn notes(&self) -> Vec<String> {
        let job = self.job();
        let mut notes = Vec::new();
        if job.untold {
            notes.push(if job.direct_untold {
                "its options are unknown: the line that announces the job is missing".to_string()
            } else {
                "its options are unknown: this version of fio does not print them".to_string()
            });
        }
        let no_device = self.no_device();
        if self.cache() == "buffered" && no_device.as_ref().is_none_or(|why| why == UNNAMED) {
            notes.push(
                "through the page cache: partly memory speed (direct=1 bypasses the cache)".to_string(),
            );
        }
        notes.extend(no_device);
        notes.extend(job.hints.iter().cloned());
        match &job.steady {
            Some(steady) if steady.attained => notes.push(
                "of the whole run; steady_iops and steady_bandwidth are of its steady state".to_string(),
            ),
            Some(_) => notes.push("it waited for a steady state but reached none".to_string()),
            None => {}
        }
        match self.engine() {
            _ if job.untold => {}
            Some("libaio") => notes.push("by libaio; Assay uses io_uring".to_string()),
            None => {
                notes.push("the engine is unknown; fio's default is psync, on Windows windowsaio".to_string())
            }
            Some(_) => {}
        }
        if job.direct_untold {
            notes.push("fio's text does not say whether the page cache was bypassed".to_string());
        }
        if self.merged {
            notes.push(format!("group_reporting merged {} jobs and shows the options of one", self.count));
        }
        if !self.among.is_empty() {
            let mut names = self.among.clone();
            names.dedup();
            let more = names.len().saturating_sub(3);
            names.truncate(3);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!("at the same time as {}{more}", short(&names.join(", "))));
        }
        if job.option(&["rate", "rate_iops"]).is_some() {
            notes.push("paced: its latency counts from the submission, not from when it was due".to_string());
        }
        if job.error != 0 {
            notes.push(format!("the job ended with error {}", job.error));
        }
        if !job.passed_over.is_empty() {
            notes.push(job.passed_over.clone());
        }
        notes
    }
}

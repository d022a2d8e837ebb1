//! fio's text to jobs: a line of what each job is to do, later a block of what it did.
//!
//! Version 2 writes `read : io=3777.6MB, bw=64466KB/s, iops=16116, runt= 60003msec`, where KB is
//! 1024 bytes; version 3 `read: IOPS=46.8k, BW=183MiB/s (192MB/s)(183MiB/1001msec)`, rounded to
//! three or four digits: with the counts of the line `issued rwts` and the time it is computed
//! again.

use super::numbers::{amount, carry, decimal, is_carried, named, nanoseconds, plain};
use super::recount::{recount, sharpen};
use super::{Job, MOST_DEVICES, SEVERAL, Side, Spread, Way, busy_device, snapshots};
use crate::own::short;

/// Groups are numbered anew in each run of a text.
const RUNS_APART: i64 = 1 << 20;

/// No run has as many jobs, nor a file as many runs.
const MOST_JOBS: usize = 5000;

/// Whether a line is one of fio's own: a job announced, or its result.
pub fn begins(line: &str) -> bool {
    announced(line).is_some() || (line.contains("(groupid=") && line.contains("err="))
}

/// A job that is announced: its name and options.
#[derive(Clone, Debug)]
struct Announced {
    name: String,
    group: Option<i64>,
    options: Vec<(String, String)>,
    /// A line of dots follows: there are several.
    several: bool,
    done: bool,
    /// Half of the last digit of its block size, bytes.
    block_rounding: f64,
}

/// `NAME: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32`
fn announced(line: &str) -> Option<Announced> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, rest) = rest.split_once("): ")?;
    let own = |name: &str| Some((name.to_string(), named(rest, name)?.to_string()));
    let mut options: Vec<(String, String)> =
        [own("ioengine"), own("iodepth")].into_iter().flatten().collect();
    let rw = named(rest, "rw")?;
    options.push(("rw".to_string(), rw.to_string()));
    options.extend(blocks(rest, rw).map(|size| ("bs".to_string(), size)));
    Some(Announced {
        name: name.trim().to_string(),
        group: group.parse().ok().map(|group: i64| group.clamp(0, RUNS_APART - 1)),
        options,
        several: false,
        done: false,
        block_rounding: rounding(rest),
    })
}

/// Half of the last digit of the first block size: `65.5kB` is 65 450 to 65 550 bytes.
fn rounding(rest: &str) -> f64 {
    let text = rest
        .split_once("bs=")
        .map_or("", |(_, text)| text)
        .trim_start_matches(['(', 'R', 'W', 'T', ')', ' ']);
    let text = text.split(['-', '/', ',']).next().unwrap_or_default().trim();
    let digits = text.find(|one: char| !(one.is_ascii_digit() || one == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let behind = number.split_once('.').map_or(0, |(_, digits)| digits.len().min(9));
    match size(&format!("1{unit}")) {
        Some(scale) if scale > 1.0 => scale * 0.5 / 10f64.powi(behind as i32),
        _ => 0.0,
    }
}

/// A size of a block, bytes. `kB` are 1000 (`--kb_base=1000`), `KB` what version 2 called 1024.
fn size(text: &str) -> Option<f64> {
    let kilo = if text.contains("KB") { 1024.0 } else { 1000.0 };
    amount(text, kilo).filter(|bytes| *bytes >= 1.0)
}

/// The sizes of blocks as an option would say them: one, a range, or one a direction with commas.
fn blocks(rest: &str, rw: &str) -> Option<String> {
    let text = rest.split_once("bs=")?.1;
    let text = text.split_once(", ioengine").map_or(text, |(text, _)| text);
    let ranges: Vec<&str> = match text.contains("(R)") {
        true => text
            .split(',')
            .map(|part| part.trim().trim_start_matches(['(', 'R', 'W', 'T', ')', ' ']))
            .collect(),
        false => text.split('/').map(str::trim).collect(),
    };
    let size = |text: &str| size(text).map(|bytes| format!("{bytes:.0}"));
    let range = |range: &&str| -> Option<String> {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (size(low)?, size(high)?);
        Some(if low == high { low } else { format!("{low}-{high}") })
    };
    let all: Vec<String> = ranges.iter().map(range).collect::<Option<_>>()?;
    // What a direction that is not used would have had says nothing.
    let (reads, writes) =
        (rw.contains("read") || rw.contains("rw"), rw.contains("write") || rw.contains("rw"));
    match (all.as_slice(), reads, writes) {
        ([read, write, ..], true, true) if read != write => Some(format!("{read},{write}")),
        ([_, write, ..], false, true) => Some(write.clone()),
        ([.., trim], false, false) => Some(trim.clone()),
        ([first, ..], ..) => Some(first.clone()),
        _ => None,
    }
}

type Read = (Vec<Job>, Vec<(String, String)>, Vec<String>);

/// Where the lines that follow belong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Within {
    Nothing,
    Side(Way),
    Sync,
}

/// The jobs of a text, what it tells beside them, and remarks.
pub fn jobs(lines: &[&str]) -> Read {
    let mut reader = Reader::default();
    for line in lines {
        reader.take(line);
    }
    let Reader { mut jobs, mut facts, mut remarks, announced, unknown, devices, passed, left_out, .. } =
        reader;
    if left_out > 0 {
        remarks.push(format!(
            "only the first {MOST_JOBS} jobs were read; {left_out} lines that begin another one were left out: cut the file into parts"
        ));
    }
    for job in &mut jobs {
        sharpen(job);
        recount(job);
    }
    let names: Vec<&str> = devices.iter().map(|(name, _)| name.as_str()).collect();
    facts.extend((!names.is_empty()).then(|| ("device".to_string(), names.join(", "))));
    remarks.extend(devices.iter().filter_map(|(name, busy)| Some(busy_device(name, (*busy)?))));
    remarks.extend(snapshots::remark(passed));
    let unfinished = announced.into_iter().filter(|one| !one.done);
    jobs.extend(unfinished.map(|one| Job {
        name: one.name,
        group: one.group,
        options: match one.several {
            true => [one.options, vec![("numjobs".to_string(), SEVERAL.to_string())]].concat(),
            false => one.options,
        },
        direct_untold: true,
        unfinished: Some(
            "started, no test finished: it was announced and has no result: the run, or the file, ended before".to_string(),
        ),
        ..Job::default()
    }));
    if let Some((first, count)) = unknown {
        let lines = if count == 1 { "a line".to_string() } else { format!("{count} lines") };
        remarks.push(format!("{lines} of results could not be understood; the first of them: {first:?}"));
    }
    (jobs, facts, remarks)
}

#[derive(Default)]
struct Reader {
    jobs: Vec<Job>,
    facts: Vec<(String, String)>,
    remarks: Vec<String>,
    announced: Vec<Announced>,
    within: Option<Within>,
    /// Unit and kind of the percentiles that follow.
    percentiles: Option<(&'static str, f64)>,
    /// 1024 where KB is that.
    kilo: f64,
    unknown: Option<(String, usize)>,
    /// A result was read since the last job was announced; and fio said its version, which it does
    /// behind all announcements.
    ended: bool,
    started: bool,
    /// What the numbers of groups in this run begin with.
    before: i64,
    /// The job that the lines at hand are of.
    current: usize,
    /// Of each job its process, and in which report it stands; a report ends with the sums of its
    /// groups.
    seen: Vec<(String, usize)>,
    report: usize,
    summed: bool,
    /// The last report that had a job again, and how many there were.
    again: Option<usize>,
    passed: usize,
    /// Lines that begin a job beyond the most that are read.
    left_out: usize,
    /// Devices, and how busy each was, per cent.
    devices: Vec<(String, Option<f64>)>,
}

impl Reader {
    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        let is_full = match announced(line) {
            Some(_) => self.announced.len() >= MOST_JOBS,
            None => self.jobs.len() >= MOST_JOBS && begins(line),
        };
        if is_full {
            self.within = None;
            self.left_out += 1;
            return;
        }
        if let Some(version) =
            trimmed.strip_prefix("fio-").filter(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
        {
            self.facts.push(("fio".to_string(), short(version)));
            self.kilo = if version.starts_with(['1', '2']) { 1024.0 } else { 1000.0 };
            self.started = !self.announced.is_empty();
        } else if let Some(one) = announced(line) {
            self.within = None;
            // After results, or where fio has started since, another run begins, whose groups are
            // others: the last one may have been stopped.
            let (ended, started) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.started));
            if ended || started {
                self.before += RUNS_APART;
            }
            self.announced.push(Announced { group: one.group.map(|group| group + self.before), ..one });
        } else if trimmed == "..." {
            if let Some(last) = self.announced.last_mut() {
                last.several = true;
            }
        } else if line.contains("(groupid=") && line.contains("err=") {
            self.begin(line);
        } else if trimmed.starts_with("Run status group") || trimmed.starts_with("Disk stats") {
            self.within = None;
            self.summed = true;
        } else if self.within.is_some() && !trimmed.is_empty() {
            self.within(trimmed);
        } else if let Some((device, rest)) = trimmed.split_once(": ios=").filter(|_| line.starts_with(' ')) {
            let busy = named(rest, "util").and_then(|text| plain(text.trim_end_matches('%')));
            let device = short(device);
            if let Some(known) = self.devices.iter_mut().find(|(name, _)| *name == device) {
                known.1 = busy;
            } else if self.devices.len() < MOST_DEVICES {
                self.devices.push((device, busy));
            }
        }
    }

    /// `NAME: (groupid=0, jobs=1): err= 0: pid=120900: Fri Jun 19 01:20:01 2020`
    fn begin(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once(": (groupid=") else { return };
        let Some((inner, rest)) = rest.split_once("): err=") else { return };
        let (group, jobs) = inner.split_once(',').unwrap_or((inner, ""));
        let error = rest.trim_start().split(|one: char| !(one.is_ascii_digit() || one == '-')).next();
        let words =
            rest.split_once("error=").map_or("", |(_, words)| words.split("):").next().unwrap_or_default());
        if let Some(ran) = rest.rsplit_once("pid=").and_then(|(_, rest)| rest.split_once(": ")) {
            self.facts.push(("ran".to_string(), ran.1.trim().to_string()));
        }
        let name = name.trim().to_string();
        let group = group.trim().parse().ok().map(|group: i64| group.clamp(0, RUNS_APART - 1) + self.before);
        self.ended = true;
        let jobs: Option<u64> = named(jobs, "jobs").and_then(|jobs| jobs.parse().ok());
        self.report += usize::from(std::mem::take(&mut self.summed));
        let pid = rest.split_once("pid=").map(|(_, rest)| rest.split(':').next().unwrap_or_default().trim());
        let pid = pid.unwrap_or_default().to_string();
        // The same process in an earlier report: that one was of the run while it went on.
        let mut numbered = self.jobs.iter().zip(&self.seen);
        let earlier = numbered.position(|(job, (known, report))| {
            job.name == name
                && job.group == group
                && !pid.is_empty()
                && *known == pid
                && *report < self.report
        });
        let same =
            |one: &&mut Announced| one.name == name && (one.group == group || group.is_none()) && !one.done;
        // Of several alike each has a block of its own, unless they are reported as one.
        let known = self.announced.iter_mut().filter(|_| earlier.is_none()).find(same).map(|one| {
            one.done = true;
            (one.options.clone(), one.block_rounding)
        });
        let merged = earlier.is_none() && jobs.is_some_and(|jobs| jobs > 1) && self.as_one(group);
        let before = || match earlier {
            Some(at) => self.jobs.get(at),
            None => self.jobs.iter().rev().find(|job| job.name == name && job.group == group),
        };
        let merged = merged || earlier.is_some() && before().is_some_and(|job| job.merged);
        let untold = known.is_none() && before().is_none_or(|job| job.untold);
        let (mut options, block_rounding) = known
            .or_else(|| before().map(|job| (job.options.clone(), job.block_rounding)))
            .unwrap_or_default();
        if jobs.is_some_and(|jobs| jobs > 1) && !options.iter().any(|(name, _)| name == "numjobs") {
            options.push(("numjobs".to_string(), jobs.unwrap_or(1).to_string()));
        }
        let job = Job {
            name,
            group,
            options,
            jobs,
            error: error.and_then(|error| error.parse().ok()).unwrap_or(0),
            error_words: words.to_string(),
            direct_untold: true,
            untold,
            merged,
            block_rounding,
            ..Job::default()
        };
        self.current = earlier.unwrap_or(self.jobs.len());
        match self.jobs.get_mut(self.current).zip(self.seen.get_mut(self.current)) {
            Some((known, seen)) => {
                (*known, seen.1) = (job, self.report);
                self.passed += usize::from(self.again.replace(self.report) != Some(self.report));
            }
            None => {
                self.jobs.push(job);
                self.seen.push((pid, self.report));
            }
        }
        self.within = Some(Within::Nothing);
        self.percentiles = None;
    }

    /// One report of several jobs is of all of its group (group_reporting): none of them has
    /// another. Whether they are of several kinds.
    fn as_one(&mut self, group: Option<i64>) -> bool {
        let mut all: Vec<&mut Announced> =
            self.announced.iter_mut().filter(|one| one.group == group).collect();
        all.iter_mut().for_each(|one| one.done = true);
        all.windows(2).any(|two| two[0].options != two[1].options)
    }

    fn within(&mut self, line: &str) {
        let kilo = if self.kilo == 0.0 { 1000.0 } else { self.kilo };
        let Some(job) = self.jobs.get_mut(self.current) else { return };
        if let Some(rest) = line.strip_prefix('|') {
            if let Some((kind, scale)) = self.percentiles
                && let Some(spread) = spread(job, self.within, kind)
            {
                spread.percentiles.extend(percentiles(rest, scale));
            }
            return;
        }
        let (head, rest) = line.split_once(':').unwrap_or((line, ""));
        let (kind, unit) = head.split_once('(').unwrap_or((head, ""));
        let (kind, unit) = (kind.trim(), unit.trim_end_matches([')', ' ']));
        match kind {
            "read" | "write" | "trim" => {
                let way = Way::ALL.into_iter().find(|way| way.word() == kind).unwrap_or(Way::Read);
                self.within = Some(Within::Side(way));
                job.sides[way as usize] = side(rest, kilo);
            }
            "fsync/fdatasync/sync_file_range" => self.within = Some(Within::Sync),
            // Shares of ranges, which percentiles tell better, begin with a number.
            "lat" if rest.contains('%') => {}
            "slat" | "clat" | "lat" | "sync" => {
                if let (Some(scale), Some(spread)) = (nanoseconds(unit), spread(job, self.within, kind)) {
                    let value = |name: &str| named(rest, name).and_then(decimal).map(|value| value * scale);
                    (spread.mean, spread.max) = (value("avg"), value("max"));
                }
            }
            "clat percentiles" | "lat percentiles" | "sync percentiles" | "slat percentiles" => {
                let kind = match kind.split(' ').next() {
                    Some("clat") => "clat",
                    Some("slat") => "slat",
                    Some("sync") => "sync",
                    _ => "lat",
                };
                self.percentiles = nanoseconds(unit).map(|scale| (kind, scale));
            }
            "cpu" => {
                let share = |name: &str| named(rest, name).and_then(|text| plain(text.trim_end_matches('%')));
                job.cpu = share("usr").zip(share("sys")).map(|(user, system)| user + system);
            }
            "issued" | "issued rwt" | "issued rwts" | "issued rwtf" => issued(job, rest),
            // Samples of half a second, depths, and what nobody compares.
            "bw" | "iops" | "IO depths" | "submit" | "complete" | "latency" | "zone resets" | "errors" => {}
            _ => {
                let text = short(line);
                self.unknown.get_or_insert((text, 0)).1 += 1;
            }
        }
    }
}

fn spread<'a>(job: &'a mut Job, within: Option<Within>, kind: &str) -> Option<&'a mut Spread> {
    match (within?, kind) {
        (_, "sync") | (Within::Sync, _) => Some(&mut job.sync),
        (Within::Side(way), kind) => {
            let side = &mut job.sides[way as usize];
            match kind {
                "slat" => Some(&mut side.slat),
                "clat" => Some(&mut side.clat),
                _ => Some(&mut side.lat),
            }
        }
        (Within::Nothing, _) => None,
    }
}

/// `1.00th=[ 1176],  5.00th=[ 1368]`
fn percentiles(line: &str, scale: f64) -> Vec<(String, Option<f64>)> {
    let one = |part: &str| {
        let (percent, value) = part.split_once("th=[")?;
        let value = decimal(value.trim_end_matches([']', ' ', ',']));
        Some((percent.trim().to_string(), value.map(|value| value * scale)))
    };
    line.split("],").filter_map(|part| one(part.trim())).collect()
}

fn side(rest: &str, kilo: f64) -> Side {
    let rate = |text: &str| text.split_once("/s").and_then(|(rate, _)| amount(rate, kilo));
    // Version 2: everything by name.
    if let Some(io) = named(rest, "io") {
        return Side {
            bytes: amount(io, kilo),
            bandwidth: named(rest, "bw").and_then(rate),
            iops: named(rest, "iops").and_then(decimal),
            runtime_ms: named(rest, "runt").and_then(|time| plain(time.trim_end_matches("msec"))),
            rounded: String::new(),
            ..Side::default()
        };
    }
    // `183MiB/1001msec` in the last brackets.
    let of = rest
        .split(['(', ')'])
        .find_map(|part| part.split_once('/').filter(|(_, time)| time.ends_with("msec")));
    let iops = named(rest, "IOPS");
    let bandwidth = named(rest, "BW");
    // The same in units of 1000, behind it in brackets.
    let again = bandwidth
        .and_then(|text| text.split_once('(')?.1.split_once("/s"))
        .and_then(|(text, _)| amount(text, 1000.0));
    let printed = bandwidth.and_then(rate);
    let carried = printed.zip(again).filter(|(printed, again)| is_carried(bandwidth, *printed, *again));
    Side {
        iops: iops.and_then(decimal),
        bandwidth: carried.map(|(_, again)| again).or(printed),
        bytes: of.and_then(|(bytes, _)| amount(bytes, 1000.0)),
        bytes_carry: of.map_or(0.0, |(bytes, _)| carry(bytes)),
        runtime_ms: of.and_then(|(_, time)| plain(time.trim_end_matches("msec"))),
        rounded: format!(
            "it prints IOPS={}, BW={}",
            iops.unwrap_or("none"),
            bandwidth.and_then(|text| text.split(' ').next()).unwrap_or("none")
        ),
        ..Side::default()
    }
}

/// `total=r=967045/w=0/d=0, short=...`, later `total=46832,20027,0,0 short=0,0,0,0 dropped=0,0,0,0`
fn issued(job: &mut Job, rest: &str) {
    let Some((_, totals)) = rest.split_once("total=") else { return };
    let totals = match totals.split_once(" short=") {
        Some((totals, _)) => totals,
        None => totals.split(", short").next().unwrap_or_default(),
    };
    for (at, count) in totals.trim().split([',', '/']).take(4).enumerate() {
        let count = count.rsplit('=').next().and_then(plain);
        match job.sides.get_mut(at) {
            Some(side) => side.ios = count,
            // The fourth are syncs.
            None => job.sync.n = count.filter(|count| *count > 0.0),
        }
    }
}

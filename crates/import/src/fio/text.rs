//! fio's text to jobs: a line of what each job is to do, later a block of what it did.
//!
//! Version 2 writes `read : io=3777.6MB, bw=64466KB/s, iops=16116, runt= 60003msec`, where KB is
//! 1024 bytes; version 3 `read: IOPS=46.8k, BW=183MiB/s (192MB/s)(183MiB/1001msec)`, rounded to
//! three or four digits: with the counts of the line `issued rwts` and the time it is computed
//! again.

use super::announced::{Announced, announced};
use super::disks::{Disk, Disks};
use super::fields::{issued, percentiles, side, steady};
use super::numbers::{decimal, named, plain, whole};
use super::recount::{deepen, deepest, fits, recount, sharpen};
use super::{Direction, DirectionStats, Job, RUNS_APART, SEVERAL, Spread, terse};
use crate::faults::short;
use model::units;

/// No run has as many jobs, nor a file as many runs.
const MAX_JOBS: usize = 5000;

/// Announcements above the nearest one that are searched for a job's own.
const MAX_TRIED: usize = 20;

/// The first version that loses no carry where it rounds.
const CARRIES_FROM: (u32, u32) = (3, 26);

/// What is said of a result that no announcement fits.
const OF_ANOTHER: &str = "the job announced above it has other directions or block sizes";

/// Whether a line is one of fio's own: a job announced, or its result.
pub fn begins(line: &str) -> bool {
    announced(line).is_some() || is_result(line) || terse::is_line(line)
}

/// Whether a line begins the result of a job.
pub fn is_result(line: &str) -> bool {
    line.contains("(groupid=") && line.contains("err=")
}

/// The version in a line that says nothing else: `fio-3.33`.
pub fn version(line: &str) -> Option<&str> {
    line.trim().strip_prefix("fio-").filter(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
}

/// What the text of one run holds.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub jobs: Vec<Job>,
    pub facts: Vec<(String, String)>,
    pub disks: Disks,
    /// Of each job that has a result its process.
    pub processes: Vec<String>,
    /// The first line that could not be understood, and how many there are.
    pub unknown: Option<(String, usize)>,
    /// Reports while it went on that were passed over.
    pub passed: usize,
    /// Lines that begin a job beyond the most that are read.
    pub left_out: usize,
}

/// Where the lines that follow belong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Within {
    Nothing,
    DirectionStats(Direction),
    Unified,
    Sync,
}

/// What a text of one run holds.
pub fn run(lines: &[&str]) -> Run {
    let mut reader = Reader::default();
    for line in lines {
        reader.take(line);
    }
    reader.settle();
    reader.drop_terse();
    let Reader {
        mut jobs, facts, announced, unknown, mut disks, passed, left_out, seen, summed, listed, ..
    } = reader;
    for (job, seen) in jobs.iter_mut().zip(&seen) {
        deepen(job, seen.deepest);
        sharpen(job);
        recount(job);
    }
    disks.is_without = summed && !listed;
    disks.tell(&mut jobs);
    let unfinished = announced.into_iter().filter(|one| !one.done);
    jobs.extend(unfinished.map(|one| Job {
        name: one.name,
        group: one.group,
        options: if one.several { [one.options, vec![("numjobs".to_string(), SEVERAL.to_string())]].concat() } else { one.options },
        direct_untold: true,
        unfinished: Some(
            "started, no test finished: it was announced, but the run, or the file, ended before a result".to_string(),
        ),
        ..Job::default()
    }));
    let processes = seen.into_iter().map(|seen| seen.process).collect();
    Run { jobs, facts, disks, processes, unknown, passed, left_out }
}

/// Where a job's result comes from.
#[derive(Debug)]
struct ResultOrigin {
    process: String,
    /// In which report it stands; a report ends with the sums of its groups.
    report: usize,
    /// The place of its announcement.
    announced: Option<usize>,
    /// As many I/Os were in flight, or more.
    deepest: f64,
}

#[derive(Default)]
struct Reader {
    jobs: Vec<Job>,
    facts: Vec<(String, String)>,
    announced: Vec<Announced>,
    within: Option<Within>,
    /// Unit and kind of the percentiles that follow.
    percentiles: Option<(&'static str, f64)>,
    /// 1024 where KB is that.
    kilo: f64,
    /// This version rounds without losing a carry.
    carries: bool,
    unknown: Option<(String, usize)>,
    /// The job that the lines at hand are of.
    current: usize,
    seen: Vec<ResultOrigin>,
    report: usize,
    summed: bool,
    /// A list of devices has begun.
    listed: bool,
    /// The last report that had a job again, and how many there were.
    again: Option<usize>,
    passed: usize,
    left_out: usize,
    disks: Disks,
}

impl Reader {
    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        let is_full = match announced(line) {
            Some(_) => self.announced.len() >= MAX_JOBS,
            None => self.jobs.len() >= MAX_JOBS && begins(line),
        };
        if is_full {
            self.within = None;
            self.left_out += 1;
            return;
        }
        if let Some(version) = version(line) {
            self.facts.push(("fio".to_string(), short(version)));
            self.kilo = if version.starts_with(['1', '2']) { 1024.0 } else { 1000.0 };
            let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
            let version = parts.next().map(|major| (major, parts.next().unwrap_or(0)));
            self.carries = version.is_some_and(|version| version >= CARRIES_FROM);
        } else if let Some(one) = announced(line) {
            self.within = None;
            self.announced.push(one);
        } else if trimmed == "..." {
            if let Some(last) = self.announced.last_mut() {
                last.several = true;
            }
        } else if is_result(line) {
            self.begin(line);
        } else if terse::is_line(line) {
            self.terse(line);
        } else if trimmed.starts_with("Run status group") || trimmed.starts_with("Disk stats") {
            self.within = None;
            self.summed = true;
            self.listed |= trimmed.starts_with("Disk stats");
        } else if self.within.is_some() && !trimmed.is_empty() {
            self.within(trimmed);
        } else if line.starts_with(' ')
            && let Some(disk) = Disk::of_line(trimmed)
        {
            self.disks.put(disk);
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
        let group = group.trim().parse().ok().map(|group: i64| group.clamp(0, RUNS_APART - 1));
        let jobs: Option<u64> = named(jobs, "jobs").and_then(|jobs| jobs.parse().ok());
        self.report += usize::from(std::mem::take(&mut self.summed));
        let process =
            rest.split_once("pid=").map(|(_, rest)| rest.split(':').next().unwrap_or_default().trim());
        let process = process.unwrap_or_default().to_string();
        // The same process again: what it reported before was of the run while it went on.
        let mut numbered = self.jobs.iter().zip(&self.seen);
        let earlier = numbered.position(|(job, seen)| {
            job.name == name
                && job.group == group
                && !["", "0"].contains(&process.as_str())
                && seen.process == process
        });
        let same = |one: &Announced| one.name == name && (one.group == group || group.is_none()) && !one.done;
        // Of several alike each has a block of its own, unless they are reported as one.
        let place = self.announced.iter().position(same).filter(|_| earlier.is_none());
        let known = place.and_then(|place| self.announced.get_mut(place)).map(|one| {
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
                (*known, seen.report) = (job, self.report);
                self.passed += usize::from(self.again.replace(self.report) != Some(self.report));
            }
            None => {
                self.jobs.push(job);
                self.seen.push(ResultOrigin { process, report: self.report, announced: place, deepest: 0.0 });
            }
        }
        self.within = Some(Within::Nothing);
        self.percentiles = None;
    }

    /// Drops a job's terse lines if the text also reports that job in words.
    fn drop_terse(&mut self) {
        let is_terse: Vec<bool> = self.seen.iter().map(|seen| terse::is_line(&seen.process)).collect();
        let is_said = |job: &Job| {
            let mut all = self.jobs.iter().zip(&is_terse);
            all.any(|(other, is_terse)| !is_terse && other.name == job.name && other.group == job.group)
        };
        let kept: Vec<bool> =
            self.jobs.iter().zip(&is_terse).map(|(job, terse)| !terse || !is_said(job)).collect();
        let mut at = kept.iter();
        self.jobs.retain(|_| at.next() == Some(&true));
        let mut at = kept.iter();
        self.seen.retain(|_| at.next() == Some(&true));
    }

    /// A line that is the result of a job; other text does not replace it.
    fn terse(&mut self, line: &str) {
        let Some(terse::Terse { fio, job, disks, .. }) = terse::read(line) else { return };
        self.within = None;
        let is_own = |known: &Job| known.name == job.name && known.group == job.group;
        let own = (0..self.jobs.len()).filter(|at| is_own(&self.jobs[*at]));
        let own: Vec<(usize, terse::Relation)> =
            own.map(|at| (at, terse::relation(&self.seen[at].process, line))).collect();
        if own.iter().any(|(_, relation)| *relation == terse::Relation::Copy) {
            return;
        }
        self.facts.extend(fio.map(|fio| ("fio".to_string(), short(fio))));
        disks.into_iter().for_each(|disk| self.disks.put(disk));
        let later = own.iter().rfind(|(_, relation)| *relation == terse::Relation::Later);
        if let Some((at, _)) = later {
            self.passed += 1;
            self.jobs[*at] =
                Job { options: self.jobs[*at].options.clone(), untold: self.jobs[*at].untold, ..job };
            self.seen[*at].process = line.to_string();
            return;
        }
        let place = self.announced.iter().position(|one| one.name == job.name && one.group == job.group);
        let known = place.and_then(|place| self.announced.get_mut(place)).map(|one| {
            one.done = true;
            one.options.clone()
        });
        self.current = self.jobs.len();
        self.jobs.push(Job { untold: known.is_none(), options: known.unwrap_or_default(), ..job });
        let seen =
            ResultOrigin { process: line.to_string(), report: self.report, announced: place, deepest: 0.0 };
        self.seen.push(seen);
    }

    /// One report of several jobs is of all of its group (group_reporting): none of them has
    /// another. Whether they are of several kinds.
    fn as_one(&mut self, group: Option<i64>) -> bool {
        let mut all: Vec<&mut Announced> =
            self.announced.iter_mut().filter(|one| one.group == group).collect();
        all.iter_mut().for_each(|one| one.done = true);
        all.windows(2).any(|two| two[0].options != two[1].options)
    }

    /// Results belong to the announcements of their name that are nearest above them, unless their
    /// directions or blocks are those of another one; where they fit none, nothing is known.
    fn settle(&mut self) {
        let alone = |job: &Job| !job.merged && job.jobs.unwrap_or(1) == 1;
        let mut names: Vec<(String, Option<i64>)> =
            self.jobs.iter().filter(|job| alone(job)).map(|job| (job.name.clone(), job.group)).collect();
        names.sort();
        names.dedup();
        for (name, group) in names {
            let is_named = |job: &Job| job.name == name && job.group == group;
            let own: Vec<usize> = (0..self.announced.len())
                .filter(|at| {
                    let one = &self.announced[*at];
                    one.name == name && (one.group == group || group.is_none())
                })
                .collect();
            let jobs: Vec<usize> = (0..self.jobs.len())
                .filter(|at| is_named(&self.jobs[*at]) && self.seen[*at].announced.is_some())
                .collect();
            if own.is_empty() || !jobs.iter().all(|at| alone(&self.jobs[*at])) {
                continue;
            }
            let mut free: Vec<usize> = own[..own.len().saturating_sub(jobs.len())].to_vec();
            let nearest = &own[own.len().saturating_sub(jobs.len())..];
            for (job, near) in jobs.iter().zip(nearest) {
                let mut candidate = *near;
                let is_its = |at: &usize| fits(&self.jobs[*job], &self.announced[*at].options);
                let far = free.len().saturating_sub(MAX_TRIED);
                if !is_its(&candidate)
                    && let Some(other) = free[far..].iter().rposition(is_its)
                {
                    std::mem::swap(&mut free[far + other], &mut candidate);
                }
                let one = &mut self.announced[candidate];
                one.done = true;
                self.jobs[*job].options.clone_from(&one.options);
                self.jobs[*job].block_rounding = one.block_rounding;
            }
            free.iter().for_each(|at| self.announced[*at].done = false);
        }
        for job in self.jobs.iter_mut().filter(|job| !job.merged && !job.untold) {
            if !fits(job, &job.options) {
                job.options.retain(|(name, _)| name == "numjobs");
                job.untold = true;
                job.hints.push(OF_ANOTHER.to_string());
            }
        }
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
                let way =
                    Direction::ALL.into_iter().find(|way| way.word() == kind).unwrap_or(Direction::Read);
                self.within = Some(Within::DirectionStats(way));
                job.sides[way as usize] = side(rest, kilo, self.carries);
            }
            // Both directions as one (unified_rw_reporting).
            "mixed" => {
                self.within = Some(Within::Unified);
                job.unified = Some(side(rest, kilo, self.carries));
            }
            "steadystate" => job.steady = steady(rest, kilo),
            "fsync/fdatasync/sync_file_range" => self.within = Some(Within::Sync),
            // Shares of ranges, which percentiles cover, begin with a number.
            "lat" if rest.contains('%') => {}
            "slat" | "clat" | "lat" | "sync" => {
                if let (Some(scale), Some(spread)) =
                    (units::nanoseconds(unit.trim()), spread(job, self.within, kind))
                {
                    let value = |name: &str| whole(rest, name).and_then(decimal).map(|value| value * scale);
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
                self.percentiles = units::nanoseconds(unit.trim()).map(|scale| (kind, scale));
            }
            "cpu" => {
                let share = |name: &str| whole(rest, name).and_then(|text| plain(text.trim_end_matches('%')));
                job.cpu = share("usr").zip(share("sys")).map(|(user, system)| user + system);
            }
            "issued" | "issued rwt" | "issued rwts" | "issued rwtf" => issued(job, rest),
            // Samples of half a second, depths, and what is not compared.
            "IO depths" => {
                let seen = self.seen.get_mut(self.current);
                seen.into_iter().for_each(|seen| seen.deepest = deepest(rest));
            }
            "bw" | "iops" | "submit" | "complete" | "latency" | "zone resets" => {}
            // With `continue_on_error` a job's own error is 0.
            "errors" => {
                let count = named(rest, "total").and_then(plain).unwrap_or(0.0);
                if count > 0.0 {
                    job.passed_over = format!(
                        "fio went on after {count:.0} errors, the first {}",
                        named(rest, "first_error").map_or("untold".to_string(), short)
                    );
                }
            }
            _ => {
                let text = short(line);
                self.unknown.get_or_insert((text, 0)).1 += 1;
            }
        }
    }
}

fn of<'a>(side: &'a mut DirectionStats, kind: &str) -> &'a mut Spread {
    match kind {
        "slat" => &mut side.slat,
        "clat" => &mut side.clat,
        _ => &mut side.lat,
    }
}

fn spread<'a>(job: &'a mut Job, within: Option<Within>, kind: &str) -> Option<&'a mut Spread> {
    match (within?, kind) {
        (_, "sync") | (Within::Sync, _) => Some(&mut job.sync),
        (Within::DirectionStats(way), kind) => Some(of(&mut job.sides[way as usize], kind)),
        (Within::Unified, kind) => job.unified.as_mut().map(|side| of(side, kind)),
        (Within::Nothing, _) => None,
    }
}

//! Results of fio: its JSON (`json`, `json+`; `json.rs`), its text (`text.rs`) and its terse lines
//! (`terse.rs`), with whatever stands around them (`complaints.rs`). All come to jobs, and from
//! there to series (`figures.rs`).
//!
//! Units: fio 3 prints bytes a second and nanoseconds, fio 2 KiB a second and microseconds; in the
//! text each line names its own. A `k` in a size is 1024.

mod announced;
mod complaints;
mod crew;
mod disks;
mod fields;
mod figures;
mod json;
mod latencies;
mod numbers;
mod recount;
mod runs;
mod snapshots;
mod terse;
#[cfg(test)]
mod tests;
mod text;
mod wrapped;

use super::builder::Builder;
use super::embedded::embedded;
use super::faults::Faults;
use super::kit::context::{ContextTracker, RunContext, headings};
use super::{Format, Imported, Tool};

pub(crate) const TOOL: Tool = Tool {
    json: &["{\"fioversion\":", "[{\"fioversion\":"],
    ..Tool::of("fio (JSON, text and terse)", is_one, |text| Ok(read(text)))
};

const FORMAT: Format = Format("fio result");

/// More jobs than this in one file are a mistake or an attack.
const MAX_JOBS: usize = 200;

/// What `numjobs` is where a text shows only that there are several.
const SEVERAL: &str = "several";

/// Groups are numbered anew in each run of a text.
const RUNS_APART: i64 = 1 << 20;

/// More results than this in one file are a mistake or an attack.
const MAX_RESULTS: usize = 500;

/// The way data went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Read,
    Write,
    Trim,
}

impl Direction {
    const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    const fn word(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// One kind of latency, ns.
#[derive(Clone, Debug, Default, PartialEq)]
struct Spread {
    mean: Option<f64>,
    max: Option<f64>,
    /// How many I/Os it is of.
    n: Option<f64>,
    /// Percent as printed, and ns; `None` for what is no number.
    percentiles: Vec<(String, Option<f64>)>,
}

/// What a job did in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
struct DirectionStats {
    ios: Option<f64>,
    bytes: Option<f64>,
    /// As much may be missing of these bytes.
    bytes_carry: f64,
    runtime_ms: Option<f64>,
    iops: Option<f64>,
    /// As much may be missing of `iops`.
    iops_carry: f64,
    /// bytes/s.
    bandwidth: Option<f64>,
    /// How `iops` and `bandwidth` are printed, where that is with few digits.
    rounded: String,
    /// Submission, completion, and both together.
    slat: Spread,
    clat: Spread,
    lat: Spread,
}

impl DirectionStats {
    fn is_empty(&self) -> bool {
        let zero = |value: Option<f64>| value.is_none_or(|value| value == 0.0);
        // I/Os that were issued and moved nothing are counted, too.
        let moved_none = zero(self.ios) || self.bytes == Some(0.0);
        let nothing = moved_none && zero(self.bytes) && zero(self.iops) && zero(self.bandwidth);
        // A line that was cut prints none of them, which is not nothing.
        let is_told = [self.ios, self.bytes, self.iops, self.bandwidth].iter().any(Option::is_some);
        nothing && (is_told || self.rounded.is_empty())
    }
}

/// What fio reports about a steady state that it was asked to wait for.
#[derive(Clone, Debug, Default, PartialEq)]
struct Steady {
    attained: bool,
    iops: Option<f64>,
    /// bytes/s.
    bandwidth: Option<f64>,
}

/// One job, or the jobs that one report is of.
#[derive(Clone, Debug, Default, PartialEq)]
struct Job {
    name: String,
    host: String,
    /// By fio's names; what the job says comes before what holds for all of them.
    options: Vec<(String, String)>,
    group: Option<i64>,
    /// How many jobs these figures are of, as far as that is given.
    jobs: Option<u64>,
    error: i64,
    error_words: String,
    /// Errors after which it went on, in words.
    passed_over: String,
    sides: [DirectionStats; 3],
    /// fsync and its like.
    sync: Spread,
    job_runtime_ms: Option<f64>,
    /// User and system time, percent of the jobs' time.
    cpu: Option<f64>,
    /// `direct` is not given (text), which is not the same as its default.
    direct_untold: bool,
    /// The job was announced and has no result.
    unfinished: Option<String>,
    /// A result without the line that announces the job: its work is unknown.
    untold: bool,
    /// The figures are of jobs of several kinds in one.
    merged: bool,
    /// Both directions in one report (`unified_rw_reporting`).
    unified: Option<DirectionStats>,
    /// The reads and the writes among those, where the text says them.
    mix: Option<[f64; 2]>,
    /// Half of the last digit of a block size as it is printed, bytes.
    block_rounding: f64,
    steady: Option<Steady>,
    /// Its files are on a device, and the report names none.
    no_device_named: bool,
    /// What else is to be known of its figures.
    hints: Vec<String>,
}

impl Job {
    /// The value of the first of these options that is there.
    fn option(&self, names: &[&str]) -> Option<&str> {
        let named = |name: &&str| self.options.iter().find(|(known, _)| known == name);
        names.iter().find_map(named).map(|(_, value)| value.as_str())
    }

    fn side(&self, way: Direction) -> &DirectionStats {
        &self.sides[way as usize]
    }

    /// Whether it reads back and checks what it wrote.
    fn verifies(&self) -> bool {
        self.option(&["verify"]).is_some_and(|method| !crew::OFF.contains(&method))
    }
}

/// Whether a text is a result of fio.
fn is_one(text: &str) -> bool {
    text.contains("\"fio version\"") || text.lines().any(text::begins)
}

/// The results in a text: one for each document and host, or one for each run of its words that is
/// another one's.
fn read(text: &str) -> Vec<Imported> {
    let found = embedded(text);
    let ours: Vec<(&serde_json::Value, Vec<&str>)> = found
        .documents
        .iter()
        .zip(found.headed())
        .filter(|(one, _)| one.get("fio version").is_some())
        .collect();
    if ours.is_empty() {
        return runs::sheets(text).into_iter().map(Sheet::imported).collect();
    }
    let mut sheets: Vec<(Sheet, RunContext)> = Vec::new();
    let mut tracker = ContextTracker::new(found.lines.iter().copied());
    let (mut passed, mut repeated, mut left_out) = (0, 0, found.left_out);
    let mut known = std::collections::BTreeSet::new();
    let mut above: Vec<&str> = Vec::new();
    for (at, (document, own)) in ours.iter().enumerate() {
        above.extend(own);
        let is_last = at + 1 == ours.len();
        if ours.get(at + 1).is_some_and(|(next, _)| snapshots::is_earlier(document, next)) {
            passed += 1;
            continue;
        }
        if !known.insert(document.to_string()) {
            repeated += 1;
            continue;
        }
        let is_cut = found.cut && is_last;
        let (jobs, facts, remarks) = json::jobs(document, is_cut);
        let mut sheet = Sheet { jobs, facts, remarks, ..Sheet::default() };
        sheet.remarks.extend(snapshots::remark(std::mem::take(&mut passed)));
        let above = std::mem::take(&mut above).into_iter().filter(|line| !text::begins(line));
        let context = runs::context(above, &mut tracker);
        // What stands around is said once, with the first.
        if sheets.is_empty() {
            complaints::read(&found.lines, &mut sheet);
            if found.lines.iter().any(|line| text::begins(line)) {
                sheet.remarks.push("results as text around the JSON were not read".to_string());
            }
        }
        if is_cut {
            sheet.faults.interrupted("the file ends in the middle of its JSON");
        }
        sheets.push((sheet, context));
    }
    let all: Vec<&RunContext> = sheets.iter().map(|(_, context)| context).collect();
    let headings = headings(&all);
    let several = ours.len() > 1;
    let mut results: Vec<Imported> = Vec::new();
    for ((mut sheet, context), heading) in sheets.into_iter().zip(headings) {
        if several {
            sheet.facts.extend(runs::facts(&context, heading));
            sheet
                .jobs
                .iter_mut()
                .filter(|job| job.host.is_empty())
                .for_each(|job| job.host.clone_from(&context.host));
        }
        for sheet in sheet.hosts() {
            if results.len() < MAX_RESULTS { results.push(sheet.imported()) } else { left_out += 1 }
        }
    }
    if let Some(last) = results.last_mut() {
        last.remarks.extend(snapshots::repeated(repeated));
        if left_out > 0 {
            last.remarks.push(format!("{left_out} reports were left out: the file has too many"));
        }
    }
    results
}

/// One result on its way to series.
#[derive(Default)]
struct Sheet {
    jobs: Vec<Job>,
    facts: Vec<(String, String)>,
    remarks: Vec<String>,
    faults: Faults,
}

impl Sheet {
    /// One for each host: a client's report has the jobs of all its servers.
    fn hosts(mut self) -> Vec<Sheet> {
        let mut names: Vec<String> = Vec::new();
        for job in &self.jobs {
            if !names.contains(&job.host) {
                names.push(job.host.clone());
            }
        }
        if names.len() < 2 {
            return vec![self];
        }
        let jobs = std::mem::take(&mut self.jobs);
        let (facts, remarks) = (self.facts.clone(), self.remarks.clone());
        let mut sheets: Vec<Sheet> = vec![self];
        let more = |_| Sheet { facts: facts.clone(), remarks: remarks.clone(), ..Sheet::default() };
        sheets.extend((1..names.len()).map(more));
        let others = names.len() - 1;
        for mut job in jobs {
            let Some(at) = names.iter().position(|name| *name == job.host) else { continue };
            job.hints.extend(runs::among(others));
            sheets[at].jobs.push(job);
        }
        sheets
    }

    fn imported(mut self) -> Imported {
        if self.jobs.len() > MAX_JOBS {
            let more = self.jobs.len() - MAX_JOBS;
            self.remarks.push(format!("{more} jobs were left out: the file has more than {MAX_JOBS}"));
            self.jobs.truncate(MAX_JOBS);
        }
        let host = self.jobs.iter().map(|job| job.host.as_str()).find(|host| !host.is_empty());
        let mut builder = Builder::new(FORMAT, host.unwrap_or_default());
        for (label, value) in &self.facts {
            builder.fact(label, value);
        }
        builder.remarks.push(
            "fio prints one figure per run, so no spread is known; its jobs run wherever the scheduler puts them, unless an option pins them"
                .to_string(),
        );
        builder.remarks.append(&mut self.remarks);
        figures::figures(&self.jobs, &mut builder, &mut self.faults);
        if builder.is_empty() {
            figures::nothing(&mut builder, "it has no job that moved any data");
        }
        let mut imported = Imported { findings: self.faults.findings(), ..builder.finish() };
        figures::headlines(&mut imported);
        imported
    }
}

//! A text of several runs: where each begins, and which of them are measurements of one system.
//!
//! Runs are of one result as long as they do not say the same twice of what may be different:
//! another version of fio, another heading, another command, another device.

use std::collections::BTreeSet;

use super::announced::announced;
use super::text::{self, Run};
use super::{Job, RUNS_APART, Sheet, complaints, snapshots};
use crate::above::{command, heading};

/// More runs than this in one text are a mistake or an attack.
const MOST: usize = 500;

/// The lines of one run, and what stands above them.
#[derive(Debug)]
struct Part<'a> {
    lines: Vec<&'a str>,
    heading: String,
    command: String,
    run: Run,
}

/// The results in a text without JSON, on their way to series.
pub fn sheets(text: &str) -> Vec<Sheet> {
    let hosts = by_host(text);
    let others = hosts.len() - 1;
    let mut all = Vec::new();
    for (host, lines) in hosts {
        for mut sheet in of_host(&lines) {
            for job in &mut sheet.jobs {
                job.host.clone_from(&host);
                job.hints.extend(among(others));
            }
            all.push(sheet);
        }
    }
    all
}

/// What is said of jobs that a client had run on several hosts at once.
pub fn among(others: usize) -> Option<String> {
    let hosts = if others == 1 { "host" } else { "hosts" };
    (others > 0).then(|| format!("at the same time as jobs on {others} other {hosts}"))
}

/// The lines of each host, where a client wrote what its servers did: `<HOST> ` begins what comes
/// from one, and `hostname=HOST, ... fio=fio-3.33` named it before. The sum of all is left out.
fn by_host(text: &str) -> Vec<(String, Vec<&str>)> {
    let named = |line: &str| {
        let (name, rest) = line.strip_prefix("hostname=")?.split_once(',')?;
        rest.contains("fio=fio-").then(|| name.trim().to_string())
    };
    let mut hosts: Vec<(String, Vec<&str>)> = Vec::new();
    for name in text.lines().filter_map(named).take(MOST) {
        if !hosts.iter().any(|(known, _)| *known == name) {
            hosts.push((name, Vec::new()));
        }
    }
    if hosts.is_empty() {
        return vec![(String::new(), text.lines().collect())];
    }
    let mut at = Some(0);
    for line in text.lines() {
        if let Some(own) = named(line) {
            let version = line.split("fio=").nth(1).and_then(|rest| rest.split(',').next());
            let host = hosts.iter_mut().find(|(name, _)| *name == own);
            host.zip(version).into_iter().for_each(|((_, lines), version)| lines.push(version));
            continue;
        }
        let marked = line.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>'));
        let marked = marked.and_then(|(name, rest)| {
            Some((hosts.iter().position(|(known, _)| known == name)?, rest.strip_prefix(' ').unwrap_or(rest)))
        });
        let line = marked.map_or(line, |(_, rest)| rest);
        at = marked.map(|(host, _)| host).or(at).filter(|_| !line.starts_with("All clients: "));
        if let Some((_, lines)) = at.and_then(|at| hosts.get_mut(at)) {
            lines.push(line);
        }
    }
    hosts
}

fn of_host(lines: &[&str]) -> Vec<Sheet> {
    let mut parts = cut(lines);
    let left_out = parts.len().saturating_sub(MOST);
    parts.truncate(MOST);
    let (mut systems, mut known, mut repeated): (Vec<Vec<Part>>, _, _) = (Vec::new(), BTreeSet::new(), 0);
    let mut above = String::new();
    for lines in parts {
        let mut part = part(lines);
        match part.heading.is_empty() {
            true => part.heading.clone_from(&above),
            false => above.clone_from(&part.heading),
        }
        if let Some(same) = part.run.own()
            && !known.insert(same)
        {
            repeated += 1;
            continue;
        }
        match systems.last_mut().filter(|system| system.iter().all(|other| !part.is_apart(other))) {
            Some(system) => system.push(part),
            None => systems.push(vec![part]),
        }
    }
    let several = systems.len() > 1;
    let mut sheets: Vec<Sheet> = systems.into_iter().map(|parts| sheet(parts, several)).collect();
    if let Some(last) = sheets.last_mut() {
        last.remarks.extend(snapshots::repeated(repeated));
        if left_out > 0 {
            last.remarks.push(format!("{left_out} runs were left out: the file has more than {MOST}"));
        }
    }
    sheets
}

/// The lines of each run of a text: a job that is announced after a result, or after the program
/// started or was called, is another run's.
fn cut<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut parts = Vec::new();
    // Where the run at hand begins, and where the last of its own lines ends.
    let (mut from, mut own) = (0, 0);
    let (mut begun, mut started, mut ended, mut called) = (false, false, false, false);
    let mut group = 0;
    for (at, line) in lines.iter().enumerate() {
        let one = announced(line);
        let is_version = text::version(line).is_some();
        let is_earlier = one.as_ref().and_then(|one| one.group).is_some_and(|number| number < group);
        let next = one.is_some() && begun && (started || ended || called || is_earlier)
            || one.is_some() && ended
            || is_version && ended;
        if next {
            parts.push(lines[from..own].to_vec());
            from = own;
            (begun, started, ended, called) = (false, false, false, false);
        }
        let is_own = match &one {
            Some(one) => {
                (begun, group) = (true, one.group.unwrap_or(0));
                true
            }
            None if is_version => {
                started |= begun;
                true
            }
            None if text::is_result(line) => {
                ended = true;
                true
            }
            None if command(line, "fio").is_some() => {
                called |= begun || ended;
                false
            }
            None => {
                let says = |begin: &str| line.trim_start().starts_with(begin);
                started |= begun && ["Starting ", "Jobs: "].into_iter().any(says);
                !called && is_noise(line)
            }
        };
        if is_own {
            own = at + 1;
            called &= one.is_none();
        }
    }
    parts.push(lines[from..].to_vec());
    parts
}

/// Whether a line is what fio prints around its results.
pub fn is_noise(line: &str) -> bool {
    let begins = [
        "fio: ",
        "Run status group",
        "Disk stats",
        "Jobs: ",
        "Starting ",
        "^C",
        "...",
        "note: ",
        "WARNING: ",
    ];
    let trimmed = line.trim_start();
    line.starts_with([' ', '\t'])
        || begins.iter().any(|begin| trimmed.starts_with(begin))
        || line.contains("Laying out IO file")
        || line.contains("[eta ")
}

/// A run with what stands above it: the last line that is no command and none of fio's.
fn part(lines: Vec<&str>) -> Part<'_> {
    let is_begun = |line: &&&str| !text::begins(line) && text::version(line).is_none();
    let above = || lines.iter().take_while(is_begun);
    let called = above().filter_map(|line| command(line, "fio")).last();
    let said = above().filter(|line| command(line, "fio").is_none() && !is_noise(line));
    let said = said.filter_map(|line| heading(line)).last();
    let run = text::run(&lines);
    Part { heading: said.unwrap_or_default(), command: called.unwrap_or_default(), run, lines }
}

impl Run {
    /// What no other run has: its processes, when it ran, and what it did.
    fn own(&self) -> Option<String> {
        let ran: Vec<&String> =
            self.facts.iter().filter(|(label, _)| label == "ran").map(|(_, value)| value).collect();
        let is_told = self.processes.iter().any(|process| !process.is_empty()) && !ran.is_empty();
        is_told.then(|| format!("{:?} {ran:?} {:?}", self.processes, self.jobs))
    }

    fn version(&self) -> Option<&str> {
        self.facts.iter().find(|(label, _)| label == "fio").map(|(_, value)| value.as_str())
    }

    /// What its jobs did, as their keys tell it.
    fn kinds(&self) -> BTreeSet<(&str, &[(String, String)])> {
        let done = self.jobs.iter().filter(|job| job.unfinished.is_none());
        done.map(|job| (if job.untold { job.name.as_str() } else { "" }, job.options.as_slice())).collect()
    }
}

impl Part<'_> {
    /// Whether it may be of another system than an earlier run.
    fn is_apart(&self, other: &Part) -> bool {
        let (own, others) = (self.run.kinds(), other.run.kinds());
        if own.is_empty() || others.is_empty() {
            return false;
        }
        let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
        let devices = |run: &Run| run.disks.names().join(",");
        self.run.version().zip(other.run.version()).is_some_and(|(own, other)| own != other)
            || own.intersection(&others).next().is_some()
                && (self.heading != other.heading
                    || differ(&self.command, &other.command)
                    || differ(&devices(&self.run), &devices(&other.run)))
    }
}

/// The runs of one system as one result.
fn sheet(parts: Vec<Part>, several: bool) -> Sheet {
    let mut sheet = Sheet::default();
    let (mut unknown, mut passed, mut left_out) = (None::<(String, usize)>, 0, 0);
    let mut lines = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for (at, Part { lines: own, heading, command, run }) in parts.into_iter().enumerate() {
        let told = [("heading", heading), ("command", command)].into_iter();
        let told = told.filter(|(_, value)| several && at == 0 && !value.is_empty());
        sheet.facts.extend(told.map(|(label, value)| (label.to_string(), value)));
        let before = at as i64 * RUNS_APART;
        let jobs = run.jobs.into_iter().map(|job| Job { group: job.group.map(|own| own + before), ..job });
        sheet.jobs.extend(jobs);
        sheet.facts.extend(run.facts);
        for name in run.disks.names() {
            if !devices.iter().any(|known| known == name) {
                devices.push(name.to_string());
            }
        }
        for remark in run.disks.remarks() {
            if !sheet.remarks.contains(&remark) {
                sheet.remarks.push(remark);
            }
        }
        if let Some((first, count)) = run.unknown {
            unknown.get_or_insert((first, 0)).1 += count;
        }
        passed += run.passed;
        left_out += run.left_out;
        lines.extend(own);
    }
    sheet.facts.extend((!devices.is_empty()).then(|| ("device".to_string(), devices.join(", "))));
    sheet.remarks.extend(snapshots::remark(passed));
    if left_out > 0 {
        sheet.remarks.push(format!(
            "only the first jobs of a run were read; {left_out} lines that begin another one were left out: cut the file into parts"
        ));
    }
    if let Some((first, count)) = unknown {
        let lines = if count == 1 { "a line".to_string() } else { format!("{count} lines") };
        sheet
            .remarks
            .push(format!("{lines} of results could not be understood; the first of them: {first:?}"));
    }
    complaints::read(&lines, &mut sheet);
    sheet
}

//! A text of several runs: where each begins, and which of them are measurements of one system.
//!
//! Runs are of one result as long as they do not say the same twice of what may be different:
//! another version of fio, another heading, another command or what stands before it, another
//! device, another day; and as long as no other host or system is named.

use std::collections::BTreeSet;

use super::announced::announced;
use super::text::{self, Run};
use super::{Job, RUNS_APART, Sheet, complaints, recount, snapshots, terse, wrapped};
use crate::above::said;
use crate::builder::unread;
use crate::kit::commands::command;
use crate::kit::context::{ContextTracker, RunContext, headings};

/// More runs than this in one text are a mistake or an attack.
const MAX_RUNS: usize = 500;

/// The lines of one run, and what stands above them.
#[derive(Debug)]
struct Part<'a> {
    lines: Vec<&'a str>,
    context: RunContext,
    run: Run,
}

/// The results in a text without JSON, on their way to series.
pub fn sheets(text: &str) -> Vec<Sheet> {
    let text = wrapped::joined(text);
    let hosts = by_host(&text);
    let others = hosts.len() - 1;
    let mut all = Vec::new();
    for (host, lines) in hosts {
        for mut sheet in of_host(&lines, !host.is_empty()) {
            for job in &mut sheet.jobs {
                if !host.is_empty() {
                    job.host.clone_from(&host);
                }
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
    for name in text.lines().filter_map(named).take(MAX_RUNS) {
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

/// The results of one host; `is_client`: a client wrote what its servers there did at once.
fn of_host(lines: &[&str], is_client: bool) -> Vec<Sheet> {
    let mut parts = cut(lines, is_client);
    let left_out = parts.len().saturating_sub(MAX_RUNS);
    parts.truncate(MAX_RUNS);
    let (mut systems, mut known, mut repeated): (Vec<Vec<Part>>, _, _) = (Vec::new(), BTreeSet::new(), 0);
    let mut tracker = ContextTracker::new(lines.iter().copied());
    for lines in parts {
        let part = part(lines, &mut tracker);
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
    let firsts: Vec<&RunContext> =
        systems.iter().filter_map(|parts| parts.first()).map(|part| &part.context).collect();
    let headings = headings(&firsts);
    let sheets = systems.into_iter().zip(headings);
    let mut sheets: Vec<Sheet> =
        sheets.map(|(parts, heading)| sheet(parts, Some(heading).filter(|_| several))).collect();
    if let Some(last) = sheets.last_mut() {
        last.remarks.extend(snapshots::repeated(repeated));
        if left_out > 0 {
            last.remarks.push(format!("{left_out} runs were left out: the file has more than {MAX_RUNS}"));
        }
    }
    sheets
}

/// What was read of a run whose end is not yet found.
#[derive(Default)]
struct RunProgress<'a> {
    /// Jobs that were announced, and their results.
    announced: usize,
    results: usize,
    group: i64,
    started: bool,
    called: bool,
    /// A line that is none of fio's stands behind its last own one.
    said: bool,
    /// Its sums stand there, behind which only a later report of it can follow.
    summed: bool,
    processes: BTreeSet<&'a str>,
    /// Names that were announced, and whether dots say that jobs of it are several.
    names: Vec<(&'a str, bool)>,
    /// The name and the process of each result.
    ended: BTreeSet<(&'a str, &'a str)>,
    /// Results that are terse lines.
    terse: Vec<&'a str>,
}

/// The name in a line that announces a job or begins its result.
fn name(line: &str) -> &str {
    line.split_once(": (g").map_or("", |(name, _)| name.trim())
}

/// The process of a result.
fn process(line: &str) -> &str {
    // Of a terse line all that it says.
    if terse::is_line(line) {
        return line;
    }
    line.split_once(": pid=").and_then(|(_, rest)| rest.split(':').next()).unwrap_or_default().trim()
}

/// The lines of each run of a text. A job that is announced after a result, or after the program
/// started or was called, is another run's; so is a result behind the sums of one whose processes
/// are others, or behind a heading where all that was announced has its result.
fn cut<'a>(lines: &[&'a str], is_client: bool) -> Vec<Vec<&'a str>> {
    let mut parts = Vec::new();
    // Where the run at hand begins, and where the last of its own lines ends.
    let (mut from, mut own) = (0, 0);
    let mut seen = RunProgress::default();
    for (at, line) in lines.iter().enumerate() {
        let one = announced(line);
        let is_version = text::version(line).is_some();
        let is_terse = terse::is_line(line);
        let is_result = one.is_none() && !is_version && (is_terse || text::is_result(line));
        let is_earlier = one.as_ref().and_then(|one| one.group).is_some_and(|number| number < seen.group);
        let (begun, ended) = (seen.announced > 0, seen.results > 0);
        let next = one.is_some() && begun && (seen.started || ended || seen.called || is_earlier)
            || one.is_some() && ended
            || is_version && ended
            || is_terse && seen.is_another(line)
            || is_result && ended && !is_client && (seen.is_over(&lines[at..]) || seen.is_one_more(line))
            // The program says so before all results.
            || ended && !is_client && line.trim_start().starts_with("Starting ");
        if next {
            parts.push(lines[from..own].to_vec());
            from = own;
            seen = RunProgress::default();
        }
        let is_own = match &one {
            Some(one) => {
                (seen.announced, seen.group) = (seen.announced + 1, one.group.unwrap_or(0));
                seen.names.push((name(line), false));
                true
            }
            None if is_version => {
                seen.started |= seen.announced > 0;
                true
            }
            None if is_result => {
                seen.results += 1;
                seen.summed = false;
                seen.processes.insert(process(line));
                seen.terse.extend(is_terse.then_some(*line));
                seen.ended.insert((name(line), process(line)));
                true
            }
            None if command(line, "fio").is_some() => {
                seen.called |= seen.announced > 0 || seen.results > 0;
                false
            }
            None => {
                let says = |begin: &str| line.trim_start().starts_with(begin);
                if line.trim() == "..." {
                    seen.names.last_mut().into_iter().for_each(|(_, several)| *several = true);
                }
                seen.started |= seen.announced > 0 && ["Starting ", "Jobs: "].into_iter().any(says);
                seen.summed |= says("Run status group");
                let is_noise = is_noise(line);
                seen.said |= !is_noise && is_heading(line);
                !seen.called && is_noise
            }
        };
        if is_own {
            own = at + 1;
            seen.called &= one.is_none();
            seen.said &= !is_result;
        }
    }
    parts.push(lines[from..].to_vec());
    parts
}

impl RunProgress<'_> {
    /// Whether a result is one more of its name than were announced, by another process.
    fn is_one_more(&self, line: &str) -> bool {
        let (name, process) = (name(line), process(line));
        let announced = || self.names.iter().filter(|(known, _)| *known == name);
        let ended = self.ended.iter().filter(|(known, _)| *known == name).count();
        let is_known = announced().count() > 0 && announced().all(|(_, several)| !several);
        is_known && !self.ended.contains(&(name, process)) && ended >= announced().count()
    }

    /// Whether a terse line is another run's of a job that has one.
    fn is_another(&self, line: &str) -> bool {
        let same = |known: &&&str| terse::name(known) == terse::name(line);
        let relation = |known: &&str| terse::relation(known, line);
        let mut own = self.terse.iter().filter(same).map(relation).peekable();
        own.peek().is_some() && own.all(|relation| relation == terse::Relation::Another)
    }

    /// Whether the result that comes next, the first of these lines, is another run's.
    fn is_over(&self, lines: &[&str]) -> bool {
        let is_whole = self.results >= self.announced && (self.said || self.called);
        let ends = |line: &&&str| !line.trim_start().starts_with("Run status group");
        let mut later =
            lines.iter().take_while(ends).filter(|line| text::is_result(line) || terse::is_line(line));
        is_whole || self.summed && later.all(|line| !self.processes.contains(process(line)))
    }
}

/// Whether a line can head a result, and is no rest of a line that was wrapped.
fn is_heading(line: &str) -> bool {
    let has_figure = line.as_bytes().windows(2).any(|two| two[0] == b'=' && two[1].is_ascii_digit());
    !has_figure && said(line).is_some_and(|words| words.contains(char::is_alphabetic))
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
        "note: both ",
        "WARNING: ",
    ];
    let trimmed = line.trim_start();
    line.starts_with([' ', '\t']) && is_figures(trimmed)
        || begins.iter().any(|begin| trimmed.starts_with(begin))
        || line.contains("Laying out IO file")
        || line.contains("[eta ")
}

/// Whether a line that is indented is one of a result: a name, a colon and figures.
fn is_figures(trimmed: &str) -> bool {
    let has_name = trimmed.split_once('=').is_some_and(|(head, _)| head.contains(':'));
    trimmed.is_empty()
        || has_name
        || trimmed.starts_with('|')
        || trimmed.contains(" percentiles (")
        || trimmed.starts_with("fsync/fdatasync")
}

/// A run with what stands above it.
fn part<'a>(lines: Vec<&'a str>, tracker: &mut ContextTracker<'a>) -> Part<'a> {
    let is_begun = |line: &&&str| !text::begins(line) && text::version(line).is_none();
    let context = context(lines.iter().take_while(is_begun).copied(), tracker);
    let run = text::run(&lines);
    Part { context, run, lines }
}

/// What is given of a run that begins below these lines; without a command
/// its start is unknown.
pub fn context<'a>(above: impl Iterator<Item = &'a str>, tracker: &mut ContextTracker<'a>) -> RunContext {
    tracker.context.command = None;
    for line in above.filter(|line| !is_noise(line)) {
        tracker.line(line, "fio");
    }
    tracker.begin()
}

/// What is said of one of several results.
pub fn facts(context: &RunContext, heading: String) -> Vec<(String, String)> {
    let command = context.command.clone().unwrap_or_default();
    let facts = [
        ("heading", heading),
        ("started by", command.before),
        ("started in", context.folder.clone()),
        ("command", command.line),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    facts.map(|(label, value)| (label.to_string(), value)).collect()
}

/// The day of `Tue Oct  7 21:40:10 2025`.
fn day(ran: &str) -> Option<[&str; 3]> {
    let words: Vec<&str> = ran.split_whitespace().collect();
    match words[..] {
        [_, month, day, time, year] if time.contains(':') => Some([month, day, year]),
        _ => None,
    }
}

impl Run {
    /// What no other run has: its processes, when it ran, and what it did.
    fn own(&self) -> Option<String> {
        let ran: Vec<&String> =
            self.facts.iter().filter(|(label, _)| label == "ran").map(|(_, value)| value).collect();
        let is_terse = self.processes.iter().any(|process| terse::is_line(process));
        let is_told = self.processes.iter().any(|process| !process.is_empty()) && !ran.is_empty() || is_terse;
        is_told.then(|| format!("{:?} {ran:?} {:?}", self.processes, self.jobs))
    }

    fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    /// What its jobs did, as their keys give it.
    fn kinds(&self) -> BTreeSet<(&str, &[(String, String)])> {
        let done = self.jobs.iter().filter(|job| job.unfinished.is_none());
        done.map(|job| (if job.untold { job.name.as_str() } else { "" }, job.options.as_slice())).collect()
    }
}

impl Part<'_> {
    /// What its command asks for.
    fn asks(&self) -> &[String] {
        self.context.command.as_ref().map_or(&[], |command| &command.words)
    }

    /// Whether it may be of another system than an earlier run.
    fn is_apart(&self, other: &Part) -> bool {
        let (own, others) = (self.run.kinds(), other.run.kinds());
        if own.is_empty() || others.is_empty() {
            return false;
        }
        let two = |name: &str| self.run.fact(name).zip(other.run.fact(name));
        let days = two("ran").and_then(|(own, other)| day(own).zip(day(other)));
        let commands = [self, other].map(Part::asks);
        let devices = [&self.run, &other.run].map(|run| run.disks.names().join(","));
        two("fio").is_some_and(|(own, other)| own != other)
            || self.context.is_apart(&other.context, false)
            || own.intersection(&others).next().is_some()
                && (self.context.is_apart(&other.context, true)
                    || commands[0] != commands[1] && commands.iter().all(|words| !words.is_empty())
                    || days.is_some_and(|(own, other)| own != other)
                    || devices[0] != devices[1] && devices.iter().all(|names| !names.is_empty()))
    }
}

/// The value of an option of a command that has it once: `--directory=/srv`.
fn option(command: &str, name: &str) -> Option<String> {
    let own = |word: &str| Some(word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('=')?.to_string());
    let mut all = command.split_whitespace().filter_map(own);
    all.next().filter(|_| all.next().is_none())
}

/// Takes what a job was to do from the command above its terse line, which does not give it.
fn explain(job: &mut Job, words: &[String]) {
    let options = terse::job_options(words, &job.name).filter(|options| recount::fits(job, options));
    match options {
        Some(options) => {
            (job.options, job.untold, job.direct_untold) = (options, false, false);
        }
        None if job.untold => job.hints.push(terse::UNTOLD.to_string()),
        None => {}
    }
}

/// The runs of one system as one result, with what heads it where there are several.
fn sheet(parts: Vec<Part>, heading: Option<String>) -> Sheet {
    let mut sheet = Sheet::default();
    let (mut unknown, mut passed, mut left_out) = (None::<(String, usize)>, 0, 0);
    let mut lines = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for (at, Part { lines: own, context, run }) in parts.into_iter().enumerate() {
        let command = context.command.as_ref().map_or("", |command| &command.line);
        // The text itself does not say where the files of a job are.
        let places = ["filename", "directory"].map(|name| (name, option(command, name)));
        let places = places.into_iter().filter_map(|(name, place)| Some((name.to_string(), place?)));
        let places: Vec<(String, String)> = places.collect();
        if let Some(heading) = heading.as_ref().filter(|_| at == 0) {
            sheet.facts.extend(facts(&context, heading.clone()));
        }
        let host = if heading.is_some() { context.host } else { String::new() };
        let before = at as i64 * RUNS_APART;
        let is_terse = run.processes.iter().map(|process| terse::is_line(process));
        let is_terse: Vec<bool> = is_terse.collect();
        for (at, mut job) in run.jobs.into_iter().enumerate() {
            if is_terse.get(at) == Some(&true) {
                explain(&mut job, context.command.as_ref().map_or(&[], |command| &command.words));
            }
            job.group = job.group.map(|own| own + before);
            job.options.extend(places.iter().cloned());
            // The text does not give the option, and after how many writes it made a sync.
            if let (Some(syncs), Some(writes)) = (job.sync.n, job.sides[1].ios) {
                job.options.push(("writes_a_sync".to_string(), format!("{:.0}", writes / syncs)));
            }
            job.host.clone_from(&host);
            sheet.jobs.push(job);
        }
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
        sheet
            .remarks
            .push(format!("{left_out} jobs were left out, since their run has too many: split the file"));
    }
    if let Some((first, count)) = unknown {
        sheet.remarks.push(unread(count, &first));
    }
    complaints::read(&lines, &mut sheet);
    sheet
}

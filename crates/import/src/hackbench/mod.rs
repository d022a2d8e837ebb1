//! Logs of hackbench (rt-tests' text and the old one before it) and of `perf bench sched messaging`
//! and `pipe`: what was pasted from terminals, with or without the commands. Runs of one setting
//! are values of one series; what stands under another heading, on another host or under another
//! mover of tasks is another result.

mod command;
mod lines;
mod meaning;

use std::collections::BTreeMap;

use command::{Invocation, Program};
use lines::{Heads, Line};

use super::builder::{Builder, number, unread};
use super::kit::Number;
use super::kit::context::{APART, ContextTracker, RunContext, says, uncounted};
use super::{Format, Imported, Keyed, Tool};

pub(crate) const TOOL: Tool =
    Tool::of("hackbench; perf bench sched: messaging and pipe", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("hackbench log");
const PERF_MESSAGING: Format = Format("perf bench sched messaging");
const PERF_PIPE: Format = Format("perf bench sched pipe");

/// More runs in one file are a mistake or an attack.
const MAX_RUNS: usize = 2_000;
/// The statistics of one series take time that grows with the square of its values.
const MAX_VALUES: usize = 200;
/// More results in one file are a mistake or an attack, too.
const MAX_RESULTS: usize = 200;

const TIMES: &str = "hackbench prints one time per run, in whole milliseconds; the time counts from when all tasks exist until the last ends; its tasks run wherever the scheduler puts them";
const OPERATIONS: &str =
    "perf prints one mean of all its operations; its two tasks run wherever the scheduler puts them";

/// Whether a text is a log, or a part of one.
fn is_one(text: &str) -> bool {
    text.contains("Running ") && text.lines().any(lines::begins)
}

/// The text above the runs that follow.
#[derive(Clone, Debug, Default)]
struct Preamble {
    heading: String,
    /// The runs that the last command starts; empty without one.
    asked: Vec<Invocation>,
    context: RunContext,
}

/// One run, as far as it is printed.
#[derive(Clone, Debug)]
struct Run {
    program: Program,
    tasks: Option<&'static str>,
    groups: Option<u32>,
    fds: Option<u32>,
    loops: Option<u32>,
    bytes: Option<u32>,
    time: Option<Number>,
    each_operation: Option<Number>,
    /// Which part of its text is wrong.
    wrong: Option<String>,
    /// The first line in it that is not part of a log.
    other: Option<String>,
    preamble: Preamble,
}

/// Results of one host, under one heading.
struct Result {
    format: Format,
    heading: String,
    under: String,
    /// The context of the first run of each series.
    context: BTreeMap<String, RunContext>,
    /// The context of its first run.
    first: RunContext,
    builder: Builder,
    runs: usize,
    /// How many of them have no value, and why the first has none.
    failed: Option<(String, usize)>,
    /// How many values each series has so far, and how many were left out.
    values: BTreeMap<String, usize>,
    left_out: usize,
}

/// The results in a text, in its order.
fn read(text: &str) -> Vec<Imported> {
    let lines = lines::read(text);
    let mut log = Log { heads: lines::heads(&lines), ..Log::default() };
    lines.into_iter().for_each(|line| log.take(line));
    if log.run.as_ref().is_some_and(|run| run.time.is_none()) {
        log.orphans.push("the last run started, no test finished: the text ends in it".to_string());
    }
    log.end();
    let Log { mut results, mut orphans, others, runs, .. } = log;
    tell_apart(&mut results);
    let mut all: Vec<Imported> = Vec::new();
    for mut result in results {
        if all.is_empty() {
            if runs > MAX_RUNS {
                let more = runs - MAX_RUNS;
                orphans.push(format!("{more} runs were left out: the file has more than {MAX_RUNS}"));
            }
            if let Some((first, count)) = &others {
                orphans.push(unread(*count, first));
            }
            result.builder.remarks.append(&mut orphans);
        }
        // Where other runs have one, their series does not show that this one has none.
        if let Some((why, failed)) = result.failed.filter(|(_, failed)| *failed < result.runs) {
            let runs = result.runs;
            result.builder.remarks.push(format!(
                "{failed} of {runs} runs {} no value; the first: {why}",
                number(failed, "has", "have")
            ));
        }
        if result.left_out > 0 {
            let left_out = result.left_out;
            let remark = format!("{left_out} values were left out, of series with more than {MAX_VALUES}");
            result.builder.remarks.push(remark);
        }
        all.push(result.builder.finish());
    }
    all
}

/// Labels results that are alike in all else by what differs.
fn tell_apart(results: &mut [Result]) {
    let name = |one: &Result| (one.format, one.builder.host.clone());
    let apart = |one: &Result| {
        let others: Vec<&RunContext> =
            results.iter().filter(|other| name(other) == name(one)).map(|other| &other.first).collect();
        one.first.apart(&others)
    };
    let words: Vec<String> = results.iter().map(apart).collect();
    for (result, words) in results.iter_mut().zip(words).filter(|(_, words)| !words.is_empty()) {
        result.builder.fact(APART, &words);
        let words: String = words.chars().take(60).collect();
        result.builder.host = format!("{}, {words}", result.builder.host);
    }
}

#[derive(Default)]
struct Log {
    preamble: Preamble,
    run: Option<Run>,
    results: Vec<Result>,
    /// Remarks on what belongs to no run.
    orphans: Vec<String>,
    /// Unknown lines: the first, and how many.
    others: Option<(String, usize)>,
    runs: usize,
    /// Unknown lines that say what a run is of.
    heads: Heads,
    tracker: ContextTracker<'static>,
    /// The last prompt's command runs something else, which prints what follows.
    prints: bool,
    /// The run that begins next has a heading that is marked as one.
    headed: bool,
    /// A run is through, and no prompt has come since.
    behind: bool,
    /// What heads the run that begins next.
    next: Option<String>,
}

impl Log {
    fn take(&mut self, line: Line) {
        match line {
            Line::Banner { tasks, groups, each, all } => {
                let run = self.begin(Program::Hackbench);
                (run.tasks, run.groups, run.fds) = (tasks, groups, each.map(|each| each / 2));
                let odd = each.is_none_or(|each| each % 2 == 1 || each == 0);
                run.multiply(groups, each.filter(|_| !odd), all);
            }
            Line::Broken => self.begin(Program::Hackbench).wrong = Some("its banner is damaged".to_string()),
            Line::Perf(Some(program)) => {
                self.begin(program);
            }
            Line::Perf(None) => self.end(),
            Line::Prompt { typed, runs, command } => {
                self.end();
                self.behind = false;
                self.head();
                self.prints = runs.is_empty() && !command.is_empty();
                self.tracker.typed(typed, command);
                self.preamble.asked = runs;
            }
            Line::Heading(heading) => {
                self.end();
                if says(&heading) {
                    self.headed = true;
                    self.under(heading);
                }
            }
            Line::Messages { loops, bytes } => self.with("message sizes", |run| {
                (run.loops, run.bytes) = (loops, bytes);
                if loops.is_none() || bytes.is_none() {
                    run.wrong.get_or_insert("it prints no valid number of messages".to_string());
                }
            }),
            Line::JobGroup { fds, tasks } => self.with("a crew", |run| (run.fds, run.tasks) = (fds, tasks)),
            Line::Groups { groups, all } => self.with("groups", |run| {
                run.groups = groups;
                let each = run.fds.and_then(|fds| fds.checked_mul(2));
                run.multiply(groups, each, all);
            }),
            Line::Operations { operations, tasks } => self.with("operations", |run| {
                (run.loops, run.tasks) = (operations, tasks);
                if operations.is_none_or(|operations| operations == 0) {
                    run.wrong.get_or_insert("it prints no valid number of operations".to_string());
                }
            }),
            Line::EachOperation(time) => self.with("a time of an operation", |run| run.each_operation = time),
            Line::Time(time) | Line::Total(time) => {
                let pipe = self.run.as_ref().is_some_and(|run| run.program == Program::Pipe);
                self.with("a time", |run| run.time = time);
                // The pipe's own figure stands behind it.
                if !pipe {
                    self.end();
                }
            }
            Line::Other(text) => {
                // What stands behind a pipe's figure is none of its own.
                if self.run.as_ref().is_some_and(|run| run.each_operation.is_some()) {
                    self.end();
                }
                match &mut self.run {
                    Some(run) if run.time.is_none() => {
                        run.other.get_or_insert(text);
                    }
                    // perf prints the same once more, the other way round.
                    _ if text.ends_with(" ops/sec") => {}
                    _ => {
                        self.said(&text);
                        self.others.get_or_insert((text, 0)).1 += 1;
                    }
                }
            }
        }
    }

    /// Lets a line complete the run that it belongs to.
    fn with(&mut self, what: &str, complete: impl FnOnce(&mut Run)) {
        match &mut self.run {
            Some(run) => complete(run),
            None if self.orphans.len() < 10 => {
                self.orphans.push(format!("{what} was left out: no run begins above it"));
            }
            None => {}
        }
    }

    /// Takes a line that may say what the next run is of.
    fn said(&mut self, text: &str) {
        let (once, again) = (self.heads.once.contains(text), self.heads.again.contains(text));
        let is_words = text.contains(char::is_alphabetic);
        let tells = self.prints || (once && self.behind) || (again && is_words);
        if self.run.is_some() || !says(text) || self.heads.common.contains(text) || !tells {
            return;
        }
        self.tracker.text(text.to_string());
        if !self.headed && is_words && (again || !self.prints) {
            self.next = Some(if again { uncounted(text) } else { text.to_string() });
        }
    }

    fn under(&mut self, heading: String) {
        self.preamble = Preamble { heading, ..Preamble::default() };
    }

    fn head(&mut self) {
        if let Some(heading) = self.next.take() {
            self.under(heading);
        }
    }

    fn begin(&mut self, program: Program) -> &mut Run {
        self.end();
        self.head();
        (self.headed, self.prints) = (false, false);
        self.preamble.context = self.tracker.begin();
        self.run.insert(Run {
            program,
            tasks: None,
            groups: None,
            fds: None,
            loops: None,
            bytes: None,
            time: None,
            each_operation: None,
            wrong: None,
            other: None,
            preamble: self.preamble.clone(),
        })
    }

    /// Ends the run that has begun: a value, or the reason why there is none.
    fn end(&mut self) {
        let Some(run) = self.run.take() else { return };
        self.runs += 1;
        self.behind = true;
        if self.runs > MAX_RUNS {
            return;
        }
        let asked = run.asked();
        let under = asked.first().map_or("", |asked| asked.under.as_str()).to_string();
        let Some(meaning) = run.meaning(&asked) else { return };
        let value = run.value();
        let Keyed { case, point, metric } = &meaning.keyed;
        let key = case.series_key(point, metric);
        let Some(result) = self.result(run.format(), &run.preamble, &under, &key) else { return };
        result.runs += 1;
        match value {
            Ok(value) => {
                let values = result.values.entry(key).or_default();
                *values += 1;
                if *values > MAX_VALUES { result.left_out += 1 } else { result.builder.value(meaning, value) }
            }
            Err(why) => {
                result.failed.get_or_insert_with(|| (why.clone(), 0)).1 += 1;
                result.builder.missing(meaning, why);
            }
        }
    }

    /// The result that a run is part of; `None` where there are too many. Of the runs of one series
    /// in a result the context is the same.
    fn result(&mut self, format: Format, preamble: &Preamble, under: &str, key: &str) -> Option<&mut Result> {
        let Preamble { heading, context, .. } = preamble;
        let host = &context.host;
        let same = |other: &Result| {
            other.format == format
                && other.first.host == *host
                && other.heading == *heading
                && other.under == under
        };
        let is_alike = |known: &RunContext| !known.is_apart(context, true);
        let place =
            |fits: &dyn Fn(&Result) -> bool| self.results.iter().position(|one| same(one) && fits(one));
        let fits = place(&|one| one.context.get(key).is_some_and(is_alike))
            .or_else(|| place(&|one| is_alike(&one.first) && !one.context.contains_key(key)))
            .or_else(|| place(&|one| !one.context.contains_key(key)));
        if let Some(at) = fits {
            self.results[at].context.entry(key.to_string()).or_insert_with(|| context.clone());
            return self.results.get_mut(at);
        }
        if self.results.len() == MAX_RESULTS {
            if self.orphans.len() < 10 {
                self.orphans
                    .push(format!("the file has more than {MAX_RESULTS} results: a run was left out"));
            }
            return None;
        }
        let unknown = if host.is_empty() && heading.is_empty() { "unknown" } else { "" };
        let names = [host.as_str(), heading, unknown, under].into_iter().filter(|name| !name.is_empty());
        let mut builder = Builder::new(format, &names.collect::<Vec<_>>().join(", "));
        builder.fact("started by", under);
        builder.remarks.push(if format == PERF_PIPE { OPERATIONS } else { TIMES }.to_string());
        self.results.push(Result {
            format,
            heading: heading.clone(),
            under: under.to_string(),
            context: BTreeMap::from([(key.to_string(), context.clone())]),
            first: context.clone(),
            builder,
            runs: 0,
            failed: None,
            values: BTreeMap::new(),
            left_out: 0,
        });
        self.results.last_mut()
    }
}

impl Run {
    fn format(&self) -> Format {
        match self.program {
            Program::Hackbench => FORMAT,
            Program::Messaging => PERF_MESSAGING,
            Program::Pipe => PERF_PIPE,
        }
    }

    /// Checks that groups of this many tasks are the tasks that are printed.
    fn multiply(&mut self, groups: Option<u32>, each: Option<u32>, all: Option<u32>) {
        let product = groups.zip(each).and_then(|(groups, each)| groups.checked_mul(each));
        if product.is_none_or(|product| product == 0 || all != Some(product)) {
            self.wrong.get_or_insert("its numbers of groups and of tasks do not agree".to_string());
        }
    }

    /// What the command before it asks for and this run may be.
    fn asked(&self) -> Vec<&Invocation> {
        let agrees = |asked: Option<u32>, printed: Option<u32>| {
            asked.zip(printed).is_none_or(|(asked, printed)| asked == printed)
        };
        let fits = |asked: &&Invocation| {
            let own = asked.program == self.program && asked.understood;
            // What old versions took without an option, newer ones overlook.
            own && (asked.positional
                || (self.tasks.is_none_or(|tasks| tasks == asked.tasks)
                    && agrees(asked.groups, self.groups)
                    && agrees(asked.fds, self.fds)
                    && agrees(asked.loops, self.loops)
                    && agrees(asked.bytes, self.bytes)))
        };
        self.preamble.asked.iter().filter(fits).collect()
    }

    /// Its time in seconds, or for a pipe its operations a second.
    fn value(&self) -> std::result::Result<f64, String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let said = |what: &str| match &self.other {
            Some(other) => format!("it prints no {what}, but {other:?}"),
            None => format!("it prints no {what}"),
        };
        let above_0 = |number: Number, what: &str| {
            if number.value > 0.0 {
                Ok(number.value)
            } else {
                Err(format!("it prints a {what} of 0, which is less than its last digit"))
            }
        };
        if self.program != Program::Pipe {
            return above_0(self.time.ok_or_else(|| said("time"))?, "time");
        }
        let (Some(loops), Some(time)) = (self.loops, self.time) else { return Err(said("time")) };
        let loops = f64::from(loops);
        let Some(each) = self.each_operation else { return Ok(loops / above_0(time, "time")?) };
        // The total is cut off and not rounded.
        let rounding = 2.0 * time.rounding + each.rounding * loops / 1e6;
        if (each.value * loops / 1e6 - time.value).abs() > rounding * 1.01 {
            return Err("its total time is not the time of its operations".to_string());
        }
        Ok(1e6 / above_0(each, "time of an operation")?)
    }
}

#[cfg(test)]
mod tests;

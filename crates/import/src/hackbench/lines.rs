//! The lines of a log, one by one: what hackbench and `perf bench sched` print, prompts with
//! commands, headings. Sentences may be wrapped, indented and quoted as mails do it. A number is
//! only taken from a whole sentence, so that what was cut off is never taken for a smaller number.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{Invocation, Program, invocations, starts};
use crate::above::{folder, marked, name, prompt};
use crate::kit::Number;
use crate::kit::commands::{ShellLine, is_open};
use crate::kit::context::is_time;

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)`, or
    /// the old `Running with 10*40 (== 400) tasks.`, which does not give the mode.
    Banner {
        tasks: Option<&'static str>,
        groups: Option<u32>,
        each: Option<u32>,
        all: Option<u32>,
    },
    /// `Each sender will pass 100 messages of 100 bytes`
    Messages {
        loops: Option<u32>,
        bytes: Option<u32>,
    },
    /// `Time: 4.905`; `None` for what is no time.
    Time(Option<Number>),
    /// `# Running 'sched/messaging' benchmark:`; `None` for perf's other benchmarks.
    Perf(Option<Program>),
    /// `# 20 sender and receiver processes per group`
    JobGroup {
        fds: Option<u32>,
        tasks: Option<&'static str>,
    },
    /// `# 8 groups == 320 threads run`
    Groups {
        groups: Option<u32>,
        all: Option<u32>,
    },
    /// `# Executed 1000000 pipe operations between two processes`
    Operations {
        operations: Option<u32>,
        tasks: Option<&'static str>,
    },
    /// `Total time: 7.648 [sec]`
    Total(Option<Number>),
    /// `5.123000 usecs/op`
    EachOperation(Option<Number>),
    /// A sentence of hackbench's that is damaged.
    Broken,
    /// A shell's prompt, and the runs that its command asks for.
    Prompt {
        typed: ShellLine,
        runs: Vec<Invocation>,
        command: String,
    },
    /// `With this change:`
    Heading(String),
    Other(String),
}

/// Sentences take no more lines than this.
const MAX_WRAPPED: usize = 4;
/// Commands that go on over more lines are not taken for typed ones.
const MAX_CONTINUED: usize = 20;

const BANNER: &str = "Running in _ mode with _ groups using _ file descriptors each (== _ tasks)";
const OLD_BANNER: &str = "Running with _ (== _) tasks.";
const MESSAGES: &str = "Each sender will pass _ messages of _ bytes";
const CREW: &str = "_ sender and receiver _ per group";
const GROUPS: &str = "_ groups == _ _ run";
const OPERATIONS: &str = "Executed _ pipe operations between two _";

/// Whether a line begins a log, or a part of one.
pub fn begins(line: &str) -> bool {
    let line = unquoted(line);
    let old =
        line.strip_prefix("Running with ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    old || line.starts_with("Running in process mode with ")
        || line.starts_with("Running in threaded mode with ")
        || matches!(perf(line), Some(Line::Perf(Some(_))))
}

/// All lines of a text, sentences that are wrapped as one.
pub fn read(text: &str) -> Vec<Line> {
    let lines: Vec<&str> = text.lines().map(unquoted).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let (line, taken) = if line.is_empty() { (None, 1) } else { one(&lines[at..], line) };
        found.extend(line);
        at += taken;
    }
    found
}

/// Unknown lines that may say what the run below them is of.
#[derive(Debug, Default)]
pub struct Heads {
    /// They stand there once, whatever their numbers.
    pub once: BTreeSet<String>,
    /// They stand there more often with other numbers, and not only behind runs.
    pub again: BTreeSet<String>,
    /// They stand there as often as runs do, letter by letter.
    pub common: BTreeSet<String>,
}

/// What other programs print, as `time`, stands behind each run, the last one too.
pub fn heads(lines: &[Line]) -> Heads {
    let skeleton = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let is_run = |line: &Line| matches!(line, Line::Banner { .. } | Line::Broken | Line::Perf(Some(_)));
    let is_end = |line: &Line| matches!(line, Line::Time(_) | Line::Total(_) | Line::EachOperation(_));
    let first = lines.iter().position(is_run).unwrap_or(0);
    let last = lines.iter().rposition(is_end).unwrap_or(lines.len());
    let runs = lines.iter().filter(|line| is_run(line)).count();
    // How often, whether before the first run, and whether behind the last.
    let mut counts: BTreeMap<String, (usize, bool, bool)> = BTreeMap::new();
    let mut exact: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Line::Other(text) = line {
            *exact.entry(text).or_default() += 1;
            let found = counts.entry(skeleton(text)).or_default();
            *found = (found.0 + 1, found.1 || at < first, found.2 || at > last);
        }
    }
    let mut heads = Heads::default();
    for (text, count) in exact {
        let (all, before, behind) = counts.get(&skeleton(text)).copied().unwrap_or_default();
        let is_time = is_time(text);
        if runs > 1 && count == runs {
            heads.common.insert(text.to_string());
        } else if all == 1 && text.contains(char::is_alphabetic) && !is_time {
            heads.once.insert(text.to_string());
        } else if all > 1 && (before || !behind) && !is_time && !text.ends_with("ops/sec") {
            heads.again.insert(text.to_string());
        }
    }
    heads
}

/// A line without its indentation, and without the marks of a mail that quotes it.
fn unquoted(line: &str) -> &str {
    line.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end()
}

/// What the first of these lines says, and how many of them say it.
fn one(lines: &[&str], first: &str) -> (Option<Line>, usize) {
    let known = [("Running in ", BANNER), ("Running with ", OLD_BANNER), ("Each sender ", MESSAGES)];
    if let Some((_, pattern)) = known.iter().find(|(start, _)| first.starts_with(start)) {
        return match wrapped(pattern, lines) {
            Some((fields, taken)) => (Some(sentence(pattern, &fields)), taken),
            None => (Some(Line::Broken), 1),
        };
    }
    if let Some(line) = perf(first).or_else(|| time(first)) {
        return (Some(line), 1);
    }
    if let Some((host, command)) = prompt(first) {
        let (command, taken) = continued(command, lines);
        let typed = ShellLine::new(host, folder(first), &command, &starts);
        return (Some(Line::Prompt { typed, runs: invocations(&command), command }), taken);
    }
    // A command without its prompt, if it is nothing but one.
    let word = first.split_whitespace().next().map_or("", name);
    if ["hackbench", "for", "while", "until"].contains(&word) {
        let (command, taken) = continued(first, lines);
        let runs = invocations(&command);
        if !runs.is_empty() && runs.iter().all(|run| run.understood) {
            let typed = ShellLine::new(None, "", &command, &starts);
            return (Some(Line::Prompt { typed, runs, command }), taken);
        }
    }
    (Some(marked(first).map_or_else(|| Line::Other(first.chars().take(100).collect()), Line::Heading)), 1)
}

fn sentence(pattern: &str, fields: &[String]) -> Line {
    let count = |at: usize| fields.get(at).and_then(|text| whole(text));
    match pattern {
        BANNER => match fields[0].as_str() {
            "process" => {
                Line::Banner { tasks: Some("process"), groups: count(1), each: count(2), all: count(3) }
            }
            "threaded" => {
                Line::Banner { tasks: Some("thread"), groups: count(1), each: count(2), all: count(3) }
            }
            _ => Line::Broken,
        },
        OLD_BANNER => {
            let (groups, each) = fields[0].split_once('*').unwrap_or(("", ""));
            Line::Banner { tasks: None, groups: whole(groups), each: whole(each), all: count(1) }
        }
        _ => Line::Messages { loops: count(0), bytes: count(1) },
    }
}

/// What perf prints below the name of its benchmark.
fn perf(line: &str) -> Option<Line> {
    let line = line.strip_prefix('#').unwrap_or(line).trim_start();
    if let Some(rest) = line.strip_prefix("Running ") {
        let name = rest.split_whitespace().next()?;
        let rest = rest[name.len()..].trim_start();
        // Older versions print the name without quotes and dots behind.
        let name = name.trim_matches('\'');
        return (rest.starts_with("benchmark") && name.contains('/')).then_some(match name {
            "sched/messaging" => Line::Perf(Some(Program::Messaging)),
            "sched/pipe" => Line::Perf(Some(Program::Pipe)),
            _ => Line::Perf(None),
        });
    }
    let tasks = |word: &str| match word {
        "processes" => Some("process"),
        "threads" => Some("thread"),
        _ => None,
    };
    if let Some(found) = fields(CREW, line) {
        return Some(Line::JobGroup { fds: whole(found[0]), tasks: tasks(found[1]) });
    }
    if let Some(found) = fields(GROUPS, line) {
        return Some(Line::Groups { groups: whole(found[0]), all: whole(found[1]) });
    }
    if let Some(found) = fields(OPERATIONS, line) {
        return Some(Line::Operations { operations: whole(found[0]), tasks: tasks(found[1]) });
    }
    if let Some(found) = fields("_ usecs/op", line) {
        return Some(Line::EachOperation(number(found[0])));
    }
    let total = line.strip_prefix("Total time:")?;
    Some(Line::Total(fields("_ [sec]", total).and_then(|found| number(found[0]))))
}

/// hackbench prints three decimals, always.
fn time(line: &str) -> Option<Line> {
    let rest = line.strip_prefix("Time:")?;
    let three = |text: &&str| text.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 3);
    let found = fields("_", rest).map(|found| found[0]).filter(three);
    Some(Line::Time(found.and_then(number)))
}

/// The fields of a pattern that is wrapped over the first of these lines, and over how many.
fn wrapped(pattern: &str, lines: &[&str]) -> Option<(Vec<String>, usize)> {
    let mut joined = String::new();
    for (at, line) in lines.iter().take(MAX_WRAPPED).enumerate() {
        joined.push_str(line);
        joined.push(' ');
        if let Some(found) = fields(pattern, &joined) {
            return Some((found.into_iter().map(str::to_string).collect(), at + 1));
        }
    }
    None
}

/// The words of a text that stand where its pattern has `_`; `None` where another word differs, or
/// one is missing or too much.
fn fields<'a>(pattern: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut words = text.split_whitespace();
    let mut found = Vec::new();
    for expected in pattern.split(' ') {
        let word = words.next()?;
        match expected.split_once('_') {
            Some((before, after)) => found.push(word.strip_prefix(before)?.strip_suffix(after)?),
            None if word != expected => return None,
            None => {}
        }
    }
    words.next().is_none().then_some(found)
}

/// A command with the lines that it goes on in; a loop goes on until it is done.
fn continued(first: &str, lines: &[&str]) -> (String, usize) {
    let mut command = first.to_string();
    let mut taken = 1;
    while (command.ends_with('\\') || is_open(&command)) && taken < MAX_CONTINUED {
        let Some(more) = lines.get(taken) else { break };
        let is_wrapped = command.ends_with('\\') && command.pop().is_some();
        command.push_str(if is_wrapped { " " } else { "; " });
        command.push_str(more);
        taken += 1;
    }
    // A loop without an end: only the first line is the command.
    if is_open(&command) { (first.to_string(), 1) } else { (command, taken) }
}

/// A count, of nine digits at most.
fn whole(text: &str) -> Option<u32> {
    let plain = text.len() <= 9 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

/// Digits, a point, at most six digits.
fn number(text: &str) -> Option<Number> {
    let (before, decimals) = text.split_once('.')?;
    Number::read(text).filter(|_| before.len() <= 9 && decimals.len() <= 6 && !before.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_what_they_say() {
        assert_eq!(
            read("With this change:\n## After\n:\n##\nPerformance counter stats for 'x':")[..2],
            [Line::Heading("With this change".into()), Line::Heading("After".into())]
        );
        let messages = Line::Messages { loops: Some(100), bytes: Some(8) };
        assert_eq!(read("> Each sender will\n>  pass 100 messages\n> of 8 bytes"), [messages]);
        let number = |value, rounding| Some(Number { value, rounding });
        assert_eq!(read("Time: 4.905"), [Line::Time(number(4.905, 0.0005))]);
        for no_time in ["Time: 4.90", "Time: 4.9055", "Time:", "Time: -4.905", "Time: 4.905 s", "Time: nan"] {
            assert_eq!(read(no_time), [Line::Time(None)], "{no_time}");
        }
        assert_eq!(read("Total time: 5.1 [sec]"), [Line::Total(number(5.1, 0.05))]);
        assert_eq!(read("Total time: 5.1 [se"), [Line::Total(None)]);
        assert_eq!(read("# Running futex/hash benchmark..."), [Line::Perf(None)]);
        assert_eq!(read("Running in circles"), [Line::Broken]);
    }
}

//! The context of a run in a text: on which host and in which folder it was started,
//! by what, which other commands ran before, and what stands above it. Of two runs it decides
//! whether they are repetitions of each other, and it words what distinguishes results.

use super::commands::{self, Command, ShellLine, Step, is_open};
use super::runs::LinesAbove;
use crate::above::{is_marked, level, name, prompt, said};
use crate::faults::short;
use crate::kit::Expression;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// In the make-up of a result: what another one of the same name has not.
pub const APART: &str = "differs in";
/// Lines above a run that count, and kinds of commands; each of them distinguishes runs.
const MAX_LINES_ABOVE: usize = 60;
/// Lines of a heading that are shown.
const MAX_SHOWN: usize = 3;
/// Of one command more is not kept.
const MAX_COMMAND_CHARS: usize = 120;
/// A loop over more lines is not taken for a typed command.
const MAX_CONTINUED: usize = 20;
/// As deep as no heading stands a command.
const COMMAND: usize = 8;

/// How words begin that name work, or nothing: a heading of only such words describes no system.
const WORK: [&str; 48] = [
    "rand", "seq", "read", "write", "mix", "trim", "rw", "iops", "bw", "through", "band", "latenc", "lat",
    "qd", "queue", "depth", "iodepth", "bs", "block", "size", "test", "job", "run", "result", "output",
    "fio", "thread", "numjobs", "process", "sync", "direct", "buffer", "workload", "bench", "then", "next",
    "first", "second", "third", "again", "small", "large", "single", "multi", "parallel", "pure", "perform",
    "speed",
];

/// The same, as whole words.
const LINKS: [&str; 21] = [
    "io", "i", "o", "a", "an", "the", "of", "with", "for", "on", "at", "in", "to", "by", "vs", "and", "here",
    "is", "are", "now", "also",
];

/// What a line above a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    /// A shell's line that does not run the program.
    ShellLine,
    /// A command of the line that does.
    Beside,
}

/// A line above a run.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    kind: Kind,
    /// How deep it stands: a heading holds until one that is not deeper.
    level: usize,
    marked: bool,
    words: String,
}

/// The context of one run in a text.
#[derive(Clone, Debug, Default)]
pub struct RunContext {
    pub host: String,
    pub folder: String,
    /// The command that started it.
    pub command: Option<Command>,
    /// The lines that head it, its own behind those that hold since earlier runs.
    path: Vec<Line>,
    /// The last command of each kind that ran before.
    settings: BTreeMap<String, String>,
}

impl RunContext {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.path.iter().map(|line| line.words.as_str())
    }

    pub fn under(&self) -> &str {
        self.command.as_ref().map_or("", |command| &command.under)
    }

    pub fn program(&self) -> &str {
        self.command.as_ref().map_or("", |command| &command.program)
    }

    /// Whether two runs are two results, by their text: of the same work they are where anything
    /// differs, of other work where another system is named.
    pub fn is_apart(&self, other: &RunContext, is_same_work: bool) -> bool {
        let differ = |own: &str, other: &str| !own.is_empty() && !other.is_empty() && own != other;
        let called = |context: &RunContext| [context.under(), context.program()].map(str::to_string);
        if is_same_work {
            return self.host != other.host
                || !self.words().eq(other.words())
                || self.settings != other.settings
                || called(self) != called(other)
                || differ(&self.folder, &other.folder);
        }
        let known: BTreeSet<String> = other.words().flat_map(parts).collect();
        let news = self.path.iter().filter(|line| line.marked).flat_map(|line| parts(&line.words));
        let mut news = news.filter(|word| !known.contains(word));
        differ(&self.host, &other.host) || !other.path.is_empty() && news.any(|word| !is_work(&word))
    }

    /// What distinguishes it from others, apart from its host and headings.
    pub fn apart(&self, others: &[&RunContext]) -> String {
        let of: [fn(&RunContext) -> &str; 3] =
            [RunContext::under, RunContext::program, |context| &context.folder];
        let own = of.iter().filter(|of| others.iter().any(|other| of(other) != of(self)));
        let own = own.map(|of| of(self).to_string());
        let is_set = |(kind, own): &(&String, &String)| {
            others.iter().all(|other| other.settings.get(*kind) == Some(own))
        };
        let settings = self.settings.iter().filter(|one| !is_set(one)).map(|(_, own)| own.clone());
        let is_own = |line: &&Line| others.iter().any(|other| other.words().all(|words| words != line.words));
        let lines = self
            .path
            .iter()
            .filter(is_own)
            .filter(|line| !self.settings.values().any(|own| line.words.ends_with(own)));
        let parts = own.chain(settings).chain(lines.map(|line| short(&line.words)));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// The last lines above it, and of others with the same ones a line that these lack.
    pub fn heading(&self, others: &[&RunContext]) -> String {
        let shown =
            |context: &RunContext| context.path[context.path.len().saturating_sub(MAX_SHOWN)..].to_vec();
        let last = shown(self);
        let lacks =
            |other: &&RunContext, words: &str| shown(other) == last && other.words().all(|own| own != words);
        let above = self.words().take(self.path.len() - last.len());
        let own = above.filter(|words| others.iter().any(|other| lacks(other, words))).take(1);
        let all = own.chain(last.iter().map(|line| line.words.as_str()));
        all.map(short).collect::<Vec<_>>().join(" / ")
    }
}

/// The last line above each of several runs that not all of them have, or the last ones, if
/// another has that one, too.
pub fn headings(all: &[&RunContext]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let known = all.iter().flat_map(|context| context.words().collect::<BTreeSet<_>>());
    known.for_each(|words| *counts.entry(words).or_default() += 1);
    let own = |context: &&RunContext| -> Vec<String> {
        let lines = context.path.iter().filter(|line| line.kind != Kind::Beside);
        let lines: Vec<&str> = lines.map(|line| line.words.as_str()).collect();
        let own = lines.iter().filter(|words| counts[**words] < all.len());
        let own: Vec<String> = own.map(|own| short(own)).collect();
        if own.is_empty() { lines.last().map(|last| short(last)).into_iter().collect() } else { own }
    };
    let own: Vec<Vec<String>> = all.iter().map(own).collect();
    let is_shared = |last: Option<&String>| own.iter().filter(|other| other.last() == last).count() > 1;
    let heading = |own: &Vec<String>| {
        let most = if is_shared(own.last()) { MAX_SHOWN } else { 1 };
        own[own.len().saturating_sub(most)..].join(" / ")
    };
    own.iter().map(heading).collect()
}

/// The words of a line.
fn parts(line: &str) -> impl Iterator<Item = String> {
    let is_part = |one: char| one.is_alphanumeric() || one == '.';
    let words = line.split(move |one: char| !is_part(one)).map(|word| word.trim_matches('.'));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a word is of the work: `randread`, `4k`, `32`.
fn is_work(word: &str) -> bool {
    let unit = word.trim_start_matches(|one: char| one.is_ascii_digit());
    let is_count = unit.len() < word.len()
        && ["", "b", "k", "kb", "kib", "m", "mb", "mib", "g", "gb", "gib", "s", "t", "th", "st", "nd"]
            .contains(&unit);
    is_count || LINKS.contains(&word) || WORK.iter().any(|begin| word.starts_with(begin))
}

/// Follows a text from run to run.
#[derive(Debug, Default)]
pub struct ContextTracker<'t> {
    /// The context of the last run, with what came since.
    pub context: RunContext,
    /// Lines that are a number alone count the runs.
    counts: bool,
    /// The lines since the last known one.
    above: Vec<(Kind, Cow<'t, str>)>,
    /// This many of them are searched for lines that are not of a heading.
    seen: usize,
    /// A prompt stands there, too: what ran before has ended.
    prompted: bool,
    /// The commands among them.
    commands: Vec<String>,
    /// What the last line of a shell has it do behind the run at hand.
    later: VecDeque<Step>,
    /// That run has begun.
    begun: bool,
    /// A loop that is typed over several lines, and over how many.
    open: Option<(String, usize)>,
}

impl<'t> ContextTracker<'t> {
    /// Of a text of these lines.
    pub fn new(lines: impl Iterator<Item = &'t str>) -> ContextTracker<'t> {
        ContextTracker { counts: counts(lines), ..ContextTracker::default() }
    }

    /// Reads a line that the program did not print; whether it starts the program.
    pub fn line(&mut self, line: &'t str, program: &str) -> bool {
        if let Some((open, count)) = self.open.take() {
            let more = format!("{open}; {}", line.trim_start_matches(['>', ' ', '\t']));
            if goes_on(&more) && count < MAX_CONTINUED {
                self.open = Some((more, count + 1));
                return false;
            }
            return ShellLine::of(&more, program).is_some_and(|typed| self.typed(typed, ""));
        }
        match ShellLine::of(line, program) {
            Some(typed) if goes_on(line) && typed.is_prompted => {
                self.open = Some((line.to_string(), 0));
                false
            }
            Some(typed) => self.typed(typed, line),
            None => {
                self.text(line);
                false
            }
        }
    }

    /// Takes a line that may say something of the run that follows.
    pub fn text(&mut self, line: impl Into<Cow<'t, str>>) {
        let line = line.into();
        if line.contains(char::is_alphanumeric) {
            self.above.push((Kind::Text, line));
        }
    }

    /// Takes a line that a shell was given; whether it starts the program.
    pub fn typed(&mut self, typed: ShellLine, line: impl Into<Cow<'t, str>>) -> bool {
        // Commands behind the run have run; how far loops went is unknown.
        let from = self.above.len();
        while let Some(step) = self.later.pop_front() {
            match step {
                Step::Loop(_) => _ = commands::body(&mut self.later),
                step => self.take(step),
            }
        }
        self.above.truncate(from);
        let runs = typed.runs().next().is_some();
        self.prompted |= typed.is_prompted;
        // A shell in which nothing ran may be another host's.
        let is_its = runs || !self.begun || !self.context.host.is_empty();
        if typed.host.is_some() && is_its || runs && typed.is_prompted {
            self.context.host = typed.host.unwrap_or_default();
        }
        if !typed.folder.is_empty() {
            self.context.folder = typed.folder;
        }
        self.later = typed.steps.into();
        if !runs && self.later.iter().any(|step| matches!(step, Step::Other(_))) {
            self.above.push((Kind::ShellLine, line.into()));
        }
        let from = self.above.len();
        self.go_on();
        if !runs {
            self.above.truncate(from);
        }
        self.begun &= !runs;
        runs
    }

    /// Takes what a shell has to do up to the next run; whether there is one.
    fn go_on(&mut self) -> bool {
        while let Some(step) = commands::next(&mut self.later) {
            let is_run = matches!(step, Step::Run(_));
            self.take(step);
            if is_run {
                return true;
            }
        }
        false
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Into(folder) => self.context.folder = folder,
            Step::Other(command) => {
                self.above.push((Kind::Beside, uncounted(&command).into()));
                self.commands.push(command);
            }
            Step::Run(mut command) => {
                if !command.program.is_empty() && !command.program.starts_with(['/', '~']) {
                    let path = command.program.trim_start_matches("./");
                    let path = format!("{}/{path}", self.context.folder);
                    command.program = path.trim_start_matches('/').to_string();
                }
                self.context.command = Some(command);
            }
            Step::Loop(_) | Step::Done => {}
        }
    }

    /// The context of the run that begins now: that of the one before, if nothing stands between
    /// them. Below a heading or a prompt of its own no run is of the command before.
    pub fn begin(&mut self) -> RunContext {
        let goes_on = !std::mem::replace(&mut self.begun, true) || self.go_on();
        for command in std::mem::take(&mut self.commands) {
            let kind = kind(&command);
            if self.context.settings.len() < MAX_LINES_ABOVE || self.context.settings.contains_key(&kind) {
                self.context.settings.insert(kind, uncounted(&command));
            }
        }
        self.seen = 0;
        let own = lines(&std::mem::take(&mut self.above), self.counts);
        let is_apart = std::mem::take(&mut self.prompted) || !own.is_empty();
        if is_apart && !goes_on {
            self.context.command = None;
        }
        // A command ends no heading, but may be one.
        let ends = |line: &Line| if line.kind == Kind::ShellLine { COMMAND } else { line.level };
        if let Some(first) = own.iter().map(ends).min()
            && !self.context.path.ends_with(&own)
        {
            let is_both = |line: &Line| line.kind == Kind::ShellLine && line.level == 1;
            let is_again = own.iter().any(is_both);
            self.context.path.retain(|line| line.level < first && !(is_again && is_both(line)));
            self.context.path.extend(own);
            let more = self.context.path.len().saturating_sub(MAX_LINES_ABOVE);
            self.context.path.drain(..more);
        }
        self.context.clone()
    }

    /// Whether lines stand above that call what follows something.
    pub fn is_headed(&self) -> bool {
        !lines(&self.above, self.counts).is_empty()
    }

    /// What stands above.
    pub fn above(&self) -> LinesAbove {
        let is_headed = self.is_headed();
        let mut marked = self.above.iter().map(|(_, line)| crate::above::marked(line));
        LinesAbove { is_headed, is_marked: is_headed && marked.any(|line| line.is_some()) }
    }

    /// Takes lines above that are none of a heading; each is shown once, and of many the last.
    pub fn take_lines(&mut self, is_one: impl Fn(&str) -> bool) -> Vec<String> {
        let from = self.seen.max(self.above.len().saturating_sub(MAX_LINES_ABOVE));
        let is_one = |(kind, line): &(Kind, Cow<str>)| *kind == Kind::Text && is_one(line);
        let new = self.above.split_off(from.min(self.above.len()));
        let (taken, kept): (Vec<_>, Vec<_>) = new.into_iter().partition(is_one);
        self.above.extend(kept);
        self.seen = self.above.len();
        taken.into_iter().map(|(_, line)| line.trim().to_string()).collect()
    }

    /// The first of the lines above, and how many they are; they are none of a heading.
    pub fn drop_lines(&mut self) -> Option<(String, usize)> {
        self.commands.clear();
        (self.seen, self.prompted) = (0, false);
        let above = std::mem::take(&mut self.above);
        let mut lines = above.into_iter().filter(|(kind, _)| *kind != Kind::Beside);
        let (_, first) = lines.next()?;
        Some((first.trim().to_string(), 1 + lines.count()))
    }
}

/// What lines above a run say; those that only count runs or give the time say nothing.
fn lines(above: &[(Kind, Cow<str>)], counts: bool) -> Vec<Line> {
    let is_count = |line: &str| !says(line) || counts && bare_number(line).is_some();
    let line = |(kind, line): &(Kind, Cow<str>)| {
        let level = match kind {
            Kind::Text => level(line),
            // It may be a heading as well.
            Kind::ShellLine
                if line.starts_with('#')
                    && !line.contains(['/', '=', '>', '|', ';'])
                    && !line.contains(" -") =>
            {
                1
            }
            Kind::ShellLine | Kind::Beside => COMMAND,
        };
        let line = if *kind == Kind::Text { without_times(line) } else { uncounted(line) };
        let words = said(&line).filter(|_| !is_count(&line) && !is_time(&line))?;
        Some(Line { kind: *kind, level, marked: *kind == Kind::Text && is_marked(&line), words })
    };
    above[above.len().saturating_sub(MAX_LINES_ABOVE)..].iter().filter_map(line).collect()
}

/// Whether a loop of a shell's line goes on in the next.
fn goes_on(line: &str) -> bool {
    is_open(prompt(line).map_or(line, |(_, text)| text))
}

/// What a command sets, so that the next one of its kind sets it anew: a program, what it is to do,
/// names before values, and files.
fn kind(command: &str) -> String {
    let into = command.split_once('>').or_else(|| command.split_once("tee ")).map_or("", |(_, into)| into);
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "sudo").collect();
    let does = words.get(1).filter(|word| words.len() > 2 && word.starts_with(char::is_alphabetic));
    let names = words.iter().filter_map(|word| Some(word.split_once('=')?.0));
    let does = does.filter(|_| into.is_empty()).copied().into_iter().chain(names);
    let first = name(words.first().copied().unwrap_or_default());
    [&[first], does.collect::<Vec<_>>().as_slice(), &[into.trim()]].concat().join(" ")
}

/// Whether a line is what a shell's `time` prints behind a run.
pub fn is_time(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|word| ["real", "user", "sys"].contains(&word))
        && words.next().is_none_or(|figure| figure.starts_with(|one: char| one.is_ascii_digit()))
}

/// A text without the number of the run, and without the time of the day.
pub fn uncounted(text: &str) -> String {
    static COUNT: Expression = Expression::new(concat!(
        r"(?i)\b(?:run|iteration|iter|pass|round|try|trial|rep|repetition|repeat|attempt|sample|loop)s?",
        r"[ _#:.(-]*\d+(?:\W*(?:/|of)\W*\d+)?|^\W*\d+\W*(?:/|of)\W*\d+\W*$"
    ));
    COUNT.replace_all(&without_times(text), "").trim().chars().take(MAX_COMMAND_CHARS).collect()
}

/// Whether a line says more than the number of a run and the time.
pub fn says(line: &str) -> bool {
    uncounted(line).contains(char::is_alphanumeric)
}

/// A line that is a number and marks.
fn bare_number(line: &str) -> Option<u64> {
    let digits = line.trim_matches(|one: char| !one.is_alphanumeric());
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Whether the lines that are a number alone count: 1, 2, 3, and perhaps from the start again.
fn counts<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    let mut last = None;
    lines.filter_map(bare_number).all(|number| {
        let first = if last.is_none() { number <= 2 } else { number <= 1 };
        let next = last.is_some_and(|last: u64| last.checked_add(1) == Some(number));
        last = Some(number);
        first || next
    })
}

/// A line without times of a day. Runs of one day may repeat each other; those of two days
/// differ. An address of PCI (`82:00.1`) or of a network is no time.
fn without_times(line: &str) -> String {
    static TIME: Expression = Expression::new(concat!(
        r"\b(?:(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:\s*[AP]M\b)?",
        r"|[01]?\d:[0-5]\d\s*[AP]M\b|(?:[01]\d|2[0-3]):[0-5]\d)"
    ));
    let (mut rest, mut after) = (String::new(), 0);
    for found in TIME.find_iter(line) {
        let (before, behind) = (line[..found.start()].chars().last(), line[found.end()..].chars().next());
        let goes_on = |one: Option<char>| one.is_some_and(|one| ".:".contains(one) || one.is_ascii_digit());
        // A sentence or a label may end behind it.
        let ends = line[found.end()..].trim_start_matches([':', '.']).is_empty()
            || line[found.end()..].starts_with(": ");
        if goes_on(before) || goes_on(behind) && !ends {
            continue;
        }
        rest.push_str(&line[after..found.start()]);
        after = found.end();
    }
    rest + &line[after..]
}

//! The runs in a text, and which of them are repetitions of each other.
//!
//! Two runs are repetitions if their contexts in the text are the same: host, heading, what
//! started them, and the facts that their format names. What stands unread between two runs is the
//! heading of the second, so that runs with another text above are never pooled.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::context::{ContextTracker, RunContext};
use super::{Hit, Role, Table};
use crate::builder::{Builder, unread};
use crate::faults::{Faults, short};
use crate::{Format, Imported};

/// More runs in one file are a mistake or an attack.
const MAX_RUNS: usize = 2_000;
/// Lines of one run that are kept.
const MAX_LINES: usize = 20_000;
/// Lines before a run begins that are kept.
const MAX_AHEAD: usize = 100;
/// More results in one file are a mistake or an attack.
const MAX_RESULTS: usize = 200;

/// One run of a program, as far as the text has it.
#[derive(Debug, Default)]
pub struct Run<'t> {
    pub context: RunContext,
    pub hits: Vec<Hit<'t>>,
    ended: bool,
}

/// A run has the fields of its context.
impl Deref for Run<'_> {
    type Target = RunContext;

    fn deref(&self) -> &RunContext {
        &self.context
    }
}

impl<'t> Run<'t> {
    pub fn all(&self, name: &str) -> impl Iterator<Item = &Hit<'t>> {
        self.hits.iter().filter(move |hit| hit.name == name)
    }

    pub fn hit(&self, name: &str) -> Option<&Hit<'t>> {
        self.hits.iter().find(|hit| hit.name == name)
    }

    /// The field `value` of a line.
    pub fn text(&self, name: &str) -> Option<&'t str> {
        self.hit(name)?.text("value")
    }

    /// The fields `value` of lines.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &'t str> {
        self.all(name).filter_map(|hit| hit.text("value"))
    }

    fn is_fresh(&self) -> bool {
        !self.ended && self.hits.iter().all(|hit| matches!(hit.role, Role::Begins | Role::Ahead))
    }
}

/// What a text holds of a program.
#[derive(Debug, Default)]
pub struct Log<'t> {
    pub runs: Vec<Run<'t>>,
    /// Unknown lines inside of runs: the first, and how many.
    unread: Option<(String, usize)>,
    /// How many of them look like figures.
    refused: usize,
    left_out: usize,
}

/// What stands right above a line.
#[derive(Clone, Copy, Debug)]
pub struct LinesAbove {
    /// Something that may be a heading.
    pub is_headed: bool,
    /// One that is marked as a heading.
    pub is_marked: bool,
}

/// Whether a line begins another run although its kind alone does not say so, and how many of the
/// lines before it are of that run, too. It is asked with the runs so far, and what stands above.
pub type BeginsAnother = fn(&[Run], &Hit, LinesAbove) -> Option<usize>;

/// Lines of a kind that are searched.
const MAX_SAID: usize = 200;

/// Parts of a printout below two headings are two runs: a line that the run already has, below what
/// may be a heading, begins the next run.
pub fn said_again(runs: &[Run], hit: &Hit, above: LinesAbove) -> Option<usize> {
    let run = runs.last().filter(|_| above.is_headed)?;
    let own = label(hit.line());
    run.all(hit.name).take(MAX_SAID).any(|said| label(said.line()) == own).then_some(0)
}

/// What a line is of: its first word, and the others without numbers.
fn label(line: &str) -> Vec<&str> {
    let is_number = |word: &str| word.contains(|one: char| one.is_ascii_digit());
    let words = line.split_whitespace().enumerate();
    words.filter(|(at, word)| *at == 0 || !is_number(word)).map(|(_, word)| word).collect()
}

/// The runs in a text of this program.
pub fn log<'t>(text: &'t str, program: &str, table: &Table, again: BeginsAnother) -> Log<'t> {
    let mut log = Log::default();
    let mut tracker = ContextTracker::new(text.lines());
    let mut ahead: Vec<Hit> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let Some(hit) = table.hit(line) else {
            open &= !tracker.line(line, program);
            continue;
        };
        if hit.role == Role::Ignored {
            continue;
        }
        log.refuse(&mut tracker, table);
        if hit.role == Role::Separates {
            open = false;
            continue;
        }
        let goes_on = |run: &Run| match hit.role {
            Role::Begins => false,
            Role::Once => !run.ended && run.hit(hit.name).is_none(),
            Role::Ahead => run.is_fresh() && run.hit(hit.name).is_none(),
            Role::Within => !run.ended && !tracker.is_headed(),
            _ => !run.ended,
        };
        let is_inside = open && log.runs.last().is_some_and(goes_on);
        let along = if is_inside { again(&log.runs, &hit, tracker.above()) } else { None };
        let mut hits = std::mem::take(&mut ahead);
        match log.runs.last_mut() {
            Some(run) if is_inside && along.is_none() => {
                ahead = hits;
                run.ended |= hit.role == Role::Ends;
                if run.hits.len() < MAX_LINES {
                    run.hits.push(hit);
                }
                log.skip(&mut tracker);
                continue;
            }
            Some(run) => hits.extend(run.hits.drain(run.hits.len() - along.unwrap_or(0)..)),
            None => {}
        }
        if matches!(hit.role, Role::Ahead | Role::Within) {
            ahead = hits;
            if ahead.len() < MAX_AHEAD {
                ahead.push(hit);
            }
            continue;
        }
        // Nothing has begun that it could end.
        if hit.role == Role::Ends {
            ahead = hits;
            continue;
        }
        if log.runs.len() >= MAX_RUNS {
            log.left_out += 1;
            open = false;
            continue;
        }
        hits.push(hit);
        log.runs.push(Run { context: tracker.begin(), hits, ended: false });
        open = true;
    }
    log.refuse(&mut tracker, table);
    log.skip(&mut tracker);
    log
}

impl<'t> Log<'t> {
    /// Takes lines that look like figures from those that may head the next run.
    fn refuse(&mut self, tracker: &mut ContextTracker<'t>, table: &Table) {
        /// Lines of the run before that one is compared with.
        const BESIDE: usize = 50;
        let hits = self.runs.last().map_or(&[][..], |run| &run.hits);
        let known = || hits.iter().rev().take(BESIDE).map(Hit::line);
        let is_like = |line: &str| {
            let own = words(line);
            own.as_ref().is_some_and(|_| known().any(|known| words(known) == own))
        };
        let refused = tracker.take_lines(|line| table.is_damaged(line) || is_like(line));
        self.refused += refused.len();
        refused.into_iter().for_each(|line| self.unread.get_or_insert((line, 0)).1 += 1);
    }

    /// Counts unknown lines.
    fn skip(&mut self, tracker: &mut ContextTracker) {
        if let Some((first, count)) = tracker.drop_lines() {
            self.unread.get_or_insert((first, 0)).1 += count;
        }
    }
}

/// Everything that distinguishes a result from others.
#[derive(Clone, Debug)]
struct Identity {
    context: RunContext,
    facts: Vec<(&'static str, String)>,
}

impl Identity {
    /// Its context, in front of its facts, with what only distinguishes it from the others.
    fn words(&self, others: &[Identity]) -> Vec<(String, String)> {
        let differs = |name: &str| others.iter().any(|other| other.fact(name) != self.fact(name));
        let apart = self.facts.iter().filter(|(name, _)| differs(name));
        let apart = apart.filter_map(|(name, value)| Some((name.strip_prefix(APART)?, value.clone())));
        let others: Vec<&RunContext> = others.iter().map(|other| &other.context).collect();
        [
            ("heading", self.context.heading(&others)),
            ("started by", self.context.under().to_string()),
            ("program", self.context.program().to_string()),
        ]
        .into_iter()
        .chain(apart)
        .filter(|(_, value)| !value.is_empty())
        .map(|(label, value)| (label.to_string(), value.chars().take(200).collect()))
        .collect()
    }

    fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// A fact whose name begins so is shown only where it distinguishes results.
pub const APART: char = '?';

/// The results that runs come to.
pub struct Results {
    format: Format,
    remark: &'static str,
    all: Vec<(Identity, Builder, Faults)>,
    /// What runs printed that no other prints by chance, by the place of their result.
    seen: BTreeSet<(usize, String)>,
    again: usize,
    left_out: usize,
}

impl Results {
    /// Each result gets `remark`.
    pub fn new(format: Format, remark: &'static str) -> Results {
        Results { format, remark, all: Vec::new(), seen: BTreeSet::new(), again: 0, left_out: 0 }
    }

    /// The result that a run is part of, by its context and facts; `None` where there are too
    /// many, or where it stands in the text a second time. Of the facts, `kernel` and its like,
    /// those with a name are shown, and those whose name begins with [`APART`] where
    /// they distinguish results. `unique`: no two runs print alike by chance.
    pub fn of(
        &mut self,
        run: &Run,
        facts: Vec<(&'static str, String)>,
        unique: bool,
    ) -> Option<(&mut Builder, &mut Faults)> {
        let lines: Vec<&str> = run.hits.iter().map(Hit::line).collect();
        self.of_told(&run.context, facts, unique.then(|| lines.join("\n")))
    }

    /// The same, of a run with this context; `own` is what no other prints by chance.
    pub fn of_told(
        &mut self,
        context: &RunContext,
        facts: Vec<(&'static str, String)>,
        own: Option<String>,
    ) -> Option<(&mut Builder, &mut Faults)> {
        let facts = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let identity = Identity { context: context.clone(), facts };
        let is_same = |known: &Identity| {
            known.facts == identity.facts && !identity.context.is_apart(&known.context, true)
        };
        let place = self.all.iter().position(|(known, _, _)| is_same(known));
        let place = match place {
            Some(place) => place,
            None if self.all.len() >= MAX_RESULTS => {
                self.left_out += 1;
                return None;
            }
            None => {
                let host = identity.fact("host").unwrap_or(&identity.context.host);
                let mut builder = Builder::new(self.format, host);
                builder.remarks.push(self.remark.to_string());
                for (name, value) in &identity.facts {
                    if !["", "host"].contains(name) && !name.starts_with(APART) {
                        builder.fact(name, value);
                    }
                }
                self.all.push((identity, builder, Faults::default()));
                self.all.len() - 1
            }
        };
        if own.is_some_and(|own| !self.seen.insert((place, own))) {
            self.again += 1;
            return None;
        }
        self.all.get_mut(place).map(|(_, builder, faults)| (builder, faults))
    }

    /// The results in the text's order, the first with what is to be said of the text; of their
    /// metrics these say most.
    pub fn finish_with(self, log: &Log, metrics: &[&str]) -> Vec<Imported> {
        let mut results = self.finish(log);
        results.iter_mut().for_each(|result| headlines(result, metrics));
        results
    }

    /// The same where all metrics say as much.
    pub fn finish(self, log: &Log) -> Vec<Imported> {
        let mut remarks = Vec::new();
        let hits = log.runs.iter().flat_map(|run| &run.hits);
        let refused: Vec<&str> = hits.filter(|hit| hit.is_refused()).map(Hit::line).collect();
        let (first, count) = log.unread.clone().unwrap_or_default();
        if let Some(first) = refused.first().copied().or(Some(first.as_str()).filter(|_| count > 0)) {
            let count = count + refused.len();
            remarks.push(unread(count, &short(first)));
        }
        let mut refused = refused.len() + log.refused;
        if self.again > 0 {
            remarks.push(match self.again {
                1 => "1 run appears twice and counts once".to_string(),
                again => format!("{again} runs appear twice and count once"),
            });
        }
        for (left_out, what) in [(log.left_out, "runs"), (self.left_out, "runs of further results")] {
            if left_out > 0 {
                remarks.push(format!("{left_out} {what} were left out: the file has too many"));
            }
        }
        let results: Vec<_> = self.all.into_iter().filter(|(_, builder, _)| !builder.is_empty()).collect();
        let identities: Vec<Identity> = results.iter().map(|(identity, _, _)| identity.clone()).collect();
        results
            .into_iter()
            .map(|(identity, mut builder, faults)| {
                builder.make_up.splice(0..0, identity.words(&identities));
                builder.remarks.append(&mut remarks);
                let refused = std::mem::take(&mut refused);
                Imported { findings: faults.findings(), refused, ..builder.finish() }
            })
            .collect()
    }
}

/// The words of a line without its numbers; `None` where it has none of either.
fn words(line: &str) -> Option<Vec<&str>> {
    let is_number = |word: &&str| word.contains(|one: char| one.is_ascii_digit());
    let own: Vec<&str> = line.split_whitespace().filter(|word| !is_number(word)).collect();
    let is_worded = own.iter().any(|word| word.contains(char::is_alphabetic));
    (is_worded && line.split_whitespace().any(|word| is_number(&word))).then_some(own)
}

/// Marks which metrics say most of a result.
pub fn headlines(imported: &mut Imported, names: &[&str]) {
    let figures = imported.figures.iter_mut().map(|figure| &mut figure.judged.series.metric);
    let titles = imported.catalogue.iter_mut().flat_map(|title| &mut title.metrics);
    figures.chain(titles).for_each(|metric| metric.headline = names.contains(&metric.name.as_ref()));
}

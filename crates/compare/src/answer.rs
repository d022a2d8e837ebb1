//! The answer of a comparison: a word, at most three sentences, and groups of figures with their
//! rows.

use std::collections::BTreeMap;

use super::arm::benchmark;
use super::components::pooled_group;
use super::key_rows::{self, MISLEADS, Row, RowOutcome};
use super::words::share;
use super::{Compared, Comparison, MARGINS, Pooled, Relation};
use diagnose::key_figures::{Group, of_key};
use diagnose::words::{capital, counted};
use model::pattern::KeyParts;
use model::vocabulary::host::rule;
use stats::order::median;

/// Rows of the first screen.
pub const MAX_ROWS: usize = 12;

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Faster,
    Slower,
    Same,
    CannotTell,
    /// Too little counts to say anything.
    NoConclusion,
}

/// The answer about one result compared with A.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// The verdict in few words: `B is slower`.
    pub word: String,
    /// At most three.
    pub sentences: Vec<String>,
    /// In the order of every screen, those that have rows.
    pub groups: Vec<GroupAnswer>,
    /// Figures that both have, and those of them that count.
    pub both: usize,
    pub counted: usize,
}

#[derive(Clone, Debug)]
pub struct GroupAnswer {
    pub group: Group,
    /// Over all figures of the group that count.
    pub pooled: Option<Pooled>,
    pub said: Option<(Relation, String)>,
    pub rows: Vec<Row>,
}

impl Comparison {
    /// The answer about B, which is called `letter` here, with at most this number of rows.
    pub fn answer(&self, letter: &str, most_rows: usize) -> Answer {
        self.answered(letter, key_rows::rows(self, most_rows))
    }

    /// The same with a row for each figure that both have.
    pub fn whole_answer(&self, letter: &str) -> Answer {
        // The sentences stay those of the first screen.
        Answer { groups: self.groups(key_rows::all_rows(self)), ..self.answer(letter, MAX_ROWS) }
    }

    fn answered(&self, letter: &str, rows: Vec<Row>) -> Answer {
        let groups = self.groups(rows);
        let refused = self.refused.iter().filter(|one| one.headline && one.conditions).count();
        let headlines = self.metrics.iter().filter(|one| one.headline).count();
        let both = headlines + refused;
        let counted = self.index.as_ref().map_or(0, |index| index.metrics);
        // A few known figures are no sample of all.
        let speaks = 2 * refused <= both && COUNTED_ONE_IN * counted >= both;
        let said = self.index.as_ref().filter(|_| speaks).map(|index| (index, self.concluded(index).0));
        let outcome = said.map_or(Outcome::NoConclusion, |(_, word)| match word {
            Relation::Faster => Outcome::Faster,
            Relation::Slower => Outcome::Slower,
            Relation::Same => Outcome::Same,
            _ => Outcome::CannotTell,
        });
        let of = FigureCounts { both, counted, refused };
        let sentences = match said {
            None => self.nothing_said(letter, &of),
            Some((index, _)) => {
                let first = self.first_sentence(letter, index, outcome, &of);
                let second = self.second_sentence(outcome, &groups).or_else(|| match outcome {
                    Outcome::Same | Outcome::CannotTell => self.left_out(letter, &groups, &of),
                    _ => None,
                });
                let third = self.third_sentence(letter, outcome, &groups, &of);
                [Some(first), second, third].into_iter().flatten().collect()
            }
        };
        let word = match outcome {
            Outcome::Faster => format!("{letter} is faster"),
            Outcome::Slower => format!("{letter} is slower"),
            Outcome::Same => format!("{letter} is as fast as A"),
            Outcome::CannotTell => "Cannot tell".to_string(),
            Outcome::NoConclusion => "No conclusion".to_string(),
        };
        Answer { outcome, word, sentences, groups, both, counted }
    }

    /// What a pooled ratio says within the margins of this comparison.
    pub fn concluded(&self, pooled: &Pooled) -> (Relation, String) {
        let mut margins: Vec<f64> = MARGINS.into_iter().filter(|margin| *margin < self.margin).collect();
        margins.push(self.margin);
        pooled.conclude(&margins)
    }

    fn groups(&self, rows: Vec<Row>) -> Vec<GroupAnswer> {
        let mut by_group: BTreeMap<Group, Vec<Row>> = BTreeMap::new();
        for row in rows {
            by_group.entry(row.group).or_default().push(row);
        }
        let answer = |(group, rows): (Group, Vec<Row>)| {
            let pooled = pooled_group(&self.metrics, group);
            let said = pooled.as_ref().map(|pooled| self.concluded(pooled));
            GroupAnswer { group, pooled, said, rows }
        };
        by_group.into_iter().map(answer).collect()
    }

    fn first_sentence(&self, letter: &str, index: &Pooled, outcome: Outcome, of: &FigureCounts) -> String {
        if let Some(twins) = &self.twins {
            return format!("{twins}.");
        }
        let overall = ratio_words(index);
        let from = if of.counted == of.both {
            format!("from all {} figures", of.both)
        } else {
            format!("from {} of {} figures", of.counted, of.both)
        };
        let (_, within) = self.concluded(index);
        match outcome {
            Outcome::Faster | Outcome::Slower => {
                format!("{letter} is {} than A overall: {overall}, {from}.", by(index.ratio))
            }
            Outcome::Same => {
                let margin = within.strip_prefix("same ").unwrap_or(&within).to_string();
                format!("{letter} is as fast as A overall, {margin}: {overall}, {from}.")
            }
            _ => format!("Cannot tell whether {letter} or A is faster overall: {overall}, {from}."),
        }
    }

    /// What decides, or what differs although the whole does not.
    fn second_sentence(&self, outcome: Outcome, groups: &[GroupAnswer]) -> Option<String> {
        let way = match outcome {
            Outcome::Faster => Some(Relation::Faster),
            Outcome::Slower => Some(Relation::Slower),
            _ => None,
        };
        let named = |word: Relation| -> Vec<&str> {
            let own = groups.iter().filter(|group| group.said.as_ref().is_some_and(|said| said.0 == word));
            own.map(|group| group.group.word()).collect()
        };
        let rows = || groups.iter().flat_map(|group| &group.rows).filter(|row| row.is_different());
        if let Some(way) = way {
            let deciding = named(way);
            let own = rows().filter(|row| row.word() == Some(way));
            let most =
                strongest(own.filter(|row| deciding.is_empty() || deciding.contains(&row.group.word())));
            let same = named(Relation::Same);
            let others = if same.is_empty() {
                String::new()
            } else {
                format!("; {} {} the same", list(&same), if same.len() == 1 { "is" } else { "are" })
            };
            let decided = match deciding.as_slice() {
                [] if most.is_empty() => return None,
                [] => "A few figures decide it".to_string(),
                [only] => format!("{} decides it", capital(only)),
                several => format!("{} decide it", capital(&list(several))),
            };
            let figures = if most.is_empty() { String::new() } else { format!(": {}", most.join(", ")) };
            return Some(format!("{decided}{figures}{others}."));
        }
        let is_named = |one: &&Compared| one.headline || of_key(&one.key).is_some();
        let differing = self.metrics.iter().filter(is_named).filter(|one| one.word.is_different());
        let differing: Vec<Row> = differing.map(Row::counted).collect();
        // A figure without a better side has no row.
        let mut most = strongest(rows());
        if most.is_empty() {
            most = strongest(differing.iter());
        }
        match differing.len() {
            _ if self.twins.is_some() => None,
            0 => None,
            1 => Some(format!("One figure differs: {}.", most.join(", "))),
            many => Some(format!("{many} figures differ, most of all {}.", most.join(" and "))),
        }
    }

    /// What the conclusion hangs on, what could not have been seen, or what is left out.
    fn third_sentence(
        &self,
        letter: &str,
        outcome: Outcome,
        groups: &[GroupAnswer],
        of: &FigureCounts,
    ) -> Option<String> {
        let index = self.index.as_ref()?;
        if matches!(outcome, Outcome::Faster | Outcome::Slower) {
            return match index.decided_by.first() {
                Some(bench) => Some(format!(
                    "This rests on {} alone: without it the two change sides.",
                    self.title_of(bench)
                )),
                None => self.left_out(letter, groups, of),
            };
        }
        let single: Vec<f64> =
            self.metrics.iter().filter(|one| one.headline).filter_map(|one| one.would_show).collect();
        let all = share(index.would_show());
        let half = median(&single)
            .map_or(String::new(), |middle| format!(", and {} in half of the figures", share(middle)));
        let what = if self.twins.is_some() { "Two such runs" } else { "This comparison" };
        Some(format!("{what} can detect {all} overall{half}."))
    }

    /// The title of a benchmark, as its figures bring it.
    fn title_of(&self, bench: &str) -> String {
        let own = self.metrics.iter().find(|one| one.bench == bench);
        own.map_or(bench, |one| benchmark(&one.title)).to_string()
    }

    /// What is left out and why: a figure that misleads is named, of all others only the reasons.
    fn left_out(&self, letter: &str, groups: &[GroupAnswer], of: &FigureCounts) -> Option<String> {
        let rows = groups.iter().flat_map(|group| &group.rows);
        let misleads = rows.filter_map(|row| match &row.said {
            RowOutcome::Left(factor, _) if factor == PLACEMENT => Some((row, row.raw_ratio()?)),
            _ => None,
        });
        let worst = misleads.max_by(|one, other| one.1.ln().abs().total_cmp(&other.1.ln().abs()));
        if let Some((row, ratio)) = worst.filter(|(_, ratio)| ratio.ln().abs() > MISLEADS.ln()) {
            return Some(format!(
                "Leave out {}: its values lie {:.1} times apart only because its tasks ran on other CPUs in {letter}.",
                name(row),
                ratio.max(1.0 / ratio)
            ));
        }
        let (many, reason) = self.main_reason(letter)?;
        let figures = match of.refused {
            1 => "1 figure is left out".to_string(),
            many => format!("{many} figures are left out"),
        };
        Some(if many == of.refused {
            format!("{figures}: {reason}.")
        } else {
            format!("{figures}, {many} of them because {reason}.")
        })
    }

    /// The sentences where nothing can be said of the whole.
    fn nothing_said(&self, letter: &str, of: &FigureCounts) -> Vec<String> {
        if self.is_apart() {
            return self.said_apart(letter);
        }
        let mut said = Vec::new();
        let reason = self.main_reason(letter);
        said.push(match (&reason, of.both) {
            (_, 0) => format!("No conclusion: A and {letter} have no figure in common that can be compared."),
            (Some((count, reason)), both) => {
                let others = match of.refused - count {
                    0 => String::new(),
                    others => format!(", nor do {others} for other reasons"),
                };
                format!("No conclusion: {reason}, so {count} of {both} figures do not count{others}.")
            }
            (None, both) if self.imported => format!("No conclusion: {}.", self.imported_words(letter, both)),
            (None, both) => {
                let known = match of.counted {
                    0 => format!("none of the {both} figures is"),
                    1 => format!("only 1 of {both} figures is"),
                    many => format!("only {many} of {both} figures are"),
                };
                format!("No conclusion: {known} known well enough.")
            }
        });
        if let Some(index) = self.index.as_ref().filter(|_| reason.is_some()) {
            let what = counted(of.counted, "figure");
            said.push(match self.concluded(index).0 {
                Relation::Inconclusive => {
                    format!("What remains, {what}, is too uncertain: {}.", ratio_words(index))
                }
                _ => format!("What remains, {what}, is too little: {}.", ratio_words(index)),
            });
        }
        let factor = self.factors().into_iter().next().map(|(factor, _, rejected)| (factor, rejected));
        said.push(match factor {
            Some((factor, rejected)) if rule::BACKGROUND_LOAD == factor => {
                format!("Measure {} again on a quiet host: `assay run --wait-idle`", who(rejected, letter))
            }
            Some((factor, rejected)) if rule::STEAL == factor => {
                format!("Measure {} again at another hour, or on dedicated CPUs.", who(rejected, letter))
            }
            Some((factor, rejected)) if rule::CPU_QUOTA == factor => {
                format!("Measure {} again without the quota (cpu.max).", who(rejected, letter))
            }
            Some((factor, _)) if factor == PLACEMENT => {
                "Compare figures of pinned tasks: `assay compare A B --only ...`".to_string()
            }
            _ if self.imported && self.metrics.is_empty() => {
                "`--left-out` lists the reason for each figure.".to_string()
            }
            _ if self.imported && self.are_single() => "The ratios below compare single values.".to_string(),
            _ if self.imported => "The ratios below compare medians.".to_string(),
            _ if of.both == 0 => "Measure the same on both: `assay run`".to_string(),
            Some(_) => "`--left-out` lists the reason for each figure.".to_string(),
            None => "Measure longer: `assay run --profile standard`".to_string(),
        });
        said
    }

    /// The most frequent reason among headline figures that conditions forbid, with how often.
    fn main_reason(&self, letter: &str) -> Option<(usize, String)> {
        let (factor, many, rejected) = self.factors().into_iter().next()?;
        let (who, was) = (who(rejected, letter), if rejected == [true; 2] { "were" } else { "was" });
        let reason = match factor.as_str() {
            _ if rule::BACKGROUND_LOAD == factor => format!("{who} {was} measured beside other work"),
            _ if rule::STEAL == factor => format!("the host withheld CPU time from {who} (steal)"),
            _ if rule::CPU_QUOTA == factor => format!("a CPU quota stopped {who}"),
            _ if rule::MEMORY_PRESSURE == factor => format!("{who} {was} short of memory"),
            _ if rule::SWAPPING == factor => format!("{who} swapped"),
            _ if rule::HIGHER_PRIORITY == factor => {
                format!("tasks of a higher priority ran while {who} {was} measured")
            }
            PLACEMENT => "tasks ran on other CPUs in one of the two".to_string(),
            "pages" => "one of the two used other page sizes".to_string(),
            "samples" => "the samples of one of the two were invented (--pretend)".to_string(),
            "clock-source" => "the two timed single events with different clocks".to_string(),
            "beside" => "one of the two was measured under a planned load".to_string(),
            "knobs" => "kernel settings were changed for one of the two".to_string(),
            "verdict" => format!("no value of {who} can be used"),
            other => format!("{other} differs"),
        };
        Some((many, reason))
    }

    /// Factors of headline figures that conditions forbid, the most frequent first, with the sides
    /// whose values were rejected.
    fn factors(&self) -> Vec<(String, usize, [bool; 2])> {
        let mut counts: BTreeMap<&str, (usize, [bool; 2])> = BTreeMap::new();
        for one in self.refused.iter().filter(|one| one.headline && one.conditions) {
            let (many, rejected) = counts.entry(&one.factor).or_default();
            *many += 1;
            *rejected = [0, 1].map(|side| rejected[side] || one.rejected[side]);
        }
        let mut all: Vec<(String, usize, [bool; 2])> = counts
            .into_iter()
            .map(|(factor, (many, rejected))| (factor.to_string(), many, rejected))
            .collect();
        all.sort_by_key(|(_, many, _)| std::cmp::Reverse(*many));
        all
    }
}

/// The sides whose values were rejected; B has a letter of its own where there are several.
fn who(rejected: [bool; 2], letter: &str) -> String {
    match rejected {
        [true, true] => format!("A and {letter}"),
        [true, false] => "A".to_string(),
        _ => letter.to_string(),
    }
}

/// A conclusion needs at least one in this many of the figures that both have.
const COUNTED_ONE_IN: usize = 4;

/// The factor of figures whose tasks were elsewhere.
const PLACEMENT: &str = "placement";

struct FigureCounts {
    both: usize,
    counted: usize,
    refused: usize,
}

/// A sentence that ranks several results, each against A; `None` of a single one.
pub fn ranking(answers: &[(&str, &Comparison, &Answer)]) -> Option<String> {
    let mut known: Vec<(&str, &Pooled, Outcome)> = answers
        .iter()
        .filter(|(_, _, answer)| answer.outcome != Outcome::NoConclusion)
        .filter_map(|(letter, one, answer)| Some((*letter, one.index.as_ref()?, answer.outcome)))
        .collect();
    known.sort_by(|one, other| other.1.ratio.total_cmp(&one.1.ratio));
    let silent: Vec<&str> = answers
        .iter()
        .filter(|(letter, ..)| known.iter().all(|(own, ..)| own != letter))
        .map(|(letter, ..)| *letter)
        .collect();
    let none = match silent.as_slice() {
        [] => String::new(),
        letters => format!(" No conclusion for {}.", list(letters)),
    };
    let (letter, first, outcome) = known.first().copied()?;
    let of_a = format!("{} of A", ratio_words(first));
    let lead = match outcome {
        Outcome::Faster => format!("{letter} is fastest overall: {of_a}"),
        Outcome::Slower => "A is fastest overall".to_string(),
        _ => format!("None is faster than A overall: {letter} comes nearest with {of_a}"),
    };
    let rest = if outcome == Outcome::Slower { &known[..] } else { &known[1..] };
    let words = rest.iter().map(|(letter, pooled, outcome)| {
        let unsure =
            if *outcome == Outcome::CannotTell { ", the difference from A is uncertain" } else { "" };
        format!("{letter} {}{unsure}", ratio_words(pooled))
    });
    let words: Vec<String> = words.collect();
    let then = if words.is_empty() { String::new() } else { format!("; then {}", words.join("; ")) };
    (answers.len() > 1).then(|| format!("{lead}{then}.{none}"))
}

/// `0.93 (0.91–0.95)`.
pub fn ratio_words(pooled: &Pooled) -> String {
    format!("{:.2} ({:.2}–{:.2})", pooled.ratio, pooled.ci95[0], pooled.ci95[1])
}

/// `7 % slower`.
fn by(ratio: f64) -> String {
    if ratio >= 1.0 {
        format!("{} faster", share(ratio - 1.0))
    } else {
        format!("{} slower", share(1.0 - ratio))
    }
}

/// The two rows that differ most, with what their values changed by: `memory latency +26 %`.
fn strongest<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
    let mut rows: Vec<(&Row, f64)> = rows.filter_map(|row| Some((row, row.ratio?.ln().abs()))).collect();
    // Readers know the key figures.
    let order = |(row, apart): &(&Row, f64)| (row.figure.is_none(), -apart);
    rows.sort_by(|one, other| {
        let (one, other) = (order(one), order(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    let words = rows.iter().take(2).map(|(row, _)| {
        let changed = row.values[1] / row.values[0] - 1.0;
        match changed {
            changed if changed >= 2.0 => format!("{} {:.1} times as much", name(row), 1.0 + changed),
            changed if changed < 0.0 => format!("{} −{:.0} %", name(row), -changed * 100.0),
            changed => format!("{} +{:.0} %", name(row), changed * 100.0),
        }
    });
    let mut words: Vec<String> = words.collect();
    words.dedup();
    words
}

/// What a row is called in a sentence.
fn name(row: &Row) -> String {
    let title = || if row.title.is_empty() { KeyParts::of(&row.key).bench } else { &row.title };
    row.figure.map_or_else(title, |figure| figure.alone).replace(": ", ", ")
}

/// `memory`, `memory and disk`, `CPU, memory and disk`.
fn list(words: &[&str]) -> String {
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => last.to_string(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

//! The UnixBench index: the familiar report for each number of copies, then what stands behind its
//! numbers, context switching by placement, the index in its forms, and what UnixBench's own
//! arithmetic would have made of the same passes.

use std::fmt::Write;

use super::figures::{cv_in_words, spread_words};
use super::names::placement_words;
use super::{column, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::words::{self, percent};
use model::vocabulary::unixbench::metric::SCORE;
use model::{COMPILER, Case, Samples, Visit};
use stats::analysis::Judged;
use stats::order::Interval;
use stats::unixbench::{CONTEXT, Classic, Form, INDEX, Scores, Test, as_unixbench, of_bench, scores, usable};

/// Whether a case stands in this section, and nowhere else.
pub fn is_own(case: &Case) -> bool {
    of_bench(&case.bench).is_some()
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let all = scores(&diagnosis.series);
    let mut blocks: Vec<Block> = Vec::new();
    for scores in &all {
        let own = self::blocks(diagnosis, scores);
        // Apart from what was said of fewer copies.
        let apart = |block| match block {
            Block::Preformatted(text) if !blocks.is_empty() => Block::Preformatted(format!("\n{text}")),
            block => block,
        };
        let own: Vec<Block> = own.into_iter().map(apart).collect();
        blocks.extend(own);
    }
    Section::new("unixbench", "UnixBench", blocks)
        .about(
            "Assay's own programs measure the tests and the index of UnixBench after the \
                 published descriptions. A score is the median of passes with its interval. The index is the geometric \
                 mean of the scores over those of a SPARCstation 20-61 (10.0), its interval by the delta method. \
                 `UnixBench's own` is what the suite would print for the same passes: it drops the worst third and \
                 takes the geometric mean of the rest.",
        )
        .unless_empty()
}

/// The index in its forms, and what decides about the one row that placement decides.
pub fn conclusion(diagnosis: &Diagnosis) -> Vec<String> {
    let sentences = |scores: &Scores| {
        let words: Vec<String> = [index_words(scores), context_words(scores)].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(" "))
    };
    scores(&diagnosis.series).iter().filter_map(sentences).collect()
}

/// The index of a number of copies, free and pinned.
pub fn index_words(scores: &Scores) -> Option<String> {
    let index = |form: Form| scores.context(form).and_then(|_| scores.index(form).ok());
    let free = index(Form::Classic).map(|score| {
        let range = score.interval.map_or(String::new(), |own| format!(" ({:.0}–{:.0})", own.low, own.high));
        format!("index {:.0}{range}.", score.value)
    });
    let pinned = [(Form::Pinned, "one CPU"), (Form::TwoCpus, "two CPUs")].into_iter();
    let pinned = pinned.filter_map(|(form, place)| Some(format!("on {place} {:.0}", index(form)?.value)));
    let pinned: Vec<String> = pinned.collect();
    let pinned = (!pinned.is_empty()).then(|| format!("With context switching {}.", pinned.join(", ")));
    let said: Vec<String> = [free, pinned].into_iter().flatten().collect();
    (!said.is_empty()).then(|| format!("{}: {}", copies_words(scores.copies), said.join(" ")))
}

/// `1 copy`, `4 copies`.
pub fn copies_words(copies: i64) -> String {
    format!("{copies} {}", if copies == 1 { "copy" } else { "copies" })
}

fn blocks(diagnosis: &Diagnosis, scores: &Scores) -> Vec<Block> {
    let mut blocks = Vec::new();
    if scores.tests().next().is_some() {
        blocks.push(Block::Preformatted(familiar(diagnosis, scores)));
    }
    let rows = rows(scores);
    if !rows.is_empty() {
        blocks.push(Block::Table(Table::new(columns(scores.copies), rows)));
    }
    if scores.absent().is_empty() {
        blocks.push(Block::Table(indices(scores)));
    }
    let words: Vec<String> = [hidden_words(scores), compiler_words(scores)].into_iter().flatten().collect();
    if !words.is_empty() {
        blocks.push(Block::Prose(words.join(" ")));
    }
    blocks
}

/// The report as UnixBench lays it out, with our medians. Writing to a string cannot fail.
fn familiar(diagnosis: &Diagnosis, scores: &Scores) -> String {
    let mut out = String::new();
    let cpus = diagnosis.machine.cpus.online.len();
    let _ = writeln!(
        out,
        "{cpus} CPU{} in system; running {} parallel cop{} of tests\n",
        if cpus == 1 { "" } else { "s" },
        scores.copies,
        if scores.copies == 1 { "y" } else { "ies" },
    );
    for (test, judged) in scores.tests() {
        let Test { title, unit, .. } = test;
        let _ = match usable(judged) {
            Some(score) => {
                let (seconds, samples) = (seconds(diagnosis, judged), judged.series.processes.len());
                writeln!(out, "{title:<40} {score:>12.1} {unit:<5} ({seconds:.1} s, {samples} samples)")
            }
            None => writeln!(out, "{title:<40} {:>12} {unit:<5} ({})", "---", judged.analysis.verdict.kind),
        };
    }
    let values = if scores.absent().is_empty() { "Index Values" } else { "Partial Index" };
    let head = format!("{INDEX} {values}");
    let _ = writeln!(out, "\n{head:<40} {:>12} {:>12} {:>8}", "BASELINE", "RESULT", "INDEX");
    for (test, judged) in scores.tests() {
        let Test { title, baseline, .. } = test;
        let _ = match usable(judged) {
            Some(score) => {
                writeln!(out, "{title:<40} {baseline:>12.1} {score:>12.1} {:>8.1}", test.index(score))
            }
            None => writeln!(out, "{title:<40} {baseline:>12.1} {:>12} {:>8}", "---", "---"),
        };
    }
    let score = format!("{INDEX} Index Score");
    let _ = match scores.index(Form::Classic) {
        Ok(found) => writeln!(out, "{:>75}\n{score:<66} {:>8.1}", "========", found.value),
        Err(why) => writeln!(out, "{score}: {why}"),
    };
    out
}

/// How long a process measured, on the average, s.
fn seconds(diagnosis: &Diagnosis, judged: &Judged) -> f64 {
    let own = |visit: &&Visit| visit.case as usize == judged.series.planned && visit.reason.is_none();
    let visits = diagnosis.run.visits.iter().filter(own);
    let score = |samples: &&Samples| samples.metrics.iter().any(|name| *name == SCORE);
    let times = visits.map(|visit| {
        let counted = visit.samples.iter().filter(score).flat_map(|one| one.ns.iter().skip(one.warm_up));
        counted.sum::<f64>() / 1e9
    });
    let times: Vec<f64> = times.collect();
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

fn columns(copies: i64) -> Vec<crate::block::Column> {
    super::columns(&format!(
        "test, {} | placement | n: | median: | 95 %: | CV: | UnixBench's own: | difference: | verdict",
        copies_words(copies)
    ))
}

/// The tests, context switching in each of its placements under the other.
fn rows(scores: &Scores) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let pinned = || [Form::Pinned, Form::TwoCpus].into_iter().filter_map(|form| scores.context(form));
    for (test, judged) in scores.tests() {
        rows.push(row(test.title, test.unit, judged));
        if test.name == CONTEXT {
            rows.extend(pinned().map(|judged| row("  the same test", test.unit, judged)));
        }
    }
    if scores.context(Form::Classic).is_none() {
        let own = pinned().filter_map(|judged| Some((of_bench(&judged.series.case.bench)?, judged)));
        rows.extend(own.map(|(test, judged)| row(test.title, test.unit, judged)));
    }
    rows
}

/// Where the tasks of each copy are; two CPUs always by their class.
fn place(form: Form, judged: &Judged, copies: i64) -> String {
    let each = if copies == 1 { "" } else { " each" };
    match form {
        Form::Classic => "free".to_string(),
        Form::Pinned => format!("one CPU{each}"),
        Form::TwoCpus => {
            let words = words::placement(&judged.series.case.placement.name);
            format!("{}{each}", words.trim_start_matches("on "))
        }
    }
}

fn row(title: &str, unit: &str, judged: &Judged) -> Vec<Cell> {
    // What was rejected is shown as everywhere, with its verdict; no index is made of it.
    let estimate = judged.analysis.figure();
    let own = as_unixbench(judged);
    vec![
        text(title),
        text(placement_words(&judged.series.case.placement.name)),
        number(estimate.map_or(String::new(), |estimate| estimate.n.to_string())),
        number(estimate.map_or("–".to_string(), |estimate| format!("{:.1} {unit}", estimate.median))),
        number(spread_words(judged)),
        number(cv_in_words(judged).unwrap_or_default()),
        number(own.map_or(String::new(), |own| format!("{:.1}", own.score))),
        number(more(judged).map_or(String::new(), signed)),
        Cell::Verdict(judged.analysis.verdict.clone()),
    ]
}

/// By which share UnixBench's own treatment lies above the median.
fn more(judged: &Judged) -> Option<f64> {
    Some(as_unixbench(judged)?.score / usable(judged)? - 1.0)
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "-" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

/// The index as UnixBench takes it, and pinned as its readers advise.
fn indices(scores: &Scores) -> Table {
    let range = |interval: Option<Interval>| {
        number(interval.map_or("–".to_string(), |own| format!("{:.1}–{:.1}", own.low, own.high)))
    };
    let forms = Form::ALL.into_iter().filter_map(|form| {
        let judged = scores.context(form)?;
        let name = match form {
            Form::Classic => "classic: left to the scheduler".to_string(),
            form => format!("pinned: {}", place(form, judged, scores.copies)),
        };
        Some(match scores.index(form) {
            Ok(score) => {
                let value = number(format!("{:.1}", score.value));
                vec![text(name), value, range(score.interval), range(score.without_one)]
            }
            Err(why) => vec![text(name), text(why)],
        })
    });
    let first = format!("index of {}, context switching", copies_words(scores.copies));
    let columns = vec![column(&first), right("score"), right("95 %"), right("any one test left out")];
    Table::new(columns, forms)
}

/// Placements whose scores lie closer together than this, or whose intervals meet, make no
/// difference.
const ALIKE: f64 = 1.05;

/// A score with the ends of its interval, which are the score itself where it has none.
#[derive(Clone, Copy)]
struct ScoreEstimate {
    at: f64,
    low: f64,
    high: f64,
}

impl ScoreEstimate {
    fn of(judged: &Judged) -> Option<ScoreEstimate> {
        let at = usable(judged)?;
        let interval = judged.analysis.figure()?.interval;
        let (low, high) = interval.map_or((at, at), |own| (own.low, own.high));
        Some(ScoreEstimate { at, low, high })
    }
}

/// What where the two tasks are makes of the score.
fn context_words(scores: &Scores) -> Option<String> {
    let (one, two) = (scores.context(Form::Pinned)?, scores.context(Form::TwoCpus)?);
    let free = scores.context(Form::Classic).and_then(ScoreEstimate::of);
    let two = (ScoreEstimate::of(two)?, two.series.case.placement.name.as_ref());
    Some(format!(
        "With {}, {}",
        copies_words(scores.copies),
        placed_words(ScoreEstimate::of(one)?, two, free)
    ))
}

fn placed_words(
    one: ScoreEstimate,
    (two, class): (ScoreEstimate, &str),
    free: Option<ScoreEstimate>,
) -> String {
    let (here, there) = ("one CPU", words::placement(class).trim_start_matches("on "));
    let (ratio, low, high) = (one.at / two.at, one.low / two.high, one.high / two.low);
    if low <= 1.0 && high >= 1.0 || (1.0 / ALIKE..ALIKE).contains(&ratio) {
        return format!(
            "context switching scores the same on {here} and on {there} ({low:.2}–{high:.2} ×): placement \
             decides nothing here."
        );
    }
    let (more, less, times, low, high) = if ratio < 1.0 {
        (there, here, 1.0 / ratio, 1.0 / high, 1.0 / low)
    } else {
        (here, there, ratio, low, high)
    };
    let least = one.low.min(two.low);
    let most = one.high.max(two.high);
    let off = |own: &ScoreEstimate, free: &ScoreEstimate| (free.at / own.at).ln().abs();
    let shown = match free {
        None => String::new(),
        Some(free) if free.high * ALIKE < least => {
            " The free score lies below both, and neither explains it.".into()
        }
        Some(free) if free.low > most * ALIKE => {
            " The free score lies above both, and neither explains it.".into()
        }
        Some(free) if off(&one, &free) < off(&two, &free) => {
            format!(" The free score is nearest to {here}.")
        }
        Some(_) => format!(" The free score is nearest to {there}."),
    };
    format!(
        "context switching scores {times:.2} × as high on {more} as on {less} ({low:.2}–{high:.2}).{shown} A higher \
         score is not a better host: on one CPU the woken task must wait until its waker sleeps."
    )
}

/// Who compiled the tests that measure their compiler.
fn compiler_words(scores: &Scores) -> Option<String> {
    let told = |(test, judged): (&Test, &Judged)| {
        Some((test.title, judged.series.case.inputs.get(COMPILER)?.to_string()))
    };
    let compiled: Vec<(&str, String)> = scores.tests().filter_map(told).collect();
    let names: Vec<&str> = compiled.iter().map(|(title, _)| *title).collect();
    let (_, compiler) = compiled.first()?;
    Some(format!("Compiled by {compiler} for any CPU of this kind: {}.", names.join(", ")))
}

/// Below this share the hidden part is not worth a number.
const LITTLE: f64 = 0.0005;

/// What dropping the worst third would have hidden.
fn hidden_words(scores: &Scores) -> Option<String> {
    let all =
        scores.tests().filter_map(|(test, judged)| Some((test.title, more(judged)?, as_unixbench(judged)?)));
    let (title, share, own) = all.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let Classic { kept, dropped, .. } = own;
    let passes = format!("the worst {dropped} of {} passes", dropped + kept);
    Some(if share >= LITTLE {
        format!(
            "UnixBench itself would drop {passes} of {title} and print {} more than the \
                 median of all.",
            percent(share)
        )
    } else {
        format!("Dropping {passes}, as UnixBench does, would change almost nothing here.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(at: f64) -> ScoreEstimate {
        ScoreEstimate { at, low: at * 0.98, high: at * 1.02 }
    }

    #[test]
    fn placement_is_blamed_only_where_it_decides() {
        let words = |one: f64, two: f64, free: f64| {
            placed_words(known(one), (known(two), "same-llc"), Some(known(free)))
        };
        for (one, two, free, about) in [
            (300.0, 300.0, 300.0, "decides nothing here"),
            (300.0, 309.0, 300.0, "decides nothing here"),
            (700.0, 100.0, 690.0, "nearest to one CPU"),
            (700.0, 100.0, 110.0, "nearest to two CPUs that share an L3"),
            (700.0, 100.0, 20.0, "score lies below both"),
            (700.0, 100.0, 1800.0, "score lies above both"),
        ] {
            assert!(words(one, two, free).contains(about), "{}", words(one, two, free));
        }
        assert!(
            words(700.0, 100.0, 690.0)
                .contains("7.00 × as high on one CPU as on two CPUs that share an L3 (6.73–7.29)")
        );
        assert!(
            words(100.0, 700.0, 690.0)
                .contains("7.00 × as high on two CPUs that share an L3 as on one CPU (6.73–7.29)")
        );
    }
}

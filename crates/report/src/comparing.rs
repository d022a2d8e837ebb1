//! Comparisons as a report of their own: findings and studies first, then environments, parts of
//! the host, then the metrics of those that moved.

use std::collections::BTreeMap;

use anyhow::Context;

use super::block::{
    Block, CONCLUSION, Cell, Check, CheckMark, Column, FINDINGS, RESULTS, Report, Section, Table, column,
    columns, right,
};
use super::comparison::{outputs, ratio_words};
use super::json;
use super::screen::Tone;
use compare::{Answer, Compared, Comparison, MAX_ROWS, MIN_DIFFERENCE, Outcome, Pooled, Refused, Relation};
use model::{Finding, Grade, percent};

mod forest;
pub(crate) mod hosts;
mod ladders;
mod left_out;
mod names;
mod overlay;
mod ratios;
mod rows;
pub mod screen;
mod views;

/// The name of an arm in tables: A, B, C, ... and numbers beyond Z.
fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
        _ => format!("#{}", place + 1),
    }
}

fn table(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Block {
    Block::Table(Table::new(columns, rows))
}

fn section(id: &str, title: &str, about: &str, blocks: Vec<Block>) -> Section {
    Section::new(id, title, blocks).about(about)
}

/// Comparisons with one A, as a page: the answer, the forest plot, then what it rests on.
pub fn report(comparisons: &[Comparison]) -> anyhow::Result<Report> {
    let first = comparisons.first().context("nothing was compared")?;
    let letters: Vec<String> = (1..=comparisons.len()).map(letter).collect();
    let each = || comparisons.iter().zip(&letters);
    // More rows than a terminal has; the sentences are its.
    let answer = |(one, letter): (&Comparison, &String)| Answer {
        sentences: one.answer(letter, MAX_ROWS).sentences,
        ..one.answer(letter, PLOTTED)
    };
    let answers: Vec<Answer> = each().map(answer).collect();
    let several = comparisons.len() > 1;
    let mut sections = vec![conclusion(comparisons, &letters, &answers)];
    let found: Vec<Finding> = comparisons.iter().flat_map(|one| one.findings.clone()).collect();
    if !found.is_empty() {
        sections.push(section(FINDINGS, "Findings", "", vec![Block::Findings(found)]));
    }
    let plotted = letters.iter().zip(&answers);
    sections.extend(plotted.filter_map(|(letter, answer)| ratios::section(answer, letter, several)));
    sections.extend(ladders::section(comparisons, &letters));
    sections.extend(details(comparisons).sections);
    for (one, letter) in each() {
        if !one.refused.is_empty() {
            sections.push(refused(one, letter, several));
        }
        if !one.metrics.is_empty() {
            sections.push(metrics(one, letter, several));
        }
    }
    let sides = std::iter::once((first, 0)).chain(comparisons.iter().map(|one| (one, 1)));
    let sides: Vec<(&Comparison, usize)> = sides.collect();
    let known = sides.iter().map(|(one, side)| {
        let [host, file] = &one.names[*side];
        (host.as_str(), file.as_str(), &one.about[*side])
    });
    let called = compare::names(&known.collect::<Vec<_>>());
    let named = sides.iter().enumerate().map(|(at, (one, side))| hosts::words(&letter(at), one, *side));
    Ok(Report {
        screen: None,
        tone: match answers.as_slice() {
            [one] => tone(one.outcome),
            _ => Tone::Plain,
        },
        title: format!("{} against {}", called[1..].join(", "), called[0]),
        machine: named.collect::<Vec<_>>().join(" · "),
        subtitle: String::new(),
        checks: each().flat_map(|(one, letter)| checks(one, letter)).collect(),
        sections,
        json: json::pretty(&outputs(comparisons))?,
    })
}

/// The tone of a comparison's answer.
fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Faster => Tone::Good,
        Outcome::Slower => Tone::Care,
        Outcome::Same | Outcome::CannotTell | Outcome::NoConclusion => Tone::Plain,
    }
}

/// Rows of the page's forest plot.
const PLOTTED: usize = 18;

/// What stands behind the figures: studies, rows of tables, environments, parts of the host.
pub fn details(comparisons: &[Comparison]) -> Report {
    let letters: Vec<String> = (1..=comparisons.len()).map(letter).collect();
    let each = || comparisons.iter().zip(&letters);
    let studies = each().filter(|(one, _)| !one.curves.is_empty());
    let mut sections: Vec<Section> = studies.map(|(one, letter)| overlay::section(one, letter)).collect();
    sections.extend(each().filter_map(|(one, letter)| rows::charts(one, letter)));
    sections.push(environment(comparisons, &letters));
    sections.extend(each().filter_map(|(one, letter)| views::section(one, letter)));
    if comparisons.iter().any(|one| !one.components.is_empty()) {
        sections.push(components(comparisons, &letters));
    }
    Report { sections, ..Report::default() }
}

/// The verdict: a word as its title, and its sentences.
fn conclusion(comparisons: &[Comparison], letters: &[String], answers: &[Answer]) -> Section {
    let named = letters.iter().zip(comparisons).zip(answers);
    let named: Vec<(&str, &Comparison, &Answer)> =
        named.map(|((letter, one), answer)| (letter.as_str(), one, answer)).collect();
    let title = match answers {
        [one] => one.word.clone(),
        _ => "Which is fastest".to_string(),
    };
    let said = compare::ranking(&named).into_iter().chain(answers.iter().map(|one| one.sentences.join(" ")));
    section(CONCLUSION, &title, "", said.map(Block::Prose).collect())
}

/// Why figures were left out, the most frequent reason first: `12 of 40 figures left out
/// (10 placement, 2 pages)`.
pub fn refused_words(comparison: &Comparison) -> String {
    let refused = || comparison.refused.iter().filter(|one| one.conditions && one.headline);
    let mut factors: BTreeMap<&str, usize> = BTreeMap::new();
    refused().for_each(|one| *factors.entry(one.factor.as_str()).or_default() += 1);
    let mut factors: Vec<(&str, usize)> = factors.into_iter().collect();
    factors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let list: Vec<String> = factors.iter().map(|(factor, count)| format!("{count} {factor}")).collect();
    let compared = comparison.metrics.iter().filter(|one| one.headline).count();
    format!(
        "{} of {} figures left out because conditions differ ({})",
        refused().count(),
        refused().count() + compared,
        list.join(", ")
    )
}

fn checks(one: &Comparison, letter: &str) -> Vec<Check> {
    let mut checks: Vec<Check> = one
        .warnings
        .iter()
        .map(|text| Check { mark: CheckMark::Bad, text: text.replace("A and B", &format!("A and {letter}")) })
        .collect();
    if one.refuses() {
        checks.push(Check { mark: CheckMark::Bad, text: format!("{letter}: {}", refused_words(one)) });
    }
    checks.extend(
        one.findings.iter().map(|found| Check { mark: CheckMark::Care, text: found.headline.clone() }),
    );
    if !one.environment.is_empty() {
        let text = match one.environment.len() {
            1 => "the environments differ in one thing".to_string(),
            many => format!("the environments differ in {many} things"),
        };
        checks.push(Check { mark: CheckMark::Care, text });
    }
    if let Some(ghz) = one.common_clock_ghz {
        let scaled = one.metrics.iter().filter(|one| one.scaled).count();
        let text = format!(
            "{scaled} of {} values are core-bound and compared at A's clock of {ghz:.2} GHz, the others as measured",
            one.metrics.len()
        );
        checks.push(Check { mark: CheckMark::Note, text });
    }
    if let Some(index) = one.index.as_ref().filter(|index| !deciding(index).is_empty()) {
        let text = format!("the conclusion on {letter} rests on {} alone", index.decided_by.join(", or on "));
        checks.push(Check { mark: CheckMark::Care, text });
    }
    checks
}

fn environment(comparisons: &[Comparison], letters: &[String]) -> Section {
    let mut labels: Vec<&str> = Vec::new();
    for difference in comparisons.iter().flat_map(|one| &one.environment) {
        if !labels.contains(&difference.label.as_str()) {
            labels.push(&difference.label);
        }
    }
    let find =
        |one: &Comparison, label: &str| one.environment.iter().find(|known| known.label == label).cloned();
    let row = |label: &&str| {
        let of_a = comparisons.iter().find_map(|one| find(one, label)).map(|known| known.a);
        let mut row = vec![Cell::Text(hosts::label(label)), Cell::Text(of_a.unwrap_or_default())];
        // What does not differ from A stands as A's.
        row.extend(comparisons.iter().map(|one| match find(one, label) {
            Some(known) => Cell::Text(known.b),
            None => Cell::Text("as A".into()),
        }));
        row.push(Cell::Text(hosts::acts_on(label).unwrap_or("no known effect").to_string()));
        row
    };
    let mut blocks = vec![if labels.is_empty() {
        Block::Prose("The environments differ in nothing that both report.".into())
    } else {
        let columns =
            [column("setting"), column("A")].into_iter().chain(letters.iter().map(|letter| column(letter)));
        let columns = columns.chain([column("can act on")]);
        table(columns.collect(), labels.iter().map(row).collect())
    }];
    for (one, letter) in comparisons.iter().zip(letters).filter(|(one, _)| !one.untold.is_empty()) {
        let known: Vec<String> = one.untold.iter().map(|label| hosts::label(label)).collect();
        blocks.push(Block::Prose(format!("Known for only one of A and {letter}: {}.", known.join(", "))));
    }
    let alone =
        |(one, letter): (&Comparison, &String)| hosts::findings_alone(one, letter, comparisons.len() == 1);
    blocks.extend(comparisons.iter().zip(letters).flat_map(alone).map(Block::Prose));
    section("environment", "What differs", "", blocks)
}

fn components(comparisons: &[Comparison], letters: &[String]) -> Section {
    let mut blocks = Vec::new();
    for (one, letter) in comparisons.iter().zip(letters).filter(|(one, _)| !one.components.is_empty()) {
        let row = |name: &str, pooled: &Pooled| {
            let range =
                pooled.leave_one_out.map_or(String::new(), |[low, high]| format!("{low:.3}–{high:.3}"));
            vec![
                Cell::Text(name.to_string()),
                Cell::Number(ratio_words(pooled.ratio, Some(pooled.ci95))),
                Cell::Text(range),
                Cell::Number(pooled.benchmarks.to_string()),
                Cell::Number(pooled.metrics.to_string()),
                Cell::Text(pooled_words(one, pooled)),
            ]
        };
        let mut rows: Vec<Vec<Cell>> =
            one.components.iter().map(|part| row(&part.name, &part.pooled)).collect();
        rows.extend(one.index.as_ref().map(|index| row("all", index)));
        let heads = format!(
            "part | {letter}/A, > 1 better (95 %): | leaving one benchmark out | benchmarks: | figures: | {letter} is"
        );
        blocks.push(table(columns(&heads), rows));
    }
    let about = "Geometric means of the figures' ratios: above 1 is better. A benchmark counts once in its part, \
                 a part once in all. Intervals include the scatter of whole runs, which all figures share.";
    section("parts", "By part of the host", about, blocks)
}

/// What an interval of a pooled ratio says, and what it hangs on.
fn pooled_words(one: &Comparison, pooled: &Pooled) -> String {
    let (word, words) = one.concluded(pooled);
    match pooled.decided_by.as_slice() {
        names @ [_, ..] if word.is_different() => format!("{words}; rests on {}", names.join(", ")),
        _ => words,
    }
}

/// Benchmarks on which a conclusion hangs, where there is one: about a ratio of 1 any of them
/// changes sides.
fn deciding(pooled: &Pooled) -> &[String] {
    let [low, high] = pooled.ci95;
    let concludes = low >= 1.0 + MIN_DIFFERENCE || high <= 1.0 / (1.0 + MIN_DIFFERENCE);
    if concludes { &pooled.decided_by } else { &[] }
}

fn metrics(one: &Comparison, letter: &str, several: bool) -> Section {
    let row = |metric: &Compared| {
        let [a, b] = metric.figures();
        let mut words = metric.words.clone();
        if metric.word == Relation::Inconclusive
            && let Some(share) = metric.would_show
        {
            words.push_str(&format!("; a difference of {} would show", percent(share)));
            words.push_str(&match metric.more_runs {
                Some(1) => "; 1 more run of each decides".to_string(),
                Some(runs) => format!("; about {runs} more runs of each decide"),
                None => String::new(),
            });
        }
        // Of what is hardly known a single ratio says more than there is.
        let (turned, interval) = metric.shown_ratio();
        let ratio = match (metric.grade, interval) {
            (Grade::C, Some([low, high])) => format!("{low:.3}–{high:.3}"),
            (_, interval) => ratio_words(turned, interval),
        };
        vec![
            Cell::Text(names::whole(&metric.title, &metric.key)),
            Cell::Number(a),
            Cell::Number(b),
            Cell::Number(ratio),
            Cell::Text(words),
            Cell::Code(metric.key.clone()),
            Cell::Text(metric.note.clone()),
        ]
    };
    let heads =
        format!("figure | A: | {letter}: | {letter}/A, > 1 better (95 %): | {letter} is | key | note");
    let rows = one.metrics.iter().map(row);
    let blocks = vec![Block::Table(Table::new(columns(&heads), rows).folded())];
    let title = if several { format!("All figures of {letter}") } else { "All figures".to_string() };
    let id = if several { format!("{RESULTS}-{}", letter.to_lowercase()) } else { RESULTS.to_string() };
    let about = format!("Ratios of {letter} to A with their intervals: above 1 is better for {letter}.");
    section(&id, &title, &about, blocks)
}

fn refused(one: &Comparison, letter: &str, several: bool) -> Section {
    let row = |one: &Refused| {
        let words = format!("{}: {}", one.factor, one.reason);
        vec![
            Cell::Text(names::whole(&one.title, &one.key_b)),
            Cell::Number(one.a.clone()),
            Cell::Number(one.b.clone()),
            Cell::Text(words),
            Cell::Code(one.key.clone()),
        ]
    };
    let columns = columns(&format!("figure | A: | {letter}: | reason | key"));
    let rows = one.refused.iter().map(row).collect();
    let blocks = vec![Block::Table(Table { columns, rows, folded: one.refused.len() > OPEN })];
    let title = if several { format!("Left out of {letter}") } else { "Left out".to_string() };
    let about = "Figures that both have but that do not count, with the reason.";
    section(&format!("refused-{}", letter.to_lowercase()), &title, about, blocks)
}

/// More rows than this are folded.
const OPEN: usize = 12;

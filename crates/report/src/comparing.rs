//! Comparisons as a report of their own: findings and studies first, then environments, parts of
//! the machine, then the metrics of those that moved.

use std::collections::BTreeMap;

use anyhow::Context;

use super::block::{Block, Cell, Check, Column, FINDINGS, Mark, RESULTS, Report, Section, Table};
use super::comparison::{outputs, ratio_words};
use super::json;
use compare::{Compared, Comparison, LEAST_DIFFERENCE, Pooled, Refused, Word};
use model::{Finding, Grade, percent};

mod overlay;
mod rows;
mod views;

/// The name of an arm in tables: A, B, C, ... and numbers beyond Z.
fn letter(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
        _ => format!("#{}", place + 1),
    }
}

fn left(title: &str) -> Column {
    Column { title: title.to_string(), right: false }
}

fn right(title: &str) -> Column {
    Column { title: title.to_string(), right: true }
}

fn table(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Block {
    Block::Table(Table { columns, rows, folded: false })
}

fn section(id: &str, title: &str, about: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.into(), title: title.into(), about: about.into(), blocks, long: false }
}

/// Comparisons with one A. `all`: every metric, also of parts that did not move.
pub fn report(comparisons: &[Comparison], all: bool) -> anyhow::Result<Report> {
    let first = comparisons.first().context("nothing was compared")?;
    let letters: Vec<String> = (1..=comparisons.len()).map(letter).collect();
    let mut sections = Vec::new();
    let found: Vec<Finding> = comparisons.iter().flat_map(|one| one.findings.clone()).collect();
    if !found.is_empty() {
        sections.push(section(FINDINGS, "Findings", "", vec![Block::Findings(found)]));
    }
    // What two studies come to stands first.
    for (one, letter) in comparisons.iter().zip(&letters).filter(|(one, _)| !one.curves.is_empty()) {
        sections.push(overlay::section(one, letter));
    }
    sections.extend(comparisons.iter().zip(&letters).filter_map(|(one, letter)| rows::charts(one, letter)));
    sections.push(environment(comparisons, &letters));
    sections.extend(comparisons.iter().zip(&letters).filter_map(|(one, letter)| views::section(one, letter)));
    if comparisons.iter().any(|one| !one.components.is_empty()) {
        sections.push(components(comparisons, &letters));
    }
    for (one, letter) in comparisons.iter().zip(&letters) {
        sections.push(metrics(one, letter, comparisons.len() > 1, all));
        if !one.refused.is_empty() {
            sections.push(refused(one, letter, comparisons.len() > 1));
        }
    }
    let arms = std::iter::once(("A".to_string(), first, 0))
        .chain(letters.iter().zip(comparisons).map(|(letter, one)| (letter.clone(), one, 1)));
    let named = arms.map(|(letter, one, side)| {
        let [host, file] = &one.names[side];
        let runs = if one.runs[side] > 1 { format!(", {} runs", one.runs[side]) } else { String::new() };
        format!("{letter} {host} ({file}{runs})")
    });
    let others: Vec<&str> = comparisons.iter().map(|one| one.names[1][0].as_str()).collect();
    Ok(Report {
        screen: None,
        title: format!("{} against {}", others.join(", "), first.names[0][0]),
        machine: named.collect::<Vec<_>>().join("   "),
        subtitle: match comparisons {
            [one] => counted(one),
            many => {
                let each =
                    many.iter().zip(&letters).map(|(one, letter)| format!("{letter}: {}", counted(one)));
                each.collect::<Vec<_>>().join("   ")
            }
        },
        checks: comparisons.iter().zip(&letters).flat_map(|(one, letter)| checks(one, letter)).collect(),
        sections,
        json: json::pretty(&outputs(comparisons))?,
    })
}

/// How often each word was said, of headline metrics where there are some.
fn counted(comparison: &Comparison) -> String {
    let headlines = comparison.metrics.iter().filter(|one| one.headline).count();
    let of = || comparison.metrics.iter().filter(|one| one.headline || headlines == 0);
    let counted = Word::ALL.iter().filter_map(|word| {
        let many = of().filter(|one| one.word == *word).count();
        (many > 0).then(|| format!("{many} {}", word.word()))
    });
    let counted: Vec<String> = counted.collect();
    let counted = match (counted.is_empty(), headlines) {
        (true, _) => "nothing to compare".to_string(),
        (_, 0) => counted.join(", "),
        (_, of) => format!("of {of} headline metrics {}", counted.join(", ")),
    };
    let [only_a, only_b] = comparison.alone;
    format!("{counted}; {} refused; {only_a} only in A, {only_b} only in B", comparison.refused.len())
}

/// Why headlines were refused, the most frequent reason first: `12 of 40 headline metrics refused
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
        "{} of {} headline metrics refused because conditions differ ({})",
        refused().count(),
        refused().count() + compared,
        list.join(", ")
    )
}

fn checks(one: &Comparison, letter: &str) -> Vec<Check> {
    let mut checks: Vec<Check> = one
        .warnings
        .iter()
        .map(|text| Check { mark: Mark::Bad, text: text.replace("A and B", &format!("A and {letter}")) })
        .collect();
    if one.refuses() {
        checks.push(Check { mark: Mark::Bad, text: format!("{letter}: {}", refused_words(one)) });
    }
    checks.extend(one.findings.iter().map(|found| Check { mark: Mark::Care, text: found.headline.clone() }));
    if !one.environment.is_empty() {
        let text = match one.environment.len() {
            1 => "the environments differ in one thing".to_string(),
            many => format!("the environments differ in {many} things"),
        };
        checks.push(Check { mark: Mark::Care, text });
    }
    if let Some(ghz) = one.common_clock_ghz {
        let scaled = one.metrics.iter().filter(|one| one.scaled).count();
        let text = format!(
            "{scaled} of {} metrics, those bound by the core, are compared at A's clock of {ghz:.2} GHz; all others stand as \
             measured",
            one.metrics.len()
        );
        checks.push(Check { mark: Mark::Note, text });
    }
    if let Some(index) = one.index.as_ref().filter(|index| !deciding(index).is_empty()) {
        let text = format!(
            "the index of {letter} changes sides without {} alone: it decides the conclusion",
            index.decided_by.join(", or without ")
        );
        checks.push(Check { mark: Mark::Care, text });
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
        let mut row = vec![Cell::Text(label.to_string()), Cell::Text(of_a.unwrap_or_default())];
        // What does not differ from A stands as A's.
        row.extend(comparisons.iter().map(|one| match find(one, label) {
            Some(known) => Cell::Text(known.b),
            None => Cell::Text("as A".into()),
        }));
        row
    };
    let mut blocks = vec![match labels.is_empty() {
        true => Block::Prose("Nothing that both tell of their environments differs.".into()),
        false => {
            let columns =
                [left("environment"), left("A")].into_iter().chain(letters.iter().map(|letter| left(letter)));
            table(columns.collect(), labels.iter().map(row).collect())
        }
    }];
    for (one, letter) in comparisons.iter().zip(letters).filter(|(one, _)| !one.untold.is_empty()) {
        let who = if comparisons.len() > 1 {
            format!("Only one of A and {letter}")
        } else {
            "Only one of the two".into()
        };
        blocks.push(Block::Prose(format!("{who} tells: {}.", one.untold.join(", "))));
    }
    section("environment", "Environment", "", blocks)
}

fn components(comparisons: &[Comparison], letters: &[String]) -> Section {
    let mut blocks = Vec::new();
    for (one, letter) in comparisons.iter().zip(letters).filter(|(one, _)| !one.components.is_empty()) {
        let row = |name: &str, pooled: &Pooled| {
            let range =
                pooled.leave_one_out.map_or(String::new(), |[low, high]| format!("{low:.3} to {high:.3}"));
            vec![
                Cell::Text(name.to_string()),
                Cell::Number(ratio_words(pooled.ratio, Some(pooled.ci95))),
                Cell::Text(range),
                Cell::Number(pooled.benchmarks.to_string()),
                Cell::Number(pooled.metrics.to_string()),
                Cell::Text(conclusion(pooled, one.margin)),
            ]
        };
        let mut rows: Vec<Vec<Cell>> =
            one.components.iter().map(|part| row(&part.name, &part.pooled)).collect();
        rows.extend(one.index.as_ref().map(|index| row("all", index)));
        blocks.push(table(
            vec![
                left("part"),
                right(&format!("{letter}/A, > 1 better (95 %)")),
                left("leaving one benchmark out"),
                right("benchmarks"),
                right("metrics"),
                left(&format!("{letter} is")),
            ],
            rows,
        ));
    }
    let about = "Geometric means of headline ratios, turned so that above 1 is better; a benchmark counts once in its part, \
                 a part once in all. Intervals take what whole runs differ by as shared by all metrics.";
    section("parts", "Parts of the machine", about, blocks)
}

/// What an interval of a pooled ratio says.
fn conclusion(pooled: &Pooled, margin: f64) -> String {
    let [low, high] = pooled.ci95;
    let edge = 1.0 + LEAST_DIFFERENCE;
    let words = match (low >= edge, high <= 1.0 / edge) {
        (true, _) => "better",
        (_, true) => "worse",
        _ if low > 1.0 / (1.0 + margin) && high < 1.0 + margin => {
            return format!("same within {} %", (margin * 1e4).round() / 1e2);
        }
        _ => return "cannot tell".to_string(),
    };
    match pooled.decided_by.as_slice() {
        [] => words.to_string(),
        names => format!("{words}; hangs on {}", names.join(", ")),
    }
}

/// Benchmarks on which a conclusion hangs, where there is one: about a ratio of 1 any of them
/// changes sides.
fn deciding(pooled: &Pooled) -> &[String] {
    let [low, high] = pooled.ci95;
    let concludes = low >= 1.0 + LEAST_DIFFERENCE || high <= 1.0 / (1.0 + LEAST_DIFFERENCE);
    if concludes { &pooled.decided_by } else { &[] }
}

fn metrics(one: &Comparison, letter: &str, several: bool, all: bool) -> Section {
    let moved = |metric: &Compared| {
        let part = one.components.iter().find(|part| part.name == metric.component);
        all || one.imported
            || metric.word.is_different()
            || part.is_some_and(|part| part.moves && metric.headline)
    };
    let row = |metric: &Compared| {
        let [a, b] = metric.figures();
        let mut words = metric.words.clone();
        if metric.word == Word::Inconclusive
            && let Some(share) = metric.would_show
        {
            words.push_str(&format!("; {} would show", percent(share)));
            words.push_str(&match metric.more_runs {
                Some(1) => ", 1 more run of each would tell".to_string(),
                Some(runs) => format!(", about {runs} more runs of each would tell"),
                None => String::new(),
            });
        }
        // Of what is hardly known a single ratio says more than there is.
        let ratio = match (metric.grade, metric.ci95) {
            (Grade::C, Some([low, high])) => format!("{low:.3} to {high:.3}"),
            _ => ratio_words(metric.ratio, metric.ci95),
        };
        vec![
            Cell::Text(metric.title.clone()),
            Cell::Number(a),
            Cell::Number(b),
            Cell::Number(ratio),
            Cell::Text(words),
            Cell::Code(metric.key.clone()),
            Cell::Text(metric.note.clone()),
        ]
    };
    let rows: Vec<Vec<Cell>> = one.metrics.iter().filter(|metric| moved(metric)).map(row).collect();
    let left_out = one.metrics.len() - rows.len();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let columns = vec![
            left("metric"),
            right("A"),
            right(letter),
            right(&format!("{letter}/A (95 %)")),
            left(&format!("{letter} is")),
            left("series"),
            left("note"),
        ];
        blocks.push(table(columns, rows));
    }
    if left_out > 0 {
        let text = format!(
            "{left_out} metrics are not shown: neither they nor their part of the machine moved. --all shows them, --json \
             has them."
        );
        blocks.push(Block::Prose(text));
    }
    let title = if several { format!("Metrics of {letter}") } else { "Metrics".to_string() };
    let id = if several { format!("{RESULTS}-{}", letter.to_lowercase()) } else { RESULTS.to_string() };
    section(&id, &title, &format!("Ratios of {letter} to A, with their intervals."), blocks)
}

fn refused(one: &Comparison, letter: &str, several: bool) -> Section {
    let row = |one: &Refused| {
        let words = format!("{}: {}", one.factor, one.reason);
        vec![Cell::Code(one.key.clone()), Cell::Number(one.a.clone()), Cell::Text(words)]
    };
    let columns = vec![left("not compared"), right("A"), left("because of the")];
    let blocks = vec![table(columns, one.refused.iter().map(row).collect())];
    let title = if several { format!("Refused of {letter}") } else { "Refused".to_string() };
    section(&format!("refused-{}", letter.to_lowercase()), &title, "", blocks)
}

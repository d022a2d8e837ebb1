//! The rate suite: a row a component with its ratio, its spread and the order of its runs, then the
//! suite's one figure.

mod explained;

pub use explained::{bound_word, conclusion, sentences};

use super::figures::{median_words, value_words, width_words};
use super::{column, columns, number, right, text};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Section, Table};
use diagnose::Diagnosis;
use diagnose::suite::{Part, Suite, suite};
use diagnose::words::{counted, figure};
use model::vocabulary::rate as ids;
use model::{Case, TimeLine, VerdictKind, percent};
use stats::analysis::Judged;
use stats::repeat::{ALIKE, Sequence, cv_words};

/// What SPEC CPU2017 has and this suite does not: said wherever its figure stands.
const MISSING: &str = "Compared with SPEC CPU2017 these are missing: a compiler (gcc), a \
                 discrete-event simulation (omnetpp), video coding (x264), Go by Monte Carlo (leela), weather and \
                 climate codes (wrf, cam4, roms), finite elements of high order (parest, cactuBSSN), rendering of large \
                 scenes (blender), image filters (imagick). It is not a SPEC score.";

/// Whether a case stands in this section, and nowhere else.
pub fn is_own(case: &Case) -> bool {
    case.bench.starts_with("rate.")
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let absent = absent(diagnosis);
    let suite = suite(&diagnosis.run, &diagnosis.series);
    let mut blocks = Vec::new();
    if let Some(suite) = &suite {
        blocks.push(Block::Prose(words(diagnosis, suite)));
        blocks.push(Block::Table(components(diagnosis, suite)));
        blocks.extend(explained::blocks(diagnosis, suite));
        blocks.extend(nodes(diagnosis).map(Block::Table));
        blocks.push(Block::Table(variance(suite)));
        let runs = |part: &Part| part.runs.clone();
        let sessions = |part: &Part| part.history.clone();
        blocks.extend(chart("runs", "Runs in their order", "run", suite, &runs).map(Block::from));
        blocks.extend(chart("sessions", "Runs on this host", "run", suite, &sessions).map(Block::from));
    }
    if !absent.is_empty() {
        blocks.push(Block::Prose(format!("not tested: {absent}")));
    }
    Section::new("rate", "Rate suite", blocks)
        .about(format!(
            "Copies of real programs' kernels run at once, with every answer checked. The \
                 ratio is the rate of all copies over one copy on the reference host{}. {MISSING}",
            suite.as_ref().and_then(reference).map_or(String::new(), |machine| format!(" ({machine})"))
        ))
        .unless_empty()
}

fn reference<'a>(suite: &'a Suite) -> Option<&'a str> {
    suite.parts.first()?.rate.series.case.inputs.get("reference_machine").map(String::as_str)
}

fn words(diagnosis: &Diagnosis, suite: &Suite) -> String {
    let mut sentences = Vec::new();
    if let Some(first) = suite.parts.first() {
        let placement = &first.rate.series.case.placement;
        let copies = placement.seats.len();
        sentences.push(format!(
            "{copies} cop{} on CPUs {}, {} MiB each.",
            if copies == 1 { "y" } else { "ies" },
            placement.cpus(),
            first.mib()
        ));
    }
    sentences.extend(index_words(suite));
    if let Some(ordinal) = suite.ordinal_since_boot(&diagnosis.run) {
        let uptime = diagnosis
            .run
            .header
            .uptime_s
            .map_or(String::new(), |s| format!(" ({:.1} h after it)", s / 3600.0));
        let earlier = match suite.past.len() {
            0 => "; no earlier run in this folder".to_string(),
            count => {
                let boots = counted(suite.boots(&diagnosis.run), "boot");
                format!("; {} in this folder, {boots} with this one", counted(count, "earlier run"))
            }
        };
        sentences.push(format!("Run {ordinal} since boot{uptime}{earlier}."));
    }
    sentences.extend(fragmentation_words(diagnosis));
    sentences.push(bandwidth_words(diagnosis));
    sentences.join(" ")
}

/// The suite's one figure.
pub fn index_words(suite: &Suite) -> Option<String> {
    let index = suite.index.as_ref()?;
    let interval = index.interval.map_or(String::new(), |between| {
        format!(" (95 %: {}–{})", figure(between.low, ""), figure(between.high, ""))
    });
    let without = index.leave_one_out.map_or(String::new(), |between| {
        format!("; leaving one component out gives {}–{}", figure(between.low, ""), figure(between.high, ""))
    });
    Some(format!("Geometric mean of the ratios: {}{interval}{without}.", figure(index.value, "×")))
}

/// How the free memory lay before the visits, by node where there are several.
fn fragmentation_words(diagnosis: &Diagnosis) -> Option<String> {
    let mut of: Vec<(String, Vec<f64>)> = Vec::new();
    let own = diagnosis
        .series
        .iter()
        .filter(|judged| is_own(&judged.series.case) && judged.series.metric.name == ids::metric::HUGE_FREE);
    for judged in own {
        let node = judged.series.point.get(ids::param::NODE);
        let name =
            node.map_or("free memory in blocks of 2 MiB or more".to_string(), |node| format!("node {node}"));
        let values = judged.series.values().concat();
        match of.iter_mut().find(|(other, _)| *other == name) {
            Some((_, all)) => all.extend(values),
            None => of.push((name, values)),
        }
    }
    let words = of.iter().filter_map(|(name, values)| {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(format!("{name}: {low:.0}–{high:.0} %"))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("Before the passes, {}.", words.join("; ")))
}

/// The time line of memory traffic, or why there is none.
fn bandwidth_words(diagnosis: &Diagnosis) -> String {
    let lines = || diagnosis.run.time_lines.iter().filter(|line| line.subject == TimeLine::TRAFFIC);
    if lines().any(|line| !line.value.is_empty()) {
        "The time lines show memory traffic during the run.".to_string()
    } else {
        let why = lines().find_map(|line| line.missing.clone());
        let why = why.unwrap_or_else(|| "not checked".to_string());
        let own = diagnosis.run.visits.iter().any(|visit| !visit.process.progress.is_empty());
        let stands = if own { " The copies' own progress replaces it." } else { "" };
        format!("A time line of memory traffic is not available: {why}.{stands}")
    }
}

fn components(diagnosis: &Diagnosis, suite: &Suite) -> Table {
    let columns = columns(
        "component | bound by | n: | rate: | ratio: | 95 %: | CV: | runs apart: | in order | verdict",
    );
    let row = |part: &Part| {
        let estimate = part.rate.analysis.figure();
        vec![
            text(part.name()),
            text(explained::bound_word(&suite.bound(part, &diagnosis.machine))),
            number(estimate.map_or(String::new(), |estimate| estimate.n.to_string())),
            number(median_words(part.rate)),
            number(part.ratio.map_or("–".to_string(), median_words)),
            number(width_words(part.rate)),
            number(part.runs.as_ref().map_or("–".to_string(), |runs| cv_words(runs.cv, runs.values.len()))),
            number(part.runs.as_ref().map_or("–".to_string(), |runs| percent(runs.apart))),
            text(part.runs.as_ref().map_or(String::new(), in_order)),
            Cell::Verdict(part.rate.analysis.verdict.clone()),
        ]
    };
    Table::new(columns, suite.parts.iter().map(row))
}

/// Runs that are alike: because they are, or because one run's own pieces lie as far apart.
fn alike(runs: &Sequence) -> &'static str {
    if runs.apart < ALIKE { "steady" } else { "as its pieces" }
}

/// The runs as bars from the lowest to the highest, or that they are alike.
fn in_order(runs: &Sequence) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const SHOWN: usize = 24;
    if runs.levels.is_empty() {
        return alike(runs).to_string();
    }
    let low = runs.values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = runs.values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| BARS[(((value - low) / (high - low) * 7.0).round() as usize).min(7)];
    runs.values.iter().take(SHOWN).map(bar).collect()
}

/// The copies of each node by themselves.
fn nodes(diagnosis: &Diagnosis) -> Option<Table> {
    let own =
        |judged: &&Judged| is_own(&judged.series.case) && judged.series.point.contains_key(ids::param::NODE);
    let rows: Vec<Vec<Cell>> = diagnosis
        .series
        .iter()
        .filter(own)
        .filter(|judged| judged.analysis.figure().is_some())
        .map(|judged| {
            let node =
                judged.series.point.get(ids::param::NODE).map_or(String::new(), |node| node.to_string());
            vec![
                text(judged.series.case.bench.trim_start_matches("rate.")),
                number(node),
                number(value_words(judged)),
                Cell::Verdict(judged.analysis.verdict.clone()),
            ]
        })
        .collect();
    let columns =
        vec![column("component"), right("NUMA node"), right("rate of its copies"), column("verdict")];
    (!rows.is_empty()).then_some(Table::new(columns, rows))
}

/// Where the variance of each component sits.
fn variance(suite: &Suite) -> Table {
    let columns = columns(
        "component | between passes: | between fresh arrays: | between pieces on the \
                 same arrays: | meaning",
    );
    let row = |part: &Part| {
        let share = |share: Option<f64>| number(share.map_or("–".to_string(), percent));
        let means = match (&part.variance, &part.runs) {
            (Some(sits), Some(runs)) if !runs.levels.is_empty() && sits.settled() > 0.5 => {
                "set when a pass starts or gets its memory"
            }
            (Some(_), Some(runs)) if !runs.levels.is_empty() => "changes during the run",
            (Some(_), Some(runs)) if alike(runs) == "steady" => "runs are equal: shares mean nothing",
            (Some(_), _) => "runs differ no more than pieces of one run",
            _ => "one pass or one piece: unknown",
        };
        vec![
            text(part.name()),
            share(part.variance.map(|sits| sits.processes)),
            share(part.variance.and_then(|sits| sits.allocations)),
            share(part.variance.map(|sits| sits.iterations)),
            text(means),
        ]
    };
    Table::new(columns, suite.parts.iter().map(row)).folded()
}

/// Each component's values in their order, as percent of their mean.
fn chart(
    id: &str,
    title: &str,
    what: &str,
    suite: &Suite,
    of: &dyn Fn(&Part) -> Option<Sequence>,
) -> Option<Chart> {
    const MIN_RUNS: usize = 3;
    let mut rows = Vec::new();
    let lines: Vec<Line> = suite
        .parts
        .iter()
        .filter_map(|part| Some((part, of(part).filter(|runs| runs.values.len() >= MIN_RUNS)?)))
        .map(|(part, runs)| {
            let shares = runs.percent_of_mean();
            let in_order: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
            rows.push(vec![text(part.name()), text(in_order.join(" "))]);
            let points = shares.iter().enumerate().map(|(at, share)| LinePoint {
                x: (at + 1) as f64,
                y: *share,
                low_high: None,
                hollow: part.rate.analysis.verdict.kind == VerdictKind::Rejected,
            });
            Line { name: part.name().into(), points: points.collect(), joined: true }
        })
        .collect();
    let columns = vec![column("component"), column("% of its mean, in order")];
    (!lines.is_empty()).then(|| {
        Chart::new(
            format!("chart-rate-{id}"),
            title,
            ChartKind::lines(Axis::linear(what), Axis::linear("% of the mean"), lines),
            Table::new(columns, rows).folded(),
        )
        .about(
            "Each as percent of its own mean. If all components move together, the host \
                 changed; if only components on memory move, memory did.",
        )
    })
}

/// Components without a figure, with the reason.
fn absent(diagnosis: &Diagnosis) -> String {
    let own = |judged: &&Judged| {
        is_own(&judged.series.case)
            && !explained::is_aside(judged)
            && judged.series.metric.headline
            && judged.series.point.is_empty()
            && judged.analysis.figure().is_none()
    };
    let words = diagnosis.series.iter().filter(own).map(|judged| {
        let name = judged.series.case.bench.trim_start_matches("rate.");
        format!("{name} ({})", judged.analysis.verdict.reason)
    });
    words.collect::<Vec<_>>().join("; ")
}

//! Every sample of every series as a strip: what intervals and medians hide.

use std::collections::HashSet;

use super::figures::{cv_in_words, value_words};
use super::names::{label, placement_words, title_of};
use super::{columns, number, shown, text};
use crate::block::{Block, Cell, Chart, ChartKind, Dot, Section, Strip, Table};
use diagnose::Diagnosis;
use diagnose::words::{figure, percent};
use model::{VerdictKind, View};
use stats::analysis::Judged;

/// With more strips than this a page is too long to read, and with all samples of a large matrix it
/// could not be opened.
const MAX_STRIPS: usize = 140;

/// The series whose samples are drawn, and how many are not: pairs of a matrix never, and where
/// there are too many those first that stand in the table of results or are not plainly trusted.
fn drawn(diagnosis: &Diagnosis) -> (Vec<&Judged>, usize) {
    let with_value = || diagnosis.series.iter().filter(|judged| judged.analysis.figure().is_some());
    let matrices: HashSet<&str> = diagnosis
        .run
        .header
        .catalogue
        .iter()
        .filter(|title| matches!(title.view, View::Matrix { .. }))
        .map(|title| title.id.as_ref())
        .collect();
    let all = with_value().count();
    let mut drawn: Vec<(usize, &Judged)> = with_value()
        .filter(|judged| !matrices.contains(judged.series.case.bench.as_ref()))
        .enumerate()
        .collect();
    if drawn.len() > MAX_STRIPS {
        let (first, _) = shown::first(diagnosis);
        let first: HashSet<*const Judged> =
            first.iter().map(|shown| std::ptr::from_ref(shown.judged)).collect();
        let wide =
            |judged: &Judged| title_of(diagnosis, &judged.series.case).is_some_and(|t| t.view == View::Wide);
        drawn.sort_by_cached_key(|(_, judged)| {
            let judged: &Judged = judged;
            match judged.analysis.verdict.kind {
                _ if first.contains(&std::ptr::from_ref(judged)) || wide(judged) => 0,
                VerdictKind::Trusted => 2,
                _ => 1,
            }
        });
        drawn.truncate(MAX_STRIPS);
        drawn.sort_by_key(|(place, _)| *place);
    }
    let left_out = all - drawn.len();
    (drawn.into_iter().map(|(_, judged)| judged).collect(), left_out)
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let (judged, left_out) = drawn(diagnosis);
    let strips: Vec<Strip> = judged.iter().filter_map(|judged| strip(diagnosis, judged)).collect();
    if strips.is_empty() {
        return None;
    }
    let rows = judged.iter().map(|judged| {
        let windows: usize = judged.series.processes.iter().map(|process| process.values.len()).sum();
        let estimate = judged.analysis.figure();
        vec![
            text(label(diagnosis, judged)),
            text(placement_words(&judged.series.case.placement.name)),
            number(value_words(judged)),
            number(judged.series.processes.len().to_string()),
            number(windows.to_string()),
            number(cv_in_words(judged).unwrap_or_default()),
            number(estimate.and_then(|e| e.icc).map_or(String::new(), |icc| format!("{:.2}", icc.value))),
            Cell::Verdict(judged.analysis.verdict.clone()),
        ]
    });
    let columns = columns("figure | placement | median (95 %): | passes: | samples: | CV: | ICC: | verdict");
    let chart =
        Chart::new("strips", "Samples", ChartKind::Strips { strips }, Table::new(columns, rows).folded())
            .about(
                "Each dot is one sample relative to the median of its figure. Hollow dots are \
                 warm-up and do not count. Bar: the median with its 95 % interval. All as measured, without clock \
                 correction.",
            );
    let mut blocks = vec![Block::from(chart)];
    if left_out > 0 {
        blocks.push(Block::Prose(format!(
            "{left_out} more figures are not drawn: pairs of matrices, and trusted figures \
                 that the results do not show. The raw data has their samples."
        )));
    }
    Some(
        Section::new("samples", "Every sample", blocks)
            .about(
                "ICC is the share of variance between passes. Near 1, a pass keeps its first \
                 value (pages, CPU, layout). Near 0, samples scatter equally in all passes.",
            )
            .long(),
    )
}

fn strip(diagnosis: &Diagnosis, judged: &Judged) -> Option<Strip> {
    let estimate = judged.analysis.estimate.as_ref()?;
    let median = Some(estimate.median).filter(|median| median.is_finite() && *median != 0.0)?;
    let unit = &judged.series.metric.unit;
    let mut dots = Vec::new();
    for in_process in &judged.series.processes {
        let windows = in_process.warm_up.iter().map(|value| (value, true));
        let windows = windows.chain(in_process.values.iter().map(|value| (value, false)));
        let finite = windows.filter(|(value, _)| value.is_finite());
        dots.extend(finite.map(|(value, warm_up)| Dot { relative: value / median, warm_up }));
    }
    let spread = estimate.cv.map_or(String::new(), |cv| format!(", CV {}", percent(cv)));
    Some(Strip {
        // The place first: names that are too long are cut at their end.
        label: format!(
            "{} · {}",
            placement_words(&judged.series.case.placement.name),
            label(diagnosis, judged)
        ),
        figure: format!("{}{spread}", figure(estimate.median, unit)),
        dots,
        low_high: estimate.interval.map(|interval| [interval.low / median, interval.high / median]),
        verdict: judged.analysis.verdict.clone(),
    })
}

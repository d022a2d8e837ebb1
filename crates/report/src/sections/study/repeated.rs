//! Whether runs of one setting agree (`assay hackbench --runs N`). Words: `RUNS AGREE`, `RUNS
//! DIFFER`, `RUNS SCATTER`.

use super::super::figures::{median_words, medians, spread_words};
use super::super::{column, number, right, text};
use super::Answer;
use crate::block::Table;
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::words::figure;
use model::VerdictKind;
use model::vocabulary::hackbench as ids;
use stats::analysis::Judged;
use stats::repeat::cv_words;

/// Within this the runs of one setting are alike.
const ALIKE: f64 = stats::repeat::APART;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    // Of several settings none is repeated: each is a figure.
    let [planned] = diagnosis.run.header.plan.as_slice() else { return None };
    if planned.case.bench != ids::HACKBENCH {
        return None;
    }
    let known = |judged: &&Judged| judged.analysis.figure().is_some();
    let all: Vec<&Judged> = diagnosis.series.iter().filter(known).collect();
    let main = all.iter().find(|judged| judged.series.metric.headline)?;
    let values = medians(main);
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let cv = main.analysis.figure().and_then(|own| own.cv);
    let (word, tone) = match main.analysis.verdict.kind {
        VerdictKind::Multimodal | VerdictKind::Drifting => ("RUNS DIFFER", Tone::Care),
        _ if cv.is_none_or(|cv| cv <= ALIKE) => ("RUNS AGREE", Tone::Good),
        _ => ("RUNS SCATTER", Tone::Care),
    };
    let unit = &main.series.metric.unit;
    let mut said = format!("{} runs took {}–{}", values.len(), figure(least, ""), figure(most, unit));
    if let Some(cv) = cv {
        said.push_str(&format!(" and scatter by {}", cv_words(cv, values.len())));
    }
    Some(Answer::new(word, tone).sentences([format!("{said}.")]).table(table(&all)))
}

/// A row a metric, from the least run to the most.
fn table(all: &[&Judged]) -> Table {
    let row = |judged: &&Judged| {
        let (metric, values) = (&judged.series.metric, medians(judged));
        let end = |pick: fn(f64, f64) -> f64| {
            number(
                values
                    .iter()
                    .copied()
                    .reduce(pick)
                    .map_or("–".to_string(), |own| figure(own, &metric.unit)),
            )
        };
        vec![
            text(metric.title.to_string()),
            number(median_words(judged)),
            number(spread_words(judged)),
            end(f64::min),
            end(f64::max),
        ]
    };
    let columns = vec![column("of each run"), right("median"), right("95 %"), right("least"), right("most")];
    Table::new(columns, all.iter().map(row))
}

//! The headlines of a result, recomputed from its own rows.

use super::{HEADLINE_DIFFERS, INVALID_RESULT, Printed, QUOTED, Row, Sheet, Tune};
use crate::{Index, IndexRow};
use model::{Fact, Finding};
use stats::index::geometric_mean;

/// What a component is called as a benchmark.
pub(super) fn bench(name: &str) -> String {
    format!("speccpu.{name}")
}

/// SPEC's own result of each component, a row each: the table of selected rows, or where that was
/// cut off the rows that are marked as selected.
pub(super) fn selected(sheet: &Sheet) -> Vec<&Row> {
    let table: Vec<&Row> = sheet.rows.iter().filter(|row| row.selected_table).collect();
    if !table.is_empty() {
        return table;
    }
    let marked = |row: &&Row| row.cells.iter().any(|cell| cell.selected);
    sheet.rows.iter().filter(marked).collect()
}

/// One headline, printed and recomputed.
struct Checked {
    index: Index,
    /// Largest difference that rounding explains, a share.
    tolerance: f64,
}

/// The headlines of a file: those that are printed, and those that only its rows give.
pub(super) fn indices(sheet: &Sheet) -> (Vec<(Tune, Index)>, Vec<Finding>) {
    let mut findings: Vec<Finding> = invalid(sheet).into_iter().collect();
    let mut indices = Vec::new();
    for tune in Tune::BOTH {
        let Some(checked) = check(sheet, tune) else { continue };
        findings.extend(differs(&checked));
        indices.push((tune, checked.index));
    }
    (indices, findings)
}

/// The selected row of a component, at one tuning.
struct Component<'s> {
    name: &'s str,
    rate: Option<f64>,
    /// Half of the rate's last digit, a share of it.
    rounding: f64,
    copies: Option<u32>,
}

fn check(sheet: &Sheet, tune: Tune) -> Option<Checked> {
    let printed: Option<&Printed> = sheet.printed.iter().find(|one| one.tune == tune);
    let mut rows: Vec<Component> = Vec::new();
    for row in selected(sheet) {
        let cell = &row.cells[tune as usize];
        // Twice the same name counts once.
        if !rows.iter().any(|known| known.name == row.name) {
            let rate = cell.rate.filter(|rate| cell.succeeded() && *rate > 0.0);
            let copies = cell.copies.filter(|_| rate.is_some());
            rows.push(Component { name: &row.name, rate, rounding: cell.rounding, copies });
        }
    }
    let values: Vec<f64> = rows.iter().filter_map(|row| row.rate).collect();
    let score = printed.and_then(|one| one.value);
    // A tuning that was not run is no index.
    if values.is_empty() && score.is_none() {
        return None;
    }
    let complete = values.len() == rows.len() && rows.len() >= sheet.components();
    // A headline over fewer components than all is none of SPEC's, but the rows that the file has
    // can still be checked against it.
    let recomputed = geometric_mean(&values).filter(|_| values.len() == rows.len());
    let own: f64 = rows.iter().map(|row| row.rounding).sum::<f64>() / rows.len().max(1) as f64;
    let of_score = match (score, printed.is_some_and(|one| one.text.len() > 8)) {
        (Some(score), true) if score > 0.0 => 1e-6 / score,
        (Some(score), false) => super::lines::half_of_third_digit(score),
        _ => 0.0,
    };
    let tolerance = (own + of_score) * 1.01 + 1e-9;
    let remark = match (score, recomputed) {
        (Some(score), Some(found)) if (score / found).ln().abs() > tolerance => {
            format!("it prints {score:.1}, but its own {} rows give {found:.1}", values.len())
        }
        (Some(_), None) => {
            format!(
                "it cannot be recomputed: {} of {} components have a selected row",
                values.len(),
                rows.len()
            )
        }
        (None, _) => match printed {
            Some(one) => format!("it prints {:?} instead of a headline", one.text),
            None => "it prints no headline: the file ends before, or was cut".to_string(),
        },
        _ if !complete => format!("of {} components, where the suite has {}", rows.len(), sheet.components()),
        _ => String::new(),
    };
    let copies: Vec<u32> = rows.iter().filter_map(|row| row.copies).collect();
    let test = |row: &Component| {
        row.rate.map(|rate| IndexRow {
            title: row.name.to_string(),
            bench: bench(row.name),
            baseline: None,
            result: rate,
            printed: None,
            recomputed: None,
        })
    };
    let index = Index {
        title: printed.map_or_else(|| sheet.headline(tune), |one| one.title.clone()),
        copies: copies.first().copied().filter(|first| copies.iter().all(|copies| copies == first)),
        partial: !complete,
        score,
        recomputed,
        tests: rows.iter().filter_map(test).collect(),
        remark,
    };
    Some(Checked { index, tolerance })
}

fn differs(checked: &Checked) -> Option<Finding> {
    let Index { title, score, recomputed, tests, .. } = &checked.index;
    let (score, found) = ((*score)?, (*recomputed)?);
    let apart = (score / found).ln();
    if apart.abs() <= checked.tolerance {
        return None;
    }
    let source = format!("geometric mean of {} selected rows", tests.len());
    Some(Finding::problem(HEADLINE_DIFFERS.to_string(), format!(
        "{title} prints {score:.1}, but its own rows give {found:.1} ({:+.2} %)",
        apart.exp_m1() * 100.0
    ))
        .cause("A headline is the geometric mean of the rows above it. One of the two was edited, or the file was put \
                together from two results.")
        .fact("printed", format!("{score}"), title.clone())
        .fact("from its rows", format!("{found:.3}"), source)
        .fact("digits allow", format!("±{:.2} %", checked.tolerance * 100.0), "rounding of rows and headline")
        .confirm_by_import()
        .advice("Use the rows, or ask for the raw file (.rsf) and write the report again with SPEC's rawformat."))
}

fn invalid(sheet: &Sheet) -> Option<Finding> {
    if sheet.valid != Some(false) && !sheet.estimated && !sheet.non_compliant {
        return None;
    }
    let how = match sheet.valid {
        _ if sheet.non_compliant => "SPEC withdrew the result because it breaks its rules",
        Some(false) => "SPEC's tools marked the run as invalid",
        _ => "The file calls its columns estimates",
    };
    let mut facts = vec![Fact::new("marked", how, "the file")];
    facts.extend(sheet.banner.iter().take(QUOTED).map(|line| Fact::new("banner", line, "the file")));
    if let Some(more @ 1..) = sheet.banner.len().checked_sub(QUOTED) {
        facts.push(Fact::new("banner", format!("{more} more lines"), "the file"));
    }
    Some(Finding::warning(INVALID_RESULT.to_string(), format!("{how}: the {} figures are estimates", sheet.year.word()))
        .cause(if sheet.non_compliant { "SPEC reviews published results and withdraws those that break its rules: its own words say why." } else {
                "A run that is not reportable, has failed components or too few iterations was not checked by SPEC's rules; \
                 its figures may still be right."
            }
        .to_string())
        .facts(facts)
        .confirm_by_import())
}

//! Sizes measured from the curves, and what the kernel reports.

use super::{column, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let readings = diagnosis.readings();
    let rows: Vec<Vec<Cell>> = readings
        .into_iter()
        .map(|reading| {
            let agrees = match reading.agrees {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            vec![
                text(reading.name),
                text(reading.measured),
                text(reading.claimed.unwrap_or_default()),
                text(agrees),
                Cell::Code(reading.source),
            ]
        })
        .collect();
    let titles = ["property", "measured (bounds)", "reported", "agree", "curve"];
    (!rows.is_empty()).then(|| {
        Section::new(
            "readings",
            "Measured from the curves",
            vec![Block::Table(Table::new(titles.map(column).to_vec(), rows))],
        )
        .about(
            "Cache sizes that one task gets, from the steps of its curves, and what the kernel reports. \
                 `assay explain llc-differs` explains how steps are found.",
        )
    })
}

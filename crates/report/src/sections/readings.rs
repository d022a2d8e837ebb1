//! What was read off the curves, beside what is claimed.

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
    let titles = ["property", "read off (bounds)", "claimed by the kernel", "agree", "curve"];
    (!rows.is_empty()).then(|| {
        Section::new(
            "readings",
            "Read off the curves",
            vec![Block::Table(Table::new(titles.map(column).to_vec(), rows))],
        )
        .about(
            "What one task really has of this machine, by the steps of its own curves, beside what it \
                 is told. `assay explain llc-differs` says how steps are found.",
        )
    })
}

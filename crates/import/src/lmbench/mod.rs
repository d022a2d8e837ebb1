//! Results of lmbench: the summary's tables, the raw files that they are made from, and curves of
//! lat_mem_rd alone.

mod ceiling;
mod figures;
mod labels;
pub mod numbers;
mod raw;
mod summary;
mod tables;

use super::Imported;
use super::{Format, Tool};

pub use figures::{FIGURES, Figure, Unit, find, has_unknown_size};
pub use tables::{CellContent, Column, HOST, SYSTEM, TABLES, Table};

pub(crate) const TOOL: Tool = Tool::of(
    "lmbench: summary (`make summary`), raw files and curves of lat_mem_rd",
    |_| true,
    |text| Ok(read(text)),
);

const SUMMARY: Format = Format("lmbench summary");
pub(crate) const RAW: Format = Format("lmbench raw results");
pub(crate) const LAT_MEM_RD: Format = Format("lat_mem_rd curves");
/// What its programs printed by themselves.
pub(crate) const FIGURES_ALONE: Format = Format("lmbench figures");

/// What a result is headed by, in its make-up.
const HEADING: &str = "heading";

/// A remark on every result of lmbench.
const GENERAL: &str = "lmbench keeps the median of eleven measurements, so no spread is known; it does not pin its processes \
                       unless LMBENCH_SCHED says so";

/// Whether a text has a mark of lmbench.
pub(crate) fn begins(text: &str) -> bool {
    let is_own = |line: &str| line.starts_with("[lmbench") || line.starts_with("\"stride=");
    summary::is_one(text) || text.lines().any(is_own)
}

/// The results in a text, one for each host; none where it holds nothing that lmbench prints.
fn read(text: &str) -> Vec<Imported> {
    let found = if summary::is_one(text) { summary::read(text) } else { raw::read(text) };
    let with_remark = |mut imported: Imported| {
        imported.remarks.insert(0, GENERAL.to_string());
        imported.findings = ceiling::above_memory(&imported);
        imported
    };
    found.into_iter().map(with_remark).collect()
}

#[cfg(test)]
mod tests;

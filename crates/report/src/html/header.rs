//! What stands first on the page: what was measured, and the answer.

use askama::Template;

use super::text::filters;
use crate::block::Report;

/// Machine and run in a line each.
#[derive(Template)]
#[template(path = "report/header.html", whitespace = "minimize")]
pub struct Header<'a> {
    report: &'a Report,
}

/// The page's first lines, above all sections.
pub fn header(report: &Report) -> Header<'_> {
    Header { report }
}

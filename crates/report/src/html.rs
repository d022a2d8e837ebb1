//! The report as one HTML file that needs nothing else: no network, no other file, and for reading
//! no scripts.
//!
//! The answer stands first, then findings, charts and tables by subject (`topics`); every chart has
//! its data below it, and the whole result is embedded as JSON so that the page can be read back.
//! What hosts say about themselves is never trusted: the templates escape for HTML, `svg` for
//! charts, `packed` holds JSON, and the page's policy lets only its own scripts run.

mod boxes;
mod header;
mod histogram;
mod item;
mod packed;
mod page;
mod table;
mod text;
mod topics;
pub(crate) mod verdict;

use std::io::{BufWriter, Write};

use anyhow::Context;
use askama::Template;
use base64::Engine;
use sha2::{Digest, Sha256};

use super::block::Report;
use page::Page;

const STYLE: &str = include_str!("../templates/report.css");
/// Runs before anything is seen: the style sheet has to know whether scripts run at all.
const EARLY: &str = "document.documentElement.classList.add('js');";
const SCRIPT: &str = include_str!("../templates/report.js");

/// Writes the page, which is never held in memory.
pub fn write(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    Page::new(report).write_into(&mut out).context("writing the page")?;
    out.flush().context("writing the page")
}

/// The JSON that `write` embedded; `None` if this is not such a page.
pub fn embedded_json(html: &str) -> Option<String> {
    packed::unpacked(html)
}

/// What the page may do: run the scripts named here and use what is inside it. It may connect to
/// nothing.
fn policy() -> String {
    let named: Vec<String> =
        [EARLY, SCRIPT].iter().map(|script| format!("'sha256-{}'", sha256_base64(script))).collect();
    // Charts have their places in style attributes; pictures are data of the page.
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
         form-action 'none'",
        named.join(" ")
    )
}

/// A script's digest, as the policy names scripts.
fn sha256_base64(script: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(Sha256::digest(script))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Axis, Bar, Block, Chart, ChartKind, Section, Table};
    use model::Verdict;

    fn page(report: &Report) -> String {
        let mut out = Vec::new();
        write(report, &mut out).expect("writes");
        String::from_utf8(out).expect("is UTF-8")
    }

    fn with_block(block: Block) -> Report {
        let section = Section::new("s", "S", vec![block]);
        Report { sections: vec![section], ..Report::default() }
    }

    #[test]
    fn scripts_reach_the_browser_as_they_are_named() {
        // What would change between the file and the browser would no longer match its digest.
        assert!(![EARLY, SCRIPT].iter().any(|script| script.contains(['\r', '\0'])));
        assert!(!SCRIPT.contains("<!--") && !SCRIPT.contains("<script") && !SCRIPT.contains("</script"));
    }

    #[test]
    fn json_is_read_back() {
        let value = serde_json::json!({
            "host": "</script><script>alert(1)</script><!-- & \u{2028}", "text": packed::BEGIN, "n": [1, 2.5, null],
            "escaped": "\\u003c stays",
        });
        let report = Report { json: value.to_string(), title: packed::BEGIN.to_owned(), ..Report::default() };
        let html = page(&report);
        assert_eq!(html.matches(packed::BEGIN).count(), 1);
        assert_eq!(embedded_json(&html), Some(value.to_string()));
    }

    #[test]
    fn charts_are_drawn_in_the_page() {
        let html = page(&with_block(Block::Prose("one\n\ntwo".to_owned())));
        assert!(html.len() < 60_000, "{}", html.len());
        assert!(html.contains("<p>one</p>") && html.contains("<p>two</p>"), "{html}");
        assert!(html.contains("default-src 'none'"));
        let bar = Bar { label: "a<b".into(), value: 2.0, low_high: None, verdict: Verdict::trusted() };
        let y = Axis::linear("GB/s");
        let chart = Chart::new("c", "C", ChartKind::Bars { y, bars: vec![bar] }, Table::default());
        let html = page(&with_block(chart.into()));
        assert!(html.len() < 60_000 && html.contains("<path class=\"bar blue\""), "{}", html.len());
        let html = page(&with_block(crate::map::tests::chart(crate::map::tests::hackbench()).into()));
        assert!(html.len() < 120_000 && html.contains("<svg class=\"map\""), "{}", html.len());
    }

    #[test]
    fn no_findings_is_said_calmly() {
        assert!(page(&with_block(Block::Findings(Vec::new()))).contains("No rule found a fault"));
    }

    #[test]
    fn nothing_outside_is_named() {
        let html = page(&with_block(Block::Prose("x".to_owned())));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}

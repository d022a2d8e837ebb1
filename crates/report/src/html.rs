//! The report as one HTML file that needs nothing else: no network, no other file, and for reading
//! no scripts.
//!
//! Findings stand first, every chart has its data below it, and the whole result is embedded as
//! JSON so that the page can be read back. What machines say about themselves is never trusted: the
//! templates escape for HTML, `text` for scripts and chart labels, and the page's policy lets only
//! its own scripts run.

mod boxes;
mod charts;
mod histogram;
mod page;
mod table;
mod text;
mod verdict;

use std::io::{BufWriter, Write};

use anyhow::Context;
use askama::Template;
use base64::Engine;
use sha2::{Digest, Sha256};

use super::block::{Block, Report};
use page::Page;

const STYLE: &str = include_str!("../templates/report.css");
/// Runs before anything is seen: the style sheet wants to know whether scripts run at all.
const EARLY: &str = "document.documentElement.classList.add('js');";
const SCRIPT: &str = include_str!("../templates/report.js");

/// Where the result's JSON begins. No text can contain this, because every `<` in a text is
/// escaped.
const JSON_BEGIN: &str = "<script type=\"application/json\" id=\"assay-report\">";
const SCRIPT_END: &str = "</script>";

/// Writes the page. It is never held in memory: the largest thing that is, is the chart library.
pub fn write(report: &Report, out: &mut dyn Write) -> anyhow::Result<()> {
    let charts = report.sections.iter().flat_map(|section| &section.blocks);
    let with_charts =
        charts.into_iter().any(|block| matches!(block, Block::Chart(chart) if !chart.is_drawn()));
    let library = if with_charts { library()? } else { String::new() };
    write_with(report, &library, out)
}

/// The page with this chart library: loading the real one takes longer than all the rest.
pub fn write_with(report: &Report, library: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    Page::new(report, library).write_into(&mut out).context("writing the page")?;
    out.flush().context("writing the page")
}

/// The JSON that `write` embedded, as text that parses to the same values; `None` if this is not
/// such a page.
pub fn embedded_json(html: &str) -> Option<String> {
    let (_, after) = html.split_once(JSON_BEGIN)?;
    let (json, _) = after.split_once(SCRIPT_END)?;
    Some(json.to_owned())
}

/// The source of plotly.js alone: the crate gives it together with MathJax, which no chart of ours
/// uses.
fn library() -> anyhow::Result<String> {
    let mut source = plotly::Plot::offline_js_sources();
    let begin = source.find('>').context("the chart library is not in a script element")? + 1;
    let length = source[begin..].find(SCRIPT_END).context("the chart library's script has no end")?;
    source.truncate(begin + length);
    source.drain(..begin);
    source.shrink_to_fit();
    Ok(source)
}

/// What the page may do: run the scripts named here and use what is inside it. It may connect to
/// nothing.
fn policy(library: &str) -> String {
    let scripts = [EARLY, SCRIPT, library].into_iter().filter(|script| !script.is_empty());
    let named: Vec<String> = scripts.map(|script| format!("'sha256-{}'", sha256_base64(script))).collect();
    // The chart library writes style attributes. Pictures are its own, made from data.
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
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
    use crate::block::{Chart, ChartKind, Section, Table};

    fn page(report: &Report) -> String {
        let mut out = Vec::new();
        write(report, &mut out).expect("writes");
        String::from_utf8(out).expect("is UTF-8")
    }

    fn with_block(block: Block) -> Report {
        let section = Section {
            id: "s".to_owned(),
            title: "S".to_owned(),
            about: String::new(),
            blocks: vec![block],
            long: false,
        };
        Report { sections: vec![section], ..Report::default() }
    }

    #[test]
    fn the_library_is_plotly_alone() {
        let library = library().expect("is there");
        assert!(library.contains("plotly.js v3"));
        assert!(library.len() < 5_000_000, "{}", library.len());
        // What would change between the file and the browser would no longer match its digest.
        assert!(!library.contains(['\r', '\0']));
        assert!(!library.contains("<!--") && !library.contains("<script"));
        assert!(!SCRIPT.contains(['\r', '<']) || !SCRIPT.contains("</script"));
    }

    #[test]
    fn json_is_read_back() {
        let value = serde_json::json!({
            "host": "</script><script>alert(1)</script><!-- & \u{2028}", "text": JSON_BEGIN, "n": [1, 2.5, null],
            "escaped": "\\u003c stays",
        });
        let report = Report { json: value.to_string(), title: JSON_BEGIN.to_owned(), ..Report::default() };
        let html = page(&report);
        assert_eq!(html.matches(JSON_BEGIN).count(), 1);
        let back: serde_json::Value =
            serde_json::from_str(&embedded_json(&html).expect("has JSON")).expect("is JSON");
        assert_eq!(back, value);
        assert_eq!(embedded_json("<p>something else</p>"), None);
    }

    #[test]
    fn no_charts_no_library() {
        let html = page(&with_block(Block::Prose("one\n\ntwo".to_owned())));
        assert!(html.len() < 60_000, "{}", html.len());
        assert!(html.contains("<p>one</p>") && html.contains("<p>two</p>"), "{html}");
        assert!(html.contains("default-src 'none'"));
        let chart = ChartKind::Strips { strips: Vec::new() };
        let chart = Chart {
            id: "c".to_owned(),
            title: "C".to_owned(),
            about: String::new(),
            kind: chart,
            summary: None,
            data: Table::default(),
        };
        let html = page(&with_block(chart.into()));
        assert!(html.len() > 4_000_000 && html.len() < 5_000_000, "{}", html.len());
        // Maps are drawn already.
        let html = page(&with_block(crate::map::tests::chart(crate::map::tests::hackbench()).into()));
        assert!(html.len() < 120_000 && html.contains("<svg class=\"map\""), "{}", html.len());
        assert!(!html.contains("needs scripts;"), "nor do they need any");
    }

    #[test]
    fn no_findings_is_said_calmly() {
        assert!(page(&with_block(Block::Findings(Vec::new()))).contains("No rule found anything"));
    }

    #[test]
    fn nothing_outside_is_named() {
        let html = page(&with_block(Block::Prose("x".to_owned())));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}

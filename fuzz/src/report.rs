//! Every report of a diagnosed run, and what each must keep to.

use ::report::json::OutputSeries;
use ::report::text::screen::Wanted;
use ::report::text_machine::Style;
use ::report::{csv, html, json as results, markdown, sections, text};
use diagnose::Diagnosis;
use diagnose::reference::References;
use serde_json::Value;

use super::{machine, visible};

/// The JSON of a diagnosis.
pub fn json(diagnosis: &Diagnosis) -> Value {
    let text = serde_json::to_string(&results::output(diagnosis, &References::published()))
        .expect("every result can be written");
    serde_json::from_str(&text).expect("as JSON")
}

/// Makes all reports; gives the JSON.
pub fn check(diagnosis: &Diagnosis) -> Value {
    let json = json(diagnosis);
    contract(diagnosis, &json);
    machine::consistent(&diagnosis.machine);
    let report = sections::compose(diagnosis).expect("every run has a report");

    for (unicode, width) in [(true, 110), (false, 60)] {
        visible::check("the text", &text::render(&report, Style { color: false, unicode, width }));
    }
    if let Some(screen) = &report.screen {
        for (unicode, width) in [(true, 100), (false, 60)] {
            let style = Style { color: false, unicode, width };
            visible::check("the first screen", &text::screen::render(screen, Wanted::default(), &[], style));
        }
    }
    visible::check("the Markdown", &markdown::render(&report));
    table(diagnosis);

    let mut page = Vec::new();
    html::write(&report, &mut page).expect("memory can be written");
    let page = String::from_utf8(page).expect("the page is UTF-8");
    let embedded = html::embedded_json(&page).expect("the page holds its data");
    let embedded: Value = serde_json::from_str(&embedded).expect("as JSON");
    assert!(embedded == json, "the page holds other data");
    scripts(&page);
    json
}

/// What other programs rely on.
fn contract(diagnosis: &Diagnosis, json: &Value) {
    assert!(json["elapsed_s"].is_number(), "elapsed_s is {}", json["elapsed_s"]);
    let series = json["series"].as_array().expect("a list");
    assert_eq!(series.len(), diagnosis.series.len());
    for (written, judged) in series.iter().zip(&diagnosis.series) {
        let read = serde_json::from_value::<OutputSeries>(written.clone());
        let read = read.unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(read.key, judged.series.key);
        let key = &read.key;
        let verdict = &judged.analysis.verdict;
        assert!(read.reason.is_empty() || !read.reason.trim().is_empty(), "{key}: a blank reason");
        let Some(estimate) = &judged.analysis.estimate else {
            assert!(read.median.is_none() && read.n == 0, "{key} has a number without an estimate");
            assert!(!verdict.reason.is_empty() && !verdict.usable() || read.n > 0, "{key}: {verdict:?}");
            continue;
        };
        assert!(estimate.n > 0 && estimate.median.is_finite(), "{key}: {estimate:?}");
        if let Some(interval) = estimate.interval {
            let ordered = interval.low <= estimate.median && estimate.median <= interval.high;
            assert!(ordered && (interval.high - interval.low) >= 0.0, "{key}: {estimate:?}");
        }
        assert!(estimate.cv.is_none_or(|cv| cv.is_finite() && cv >= 0.0), "{key}: {estimate:?}");
    }
    for finding in &diagnosis.findings {
        assert!(!finding.facts.is_empty(), "no fact, no finding: {finding:?}");
        assert!(!finding.confirm.is_empty() && !finding.headline.is_empty(), "{finding:?}");
        assert!(!finding.headline.contains("NaN") && !finding.headline.contains("inf "), "{finding:?}");
        for fact in &finding.facts {
            let number = fact.value.split_whitespace().next().unwrap_or("");
            assert!(!["inf", "-inf", "NaN"].contains(&number), "{finding:?}");
        }
    }
}

/// Ten cells a row, none of which is a formula or holds what cannot be seen.
fn table(diagnosis: &Diagnosis) {
    let mut text = Vec::new();
    csv::write(diagnosis, &mut text).expect("memory can be written");
    let mut reader = ::csv::Reader::from_reader(text.as_slice());
    for row in reader.records() {
        let row = row.expect("a row of CSV");
        assert_eq!(row.len(), 10, "{row:?}");
        for (at, cell) in row.iter().enumerate() {
            visible::check("the table", cell);
            let number = at == 7;
            assert!(number || !cell.starts_with(['=', '+', '-', '@']), "a formula: {cell:?}");
            assert!(!number || cell.parse::<f64>().is_ok(), "no number: {cell:?}");
        }
    }
}

/// No text of the run became a script or an element of the page.
fn scripts(page: &str) {
    let known = ["<script>", "<script type=\"application/gzip\" id=\"assay-report\">"];
    let mut rest = page;
    while let Some(at) = rest.find("<script") {
        rest = &rest[at..];
        assert!(known.iter().any(|begin| rest.starts_with(begin)), "a foreign script");
        let end = rest.find("</script>").expect("every script ends");
        if rest.starts_with(known[1]) {
            let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
            assert!(rest[known[1].len()..end].chars().all(base64), "packed data hold something else");
        }
        rest = &rest[end..];
    }
    assert_eq!(page.matches("</html>").count(), 1);
    let control = |c: char| c.is_control() && c != '\n';
    let (before, after) = page.split_once("id=\"assay-report\">").expect("it holds its data");
    let (_, after) = after.split_once("</script>").expect("which ends");
    assert!(!before.contains(control) && !after.contains(control), "control characters in the page");
}

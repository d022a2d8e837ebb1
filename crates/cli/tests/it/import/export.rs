//! lmbench's summary written by us: what is exported is read back.

use std::path::Path;

use import::lmbench::{CellContent, Column, FIGURES, TABLES, Unit, numbers};
use import::read;
use serde_json::Value;

use super::{invented, json, text, verb};

#[test]
fn what_is_exported_is_read_back() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run =
        invented(5, dir.path(), "quick", "cpu.clock,syscall,process.fork,memory.latency,memory.bandwidth");
    let summary = text(&verb(&["report", "--format", "lmbench"], &[&run]));
    for line in summary.lines().filter(|line| line.starts_with("--------- ---")) {
        assert!(TABLES.iter().any(|table| table.dashes() == line), "{line}");
    }
    let back = read(summary.as_bytes()).expect("a summary");
    assert_eq!(back.len(), 1, "{summary}");
    let report = json(&verb(&["diagnose", "--json"], &[&run]));
    let series = report["series"].as_array().expect("series");
    let mut compared = 0;
    for figure in &back[0].figures {
        let imported = &figure.judged;
        let Some(estimate) = &imported.analysis.estimate else { continue };
        // Without a given size the cell holds the largest one: its number is on the curve.
        let plain = |key: &str| key.replace("+base-pages", "").replace("+huge-pages", "");
        let key = imported.series.key.as_str();
        let (begin, end) = match key.split_once("=largest#") {
            Some((begin, metric)) => (format!("{begin}="), format!("#{metric}")),
            None => (key.to_string(), String::new()),
        };
        let candidates: Vec<f64> = series
            .iter()
            .filter(|one| {
                let own = plain(one["key"].as_str().unwrap_or(""));
                if end.is_empty() { own == begin } else { own.starts_with(&begin) && own.ends_with(&end) }
            })
            .filter_map(|one| {
                let unit = one["unit"].as_str()?;
                Some(one["median"].as_f64()? * compare::unit_scale(unit, &imported.series.metric.unit)?)
            })
            .collect();
        if imported.series.key.starts_with("lmbench.") {
            continue;
        }
        compared += 1;
        // Within the printed digits: what is printed and read again is what was imported.
        let (unit, column) = column(&imported.series.key);
        let printed =
            |value: f64| unit.theirs(value).map(|value| numbers::write(value, column.digits, column.width));
        let again = |value: f64| unit.ours(numbers::read(printed(value)?.trim())?);
        let near = |value: &f64| again(*value) == Some(estimate.median);
        assert!(
            candidates.iter().any(near),
            "{key}: {} is none of {candidates:?}\n{summary}",
            estimate.median
        );
    }
    assert!(compared >= 3, "{compared} figures came back:\n{summary}");
}

/// Makes windows of a free ring of two say what a hop and its parts take, us, and forgets the free
/// ring of eight.
fn free_rings(file: &Path) {
    let text = crate::runs::unsealed(file);
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let plan = lines[0]["header"]["plan"].clone();
    let free = |line: &Value, processes: u64| {
        let planned = line["visit"]["case"].as_u64().map(|case| &plan[case as usize]["case"]);
        planned.is_some_and(|case| {
            case["placement"]["name"] == "free" && case["params"]["processes"] == processes
        })
    };
    lines.retain(|line| !free(line, 8));
    for line in lines.iter_mut().filter(|line| free(line, 2)) {
        let samples = line["visit"]["samples"].as_array_mut().expect("samples");
        // No difference is measured where the hop may go to another CPU.
        samples.retain(|samples| samples["metrics"][0] != "switch");
        for samples in samples {
            let us = match (samples["metrics"][0].as_str(), samples["point"]["kb"].as_u64()) {
                (Some("latency"), Some(0)) => 10.0,
                (Some("latency"), Some(16)) => 20.0,
                (Some("latency"), _) => 8.0,
                (Some("pipe"), _) => 3.0,
                (Some("data"), Some(16)) => 5.0,
                (Some("data"), _) => 6.0,
                _ => continue,
            };
            let windows = samples["ns"].as_array().expect("a column").iter();
            let work = windows.map(|ns| ns.as_f64().expect("a number") / 1e3 / us).collect::<Vec<f64>>();
            samples["work"] = serde_json::json!(work);
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, text).expect("a file");
}

#[test]
fn hops_are_exported_less_their_parts_and_pinned_ones_not_at_all() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let run = invented(7, dir.path(), "standard", "sched.context-switch");
    free_rings(&run);
    let summary = text(&verb(&["report", "--format", "lmbench"], &[&run]));
    let back = &read(summary.as_bytes()).expect("a summary")[0];
    let switch = |processes: u32, kb: u32| {
        let key = format!("sched.context-switch@free?processes={processes}/kb={kb}#switch");
        let found = back.figures.iter().find(|figure| figure.judged.series.key == key);
        found?.judged.analysis.estimate.as_ref().map(|estimate| estimate.median)
    };
    // Hop less pipe, hop less pipe and data, and parts that are more than the hop.
    assert_eq!([switch(2, 0), switch(2, 16), switch(2, 64)], [Some(7.0), Some(12.0), None], "{summary}");
    // The pinned rings of eight do not stand in for free ones, and the line below says so.
    assert_eq!([switch(8, 16), switch(8, 64)], [None, None], "{summary}");
    let blank = summary.lines().find(|line| line.starts_with("(blank: measured on pinned CPUs only"));
    let (_, blank) = blank.and_then(|line| line.rsplit_once(": ")).unwrap_or_else(|| panic!("{summary}"));
    let blank: Vec<&str> = blank.trim_end_matches(')').split(", ").collect();
    assert!(blank.contains(&"8p/16K") && blank.contains(&"8p/64K"), "{blank:?}");
    assert!(!blank.iter().any(|name| name.starts_with("2p/")), "{blank:?}");
}

/// Where the summary has a series' figure.
fn column(key: &str) -> (Unit, &'static Column) {
    let figure = FIGURES.iter().find(|figure| figure.key == key).expect(key);
    let columns = TABLES.iter().flat_map(|table| table.columns);
    let own = columns.into_iter().find(|column| column.holds == CellContent::Figure(figure.name));
    (figure.unit, own.unwrap_or_else(|| panic!("no column has {}", figure.name)))
}

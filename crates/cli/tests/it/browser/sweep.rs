//! A page with the maps of a sweep: a large one, two small ones, a single row.

use model::Better;
use report::block::{ChartKind, Map, MapRegion, MapSide, Report};

use super::Session;
use super::cdp::Tab;
use super::example::{chart, section, table};
use report::block::{Block, Cell};

/// Settings of the two knobs, in ms.
const SLICE: [&str; 15] =
    ["1", "2", "3", "4", "6", "8", "10", "12", "14", "16", "18", "20", "22", "26", "30"];
const WAKE: [&str; 10] = ["1", "2", "3", "4", "6", "8", "10", "12", "15", "20"];

fn side(title: &str, labels: &[&str]) -> MapSide {
    MapSide { title: title.to_owned(), labels: labels.iter().map(|label| (*label).to_owned()).collect() }
}

fn cells(columns: usize, rows: usize, is: impl Fn(usize, usize) -> bool) -> Vec<[usize; 2]> {
    let all = (0..columns * rows).map(|at| [at / columns, at % columns]);
    all.filter(|[row, column]| is(*row, *column)).collect()
}

fn region(name: &str, kind: &str, cells: Vec<[usize; 2]>) -> MapRegion {
    MapRegion { name: name.to_owned(), kind: kind.to_owned(), cells }
}

/// Time against the default, as hackbench has it: a fall, a ragged part, a flat one.
pub fn large() -> Map {
    let value = |row: usize, column: usize| {
        let fall = 46.0 * (-(column as f64) / 1.6).exp() - 22.0;
        let wake = if column < 4 { -1.6 * row as f64 } else { 0.0 };
        let ragged = if (4..10).contains(&column) {
            ((row * 7 + column * 5) % 9) as f64 - 4.0 + if row > 6 { 7.0 } else { 0.0 }
        } else {
            ((row * 3 + column) % 4) as f64 * 0.6
        };
        Some(fall + wake + ragged)
    };
    let mut values: Vec<Vec<Option<f64>>> =
        (0..10).map(|row| (0..15).map(|column| value(row, column)).collect()).collect();
    values[9][14] = None;
    let edge = |row: usize| if row < 4 { 4 } else { 3 };
    Map {
        title: "time over that of the default setting".to_owned(),
        unit: "%".to_owned(),
        x: side("sched_min_granularity_ns, ms", &SLICE),
        y: Some(side("sched_wakeup_granularity_ns, ms", &WAKE)),
        values,
        around: Some(0.0),
        better: Better::Lower,
        regions: vec![
            region("A", "fall", cells(15, 10, |row, column| column < edge(row))),
            region("B", "ragged", cells(15, 10, |row, column| column >= edge(row) && column < 10)),
            region("C", "flat", cells(15, 10, |row, column| column >= 10 && (row, column) != (9, 14))),
        ],
        best: vec![[4, 10], [4, 11], [5, 11], [5, 10], [3, 12]],
        default: Some([1.25, 2.0]),
    }
}

/// Switches over a smaller grid, without a middle.
pub fn small(title: &str, least: f64) -> Map {
    let value =
        |row: usize, column: usize| Some(least * 3.7_f64.powi(5 - column as i32) * (1.0 + row as f64 / 9.0));
    Map {
        title: title.to_owned(),
        unit: "1/s".to_owned(),
        x: side("min granularity, ms", &["1", "2.25", "4", "8", "15", "30"]),
        y: Some(side("wake-up granularity, ms", &["1", "3", "8", "15"])),
        values: (0..4).map(|row| (0..6).map(|column| value(row, column)).collect()).collect(),
        around: None,
        better: Better::Neither,
        regions: Vec::new(),
        best: Vec::new(),
        default: Some([1.0, 1.0]),
    }
}

/// One knob with few values.
pub fn row() -> Map {
    Map {
        title: "rounds against the default setting".to_owned(),
        unit: "%".to_owned(),
        x: side("base_slice_ns", &["750000", "1500000", "2800000", "6000000", "12000000"]),
        y: None,
        values: vec![vec![Some(-3.1), Some(0.2), Some(0.0), Some(4.2), Some(6.9)]],
        around: Some(0.0),
        better: Better::Higher,
        regions: Vec::new(),
        best: vec![[0, 4]],
        default: Some([2.0, 0.0]),
    }
}

/// The most cells that a sweep has.
pub fn most() -> Map {
    let labels: Vec<String> = (1..=20).map(|at| format!("{} ms", at as f64 * 1.5)).collect();
    let side = |title: &str| MapSide { title: title.to_owned(), labels: labels.clone() };
    let value = |row: usize, column: usize| {
        Some(((row as f64 - 12.0).powi(2) + (column as f64 - 14.0).powi(2)) / 4.0 - 31.0)
    };
    let (near, far) = (
        cells(20, 20, |row, column| value(row, column) < Some(-10.0)),
        cells(20, 20, |row, column| value(row, column) >= Some(20.0)),
    );
    Map {
        title: "time over that of the default setting".to_owned(),
        unit: "%".to_owned(),
        x: side("first"),
        y: Some(side("second")),
        values: (0..20).map(|row| (0..20).map(|column| value(row, column)).collect()).collect(),
        around: Some(0.0),
        better: Better::Lower,
        regions: vec![region("A", "flat", near), region("B", "fall", far)],
        best: vec![[12, 14], [12, 13], [11, 14]],
        default: Some([2.0, 3.5]),
    }
}

pub fn report() -> Report {
    let data = || {
        table(
            &[("setting", false), ("change, %", true)],
            vec![vec![Cell::Text("m 1, w 1".to_owned()), Cell::Number("+24.0".to_owned())]],
        )
    };
    let made = |id: &str, title: &str, map: Map| {
        chart(id, title, "Medians of five runs each.", ChartKind::Map(map), data())
    };
    let blocks: Vec<Block> = vec![
        made("hackbench", "Hackbench over two knobs", large()),
        made("voluntary", "Voluntary switches", small("voluntary switches", 900.0)),
        made("involuntary", "Involuntary switches", small("involuntary switches", 41.0)),
        made("slice", "Pipe rounds over one knob", row()),
        made("most", "As many cells as there are", most()),
    ];
    Report {
        title: "vm-17: sweep".to_owned(),
        machine: "vm-17  KVM guest, 64 vCPU, 256 GiB, Linux 5.10".to_owned(),
        sections: vec![section(
            "sweep",
            "Sweep",
            "What two knobs of the scheduler do to a benchmark.",
            blocks,
        )],
        ..Report::default()
    }
}

/// Looks at the page in both schemes and on a narrow screen.
pub fn look(session: &mut Session, tab: &Tab) {
    let count = |what: &str| format!("document.querySelectorAll('{what}').length");
    assert_eq!(session.count(tab, &count("svg.map")), 5);
    assert_eq!(session.count(tab, &count("#hackbench .cell .n")), 149);
    assert_eq!(session.count(tab, &count("#most .cell .n")), 400);
    // As the browser sets them, no two texts of a map lie on each other.
    let overlaps = "[...document.querySelectorAll('svg.map')].flatMap(map => {
        const texts = [...map.querySelectorAll('text:not([transform])')].map(text => [text.textContent, text.getBoundingClientRect()]);
        return texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
            && a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([other]) => one + ' / ' + other)); }).join('; ')";
    assert_eq!(session.text(tab, overlaps), "");
    // Nothing is cut off at the edges of a picture.
    let outside = "[...document.querySelectorAll('svg.map')].flatMap(map => { const all = map.getBoundingClientRect();
        return [...map.querySelectorAll('text, rect, path')].filter(one => { const own = one.getBoundingClientRect();
            return own.left < all.left - 2 || own.right > all.right + 2 || own.bottom > all.bottom + 2; })
            .map(one => one.outerHTML.slice(0, 160)); }).join('; ')";
    assert_eq!(session.text(tab, outside), "");
    let cell = "getComputedStyle(document.querySelector('#hackbench .cell rect')).fill";
    let light = session.text(tab, cell);
    let height = session.count(tab, "document.documentElement.scrollHeight");
    session.browser.size(tab, 1280, height);
    session.picture(tab, "sweep-light");
    session.scheme(tab, "dark");
    assert_ne!(session.text(tab, cell), light, "maps follow the colour scheme");
    session.picture(tab, "sweep-dark");
    session.scheme(tab, "light");
    session.browser.size(tab, 390, 1500);
    let width = session.count(tab, "document.documentElement.scrollWidth");
    assert!(width <= 390, "the pictures scroll, not the page: {width}");
    session.picture(tab, "sweep-narrow");
}

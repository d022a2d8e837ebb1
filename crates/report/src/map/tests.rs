//! Maps for tests: hackbench over two knobs, a row, hostile texts, any size.

use super::*;
use crate::block::{MapRegion, MapSide, Section, Table};
use model::Better;

/// Markup, an escape sequence, and what no XML may hold.
pub const EVIL: &str = "</text><script>alert(1)</script>\"'&\x1b[31m\u{202e}\u{ffff}";

pub fn side(title: &str, labels: &[&str]) -> MapSide {
    MapSide { title: title.into(), labels: labels.iter().map(|label| (*label).into()).collect() }
}

pub fn region(name: &str, kind: &str, cells: Vec<[usize; 2]>) -> MapRegion {
    MapRegion { name: name.into(), kind: kind.into(), cells }
}

/// Time in % against the default: a fall, a ragged part, a flat one, of which the fall is no
/// rectangle.
pub fn hackbench() -> Map {
    let x = ["1", "2", "4", "8", "12", "16", "20", "30"];
    let y = ["1", "3", "6", "8", "15"];
    let of = |row: usize, column: usize| {
        let slice = [38.0, 12.0, -3.0, -14.0, -12.0, -24.0, -25.0, -22.0][column];
        let wake = [6.0, 0.0, -5.0, -6.0, 4.0][row];
        slice + wake * if column > 5 { 0.3 } else { 1.0 } + ((row * 7 + column * 5) % 4) as f64 * 0.7
    };
    let kind = |kind: fn(usize, usize) -> bool| {
        (0..40).map(|at| [at / 8, at % 8]).filter(|[row, column]| kind(*row, *column)).collect::<Vec<_>>()
    };
    let mut values: Vec<Vec<Option<f64>>> =
        (0..5).map(|row| (0..8).map(|column| Some(of(row, column))).collect()).collect();
    values[4][7] = None;
    Map {
        title: "time over that of the default setting".into(),
        unit: "%".into(),
        x: side("min granularity, ms", &x),
        y: Some(side("wake-up granularity, ms", &y)),
        values,
        around: Some(0.0),
        better: Better::Lower,
        regions: vec![
            region("A", "fall", kind(|row, column| column < 2 || (column == 2 && row < 2))),
            region("B", "ragged", kind(|row, column| (column == 2 && row >= 2) || (3..5).contains(&column))),
            region("C", "flat", kind(|row, column| column >= 5 && (row, column) != (4, 7))),
        ],
        best: vec![[3, 5], [2, 5], [2, 6]],
        default: Some([1.25, 1.0]),
    }
}

/// One knob only.
pub fn row(values: &[Option<f64>]) -> Map {
    let labels = (1..=values.len()).map(|at| at.to_string()).collect();
    Map {
        title: "time".into(),
        unit: "%".into(),
        x: MapSide { title: "m".into(), labels },
        y: None,
        values: vec![values.to_vec()],
        around: Some(0.0),
        better: Better::Lower,
        regions: Vec::new(),
        best: Vec::new(),
        default: None,
    }
}

/// A map of this size with a region in each half, whatever its labels are.
pub fn sized(columns: usize, rows: usize, label: &str, scale: f64, around: Option<f64>) -> Map {
    let labels = |count: usize| (0..count).map(|at| format!("{label}{at}")).collect::<Vec<String>>();
    let value = |row: usize, column: usize| {
        let swing = ((row * 31 + column * 17) % 23) as f64 - 11.0;
        ((row + column) % 13 != 5).then_some(if around.is_some() { swing } else { swing + 12.0 } * scale)
    };
    let half = |upper: bool| {
        let cells = (0..rows * columns).map(|at| [at / columns, at % columns]);
        cells.filter(|[row, column]| (row + column > (rows + columns) / 2) == upper).collect()
    };
    Map {
        title: "changes".into(),
        unit: if around.is_some() { "%" } else { "s" }.into(),
        x: MapSide { title: "first knob, ms".into(), labels: labels(columns) },
        y: (rows > 1).then(|| MapSide { title: "second knob, ms".into(), labels: labels(rows) }),
        values: (0..rows).map(|row| (0..columns).map(|column| value(row, column)).collect()).collect(),
        around,
        better: Better::Neither,
        regions: vec![region("A", "fall", half(false)), region("B", "ragged", half(true))],
        best: vec![[rows - 1, columns - 1], [0, 0]],
        default: Some([0.5, 0.0]),
    }
}

pub fn hostile() -> Map {
    let mut map = hackbench();
    let y = map.y.get_or_insert_default();
    for text in [&mut map.title, &mut map.unit, &mut map.x.title, &mut map.x.labels[1], &mut y.labels[2]] {
        *text = EVIL.into();
    }
    y.title = EVIL.into();
    map.regions[0].name = EVIL.into();
    map.regions[0].kind = EVIL.into();
    // Cells that are not there.
    map.regions[1].cells.push([70, 3]);
    map.best.push([0, 99]);
    map
}

pub fn chart(map: Map) -> Chart {
    Chart::new("map", "Hackbench", ChartKind::Map(map), Table::default())
}

#[test]
fn the_machines_own_setting_is_named() {
    let mut map = hackbench();
    assert_eq!(
        map.own_words().as_deref(),
        Some("min granularity, ms between 2 and 4, wake-up granularity, ms 3")
    );
    assert_eq!((map.own(), map.own_cell()), (Some([1.25, 1.0]), None));
    map.default = Some([3.001, 2.0]);
    assert_eq!(map.own_cell(), Some([2, 3]));
    for off in [[-0.5, 0.0], [0.0, 4.5], [7.5, 0.0], [f64::NAN, 0.0]] {
        map.default = Some(off);
        assert_eq!(map.own_words(), None, "{off:?}");
    }
    // A single row has no place of its own in the other direction.
    let mut map = row(&[Some(1.0), Some(2.0)]);
    map.default = Some([1.0, f64::NAN]);
    assert_eq!((map.own_words().as_deref(), map.own_cell()), (Some("2"), Some([0, 1])));
}

#[test]
fn numbers_have_a_sign_unless_they_are_nothing() {
    let map = hackbench();
    let shown = [3.12, -12.36, -0.04, 0.0].map(|value| map.number(value, 1));
    assert_eq!(shown, ["+3.1", "-12.4", "0.0", "0.0"]);
    assert_eq!(map.number(-0.4, 0), "0");
    let mut seconds = map.clone();
    seconds.around = None;
    assert_eq!(seconds.number(0.0123, 1), "0.0123");
}

#[test]
fn a_cell_says_all_that_is_known_of_it() {
    let mut map = hackbench();
    map.default = Some([5.0, 3.0]);
    assert_eq!(
        map.said([3, 5]),
        "min granularity, ms 16, wake-up granularity, ms 8: -28.6 %; region C (flat); the best; \
         the setting before"
    );
    assert!(map.said([4, 7]).ends_with("not measured"));
    assert_eq!(row(&[Some(2.5)]).said([0, 0]), "m 1: +2.5 %");
}

#[test]
fn the_first_map_of_a_report_is_found() {
    let section = |blocks| Section::new("s", "S", blocks);
    let mut report = Report { sections: vec![section(Vec::new())], ..Report::default() };
    assert!(first(&report).is_none());
    report.sections.push(section(vec![chart(hackbench()).into(), chart(row(&[None])).into()]));
    assert_eq!(first(&report).map(Map::columns), Some(8));
}

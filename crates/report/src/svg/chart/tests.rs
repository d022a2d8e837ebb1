//! Drawings of all kinds, read back as text and as XML.

use proptest::prelude::*;

use super::*;
use crate::block::{Axis, Bar, Callout, Dot, Line, LinePoint, Scale, Side, Strip};
use model::{Verdict, VerdictKind};

const EVIL: &str = "<img src=x onerror=\"alert(1)\"> & 'x' \u{1b}[31m";

fn axis(title: &str, scale: Scale) -> Axis {
    Axis { title: title.to_owned(), scale }
}

fn point(x: f64, y: f64) -> LinePoint {
    LinePoint { x, y, low_high: Some([y * 0.9, y * 1.1]), hollow: false }
}

fn line(name: &str, points: Vec<LinePoint>) -> Line {
    Line { name: name.to_owned(), points, joined: true }
}

fn lines(scale: Scale, lines: Vec<Line>) -> ChartKind {
    let (marks, callouts) = (Vec::new(), Vec::new());
    ChartKind::Lines { x: axis("block", scale), y: axis("ns", scale), lines, marks, callouts }
}

fn side(count: usize) -> Side {
    Side { labels: (0..count).map(|cpu| format!("CPU {cpu}")).collect(), ..Side::default() }
}

fn matrix(count: usize, value: impl Fn(usize, usize) -> f64) -> ChartKind {
    let row = |row: usize| (0..count).map(|column| (row != column).then(|| value(row, column))).collect();
    let values = (0..count).map(row).collect();
    let topology = Side { topology_order: (0..count).rev().collect(), ..side(count) };
    ChartKind::Matrix {
        unit: "ns".into(),
        rows: topology.clone(),
        columns: topology,
        values,
        rejected: vec![[0, 1]],
    }
}

fn bar(label: &str, value: f64, kind: VerdictKind) -> Bar {
    let low_high = Some([value * 0.9, value * 1.1]);
    Bar { label: label.to_owned(), value, low_high, verdict: Verdict::new(kind, "budget") }
}

/// All of a drawing; checks that it is well-formed and that every number in it is one.
fn whole(kind: &ChartKind) -> String {
    let drawing = drawing(kind);
    let html: String = drawing.orders.iter().map(|order| order.html.as_str()).collect();
    let all = format!("<x>{html}{}</x>", drawing.key);
    let mut reader = quick_xml::Reader::from_str(&all);
    reader.config_mut().check_end_names = true;
    while !matches!(reader.read_event().expect("well-formed"), quick_xml::events::Event::Eof) {}
    for wrong in ["NaN", "inf\"", "inf ", "-inf"] {
        assert!(!all.contains(wrong), "{wrong} in {all}");
    }
    all
}

#[test]
fn values_without_a_place_are_gaps_and_are_said() {
    let points = vec![point(1.0, 1.0), point(2.0, 0.0), point(0.0, 1.0), point(4.0, 2.0), point(5.0, 3.0)];
    let kind = lines(Scale::Log, vec![line("a", points)]);
    let html = whole(&kind);
    assert_eq!(drawing(&kind).notes.len(), 1);
    assert_eq!(html.matches("<circle").count(), 3, "{html}");
    // The band covers the last two points only: one area, there and back.
    let (_, band) = html.split_once("class=\"band c0\" d=\"").expect("a band");
    let band = band.split('"').next().expect("its path");
    assert_eq!((band.matches('L').count(), band.matches('z').count()), (3, 1), "{band}");
    assert!(html.contains("block (log scale)") && html.contains("ns (log scale)"));
}

#[test]
fn names_stand_at_the_ends_of_curves_or_in_a_legend() {
    let near = |name: &str, y: f64| line(name, vec![point(1.0, 1.0), point(2.0, y)]);
    let apart = lines(Scale::Linear, vec![near("idle", 10.0), near("loaded", 90.0)]);
    assert!(whole(&apart).contains("class=\"name c1\""));
    assert!(drawing(&apart).key.contains("class=\"n\""), "on a narrow page they have no room");
    let together = lines(Scale::Linear, (0..8).map(|at| near(&format!("line {at}"), 10.0)).collect());
    assert!(!whole(&together).contains("class=\"name"));
    assert!(drawing(&together).key.contains("line 7"));
    assert_eq!(drawing(&lines(Scale::Linear, vec![near("alone", 10.0)])).key, "");
}

#[test]
fn rejected_points_are_hollow_and_no_line_goes_through_them() {
    let mut points = vec![point(1.0, 1.0), point(2.0, 50.0), point(3.0, 1.5)];
    points[1].hollow = true;
    let html = whole(&lines(Scale::Linear, vec![line("a", points)]));
    let (_, curve) = html.split_once("class=\"curve c0\" d=\"").expect("a curve");
    assert_eq!(curve.split('"').next().map(|path| path.matches('L').count()), Some(1), "{curve}");
    assert!(html.contains("class=\"pt c0 hollow\"") && html.contains("a, rejected · block 2: 50"), "{html}");
}

#[test]
fn bars_and_dots() {
    let bars = vec![
        bar("<i>a", 2.0, VerdictKind::Trusted),
        bar("b", f64::NAN, VerdictKind::Skipped),
        bar("c", -1.0, VerdictKind::Rejected),
    ];
    let html = whole(&ChartKind::Bars { y: axis("GB/s", Scale::Linear), bars: bars.clone() });
    assert_eq!(html.matches("class=\"bar ").count(), 2);
    assert!(html.contains("&lt;i&gt;a") && html.contains("– skipped: budget"), "{html}");
    assert!(html.contains("class=\"bar grey hollow\""), "a rejected value is an outline: {html}");
    let log = ChartKind::Bars { y: axis("GB/s", Scale::Log), bars };
    assert_eq!(whole(&log).matches("class=\"dots big").count(), 1);
    assert_eq!(drawing(&log).notes.len(), 0, "a rejected value is not missed");
}

#[test]
fn topology_order_comes_first_and_cells_name_their_values() {
    let kind = matrix(4, |row, column| (row * 10 + column) as f64);
    let drawn = drawing(&kind);
    assert_eq!(drawn.orders.iter().map(|order| order.name).collect::<Vec<_>>(), ["by topology", "by number"]);
    let html = whole(&kind);
    assert_eq!(html.matches("<rect").count(), 2 * 12, "the diagonal is a gap");
    assert!(html.contains("CPU 3 → CPU 2: 32 ns"), "{html}");
    // Row 0 and column 1 stand in the other order at 3 and 2.
    assert!(drawn.orders[0].html.contains("class=\"cross\" d=\"M2.2 3.2"), "{}", drawn.orders[0].html);
}

#[test]
fn large_matrices_stay_light_and_larger_ones_are_grouped() {
    let kind = matrix(256, |row, column| ((row * 7919 + column * 104_729) % 997) as f64);
    let html = whole(&kind);
    assert!(html.len() < 300_000 && html.matches("<image").count() == 2, "{}", html.len());
    let kind = matrix(512, |row, column| if row / 2 == column / 2 { 1.0 } else { 5.0 });
    let drawn = drawing(&kind);
    assert!(drawn.notes[0].contains("256 groups of up to 2"), "{:?}", drawn.notes);
    assert!(drawn.notes[1].contains("1 rejected"), "{:?}", drawn.notes);
    assert!(drawn.orders[0].html.contains("CPU 511…CPU 510"));
}

#[test]
fn one_far_cell_does_not_take_all_colours() {
    let kind = matrix(20, |row, column| if (row, column) == (0, 1) { 9000.0 } else { 100.0 + row as f64 });
    assert_eq!(drawing(&kind).notes, ["The colours end at 119 ns: 99 % of the cells are below."]);
}

#[test]
fn what_machines_say_stays_text() {
    let one = line(EVIL, vec![point(1.0, 1.0), point(2.0, 3.0)]);
    let callouts = vec![Callout { x: 2.0, y: 3.0, text: EVIL.to_owned(), line: 0 }];
    let marks = vec![(1.5, EVIL.to_owned())];
    let (x, y) = (axis(EVIL, Scale::Linear), axis(EVIL, Scale::Log));
    let verdict = Verdict::new(VerdictKind::Drifting, EVIL);
    let dots = vec![Dot { relative: 1.0, warm_up: true }];
    let strip =
        Strip { label: EVIL.into(), figure: EVIL.into(), dots, low_high: None, verdict: verdict.clone() };
    let evil = Side { title: EVIL.into(), labels: vec![EVIL.into(); 2], topology_order: vec![1, 0] };
    let kinds = [
        ChartKind::Lines { x, y, lines: vec![one.clone(), one], marks, callouts },
        ChartKind::Strips { strips: vec![strip] },
        ChartKind::Bars {
            y: axis(EVIL, Scale::Linear),
            bars: vec![Bar { label: EVIL.into(), value: 1.0, low_high: None, verdict }],
        },
        ChartKind::Matrix {
            unit: EVIL.into(),
            rows: evil.clone(),
            columns: evil,
            values: vec![vec![Some(1.0), None], vec![None, Some(2.0)]],
            rejected: vec![[1, 1]],
        },
    ];
    for kind in &kinds {
        let html = whole(kind);
        assert!(!html.contains("<img") && !html.contains('\u{1b}'), "{html}");
        assert!(html.contains("&lt;img"), "{html}");
    }
}

#[test]
fn letters_have_the_size_of_the_style_sheet() {
    // Only the style sheet gives letters of charts a size, so that none is smaller than it says.
    let style = include_str!("../../../templates/report.css");
    assert!(style.contains(".plot text { font-size: 12px;"), "the size of letters in charts");
    let kind = lines(Scale::Linear, vec![line("a", vec![point(1.0, 1.0), point(2.0, 3.0)])]);
    assert!(!whole(&kind).contains("font-size"));
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MIN),
        Just(f64::MAX),
        Just(0.0),
        Just(5e-324),
        -1e9..1e9_f64
    ]
}

proptest! {
    #[test]
    fn no_values_break_a_drawing(values in prop::collection::vec((any_number(), any_number(), any_number()), 0..12)) {
        let points: Vec<LinePoint> = values
            .iter()
            .map(|(x, y, end)| LinePoint { x: *x, y: *y, low_high: Some([*end, *y]), hollow: *x > *y })
            .collect();
        for scale in [Scale::Linear, Scale::Log, Scale::Powers, Scale::Bytes] {
            whole(&lines(scale, vec![line("a", points.clone()), line("b", points.clone())]));
            let bars = values.iter().map(|(value, low, high)| Bar {
                label: "b".into(), value: *value, low_high: Some([*low, *high]), verdict: Verdict::trusted(),
            });
            whole(&ChartKind::Bars { y: axis("s", scale), bars: bars.collect() });
        }
        let dots = values.iter().map(|(value, ..)| Dot { relative: *value, warm_up: *value < 0.0 }).collect();
        let low_high = values.first().map(|(low, high, _)| [*low, *high]);
        let strip = Strip { label: "s".into(), figure: String::new(), dots, low_high, verdict: Verdict::trusted() };
        whole(&ChartKind::Strips { strips: vec![strip] });
        let values: Vec<Vec<Option<f64>>> = values.iter().map(|(a, b, c)| vec![Some(*a), Some(*b), Some(*c)]).collect();
        let rows = side(values.len());
        whole(&ChartKind::Matrix { unit: "ns".into(), rows, columns: side(3), values, rejected: vec![[0, 0]] });
    }
}

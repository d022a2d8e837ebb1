//! The same report from a host that tries to be more than text.

use model::{Better, Fact, Verdict, VerdictKind};
use report::block::{
    Axis, Bar, Block, Callout, Cell, ChartKind, Check, CheckMark, Dot, Line, LinePoint, Map, MapRegion,
    MapSide, Report, Scale, Side, Strip, Table,
};

use super::example::{chart, findings, node, report as example, section, table};

/// Every way to be more than text that a host name, a CPU model or a DMI string could try.
/// `window.__pwned` is what the test looks for.
pub const HOSTILE: [&str; 8] = [
    "<script>window.__pwned=1</script>",
    "</script><script>window.__pwned=2</script><!--",
    "<img src=x onerror=\"window.__pwned=3\">",
    "\"><svg onload=window.__pwned=4> ' onmouseover='window.__pwned=5",
    "<a href=\"javascript:window.__pwned=6\">link</a><b>bold</b><br>%{y} $x^2$",
    "\x1b[31mred\x1b[0m\x07\u{202e}txt.exe\u{200b}",
    "{{7*7}} ${7*7} &lt;i&gt; \u{fffd}\u{2028}",
    "]]></style><style>body{display:none}</style>",
];

pub fn hostile() -> String {
    HOSTILE.join(" ")
}

/// A report whose every field is hostile and one of them long.
pub fn report() -> Report {
    let mut report = example();
    let text = hostile();
    report.sections.push(section("hostile", "Names as the machine gives them", &text, hostile_blocks()));
    report.sections.push(section("empty", "Empty charts", "", empty_charts()));
    report.title = format!("{text}{}", "A".repeat(1 << 20));
    (report.machine, report.subtitle) = (text.clone(), text.clone());
    report.checks.push(Check { mark: CheckMark::Bad, text: text.clone() });
    report.json = serde_json::json!({ "host": report.title }).to_string();
    for section in &mut report.sections {
        (section.id, section.title) = (text.clone(), text.clone());
    }
    report
}

/// The hostile texts in every kind of block.
fn hostile_blocks() -> Vec<Block> {
    let text = hostile();
    let evil = |index: usize| HOSTILE[index % HOSTILE.len()].to_owned();
    let verdict = Verdict::new(VerdictKind::Rejected, text.clone());
    let axis = |scale| Axis { title: text.clone(), scale };
    let point = |x: f64| LinePoint { x, y: x, low_high: None, hollow: x > 7.0 };
    let lines = (0..2).map(|index| Line {
        name: evil(index),
        points: (1..9).map(|x| point(f64::from(x))).collect(),
        joined: index == 0,
    });
    let lines = ChartKind::Lines {
        x: axis(Scale::Log),
        y: axis(Scale::Log),
        lines: lines.collect(),
        marks: vec![(3.0, evil(4))],
        callouts: vec![Callout { x: 4.0, y: 4.0, text: text.clone(), line: 1 }],
    };
    let strips = (0..3).map(|index| Strip {
        label: evil(index),
        figure: evil(index + 1),
        dots: vec![Dot { relative: 1.0, warm_up: false }],
        low_high: None,
        verdict: verdict.clone(),
    });
    let bars = (0..2).map(|index| Bar {
        label: evil(index + 4),
        value: 2.0,
        low_high: None,
        verdict: verdict.clone(),
    });
    let labels: Vec<String> = (0..3).map(|index| evil(index + 2)).collect();
    let side = Side { title: text.clone(), labels, topology_order: vec![2, 1, 0] };
    let matrix = ChartKind::Matrix {
        unit: text.clone(),
        rows: side.clone(),
        columns: side,
        values: vec![vec![Some(1.0); 3]; 3],
        rejected: vec![[2, 2], [7, 7]],
    };
    let cells = vec![
        Cell::Text(text.clone()),
        Cell::Code(text.clone()),
        Cell::Number(text.clone()),
        Cell::Verdict(verdict.clone()),
    ];
    let data = table(&[(&text, false), ("plain", true)], vec![cells]);
    let made = |id: &str, kind| chart(id, &text, &text, kind, data.clone());
    let mut finding = findings().remove(0);
    (finding.headline, finding.cause, finding.confirm) = (text.clone(), text.clone(), text.clone());
    (finding.advice, finding.rule) = (text.clone(), text.clone());
    finding.facts = vec![Fact::new(text.clone(), &text, text.clone())];
    finding.series = vec![text.clone()];
    vec![
        made("hostile-lines", lines),
        made("hostile-strips", ChartKind::Strips { strips: strips.collect() }),
        made("hostile-bars", ChartKind::Bars { y: axis(Scale::Linear), bars: bars.collect() }),
        made("hostile-matrix", matrix),
        made("hostile-map", map(&text)),
        Block::Findings(vec![finding]),
        Block::Prose(text.clone()),
        Block::Facts(vec![(text.clone(), text.clone())]),
        Block::Preformatted(text.clone()),
        Block::Boxes(vec![node("package", &text, vec![node("cpu", &evil(2), Vec::new())])]),
        Block::Table(data.clone()),
    ]
}

/// A map whose every text is hostile, with cells that are not there.
fn map(text: &str) -> ChartKind {
    let side = || MapSide {
        title: text.to_owned(),
        labels: (0..3).map(|index: usize| format!("{index}{text}")).collect(),
    };
    ChartKind::Map(Map {
        title: text.to_owned(),
        unit: text.to_owned(),
        x: side(),
        y: Some(side()),
        values: vec![vec![Some(1.0), Some(f64::NAN), None]; 4],
        around: Some(0.0),
        better: Better::Lower,
        regions: vec![MapRegion {
            name: text.to_owned(),
            kind: text.to_owned(),
            cells: vec![[0, 0], [9, 9]],
        }],
        best: vec![[7, 7]],
        default: Some([f64::NAN, 0.0]),
    })
}

/// Charts of nothing, or of nothing that can be drawn.
fn empty_charts() -> Vec<Block> {
    let verdict = Verdict::new(VerdictKind::Skipped, String::new());
    let axis = |scale| Axis { title: String::new(), scale };
    let none = LinePoint { x: f64::NAN, y: f64::INFINITY, low_high: Some([f64::NAN, -1.0]), hollow: false };
    let nothing = Line { name: String::new(), points: vec![none; 3], joined: true };
    let no_lines = |scale| ChartKind::Lines {
        x: axis(scale),
        y: axis(scale),
        lines: vec![nothing.clone()],
        marks: vec![(0.0, "mark".to_owned())],
        callouts: vec![Callout { x: f64::NAN, y: 0.0, text: String::new(), line: 9 }],
    };
    let no_dots = Strip {
        label: String::new(),
        figure: String::new(),
        dots: Vec::new(),
        low_high: None,
        verdict: verdict.clone(),
    };
    let no_value = Bar { label: String::new(), value: f64::NAN, low_high: None, verdict: verdict.clone() };
    let no_matrix = ChartKind::Matrix {
        unit: String::new(),
        rows: Side::default(),
        columns: Side::default(),
        values: Vec::new(),
        rejected: vec![[0, 0]],
    };
    let made = |id: &str, kind| chart(id, id, "", kind, Table::default());
    vec![
        made("empty-lines", no_lines(Scale::Linear)),
        made("empty-bytes", no_lines(Scale::Bytes)),
        made("empty-strips", ChartKind::Strips { strips: vec![no_dots] }),
        made("empty-bars", ChartKind::Bars { y: axis(Scale::Log), bars: vec![no_value] }),
        made("empty-matrix", no_matrix),
    ]
}

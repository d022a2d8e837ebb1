//! The same with many charts: what a full evaluation makes of a browser.

use model::Verdict;
use report::block::{Axis, Bar, ChartKind, Line, LinePoint, Report, Scale, Table};

use super::example::{Noise, chart, classes, ladder, matrix, report as example, section, strip};

/// Many strips and curves: what a full evaluation makes of a browser.
pub fn report() -> Report {
    let mut noise = Noise(fastrand::Rng::with_seed(9));
    let strips = (0..100)
        .map(|index| strip(&mut noise, &format!("group.benchmark-{index} · same-llc"), 140, index % 9 == 4));
    let strips = ChartKind::Strips { strips: strips.collect() };
    let mut blocks =
        vec![chart("all-samples", "Every sample", "100 series of 140 samples.", strips, Table::default())];
    for index in 0..30 {
        let (kind, data) = ladder(&mut noise, 60);
        blocks.push(chart(&format!("curve-{index}"), &format!("Curve {index}"), "", kind, data));
    }
    let (kind, data) = family(&mut noise);
    blocks.push(chart("family", "Bandwidth by stride", "Eleven curves that belong together.", kind, data));
    let mut far = strip(&mut noise, "one far sample", 60, false);
    far.dots[40].relative = 31.0;
    let strips = vec![far, strip(&mut noise, "two modes", 60, true)];
    blocks.push(chart("far", "A far sample", "", ChartKind::Strips { strips }, Table::default()));
    let bar = |label: &str, value| Bar {
        label: label.to_owned(),
        value,
        low_high: Some([value * 0.8, value * 1.2]),
        verdict: Verdict::trusted(),
    };
    let bars = vec![bar("getpid", 0.09), bar("pipe", 5.6), bar("fork", 410.0)];
    let kind = ChartKind::Bars { y: Axis { title: "µs".to_owned(), scale: Scale::Log }, bars };
    blocks.push(chart("log-bars", "Three decades", "", kind, Table::default()));
    let many = matrix(&mut noise, 320, 210.0);
    blocks.push(chart("many-cpus", "320 CPUs", "", many, classes()));
    let mut report = example();
    report.sections.push(section("large", "Many charts", "", blocks));
    report
}

/// More curves than there are colours.
fn family(noise: &mut Noise) -> (ChartKind, Table) {
    let lines = (0..11).map(|power| {
        let points = (1..=32).map(|threads| {
            let y = 300.0 / f64::from(1 << power) * (1.0 - (-f64::from(threads) / 6.0).exp())
                + 0.2 * noise.normal().abs();
            LinePoint { x: f64::from(threads), y, low_high: Some([y * 0.97, y * 1.03]), hollow: false }
        });
        Line { name: format!("stride {}", 64 << power), points: points.collect(), joined: true }
    });
    let axis = |title: &str| Axis { title: title.to_owned(), scale: Scale::Linear };
    let kind = ChartKind::Lines {
        x: axis("threads"),
        y: axis("GB/s"),
        lines: lines.collect(),
        marks: Vec::new(),
        callouts: Vec::new(),
    };
    (kind, Table::default())
}

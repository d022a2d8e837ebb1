//! Pages as narrow as a phone: no text lies on another.

use report::block::{Block, ChartKind, Forest, ForestRow, ForestSide, Report, Table};
use report::figure_rows::FigureRow;
use report::screen::Row;

use super::example::{Noise, chart, section, strip};
use super::{page, session};

/// Texts of charts that lie on each other or stick out, whatever the chart is drawn with.
const CLASHES: &str = "[...document.querySelectorAll('figure.chart')].flatMap(figure => {
    const texts = [...figure.querySelectorAll('text, .rows span')].filter(text => text.textContent !== '')
        .map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    const out = texts.filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([text]) => text + ' sticks out');
    return out.concat(texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([, b]) => a.left < b.right - 1
        && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4).map(([other]) => one + ' / ' + other)));
    }).join('; ')";

fn plots() -> Report {
    let row = |label: &str, group: bool, note: &str| ForestRow {
        label: label.into(),
        group,
        values: if group { Default::default() } else { ["0.182".into(), "1225".into()] },
        unit: if group { String::new() } else { "µs".into() },
        ratio: note.is_empty().then_some(1.0),
        ci95: note.is_empty().then_some([0.9, 1.1]),
        wide: false,
        word: if note.is_empty() { "same within 10 %".into() } else { "not counted".into() },
        side: if note.is_empty() { ForestSide::Neither } else { ForestSide::LeftOut },
        note: note.into(),
    };
    let rows = vec![
        row("Memory", true, ""),
        row("memory latency", false, ""),
        row("Memory latency, random, 32 KiB", false, "1.1 × apart: background-load"),
        row("fdatasync", false, "194.0 × apart: background-load"),
    ];
    let forest = ChartKind::Forest(Forest { names: ["A".into(), "B".into()], rows, end: 1.25, band: 0.02 });
    let mut noise = Noise(fastrand::Rng::with_seed(9));
    let strips = ChartKind::Strips { strips: vec![strip(&mut noise, "one-cpu · System call", 60, false)] };
    let blocks = vec![
        chart("forest", "B against A", "", forest, Table::default()),
        chart("strips", "Samples", "", strips, Table::default()),
        // Wider than the page, with a reading in its last column that is heard only.
        Block::Figures(vec![FigureRow {
            title: "Arithmetic".into(),
            row: Row {
                value: Some(0.11),
                unit: "a-unit-that-is-wider-than-phones-are".into(),
                ..Row::default()
            },
            ..FigureRow::default()
        }]),
    ];
    Report { title: "Plots".into(), sections: vec![section("s", "S", "", blocks)], ..Report::default() }
}

#[test]
fn no_text_of_a_plot_lies_on_another() {
    let file = page("plots", &plots());
    let Some(mut session) = session("no_text_of_a_plot_lies_on_another") else { return };
    for width in [320, 390, 1440] {
        let tab = session.tab(width, if width == 390 { "dark" } else { "light" });
        session.browser.open(&tab, &file);
        assert_eq!(session.text(&tab, CLASHES), "", "at {width}");
        let shown = session.count(&tab, "document.documentElement.scrollWidth");
        assert!(shown <= width, "{shown} at {width}");
        session.picture(&tab, &format!("plots-{width}"));
    }
    // The test can fail.
    let tab = session.tab(390, "light");
    session.browser.open(&tab, &file);
    session.browser.eval(
        &tab,
        "document.querySelectorAll('.forest-narrow text').forEach(text => text.setAttribute('x', 9))",
    );
    assert_ne!(session.text(&tab, CLASHES), "");
    session.nothing_happened(&file);
}

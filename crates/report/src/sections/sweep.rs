//! A sweep: the map, its regions and why they are so, curves with one knob fixed, what stood beside
//! it, and advice.

mod switches;

use self::switches::{curve_words, with_switches};
use super::{column, columns, number, right, text};
use crate::block::{
    self, Block, Cell, Chart, ChartKind, Line, LinePoint, Map, MapRegion, MapSide, Scale, Section, Table,
};
use diagnose::Diagnosis;
use diagnose::swept::curve::curves as curves_with_regions;
use diagnose::swept::{Covariate, EvaluatedSweep, Facet, MetricGrid, advice, words};
use diagnose::words::{figure, percent};
use model::sweep::Axis;
use model::vocabulary::{MetricId, hackbench::metric as ids};
use model::{Better, Sweep};
use stats::sweep::{Kind, Segment, segments};

/// Other metrics that have maps of their own, in this order.
const BESIDE: [MetricId; 4] = [ids::INVOLUNTARY, ids::VOLUNTARY, ids::WAIT, ids::MIGRATIONS];
/// More lines than this in one chart are no help.
const LINES: usize = 8;

/// What to set, which effect would have been seen, and what more time buys.
pub fn conclusion(diagnosis: &Diagnosis) -> Vec<String> {
    let Some(swept) = diagnosis.swept() else { return Vec::new() };
    let all = swept.facets.iter().flat_map(|facet| sentences(&swept, facet));
    all.filter(|text| !text.is_empty()).collect()
}

/// The same of one map.
pub fn sentences(swept: &EvaluatedSweep, facet: &Facet) -> Vec<String> {
    let lead = if facet.label.is_empty() { String::new() } else { format!("{}. ", facet.label) };
    let all = advice::recommendations(swept.sweep, facet).into_iter();
    let mut all: Vec<String> = all.map(|one| format!("{lead}{}.", one.text)).collect();
    all.push(format!("{lead}{}", advice::seen_words(swept, facet)));
    all
}

/// The maps that it rests on.
pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let swept = &diagnosis.swept()?;
    let mut blocks = Vec::new();
    for (index, facet) in swept.facets.iter().enumerate() {
        blocks.extend(of_facet(swept, facet, index));
    }
    blocks.extend(without(swept).map(Block::Prose));
    let knobs = words::knobs(swept.sweep);
    Some(
        Section::new(
            "sweep",
            format!("What {knobs} {}", if swept.sweep.axes.len() == 1 { "does" } else { "do" }),
            blocks,
        )
        .about(format!(
            "Each cell is compared with the setting before the sweep ({}). Each pass measured all cells in random order, and \
                 the old setting before every eighth cell. Its changes are drift, and are removed.",
            words::before(swept.sweep)
        )),
    )
}

/// What has no map, and why.
fn without(swept: &EvaluatedSweep) -> Option<String> {
    let all = swept.sweep.facet_values();
    let missing: Vec<String> = all
        .iter()
        .filter(|values| swept.facets.iter().all(|facet| facet.values != **values))
        .map(|values| swept.sweep.facet_words(values))
        .collect();
    let of = match missing.as_slice() {
        [] => return None,
        [whole] if whole.is_empty() => String::new(),
        some => format!(" of {}", some.join("; ")),
    };
    Some(format!(
        "There is no map{of}: it needs the setting before and one cell, each with two good passes. The findings show \
         what failed."
    ))
}

fn of_facet(swept: &EvaluatedSweep, facet: &Facet, index: usize) -> Vec<Block> {
    let sweep = swept.sweep;
    let mut blocks = Vec::new();
    let title = |charted: &MetricGrid| match facet.label.as_str() {
        "" => charted.title.clone(),
        words => format!("{}, {words}", charted.title),
    };
    for (which, charted) in [Some(&facet.target), facet.response.as_ref()].into_iter().flatten().enumerate() {
        let id = format!("sweep-{index}-{which}");
        blocks.push(Block::Table(questions(sweep, charted)));
        blocks.push(Block::from(map_chart(sweep, charted, id.clone(), title(charted))));
        if charted.is_rejected() {
            blocks.push(Block::Prose(
                "Most of these cells are rejected; the findings give the reasons. Measure again before using this map."
                    .into(),
            ));
        }
        blocks.push(Block::Prose(noise_words(sweep, charted)));
        if charted.surface.matters.yes {
            blocks.push(Block::Table(regions(sweep, charted)));
            let why = charted.surface.regions.iter().enumerate().filter_map(|(index, region)| {
                let why = words::why(charted, region.kind, &region.cells);
                (!why.is_empty()).then(|| (words::letter(index), why))
            });
            blocks.push(Block::Facts(why.collect()));
        }
        // The table of curves lists the regions; where switches were counted, a text describes
        // each.
        let counted = charted.covariate(ids::INVOLUNTARY).is_some();
        for own in curves_with_regions(sweep, facet, charted).into_iter().filter(|_| counted) {
            let said = own.pieces.iter().map(|piece| Block::Prose(format!("{}.", piece.text)));
            blocks.push(Block::Prose(format!("{}, region by region:", curve_words(sweep, &own))));
            blocks.extend(said);
            let id = format!("{id}-switches-{}", own.axis);
            blocks.extend(with_switches(sweep, charted, &own, id).map(Block::from));
        }
        blocks.extend(curves(sweep, charted, &id, &title(charted)).into_iter().map(Block::from));
    }
    if let Some(table) = front(sweep, facet) {
        blocks.push(Block::Prose("No other setting beats these in both throughput and response:".into()));
        blocks.push(Block::Table(table));
    }
    for (at, name) in BESIDE.into_iter().enumerate() {
        if let Some(beside) = facet.target.covariate(name) {
            let id = format!("sweep-{index}-beside-{at}");
            blocks.extend(beside_chart(sweep, &facet.target, beside, id).map(Block::from));
        }
    }
    blocks
}

/// How finely it was measured, in a sentence.
fn noise_words(sweep: &Sweep, charted: &MetricGrid) -> String {
    let surface = &charted.surface;
    let mut said = format!(
        "Passes of one cell differ by {} (standard deviation, after removing a drift of {}",
        percent(surface.noise),
        percent(surface.drift)
    );
    said.push_str(&charted.clock.map_or(String::new(), |ghz| format!("; at a core clock of {ghz:.2} GHz")));
    let floor = percent(surface.matters.floor.exp() - 1.0);
    let seen = words::seen(sweep, charted);
    match surface.matters.yes {
        true => said.push_str(&format!("); two cells are distinguishable from {floor} on.")),
        false if charted.is_sensitive() => said.push_str(&format!(
            "). These settings do not matter here: nothing differs beyond that. Smallest visible effects: {seen}."
        )),
        false => {
            said.push_str(&format!("). No effect exceeds this noise. Smallest visible effects: {seen}."))
        }
    }
    said.push_str(&format!(" Verdicts: {}.", charted.verdicts()));
    if surface.aside > 0 {
        said.push_str(&format!(" {} outlying passes do not count in the fit.", surface.aside));
    }
    said
}

/// What was asked of all visits together, before the cells.
fn questions(sweep: &Sweep, charted: &MetricGrid) -> Table {
    let rows = charted.surface.test_results.iter().map(|answer| {
        vec![
            text(words::asked(sweep, answer.hypothesis)),
            text(words::answer(sweep, answer)),
            number(if answer.adjusted <= 0.001 {
                "≤ 0.001".into()
            } else {
                format!("{:.3}", answer.adjusted)
            }),
        ]
    });
    let columns = vec![column("question over all passes"), column("answer"), right("p over all")];
    Table::new(columns, rows)
}

/// A side of the map.
fn side(axis: &Axis) -> MapSide {
    MapSide {
        title: words::name(axis).to_string(),
        labels: axis.values.iter().map(|value| words::value(axis, value)).collect(),
    }
}

fn grid<T>(sweep: &Sweep, value: impl Fn(usize) -> T) -> Vec<Vec<T>> {
    let [columns, rows] = sweep.shape();
    (0..rows).map(|row| (0..columns).map(|column| value(row * columns + column)).collect()).collect()
}

fn place(sweep: &Sweep, cell: usize) -> [usize; 2] {
    let columns = sweep.shape()[0].max(1);
    [cell / columns, cell % columns]
}

/// Where the setting that was there lies, in cells.
fn default(sweep: &Sweep) -> Option<[f64; 2]> {
    let at = |index: usize| match sweep.axes.get(index) {
        None => Some(0.0),
        Some(axis) => axis.place_of(axis.before.as_deref()?),
    };
    Some([at(0)?, at(1)?])
}

/// The map that a facet was swept for.
pub fn map_of(swept: &EvaluatedSweep, facet: &Facet) -> Chart {
    map_chart(swept.sweep, &facet.target, String::from("sweep"), facet.target.title.clone())
}

fn map_chart(sweep: &Sweep, charted: &MetricGrid, id: String, title: String) -> Chart {
    let surface = &charted.surface;
    let change = |cell: usize| charted.ratio(cell).map(|ratio| (ratio - 1.0) * 100.0);
    let of_regions = surface.regions.iter().enumerate().map(|(index, region)| MapRegion {
        name: words::letter(index),
        kind: words::short_kind(region),
        cells: region.cells.iter().map(|cell| place(sweep, *cell)).collect(),
    });
    let map = Map {
        title: format!("{} against the setting before", charted.metric.title),
        unit: "%".into(),
        x: side(&sweep.axes[0]),
        y: sweep.axes.get(1).map(side),
        values: grid(sweep, change),
        around: Some(0.0),
        better: charted.metric.better,
        regions: if surface.matters.yes { of_regions.collect() } else { Vec::new() },
        best: if surface.matters.yes {
            surface.best.iter().map(|cell| place(sweep, *cell)).collect()
        } else {
            Vec::new()
        },
        default: default(sweep),
    };
    Chart::new(id, title, ChartKind::Map(map), cells(sweep, charted))
}

/// Every cell with its figures.
fn cells(sweep: &Sweep, charted: &MetricGrid) -> Table {
    let unit = &charted.metric.unit;
    let mut columns: Vec<block::Column> = sweep.axes.iter().map(|axis| right(words::name(axis))).collect();
    columns.push(right(&charted.metric.title));
    columns.push(right("against the default"));
    columns.push(right("95 %"));
    columns.push(right("passes"));
    columns.push(column("verdict"));
    columns.push(column("region"));
    let beside: Vec<&Covariate> = BESIDE.into_iter().filter_map(|name| charted.covariate(name)).collect();
    columns.extend(beside.iter().map(|beside| right(&beside.metric.title)));
    let rows = (0..charted.cells).map(|cell| {
        let at = place(sweep, cell);
        let value = |index: usize, axis: &Axis| words::value(axis, &axis.values[at[1 - index]]);
        let mut row: Vec<Cell> =
            sweep.axes.iter().enumerate().map(|(index, axis)| number(value(index, axis))).collect();
        let words = |value: Option<String>| value.map_or(Cell::Empty, number);
        row.push(words(charted.medians[cell].map(|median| figure(median, unit))));
        row.push(words(charted.ratio(cell).map(signed)));
        row.push(words(
            charted
                .interval(cell)
                .map(|[low, high]| format!("{} to {}", signed(low).trim_end_matches(" %"), signed(high))),
        ));
        row.push(words(charted.surface.levels[cell].as_ref().map(|level| level.n.to_string())));
        row.push(
            charted.judged[cell].map_or(Cell::Empty, |judged| Cell::Verdict(judged.analysis.verdict.clone())),
        );
        let region = charted.surface.regions.iter().position(|region| region.cells.contains(&cell));
        row.push(region.map_or(Cell::Empty, |index| text(words::letter(index))));
        row.extend(
            beside
                .iter()
                .map(|beside| words(beside.medians[cell].map(|median| figure(median, &beside.metric.unit)))),
        );
        row
    });
    Table::new(columns, rows).folded()
}

/// A ratio as a signed change.
fn signed(ratio: f64) -> String {
    format!("{:+.1} %", (ratio - 1.0) * 100.0)
}

fn regions(sweep: &Sweep, charted: &MetricGrid) -> Table {
    let rows = charted.surface.regions.iter().enumerate().map(|(index, region)| {
        let ratios: Vec<f64> = region.cells.iter().filter_map(|cell| charted.ratio(*cell)).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        vec![
            text(words::letter(index)),
            text(words::kind(sweep, region)),
            number(region.cells.len().to_string()),
            text(words::span(sweep, &region.cells)),
            number(format!("{} to {}", signed(low).trim_end_matches(" %"), signed(high))),
        ]
    });
    let columns = columns("region | what it does | cells: | where | against the default:");
    Table::new(columns, rows)
}

/// Curves over each axis that has numbers, with the other one fixed: their regions need not
/// coincide with the map's.
fn curves(sweep: &Sweep, charted: &MetricGrid, id: &str, title: &str) -> Vec<Chart> {
    let all = sweep.axes.iter().enumerate();
    all.filter_map(|(index, _)| curve(sweep, charted, index, format!("{id}-curve-{index}"), title)).collect()
}

fn curve(sweep: &Sweep, charted: &MetricGrid, index: usize, id: String, title: &str) -> Option<Chart> {
    let axis = &sweep.axes[index];
    let xs = axis.numbers().filter(|xs| xs.len() > 2)?;
    let other = sweep.axes.get(1 - index);
    let columns = sweep.shape()[0];
    let fixed = other.map_or(1, |other| other.values.len());
    let cell = |along: usize, across: usize| match index {
        0 => across * columns + along,
        _ => along * columns + across,
    };
    let log = xs.iter().all(|x| *x > 0.0) && xs.last()? / xs.first()? > 20.0;
    let ms = axis.name.ends_with("_ns");
    let scaled = |x: f64| if ms { x / 1e6 } else { x };
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for across in (0..fixed).step_by(fixed.div_ceil(LINES)) {
        let own: Vec<usize> = (0..xs.len()).map(|along| cell(along, across)).collect();
        let name = other.map_or(String::new(), |other| {
            format!("{} {}", words::name(other), words::value(other, &other.values[across]))
        });
        let points = own.iter().zip(&xs).filter_map(|(cell, x)| point(charted, *cell, scaled(*x)));
        lines.push(Line { name: name.clone(), points: points.collect(), joined: true });
        rows.extend(segment_rows(charted, axis, &own, &name));
    }
    lines.retain(|line| !line.points.is_empty());
    let before = axis.before.as_deref().and_then(|before| before.parse::<f64>().ok()).map(scaled);
    let unit = if ms { ", ms" } else { "" };
    let about = other.map_or(String::new(), |other| {
        format!("With {} fixed: regions of one curve may differ from those of the map.", words::name(other))
    });
    let kind = ChartKind::Lines {
        x: block::Axis {
            title: format!("{}{unit}", words::name(axis)),
            scale: if log { Scale::Log } else { Scale::Linear },
        },
        y: block::Axis::linear(super::wide::titled(charted.metric)),
        lines,
        marks: before.map(|before| (before, "before".to_string())).into_iter().collect(),
        callouts: Vec::new(),
    };
    let columns = ["fixed", "from, to", "what it does"].map(column).to_vec();
    let title = format!("{title} over {}", words::name(axis));
    let chart = Chart::new(id, title, kind, Table::new(columns, rows).folded()).about(about);
    Some(chart).filter(|_| charted.surface.matters.yes)
}

/// A cell as a point of a curve; `None` where nothing was measured.
fn point(charted: &MetricGrid, cell: usize, x: f64) -> Option<LinePoint> {
    let unit = charted.surface.control_level;
    let low_high = charted.interval(cell).map(|ends| ends.map(|end| end * unit));
    Some(LinePoint { x, y: charted.ratio(cell)? * unit, low_high, hollow: false })
}

/// What the metric does along these cells, a row for each stretch.
fn segment_rows(charted: &MetricGrid, axis: &Axis, cells: &[usize], name: &str) -> Vec<Vec<Cell>> {
    let levels: Vec<_> = cells.iter().map(|cell| charted.surface.levels[*cell]).collect();
    let end = |along: usize| words::value(axis, &axis.values[along]);
    let row = |segment: Segment| {
        let what = match (segment.kind, segment.rises) {
            (Kind::Flat, _) => "flat",
            (Kind::Ragged, _) => "ragged",
            (Kind::Fall, Some(true)) => "rises",
            (Kind::Fall, _) => "falls",
        };
        vec![text(name), text(format!("{}–{}", end(segment.from), end(segment.to))), text(what)]
    };
    segments(&levels).into_iter().map(row).collect()
}

/// A small map of another metric.
fn beside_chart(sweep: &Sweep, charted: &MetricGrid, beside: &Covariate, id: String) -> Option<Chart> {
    let [columns, rows] = sweep.shape();
    (columns * rows > 1 && beside.medians.iter().any(Option::is_some)).then(|| {
        let about = match beside.correlation {
            Some(rho) => format!("Rank correlation with {}: {rho:.2}.", charted.metric.title),
            None => String::new(),
        };
        let map = Map {
            title: beside.metric.title.to_string(),
            unit: beside.metric.unit.to_string(),
            x: side(&sweep.axes[0]),
            y: sweep.axes.get(1).map(side),
            values: grid(sweep, |cell| beside.medians[cell]),
            around: None,
            better: Better::Neither,
            regions: Vec::new(),
            best: Vec::new(),
            default: default(sweep),
        };
        let data = Table::new(
            vec![column("setting"), right(&beside.metric.title)],
            (0..charted.cells).filter_map(|cell| {
                let value = figure(beside.medians[cell]?, &beside.metric.unit);
                Some(vec![text(words::setting(sweep, cell)), number(value)])
            }),
        )
        .folded();
        let title = beside.metric.title.to_string();
        Chart::new(id, title, ChartKind::Map(map), data).about(about)
    })
}

fn front(sweep: &Sweep, facet: &Facet) -> Option<Table> {
    let response = facet.response.as_ref()?;
    let rows: Vec<Vec<Cell>> = facet
        .front
        .iter()
        .map(|cell| {
            let own = if *cell == facet.target.control { ", as before" } else { "" };
            let value = |charted: &MetricGrid| {
                let median = charted.medians[*cell].map(|median| figure(median, &charted.metric.unit));
                let ratio = charted.ratio(*cell).map(signed);
                number(format!("{} ({})", median.unwrap_or_default(), ratio.unwrap_or_default()))
            };
            vec![
                text(format!("{}{own}", words::setting(sweep, *cell))),
                value(&facet.target),
                value(response),
            ]
        })
        .collect();
    let titles = [&facet.target, response].map(|charted| right(&charted.metric.title));
    let [one, other] = titles;
    (!rows.is_empty()).then(|| Table::new(vec![column("setting"), one, other], rows))
}

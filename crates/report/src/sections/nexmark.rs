//! Nexmark on Flink: what each load came to, work for each percent of CPU, and what two threads of
//! a core share.

mod charts;

use super::figures::value_words;
use super::{column, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::capacity::times_words;
use model::vocabulary::MetricId;
use model::vocabulary::nexmark as ids;
use model::{Title, Value, VerdictKind, percent};
use stats::analysis::Judged;
use stats::order::median;
use stats::smt::{Curve, Pass, Point, USUAL_MARGIN};

/// The beginning of the ids of these benchmarks.
pub const GROUP: &str = "nexmark.";
/// As fast as it can.
const FULL: i64 = 100;

/// The columns: metric and title.
const METRICS: [(MetricId, &str); 10] = [
    (ids::metric::RATE, "events"),
    (ids::metric::ACHIEVED, "of the target"),
    (ids::metric::CPU, "CPU%"),
    (ids::metric::CPU_TICKS, "as top adds it up"),
    (ids::metric::ATTAINMENT, "events for each %"),
    (ids::metric::COST, "CPU time an event"),
    (ids::metric::GC, "collecting garbage"),
    (ids::metric::LATE, "late"),
    (ids::metric::OTHERS, "others"),
    (ids::metric::REJECTED, "windows not used"),
];

/// One placement at one load.
struct Step<'a> {
    load: i64,
    series: Vec<&'a Judged>,
}

impl<'a> Step<'a> {
    fn judged(&self, metric: MetricId) -> Option<&'a Judged> {
        let found = self.series.iter().find(|judged| judged.series.metric.name == metric).copied()?;
        found.analysis.figure().is_some().then_some(found)
    }

    fn median(&self, metric: MetricId) -> Option<f64> {
        Some(self.judged(metric)?.analysis.figure()?.median)
    }

    /// CPU% and events a second, visit by visit.
    fn point(&self) -> Option<Point> {
        let rates = &self.judged(ids::metric::RATE)?.series.processes;
        let cpus = &self.judged(ids::metric::CPU)?.series.processes;
        let pass = |rate: &stats::series::Process| {
            let cpu = cpus.iter().find(|cpu| cpu.pass == rate.pass)?;
            Some(Pass { share: median(&cpu.values)? / 100.0, performance: median(&rate.values)? })
        };
        Point::of(rates.iter().filter_map(pass).collect())
    }
}

/// A placement by its name, with its steps by rising load.
type Place<'a> = (&'a str, Vec<Step<'a>>);

fn places<'a>(diagnosis: &'a Diagnosis, title: &Title) -> Vec<Place<'a>> {
    let mut places: Vec<Place> = Vec::new();
    for judged in diagnosis.series.iter().filter(|judged| judged.series.case.bench == title.id) {
        let Some(load) = judged.series.point.get(ids::param::LOAD).and_then(Value::int) else { continue };
        let name = judged.series.case.placement.name.as_ref();
        let at = match places.iter().position(|(other, _)| *other == name) {
            Some(at) => at,
            None => {
                places.push((name, Vec::new()));
                places.len() - 1
            }
        };
        let steps = &mut places[at].1;
        match steps.iter_mut().find(|step| step.load == load) {
            Some(step) => step.series.push(judged),
            None => steps.push(Step { load, series: vec![judged] }),
        }
    }
    for (_, steps) in &mut places {
        steps.sort_by_key(|step| step.load);
    }
    places.retain(|(_, steps)| steps.iter().any(|step| step.judged(ids::metric::RATE).is_some()));
    places
}

/// A section for each query that was measured.
pub fn sections(diagnosis: &Diagnosis) -> Vec<Section> {
    let titles = diagnosis.run.header.catalogue.iter().filter(|title| title.id.starts_with(GROUP));
    titles.filter_map(|title| section(diagnosis, title)).collect()
}

/// Of each job the capacity of the placement that does most, and what half of CPU% means there.
pub fn conclusion(diagnosis: &Diagnosis) -> Vec<String> {
    let titles: Vec<&Title> =
        diagnosis.run.header.catalogue.iter().filter(|title| title.id.starts_with(GROUP)).collect();
    let of_title = |title: &&Title| {
        let words = concluded(&places(diagnosis, title), free(diagnosis, title))?;
        Some(if titles.len() > 1 { format!("{}: {words}", title.title) } else { words })
    };
    titles.iter().filter_map(of_title).collect()
}

fn section(diagnosis: &Diagnosis, title: &Title) -> Option<Section> {
    let places = places(diagnosis, title);
    if places.is_empty() {
        return None;
    }
    let id = title.id.replace('.', "-");
    let free = free(diagnosis, title);
    let prose = std::iter::once(Block::Prose(words(&places)));
    let tables = [capacities(&places, free), Some(table(&places))].into_iter().flatten().map(Block::Table);
    let charts = charts::all(&places, &id).into_iter().map(Block::from);
    Some(Section {
        id: format!("{id}-loads"),
        title: format!("{}: capacity, and what each load takes", title.title),
        about: "Load 100 is as fast as it can; the others are percent of the greatest rate before them."
            .into(),
        blocks: prose.chain(tables).chain(charts).collect(),
        long: false,
    })
}

/// Share of the capacity to be kept free, as the run was asked, 0..1.
fn free(diagnosis: &Diagnosis, title: &Title) -> f64 {
    let own = diagnosis.run.header.plan.iter().filter(|planned| planned.case.bench == title.id);
    let margin = own.filter_map(|planned| planned.case.inputs.get("margin")?.parse::<f64>().ok()).next();
    margin.unwrap_or(f64::from(USUAL_MARGIN)) / 100.0
}

/// The greatest rate of a placement, where it was not rejected.
fn full<'a>(steps: &[Step<'a>]) -> Option<&'a Judged> {
    let judged = steps.iter().find(|step| step.load == FULL)?.judged(ids::metric::RATE)?;
    (judged.analysis.verdict.kind != VerdictKind::Rejected).then_some(judged)
}

/// Events a second over CPU% on a placement; `None` where the greatest rate was rejected or is not
/// known. What else was rejected is left out.
fn curve(steps: &[Step]) -> Option<Curve> {
    full(steps)?;
    let sound = |step: &&Step| {
        let judged = step.judged(ids::metric::RATE);
        judged.is_some_and(|judged| judged.analysis.verdict.kind != VerdictKind::Rejected)
    };
    Curve::of(steps.iter().filter(sound).filter_map(Step::point).collect())
}

/// At which CPU% the rate is reached that leaves so much free: `72 (70 to 75)`.
fn shown_as(curve: &Curve, free: f64) -> Option<String> {
    let capacity = curve.capacity(1.0 - free);
    let between = capacity.kept_at_interval.map_or(String::new(), |at| {
        format!(" ({:.0} to {:.0})", (100.0 * at.low).floor(), (100.0 * at.high).ceil())
    });
    Some(format!("{:.0}{between}", 100.0 * capacity.kept_at?))
}

/// The capacity of the placement that does most, and what half of CPU% means there.
fn concluded(places: &[Place], free: f64) -> Option<String> {
    let rate = |steps: &[Step]| full(steps)?.analysis.figure().map(|figure| figure.median);
    let known = places.iter().filter_map(|(name, steps)| Some((rate(steps)?, name, steps)));
    let (_, name, steps) = known.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let judged = full(steps)?;
    let curve = curve(steps);
    let shown = curve.as_ref().and_then(|curve| shown_as(curve, free));
    let half = curve.and_then(|curve| curve.sentence(0.5));
    Some(format!(
        "Capacity at 100 %: {} on {name}; with {} kept free, {}{}.{}",
        times_words(judged, 1.0)?,
        percent(free),
        times_words(judged, 1.0 - free)?,
        shown.map_or(String::new(), |shown| format!(", which CPU% shows as {shown}")),
        half.map_or(String::new(), |half| format!(" {}.", half.words())),
    ))
}

/// The same of every placement. Its greatest rate stands in the table of all loads, too, and is the
/// same figure.
fn capacities(places: &[Place], free: f64) -> Option<Table> {
    let row = |(name, steps): &Place| {
        let judged = full(steps)?;
        let curve = curve(steps);
        let half = curve.as_ref().and_then(|curve| curve.sentence(0.5));
        let unknown = || "–".to_string();
        let growth = half.map_or_else(unknown, |half| half.growth_words().replace(" times today's", "×"));
        Some(vec![
            text(*name),
            number(times_words(judged, 1.0)?),
            number(times_words(judged, 1.0 - free)?),
            number(curve.as_ref().and_then(|curve| shown_as(curve, free)).unwrap_or_else(unknown)),
            number(half.map_or_else(unknown, |half| half.used_words())),
            number(growth),
        ])
    };
    let rows: Vec<Vec<Cell>> = places.iter().filter_map(row).collect();
    let kept = format!("{} kept free", percent(free));
    let columns = vec![
        column("placement"),
        right("capacity at 100 %"),
        right(&kept),
        right("CPU% then"),
        right("used at CPU% 50"),
        right("work can grow"),
    ];
    (!rows.is_empty()).then_some(Table { columns, rows, folded: false })
}

fn words(places: &[Place]) -> String {
    let mut sentences = Vec::new();
    let rejected = |(name, steps): &Place| {
        let measured = steps.iter().any(|step| step.load == FULL && step.judged(ids::metric::RATE).is_some());
        (measured && full(steps).is_none())
            .then(|| format!("Full load on {name} was rejected: its capacity is not told."))
    };
    sentences.extend(places.iter().filter_map(rejected));
    sentences.extend(shared(places));
    sentences.push(
        "What an event costs falls as the rate rises, without any SMT: a part is paid at any rate. What threads of one core \
         cost beyond two separate cores at the same load is SMT's."
            .to_string(),
    );
    sentences.join(" ")
}

/// What two threads of a core cost beyond two cores, or why that is not told.
fn shared(places: &[Place]) -> Option<String> {
    let find = |wanted: &dyn Fn(&str) -> bool| places.iter().find(|(name, _)| wanted(name));
    let Some(siblings) = find(&|name| name == "smt-sibling") else {
        return Some("Siblings of a core were not measured here.".to_string());
    };
    let control =
        find(&|name| name.starts_with("same-") && name != "same-cpu" || name.starts_with("other-"))?;
    let cost =
        |place: &Place, load: i64| place.1.iter().find(|step| step.load == load)?.median(ids::metric::COST);
    let rate = |place: &Place| place.1.iter().find(|step| step.load == FULL)?.median(ids::metric::RATE);
    let (both, apart) = (rate(siblings)?, rate(control)?);
    let dearer = cost(siblings, FULL)? / cost(control, FULL)? - 1.0;
    Some(format!(
        "At full load the two threads of a core do {} of what two cores ({}) do, and an event costs {} more CPU time on them.",
        percent(both / apart),
        control.0,
        percent(dearer)
    ))
}

fn table(places: &[Place]) -> Table {
    let there: Vec<(MetricId, &str)> = METRICS
        .into_iter()
        .filter(|(metric, _)| {
            places.iter().any(|(_, steps)| steps.iter().any(|step| step.judged(*metric).is_some()))
        })
        .collect();
    let mut columns = vec![column("placement"), right("load")];
    columns.extend(there.iter().map(|(_, title)| right(title)));
    columns.push(column("verdict"));
    let mut rows = Vec::new();
    for (name, steps) in places {
        for step in steps {
            let mut row = vec![text(*name), number(step.load.to_string())];
            row.extend(
                there
                    .iter()
                    .map(|(metric, _)| number(step.judged(*metric).map_or("–".to_string(), value_words))),
            );
            let verdict = step.judged(ids::metric::RATE).map(|judged| judged.analysis.verdict.clone());
            row.push(verdict.map_or(Cell::Empty, Cell::Verdict));
            rows.push(row);
        }
    }
    Table { columns, rows, folded: false }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, charts, machine, of, tables, texts};
    use super::*;
    use model::{Better, Form, Metric, View};

    fn metric(name: MetricId, unit: &'static str) -> Metric {
        Metric::new(name, name.as_str(), unit, Better::Higher, Form::Value)
    }

    fn made(places: &[(&'static str, f64, f64)]) -> Diagnosis {
        let metrics = vec![
            metric(ids::metric::RATE, "1/s"),
            metric(ids::metric::CPU, "%"),
            metric(ids::metric::ATTAINMENT, "1/s"),
            metric(ids::metric::COST, "us"),
        ];
        let mut made = Made::new(View::Table, metrics);
        for (name, most, cost) in places {
            let mut case = case(name, &[]);
            case.bench = "nexmark.q0".into();
            let half = [
                (ids::metric::RATE.as_str(), most / 2.0),
                (ids::metric::CPU.as_str(), 60.0),
                (ids::metric::ATTAINMENT.as_str(), most / 120.0),
                (ids::metric::COST.as_str(), cost * 1.5),
            ];
            let full = [
                (ids::metric::RATE.as_str(), *most),
                (ids::metric::CPU.as_str(), 100.0),
                (ids::metric::ATTAINMENT.as_str(), most / 100.0),
                (ids::metric::COST.as_str(), *cost),
            ];
            let at = |load: i64| of(&[(&ids::param::LOAD, Value::Int(load))]);
            made = made.case(case, &[(at(100), &full), (at(50), &half)]);
        }
        made.diagnosed(machine(4))
    }

    #[test]
    fn every_load_of_every_placement_and_what_siblings_share() {
        let diagnosis =
            made(&[("one-cpu", 100e3, 10.0), ("smt-sibling", 120e3, 16.5), ("same-llc", 200e3, 10.0)]);
        let found = sections(&diagnosis);
        let [section] = found.as_slice() else { panic!("one section") };
        let capacities = texts(tables(section)[0]);
        assert_eq!(
            capacities[1][..3],
            ["smt-sibling", "120k/s (120k to 120k)", "96.0k/s (96.0k to 96.0k)"],
            "{capacities:?}"
        );
        let rows = texts(tables(section)[1]);
        assert_eq!(rows.len(), 6);
        assert_eq!((rows[0][0].as_str(), rows[0][1].as_str(), rows[1][1].as_str()), ("one-cpu", "50", "100"));
        let ids: Vec<&str> = charts(section).iter().map(|chart| chart.id.as_str()).collect();
        let three = ["cpu", "rate", "attainment"].map(|name| format!("chart-nexmark-q0-{name}"));
        assert_eq!(ids, three);
        let first = conclusion(&diagnosis).join(" ");
        let Block::Prose(words) = &section.blocks[0] else { panic!("prose first") };
        // Half of the greatest rate shows as 60 %: at 50 % a twelfth less than half is used.
        for said in [
            "Capacity at 100 %: 200k/s (200k to 200k) on same-llc; with 20 % kept free, 160k/s (160k to 160k), which CPU% \
             shows as 84 (",
            "CPU% says 50: 42 % (41 to 42) are used; work can grow to 2.40 times today's (2.40 to 2.40), more than the 2.00 \
             times that CPU% promises.",
        ] {
            assert!(first.contains(said), "{said:?} is missing in {first}");
        }
        for said in ["do 60 % of what two cores (same-llc) do", "65 % more CPU time"] {
            assert!(words.contains(said), "{said:?} is missing in {words}");
        }
    }

    #[test]
    fn without_siblings_it_is_said_and_without_flink_there_is_nothing() {
        let alone = sections(&made(&[("one-cpu", 100e3, 10.0)]));
        let Block::Prose(words) = &alone[0].blocks[0] else { panic!("prose first") };
        assert!(words.contains("Siblings of a core were not measured here"), "{words}");
        assert!(sections(&made(&[])).is_empty());
    }
}

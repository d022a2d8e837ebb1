//! Nexmark on Flink: what each load came to, work for each percent of CPU, and what two threads of a core share.

use super::figures::value_words;
use super::{column, number, right, text};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table};
use diagnose::Diagnosis;
use model::vocabulary::MetricId;
use model::vocabulary::nexmark as ids;
use model::{Title, Value, VerdictKind, figure, percent};
use stats::analysis::Judged;

/// The beginning of the ids of these benchmarks.
const GROUP: &str = "nexmark.";
/// As fast as it can.
const FULL: i64 = 100;
/// Share of the capacity to plan with.
const KEEP: f64 = 0.8;

/// The columns: metric and title.
const METRICS: [(MetricId, &str); 9] = [
    (ids::metric::RATE, "events"),
    (ids::metric::ACHIEVED, "of the target"),
    (ids::metric::CPU, "CPU%"),
    (ids::metric::CPU_TICKS, "as top adds it up"),
    (ids::metric::ATTAINMENT, "events for each %"),
    (ids::metric::COST, "CPU time an event"),
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

fn section(diagnosis: &Diagnosis, title: &Title) -> Option<Section> {
    let places = places(diagnosis, title);
    if places.is_empty() {
        return None;
    }
    let id = title.id.replace('.', "-");
    let blocks = vec![
        Block::Prose(words(&places)),
        Block::Table(table(&places)),
        Block::from(attainment(&places, &id)),
    ];
    Some(Section {
        id: format!("{id}-loads"),
        title: format!("{}: what each load takes", title.title),
        about: "Load 100 is as fast as it can; the others are percent of the greatest rate before them."
            .into(),
        blocks,
        long: false,
    })
}

fn words(places: &[Place]) -> String {
    let mut sentences = Vec::new();
    for (name, steps) in places {
        let full = steps.iter().find(|step| step.load == FULL);
        let Some((full, rate)) = full.and_then(|step| Some((step, step.median(ids::metric::RATE)?))) else {
            continue;
        };
        let rejected = full
            .judged(ids::metric::RATE)
            .is_some_and(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected);
        let doubt = if rejected { " (rejected: do not plan with it)" } else { "" };
        sentences.push(format!(
            "Capacity on {name}: {} at full load{doubt}; with {:.0} % kept free, {}.",
            figure(rate, "1/s"),
            (1.0 - KEEP) * 100.0,
            figure(rate * KEEP, "1/s")
        ));
    }
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

fn attainment(places: &[Place], id: &str) -> Chart {
    let mut rows = Vec::new();
    let lines = places.iter().map(|(name, steps)| {
        let point = |step: &Step| {
            let (cpu, work) = (step.median(ids::metric::CPU)?, step.median(ids::metric::ATTAINMENT)?);
            rows.push(vec![
                text(*name),
                number(step.load.to_string()),
                number(format!("{cpu:.1} %")),
                number(figure(work, "1/s")),
            ]);
            let judged = step.judged(ids::metric::ATTAINMENT)?;
            let interval = judged.analysis.figure()?.interval;
            Some(LinePoint {
                x: cpu,
                y: work,
                low_high: interval.map(|between| [between.low, between.high]),
                hollow: judged.analysis.verdict.kind == VerdictKind::Rejected,
            })
        };
        Line { name: name.to_string(), points: steps.iter().filter_map(point).collect(), joined: true }
    });
    let lines = lines.collect();
    Chart {
        id: format!("chart-{id}-attainment"),
        title: "Attainment: events for each % of CPU".into(),
        about: "Rising at light load: the fixed part is shared by more events. Falling towards full load: each further percent of \
                CPU buys less, as on two threads of one core. Hollow: rejected."
            .into(),
        kind: ChartKind::Lines {
            x: Axis { title: "CPU% of the TaskManager's CPUs".into(), scale: Scale::Linear },
            y: Axis { title: "events for each % of CPU, 1/s".into(), scale: Scale::Linear },
            lines,
            marks: Vec::new(),
            callouts: Vec::new(),
        },
        summary: None,
        data: Table {
            columns: vec![column("placement"), right("load"), right("CPU%"), right("events for each %")],
            rows,
            folded: true,
        },
    }
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
        let rows = texts(tables(section)[0]);
        assert_eq!(rows.len(), 6);
        assert_eq!((rows[0][0].as_str(), rows[0][1].as_str(), rows[1][1].as_str()), ("one-cpu", "50", "100"));
        assert_eq!(charts(section)[0].id, "chart-nexmark-q0-attainment");
        let Block::Prose(words) = &section.blocks[0] else { panic!("prose first") };
        for said in [
            "Capacity on one-cpu: 100k/s at full load; with 20 % kept free, 80.0k/s",
            "do 60 % of what two cores (same-llc) do",
            "65 % more CPU time",
        ] {
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

//! Nexmark on Flink: what each load came to, work for each percent of CPU, and what two threads of
//! a core share.

mod charts;

use super::figures::value_words;
use super::names::placement_words;
use super::{column, columns, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::capacity::{capacity_head, kept_at_words};
use model::vocabulary::MetricId;
use model::vocabulary::nexmark as ids;
use model::{Title, Value, Verdict, VerdictKind, figure, percent};
use stats::analysis::Judged;
use stats::order::median;
use stats::smt::{Curve, Pass, Point, Sentence, USUAL_MARGIN};

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
    (ids::metric::ATTAINMENT, "events per %"),
    (ids::metric::COST, "CPU time per event"),
    (ids::metric::GC, "garbage collection"),
    (ids::metric::LATE, "late"),
    (ids::metric::OTHERS, "other work"),
    (ids::metric::REJECTED, "samples not used"),
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

    /// Its rate, where that was not rejected.
    fn sound(&self) -> Option<&'a Judged> {
        let judged = self.judged(ids::metric::RATE)?;
        (judged.analysis.verdict.kind != VerdictKind::Rejected).then_some(judged)
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
    Some(
        Section::new(
            format!("{id}-loads"),
            format!("{}: capacity, and CPU use at each load", title.title),
            prose.chain(tables).chain(charts).collect(),
        )
        .about("Load 100 is the maximum rate; other loads are percent of the highest rate before them."),
    )
}

/// Share of the capacity to be kept free, as the run was asked, 0..1.
fn free(diagnosis: &Diagnosis, title: &Title) -> f64 {
    let own = diagnosis.run.header.plan.iter().filter(|planned| planned.case.bench == title.id);
    let margin = own.filter_map(|planned| planned.case.inputs.get("margin")?.parse::<f64>().ok()).next();
    margin.unwrap_or(f64::from(USUAL_MARGIN)) / 100.0
}

/// The rate at full load, where it was not rejected.
fn full<'a>(steps: &[Step<'a>]) -> Option<&'a Judged> {
    steps.iter().find(|step| step.load == FULL)?.sound()
}

/// The most events a second that a placement came to, where full load was measured and not
/// rejected: at full load, or where the rate falls towards it, before.
fn most<'a>(steps: &[Step<'a>]) -> Option<&'a Judged> {
    let full = full(steps)?;
    let rate = |judged: &Judged| judged.analysis.figure().map_or(0.0, |figure| figure.median);
    let best = steps.iter().filter_map(Step::sound).max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let falls = curve(steps).is_some_and(|curve| curve.falls_to().is_some());
    Some(best.filter(|_| falls).unwrap_or(full))
}

/// Events a second over CPU% on a placement; `None` where the rate at full load was rejected or is
/// not known. What else was rejected is left out.
fn curve(steps: &[Step]) -> Option<Curve> {
    full(steps)?;
    Curve::of(steps.iter().filter(|step| step.sound().is_some()).filter_map(Step::point).collect())
}

/// The share of the capacity that is used at half of CPU%, where the capacity is known.
fn half(curve: &Curve) -> Option<Sentence> {
    curve.sentence(0.5).filter(|_| curve.capacity(1.0).full)
}

/// `417k events/s`.
fn events(rate: f64) -> String {
    format!("{} events/s", figure(rate, ""))
}

/// Part of a rate, with its interval.
fn events_words(judged: &Judged, factor: f64) -> Option<String> {
    let found = judged.analysis.figure()?;
    let between = found.interval.map_or(String::new(), |between| {
        let [low, high] = [between.low, between.high].map(|end| figure(factor * end, ""));
        format!(" ({low}–{high})")
    });
    Some(format!("{}{between}", events(factor * found.median)))
}

/// The capacity of the placement that does most, and what half of CPU% means there.
fn concluded(places: &[Place], free: f64) -> Option<String> {
    let rate = |steps: &[Step]| most(steps)?.analysis.figure().map(|figure| figure.median);
    let known = places.iter().filter_map(|(name, steps)| Some((rate(steps)?, name, steps)));
    let (_, name, steps) = known.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let judged = most(steps)?;
    let curve = curve(steps)?;
    let cpus = judged.series.case.placement.cpus();
    let whose = match cpus.len() {
        0 => placement_words(name).to_string(),
        1 => format!("{} (CPU {cpus})", placement_words(name)),
        _ => format!("{} (CPUs {cpus})", placement_words(name)),
    };
    Some(format!(
        "{}: {} on {whose}; with {} kept free, {}{}.{}",
        capacity_head(&curve, events),
        events_words(judged, 1.0)?,
        percent(free),
        events_words(judged, 1.0 - free)?,
        kept_at_words(&curve, free).map_or(String::new(), |shown| format!(", which CPU% shows as {shown}")),
        half(&curve).map_or(String::new(), |half| format!(" {}.", half.words_where(" there"))),
    ))
}

/// The same of every placement. Its greatest rate stands in the table of all loads, too, and is the
/// same figure.
fn capacities(places: &[Place], free: f64) -> Option<Table> {
    let row = |(name, steps): &Place| {
        let judged = most(steps)?;
        let curve = curve(steps)?;
        let (half, capacity) = (half(&curve), curve.capacity(1.0));
        let at = match (capacity.full, curve.falls_to()) {
            (false, _) => format!("{:.0}: not full", 100.0 * capacity.at),
            (true, Some(_)) => format!("{:.0}, falls beyond", 100.0 * capacity.at),
            (true, None) => "full".to_string(),
        };
        let unknown = || "–".to_string();
        let growth = half.map_or_else(unknown, |half| half.growth_words().replace(" times today's", "×"));
        Some(vec![
            text(placement_words(name)),
            number(events_words(judged, 1.0)?),
            number(at),
            number(events_words(judged, 1.0 - free)?),
            number(kept_at_words(&curve, free).unwrap_or_else(unknown)),
            number(half.map_or_else(unknown, |half| half.used_words())),
            number(growth),
        ])
    };
    let rows: Vec<Vec<Cell>> = places.iter().filter_map(row).collect();
    let kept = format!("{} kept free", percent(free));
    let heads =
        format!("placement | most: | at CPU%: | {kept}: | CPU% then: | used at CPU% 50: | work can grow:");
    (!rows.is_empty()).then_some(Table::new(columns(&heads), rows))
}

/// The most that a job came to on any placement, events/s.
pub struct Capacity {
    pub most: f64,
    /// Full load was reached.
    pub full: bool,
    /// Why the figure is not trusted; `None` where it is.
    pub doubt: Option<String>,
}

/// That of the placement that does most.
pub fn capacity(diagnosis: &Diagnosis, title: &Title) -> Option<Capacity> {
    let of_place = |(_, steps): &Place| {
        let judged = most(steps)?;
        let verdict = &judged.analysis.verdict;
        let trusted = matches!(verdict.kind, VerdictKind::Trusted | VerdictKind::TrustedWithCause);
        Some(Capacity {
            most: judged.analysis.figure()?.median,
            full: curve(steps)?.capacity(1.0).full,
            doubt: (!trusted).then(|| doubt(verdict)),
        })
    };
    let all = places(diagnosis, title);
    all.iter().filter_map(of_place).max_by(|one, other| one.most.total_cmp(&other.most))
}

/// Why a figure is not trusted: `imprecise: ±12 % ...`.
fn doubt(verdict: &Verdict) -> String {
    if verdict.reason.is_empty() {
        verdict.kind.words().to_string()
    } else {
        format!("{}: {}", verdict.kind.words(), verdict.reason)
    }
}

/// The capacities of a job's placements.
pub fn capacities_of(diagnosis: &Diagnosis, title: &Title) -> Option<Table> {
    capacities(&places(diagnosis, title), free(diagnosis, title))
}

/// Whether there is any rate of a job.
pub fn is_measured(diagnosis: &Diagnosis, title: &Title) -> bool {
    !places(diagnosis, title).is_empty()
}

fn words(places: &[Place]) -> String {
    let mut sentences = Vec::new();
    let rejected = |(name, steps): &Place| {
        let measured = steps.iter().any(|step| step.load == FULL && step.judged(ids::metric::RATE).is_some());
        (measured && full(steps).is_none())
            .then(|| format!("Full load on {} was rejected: its capacity is unknown.", placement_words(name)))
    };
    sentences.extend(places.iter().filter_map(rejected));
    sentences.extend(shared(places));
    sentences.push(
        "The cost of an event falls as the rate rises, even without SMT: part of the cost is fixed. The SMT cost is the \
         difference between two threads of one core and two cores at the same load."
            .to_string(),
    );
    sentences.join(" ")
}

/// What two threads of one core cost beyond two cores, or why that is unknown.
fn shared(places: &[Place]) -> Option<String> {
    let find = |wanted: &dyn Fn(&str) -> bool| places.iter().find(|(name, _)| wanted(name));
    let Some(siblings) = find(&|name| name == "smt-sibling") else {
        return Some("Threads of one core were not measured.".to_string());
    };
    let control =
        find(&|name| name.starts_with("same-") && name != "same-cpu" || name.starts_with("other-"))?;
    let cost =
        |place: &Place, load: i64| place.1.iter().find(|step| step.load == load)?.median(ids::metric::COST);
    let rate = |place: &Place| place.1.iter().find(|step| step.load == FULL)?.median(ids::metric::RATE);
    let (both, apart) = (rate(siblings)?, rate(control)?);
    let dearer = cost(siblings, FULL)? / cost(control, FULL)? - 1.0;
    Some(format!(
        "At full load two threads of one core do {} of the work of two cores ({}); an event costs {} more CPU time.",
        percent(both / apart),
        placement_words(control.0),
        percent(dearer)
    ))
}

/// A value in words. A share below zero cannot be: what others used is what the CPUs' time and our
/// own differ by, and both are counted with an error.
fn share_words(judged: &Judged) -> String {
    let is_share = judged.series.metric.unit == "%";
    match judged.analysis.figure() {
        Some(figure) if is_share && figure.median < 0.0 => "none seen".to_string(),
        _ => value_words(judged),
    }
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
            let mut row = vec![text(placement_words(name)), number(step.load.to_string())];
            row.extend(
                there
                    .iter()
                    .map(|(metric, _)| number(step.judged(*metric).map_or("–".to_string(), share_words))),
            );
            let verdict = step.judged(ids::metric::RATE).map(|judged| judged.analysis.verdict.clone());
            row.push(verdict.map_or(Cell::Empty, Cell::Verdict));
            rows.push(row);
        }
    }
    Table::new(columns, rows)
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
        made_at(places, [60.0, 100.0], 1.0)
    }

    /// Places with their greatest rate and what an event costs; CPU% at half of the rate and at
    /// full load; the rate at full load over what it should be.
    fn made_at(places: &[(&'static str, f64, f64)], [half_cpu, cpu]: [f64; 2], falls: f64) -> Diagnosis {
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
                (ids::metric::CPU.as_str(), half_cpu),
                (ids::metric::ATTAINMENT.as_str(), most / 120.0),
                (ids::metric::COST.as_str(), cost * 1.5),
            ];
            let full = [
                (ids::metric::RATE.as_str(), most * falls),
                (ids::metric::CPU.as_str(), cpu),
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
            capacities[1][..4],
            ["siblings", "120k events/s (120k–120k)", "full", "96.0k events/s (96.0k–96.0k)"],
            "{capacities:?}"
        );
        let rows = texts(tables(section)[1]);
        assert_eq!(rows.len(), 6);
        assert_eq!((rows[0][0].as_str(), rows[0][1].as_str(), rows[1][1].as_str()), ("one CPU", "50", "100"));
        let ids: Vec<&str> = charts(section).iter().map(|chart| chart.id.as_str()).collect();
        let three = ["cpu", "rate", "attainment"].map(|name| format!("chart-nexmark-q0-{name}"));
        assert_eq!(ids, three);
        let first = conclusion(&diagnosis).join(" ");
        let Block::Prose(words) = &section.blocks[0] else { panic!("prose first") };
        // Half of the greatest rate shows as 60 %: at 50 % a twelfth less than half is used.
        for said in [
            "Capacity at 100 %: 200k events/s (200k–200k) on two CPUs",
            "; with 20 % kept free, 160k events/s (160k–160k), which CPU% shows as 84 (",
            "CPU% says 50 there: 42 % (41–42) are used; work can grow to 2.40 times today's (2.40–2.40), more than the 2.00 \
             times that CPU% promises.",
        ] {
            assert!(first.contains(said), "{said:?} is missing in {first}");
        }
        for said in ["do 60 % of the work of two cores (two CPUs)", "65 % more CPU time"] {
            assert!(words.contains(said), "{said:?} is missing in {words}");
        }
    }

    /// The capacity is the most that was reached, and not that of full load where full load was not
    /// reached or does less.
    #[test]
    fn full_load_that_was_not_reached_and_rates_that_fall() {
        let one = [("one-cpu", 100e3, 10.0)];
        let unsaturated = made_at(&one, [20.0, 40.0], 1.0);
        let words = conclusion(&unsaturated).join(" ");
        let head = "The most below full load (CPU% up to 40): 100k events/s (";
        assert!(words.starts_with(head) && !words.contains("CPU% says"), "{words}");
        let table = texts(tables(&sections(&unsaturated)[0])[0]);
        assert_eq!((table[0][2].as_str(), table[0][5].as_str()), ("40: not full", "–"), "{table:?}");
        // Half of the greatest rate is more than what full load came to.
        let falling = made_at(&one, [60.0, 100.0], 0.4);
        let words = conclusion(&falling).join(" ");
        let head = "Capacity, at CPU% 60 (beyond it falls, to 40.0k events/s at full load): 50.0k events/s (";
        assert!(words.starts_with(head), "{words}");
        let table = texts(tables(&sections(&falling)[0])[0]);
        assert_eq!(table[0][2], "60, falls beyond", "{table:?}");
    }

    #[test]
    fn no_share_is_below_zero() {
        for (others, shown) in [(-0.4, "none seen"), (0.4, "0.400 % (")] {
            let mut case = case("one-cpu", &[]);
            case.bench = "nexmark.q0".into();
            let metrics = vec![metric(ids::metric::RATE, "1/s"), metric(ids::metric::OTHERS, "%")];
            let full = [(ids::metric::RATE.as_str(), 1e5), (ids::metric::OTHERS.as_str(), others)];
            let at = of(&[(&ids::param::LOAD, Value::Int(FULL))]);
            let diagnosis = Made::new(View::Table, metrics).case(case, &[(at, &full)]).diagnosed(machine(4));
            let sections = sections(&diagnosis);
            let all: Vec<String> = tables(&sections[0]).into_iter().flat_map(texts).flatten().collect();
            assert!(all.iter().any(|text| text.starts_with(shown)), "{others}: {all:?}");
            assert!(!all.iter().any(|text| text.starts_with("-0.4")), "{others}: {all:?}");
        }
    }

    #[test]
    fn without_siblings_it_is_said_and_without_flink_there_is_nothing() {
        let alone = sections(&made(&[("one-cpu", 100e3, 10.0)]));
        let Block::Prose(words) = &alone[0].blocks[0] else { panic!("prose first") };
        assert!(words.contains("Threads of one core were not measured"), "{words}");
        assert!(sections(&made(&[])).is_empty());
    }
}

//! Small diagnosed runs for tests of sections.

use super::Section;
use crate::block::{Block, Cell, Chart, Table};
use diagnose::{Diagnosis, diagnose};
use machine::{Cache, CacheKind, Core, Machine, Node, Package};
use model::{
    Better, Case, CpuSet, Form, Histogram, Metric, Pages, Params, Placement, Planned, Samples, Seat, Title,
    Value, View,
};
use testkit::{run, samples, visit};

/// A case of `memory.test` on CPU 0.
pub fn case(placement: &'static str, params: &[(&str, Value)]) -> Case {
    let seat =
        Seat { role: "task".into(), host: None, cpus: CpuSet::from_iter([0]), mem_nodes: CpuSet::default() };
    let placement = Placement { seats: vec![seat], pages: Pages::Huge, ..Placement::named(placement) };
    Case { params: of(params), ..Case::new("memory.test", placement) }
}

pub fn of(params: &[(&str, Value)]) -> Params {
    params.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

pub fn latency() -> Metric {
    Metric::new(
        model::vocabulary::memory::metric::LATENCY,
        "latency of a load",
        "ns",
        Better::Lower,
        Form::Value,
    )
}

pub fn bandwidth() -> Metric {
    Metric::new(
        model::vocabulary::memory::metric::BANDWIDTH,
        "bytes moved",
        "GB/s",
        Better::Higher,
        Form::Value,
    )
}

/// What was measured at one point of a case: metric and value.
pub type Measured<'a> = (Params, &'a [(&'a str, f64)]);

/// A benchmark of this view, its cases with what was measured of each, on a host of `cpus` CPUs.
pub struct Made {
    pub view: View,
    pub metrics: Vec<Metric>,
    plan: Vec<Planned>,
    samples: Vec<Vec<Samples>>,
}

impl Made {
    pub fn new(view: View, metrics: Vec<Metric>) -> Made {
        Made { view, metrics, plan: Vec::new(), samples: Vec::new() }
    }

    pub fn case(mut self, case: Case, points: &[Measured]) -> Made {
        self.plan.push(Planned { case, priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None });
        let at = |(point, values): &Measured| -> Vec<Samples> {
            let one = |(metric, value): &(&str, f64)| Samples {
                point: point.clone(),
                // For metrics that are quantiles.
                histograms: vec![Histogram { ns: vec![(*value * 1e3) as u64], count: vec![100] }; 3],
                ..samples(metric, 0, &[*value, *value * 1.002, *value * 0.999])
            };
            values.iter().map(one).collect()
        };
        self.samples.push(points.iter().flat_map(at).collect());
        self
    }

    pub fn unmet(mut self, mut case: Case, why: &str) -> Made {
        case.placement.seats.clear();
        case.placement.pages = Pages::AsGiven;
        let unmet = Some(why.to_string());
        self.plan.push(Planned { case, priority: 1, seconds: 1.0, memory_bytes: 0, unmet });
        self.samples.push(Vec::new());
        self
    }

    pub fn diagnosed(self, machine: Machine) -> Diagnosis {
        let visits = (0..6u32).flat_map(|pass| {
            let of_pass = self.samples.iter().enumerate().filter(|(_, samples)| !samples.is_empty());
            of_pass.map(move |(case, samples)| {
                visit(pass * 100 + case as u32, case as u32, pass, samples.clone())
            })
        });
        let mut run = run(0, visits.collect());
        let bench = self.plan.first().map(|planned| planned.case.bench.clone());
        run.header.plan = self.plan;
        run.header.catalogue = vec![Title {
            // What its cases are of; without a case it is of nothing.
            id: bench.unwrap_or("memory.test".into()),
            title: "Test".into(),
            about: "".into(),
            reading: "How to read it.".into(),
            metrics: self.metrics,
            view: self.view,
        }];
        let mut diagnosis = diagnose(run);
        diagnosis.machine = machine;
        diagnosis
    }
}

/// Two packages of `cores` cores with two threads each, numbered as firmware does: all first
/// threads, then all second ones; two cores share an L3 of 32 MiB, a package is a node.
pub fn machine(cores: u32) -> Machine {
    let all = 2 * cores;
    let threads = |core: u32| [core, core + all];
    let set = |cores: std::ops::Range<u32>| cores.flat_map(threads).collect::<CpuSet>();
    let mut machine = Machine::default();
    machine.cpus.online = (0..2 * all).collect();
    machine.cpus.cores =
        Some((0..all).map(|core| Core { cpus: set(core..core + 1), ..Core::default() }).collect());
    let package = |package: u32| set(package * cores..(package + 1) * cores);
    machine.cpus.packages = Some((0..2).map(|id| Package { id: i64::from(id), cpus: package(id) }).collect());
    let node = |id: u32| Node {
        id,
        cpus: package(id),
        distances: if id == 0 { vec![10, 21] } else { vec![21, 10] },
        ..Node::default()
    };
    machine.nodes = (0..2).map(node).collect();
    let cache = |level: u32, kind, kib: u64, cpus: CpuSet| Cache {
        size_bytes: Some(kib << 10),
        line_bytes: Some(64),
        ..Cache::new(level, kind, cpus)
    };
    let inner = (0..all).flat_map(|core| {
        [
            cache(1, CacheKind::Data, 48, set(core..core + 1)),
            cache(2, CacheKind::Unified, 2048, set(core..core + 1)),
        ]
    });
    let outer = (0..all / 2).map(|pair| cache(3, CacheKind::Unified, 32 << 10, set(2 * pair..2 * pair + 2)));
    machine.caches = inner.chain(outer).collect();
    machine.caches.sort_by_key(|cache| cache.level);
    machine
}

pub fn charts(section: &Section) -> Vec<&Chart> {
    let charts = section.blocks.iter().filter_map(|block| match block {
        Block::Chart(chart) => Some(chart.as_ref()),
        _ => None,
    });
    charts.collect()
}

pub fn tables(section: &Section) -> Vec<&Table> {
    let tables = section.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    tables.collect()
}

/// The cells of a table as text.
pub fn texts(table: &Table) -> Vec<Vec<String>> {
    let cell = |cell: &Cell| match cell {
        Cell::Heading(text) | Cell::Text(text) | Cell::Number(text) | Cell::Code(text) => text.clone(),
        Cell::Keyed { name, .. } => name.clone(),
        Cell::Verdict(verdict) => verdict.kind.words().to_string(),
        Cell::Reading { reading, .. } => reading.words(),
        Cell::Distribution(_) | Cell::Empty => String::new(),
    };
    table.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

//! A whole run of memory benchmarks, made by hand on a made machine: what every view of a report
//! shows.

use diagnose::diagnose;
use model::vocabulary::memory::metric as ids;
use model::{
    Better, Case, Covariates, CpuSet, Form, Header, Metric, Packed, Pages, Params, Placement, Planned,
    ProcessFacts, Run, Samples, Seat, Title, Value, View, Visit,
};
use report::block::Report;
use report::sections::compose;

use crate::synthetic::{Shape, Tree};
use testkit::header;

/// Processes that measured each case.
const PASSES: u32 = 6;

/// A case with the values of its points.
struct Made {
    case: Case,
    unmet: Option<&'static str>,
    points: Vec<(Params, Vec<(&'static str, f64)>)>,
}

/// A host of two packages with `cores` cores and two threads each, four cores to an L3, and what
/// it gave.
pub fn report(cores: u32) -> Report {
    compose(&diagnose(run(cores))).expect("a report")
}

pub fn run(cores: u32) -> Run {
    let tree = Tree::new();
    let shape = Shape { packages: 2, cores, cores_per_l3: 4, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, (4 * cores).div_ceil(32) as usize);
    tree.file("/sys/devices/system/cpu/online", &format!("0-{}", 4 * cores - 1));
    tree.file("/proc/sys/kernel/hostname", "made");
    let made = cases(cores);
    let mut random = fastrand::Rng::with_seed(3);
    let mut noise = || 1.0 + 0.006 * (random.f64() - 0.5);
    let mut visits = Vec::new();
    for pass in 0..PASSES {
        for (index, made) in made.iter().enumerate().filter(|(_, made)| !made.points.is_empty()) {
            let process = noise();
            let each =
                made.points.iter().flat_map(|(point, values)| values.iter().map(move |one| (point, one)));
            let samples = each
                .map(|(point, (metric, value))| {
                    samples(point.clone(), metric, (0..3).map(|_| value * process * noise()))
                })
                .collect();
            let order = visits.len() as u32;
            visits.push(Visit {
                order,
                case: index as u32,
                pass,
                at_ms: f64::from(order) * 50.0,
                conditions: Default::default(),
                process: ProcessFacts::default(),
                samples,
                reason: None,
            });
        }
    }
    let planned = made.into_iter().map(|made| Planned {
        case: made.case,
        priority: 1,
        seconds: 1.0,
        memory_bytes: 0,
        unmet: made.unmet.map(str::to_string),
    });
    let header = Header {
        host: "made".into(),
        snapshot: snapshot::read(tree.root()),
        ..header(planned.collect(), catalogue())
    };
    Run { visits, ..Run::begun(header) }
}

fn samples(point: Params, metric: &str, values: impl Iterator<Item = f64>) -> Samples {
    let work: Vec<f64> = values.collect();
    Samples {
        point,
        metrics: vec![metric.to_string()],
        warm_up: 0,
        ns: vec![1e6; work.len()],
        work: Packed::Each(work),
        beside: Covariates::default(),
        histograms: vec![],
        linearity: None,
    }
}

fn catalogue() -> Vec<Title> {
    let lower = |name, title, unit| Metric::new(name, title, unit, Better::Lower, Form::Value);
    let higher = |name, title| Metric::new(name, title, "GB/s", Better::Higher, Form::Value);
    let latency = || lower(ids::LATENCY, "latency of a load", "ns");
    let curve = |x: &'static str, log| View::Curve { x: x.into(), log };
    let matrix =
        |row: &'static str, column: &'static str| View::Matrix { row: row.into(), column: column.into() };
    let title = |id: &'static str, title: &'static str, view, metrics| Title {
        id: id.into(),
        title: title.into(),
        about: "".into(),
        reading: "".into(),
        metrics,
        view,
    };
    vec![
        title(
            "made.bandwidth",
            "Memory bandwidth",
            curve("bytes", true),
            vec![higher(ids::BANDWIDTH, "bandwidth")],
        ),
        title("made.chains", "Memory parallelism", curve("chains", true), vec![latency()]),
        title(
            "made.source",
            "Source of data",
            View::Wide,
            vec![latency(), lower(ids::CYCLES, "cycles of a load", "cycles").aside()],
        ),
        title(
            "made.pairs",
            "Core to core",
            matrix("from", "to"),
            vec![lower(ids::LATENCY, "half a round trip", "ns")],
        ),
        title(
            "made.nodes",
            "Bandwidth between nodes",
            matrix("node", "memory"),
            vec![higher(ids::BANDWIDTH, "bandwidth")],
        ),
        title(
            "made.loaded",
            "Loaded latency",
            View::Trade { x: "traffic".into(), y: "latency".into() },
            vec![latency(), higher(ids::TRAFFIC, "memory traffic").aside()],
        ),
        title(
            "made.cores",
            "Cores beside each other",
            curve("cpu", false),
            vec![higher(ids::BANDWIDTH, "bandwidth")],
        ),
    ]
}

fn params(list: &[(&str, Value)]) -> Params {
    list.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

fn case(bench: &'static str, place: &'static str, list: &[(&str, Value)]) -> Made {
    let seat = Seat {
        role: "task".into(),
        host: None,
        cpus: [0].into_iter().collect(),
        mem_nodes: CpuSet::default(),
    };
    let placement = Placement { seats: vec![seat], pages: Pages::Huge, ..Placement::named(place) };
    let case = Case { params: params(list), ..Case::new(bench, placement) };
    Made { case, unmet: None, points: Vec::new() }
}

impl Made {
    fn at(mut self, point: &[(&str, Value)], values: &[(&'static str, f64)]) -> Made {
        self.points.push((params(point), values.to_vec()));
        self
    }

    fn unmet(mut self, why: &'static str) -> Made {
        self.case.placement.seats.clear();
        self.unmet = Some(why);
        self
    }
}

fn cases(cores: u32) -> Vec<Made> {
    let mut all = Vec::new();
    let ops = ["read", "write", "write-nt", "read-write", "copy", "copy-nt", "copy-rep", "fill", "triad"];
    for (place, tasks) in [("one-cpu", 1.0), ("all", 40.0)] {
        for (index, op) in ops.iter().enumerate() {
            let one = (0..16).fold(case("made.bandwidth", place, &[("op", (*op).into())]), |one, power| {
                let bytes = 8192.0 * f64::from(1 << power);
                let step = |at: f64| 1.0 / (1.0 + (bytes / at).powi(3));
                let core = 5.0 + 20.0 * step(32e6) + 50.0 * step(2e6) + 120.0 * step(49152.0);
                let value = core * tasks * (1.0 - 0.07 * index as f64);
                one.at(&[("bytes", (bytes as u64).into())], &[("bandwidth", value)])
            });
            all.push(one);
        }
    }
    let chains = [1u64, 2, 4, 8, 16, 32];
    all.push(chains.iter().fold(case("made.chains", "one-cpu", &[]), |one, chains| {
        one.at(&[("chains", (*chains).into())], &[("latency", 90.0 / (*chains as f64).min(12.0))])
    }));
    all.extend(sources());
    all.push(pairs(cores));
    for (node, memory, value) in
        [(0u64, 0u64, 210.0), (0, 1, 88.0), (0, 2, 31.0), (1, 0, 87.0), (1, 1, 212.0)]
    {
        let place = [("node", node.into()), ("memory", memory.into()), ("op", "read".into())];
        all.push(case("made.nodes", "per-node", &place).at(&[], &[("bandwidth", value)]));
    }
    for (index, mix) in ["reads", "two-to-one", "one-to-one"].iter().enumerate() {
        let pauses = [0u64, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 5000];
        all.push(pauses.iter().fold(case("made.loaded", "all", &[("mix", (*mix).into())]), |one, pause| {
            let most = 400.0 - 60.0 * index as f64;
            let load = 1.0 / (1.02 + *pause as f64 / 60.0);
            let values = [("latency", 95.0 + 9.0 / (1.0 - load)), ("traffic", most * load)];
            one.at(&[("pause", (*pause).into())], &values)
        }));
    }
    all.push((0..2 * cores).fold(case("made.cores", "one-per-core", &[]), |one, cpu| {
        let slow = if cpu == 5 { 0.8 } else { 1.0 - 0.01 * f64::from(cpu % 3) };
        one.at(&[("cpu", u64::from(cpu).into())], &[("bandwidth", 180.0 * slow)])
    }));
    all
}

fn sources() -> Vec<Made> {
    let rows = [
        ("l1", "one-cpu", 1.3),
        ("l2", "one-cpu", 4.2),
        ("l3", "one-cpu", 21.0),
        ("dram", "one-cpu", 96.0),
        ("core-shared", "smt-sibling", 9.0),
        ("core-shared", "same-llc", 30.0),
        ("core-modified", "same-llc", 44.0),
        ("core-modified", "other-package", 190.0),
        ("dram-remote", "other-package", 148.0),
    ];
    let mut all: Vec<Made> = rows
        .map(|(source, place, ns)| {
            let values = [("latency", ns), ("cycles", 3.1 * ns)];
            case("made.source", place, &[("source", source.into())]).at(&[], &values)
        })
        .into();
    let unmet = case("made.source", "other-node", &[("source", "core-shared".into())]);
    all.push(unmet.unmet("no package with usable CPUs on two NUMA nodes"));
    all
}

/// Each pair once; of large hosts those that lie near and some others.
fn pairs(cores: u32) -> Made {
    let cpus = 4 * cores;
    let place = |cpu: u32| (cpu % (2 * cores), cpu % (2 * cores) / 4, cpu % (2 * cores) / cores);
    let mut one = case("made.pairs", "all", &[]);
    for from in 0..cpus {
        for to in from + 1..cpus {
            let (a, b) = (place(from), place(to));
            let ns = match () {
                () if a.0 == b.0 => 9.0,
                () if a.1 == b.1 => 24.0,
                () if a.2 == b.2 => 80.0 + f64::from(a.1.abs_diff(b.1)),
                () => 190.0 + f64::from((from * 7 + to * 3) % 20),
            };
            if cpus <= 128 || a.1 == b.1 || (from + to) % 61 == 0 {
                let pair = [("from", u64::from(from).into()), ("to", u64::from(to).into())];
                one = one.at(&pair, &[("latency", ns)]);
            }
        }
    }
    one
}

#[test]
fn a_terminal_shows_every_view_inside_its_lines() {
    let style = report::text::Style { color: false, unicode: true, width: 100 };
    for cores in [8, 1] {
        let text = report::text::render(&report(cores), style);
        println!("{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for part in [
            "    Source of data\n      l1, one CPU",
            "Bandwidth between nodes, GB/s  memory 0  memory 1  memory 2",
            "reads, at 39",
            "(slowest)",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Large matrices by distance, small ones as they are.
        let pairs = if cores == 8 {
            "CPU 0 to CPU 30 (median of 256)"
        } else {
            "Core to core, ns  CPU 0  CPU 1  CPU 2  CPU 3"
        };
        assert!(text.contains(pairs), "{text}");
    }
}

//! Runs with unrealistic numbers, made of bytes directly: in JSON most of a fuzzer's changes would
//! only break the syntax.

use model::vocabulary::cpu::metric::CLOCK;
use model::vocabulary::memory::{metric::LATENCY, param::BYTES};
use model::{
    Better, Case, Conditions, Covariates, CpuSet, Event, Form, Header, Histogram, Metric, Packed, Pages,
    Params, Placement, Planned, ProcessFacts, Reason, Run, RunClock, SCHEMA, Samples, Seat, Snapshot,
    TimeLine, Title, Value, View, Visit,
};

use super::run_file;

/// The head of a run is made of the first bytes, every visit of some that follow.
pub fn visits(data: &[u8]) {
    let mut bytes = Bytes(data);
    let title = title(&mut bytes);
    let plan: Vec<Planned> = (0..1 + bytes.next() % 3).map(|_| planned(&mut bytes, &title)).collect();
    let cases = plan.len();
    let mut header = header(plan, vec![title]);
    header.precision = bytes.number().abs();
    let mut run = Run::begun(header);
    while !bytes.0.is_empty() && run.visits.len() < 90 {
        let order = run.visits.len() as u32;
        let visit = visit(&mut bytes, &run.header.catalogue[0], order, cases as u32);
        run.visits.push(visit);
    }
    if bytes.next() > 128 {
        let [at_ms, value] = [0; 2].map(|_| vec![bytes.number(), bytes.number()]);
        let subject = if bytes.next() > 128 { "clock" } else { "" };
        run.time_lines.push(TimeLine {
            subject: subject.into(),
            name: "background".into(),
            unit: "CPUs".into(),
            at_ms,
            value,
            missing: None,
        });
        run.events.push(Event { at_ms: bytes.number(), kind: "interrupted".into(), text: "x".into() });
    }
    run_file::check(run);
}

/// A header around a plan, with nothing known of the machine.
pub fn header(plan: Vec<Planned>, catalogue: Vec<Title>) -> Header {
    Header {
        schema: SCHEMA,
        assay: "0.1.0".into(),
        host: "host".into(),
        labels: Default::default(),
        started: "1970-01-01T00:00:00Z".into(),
        boot_id: None,
        uptime_s: None,
        seed: 1,
        profile: "quick".into(),
        budget_s: 75.0,
        precision: 0.03,
        allowed_cpus: CpuSet::one(0),
        clock: RunClock {
            source: "tsc".into(),
            ticks_per_ns: 1.0,
            resolution_ns: 1.0,
            cost_ns: 1.0,
            why: None,
        },
        pretend: None,
        plan_id: "0".into(),
        plan,
        sweep: None,
        factors: None,
        catalogue,
        snapshot: Snapshot::default(),
    }
}

fn title(bytes: &mut Bytes) -> Title {
    let kind = bytes.next();
    let scale = if kind & 0x80 == 0 { 1.0 } else { bytes.number() };
    let form = match kind % 4 {
        0 => Form::TimePerWork { scale },
        1 => Form::WorkPerTime { scale },
        2 => Form::Value,
        _ => Form::Quantile { q: f64::from(bytes.next()) / 250.0, scale },
    };
    let better = match kind / 4 % 3 {
        0 => Better::Lower,
        1 => Better::Higher,
        _ => Better::Neither,
    };
    let view = match kind / 12 % 4 {
        0 => View::Table,
        1 => View::Matrix { row: "a".into(), column: "bytes".into() },
        log => View::Curve { x: "bytes".into(), log: log == 2 },
    };
    let names = ["memory.latency", "ipc.pipe-pingpong", "cpu.clock", "memory.bandwidth"];
    let units = ["ns", "1/s", "GHz", "GB/s", "%", ""];
    let name = usize::from(bytes.next());
    let metric = |metric| Metric::new(metric, "what it is", units[name % units.len()], better, form);
    Title {
        id: names[name % names.len()].into(),
        title: "Title".into(),
        about: "About".into(),
        reading: "Reading".into(),
        metrics: vec![metric(CLOCK), metric(LATENCY).aside()],
        view,
    }
}

fn planned(bytes: &mut Bytes, title: &Title) -> Planned {
    let kind = bytes.next();
    let names = ["free", "one-cpu", "same-cpu", "smt-sibling", "other-llc"];
    let seat = |cpu: u8| Seat {
        role: "task".into(),
        host: None,
        cpus: CpuSet::one(u32::from(cpu)),
        mem_nodes: CpuSet::default(),
    };
    let placement = Placement {
        seats: (0..kind / 5 % 3).map(seat).collect(),
        pages: if kind & 0x40 == 0 { Pages::AsGiven } else { Pages::Huge },
        ..Placement::named(names[usize::from(kind) % names.len()])
    };
    let case = Case::new(title.id.clone(), placement);
    let unmet = (kind & 0x80 != 0).then(|| "budget: none".to_string());
    Planned { case, priority: 1, seconds: bytes.number(), memory_bytes: 0, unmet }
}

fn visit(bytes: &mut Bytes, title: &Title, order: u32, cases: u32) -> Visit {
    let kind = bytes.next();
    let reason = match kind >> 4 {
        15 => Some(Reason::Failed("failed".into())),
        14 => Some(Reason::WrongAnswer("wrong".into())),
        13 => Some(Reason::Skipped("skipped".into())),
        _ => None,
    };
    let at_ms = if kind & 8 == 0 { f64::from(order) * 100.0 } else { bytes.number() };
    Visit {
        order,
        case: u32::from(kind) % cases,
        pass: order / cases,
        at_ms,
        conditions: if kind & 4 == 0 { Conditions::default() } else { conditions(bytes) },
        process: if kind & 4 == 0 { ProcessFacts::default() } else { facts(bytes) },
        samples: (0..1 + (kind >> 5 & 1)).map(|_| samples(bytes, title)).collect(),
        reason,
    }
}

fn samples(bytes: &mut Bytes, title: &Title) -> Samples {
    let kind = bytes.next();
    let windows = 1 + usize::from(kind % 6);
    let mut numbers = |windows: usize| -> Vec<f64> { (0..windows).map(|_| bytes.number()).collect() };
    let values = numbers(windows);
    let ns = if kind & 0x80 == 0 { vec![1.0; windows] } else { numbers(windows) };
    let column = (kind & 0x40 != 0).then(|| Packed::pack(numbers(windows)));
    let linearity = (kind & 0x20 != 0).then(|| bytes.number());
    let quantile = title.metrics.iter().any(|metric| matches!(metric.form, Form::Quantile { .. }));
    let histogram = |value: &f64| Histogram {
        ns: vec![1, value.abs() as u64, u64::MAX],
        count: vec![1, value.abs() as u64, value.abs().fract() as u64],
    };
    let point = match bytes.next() {
        0..128 => Params::new(),
        point => Params::from([(BYTES, Value::Float(f64::from(point) * 1e3))]),
    };
    Samples {
        point,
        metrics: vec![title.metrics[usize::from(kind >> 4 & 1)].name.to_string()],
        warm_up: usize::from(kind >> 3 & 1).min(windows - 1),
        histograms: if quantile { values.iter().map(histogram).collect() } else { Vec::new() },
        work: Packed::pack(values),
        ns,
        beside: Covariates {
            cpu_start: column.clone(),
            cpu_end: column.as_ref().map(|_| Packed::Same(1.0)),
            steal_ms: column.clone(),
            clock_ghz: column,
            ..Covariates::default()
        },
        linearity,
    }
}

fn conditions(bytes: &mut Bytes) -> Conditions {
    let mut some = || Some(bytes.number());
    Conditions {
        busy_ms: some(),
        own_ms: some(),
        others_on_seats_ms: some(),
        steal_ms: some(),
        throttled_ms: some(),
        swapped_pages: some(),
        thermal_throttles: some(),
        wall_ms: bytes.number(),
        cpus: u32::from(bytes.next()),
        ..Conditions::default()
    }
}

fn facts(bytes: &mut Bytes) -> ProcessFacts {
    let variants = ["avx512", "sse2", "\u{202e}\x1b[31m"];
    ProcessFacts {
        huge_share: Some(bytes.number()),
        variant: Some(variants[usize::from(bytes.next()) % variants.len()].to_string()),
        migrations: Some(u64::from(bytes.next())),
        ..ProcessFacts::default()
    }
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Mostly a number near 1, sometimes an end of what numbers can be; always finite, as all in
    /// JSON are.
    fn number(&mut self) -> f64 {
        const ENDS: [f64; 24] = [
            0.0,
            -0.0,
            -1.0,
            0.01,
            2.0,
            3.0,
            10.0,
            1e3,
            1e6,
            -1e6,
            1e-6,
            1e15,
            4294967295.0,
            9007199254740993.0,
            1.8446744073709552e19,
            5e-324,
            f64::MIN_POSITIVE,
            f64::EPSILON,
            1e-160,
            1e154,
            1e160,
            f64::MAX,
            f64::MIN,
            0.1,
        ];
        match self.next() {
            small @ 0..200 => 1.0 + f64::from(small) / 1000.0,
            end @ 200..254 => ENDS[usize::from(end - 200) % ENDS.len()],
            _ => {
                let number = f64::from_bits((0..8).fold(0, |bits, _| bits << 8 | u64::from(self.next())));
                if number.is_finite() { number } else { 0.0 }
            }
        }
    }
}

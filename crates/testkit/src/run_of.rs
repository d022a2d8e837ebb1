//! Small runs for tests.

use model::vocabulary::memory::param::BYTES;
use model::vocabulary::selftest::metric::SPEED;
use model::{
    Better, Case, Conditions, Covariates, Form, Header, Metric, Packed, Params, Placement, Planned,
    ProcessFacts, Run, RunClock, SCHEMA, Samples, Snapshot, Title, Value, View, Visit,
};

/// A run with `cases` planned cases `test.case0@free`, ... with the headline metric `rate` and the
/// further metric `latency`.
pub fn run(cases: usize, visits: Vec<Visit>) -> Run {
    let header = header((0..cases).map(planned).collect(), (0..cases).map(title).collect());
    Run { visits, ..Run::begun(header) }
}

/// A header with a seed, a clock and no host.
pub fn header(plan: Vec<Planned>, catalogue: Vec<Title>) -> Header {
    Header {
        schema: SCHEMA,
        assay: "0.1.0".into(),
        host: "test".into(),
        labels: Default::default(),
        started: "2026-01-01T00:00:00Z".into(),
        boot_id: None,
        uptime_s: None,
        seed: 7,
        profile: "standard".into(),
        budget_s: 600.0,
        precision: 0.01,
        allowed_cpus: Default::default(),
        clock: RunClock {
            source: "tsc".into(),
            ticks_per_ns: 2.0,
            resolution_ns: 10.0,
            cost_ns: 10.0,
            why: None,
        },
        pretend: None,
        plan_id: "test".into(),
        sweep: None,
        factors: None,
        plan,
        catalogue,
        snapshot: Snapshot::default(),
    }
}

fn planned(number: usize) -> Planned {
    let placement = Placement::named("free");
    let case = Case::new(format!("test.case{number}"), placement);
    Planned { case, priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None }
}

fn title(number: usize) -> Title {
    Title {
        id: format!("test.case{number}").into(),
        title: "Test".into(),
        about: "".into(),
        reading: "".into(),
        metrics: vec![metric("rate", true), metric("latency", false)],
        view: View::Table,
    }
}

pub fn metric(name: &'static str, headline: bool) -> Metric {
    let speed = Metric::new(SPEED, name, "GB/s", Better::Higher, Form::Value);
    let metric = Metric { name: name.into(), ..speed };
    if headline { metric } else { metric.aside() }
}

pub fn visit(order: u32, case: u32, pass: u32, samples: Vec<Samples>) -> Visit {
    Visit {
        order,
        case,
        pass,
        at_ms: f64::from(order) * 1000.0,
        conditions: Conditions::default(),
        process: ProcessFacts::default(),
        samples,
        reason: None,
    }
}

/// Samples of one metric at a point `bytes` (0: no point).
pub fn samples(metric: &str, bytes: u64, values: &[f64]) -> Samples {
    Samples {
        point: if bytes > 0 { point(bytes) } else { Params::new() },
        metrics: vec![metric.to_string()],
        warm_up: 0,
        work: Packed::Each(values.to_vec()),
        ns: vec![1e6; values.len()],
        beside: Covariates::default(),
        histograms: vec![],
        linearity: None,
    }
}

pub fn point(bytes: u64) -> Params {
    Params::from([(BYTES, Value::from(bytes))])
}

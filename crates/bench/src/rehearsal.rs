//! For tests: plans the cases of a row on the CPUs that the test may use, and runs a pass of each
//! with short samples.

use std::io::{Read, Seek};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{Benchmark, Candidate, Depth, Line, Order, Sampler, Scope, Windows, find, reason};
use crate::placement::Placements;
use machine::Machine;
use model::vocabulary::BenchId;
use model::vocabulary::selftest::STEADY;
use model::{Case, Form, Reason, Samples};
use sys::{affinity, clock, process};

const WINDOW: Duration = Duration::from_micros(200);
const WINDOWS: Windows = Windows { window_ns: WINDOW.as_nanos() as f64, count: 2, warm_up: 1, limit_s: 2.0 };

fn row_of(case: &Case) -> &'static Benchmark {
    find(&case.bench).unwrap_or_else(|| panic!("no row {}", case.bench))
}

fn row(id: BenchId) -> &'static Benchmark {
    find(&id).unwrap_or_else(|| panic!("no row {id}"))
}

/// A host with the test's CPUs, of which nothing more is known.
pub fn this_machine() -> Machine {
    let mut machine = Machine::default();
    machine.cpus.online = affinity::allowed().expect("affinity");
    machine.cpus.allowed = machine.cpus.online.clone();
    machine
}

/// Every case that the row offers on this host, at this depth.
pub fn candidates(id: BenchId, depth: Depth) -> Vec<Candidate> {
    let machine = this_machine();
    let placements = Placements::of(&machine);
    let scope = Scope { windows: WINDOWS, ..Scope::new(&machine, &placements, depth, 128 << 20) };
    (row(id).cases)(row(id), &scope)
}

/// Those of them that can be measured here.
pub fn cases(id: BenchId, depth: Depth) -> Vec<Case> {
    let possible = candidates(id, depth).into_iter().filter(|candidate| candidate.unmet.is_none());
    possible.map(|candidate| candidate.case).collect()
}

fn order(case: &Case) -> Order {
    let clock = clock::calibrate(false);
    let (pretend, secret, parent) = (None, None, None);
    Order { case: case.clone(), windows: WINDOWS, clock, seed: 1, pass: 0, pretend, secret, parent }
}

/// The output of a pass's process: its samples, and its last line.
fn heard(said: &str) -> (Vec<Samples>, Option<Reason>) {
    let (mut samples, mut end) = (Vec::new(), None);
    for line in said.lines() {
        match serde_json::from_str(line).expect("a sample line") {
            Line::Samples(one) => samples.push(*one),
            Line::Process(_) => {}
            Line::Done(reason) => end = Some(reason),
        }
    }
    (samples, end.expect("a last line"))
}

/// Does a part of a row in the test's own process: what it emitted, or why it failed.
pub fn with_sampler(work: impl FnOnce(&mut Sampler) -> anyhow::Result<()>) -> anyhow::Result<Vec<Samples>> {
    with_sampler_of(&nothing(), work)
}

/// A case of no placement.
pub fn nothing() -> Case {
    Candidate::unmet(STEADY, "one-cpu", String::new()).case
}

/// The same as a part of this case.
pub fn with_sampler_of(
    case: &Case,
    work: impl FnOnce(&mut Sampler) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Samples>> {
    let mut said = Vec::new();
    let mut sampler = Sampler::new(&order(case), &mut said);
    work(&mut sampler)?;
    sampler.finish(None)?;
    Ok(heard(&String::from_utf8(said)?).0)
}

/// Runs `work` in a pinned process, as a pass does: its samples, and how it ended.
pub fn sampled(
    case: &Case,
    work: impl FnOnce(&mut Sampler) -> anyhow::Result<()>,
) -> (Vec<Samples>, Option<Reason>) {
    let order = order(case);
    let mut said = tempfile::tempfile().expect("a file");
    let mut child = process::fork(|| {
        let mut sampler = Sampler::new(&order, &mut said);
        let pinned = case.placement.seats.first().is_none_or(|seat| affinity::pin(&seat.cpus).is_ok());
        let result = if pinned { work(&mut sampler) } else { Err(anyhow::anyhow!("cannot pin")) };
        i32::from(sampler.finish(result.err().map(reason)).is_err())
    })
    .expect("a child");
    let status = child.wait(Duration::from_secs(300)).expect("it ends");
    assert!(status.success(), "{}: {status}", case.key());
    let mut text = String::new();
    said.rewind().and_then(|()| said.read_to_string(&mut text)).expect("what it said");
    heard(&text)
}

/// Runs a pass of a case: its samples, and how it ended.
pub fn visit(case: &Case) -> (Vec<Samples>, Option<Reason>) {
    sampled(case, |sampler| (row_of(case).run)(case, sampler))
}

/// Does the work: its result, and how long this process was kept from running at most meanwhile.
fn longest_gap<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    std::thread::scope(|scope| {
        // Its end is dropped after the work, and when the work panics, too.
        let (working, over) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let mut longest = Duration::ZERO;
            loop {
                let asleep = Instant::now();
                let heard = over.recv_timeout(WINDOW);
                longest = longest.max(asleep.elapsed());
                if heard != Err(RecvTimeoutError::Timeout) {
                    return longest;
                }
            }
        });
        let done = work();
        drop(working);
        (watch.join().expect("it only waits"), done)
    })
}

/// Runs a pass of a case and checks what every row promises. If the host paused us for longer than
/// many of these short samples, some may be empty: a pass that then breaks a promise is repeated,
/// at most twenty times.
pub fn visit_all(case: &Case) -> Vec<Samples> {
    let mut tries = 0;
    loop {
        tries += 1;
        match longest_gap(|| visit_checked(case)) {
            (_, Ok(samples)) => return samples,
            (gap, Err(_)) if gap > 50 * WINDOW && tries <= 20 => {}
            (_, Err(broken)) => panic!("{}: {broken}", case.key()),
        }
    }
}

/// Runs a pass of a case: its samples, or the promise that they break. Promised: the first metric
/// at each point, each other headline at some, only declared metrics, and finite values, negative
/// only if plain.
fn visit_checked(case: &Case) -> Result<Vec<Samples>, String> {
    let row = row_of(case);
    let (samples, reason) = visit(case);
    if let Some(reason) = reason {
        return Err(format!("{reason:?}"));
    }
    let of = |name: &str| -> Vec<&Samples> {
        samples.iter().filter(|one| one.metrics.iter().any(|own| own == name)).collect()
    };
    let first = of(&row.metrics[0].name);
    let missing = (row.points)(case).into_iter().find(|point| !first.iter().any(|one| one.point == *point));
    if let Some(point) = missing {
        return Err(format!("{point:?} is missing"));
    }
    for metric in row.metrics.iter().filter(|metric| metric.headline) {
        // A warm-up sample may have any value, even none that arrived.
        let counted = |one: &&Samples| one.values(metric.form).split_off(one.warm_up.min(one.len()));
        let values: Vec<f64> = of(&metric.name).iter().flat_map(counted).collect();
        let fine = |value: &f64| match metric.form {
            // A difference of two times that were disturbed has any sign.
            Form::Value => value.is_finite(),
            // In so short a sample nothing may arrive.
            Form::WorkPerTime { .. } => value.is_finite() && *value >= 0.0,
            _ => value.is_finite() && *value > 0.0,
        };
        let nothing = metric.form != Form::Value && values.iter().all(|value| *value == 0.0);
        if nothing || !values.iter().all(fine) || values.is_empty() {
            return Err(format!("{}: {values:?}", metric.name));
        }
    }
    let declared = |name: &str| row.metrics.iter().any(|metric| metric.name == name);
    match samples.iter().flat_map(|one| &one.metrics).find(|name| !declared(name)) {
        Some(name) => Err(format!("undeclared {name}")),
        None => Ok(samples),
    }
}

/// Runs a pass of every case of a row, in the first profile that has it.
pub fn visit_row(id: BenchId) -> Vec<Samples> {
    cases(id, row(id).from).iter().flat_map(visit_all).collect()
}

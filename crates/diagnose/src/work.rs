//! From how much work on two CPUs are better than one.

use super::ladder::{Curve, curves};
use super::words::{duration_us, figure, shell};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::{Fact, Finding};
use stats::analysis::Judged;

pub const RULES: &[Rule] = &[TWO];

const TWO: Rule = Rule {
    id: ids::host::rule::TWO_CPUS_WIN,
    title: "The work per round from which two CPUs are faster",
    topic: "placement",
    meaning: "A ping-pong without work rewards keeping both tasks on one CPU. Tasks with work between two messages can do it at the \
             same time on two CPUs. From some amount of work on, this outweighs the slower wake-up.",
    action: "Give tasks that work longer than this between two messages CPUs of their own; keep others on one CPU. See it: assay \
             run --only ipc.pipe-work --profile standard --new",
    when: "One CPU is surely faster at some work of ipc.pipe-work, and two CPUs at a larger one (95 % intervals apart).",
    how: "The point lies between the last work at which one CPU is surely faster and the first from which two are, at no larger \
             one surely slower. Within, it is where the two lines of medians cross, interpolated between logarithms. Without either \
             side there is no finding.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: two,
};

fn two(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all =
        curves(evidence, ids::ipc::PIPE_WORK, ids::ipc::metric::LATENCY, ids::ipc::param::WORK_NS, |_| true);
    let of = |name: &str| all.iter().find(|curve| curve.case.placement.name == name);
    let one_cpu = of("same-cpu")?;
    let pinned = |curve: &&Curve| {
        !curve.case.placement.is_free() && curve.case.placement.name != one_cpu.case.placement.name
    };
    Some(all.iter().filter(pinned).filter_map(|apart| finding(evidence, one_cpu, apart)).collect())
}

fn finding(evidence: &Evidence, one_cpu: &Curve, apart: &Curve) -> Option<Finding> {
    let crossing = crossing(one_cpu, apart)?;
    let place = apart.case.placement.name.as_ref();
    let us = |ns: f64| figure(ns / 1e3, "us");
    let fact = |label: &str, judged: &Judged, work: f64| {
        let value = judged.median().unwrap_or(f64::NAN);
        Fact::new(format!("{label}, {} of work", us(work)), figure(value, "us"), &judged.series.key)
    };
    let [before, after] = [crossing.last_one, crossing.first_two];
    Some(Finding::note(TWO.id, format!(
        "Two tasks are faster {} from {} of work per round. Below that, keep them on one CPU.",
        evidence.place(place),
        duration_us(crossing.work_ns / 1e3)
    ))
        .cause(format!(
            "Each round costs a wake-up on the other CPU and saves one task's work. With {} of work one CPU is surely \
             faster, with {} two are. A score without work shows only the first.",
            us(before.0),
            us(after.0)
        ))
        .facts([
            fact("same-cpu", one_cpu.series[before.1], before.0),
            fact(place, apart.series[before.2], before.0),
            fact("same-cpu", one_cpu.series[after.1], after.0),
            fact(place, apart.series[after.2], after.0),
        ])
        .confirm(format!("assay run --only {} --profile standard --new", shell(&ids::ipc::PIPE_WORK)))
        .advice("Give tasks that work longer than this between two messages CPUs of their own."))
}

/// Where two lines cross: the work at which they do, ns, and the two points (work, index in either
/// curve) between which that is sure.
struct Crossing {
    work_ns: f64,
    last_one: (f64, usize, usize),
    first_two: (f64, usize, usize),
}

fn crossing(one_cpu: &Curve, apart: &Curve) -> Option<Crossing> {
    // Points that both have, by rising work: the logarithm of two CPUs' time over one's, and which
    // is surely faster.
    let mut points: Vec<(f64, usize, usize, f64, i32)> = Vec::new();
    for (index, (work, one)) in one_cpu.points.iter().enumerate() {
        let Some(other) = apart.points.iter().position(|(at, _)| at == work) else { continue };
        let two = apart.points[other].1;
        let sure = match (one_cpu.series[index].interval(), apart.series[other].interval()) {
            (Some(of_one), Some(of_two)) if of_one.high < of_two.low => -1,
            (Some(of_one), Some(of_two)) if of_two.high < of_one.low => 1,
            _ => 0,
        };
        points.push((*work, index, other, (two / one).ln(), sure));
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let last_one = points.iter().rposition(|point| point.4 < 0)?;
    // From there on only two CPUs may be surely faster, and at the end they must be.
    let first_two = last_one + 1 + points[last_one + 1..].iter().position(|point| point.4 > 0)?;
    let crossed = (last_one + 1..=first_two).find(|at| points[*at].3 <= 0.0)?;
    let (low, high) = (points[crossed - 1], points[crossed]);
    let part = low.3 / (low.3 - high.3);
    let work_ns = (low.0.ln() + part * (high.0 / low.0).ln()).exp();
    let at = |index: usize| (points[index].0, points[index].1, points[index].2);
    Some(Crossing { work_ns, last_one: at(last_one), first_two: at(first_two) })
}

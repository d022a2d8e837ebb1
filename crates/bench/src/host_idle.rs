//! How long a sleeping partner on another CPU takes to run after idling for a while.

use std::time::Duration;

use super::host_exits::nearest_two;
use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, View, check_answer, histogram, point};
use crate::row::quantile_us;
use model::vocabulary::host as ids;
use model::{Case, Params};
use sys::crew::{Partner, Wait};

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::IDLE,
    title: "Wake-up after idling",
    about: "Time to wake a process on another CPU that was idle for 20 µs, 200 µs or 2 ms. Waking idle CPUs is \
            common in real services.",
    reading: "Bare metal takes 2–5 µs, up to hundreds of µs after 2 ms if deep idle states are allowed. A guest that \
              exits to halt takes 5–60 µs. Fast after 20 µs but slow after 2 ms means that host (halt_poll_ns) or \
              guest (haltpoll) polls first. Fast after 2 ms too means that halting needs no exit, or idle=poll.",
    method: "One process spins for the time, while its partner sleeps on another CPU on which nothing else runs. \
             Then it wakes the partner with a futex, and the partner reads the clock as soon as it runs. The three \
             lengths alternate.",
    source: file!(),
    metrics: &[
        quantile_us(ids::metric::WAKE_P50, "wake-up delay, median", 0.5),
        quantile_us(ids::metric::WAKE_P99, "wake-up delay, 99th percentile", 0.99).aside(),
    ],
    params: &[Param::int(ids::param::IDLE_US, "sleep of the partner, µs", 1..=1_000_000)],
    view: &View::Table,
    from: Depth::Full,
    hidden: true,
    budget_s: Some(180.0),
    cases,
    points,
    run,
}];

const IDLE_US: [u64; 3] = [20, 200, 2000];
/// Wake-ups after each length in a pass: a hundred have a 99th percentile.
const WAKE_UPS: usize = 120;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let placement = match nearest_two(scope, ["waker", "sleeper"]) {
        Ok(placement) => placement,
        Err(why) => return vec![Candidate::unmet(bench.id, "same-llc", why)],
    };
    let each: u64 = IDLE_US.iter().map(|us| us + 100).sum();
    vec![Candidate::new(bench.id, placement, 60, 0.01 + WAKE_UPS as f64 * each as f64 / 1e6)]
}

fn points(_: &Case) -> Vec<Params> {
    IDLE_US.map(|us| point(ids::param::IDLE_US, us)).to_vec()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let clock = sampler.clock();
    let [_, sleeper, ..] = case.placement.seats.as_slice() else {
        anyhow::bail!("the case has only one CPU")
    };
    let mut partner = Partner::start(&sleeper.cpus, Wait::Sleep, || Ok(move |_| Ok(clock.now().to_bits())))?;
    let mut waits: [Vec<u64>; 3] = Default::default();
    let begin = clock.now();
    for round in 0..WAKE_UPS {
        // Each length stands in each place as often.
        for at in 0..IDLE_US.len() {
            let which = (at + round) % IDLE_US.len();
            let asleep = clock.now();
            let until = asleep + Duration::from_micros(IDLE_US[which]).as_nanos() as f64;
            while clock.now() < until {
                std::hint::spin_loop();
            }
            let told = clock.now();
            let ran = f64::from_bits(partner.ask(0)?);
            check_answer(ran >= told - CLOCKS_APART, || {
                format!("the partner ran {:.0} ns before its wake-up", told - ran)
            })?;
            waits[which].push((ran - told).max(1.0) as u64);
        }
    }
    let ns = clock.now() - begin;
    for (us, waits) in IDLE_US.into_iter().zip(waits) {
        let metrics = [ids::metric::WAKE_P50, ids::metric::WAKE_P99];
        sampler.histogram_at(point(ids::param::IDLE_US, us), &metrics, histogram(waits), ns)?;
    }
    Ok(())
}

/// Counters of two CPUs are this close, ns.
const CLOCKS_APART: f64 = 1e3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::{cases, visit_all};

    #[test]
    fn a_partner_is_woken_after_each_length() {
        let [case] = &cases(ids::IDLE, Depth::Full)[..] else { return };
        let samples = visit_all(case);
        assert_eq!(samples.len(), IDLE_US.len());
        assert!(samples.iter().all(|one| one.histograms[0].total() == WAKE_UPS as u64));
    }
}

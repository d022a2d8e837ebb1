//! What a wake-up takes, and what it consists of.

use std::sync::atomic::Ordering;

use super::{End, Pair, STAMPS, WAKEUPS_NS, channel};
use crate::{Sampler, check_answer, histogram};
use model::vocabulary::ipc as ids;
use model::{Case, Histogram, Params};

/// The wake-ups of two tasks with two pipes and nothing else to do, where this case's two sit: for
/// benchmarks whose own tokens carry no time.
pub fn wake_ups(case: &Case, sampler: &mut Sampler, at: Params) -> anyhow::Result<()> {
    /// Round trips that count how often both are switched, and round trips of a sample.
    const SOME: u64 = 256;
    let mut pair = Pair::start(&case.placement, sampler.clock(), channel::pipes)?;
    pair.settle(&case.placement)?;
    let before = pair.account();
    let trip_ns = pair.play(SOME)? / SOME as f64;
    pair.account().since(&before).emit(sampler, &at, case.placement.is_free())?;
    pair.emit_wake_ups(sampler, at, WAKEUPS_NS / trip_ns)?;
    pair.stop()
}

impl<E: End> Pair<E> {
    /// Round trips of a sample, about.
    pub(super) fn emit_wake_ups(
        &mut self,
        sampler: &mut Sampler,
        at: Params,
        trips: f64,
    ) -> anyhow::Result<()> {
        let trips = trips.clamp(64.0, STAMPS as f64) as usize;
        let parts =
            [ids::metric::WAKEUP_JITTER, ids::metric::WAKING, ids::metric::WAITING, ids::metric::SWITCHING];
        sampler.histograms(at, &[ids::metric::WAKEUP_P50, ids::metric::WAKEUP_P99], &parts, || {
            self.wake_ups(trips)
        })
    }

    /// How long pong took to run after each of `trips` tokens, as pong's clock saw it: from before
    /// the sending until it had the token. With the histogram and the sample's length, ns, it
    /// returns in µs the jitter (p99 less median) and the parts of the mean, which add up to it:
    /// *waking*, ping in its sending call, as far as pong had nothing yet; *waiting*, pong runnable
    /// and not running (the run delay that the kernel counts); *switching*, the rest: the interrupt
    /// and the way out of idle where another CPU is woken, the switch, the way out of the call.
    /// Where pong runs before ping's call is over (on one CPU it may preempt its waker there), the
    /// end of waking is not seen, and waking holds the switch, too.
    pub fn wake_ups(&mut self, trips: usize) -> anyhow::Result<(Histogram, f64, Vec<f64>)> {
        self.stamped_windows += 1;
        self.table.stamped().store(self.stamped_windows, Ordering::Release);
        let waited_before = self.counters[1].wait_ns();
        let begin = self.clock.now();
        let mut sending_ns = Vec::with_capacity(trips);
        for _ in 0..trips {
            let sent_at = self.clock.now();
            let stamp = sent_at.to_bits();
            self.pong.patiently("send a token to", || self.end.send(stamp))?;
            sending_ns.push((self.clock.now() - sent_at) as u64);
            let answer = self.pong.patiently("hear from", || self.end.receive())?;
            check_answer(answer == stamp + 1, || format!("stamp {stamp} came back as {answer}"))?;
        }
        let ns = self.clock.now() - begin;
        self.table.stamped().store(0, Ordering::Release);
        let waited = self.counters[1].wait_ns();
        let ages: Vec<u64> = (0..trips).map(|index| self.table.age(index).load(Ordering::Acquire)).collect();
        let mean_us = |all: &mut dyn Iterator<Item = u64>| all.sum::<u64>() as f64 / trips as f64 / 1e3;
        let whole = mean_us(&mut ages.iter().copied());
        let sending = mean_us(&mut ages.iter().zip(&sending_ns).map(|(age, sending)| *age.min(sending)));
        let histogram = histogram(ages);
        let quantile = |q: f64| histogram.quantile(q).unwrap_or(f64::NAN) / 1e3;
        let jitter = quantile(0.99) - quantile(0.5);
        // Without the kernel's run delay the parts are unknown.
        let parts = waited.zip(waited_before).map_or([f64::NAN; 3], |(now, then)| {
            let waiting = ((now - then) / trips as f64 / 1e3).clamp(0.0, whole);
            let waking = sending.min(whole - waiting);
            [waking, waiting, whole - waking - waiting]
        });
        Ok((histogram, ns, [jitter].into_iter().chain(parts).collect()))
    }
}

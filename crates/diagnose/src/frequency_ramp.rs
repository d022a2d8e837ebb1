//! The core clock in the first milliseconds after idling, in words.

use super::words::percent;
use super::{Evidence, Rule};
use machine::Hypervisor;
use model::vocabulary::cpu;
use model::vocabulary::host as ids;
use model::{Fact, Finding, Severity};
use stats::analysis::Judged;
use stats::order::Interval;

pub const RULES: &[Rule] = &[AFTER_IDLE];

const AFTER_IDLE: Rule = Rule {
    id: ids::rule::CLOCK_AFTER_IDLE,
    title: "A core runs at another clock right after idling",
    topic: "clock",
    meaning: "A core that idled may take milliseconds to reach its steady clock, or run above it for a while \
        (turbo). Steady benchmarks show neither. A server that answers a request and sleeps again runs \
        mostly in these milliseconds.",
    action: "For short requests use the governor performance, energy_performance_preference performance, or \
        shallower idle states (cpupower idle-set -D 10). See it: assay run --only cpu.frequency-ramp --new",
    when: "The 95 % interval of the first step's clock lies more than 2 % below or above the steady clock. A \
        warning from 10 % below for 1 ms or more, else a note.",
    how: "cpu.frequency-ramp measures the clock at steps of 0.05–100 ms after a wake-up, by a timed loop \
        alone. The steady clock is the last step's, or that of cpu.clock where the last step lies a tenth \
        below it. The finding names the steps that differ from the first on without a gap, and their mean \
        clock, weighted by length. Of several lengths of idling it names the one that loses most time.",
    calm: "full clock at once after idling",
    looked_at: "timed loops",
    source: file!(),
    check: after_idle,
};

/// Part of the steady clock within which a clock is the same.
const MAX_SAME: f64 = 0.02;
/// A clock lower by this part for this long, ms, is a warning.
const MIN_WARNING_SHARE: f64 = 0.1;
const MIN_WARNING_MS: f64 = 1.0;

/// The clock after one length of idling.
#[derive(Clone, Debug)]
pub struct Wake {
    pub idle_ms: f64,
    /// The first step, and the last, GHz.
    pub first: (f64, Interval),
    pub first_ms: f64,
    pub steady: (f64, Interval),
    /// What the first milliseconds run at, where that differs.
    pub odd: Option<FirstStretch>,
    key: String,
}

/// First milliseconds at another clock than the steady one.
#[derive(Clone, Debug)]
pub struct FirstStretch {
    pub until_ms: f64,
    /// Mean over them, GHz; its interval is that of their ends, each as low and as high as it may
    /// be.
    pub ghz: (f64, Interval),
}

impl Wake {
    /// One sentence, with intervals.
    pub fn sentence(&self) -> String {
        let idle = millis(self.idle_ms);
        match &self.odd {
            Some(odd) => format!(
                "The first {} ms after {idle} ms of idling run at {} GHz instead of {} GHz.",
                millis(odd.until_ms),
                clock(&odd.ghz),
                clock(&self.steady)
            ),
            None => format!(
                "After {idle} ms of idling the clock is the same from the first {} ms on: {} GHz.",
                millis(self.first_ms),
                clock(&self.steady)
            ),
        }
    }

    fn headline(&self, odd: &FirstStretch) -> String {
        format!(
            "The core runs at {:.2} instead of {:.2} GHz for {} ms after idling for {} ms",
            odd.ghz.0,
            self.steady.0,
            millis(odd.until_ms),
            millis(self.idle_ms)
        )
    }

    /// Time lost (below 0: won) by work that needs all of the odd milliseconds, ms.
    fn lost_ms(&self) -> f64 {
        self.odd.as_ref().map_or(0.0, |odd| odd.until_ms * (1.0 - odd.ghz.0 / self.steady.0))
    }
}

fn millis(ms: f64) -> String {
    format!("{}", (ms * 1e3).round() / 1e3)
}

/// `1.37 (1.36–1.38)`.
fn clock((ghz, interval): &(f64, Interval)) -> String {
    format!("{ghz:.2} ({:.2}–{:.2})", interval.low, interval.high)
}

/// The clock after each length of idling that was measured, shortest first. Empty: none was, or
/// none has intervals.
pub fn wakes(evidence: &Evidence) -> Vec<Wake> {
    let mut wakes: Vec<Wake> = (0..evidence.run.header.plan.len())
        .filter(|case| evidence.run.header.plan[*case].case.bench == cpu::FREQUENCY_RAMP)
        .filter_map(|case| wake(evidence, case as u32))
        .collect();
    wakes.sort_by(|one, other| one.idle_ms.total_cmp(&other.idle_ms));
    wakes
}

fn wake(evidence: &Evidence, case: u32) -> Option<Wake> {
    let clocks = |judged: &&Judged| judged.series.metric.name == cpu::metric::CLOCK;
    let mut steps: Vec<(f64, f64, Interval)> = Vec::new();
    for judged in evidence.series_of(case).filter(clocks) {
        let at_us = judged.series.point.get(cpu::param::AT_US)?.number()?;
        let figure = judged.analysis.figure()?;
        steps.push((at_us / 1e3, figure.median, figure.interval?));
    }
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (&first, &last) = (steps.first()?, steps.last()?);
    let plan = &evidence.run.header.plan[case as usize].case;
    let series = evidence.series_of(case).find(clocks)?;
    // A ramp that ends far below the clock of the run never reached it.
    let kept = evidence.find(cpu::CLOCK, "one-cpu", cpu::metric::CLOCK);
    let kept =
        kept.and_then(|judged| Some((judged.analysis.figure()?.median, judged.analysis.figure()?.interval?)));
    let steady = kept
        .filter(|(_, kept)| last.2.high < (1.0 - MIN_WARNING_SHARE) * kept.low)
        .unwrap_or((last.1, last.2));
    Some(Wake {
        idle_ms: plan.params.get(cpu::param::IDLE_MS)?.number()?,
        first: (first.1, first.2),
        first_ms: first.0,
        steady,
        odd: odd(&steps, steady.1),
        key: series.series.key.clone(),
    })
}

fn odd(steps: &[(f64, f64, Interval)], steady: Interval) -> Option<FirstStretch> {
    let is_below = |interval: &Interval| interval.high < (1.0 - MAX_SAME) * steady.low;
    let is_above = |interval: &Interval| interval.low > (1.0 + MAX_SAME) * steady.high;
    let (_, _, first) = steps.first()?;
    let alike: &dyn Fn(&Interval) -> bool = match (is_below(first), is_above(first)) {
        (true, _) => &is_below,
        (_, true) => &is_above,
        _ => return None,
    };
    let odd = steps.iter().take_while(|(_, _, interval)| alike(interval));
    let (mut until_ms, mut sums) = (0.0, [0.0; 3]);
    for (end, middle, interval) in odd {
        for (sum, ghz) in sums.iter_mut().zip([*middle, interval.low, interval.high]) {
            *sum += ghz * (end - until_ms);
        }
        until_ms = *end;
    }
    let [ghz, low, high] = sums.map(|sum| sum / until_ms);
    Some(FirstStretch { until_ms, ghz: (ghz, Interval { low, high }) })
}

fn after_idle(evidence: &Evidence) -> Option<Vec<Finding>> {
    let wakes = wakes(evidence);
    let most = wakes.iter().max_by(|one, other| one.lost_ms().abs().total_cmp(&other.lost_ms().abs()))?;
    let Some(odd) = &most.odd else { return Some(Vec::new()) };
    let part = 1.0 - odd.ghz.0 / most.steady.0;
    let facts = wakes.iter().map(|wake| Fact::new("clock after idling", wake.sentence(), &wake.key));
    let lost = if part > 0.0 {
        format!("{:.2} ms in {} ms, {} of the clock", most.lost_ms(), millis(odd.until_ms), percent(part))
    } else {
        format!("none: the clock is {} higher at first", percent(-part))
    };
    let guest = matches!(evidence.machine.hypervisor, Hypervisor::Guest(_));
    let cause = match (guest, part > 0.0) {
        (true, _) => "The host of this guest sets the clock and idles the core.",
        (false, true) => "Governor, energy bias or a deep idle state left a low clock, which rises slowly.",
        (false, false) => "Turbo lets a core that was idle run above the clock that it keeps.",
    };
    let is_grave = part >= MIN_WARNING_SHARE && odd.until_ms >= MIN_WARNING_MS;
    Some(vec![
        Finding::of(
            AFTER_IDLE.id,
            if is_grave { Severity::Warning } else { Severity::Note },
            most.headline(odd),
        )
        .cause(cause)
        .facts(facts.chain([Fact::new("time lost", lost, "steps of that clock")]))
        .confirm(format!("assay run --only {} --new", cpu::FREQUENCY_RAMP))
        .advice(if part > 0.0 {
            "For short requests use the governor performance, or shallower idle states (cpupower idle-set -D \
             10)."
        } else {
            "Judge steady load by the steady clock."
        }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(end_ms: f64, ghz: f64) -> (f64, f64, Interval) {
        (end_ms, ghz, Interval { low: ghz - 0.01, high: ghz + 0.01 })
    }

    #[test]
    fn only_a_first_stretch_outside_two_percent_is_odd() {
        let steady = Interval { low: 2.99, high: 3.01 };
        let found =
            odd(&[step(0.05, 1.4), step(1.0, 1.4), step(2.0, 2.8), step(5.0, 3.0)], steady).expect("odd");
        assert_eq!(found.until_ms, 2.0);
        assert!((found.ghz.0 - 2.1).abs() < 1e-9 && found.ghz.1.contains(2.1), "{found:?}");
        // Later dips do not count, nor do differences up to 2 %.
        assert!(odd(&[step(0.05, 2.96), step(1.0, 1.4), step(2.0, 3.0)], steady).is_none());
        let above = odd(&[step(0.05, 3.6), step(1.0, 1.4), step(2.0, 3.0)], steady).expect("odd");
        assert_eq!(above.until_ms, 0.05);
        assert!(odd(&[], steady).is_none());
    }
}

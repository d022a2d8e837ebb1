//! What interrupting another CPU, setting a timer and waking up cost a guest, beside an exit.

use super::{HostRow, RowGrade, value};
use diagnose::{Diagnosis, Pauses};
use model::vocabulary::{BenchId, MetricId, host};
use model::{figure, rough_figure};
use stats::analysis::Judged;

/// A figure with its 95 % interval.
#[derive(Clone, Copy)]
struct CostEstimate {
    mid: f64,
    low: f64,
    high: f64,
}

fn known(diagnosis: &Diagnosis, bench: BenchId, metric: MetricId) -> Option<CostEstimate> {
    let own = |judged: &&Judged| judged.series.case.bench == bench && judged.series.metric.name == metric;
    let estimate = diagnosis.series.iter().find(own)?.analysis.figure()?;
    let interval = estimate.interval?;
    Some(CostEstimate { mid: estimate.median, low: interval.low, high: interval.high })
}

/// How many exits something costs: the figure over the price of one, ends against ends.
fn in_exits(cost: CostEstimate, exit: CostEstimate) -> Option<CostEstimate> {
    let positive = cost.low.is_finite() && exit.low > 0.0;
    positive.then(|| CostEstimate {
        mid: cost.mid / exit.mid,
        low: cost.low / exit.high,
        high: cost.high / exit.low,
    })
}

/// Below this no exit is part of it, and above that there are several.
const NO_EXIT: f64 = 0.8;
const SEVERAL_EXITS: f64 = 2.0;

pub fn ipis(diagnosis: &Diagnosis, pauses: &Pauses) -> HostRow {
    let Some(cost) = known(diagnosis, host::IPI, host::metric::INTERRUPT) else {
        return HostRow::missing("IPIs", diagnosis, host::IPI);
    };
    let exit = known(diagnosis, host::IPI, host::metric::EXIT);
    priced("IPIs", cost, exit, pauses, |exits| match exits {
        CostEstimate { high, .. } if high < NO_EXIT => Some((RowGrade::Good, "virtual APIC")),
        CostEstimate { low, .. } if low > SEVERAL_EXITS => Some((RowGrade::Poor, "exits")),
        _ => None,
    })
}

/// One of two writes of the timer costs at least this part of an exit where it is one, which may
/// be a fast one, and less than that where it is none.
const FAST_EXIT: f64 = 0.25;
const NO_WRITE_EXIT: f64 = 0.12;

pub fn timer_writes(diagnosis: &Diagnosis, pauses: &Pauses) -> HostRow {
    let Some(both) = known(diagnosis, host::TIMER, host::metric::REPROGRAM) else {
        return HostRow::missing("timer writes", diagnosis, host::TIMER);
    };
    let cost = CostEstimate { mid: both.mid / 2.0, low: both.low / 2.0, high: both.high / 2.0 };
    let exit = known(diagnosis, host::TIMER, host::metric::EXIT);
    priced("timer writes", cost, exit, pauses, |exits| match exits {
        CostEstimate { high, .. } if high < NO_WRITE_EXIT => Some((RowGrade::Good, "no exit")),
        CostEstimate { low, .. } if low > FAST_EXIT => Some((RowGrade::Fact, "exits")),
        _ => None,
    })
}

/// The row of a cost, read by how many exits it is; `None`: the interval decides nothing.
fn priced(
    what: &'static str,
    cost: CostEstimate,
    exit: Option<CostEstimate>,
    pauses: &Pauses,
    reading_of: impl Fn(CostEstimate) -> Option<(RowGrade, &'static str)>,
) -> HostRow {
    let ns = ns_words(cost);
    if pauses.guest == Some(false) {
        return HostRow::new(what, RowGrade::Fact, "no host", ns);
    }
    let Some(exits) = exit.and_then(|exit| in_exits(cost, exit)) else {
        return HostRow::cannot_tell(what, format!("{ns}; no exit to compare with"));
    };
    let reading = format!("{ns}; {} exits", range_words(exits));
    match reading_of(exits) {
        Some((grade, word)) => HostRow::new(what, grade, word, reading),
        None => HostRow::cannot_tell(what, reading),
    }
}

/// `2.4 µs`: what it costs; how well that is known, its exits say.
fn ns_words(cost: CostEstimate) -> String {
    rough_figure(cost.mid / 1e3, "us")
}

fn range_words(exits: CostEstimate) -> String {
    format!("{}–{}", rough_figure(exits.low, ""), rough_figure(exits.high, ""))
}

/// Above this ratio of the wake-up after long idling to that after short, the CPU polled at first
/// and was let go only later.
const LET_GO: f64 = 1.5;

pub fn idle(diagnosis: &Diagnosis) -> HostRow {
    let row = |word: &str, reading: String| HostRow::new("idle", RowGrade::Fact, word, reading);
    let after = |us: i64| {
        let own = move |judged: &Judged| {
            judged.series.point.get(host::param::IDLE_US).and_then(model::Value::int) == Some(us)
        };
        value(diagnosis, host::IDLE, host::metric::WAKE_P50, own)
    };
    let (Some((short, unit)), Some((long, _))) = (after(20), after(2000)) else {
        return HostRow::missing("idle", diagnosis, host::IDLE);
    };
    let text = |path| diagnosis.run.header.snapshot.text(path);
    let governor = text("/sys/devices/system/cpu/cpuidle/current_governor").unwrap_or("unknown");
    let driver = text("/sys/devices/system/cpu/cpuidle/current_driver").unwrap_or("unknown");
    let reading =
        format!("{}, after 2 ms {}; {driver}, {governor}", figure(short, &unit), figure(long, &unit));
    row(if long > LET_GO * short { "polls first" } else { "one speed" }, reading)
}

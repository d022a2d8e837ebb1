//! Cores that are slower than the others of their kind.

use std::collections::BTreeMap;

use super::chunks::index;
use super::ladder::curves;
use super::words::{figure, percent};
use super::{Evidence, Rule};
use model::vocabulary::host::rule;
use model::vocabulary::memory as ids;
use model::{Fact, Finding};
use stats::analysis::Judged;
use stats::order::{Interval, median};

pub const RULES: &[Rule] = &[ODD];

const ODD: Rule = Rule {
    id: rule::ODD_CORE,
    title: "A core is slower than the others",
    topic: "cores",
    meaning: "All cores of a kind do the same work in their own L1 at once, so only the core itself can \
        differ. A slow core is throttled, shares its core with other work, or has a defect. Work that waits \
        for its slowest part runs at its speed.",
    action: "Look at the core's thermal_throttle counters and at the load of its sibling, and keep such work \
        off it. See it: assay run --only memory.cores --profile standard --new",
    when: "A core and its whole 95 % interval lie more than 3 % below the median of its kind. Its distance \
        also exceeds what the slowest of as many healthy cores reaches once in 10,000 times.",
    how: "A kind is cores of one name with one highest frequency. The distance is in robust standard \
        deviations. Its bound is 12.7 for 10 cores, 6.3 for 20, 4.8 for 50, 4.1 for 200 and 3.9 for 1000. Of \
        three to nine cores the interval must lie below all others instead. Of two cores the rule can only \
        say that they differ.",
    calm: "no core slower than the others",
    looked_at: "L1 of each core",
    source: file!(),
    check: odd,
};

/// Smaller differences do not count.
const MIN_SLOWDOWN: f64 = 0.03;

/// Pairs of a number of healthy cores and how many robust standard deviations the slowest of them
/// lies below their median once in 10,000 times (simulated).
const SLOWEST_HEALTHY: [(f64, f64); 5] =
    [(10.0, 12.7), (20.0, 6.3), (50.0, 4.8), (200.0, 4.1), (1000.0, 3.9)];

struct Core<'a> {
    cpu: u32,
    value: f64,
    interval: Interval,
    judged: &'a Judged,
}

fn odd(evidence: &Evidence) -> Option<Vec<Finding>> {
    let curve =
        curves(evidence, ids::CORES, ids::metric::BANDWIDTH, ids::param::CPU, |_| true).into_iter().next()?;
    let mut groups: BTreeMap<(String, Option<u64>), Vec<Core>> = BTreeMap::new();
    for judged in curve.series {
        let Some(cpu) = index(&judged.series.point, ids::param::CPU) else { continue };
        let Some(estimate) = &judged.analysis.estimate else { continue };
        let Some(interval) = estimate.interval else { continue };
        let core = Core { cpu, value: estimate.median, interval, judged };
        groups.entry(kind(evidence, cpu)).or_default().push(core);
    }
    groups.values_mut().for_each(|cores| cores.sort_by_key(|core| core.cpu));
    groups.retain(|_, cores| cores.len() > 1);
    if groups.is_empty() {
        return None;
    }
    Some(groups.values().flat_map(|cores| group(cores)).collect())
}

/// Name of a CPU's kind, and the highest frequency of its policy, kHz.
fn kind(evidence: &Evidence, cpu: u32) -> (String, Option<u64>) {
    let kinds = &evidence.machine.cpus.kinds;
    let name =
        kinds.iter().find(|(_, cpus)| cpus.contains(cpu)).map_or(String::new(), |(name, _)| name.clone());
    let snapshot = &evidence.run.header.snapshot;
    let places = [format!("cpufreq/policy{cpu}"), format!("cpu{cpu}/cpufreq")];
    let highest = |place| snapshot.number(&format!("/sys/devices/system/cpu/{place}/cpuinfo_max_freq"));
    (name, places.iter().find_map(highest))
}

fn group(cores: &[Core]) -> Vec<Finding> {
    if let [one, other] = cores {
        return two_cores(one, other).into_iter().collect();
    }
    let values: Vec<f64> = cores.iter().map(|core| core.value).collect();
    let Some(middle) = median(&values) else { return Vec::new() };
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let spread = 1.4826 * median(&deviations).unwrap_or(0.0);
    let below = |core: &&Core| {
        let far =
            core.value < (1.0 - MIN_SLOWDOWN) * middle && core.interval.high < (1.0 - MIN_SLOWDOWN) * middle;
        let others = cores.iter().filter(|other| other.cpu != core.cpu);
        let alone = match cores.len() {
            0..10 => {
                others.fold(f64::INFINITY, |least, other| least.min(other.interval.low)) > core.interval.high
            }
            n => middle - core.value > slowest_healthy(n as f64) * spread,
        };
        far && alone
    };
    cores.iter().filter(below).map(|core| finding(core, middle, cores.len())).collect()
}

/// The bound for `n` cores, interpolated by the logarithm of their number.
fn slowest_healthy(n: f64) -> f64 {
    let above = SLOWEST_HEALTHY.iter().position(|(count, _)| *count >= n);
    match above {
        None => SLOWEST_HEALTHY[SLOWEST_HEALTHY.len() - 1].1,
        Some(0) => SLOWEST_HEALTHY[0].1,
        Some(at) => {
            let ((few, high), (many, low)) = (SLOWEST_HEALTHY[at - 1], SLOWEST_HEALTHY[at]);
            high + (low - high) * (n / few).ln() / (many / few).ln()
        }
    }
}

fn finding(core: &Core, middle: f64, count: usize) -> Finding {
    let unit = &core.judged.series.metric.unit;
    let (cpu, slower) = (core.cpu, percent(1.0 - core.value / middle));
    let headline = format!(
        "CPU {cpu} is {slower} slower than the other cores. Look at its temperature and its sibling."
    );
    let interval = format!("{}–{}", figure(core.interval.low, ""), figure(core.interval.high, unit));
    Finding::warning(ODD.id, headline)
        .cause("All cores do the same work in their own L1: this one is throttled, shared or faulty.")
        .fact(format!("CPU {cpu}"), figure(core.value, unit), &core.judged.series.key)
        .fact(format!("median of {count} cores of its kind"), figure(middle, unit), ids::CORES)
        .fact("its 95 % interval", interval, &core.judged.series.key)
        .confirm("assay run --only memory.cores --profile standard --new")
        .advice("If it is slow again, look at its thermal_throttle counters and its sibling's load.")
        .explains([&core.judged.series.key])
}

/// Of two, neither is known to be the healthy one.
fn two_cores(one: &Core, other: &Core) -> Option<Finding> {
    let (slow, fast) = if one.value <= other.value { (one, other) } else { (other, one) };
    if slow.interval.high >= (1.0 - MIN_SLOWDOWN) * fast.interval.low {
        return None;
    }
    let unit = &slow.judged.series.metric.unit;
    let fact = |core: &Core| {
        Fact::new(format!("CPU {}", core.cpu), figure(core.value, unit), &core.judged.series.key)
    };
    let (cpu, other_cpu, slower) = (slow.cpu, fast.cpu, percent(1.0 - slow.value / fast.value));
    let headline = format!(
        "CPU {cpu} is {slower} slower than CPU {other_cpu}. With two cores it is unknown which one is at fault."
    );
    Some(
        Finding::warning(ODD.id, headline)
            .cause("Both do the same work in their own L1. With two cores there is no majority.")
            .facts([fact(slow), fact(fast)])
            .confirm("assay run --only memory.cores --profile standard --new")
            .advice("Compare with another host of the same model; in a guest, at another hour.")
            .explains([&slow.judged.series.key, &fast.judged.series.key]),
    )
}

#[cfg(test)]
mod tests {
    use super::slowest_healthy;

    #[test]
    fn the_bound_falls_with_the_number_of_cores() {
        assert_eq!([10.0, 20.0, 50.0, 1000.0, 4000.0].map(slowest_healthy), [12.7, 6.3, 4.8, 3.9, 3.9]);
        assert!(slowest_healthy(14.0) < 12.7 && slowest_healthy(14.0) > 6.3);
    }
}

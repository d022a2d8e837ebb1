//! Clocks: the one that keeps time, and the core's own.

use super::tracks;
use super::words::{figure, percent};
use super::{Evidence, Rule};
use machine::Frequency;
use model::vocabulary as ids;
use model::vocabulary::MetricId;
use model::{Event, Fact, Finding, Form, Grade, Visit};
use stats::analysis::Judged;
use stats::order::{Interval, quantile};

pub const RULES: &[Rule] = &[CLOCKSOURCE, GOVERNOR, TURBO, MOVING, CHECK];

const CLOCKSOURCE: Rule = Rule {
    id: ids::host::rule::UNSTABLE_CLOCKSOURCE,
    title: "The kernel reads the time from a slow clock",
    topic: "clock source",
    meaning: "Linux reads the time from the CPU's own counter where that is steady (tsc on x86, \
        arch_sys_counter on ARM). Here each reading is a slow device access or a system call, up to 100 \
        times slower. Every program that reads the time pays for it.",
    action: "Look for 'Marking TSC unstable' and its reason in the kernel's log, and for tsc=unstable on the \
        command line. See it: dmesg | grep -i -e tsc -e clocksource",
    when: "The current clock source is hpet, acpi_pm, pit, jiffies or refined-jiffies.",
    how: "Paravirtual clocks (kvm-clock, hyperv_clocksource_tsc_page, xen) are read without a system call \
        and do not count. Assay times its own samples by the raw clock.",
    calm: "clock source is the CPU counter",
    looked_at: "sysfs clocksource",
    source: file!(),
    check: clocksource,
};

pub const SLOW_SOURCES: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

fn clocksource(evidence: &Evidence) -> Option<Vec<Finding>> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = evidence.machine.clock.current.as_deref()?;
    if !SLOW_SOURCES.contains(&current) {
        return Some(Vec::new());
    }
    let available = evidence.machine.clock.available.join(" ");
    let counter_lost = !evidence.machine.clock.available.iter().any(|source| source == "tsc");
    let headline =
        format!("The kernel reads the time from `{current}`, not the CPU's counter. Each reading is slow.");
    Some(vec![
        Finding::warning(CLOCKSOURCE.id, headline)
            .cause(if counter_lost {
                "The kernel found the time-stamp counter unstable, or there is none."
            } else {
                "The time-stamp counter is available, but the system is set to a slow clock."
            })
            .fact("current clocksource", current, CURRENT)
            .fact("available", available, CURRENT.replace("current", "available"))
            .fact(
                "samples were timed by",
                format!(
                    "{}, {:.0} ns a reading",
                    evidence.run.header.clock.source, evidence.run.header.clock.cost_ns
                ),
                "run header",
            )
            .confirm("dmesg | grep -i -e tsc -e clocksource")
            .advice("Look for 'Marking TSC unstable' in the kernel's log, and for tsc=unstable."),
    ])
}

const GOVERNOR: Rule = Rule {
    id: ids::host::rule::SLOW_GOVERNOR,
    title: "A frequency governor keeps cores slow",
    topic: "governor",
    meaning: "The governor keeps cores at a low clock, or raises the clock only after a load has lasted. \
        Short work is slow, and figures measure the governor.",
    action: "Measure with the governor performance, and restore the old one afterwards (cpupower \
        frequency-set -g performance). See it: grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    when: "A measured CPU has powersave or userspace under a driver that takes it literally (acpi-cpufreq, \
        cppc_cpufreq). Or powersave, ondemand, conservative or schedutil kept the measured clock below 95 % \
        of the highest.",
    how: "Under intel_pstate and amd-pstate-epp powersave is the usual dynamic policy, so there only the \
        measured clock counts. The highest clock is cpuinfo_max_freq.",
    calm: "governor allows the full clock",
    looked_at: "cpufreq",
    source: file!(),
    check: governor,
};

/// Governors that hold the clock where it is low, unless the driver takes them for its own policy.
pub const LOW_CLOCK_GOVERNORS: [&str; 2] = ["powersave", "userspace"];

/// Whether the driver has a policy of its own that it calls powersave.
pub fn is_dynamic(frequency: &Frequency) -> bool {
    let driver = frequency.driver.as_deref().unwrap_or("unknown");
    driver.starts_with("intel_pstate") || driver.contains("epp") || driver == "intel_cpufreq"
}

fn governor(evidence: &Evidence) -> Option<Vec<Finding>> {
    let frequency = &evidence.machine.frequency;
    if frequency.governors.is_empty() {
        return None;
    }
    let measured = evidence.run.header.plan.iter().filter(|planned| planned.unmet.is_none());
    let seats = measured.flat_map(|planned| planned.case.placement.cpus().iter().collect::<Vec<u32>>());
    let cpus: model::CpuSet = seats.collect();
    let driver = frequency.driver.as_deref().unwrap_or("unknown");
    let dynamic = is_dynamic(frequency);
    let clock_khz = evidence.core_clock_ghz().map(|ghz| ghz * 1e6);
    let highest_khz = frequency.max_khz.map(|khz| khz as f64);
    let slow = clock_khz.zip(highest_khz).is_some_and(|(clock, highest)| clock < 0.95 * highest);
    let mut findings = Vec::new();
    for (name, governed) in &frequency.governors {
        let affected = governed.intersection(&cpus);
        let literal = LOW_CLOCK_GOVERNORS.contains(&name.as_str()) && !dynamic;
        let late = matches!(name.as_str(), "powersave" | "ondemand" | "conservative" | "schedutil") && slow;
        if affected.is_empty() || !(literal || late) {
            continue;
        }
        let ghz = |khz: f64| format!("{:.2} GHz", khz / 1e6);
        let headline = match (clock_khz, highest_khz) {
            (Some(clock), Some(highest)) if clock < highest => format!(
                "Governor `{name}` keeps the clock at {:.2} of {:.2} GHz. Use `performance` to measure.",
                clock / 1e6,
                highest / 1e6
            ),
            _ => {
                format!("Governor `{name}` sets the clock of CPUs {affected}. Use `performance` to measure.")
            }
        };
        findings.push(
            Finding::warning(GOVERNOR.id, headline)
                .cause(if literal {
                    "This governor holds the cores at their lowest clock."
                } else {
                    "This governor raises the clock late; the cores ran below their highest clock."
                })
                .fact("governor", format!("{name} on CPUs {affected}"), "/sys/devices/system/cpu/cpufreq")
                .fact("driver", driver, "/sys/devices/system/cpu/cpufreq")
                .facts(clock_khz.map(|khz| Fact::new("measured clock", ghz(khz), "cpu.clock@one-cpu#clock")))
                .facts(highest_khz.map(|khz| Fact::new("highest clock", ghz(khz), "cpuinfo_max_freq")))
                .facts(
                    frequency.turbo.map(|on| Fact::new("turbo", if on { "allowed" } else { "off" }, "sysfs")),
                )
                .confirm("grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c")
                .advice(
                    "Measure with cpupower frequency-set -g performance, and restore the governor \
                     afterwards.",
                )
                .explains(evidence.series.iter().map(|judged| judged.series.key.clone())),
        );
    }
    Some(findings)
}

const TURBO: Rule = Rule {
    id: ids::host::rule::TURBO_OFF,
    title: "Turbo is switched off",
    topic: "turbo",
    meaning: "Without turbo the cores run at their base clock. That is steadier, and slower than the host \
        does as it is sold. Some operators switch turbo off on purpose.",
    action: "Compare only with hosts whose turbo is off too. Or allow it (no_turbo to 0, boost to 1) and \
        measure again. See it: grep . /sys/devices/system/cpu/intel_pstate/no_turbo",
    when: "A note if intel_pstate/no_turbo is 1 or cpufreq/boost is 0.",
    how: "",
    calm: "turbo is allowed",
    looked_at: "no_turbo, boost",
    source: file!(),
    check: turbo,
};

fn turbo(evidence: &Evidence) -> Option<Vec<Finding>> {
    let frequency = &evidence.machine.frequency;
    if frequency.turbo? {
        return Some(Vec::new());
    }
    let ghz = |ghz: f64| format!("{ghz:.2} GHz");
    let base = frequency.base_khz.map(|khz| khz as f64 / 1e6);
    let highest = frequency.max_khz.map(|khz| khz as f64 / 1e6);
    let clock = evidence.core_clock_ghz();
    let headline = match clock.or(base) {
        Some(ghz) => {
            format!("Turbo is off, so the core runs at {ghz:.2} GHz. Compare with hosts without turbo only.")
        }
        None => "Turbo is off (`no_turbo` or `boost`). Compare with hosts without turbo only.".to_string(),
    };
    Some(vec![
        Finding::note(TURBO.id, headline)
            .cause("A setting of the system or the firmware keeps the cores at their base clock.")
            .fact("turbo", "off", "/sys/devices/system/cpu")
            .facts(base.map(|base| Fact::new("base clock", ghz(base), "base_frequency")))
            .facts(highest.map(|highest| Fact::new("highest clock", ghz(highest), "cpuinfo_max_freq")))
            .facts(clock.map(|clock| Fact::new("measured clock", ghz(clock), "cpu.clock@one-cpu#clock")))
            .confirm(
                "grep . /sys/devices/system/cpu/intel_pstate/no_turbo /sys/devices/system/cpu/cpufreq/boost",
            )
            .advice("Compare with hosts without turbo, or allow it (no_turbo to 0, boost to 1)."),
    ])
}

const MOVING: Rule = Rule {
    id: ids::host::rule::MOVING_CLOCK,
    title: "The core clock changed during the run",
    topic: "clock",
    meaning: "The core did not keep one clock. Turbo budgets, power limits, temperature and, in a guest, \
        other guests change it. Figures in ns that depend on the core vary with it; figures in cycles do \
        not.",
    action: "On bare metal look for power and thermal limits with turbostat. In a guest only a dedicated \
        host helps. See it: assay run --only cpu.clock --profile standard",
    when: "The clock changed by more than 5 %, and a figure below grade A follows it or no common clock \
        fits. Or it changed by more than 10 % inside passes, or by more than 5 % after a change of governor.",
    how: "A short chain of dependent additions after each sample measures the clock; 5 % is from the 5th to \
        the 95th percentile of 60 samples or more. A clock that changes between passes alone is a fact of \
        the run: figures that depend on the core are given at one clock. A figure follows the clock where \
        Spearman's rank correlation has p < 0.01 after adjustment; it carries the clock as its cause. No \
        common clock fits where times do not follow the clock that was read. Inside passes means in a \
        quarter of them: a reading after a sample is then not that sample's clock. After a change of \
        governor means between two passes.",
    calm: "core clock steady while measured",
    looked_at: "clock by sample",
    source: file!(),
    check: moving,
};

/// 5th percentile, median and 95th percentile of the core clock after each sample, GHz; `None` for
/// fewer than 60 samples.
pub fn movement(evidence: &Evidence) -> Option<[f64; 3]> {
    let clocks = evidence.clocks_ghz();
    if clocks.len() < 60 {
        return None;
    }
    Some([quantile(&clocks, 0.05)?, quantile(&clocks, 0.5)?, quantile(&clocks, 0.95)?])
}

fn moving(evidence: &Evidence) -> Option<Vec<Finding>> {
    let [low, middle, high] = movement(evidence)?;
    let spread = (high - low) / middle;
    let step = largest_step(&tracks::visit_clocks(evidence.run));
    let changed: Vec<&Event> = evidence.run.events.iter().filter(|event| event.kind == "governor").collect();
    let stepped = step.filter(|step| step.size > 0.05);
    let (governed, inside) = (stepped.is_some() && !changed.is_empty(), moved_inside(evidence) > 0.10);
    if spread <= 0.05 && !governed && !inside {
        return Some(Vec::new());
    }
    let closed = spread > 0.05 && evidence.clock.is_some_and(|clock| clock.common().is_none());
    let doubted =
        |judged: &&Judged| judged.series.metric.headline && judged.analysis.verdict.grade != Grade::A;
    let decides = spread > 0.05 && goes_with_it(evidence).any(|judged| doubted(&judged));
    if !(governed || inside || closed || decides) {
        // It moved, but no figure depends on it: neither a finding nor a passed check.
        return None;
    }
    let moved = stepped.map_or(spread, |step| step.size.max(spread));
    let remark = if changed.is_empty() { "" } else { " The governor changed during the run." };
    let headline = format!(
        "The clock moved by {} ({low:.2}–{high:.2} GHz). Times in ns vary with it; cycles do not.",
        percent(moved)
    );
    Some(vec![Finding::note(MOVING.id, headline)
        .cause(format!(
            "Figures in ns (L1, L2, system calls) inherit the spread; those in core cycles do not.{remark}"
        ))
        .fact("clock, 5–95 %", format!("{low:.2}–{high:.2} GHz"), "covariate clock_ghz")
        .fact("median", format!("{middle:.2} GHz"), "covariate clock_ghz")
        .fact("samples", evidence.clocks_ghz().len(), "passes")
        .facts(stepped.map(|step| {
            let words = format!("{:.2} to {:.2} GHz at {:.1} s", step.from, step.to, step.at_ms / 1e3);
            Fact::new("largest step between passes", words, "covariate clock_ghz, median of each pass")
        }))
        .facts(changed.iter().take(3).map(|event| {
            let words = format!("{} (at {:.1} s)", event.text, event.at_ms / 1e3);
            Fact::new("governor", words, "scaling_governor")
        }))
        .confirm("assay run --only cpu.clock --profile standard")
        .advice("Look for power or thermal limits (turbostat); a guest needs a dedicated host.")
        .explains(goes_with_it(evidence).map(|judged| judged.series.key.clone()))])
}

/// From the clock of one pass to that of the next.
#[derive(Clone, Copy)]
struct Step {
    from: f64,
    to: f64,
    at_ms: f64,
    /// Relative to the slower of the two.
    size: f64,
}

fn largest_step(clocks: &[(f64, f64)]) -> Option<Step> {
    let step = |pair: &[(f64, f64)]| {
        let ((_, from), (at_ms, to)) = (pair[0], pair[1]);
        Step { from, to, at_ms, size: (to - from).abs() / from.min(to) }
    };
    clocks.windows(2).map(step).max_by(|one, other| one.size.total_cmp(&other.size))
}

/// By which share the clock moved inside each pass, from its slowest sample to its fastest: a
/// quarter of the passes moved by this or more.
fn moved_inside(evidence: &Evidence) -> f64 {
    let moved = |visit: &Visit| {
        let clocks = tracks::clocks_of(visit);
        let least = clocks.iter().copied().reduce(f64::min)?;
        Some(clocks.iter().copied().fold(0.0, f64::max) / least - 1.0)
    };
    quantile(&evidence.visits().filter_map(moved).collect::<Vec<f64>>(), 0.75).unwrap_or(0.0)
}

/// The series whose values go with the clock; of those given at one clock, what is left then.
fn goes_with_it<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = &'a Judged> {
    let goes = |judged: &&Judged| judged.analysis.correlations.iter().any(|(name, _)| name == "clock_ghz");
    evidence.series.iter().filter(goes)
}

const CHECK: Rule = Rule {
    id: ids::host::rule::CLOCK_CHECK,
    title: "Two measures of the core clock disagree",
    topic: "clock",
    meaning: "All figures in core cycles rest on a chain of dependent additions, one per cycle. A second \
        measure contradicts that chain. The clock changed between the two, an emulator runs them, or the \
        core does not add in one cycle.",
    action: "Use the figures in nanoseconds, not those in cycles. See it: assay run --only \
        cpu.clock,memory.data-source --profile standard --new",
    when: "The 95 % intervals of the clocks by additions and by multiplications lie more than 2 % apart. Or \
        the interval of an L1 hit lies between two whole numbers of cycles, 2 % away from both.",
    how: "A multiplication takes a whole number of cycles, and so does a load that hits L1. Wide intervals \
        allow no statement. Where the two clocks differ, all figures in cycles carry the cause.",
    calm: "two clock measures agree",
    looked_at: "timed chains",
    source: file!(),
    check: check_clock,
};

/// What two ways to one clock, or cycles and whole numbers, may be apart.
const APART: f64 = 0.02;

fn check_clock(evidence: &Evidence) -> Option<Vec<Finding>> {
    let by = |metric: MetricId| evidence.find(ids::cpu::CLOCK, "one-cpu", metric);
    let clocks = by(ids::cpu::metric::CLOCK).zip(by(ids::cpu::metric::CLOCK_BY_MULTIPLY));
    let clocks =
        clocks.and_then(|(add, multiply)| Some(((add, add.interval()?), (multiply, multiply.interval()?))));
    let hits = evidence.series.iter().find(|judged| {
        let series = &judged.series;
        series.case.bench == ids::memory::DATA_SOURCE
            && series.metric.name == ids::memory::metric::CYCLES
            && series.text(ids::memory::param::SOURCE) == Some("l1")
    });
    let hit = hits.and_then(|judged| Some((judged, judged.interval()?)));
    if clocks.is_none() && hit.is_none() {
        return None;
    }
    let chains = clocks.and_then(|(add, multiply)| chains_differ(evidence, add, multiply));
    let cycles = hit.and_then(|(judged, interval)| between_cycles(judged, interval));
    Some(chains.into_iter().chain(cycles).collect())
}

fn chains_differ(
    evidence: &Evidence,
    add: (&Judged, Interval),
    multiply: (&Judged, Interval),
) -> Option<Finding> {
    let apart = |low: Interval, high: Interval| high.low / low.high - 1.0;
    let least = apart(add.1, multiply.1).max(apart(multiply.1, add.1));
    if least.is_nan() || least <= APART {
        return None;
    }
    let words = |(_, interval): (&Judged, Interval)| {
        format!("{}–{}", figure(interval.low, ""), figure(interval.high, "GHz"))
    };
    let in_cycles = evidence.series.iter().filter(|judged| judged.series.metric.form == Form::CyclesPerWork);
    let headline = format!(
        "Two measures of the core clock differ by {} or more. Do not use figures in cycles.",
        percent(least)
    );
    Some(
        Finding::warning(CHECK.id, headline)
            .cause("The clock changed between the measures, an emulator runs them, or the core is unusual.")
            .fact("by additions", words(add), &add.0.series.key)
            .fact("by multiplications", words(multiply), &multiply.0.series.key)
            .confirm("assay run --only cpu.clock --profile standard --new")
            .advice("Use the figures in nanoseconds; those in cycles are off by as much.")
            .explains(in_cycles.map(|judged| judged.series.key.clone())),
    )
}

fn between_cycles(judged: &Judged, interval: Interval) -> Option<Finding> {
    let whole = interval.low.floor();
    let between = interval.low > whole * (1.0 + APART) && interval.high < (whole + 1.0) * (1.0 - APART);
    if !between || whole < 1.0 {
        return None;
    }
    let words = format!("{}–{} cycles", figure(interval.low, ""), figure(interval.high, ""));
    let headline = format!("A load from L1 takes {words}, no whole number. Use the figures in ns.");
    Some(
        Finding::note(CHECK.id, headline)
            .cause("The clock changed between the samples and its readings, or an emulator runs the loads.")
            .fact("an L1 hit", words, &judged.series.key)
            .confirm("assay run --only memory.data-source,cpu.clock --profile standard --new")
            .advice("Read the figures in nanoseconds, and see `assay explain moving-clock`.")
            .explains([&judged.series.key]),
    )
}

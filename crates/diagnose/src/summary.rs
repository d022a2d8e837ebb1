//! The last line of a run file: all that is needed to group hosts and to compare each with its
//! peers. It holds the main figures of every benchmark, and as many of the others as fit into 64
//! KiB with them.

use std::collections::BTreeMap;

use super::{Diagnosis, words};
use model::run_file::LONGEST_SUMMARY;
use model::vocabulary::cpu as ids;
use model::{Summary, SummaryFinding, SummarySeries};
use stats::analysis::Judged;

/// Other figures may not make a summary line longer than this, bytes.
const SUMMARY_MAX: usize = 64 << 10;

/// Main figures may not make it longer than this, bytes: ten thousand figures.
const HEADLINES_MAX: usize = LONGEST_SUMMARY / 2;

/// What a line has around its summary, bytes.
const AROUND: usize = 32;

impl Diagnosis {
    /// The run file's last line: what fleet analysis reads alone.
    pub fn summary(&self) -> Summary {
        let header = &self.run.header;
        let finding = |finding: &model::Finding| SummaryFinding {
            rule: finding.rule.clone(),
            severity: finding.severity,
            headline: words::clipped(&finding.headline),
        };
        let mut summary = Summary {
            schema: header.schema,
            assay: header.assay.clone(),
            host: words::clipped(&header.host),
            labels: header.labels.clone(),
            started: header.started.clone(),
            elapsed_s: self.elapsed_s(),
            boot_id: header.boot_id.as_deref().map(words::clipped),
            uptime_s: header.uptime_s,
            profile: words::clipped(&header.profile),
            pretended: header.pretend.is_some(),
            make_up: self.make_up(),
            settings: self.settings(),
            series: Vec::new(),
            series_left_out: 0,
            headlines_left_out: 0,
            findings: self.findings.iter().map(finding).collect(),
        };
        let begun = bytes(&summary) + AROUND;
        let all: Vec<SummarySeries> = self.series.iter().map(series).collect();
        let kept = fitting(&all, begun, [HEADLINES_MAX, SUMMARY_MAX]);
        let headlines = |series: &[SummarySeries]| series.iter().filter(|one| !one.aside).count() as u32;
        summary.series_left_out = (all.len() - kept.len()) as u32;
        summary.headlines_left_out = headlines(&all) - headlines(&kept);
        summary.series = kept;
        summary
    }

    /// What moves numbers and makes no group of peers by itself, as label and value; with what the
    /// make-up of a report does not show.
    fn settings(&self) -> Vec<(String, String)> {
        let (machine, header) = (&self.machine, &self.run.header);
        let mut all: Vec<(String, String)> = Vec::new();
        let mut add = |label: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                all.push((label.to_string(), words::clipped(&value)));
            }
        };
        let cpuinfo = header.snapshot.text("/proc/cpuinfo").unwrap_or("");
        let first = |key: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|own| own.trim() == key))?;
            line.split_once(':').map(|(_, value)| value.trim().to_string())
        };
        let names = |map: &BTreeMap<String, model::CpuSet>| {
            Some(map.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        };
        let numbers = |numbers: Vec<String>| {
            let mut numbers = numbers;
            numbers.sort();
            numbers.dedup();
            Some(numbers.join(" "))
        };
        let on_off = |on: Option<bool>| on.map(|on| if on { "on" } else { "off" }.to_string());
        let mhz = |khz: Option<u64>| khz.map(|khz| format!("{} MHz", khz / 1000));
        add("stepping", first("stepping"));
        let threads = machine.summary().threads_per_core;
        add("threads_per_core", threads.and_then(|all| numbers(all.iter().map(usize::to_string).collect())));
        let speeds = machine.dimms.iter().filter_map(|dimm| dimm.configured_mts.filter(|mts| *mts > 0));
        add("memory_mts", numbers(speeds.map(|mts| mts.to_string()).collect()));
        add("bios", machine.dmi.bios_version.clone());
        add("container", machine.container.as_ref().map(|own| own.kind.word().to_string()));
        add("governor", names(&machine.frequency.governors));
        add("energy_preference", names(&machine.frequency.energy_preferences));
        add("highest_frequency", mhz(machine.frequency.max_khz));
        add("turbo", on_off(machine.frequency.turbo));
        add("transparent_huge_pages", machine.memory.transparent_huge_pages.clone());
        add("huge_page_defrag", machine.memory.transparent_huge_page_defrag.clone());
        add("numa_balancing", on_off(machine.memory.numa_balancing));
        add("preemption", machine.kernel.preemption.clone());
        add("clock_source", machine.clock.current.clone());
        let mitigations = &machine.kernel.mitigations;
        mitigations.iter().for_each(|(name, state)| add(&format!("mitigation_{name}"), Some(state.clone())));
        let clock = self.series.iter().find(|judged| {
            let series = &judged.series;
            series.case.bench == ids::CLOCK && series.metric.unit == "GHz" && series.metric.headline
        });
        let clock = clock.and_then(|judged| judged.analysis.estimate.as_ref());
        add("core_clock", clock.map(|estimate| format!("{:.0} MHz", estimate.median * 1e3)));
        // Whole, however scattered they are: a clipped set is another one.
        all.push(("allowed_cpus".to_string(), header.allowed_cpus.to_string()));
        all.extend(words::disk_settings(&self.run, machine));
        all
    }
}

/// The series that fit into a line that has `begun` bytes already, in their order. Main figures
/// fill it up to the first length, then the others up to the second. The first points of each
/// benchmark come before later ones, so that a long ladder displaces no other benchmark.
fn fitting(all: &[SummarySeries], begun: usize, most: [usize; 2]) -> Vec<SummarySeries> {
    let mut seen: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let mut order: Vec<(bool, usize, usize)> = all
        .iter()
        .enumerate()
        .map(|(place, one)| {
            let bench = one.key.split('@').next().unwrap_or_default();
            let nth = seen.entry((one.aside, bench)).or_default();
            *nth += 1;
            (one.aside, *nth, place)
        })
        .collect();
    order.sort_unstable();
    let mut length = begun;
    let mut kept: Vec<usize> = Vec::new();
    for (aside, _, place) in order {
        // With the comma behind it.
        let longer = length + bytes(&all[place]) + 1;
        if longer > most[usize::from(aside)] {
            break;
        }
        length = longer;
        kept.push(place);
    }
    kept.sort_unstable();
    kept.into_iter().map(|place| all[place].clone()).collect()
}

fn bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
}

fn series(judged: &Judged) -> SummarySeries {
    let estimate = judged.analysis.estimate.as_ref();
    let interval = estimate.and_then(|estimate| estimate.interval);
    SummarySeries {
        key: judged.series.key.clone(),
        unit: judged.series.metric.unit.to_string(),
        median: estimate.map(|estimate| short(estimate.median)),
        ci95: interval.map(|interval| [short(interval.low), short(interval.high)]),
        n: estimate.map_or(0, |estimate| estimate.n as u32),
        cv: estimate.and_then(|estimate| estimate.cv).map(short),
        verdict: judged.analysis.verdict.kind,
        better: Some(judged.series.metric.better),
        aside: !judged.series.metric.headline,
    }
}

/// Seven digits: no measurement has more, and a summary has room for twice as many series.
fn short(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Better, VerdictKind};

    fn one(key: &str, aside: bool) -> SummarySeries {
        SummarySeries {
            key: key.to_string(),
            unit: "ns".to_string(),
            median: Some(1.0),
            ci95: None,
            n: 1,
            cv: None,
            verdict: VerdictKind::Trusted,
            better: Some(Better::Lower),
            aside,
        }
    }

    #[test]
    fn every_benchmark_has_something_before_one_has_all() {
        let mut all: Vec<SummarySeries> =
            (0..100).map(|at| one(&format!("a.ladder@x/bytes={at:03}#time"), false)).collect();
        all.push(one("b.late@x#time", false));
        all.push(one("b.late@x#aside", true));
        let each = bytes(&all[0]) + 1;
        let kept = fitting(&all, 0, [each * 10; 2]);
        assert_eq!(kept.len(), 10);
        assert_eq!(kept.last().map(|one| one.key.as_str()), Some("b.late@x#time"));
        assert_eq!(kept[8].key, "a.ladder@x/bytes=008#time");
        assert_eq!(fitting(&all, 0, [1 << 20; 2]), all);
        assert!(fitting(&all, 0, [3; 2]).is_empty());
        // Other figures never displace main ones.
        let kept = fitting(&all, 100, [1 << 20, each * 10]);
        assert_eq!(kept, all[..101]);
    }

    #[test]
    fn numbers_keep_seven_digits() {
        assert_eq!([1.23456789, 0.0, 123456789.0].map(short), [1.234568, 0.0, 123456800.0]);
        assert!(short(f64::NAN).is_nan());
    }
}

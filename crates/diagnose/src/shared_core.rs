//! Cores whose other thread was busy, also if a hypervisor hides that thread.

use super::words::percent;
use super::{Evidence, Rule};
use machine::Hypervisor;
use model::vocabulary as ids;
use model::{Better, Fact, Finding};
use stats::analysis::Judged;
use stats::core_sharing::{CoreSharing, core_sharing, probes_of_run};
use stats::order::median;

pub const RULES: &[Rule] = &[SHARED_CORE];

const SHARED_CORE: Rule = Rule {
    id: ids::host::rule::SHARED_CORE,
    title: "Another thread shared the core",
    topic: "shared core",
    meaning: "Two threads of a core share its units: while the other works, this one is up to twice as slow. A guest sees neither \
             the other thread nor steal. Figures at one clock leave such samples out.",
    action: "Judge this host by several runs at different hours, or rent whole cores. On your own host keep the siblings free. See \
             it: assay run --only cpu.clock,syscall.getpid --profile standard --new",
    when: "In 5 % or more of the probes the core fetched for two threads. It needs 40 probes, and lowest probes of at most 1.6 \
             cycles per round.",
    how: "After each sample on one CPU Assay times a loop of taken branches, in cycles of the core clock read just before. A \
             round takes about one cycle where the core fetches for one thread, and two where it alternates between two. A probe \
             counts as shared from 1.5 times the lowest twentieth of all probes on. With the lowest above 1.6 cycles the core was \
             never alone, or fetches otherwise. The cost is the median of samples with another thread over that of samples \
             without, from five of each.",
    calm: "core not shared while measured",
    looked_at: "a loop of branches",
    source: file!(),
    check: shared_core,
};

/// The share of shared probes from which it is reported.
const MIN_SHARE: f64 = 0.05;
/// Samples of either kind that a series needs to show the cost.
const MIN_WINDOWS: usize = 5;

fn shared_core(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = probes_of_run(evidence.series.iter().map(|judged| &judged.series));
    let found = core_sharing(&all)?;
    let (beside, alone): (Vec<f64>, Vec<f64>) = all.iter().partition(|cycles| found.is_shared(**cycles));
    let share = found.shared_part;
    if share < MIN_SHARE {
        return Some(Vec::new());
    }
    let mut prices: Vec<(f64, &str)> = evidence
        .series
        .iter()
        .filter(|judged| judged.series.metric.headline)
        .filter_map(|judged| Some((price(judged, found)?, &*judged.series.key)))
        .collect();
    prices.sort_by(|a, b| a.0.total_cmp(&b.0));
    let cycles =
        |of: &[f64]| median(of).map_or("–".to_string(), |cycles| format!("{cycles:.2} cycles per round"));
    let source = "covariate fetch_cycles";
    let mut facts = vec![
        Fact::new("probes with another thread busy", format!("{} of {}", percent(share), all.len()), source),
        Fact::new("loop of branches, core alone", cycles(&alone), source),
        Fact::new("loop of branches, another thread busy", cycles(&beside), source),
    ];
    let middle = median(&prices.iter().map(|(price, _)| *price).collect::<Vec<f64>>());
    if let (Some(middle), Some((most, of))) = (middle, prices.last()) {
        let words = format!("{middle:.2} times as long, median of {} figures", prices.len());
        facts.push(Fact::new("work with another thread busy takes", words, source));
        facts.push(Fact::new("most", format!("{most:.2} times as long"), *of));
    }
    let left_out =
        evidence.series.iter().filter_map(|judged| Some(judged.analysis.at_clock.as_ref()?.left_out));
    let (windows, at_clock) =
        left_out.fold((0, 0), |(windows, series), left| (windows + left.windows, series + 1));
    if at_clock > 0 {
        let words = format!("{windows} of {at_clock} figures");
        facts.push(Fact::new("samples that figures at one clock leave out", words, source));
    }
    let takes =
        middle.map_or(String::new(), |middle| format!(". Work then takes {middle:.2} times as long."));
    let (cause, advice) = match evidence.machine.hypervisor {
        Hypervisor::Guest(_) => (
            "The host ran other work on the core's other thread: another guest, or another CPU of this one. That takes \
             throughput but no time, so steal is zero.",
            "Judge this host by several runs at different hours, or rent whole cores. Operator: pin guests to whole cores, \
             or use core scheduling.",
        ),
        _ => (
            "Other work ran on an SMT sibling of the measured CPU. Or this is a guest, and nothing reports it.",
            "See what uses the siblings (background-load), and keep them free while you measure.",
        ),
    };
    Some(vec![
        Finding::note(
            SHARED_CORE.id,
            format!("Another thread of the core was busy for {} of the run{takes}", percent(share)),
        )
        .cause(cause)
        .facts(facts)
        .confirm("assay run --only cpu.clock,syscall.getpid,memory.bandwidth --profile standard --new")
        .advice(advice),
    ])
}

/// How many times as long a series' samples take with the other thread busy.
fn price(judged: &Judged, found: CoreSharing) -> Option<f64> {
    if !judged.series.case.placement.is_of_one_cpu() {
        return None;
    }
    let processes = judged.series.processes.iter();
    let windows =
        processes.flat_map(|process| process.values.iter().zip(process.probes().unwrap_or_default()));
    let known = windows.filter(|(_, cycles)| cycles.is_finite());
    let (beside, alone): (Vec<_>, Vec<_>) = known.partition(|(_, cycles)| found.is_shared(**cycles));
    if beside.len().min(alone.len()) < MIN_WINDOWS {
        return None;
    }
    let middle = |of: &[(&f64, &f64)]| median(&of.iter().map(|(value, _)| **value).collect::<Vec<f64>>());
    let ratio = middle(&beside)? / middle(&alone)?;
    let longer = match judged.series.metric.better {
        Better::Higher => ratio.recip(),
        Better::Lower => ratio,
        Better::Neither => return None,
    };
    (longer.is_finite() && longer > 0.0).then_some(longer)
}

//! Tasks that ran on other CPUs than their placement says.

use super::environment::graded;
use super::words::percent;
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Case, CpuSet, Fact, Finding, Packed, Samples, Visit};

pub const RULES: &[Rule] = &[MISPLACED];

const MISPLACED: Rule = Rule {
    id: ids::rule::MISPLACED_TASK,
    title: "A task ran on another CPU than its own",
    topic: "placement",
    meaning: "Figures of a placement mean nothing on other CPUs: one CPU may differ from two by twenty \
        times. Some sandboxes ignore affinity (WSL 1, gVisor), offline CPUs lose their tasks, and programs \
        such as numad move them.",
    action: "Measure outside the sandbox, or stop what moves tasks (numad, taskset, container managers, CPU \
        hotplug). See it: taskset -c 0 grep Cpus_allowed_list /proc/self/status",
    when: "The measuring task was on a wrong CPU at either end of any counted sample. Figures with more than \
        5 % of such samples do not count.",
    how: "The measuring task records its CPU at both ends of every sample. Before that each pinned task \
        reads back its mask and its CPU, and the pass fails if one is wrong. The partners of the measuring \
        task are checked only in this second way.",
    calm: "tasks where they were put",
    looked_at: "getcpu",
    source: file!(),
    check: misplaced,
};

/// From this share of a case's samples on other CPUs on, its figures do not count.
const MAX_ELSEWHERE_SHARE: f64 = 0.05;

/// Where the counted samples of a case were.
#[derive(Default)]
struct SampleCpus {
    windows: usize,
    elsewhere: usize,
    /// CPUs that are not the seat's.
    cpus: CpuSet,
}

impl SampleCpus {
    fn of<'a>(visits: impl Iterator<Item = &'a Visit>, seat: &CpuSet) -> SampleCpus {
        let mut seen = SampleCpus::default();
        for samples in visits.flat_map(|visit| &visit.samples) {
            for window in samples.warm_up..samples.len() {
                let Some(ends) = ends(samples, window) else { continue };
                let strange: CpuSet = ends.into_iter().filter(|cpu| !seat.contains(*cpu)).collect();
                seen.windows += 1;
                seen.elsewhere += usize::from(!strange.is_empty());
                seen.cpus = seen.cpus.union(&strange);
            }
        }
        seen
    }

    fn share(&self) -> f64 {
        self.elsewhere as f64 / self.windows.max(1) as f64
    }
}

/// The CPUs at both ends of a sample; `None` where they were not noted, or are damaged.
fn ends(samples: &Samples, window: usize) -> Option<[u32; 2]> {
    let cpu = |column: &Option<Packed>| {
        let number = column.as_ref()?.get(window)?;
        (number >= 0.0 && number.fract() == 0.0 && number < MAX_CPUS).then_some(number as u32)
    };
    Some([cpu(&samples.beside.cpu_start)?, cpu(&samples.beside.cpu_end)?])
}

/// CPU numbers from this on are damaged values.
const MAX_CPUS: f64 = 65_536.0;

fn misplaced(evidence: &Evidence) -> Option<Vec<Finding>> {
    let (mut looked, mut explained, mut rejected) = (false, Vec::new(), Vec::new());
    let mut worst = None::<(SampleCpus, &Case, &CpuSet)>;
    let mut facts = Vec::new();
    for (case, planned) in evidence.cases() {
        // The first seat is the measuring task's own, unless that is on another host.
        let seat = planned.case.placement.seats.first().filter(|seat| seat.host.is_none());
        let Some(seat) = seat.filter(|seat| !seat.cpus.is_empty()) else { continue };
        let seen = SampleCpus::of(evidence.visits_of(case), &seat.cpus);
        looked |= seen.windows > 0;
        if seen.elsewhere == 0 {
            continue;
        }
        if seen.share() > MAX_ELSEWHERE_SHARE {
            rejected.extend(evidence.keys_of(case))
        } else {
            explained.extend(evidence.keys_of(case))
        }
        facts.push(Fact::new(
            planned.case.placement.name.to_string(),
            where_it_was(&seen, &seat.cpus, &planned.case),
            planned.case.key(),
        ));
        if worst.as_ref().is_none_or(|(most, ..)| seen.share() > most.share()) {
            worst = Some((seen, &planned.case, &seat.cpus));
        }
    }
    if !looked {
        return None;
    }
    let Some((seen, case, seat)) = worst else { return Some(Vec::new()) };
    let finding = Finding::warning(
        MISPLACED.id,
        format!(
            "CPU {} ran {} for {}, not CPU {}",
            first_few(&seen.cpus),
            evidence.name(case),
            percent(seen.share()),
            first_few(seat)
        ),
    )
    .cause("A sandbox ignores affinity, a CPU went offline, or another program moved the task.")
    .facts(facts.into_iter().take(8))
    .confirm("taskset -c 0 grep Cpus_allowed_list /proc/self/status    # 0, where affinity holds")
    .advice("Measure outside of the sandbox, or stop what moves tasks (numad, hotplug).");
    Some(graded(evidence, explained, rejected, finding))
}

/// `62 % of 40 samples on CPU 1, not 0: with its partner on one CPU`.
fn where_it_was(seen: &SampleCpus, seat: &CpuSet, case: &Case) -> String {
    let with_partner = match case.placement.seats.as_slice() {
        [_, other] => other.host.is_none() && seen.cpus.is_subset(&other.cpus),
        _ => false,
    };
    let as_what = if with_partner { ": with its partner on one CPU" } else { "" };
    format!(
        "{} of {} samples on CPU {}, not {}{as_what}",
        percent(seen.share()),
        seen.windows,
        first_few(&seen.cpus),
        first_few(seat)
    )
}

/// The set, or the first CPU of many: lines are short.
fn first_few(cpus: &CpuSet) -> String {
    match cpus.first() {
        Some(first) if cpus.len() > 2 => format!("{first} and {} others", cpus.len() - 1),
        _ => cpus.to_string(),
    }
}

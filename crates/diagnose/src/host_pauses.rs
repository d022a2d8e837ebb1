//! Pauses of CPUs and their cause: tasks of this system or the host.

use super::chunks::index;
use super::words::{capital, counted, percent};
use super::{Diagnosis, Evidence, Rule};
use machine::{Hypervisor, Machine};
use model::vocabulary::MetricId;
use model::vocabulary::host as ids;
use model::{Fact, Finding, Form, Run, Samples, Visit};
use stats::pauses::{Answer, CpuTime, Found, PairAnswer, PairTime, Pause, Watched, judge};

pub const RULES: &[Rule] = &[PREEMPTED];

const PREEMPTED: Rule = Rule {
    id: ids::rule::PREEMPTED_CPUS,
    title: "The host withholds time from virtual CPUs",
    topic: "preempted",
    meaning: "The host may run more virtual CPUs than it has CPUs. A guest's CPU then stands still while \
        another runs in its place. Locks stay held, timers come late, and parallel work waits. Steal shows \
        it only where the host reports it.",
    action: "Ask the provider for dedicated CPUs. As its operator, pin each virtual CPU to a CPU of its own, \
        and give the guest's group enough quota. See it: assay host --new",
    when: "The 95 % interval of a CPU's withheld time lies above 0.5 %, in four passes or more. The rule \
        does not apply if the kernel counts half as much in interrupts.",
    how: "assay host spins a clock on every CPU at once. Pauses of 100 µs or more count (or of five usual \
        gaps, where ticks take that long), if the clock's process did not wait for its CPU. Two CPUs \
        alternate where 40 % of one's paused time is in pauses that begin where the other's end, or the reverse. \
        Both ends lie within 60 µs (or 5 % of the pause, at most 300 µs). Such pauses must be significantly \
        more than pauses that begin or end together. Both CPUs must pause at once in less than 0.85 of what \
        chance gives. Two CPUs stop together where half of the paused time is in pauses that begin and end \
        as one.",
    calm: "host leaves CPUs to the guest",
    looked_at: "spinning clocks",
    source: file!(),
    check: preempted,
};

/// Pauses of all CPUs in a run, judged.
pub struct Pauses {
    pub found: Found,
    /// Key of the case.
    pub case: String,
    /// Whether a hypervisor lies below; `None` if unknown.
    pub guest: Option<bool>,
}

impl Diagnosis {
    /// What keeps CPUs from running; `None` if the run did not watch pauses.
    pub fn pauses(&self) -> Option<Pauses> {
        pauses(&self.run, &self.machine)
    }
}

fn pauses(run: &Run, machine: &Machine) -> Option<Pauses> {
    let at = run.header.plan.iter().position(|planned| planned.case.bench == ids::PAUSES)?;
    let ran = run.visits.iter().filter(|visit| visit.case as usize == at && visit.reason.is_none());
    let visits: Vec<Vec<Watched>> = ran.map(watched).filter(|visit| !visit.is_empty()).collect();
    (!visits.is_empty()).then(|| Pauses {
        found: judge(&visits),
        case: run.header.plan[at].case.key(),
        guest: match machine.hypervisor {
            Hypervisor::Guest(_) => Some(true),
            Hypervisor::None => Some(false),
            Hypervisor::Unknown => None,
        },
    })
}

/// The watched CPUs of a stored pass.
fn watched(visit: &Visit) -> Vec<Watched> {
    let cpu_of = |samples: &Samples| index(&samples.point, ids::param::CPU);
    let samples_of = |cpu: u32, metric: MetricId| {
        let is_wanted = |samples: &&Samples| {
            cpu_of(samples) == Some(cpu) && samples.metrics.iter().any(|name| metric == *name)
        };
        visit.samples.iter().find(is_wanted)
    };
    let wall = visit.conditions.wall_ms;
    let throttled = visit.conditions.throttled_ms.filter(|_| wall > 0.0).map(|ms| ms / wall);
    let mut all = Vec::new();
    for samples in visit.samples.iter().filter(|samples| samples.metrics == [ids::metric::WATCHED]) {
        let Some(cpu) = cpu_of(samples) else { continue };
        let value = |metric| {
            samples_of(cpu, metric)?.values(Form::Value).first().copied().filter(|value| value.is_finite())
        };
        let share = |metric| value(metric).map(|percent| percent / 100.0);
        let Some(seconds) = value(ids::metric::WATCHED).filter(|seconds| *seconds > 0.0) else { continue };
        let usual =
            samples_of(cpu, ids::metric::GAP_P50).and_then(|one| one.histograms.first()?.quantile(0.5));
        all.push(Watched {
            cpu,
            ns: seconds * 1e9,
            pauses: samples_of(cpu, ids::metric::PAUSE).map(time_line).unwrap_or_default(),
            usual: usual.unwrap_or(0.0),
            stolen: share(ids::metric::STOLEN),
            interrupts: share(ids::metric::INTERRUPTS),
            throttled,
        });
    }
    all
}

/// The pauses of samples on one time line: each sample ends with a pause.
fn time_line(samples: &Samples) -> Vec<Pause> {
    let waited = samples.beside.wait_ns.as_ref();
    let mut at = 0.0;
    let mut all = Vec::new();
    for (index, (us, ns)) in samples.values(Form::Value).into_iter().zip(&samples.ns).enumerate() {
        at += ns;
        let (length, waited) = (us * 1e3, waited.and_then(|waited| waited.get(index)));
        if length.is_finite() && length > 0.0 && at.is_finite() {
            all.push(Pause { begin: at - length, length, waited });
        }
    }
    all
}

impl Pauses {
    /// CPUs from which the host withholds time, the most withheld first.
    pub fn withheld(&self) -> Vec<&CpuTime> {
        let mut all: Vec<&CpuTime> =
            self.found.cpus.iter().filter(|cpu| cpu.answer == Answer::Withheld).collect();
        all.sort_by(|one, other| other.withheld.total_cmp(&one.withheld));
        all
    }

    pub fn pairs_that(&self, answer: PairAnswer) -> Vec<&PairTime> {
        self.found.pairs.iter().filter(|pair| pair.answer == answer).collect()
    }

    /// `CPUs 0 and 1 never run at once`, where pairs alternate or stop together.
    pub fn pairs_words(&self) -> Option<String> {
        let named = |pairs: &[&PairTime]| {
            let [first, rest @ ..] = pairs else { return None };
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(" (and {} more)", counted(rest.len(), "pair"))
            };
            Some(format!("CPUs {} and {}{more}", first.cpus[0], first.cpus[1]))
        };
        if let Some(pairs) = named(&self.pairs_that(PairAnswer::TakeTurns)) {
            return Some(format!("{pairs} alternate on one CPU of the host"));
        }
        Some(format!("{} stop together", named(&self.pairs_that(PairAnswer::StopTogether))?))
    }
}

fn preempted(evidence: &Evidence) -> Option<Vec<Finding>> {
    let pauses = pauses(evidence.run, evidence.machine)?;
    // On metal it is firmware or an interrupt, and never a host.
    if pauses.guest != Some(true) {
        return None;
    }
    let withheld = pauses.withheld();
    let Some(most) = withheld.first() else {
        let all_whole = pauses.found.cpus.iter().all(|cpu| cpu.answer == Answer::Whole);
        return all_whole.then(Vec::new);
    };
    let others = withheld.len() - 1;
    let of = if others == 0 { String::new() } else { format!(", and from {}", counted(others, "other CPU")) };
    let headline = format!(
        "The host withholds {} of the time from CPU {}{of}. Expect long tails.",
        percent(most.withheld),
        most.cpu
    );
    Some(vec![
        Finding::warning(PREEMPTED.id, headline)
            .cause(match pauses.pairs_words() {
                Some(words) => format!("{}.", capital(&words)),
                None => "The host runs other guests, or its own work, on the CPUs that it gives this guest."
                    .to_string(),
            })
            .facts(withheld.iter().take(4).map(|cpu| {
                let words = format!(
                    "{} ({}–{}), {} in {:.0} s, the longest {}",
                    percent(cpu.withheld),
                    percent(cpu.interval.low),
                    percent(cpu.interval.high),
                    counted(cpu.count, "stop"),
                    cpu.seconds,
                    milliseconds(cpu.longest)
                );
                Fact::new(format!("withheld from CPU {}", cpu.cpu), words, &pauses.case)
            }))
            .facts(
                most.stolen.map(|stolen| {
                    Fact::new(format!("steal of CPU {}", most.cpu), percent(stolen), "/proc/stat")
                }),
            )
            .facts(pauses.found.pairs.iter().filter(is_settled).take(4).map(|pair| {
                let both = percent(pair.both);
                let words = format!(
                    "both stop for {both} of the time; {} if each stopped by itself",
                    percent(pair.chance)
                );
                Fact::new(format!("CPUs {} and {}", pair.cpus[0], pair.cpus[1]), words, &pauses.case)
            }))
            .confirm("assay host --new")
            .advice("Ask the provider for dedicated CPUs. Operator: pin each virtual CPU to its own CPU."),
    ])
}

fn is_settled(pair: &&PairTime) -> bool {
    [PairAnswer::TakeTurns, PairAnswer::StopTogether].contains(&pair.answer)
}

/// `4.2 ms`.
pub fn milliseconds(ns: f64) -> String {
    model::figure(ns / 1e6, "ms")
}

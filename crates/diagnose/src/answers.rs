//! Benchmarks whose own check failed, and cases that could not be measured.

use std::collections::BTreeMap;

use super::words::{capital, shell};
use super::{Evidence, Rule};
use model::vocabulary::{guard, host as ids};
use model::{CpuSet, Fact, Finding, Reason, SUSPECT, Visit};

pub const RULES: &[Rule] = &[WRONG_ANSWER, FAILED];

const WRONG_ANSWER: Rule = Rule {
    id: ids::rule::WRONG_ANSWER,
    title: "A benchmark computed a wrong answer",
    topic: "answers",
    meaning: "Every benchmark checks what it computed, such as sums of all bytes or counts of messages. A \
        wrong answer points to a faulty core or memory module, to the kernel, or to a bug in Assay. The \
        figures are worthless.",
    action: "Measure the benchmark again. If the same CPU is wrong again, take it offline and have the host \
        checked. If all CPUs are wrong, report a bug. See it: assay run --only BENCHMARK --new",
    when: "A problem for every benchmark with a pass whose own check failed. All its figures are rejected.",
    how: "Google and Meta report a few cores that compute wrongly in every several thousand hosts.",
    calm: "every result checked and right",
    looked_at: "each result",
    source: file!(),
    check: wrong_answer,
};

fn wrong_answer(evidence: &Evidence) -> Option<Vec<Finding>> {
    // Assay cannot check what a user's own command computes.
    let plan = &evidence.run.header.plan;
    if !plan.is_empty() && plan.iter().all(|planned| planned.case.id() == Some(guard::COMMAND)) {
        return None;
    }
    let wrong = |visit: &&Visit| matches!(visit.reason, Some(Reason::WrongAnswer(_)));
    let findings = by_case(evidence, wrong).into_iter().map(|(case, visits)| {
        let planned = &evidence.run.header.plan[case as usize].case;
        let (key, name) = (planned.key(), evidence.name(planned));
        let left_out = evidence.run.left_out(case);
        let of = evidence.visits_of(case).count() + left_out.good + left_out.failed;
        let count = visits.len() + left_out.wrong;
        let headline = match suspects(&visits) {
            Some(suspects) => format!(
                "CPU {suspects} gave wrong answers in {count} of {of} passes of {name}. It may be faulty."
            ),
            None => format!(
                "{} gave wrong answers in {count} of {of} passes. Suspect the core, then the memory.",
                capital(&name)
            ),
        };
        Finding::problem(WRONG_ANSWER.id, headline)
            .cause("What was computed is not the known result. Suspect the core first, then the memory.")
            .facts(visits.iter().take(5).filter_map(|visit| {
                let why = visit.reason.as_ref()?.text();
                Some(Fact::new(format!("pass {}", visit.order), super::words::clipped(why), &key))
            }))
            .confirm(confirm(evidence, case))
            .advice("Run it again. Take a CPU offline that is wrong again. If all are wrong, report a bug.")
            .rejects(evidence.keys_of(case))
    });
    Some(findings.collect())
}

/// CPUs that the passes' reasons suspect: other CPUs did the same work correctly.
fn suspects(visits: &[&Visit]) -> Option<CpuSet> {
    let reasons = visits.iter().filter_map(|visit| visit.reason.as_ref()?.text().split_once(SUSPECT));
    let found: CpuSet = reasons
        .filter_map(|(_, cpus)| CpuSet::parse_list(cpus))
        .flat_map(|cpus| cpus.iter().collect::<Vec<u32>>())
        .collect();
    (!found.is_empty()).then_some(found)
}

const FAILED: Rule = Rule {
    id: ids::rule::FAILED_CASE,
    title: "A benchmark could not be measured",
    topic: "failures",
    meaning: "A process of the benchmark died, hung, was killed or reported an error. The rest of the run is \
        unaffected, since each pass has a process of its own.",
    action: "Read the error in the finding, remove its cause and measure the benchmark again. See it: assay \
        run --only BENCHMARK --new",
    when: "A warning for every benchmark with passes that failed or timed out. Figures with enough good \
        passes keep their verdict; a benchmark without any has no figure.",
    how: "",
    calm: "every pass completed",
    looked_at: "exit of each pass",
    source: file!(),
    check: failed,
};

fn failed(evidence: &Evidence) -> Option<Vec<Finding>> {
    let mut kept: BTreeMap<u32, usize> = BTreeMap::new();
    evidence.run.visits.iter().for_each(|visit| *kept.entry(visit.case).or_default() += 1);
    let broken = |visit: &&Visit| matches!(visit.reason, Some(Reason::Failed(_) | Reason::TimedOut(_)));
    let findings = by_case(evidence, broken).into_iter().map(|(case, visits)| {
        let planned = &evidence.run.header.plan[case as usize].case;
        let key = planned.key();
        // Those that never began, since a knob could not be turned, are passes too.
        let left_out = evidence.run.left_out(case);
        let of = kept.get(&case).copied().unwrap_or(0) + left_out.good + left_out.failed;
        let count = visits.len() + left_out.failed - left_out.wrong;
        let last = visits.last().and_then(|visit| visit.reason.as_ref()).map_or("", |reason| reason.text());
        let headline = if count < of {
            format!(
                "{} failed in {count} of {of} passes. The other passes count.",
                capital(&evidence.name(planned))
            )
        } else {
            format!("{} failed in all {of} passes. It has no figure.", capital(&evidence.name(planned)))
        };
        Finding::warning(FAILED.id, headline)
            .cause(reported(last))
            .facts(visits.iter().take(5).filter_map(|visit| {
                let why = visit.reason.as_ref()?.text();
                Some(Fact::new(format!("pass {}", visit.order), super::words::clipped(why), &key))
            }))
            .confirm(confirm(evidence, case))
            .advice("Remove the cause and measure the benchmark again. The others are not affected.")
    });
    Some(findings.collect())
}

/// What a process reported, as a sentence.
fn reported(text: &str) -> String {
    let text = super::words::clipped(text.trim());
    match text.chars().last() {
        None => "It reported nothing.".to_string(),
        Some('.' | '!' | '?' | '…') => format!("It reported: {text}"),
        Some(_) => format!("It reported: {text}."),
    }
}

fn by_case<'a>(evidence: &Evidence<'a>, wanted: impl Fn(&&Visit) -> bool) -> BTreeMap<u32, Vec<&'a Visit>> {
    let mut cases: BTreeMap<u32, Vec<&Visit>> = BTreeMap::new();
    for visit in evidence.run.visits.iter().filter(|visit| wanted(visit)) {
        cases.entry(visit.case).or_default().push(visit);
    }
    cases
}

/// The same case again; one of a sweep with its knobs turned.
fn confirm(evidence: &Evidence, case: u32) -> String {
    let case = &evidence.run.header.plan[case as usize].case;
    if evidence.run.header.sweep.is_none() || case.knobs.is_empty() {
        return format!("assay run --only {}", shell(&case.bench));
    }
    let knobs =
        case.knobs.iter().map(|(name, value)| format!(" --knob {}", shell(&format!("{name}={value}"))));
    format!("assay sweep {}{}", shell(&case.bench), knobs.collect::<String>())
}

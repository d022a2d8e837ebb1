//! What a script for MAAS writes to `$RESULT_PATH`: YAML, of which JSON is a part, with a status
//! and a result for each demand. MAAS takes texts, numbers and booleans as results, and lists of
//! them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::demand::Demand;
use super::judge::{Outcome, Verdict};
use super::junit::allowed;
use super::limit::DemandStatus;
use super::write::short;

/// What a run comes to, in MAAS' words.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MaasResult {
    pub status: Status,
    /// `verdict`, `reasons` and `spec`, and the demands by their keys.
    pub results: BTreeMap<String, Vec<String>>,
}

/// Of the words that MAAS knows those that a finished check can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Passed,
    Failed,
    /// Nothing is known against the host, and it is not accepted either.
    Degraded,
    /// Nothing was measured.
    Skipped,
}

/// What a host's run comes to.
pub fn maas(outcome: &Outcome) -> MaasResult {
    let status = match outcome.verdict {
        Verdict::Accept => Status::Passed,
        Verdict::Reject => Status::Failed,
        Verdict::NotUsable if outcome.background.nothing_measured => Status::Skipped,
        Verdict::CannotTell | Verdict::NotUsable => Status::Degraded,
    };
    let mut results: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |key: &str, text: &str| results.entry(allowed(key)).or_default().push(allowed(text));
    add("verdict", outcome.verdict.words());
    outcome.sentences.iter().for_each(|sentence| add("reasons", sentence));
    if !outcome.spec.is_empty() {
        add("spec", &outcome.spec);
    }
    // Two limits may name one series: both are listed.
    outcome.demands.iter().for_each(|demand| add(&demand.key, &words(demand)));
    MaasResult { status, results }
}

/// `missed: 132 ns, asked ≤ 100 ns`.
fn words(demand: &Demand) -> String {
    let standing = match demand.standing {
        DemandStatus::Met => "met",
        DemandStatus::Missed => "missed",
        DemandStatus::Undecided => "undecided",
        DemandStatus::NotAsked => "optional",
    };
    let measured = match demand.value {
        Some(value) => format!(": {} {}", short(value), demand.unit),
        None if demand.measured.is_empty() => String::new(),
        None => format!(": {}", demand.measured),
    };
    let why = if demand.why.is_empty() { String::new() } else { format!(" ({})", demand.why) };
    format!("{standing}{measured}, asked {}{why}", demand.asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, Subject, check};

    fn of(spec: &str, subject: &Subject) -> MaasResult {
        maas(&check(&Spec::read(spec).expect("a spec"), subject, 0.0).expect("an outcome"))
    }

    #[test]
    fn each_outcome_has_its_status_and_each_demand_its_result() {
        let facts = vec![("cpus".to_string(), "2".to_string())];
        let subject = Subject { facts, ..Subject::default() };
        let met = of("[machine]\ncpus = 2", &subject);
        assert_eq!((met.status, met.results["verdict"].as_slice()), (Status::Passed, &["ACCEPT".into()][..]));
        let missed = of("name = \"a\\u0007b\"\n[machine]\ncpus = 3", &subject);
        assert_eq!(missed.status, Status::Failed);
        assert_eq!(missed.results["cpus"], ["missed: 2, asked 3"]);
        assert_eq!(missed.results["spec"], ["ab"], "YAML has no place for a bell");
        let limits = "[[limit]]\nseries = \"disk.sync@*\"\nmax = \"1 s\"\n".repeat(2);
        let open = of(&limits, &subject);
        assert_eq!((open.status, open.results["disk.sync@*"].len()), (Status::Degraded, 2));
        let none = Subject { nothing_valid: true, ..Subject::default() };
        assert_eq!(of("[machine]\ncpus = 2", &none).status, Status::Skipped);
        // What was measured and is not what the spec judges is no host without a result.
        assert_eq!(of("[run]\nprofile = [\"full\"]\n[machine]\ncpus = 2", &subject).status, Status::Degraded);
    }

    #[test]
    fn another_machine_fails_though_nothing_was_measured_validly() {
        let facts = vec![("cpus".to_string(), "2".to_string())];
        let none = Subject { facts, nothing_valid: true, ..Subject::default() };
        let figure = "[limits]\ncore-clock = { min = \"1 GHz\" }\n";
        for (spec, expected) in [
            (format!("[machine]\ncpus = 4\n{figure}"), Status::Failed),
            (format!("[machine]\ncpus = 2\n{figure}"), Status::Skipped),
            // A run that the spec does not accept decides nothing.
            ("[run]\nprofile = [\"full\"]\n[machine]\ncpus = 4\n".to_string(), Status::Skipped),
        ] {
            assert_eq!(of(&spec, &none).status, expected, "{spec}");
        }
    }
}

//! A verdict as a feature file of Node Feature Discovery, which makes labels of a Kubernetes node
//! of it. Names have the one prefix that every version takes without being configured.

use jiff::Timestamp;

use super::judge::{Outcome, Verdict};

const PREFIX: &str = "feature.node.kubernetes.io/assay";

/// How long a verdict lasts where its spec does not say it.
const DEFAULT_AGE_S: f64 = 35.0 * 86400.0;

/// No value of a label is longer.
const LONGEST: usize = 63;

/// The lines of the file; `now_s` replaces an unknown start of the run. A verdict
/// ages: what stands below the expiry time is dropped by then.
pub fn nfd(outcome: &Outcome, now_s: f64) -> String {
    let own = &outcome.background;
    let expiry = time(own.started_s.unwrap_or(now_s) + own.max_age_s.unwrap_or(DEFAULT_AGE_S));
    let (accepted, verdict) = match outcome.verdict {
        Verdict::Accept => ("true", "accept"),
        Verdict::Reject => ("false", "reject"),
        Verdict::CannotTell => ("undecided", "cannot-tell"),
        Verdict::NotUsable => ("undecided", "not-usable"),
    };
    let date = own.started_s.map_or(String::new(), |started| time(started).strftime("%Y-%m-%d").to_string());
    let labels = [
        ("accepted", accepted.to_string()),
        ("verdict", verdict.to_string()),
        ("spec", value(&outcome.spec)),
        ("date", date),
    ];
    let lines = labels.iter().filter(|(_, value)| !value.is_empty());
    let lines: String = lines.map(|(name, value)| format!("{PREFIX}-{name}={value}\n")).collect();
    format!("# +expiry-time={expiry}\n{lines}")
}

/// A text as a label's value: letters, digits, and `-`, `_` and `.` between them.
fn value(text: &str) -> String {
    let inside = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let all: String = text.chars().map(inside).collect();
    let end = |c: char| !c.is_ascii_alphanumeric();
    let all = all.trim_start_matches(end);
    all[..all.len().min(LONGEST)].trim_end_matches(end).to_string()
}

/// The time `seconds` after the start of 1970.
pub(super) fn time(seconds: f64) -> Timestamp {
    Timestamp::from_second(seconds as i64).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, Subject, check};

    fn of(spec: &str, started: &str) -> String {
        let facts = vec![("cpus".to_string(), "2".to_string())];
        let subject = Subject { facts, started: started.into(), ..Subject::default() };
        let now_s = 1_800_000_000.0;
        nfd(&check(&Spec::read(spec).expect("a spec"), &subject, now_s).expect("an outcome"), now_s)
    }

    #[test]
    fn a_verdict_ends_with_its_age() {
        let spec = "name = \"db gen5 (2027)\"\n[machine]\ncpus = 2\n";
        assert_eq!(
            of(spec, "2027-01-10T08:00:00Z"),
            "# +expiry-time=2027-02-14T08:00:00Z\n\
             feature.node.kubernetes.io/assay-accepted=true\n\
             feature.node.kubernetes.io/assay-verdict=accept\n\
             feature.node.kubernetes.io/assay-spec=db-gen5--2027\n\
             feature.node.kubernetes.io/assay-date=2027-01-10\n"
        );
        let aged = of(&format!("[run]\nmax_age = \"7d\"\n{}", &spec[23..]), "2027-01-10T08:00:00Z");
        assert!(aged.starts_with("# +expiry-time=2027-01-17T08:00:00Z\n"), "{aged}");
        let untold = of("[machine]\ncpus = 3", "");
        let expected = "# +expiry-time=2027-02-19T08:00:00Z\n\
             feature.node.kubernetes.io/assay-accepted=false\n\
             feature.node.kubernetes.io/assay-verdict=reject\n";
        assert_eq!(untold, expected);
        let open = of("[machine]\ngovernor = \"performance\"", "");
        assert!(open.contains("assay-accepted=undecided\n") && open.contains("=cannot-tell\n"), "{open}");
    }

    #[test]
    fn any_name_of_a_spec_is_a_value_that_kubernetes_takes() {
        for (text, expected) in
            [("(a)", "a"), ("__", ""), ("ä.b", "b"), ("x".repeat(99).as_str(), &"x".repeat(63))]
        {
            assert_eq!(value(text), expected);
        }
        assert_eq!(value(&format!("{}- b", "x".repeat(62))), "x".repeat(62));
    }
}

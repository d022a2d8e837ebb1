//! What is to be known of a run beside its outcome: that nobody measured it, that it has no end,
//! that lines of its file cannot be read.

use schemars::JsonSchema;
use serde::Serialize;

use super::demand::Demand;
use super::limit::Standing;
use super::subject::Subject;

/// Why an outcome says less than it seems to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// Samples were invented (`--pretend`).
    Invented,
    /// The run was interrupted, or its file was cut off.
    Incomplete,
    /// Lines of its file cannot be read.
    Damaged,
}

impl Caveat {
    /// Of a run all that hold, the gravest first.
    pub(super) fn of(subject: &Subject) -> Vec<Caveat> {
        let all = [
            (subject.invented, Caveat::Invented),
            (subject.unfinished, Caveat::Incomplete),
            (!subject.damage.is_empty(), Caveat::Damaged),
        ];
        all.into_iter().filter(|(holds, _)| *holds).map(|(_, caveat)| caveat).collect()
    }

    /// What stands in brackets behind a host's name.
    pub fn words(self) -> &'static str {
        match self {
            Caveat::Invented => "invented samples",
            Caveat::Incomplete => "incomplete run",
            Caveat::Damaged => "damaged file",
        }
    }

    pub(super) fn sentence(self, subject: &Subject) -> String {
        match self {
            Caveat::Invented => "Its samples are invented (--pretend): nothing was measured.".to_string(),
            Caveat::Incomplete => {
                "The run is incomplete: it was interrupted, or its file was cut off.".to_string()
            }
            Caveat::Damaged => match subject.damage.len() {
                1 => "1 line of its file cannot be read (assay diagnose --json names it).".to_string(),
                count => {
                    format!("{count} lines of its file cannot be read (assay diagnose --json names them).")
                }
            },
        }
    }
}

/// What an incomplete run did not measure could still find something: that nothing was found there
/// is open.
pub(super) fn none_found(own: Demand, subject: &Subject) -> Demand {
    if !subject.unfinished || own.standing != Standing::Met {
        return own;
    }
    let why = "the run is incomplete: unmeasured parts may have one".to_string();
    let confirm = "measure again: the same command resumes an interrupted run".to_string();
    Demand { standing: Standing::Undecided, why, confirm, ..own }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Figure;
    use crate::{Outcome, Spec, Verdict, check};
    use model::{Better, VerdictKind};

    fn figure(key: &str, low_high: [f64; 2]) -> Figure {
        Figure {
            key: key.to_string(),
            label: key.to_string(),
            unit: "ns".to_string(),
            value: Some((low_high[0] + low_high[1]) / 2.0),
            low_high: Some(low_high),
            verdict: VerdictKind::Trusted,
            reason: String::new(),
            better: Some(Better::Lower),
            headline: true,
        }
    }

    fn outcome(spec: &str, subject: &Subject) -> Outcome {
        check(&Spec::read(spec).expect("a spec"), subject, 4e9).expect("an outcome")
    }

    #[test]
    fn a_run_that_is_not_whole_is_no_pass() {
        let fine = Subject {
            figures: vec![figure("memory.latency@one-cpu#latency", [9.0, 11.0])],
            ..Subject::default()
        };
        let none_found = "[findings]\nfail_at = \"problem\"\nnone_of = [\"steal\"]";
        let cut = Subject { unfinished: true, ..fine.clone() };
        let empty = Subject { nothing_valid: true, unfinished: true, ..Subject::default() };
        assert_eq!(outcome(none_found, &fine).verdict, Verdict::Accept);
        let of_cut = outcome(none_found, &cut);
        assert_eq!((of_cut.verdict, of_cut.count(Standing::Undecided)), (Verdict::CannotTell, 2));
        assert_eq!(of_cut.caveats, [Caveat::Incomplete]);
        assert!(of_cut.sentences.iter().any(|text| text.contains("incomplete")), "{of_cut:?}");
        assert_eq!(outcome(none_found, &empty).verdict, Verdict::NotUsable);
        // A figure that a cut run has is as good as it is.
        let limit = "[[limit]]\nseries = \"memory.latency@*\"\nmax = \"20 ns\"";
        assert_eq!(outcome(limit, &cut).verdict, Verdict::Accept);
        let damaged = Subject { damage: vec!["line 3".into()], invented: true, ..fine };
        let told = outcome(limit, &damaged);
        assert_eq!(told.caveats, [Caveat::Invented, Caveat::Damaged]);
        assert_eq!(told.damage, ["line 3"]);
    }

    #[test]
    fn what_was_not_measured_is_undecided_and_what_nothing_judged_is_no_pass() {
        let busy = model::SummaryFinding {
            rule: "background-load".into(),
            severity: model::Severity::Warning,
            headline: String::new(),
        };
        let subject = Subject { findings: vec![busy], readings: Some(Vec::new()), ..Subject::default() };
        for (spec, confirm) in [
            (
                "[limits]\nsyscall = { max = \"1 s\" }",
                "assay run --only syscall.getpid --profile full --wait-idle",
            ),
            ("[limits]\nl3-size = { min = \"1 MiB\" }", "assay run --profile full --wait-idle"),
            (
                "[limits]\ntcp = { min = \"1 Gbit/s\" }",
                "assay run --only network.tcp --to HOST --profile full --wait-idle",
            ),
            (
                "[[limit]]\nseries = \"disk.sync@*\"\nmax = \"1 s\"",
                "assay run --only disk.sync --profile full --wait-idle",
            ),
        ] {
            let found = outcome(spec, &subject);
            let one = &found.demands[0];
            assert_eq!((found.verdict, one.standing), (Verdict::CannotTell, Standing::Undecided), "{spec}");
            assert!(one.why.contains("not measured"), "{one:?}");
            assert_eq!(one.confirm, confirm);
        }
        let optional = outcome("[limits]\nsyscall = { max = \"1 s\", optional = true }", &subject);
        assert_eq!(optional.verdict, Verdict::CannotTell);
        assert!(!optional.sentences[0].contains("All 0"), "{optional:?}");
        let open = outcome("[limits]\nsyscall = { max = \"1 s\" }\ntcp = { min = \"1 Gbit/s\" }", &subject);
        assert_eq!(open.sentences[0], "2 of 2 demands are undecided, none is missed.");
    }

    #[test]
    fn a_glob_over_a_summary_with_no_room_is_open() {
        let key = |source: &str| format!("memory.data-source@one-cpu?source={source}#latency");
        let figures = vec![figure(&key("l1"), [9.0, 11.0]), figure(&key("l2"), [19.0, 21.0])];
        let whole = Subject { figures, ..Subject::default() };
        let cut = Subject { left_out: 3, ..whole.clone() };
        for (pick, max, of_whole, of_cut) in [
            ("each", 30, Verdict::Accept, Verdict::CannotTell),
            ("each", 15, Verdict::Reject, Verdict::Reject),
            ("worst", 30, Verdict::Accept, Verdict::CannotTell),
            ("worst", 15, Verdict::Reject, Verdict::Reject),
            // A better one that is not seen changes nothing of a limit that the best keeps.
            ("best", 15, Verdict::Accept, Verdict::Accept),
            ("best", 5, Verdict::Reject, Verdict::CannotTell),
        ] {
            let spec = format!(
                "[[limit]]\nseries = \"memory.data-source@*\"\npick = \"{pick}\"\nmax = \"{max} ns\""
            );
            assert_eq!(outcome(&spec, &whole).verdict, of_whole, "{spec}");
            assert_eq!(outcome(&spec, &cut).verdict, of_cut, "{spec}");
        }
        let named = format!("[[limit]]\nseries = \"{}\"\nmax = \"30 ns\"", key("l1"));
        assert_eq!(outcome(&named, &cut).verdict, Verdict::Accept);
    }

    #[test]
    fn a_run_of_the_future_has_no_age() {
        let started = |started: &str| Subject { started: started.into(), ..Subject::default() };
        let spec = Spec::read("[run]\nmax_age = \"35d\"\n[findings]\nfail_at = \"problem\"").expect("a spec");
        let now = 1_800_000_000.0;
        for (when, verdict) in [
            ("2027-01-15T08:00:00Z", Verdict::Accept),
            // Half a day off is a clock that is set wrong.
            ("2027-01-15T20:00:00Z", Verdict::Accept),
            ("2099-01-15T08:00:00Z", Verdict::NotUsable),
            ("2026-01-15T08:00:00Z", Verdict::NotUsable),
        ] {
            assert_eq!(check(&spec, &started(when), now).expect("an outcome").verdict, verdict, "{when}");
        }
    }
}

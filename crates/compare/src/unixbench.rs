//! The UnixBench index of a run as a member of its arm, under the key that an imported one has.

use std::collections::BTreeSet;

use super::Member;
use diagnose::Diagnosis;
use import::keyed;
use model::Form::Value;
use model::vocabulary::unixbench::metric::SCORE;
use model::vocabulary::unixbench::param::COPIES;
use model::{Better, Case, Metric, Verdict, VerdictKind};
use stats::unixbench::{CONTEXT, Form, GROUP, INDEX, Scores, of_bench, scores};

/// The case whose placement decides a score: that of context switching for an index, else the case
/// itself.
pub fn placed(case: &Case) -> Case {
    let mut placed = case.clone();
    if case.bench.strip_prefix(GROUP) == Some(".index") {
        placed.bench = format!("{GROUP}.{CONTEXT}").into();
    }
    placed
}

/// The classic index and the pinned one of each number of copies, where there is one. It is made of
/// other members, so it rides along and no component counts it again; what disturbed one of `parts`
/// disturbed it.
pub fn indices(diagnosis: &Diagnosis, parts: &[Member]) -> Vec<Member> {
    let parts = parts.iter().filter(|member| of_bench(&member.case.bench).is_some());
    let outside: BTreeSet<&String> = parts.flat_map(|member| &member.disturbed).collect();
    let disturbed: Vec<String> = outside.into_iter().cloned().collect();
    let forms = [(Form::Classic, "free"), (Form::Pinned, "same-cpu")];
    let member = |scores: &Scores, form, place| {
        Some(Member { disturbed: disturbed.clone(), ..member(scores, form, place)? })
    };
    let of = |scores: &Scores| forms.map(|(form, place)| member(scores, form, place));
    scores(&diagnosis.series).iter().flat_map(of).flatten().collect()
}

fn member(scores: &Scores, form: Form, place: &str) -> Option<Member> {
    let score = scores.index(form).ok()?;
    let key = format!("{GROUP}.index@{place}?{COPIES}={}#{SCORE}", scores.copies);
    let keyed = keyed(&key)?;
    // Whole passes stand for processes: tests of one pass share what drifted.
    let passes = scores.index_by_pass(form);
    let verdicts = scores.tests().map(|(_, judged)| judged.analysis.verdict.kind);
    let doubted =
        verdicts.filter(|kind| !matches!(kind, VerdictKind::Trusted | VerdictKind::TrustedWithCause)).count();
    Some(Member {
        key,
        case: keyed.case,
        point: keyed.point,
        metric: Metric::new(SCORE, "index", "", Better::Higher, Value).aside(),
        title: format!("{INDEX} Index Score"),
        counts: vec![passes.len()],
        at_clock: None,
        clocks: vec![f64::NAN; passes.len()],
        medians: passes,
        median: score.value,
        given_interval: None,
        verdict: Verdict::trusted(),
        disturbed: Vec::new(),
        rejected_by: None,
        note: match doubted {
            0 => String::new(),
            count => format!("{count} of its scores are not trusted"),
        },
    })
}

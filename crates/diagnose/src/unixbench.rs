//! Scores of many copies that one copy contradicts.

use super::{Evidence, Rule};
use model::Finding;
use model::vocabulary::unixbench::rule::MORE_THAN_COPIES;
use stats::Judged;
use stats::unixbench::{Beyond, more_than_copies, scores, usable};

pub const RULES: &[Rule] = &[MORE];

const MORE: Rule = Rule {
    id: MORE_THAN_COPIES,
    title: "N copies of a test score more than N times one copy",
    topic: "placement",
    meaning: "Four copies on four CPUs do at most four times the work of one. Where UnixBench says more, the copy that ran alone was held up by \
            something that many copies have not. In context switching that is the way between two CPUs: with idle CPUs around, the scheduler \
            spreads the two tasks of one copy, and each hand-over wakes a CPU; with all CPUs busy they stay on one.",
    action: "",
    when: "The score of N copies over that of one is 1.1 times the smaller of N and the number of CPUs or more. The same for imported reports.",
    how: "",
    calm: "",
    looked_at: "",
    source: file!(),
    check,
};

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let all = scores(evidence.series);
    let one = all.iter().find(|scores| scores.copies == 1)?;
    let many = all.iter().filter(|scores| scores.copies > 1);
    let cpus = evidence.machine.cpus.online.len();
    let pairs = many.flat_map(|many| many.tests().map(move |(test, judged)| (many.copies, test, judged)));
    let mut any = false;
    let rows = pairs.filter_map(|(copies, test, judged): (i64, _, &Judged)| {
        let (_, alone) = one.tests().find(|(other, _)| *other == test)?;
        let (one, many) = (usable(alone)?, usable(judged)?);
        any = true;
        Beyond::of(test, [one, many], copies, Some(cpus), &judged.series.key)
    });
    let rows: Vec<Beyond> = rows.collect();
    any.then(|| more_than_copies(&rows).into_iter().collect())
}

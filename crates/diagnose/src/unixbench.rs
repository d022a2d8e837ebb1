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
    meaning: "Four copies on four CPUs do at most four times the work of one. If UnixBench shows more, something slowed the copy \
             that ran alone. In context switching it is the way between two CPUs.",
    action: "Compare hosts by pinned figures, not by the score of one copy. See it: assay run --only ipc.pipe-pingpong --new",
    when: "The score of N copies over that of one is at least 1.1 times N. If the host has fewer CPUs, their number counts. \
             Imported reports count too.",
    how: "With idle CPUs the scheduler spreads the two tasks of one copy, and each hand-over wakes a CPU. With all CPUs busy \
             they stay on one.",
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

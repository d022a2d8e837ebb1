//! What SMT costs, or without it a busy neighbour core.

use super::neighbours::{Tally, VARIANTS, Variant, expectation, neighbour, rows};
use super::{Evidence, Rule};
use crate::model::{Effect, Fact, Finding, Severity};

pub const RULES: &[Rule] = &[COST];

const COST: Rule = Rule {
    id: "smt-cost",
    title: "What a busy neighbour costs",
    about: "A core with two threads has one set of execution units and caches: while both threads are busy, each is slower \
            than alone, though CPU% counts two full CPUs. How much depends on the call. Beside it stands what SMT costs \
            when it is merely on. On a machine without SMT the neighbour is another core, which shares memory, \
            last-level cache and turbo, and the kernel's locks.",
    method: "Each pinned case of assay smt table is measured alone, beside the same work, beside a spinner and with SMT off, \
             in turns. Costs are ratios of pairs of the same pass; one counts as paying (or the same) where its whole \
             95 % interval lies beyond (within) 2 %. Calls of several processes are those with several seats and those \
             that make children. Published expectation (lmbench tables with hyper-threading on and off): single-process \
             calls unaffected, pipe and fork+exit pay a little.",
    calm: "busy neighbours cost nothing",
    source: file!(),
    check: cost_of_neighbours,
};

fn cost_of_neighbours(evidence: &Evidence) -> Option<Vec<Finding>> {
    let rows = rows(evidence.series);
    if rows.is_empty() {
        return None;
    }
    let dearest = |variant: Variant| {
        let costs = rows.iter().filter_map(|row| Some((row, row.costs[variant as usize].as_ref()?)));
        let paying = costs.filter(|(_, cost)| cost.pays() || variant == Variant::Off && cost.gains());
        paying.max_by(|(_, one), (_, other)| {
            one.ratio.ratio.ln().abs().total_cmp(&other.ratio.ratio.ln().abs())
        })
    };
    let beside = neighbour(evidence.machine, &rows);
    let mut facts = Vec::new();
    for variant in VARIANTS {
        for (several, class) in [(false, "single-process calls"), (true, "calls of several processes")] {
            let tally = Tally::of(&rows, several, variant);
            if tally.rows > 0 {
                facts.push(Fact::new(format!("{class}, {}", variant.words()), tally.words(), "smt table"));
            }
        }
        facts.extend(dearest(variant).map(|(_, cost)| {
            let words = format!("{:.2}× as long as alone", cost.ratio.ratio);
            Fact::new(format!("most moved, {}", variant.words()), words, &cost.judged.series.key)
        }));
    }
    let dearest_of_all = [Variant::SameWork, Variant::Spinner].into_iter().filter_map(dearest);
    let dearest_of_all =
        dearest_of_all.max_by(|(_, one), (_, other)| one.ratio.ratio.total_cmp(&other.ratio.ratio));
    let expected = expectation(&rows);
    let headline = match (dearest_of_all, &expected) {
        (Some((row, cost)), _) => format!(
            "a busy {beside} makes {} up to {:.2}× as long",
            evidence.title(&row.alone.series.case.bench),
            cost.ratio.ratio
        ),
        (None, Some(expected)) if dearest(Variant::Off).is_some() => expected.clone(),
        _ => return Some(Vec::new()),
    };
    let merely_on = expected
        .unwrap_or_else(|| "SMT could not be switched off here, so nothing is said of SMT merely on".into());
    let cause = match beside {
        "SMT sibling" => {
            format!("Two threads of a core share its units, caches and branch predictors. {merely_on}.")
        }
        _ => format!(
            "No SMT sibling is online here: the neighbour is another core, which shares memory, last-level cache, turbo and \
             the kernel's locks. {merely_on}."
        ),
    };
    Some(vec![Finding {
        rule: COST.id.into(),
        severity: Severity::Note,
        headline,
        cause,
        facts,
        confirm: "assay smt table --profile standard".into(),
        advice: "Judge headroom by what the calls of your service pay, not by CPU%: two busy threads are not two cores."
            .into(),
        series: Vec::new(),
        effect: Effect::None,
    }])
}

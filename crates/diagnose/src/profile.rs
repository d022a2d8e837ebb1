//! The knobs that are responsible for the effect of a profile.

use super::shares::{EvaluatedProfile, evaluated_profile, words};
use super::words::{at_most, shell};
use super::{Evidence, Rule};
use model::vocabulary::sweep as ids;
use model::{Fact, Finding, percent};
use stats::factorial::{Effect, Shares};

pub const RULES: &[Rule] = &[SHARES];

const SHARES: Rule = Rule {
    id: ids::rule::PROFILE_SHARES,
    title: "Which knobs of a profile are responsible",
    topic: "profile",
    meaning: "A profile changes many knobs at once. Assay changed each knob alone, strong ones in pairs, and all together. So the \
             difference is split among knobs and interactions; often one or two account for all of it.",
    action: "Apply only the responsible knobs and leave the others as they are. See it: assay sweep BENCHMARK --knob \
             NAME=BEFORE,AFTER",
    when: "A profile experiment finds an effect, or can exclude one above 5 %. A knob is responsible if its effect is significant \
             and above 2 % or a twentieth of the total.",
    how: "All on logarithms. An effect is one knob changed alone over none changed. An interaction is what a pair does beyond \
             both alone. The remainder is the total without all of these. Intervals are at 95 % from one fit that takes passes \
             and drift out (docs/method/sweeps.md). Significance is by Holm's correction over the knobs.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: shares,
};

/// A half interval up to this size (5 %, as a logarithm) shows that a profile has no effect.
const MAX_HALF_INTERVAL: f64 = 0.05;

fn shares(evidence: &Evidence) -> Option<Vec<Finding>> {
    let shared = evaluated_profile(evidence.run, evidence.series)?;
    let total = &shared.shares.total;
    let is_significant = !total.interval.contains(0.0) || !shared.shares.strong().is_empty();
    // An imprecise zero is no finding; the section shows it.
    let is_precise = total.interval.half_width() <= MAX_HALF_INTERVAL;
    Some(if is_significant || is_precise { vec![finding(&shared)] } else { Vec::new() })
}

fn finding(shared: &EvaluatedProfile) -> Finding {
    let total = &shared.shares.total;
    let is_significant = !total.interval.contains(0.0);
    let strong = shared.shares.strong();
    let metric = &shared.metric.title;
    let names: Vec<&str> = strong.iter().map(|factor| shared.name(*factor)).collect();
    let after = format!("Profile `{}`", shared.factors.after);
    let change = |ln: f64| format!("{:+.1} %", 100.0 * (ln.exp() - 1.0));
    let (low, high) = (change(total.interval.low), change(total.interval.high));
    let headline = match (is_significant, names.as_slice()) {
        (false, []) => format!("{after} changes {metric} by {low} to {high}, which may be nothing"),
        (false, names) => {
            format!(
                "{after} changes {metric} by {low} to {high}, but {} alone has an effect",
                names.join(" and ")
            )
        }
        (true, []) => format!("{after} changes {metric} by {}. No single knob stands out.", change(total.ln)),
        (true, names) => {
            format!("{after} changes {metric} by {}. Responsible: {}.", change(total.ln), at_most(3, names))
        }
    };
    let confirm = match strong.first().map(|factor| &shared.factors.factors[*factor]) {
        Some(factor) => format!(
            "assay sweep {} --knob {}",
            shell(&shared.factors.target.bench),
            shell(&format!("{}={},{}", factor.name, factor.before, factor.after))
        ),
        None => format!("assay explain-profile --after {} ...", shell(&shared.factors.after)),
    };
    let count = shared.factors.factors.len();
    Finding::note(SHARES.id, headline)
        .cause(format!(
            "Assay changed each of {count} knobs alone, and all together. Passes of one setting differ by {}.",
            percent(shared.shares.noise)
        ))
        .facts(facts(shared))
        .confirm(confirm)
        .advice(match (is_significant, strong.len() < count, names.as_slice()) {
            (true, true, [_, ..]) => {
                format!("Change only {}: the other knobs add nothing significant.", names.join(" and "))
            }
            (true, ..) => {
                "Change all of them together: no knob is known to be needless.".to_string()
            }
            (false, ..) => format!("Do not choose between the two by {metric}."),
        })
}

/// The whole difference, the effect of each knob (strongest first), and the interactions of pairs.
fn facts(shared: &EvaluatedProfile) -> Vec<Fact> {
    let source = shared.keys.first().cloned().unwrap_or_default();
    let fact = |label: String, value: String| Fact::new(label, value, &source);
    let part = |effect: &Effect, share: Option<f64>| match share {
        Some(share) => format!("{}, {} of the difference", words(effect), percent(share)),
        None => words(effect),
    };
    let Shares { total, mains, pairs, remainder, .. } = &shared.shares;
    let mut mains: Vec<_> = mains.iter().collect();
    mains.sort_by(|one, other| other.effect.ln.abs().total_cmp(&one.effect.ln.abs()));
    let mut facts =
        vec![fact(format!("{} over {}", shared.factors.after, shared.factors.before), words(total))];
    facts.extend(mains.iter().map(|main| fact(shared.turn(main.factor), part(&main.effect, main.share))));
    facts.extend(pairs.iter().map(|pair| {
        let [one, other] = pair.factors.map(|factor| shared.name(factor));
        fact(format!("{one} and {other} together beyond both alone"), part(&pair.effect, pair.share))
    }));
    facts.push(fact("remainder".to_string(), words(remainder)));
    let left_out = &shared.factors.left_out;
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|left| left.name.as_str()).take(8).collect();
        let value = format!("{} ({}, ...)", left_out.len(), names.join(", "));
        facts.push(fact("differences that could not be measured here".to_string(), value));
    }
    facts
}

//! Two results that have nothing in common: what each holds, and what would have to be equal.

use std::collections::{BTreeMap, BTreeSet};

use super::arm::benchmark;
use super::words::MIN_VALUES;
use super::{Comparison, ComparisonSide, Member};
use diagnose::words::listed;

/// What can be compared at all, where the two results don't show it themselves.
const COMPARABLE: &str = "Compare results of one tool with the same settings. Of different tools only memory and TCP bandwidth \
                          can be compared.";

/// How many values a figure of an imported result has at most; 0 of a run.
pub fn imported_values(arm: &ComparisonSide) -> usize {
    let most = || arm.valued().map(|member| member.medians.len()).max();
    if arm.imported { most().unwrap_or(0) } else { 0 }
}

/// The figures without a counterpart: how many, and what they are called, each name once.
pub fn alone(arm: &ComparisonSide, matched: &BTreeSet<&str>) -> (usize, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let (mut many, mut known) = (0, BTreeSet::new());
    for member in arm.valued().filter(|member| !matched.contains(member.key.as_str())) {
        many += 1;
        if known.insert(member.title.as_str()) {
            names.push(member.title.clone());
        }
    }
    (many, names)
}

/// Figures of one kind that are looked at on each side: a curve has hundreds.
const LOOKED_AT: usize = 64;

/// Settings that are named.
const NAMED: usize = 3;

/// What both measured, in the settings that differ least: `iperf3 sent, with streams 1 in A and 8
/// in B`.
pub fn nearest(a: &ComparisonSide, b: &ComparisonSide) -> Option<String> {
    let kind = |member: &Member| (member.case.bench.to_string(), member.metric.name.to_string());
    let mut of_b: BTreeMap<(String, String), Vec<&Member>> = BTreeMap::new();
    for member in b.valued() {
        let own = of_b.entry(kind(member)).or_default();
        if own.len() < LOOKED_AT {
            own.push(member);
        }
    }
    let mut looked: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut best: Option<(Vec<String>, &Member)> = None;
    for one in a.valued() {
        let looked = looked.entry(kind(one)).or_default();
        *looked += 1;
        if *looked > LOOKED_AT {
            continue;
        }
        for other in of_b.get(&kind(one)).into_iter().flatten() {
            let apart = settings_apart(one, other);
            if !apart.is_empty() && best.as_ref().is_none_or(|(known, _)| apart.len() < known.len()) {
                best = Some((apart, one));
            }
        }
    }
    let (apart, member) = best?;
    let apart: Vec<&str> = apart.iter().map(String::as_str).collect();
    let more = apart.len().saturating_sub(NAMED);
    let named = apart[..apart.len() - more].join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("Both have {}, but with {named}{more}", member.title))
}

/// `engine null in A and psync in B`, for each setting that is not the same.
fn settings_apart(one: &Member, other: &Member) -> Vec<String> {
    let settings = |member: &Member| -> BTreeMap<String, String> {
        let own = member.case.params.iter().chain(member.point.iter());
        let own = own.map(|(name, value)| (name.replace('_', " "), value.to_string()));
        own.chain([("placement".to_string(), member.case.placement.name.to_string())]).collect()
    };
    let [one, other] = [settings(one), settings(other)];
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    let said = |value: Option<&String>| value.map_or("none", String::as_str).to_string();
    differs
        .map(|name| format!("{name} {} in A and {} in B", said(one.get(name)), said(other.get(name))))
        .collect()
}

impl Comparison {
    /// Whether there is nothing in A that B has in any form.
    pub fn is_apart(&self) -> bool {
        self.metrics.is_empty() && self.refused.is_empty()
    }

    /// What is said of two that have nothing in common.
    pub(super) fn said_apart(&self, letter: &str) -> Vec<String> {
        let figures = |side: usize| {
            let mut names: Vec<&str> = self.names_alone[side].iter().map(|name| benchmark(name)).collect();
            names.dedup();
            if names.is_empty() { "no figure that has a value".to_string() } else { listed(&names) }
        };
        let next = match &self.nearest {
            Some(nearest) => format!("{}.", nearest.replace(" in B", &format!(" in {letter}"))),
            None => COMPARABLE.to_string(),
        };
        vec![
            format!("No conclusion: A and {letter} have no figure in common."),
            format!("A has {}; {letter} has {}.", figures(0), figures(1)),
            next,
        ]
    }

    /// Why none of the figures that both have counts, where one of the two was imported.
    pub(super) fn imported_words(&self, other: &str, both: usize) -> String {
        let has = |side: usize, letter: &str| match self.imported_values[side] {
            0 => None,
            many => Some(format!("{letter} has {many}")),
        };
        let are_enough = self.imported_values.iter().all(|many| *many == 0 || *many >= MIN_VALUES);
        if are_enough && !self.are_single() {
            return format!("none of the {both} figures counts, as their values scatter too widely");
        }
        let said: Vec<String> = [has(0, "A"), has(1, other)].into_iter().flatten().collect();
        if self.are_single() {
            format!("none of the {both} figures counts, as imported figures have no interval")
        } else {
            format!(
                "none of the {both} figures counts, as an interval needs {MIN_VALUES} values of each, and {}",
                said.join(", ")
            )
        }
    }

    /// Whether each imported figure is one value.
    pub(super) fn are_single(&self) -> bool {
        self.imported_values.iter().all(|many| *many < 2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{arm, member};
    use super::super::{MAX_ROWS, Options, compare};
    use super::*;
    use model::Better;

    fn imported(name: &str, keys: &[&str], values: usize) -> ComparisonSide {
        let members = keys.iter().map(|key| {
            let values: Vec<f64> = (0..values).map(|at| 100.0 + at as f64).collect();
            let mut one = member(key, "1/s", Better::Higher, &values);
            one.title = format!("figure {}", key.split('#').next().expect("a key"));
            one.metric.headline = true;
            one
        });
        arm(name, true, members.collect())
    }

    fn said(a: &ComparisonSide, b: &ComparisonSide) -> Vec<String> {
        compare(a, b, &Options::default()).answer("B", MAX_ROWS).sentences
    }

    #[test]
    fn what_each_holds_and_what_could_be_compared_is_said() {
        let keys = ["x.one@free#rate", "x.two@free#rate", "x.three@free#rate", "x.four@free#rate"];
        let found =
            compare(&imported("a", &keys, 1), &imported("b", &["y.one@free#rate"], 1), &Options::default());
        assert!(found.is_apart() && found.nearest.is_none() && found.alone == [4, 1], "{found:?}");
        let said = found.answer("B", MAX_ROWS).sentences;
        assert_eq!(said[0], "No conclusion: A and B have no figure in common.");
        let expected = "A has figure x.one@free, figure x.two@free, figure x.three@free and 1 more; B has figure y.one@free.";
        assert_eq!(said[1], expected);
        assert!(said[2].starts_with("Compare results of one tool with the same settings"), "{}", said[2]);
    }

    #[test]
    fn other_settings_of_one_benchmark_are_named() {
        let a = imported("a", &["x.one@free?engine=null&op=read#rate", "x.two@free#rate"], 1);
        let b = imported(
            "b",
            &["x.one@free?engine=psync&op=write#rate", "x.one@free?engine=psync&op=read#rate"],
            1,
        );
        let said = said(&a, &b);
        assert!(said[2].ends_with(", but with engine null in A and psync in B."), "{}", said[2]);
    }

    #[test]
    fn repeated_imports_are_no_single_values() {
        let of = |values: usize| imported("a", &["x.one@free#rate"], values);
        let said_of = |a: usize, b: usize| said(&of(a), &of(b)).join(" ");
        assert!(said_of(1, 1).contains("imported figures have no interval"), "{}", said_of(1, 1));
        assert!(said_of(1, 1).contains("compare single values"), "{}", said_of(1, 1));
        let some = said_of(4, 1);
        assert!(some.contains("an interval needs 5 values of each, and A has 4, B has 1"), "{some}");
        assert!(some.contains("compare medians"), "{some}");
        let enough = compare(&of(6), &of(7), &Options::default());
        assert!(enough.metrics[0].ci95.is_some(), "{enough:?}");
        let words = enough.imported_words("B", 1);
        assert!(words.ends_with("their values scatter too widely"), "{words}");
    }
}

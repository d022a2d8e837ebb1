//! Figures whose measuring changed between versions of Assay: results of two versions are compared,
//! and each such figure is named first.

use super::ComparisonSide;
use super::environment::OR;
use model::pattern::Pattern;

/// One change in how figures are measured.
struct Change {
    /// The first version that measures so.
    since: &'static str,
    /// The figures, as patterns of keys.
    series: &'static str,
    /// What changed, as a clause: `windows are four times as long`.
    what: &'static str,
}

/// The newest last. 0.1.0 is the first version, so that nothing stands here yet.
const CHANGES: &[Change] = &[];

/// Whether two versions, as text, measure a figure in the same way; a text without a version is
/// taken to.
pub(super) fn measured_alike(one: &str, other: &str, key: &str) -> bool {
    alike(CHANGES, [one, other].map(numbers), key)
}

fn alike(changes: &[Change], [one, other]: [Vec<u32>; 2], key: &str) -> bool {
    one.is_empty()
        || other.is_empty()
        || !changes
            .iter()
            .any(|change| change.is_between(&one, &other) && Pattern::of(change.series).matches(key))
}

impl Change {
    fn is_between(&self, one: &[u32], other: &[u32]) -> bool {
        let since = numbers(self.since);
        (*one < *since) != (*other < *since)
    }
}

/// What is to be said of two results that two versions measured.
pub(super) fn warnings(arms: [&ComparisonSide; 2]) -> Vec<String> {
    said(CHANGES, arms)
}

fn said(changes: &[Change], [a, b]: [&ComparisonSide; 2]) -> Vec<String> {
    let (Some(of_a), Some(of_b)) = (version(a), version(b)) else { return Vec::new() };
    let between = |change: &&Change| change.is_between(&of_a.numbers, &of_b.numbers);
    let both = |change: &&Change| {
        let pattern = Pattern::of(change.series);
        [a, b].iter().all(|arm| arm.valued().any(|member| pattern.matches(&member.key)))
    };
    let words = |change: &Change| {
        let title = a.valued().find(|member| Pattern::of(change.series).matches(&member.key));
        format!(
            "{} is measured differently since Assay {}: {} (A {}, B {})",
            title.map_or(change.series, |member| member.title.as_str()),
            change.since,
            change.what,
            of_a.text,
            of_b.text
        )
    };
    changes.iter().filter(between).filter(both).map(words).collect()
}

struct Version<'a> {
    text: &'a str,
    numbers: Vec<u32>,
}

/// The version that measured a result; `None` if it is unknown or there are several.
fn version(arm: &ComparisonSide) -> Option<Version<'_>> {
    let text = arm.setting("assay").filter(|text| !text.contains(OR))?;
    Some(Version { text, numbers: numbers(text) })
}

fn numbers(version: &str) -> Vec<u32> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{arm, around, member};
    use super::*;
    use model::Better;

    #[test]
    fn a_change_between_two_versions_is_named_where_both_have_the_figure() {
        let changes = [Change {
            since: "0.10.0",
            series: "syscall.getpid@one-cpu#latency",
            what: "windows are four times as long",
        }];
        let of = |version: &str, key: &str| {
            let mut arm = arm("host", false, vec![member(key, "ns", Better::Lower, &around(5.0))]);
            arm.environment.push(("assay".into(), version.into()));
            arm
        };
        let key = "syscall.getpid@one-cpu#latency";
        let warned = |a: &ComparisonSide, b: &ComparisonSide| said(&changes, [a, b]);
        let words = warned(&of("0.9.1", key), &of("0.10.0", key));
        assert_eq!(
            words,
            ["Test is measured differently since Assay 0.10.0: windows are four times as long \
              (A 0.9.1, B 0.10.0)"]
        );
        assert_eq!(warned(&of("0.12.0", key), &of("0.2.0", key)).len(), 1);
        for [a, b] in [["0.9.1", "0.9.2"], ["0.10.0", "0.11.0"], ["0.10.0 | 0.9.0", "0.9.0"]] {
            assert!(warned(&of(a, key), &of(b, key)).is_empty(), "{a} {b}");
        }
        assert!(warned(&of("0.9.1", key), &of("0.10.0", "syscall.read@one-cpu#latency")).is_empty());
        let same = |one: &str, other: &str, key: &str| alike(&changes, [one, other].map(numbers), key);
        assert!(!same("0.9.1", "0.10.0", key) && same("0.9.1", "0.9.2", key) && same("", "0.10.0", key));
        assert!(same("0.9.1", "0.10.0", "syscall.read@one-cpu#latency"));
    }

    #[test]
    fn every_change_names_a_version_and_a_pattern() {
        for change in CHANGES {
            assert!(!numbers(change.since).is_empty() && change.series.contains('#'), "{}", change.series);
        }
    }
}

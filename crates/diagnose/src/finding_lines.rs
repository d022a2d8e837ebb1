//! Findings as a screen lists them: one line per cause, the gravest first, then those that touch
//! the most key figures.

use super::topic;
use model::vocabulary::RuleId;
use model::vocabulary::host::rule as host;
use model::vocabulary::memory_map::rule as map;
use model::vocabulary::network::rule as network;
use model::vocabulary::rate::rule as rate;
use model::{Finding, Severity};

/// A line of a screen.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingLine {
    pub severity: Severity,
    pub topic: &'static str,
    /// The headline.
    pub text: String,
    pub rule: String,
    pub advice: String,
    /// Further findings of the same cause, which have no line of their own.
    pub more: usize,
}

impl FindingLine {
    /// `and 3 more of this kind`; empty where there are none.
    pub fn more_words(&self) -> String {
        if self.more == 0 { String::new() } else { format!("and {} more of this kind", self.more) }
    }
}

/// Rules whose findings follow from another's where both apply: the consequence, then the causes.
const FOLLOWS: &[(RuleId, &[RuleId])] = &[
    (host::BLOCK_INSIDE_CACHE, &[host::LLC_DIFFERS]),
    (host::SLOW_CLOCK, &[host::SLOW_GOVERNOR, host::TURBO_OFF]),
    (host::MOVING_CLOCK, &[host::SLOW_GOVERNOR]),
    (host::CLOCK_CHECK, &[host::MOVING_CLOCK, host::SLOW_GOVERNOR]),
    (host::SWAPPING, &[host::MEMORY_PRESSURE]),
    (host::HIGHER_PRIORITY, &[host::BACKGROUND_LOAD]),
    (map::MEMORY_TWO_SPEEDS, &[host::DIMM_POPULATION]),
    (map::MEMORY_NODES_UNEVEN, &[host::DIMM_POPULATION]),
    (rate::RATE_SLOW_MEMORY, &[host::DIMM_POPULATION]),
    (rate::RATE_RUNS_APART, &[rate::RATE_SLOW_MEMORY]),
    (rate::RATE_SETTLED_AT_START, &[rate::RATE_SLOW_MEMORY, rate::RATE_RUNS_APART]),
    (rate::RATE_MEMORY_MOVES, &[rate::RATE_SLOW_MEMORY, rate::RATE_RUNS_APART]),
    (network::NETWORK_CPU_BOUND, &[network::NETWORK_BOTTLENECK]),
    (network::NETWORK_WINDOW, &[network::NETWORK_BOTTLENECK]),
    (network::NETWORK_SHAPER, &[network::NETWORK_BOTTLENECK]),
    (network::NETWORK_ONE_STREAM, &[network::NETWORK_BOTTLENECK]),
];

/// The lines of a screen: problems, warnings, notes; within one those first that touch the most key
/// figures. Findings of one rule, and those that follow from another finding, share a line.
pub fn screen_order(findings: &[Finding], touches: impl Fn(&Finding) -> usize) -> Vec<FindingLine> {
    let fired = |rule: &RuleId| findings.iter().any(|finding| *rule == finding.rule);
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        let cause = cause_of(&finding.rule, &fired);
        match groups.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, group)) => group.push(finding),
            None => groups.push((cause, vec![finding])),
        }
    }
    let mut lines: Vec<(usize, FindingLine)> = groups
        .into_iter()
        .filter_map(|(cause, group)| {
            let most = group.iter().map(|finding| touches(finding)).max()?;
            let severity = group.iter().map(|finding| finding.severity).max()?;
            // The cause is shown; of several such findings the gravest that touches most key
            // figures.
            let lead = group
                .iter()
                .rev()
                .max_by_key(|finding| (finding.rule == cause, finding.severity, touches(finding)))?;
            let line = FindingLine {
                severity,
                topic: topic(&lead.rule).unwrap_or("other"),
                text: lead.headline.clone(),
                rule: lead.rule.clone(),
                advice: lead.advice.clone(),
                more: group.len() - 1,
            };
            Some((most, line))
        })
        .collect();
    lines.sort_by_key(|(most, line)| std::cmp::Reverse((line.severity, *most)));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The rule that a finding's line belongs to: the first cause that was found, or the cause of that
/// one.
fn cause_of(rule: &str, fired: &impl Fn(&RuleId) -> bool) -> String {
    let mut cause = rule;
    // The table has no circle; its longest chain is shorter than this.
    for _ in 0..4 {
        let causes = FOLLOWS.iter().find(|(follows, _)| *follows == *cause).map(|(_, causes)| *causes);
        match causes.and_then(|causes| causes.iter().find(|one| fired(one))) {
            Some(first) => cause = first.as_str(),
            None => break,
        }
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    fn finding(rule: &str, severity: Severity, headline: &str, series: &[&str]) -> Finding {
        Finding::of(rule.to_string(), severity, headline.to_string())
            .cause("")
            .facts(Vec::new())
            .confirm("")
            .affects(model::Effect::None, series.iter().map(|key| key.to_string()))
    }

    #[test]
    fn the_gravest_and_those_that_touch_most_come_first() {
        let found = [
            finding("moving-clock", Severity::Note, "clock", &["a", "b", "c"]),
            finding("drift", Severity::Warning, "drift", &["a"]),
            finding("background-load", Severity::Warning, "load", &["a", "b"]),
            finding("steal", Severity::Problem, "steal", &[]),
            finding("not-ours", Severity::Note, "other", &[]),
        ];
        let lines = screen_order(&found, |finding| finding.series.len());
        let order: Vec<(&str, &str)> = lines.iter().map(|line| (line.topic, line.text.as_str())).collect();
        assert_eq!(
            order,
            [
                ("steal", "steal"),
                ("other work", "load"),
                ("drift", "drift"),
                ("clock", "clock"),
                ("other", "other")
            ]
        );
        assert!(lines.iter().all(|line| line.more == 0 && line.more_words().is_empty()));
    }

    #[test]
    fn one_cause_has_one_line() {
        let found = [
            finding("free-placement", Severity::Warning, "ping-pong", &["a"]),
            finding("free-placement", Severity::Note, "ring", &["b"]),
            finding("block-inside-cache", Severity::Warning, "block", &["c", "d"]),
            finding("llc-differs", Severity::Note, "L3", &[]),
            finding("slow-clock", Severity::Warning, "slow", &[]),
            finding("moving-clock", Severity::Note, "moves", &[]),
            finding("clock-check", Severity::Warning, "contradicts", &[]),
        ];
        let lines = screen_order(&found, |finding| finding.series.len());
        let told: Vec<(&str, usize)> = lines.iter().map(|line| (line.text.as_str(), line.more)).collect();
        // The block follows from the cache, which has the block's severity; the clock's check
        // follows from its moving, and no governor fired.
        assert_eq!(told, [("L3", 1), ("ping-pong", 1), ("slow", 0), ("moves", 1)]);
        assert_eq!(lines[0].severity, Severity::Warning);
        assert_eq!(lines[0].more_words(), "and 1 more of this kind");
    }

    #[test]
    fn every_rule_that_follows_from_another_is_one() {
        for (rule, causes) in FOLLOWS {
            for id in [rule].into_iter().chain(*causes) {
                assert!(rules().any(|own| own.id == *id), "{id}");
            }
            let end = cause_of(rule.as_str(), &|_| true);
            assert!(FOLLOWS.iter().all(|(follows, _)| *follows != *end), "{rule} goes on after {end}");
        }
    }
}

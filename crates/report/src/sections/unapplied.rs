//! What was not looked at, and why: rules that do not apply, by subject.

use diagnose::key_figures;
use diagnose::{Diagnosis, Rule};
use machine::Hypervisor;

/// What rules are about, by their topics, in the order of the list.
const SUBJECTS: &[(&str, &[&str])] = &[
    ("clock", &["clock", "governor", "turbo", "clock source"]),
    ("SMT", &["SMT", "shared core"]),
    ("NUMA", &["NUMA"]),
    ("DIMMs", &["modules", "memory speed"]),
    ("topology", &["topology", "placement", "cores"]),
    ("memory", &["memory load", "TLB", "huge pages", "L3 cache", "memory short", "swapping"]),
    (
        "disk",
        &[
            "disk CPU",
            "disk errors",
            "disk latency",
            "disk limit",
            "disk space",
            "disk speed",
            "disk traffic",
            "discards",
            "fsync",
            "page cache",
            "queue depth",
        ],
    ),
    (
        "network",
        &[
            "network",
            "network CPU",
            "TCP streams",
            "TCP window",
            "packet loss",
            "shaper",
            "interrupts",
            "MTU",
            "offloads",
        ],
    ),
    (
        "other work",
        &[
            "CPU quota",
            "other work",
            "priority",
            "steal",
            "answers",
            "sandbox",
            "container",
            "failures",
            "limits",
            "drift",
            "two values",
        ],
    ),
    (
        "studies",
        &[
            "memory",
            "rate runs",
            "footprint",
            "guard",
            "setting",
            "trade-off",
            "profile",
            "preempted",
            "memory parts",
            "neighbour",
        ],
    ),
];

/// `NUMA (one node)`, `DIMMs in part (not reported)`, `studies`: the subjects of rules that do not
/// apply.
pub fn subjects(diagnosis: &Diagnosis, rules: &[&Rule]) -> Vec<String> {
    let own = SUBJECTS.iter().filter(|(_, topics)| rules.iter().any(|rule| topics.contains(&rule.topic)));
    let looked = |topics: &[&str]| {
        let fired = diagnosis.findings.iter().filter_map(|finding| diagnose::topic(&finding.rule));
        diagnosis.clean.iter().map(|rule| rule.topic).chain(fired).any(|topic| topics.contains(&topic))
    };
    own.map(|(subject, topics)| {
        let part = if looked(topics) { " in part" } else { "" };
        match reason(subject, diagnosis) {
            "" => format!("{subject}{part}"),
            reason => format!("{subject}{part} ({reason})"),
        }
    })
    .collect()
}

/// Why the rules of a subject did not look; empty where it was only not measured.
fn reason(subject: &str, diagnosis: &Diagnosis) -> &'static str {
    let machine = &diagnosis.machine;
    let is_guest = matches!(machine.hypervisor, Hypervisor::Guest(_));
    let measured = |group: &str| {
        let mut own = diagnosis.series.iter().filter(|judged| judged.series.case.bench.starts_with(group));
        own.any(|judged| judged.analysis.estimate.is_some())
    };
    match subject {
        "clock" | "DIMMs" if is_guest => "guest",
        "clock" | "DIMMs" => "not reported",
        "SMT" if machine.cpus.cores.iter().flatten().all(|core| core.cpus.len() < 2) => {
            if is_guest {
                "no siblings reported"
            } else {
                "no siblings"
            }
        }
        "NUMA" if machine.nodes.len() < 2 => "one node",
        "topology" if machine.cpus.online.len() < 2 => "one CPU",
        "topology" if machine.llc_groups().is_none_or(|groups| groups.len() < 2) => "one L3",
        "disk" if measured("disk.") => "not reported",
        "network" if !measured("network.") => "",
        "network" if !diagnosis.series.iter().any(key_figures::is_between_hosts) => "loopback",
        "other work" if machine.limits.groups_above == Some(true) => "groups above unseen",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, latency, machine};
    use super::*;
    use machine::Machine;
    use model::View;

    #[test]
    fn each_topic_has_one_subject() {
        for rule in diagnose::rules() {
            let own = SUBJECTS.iter().filter(|(_, topics)| topics.contains(&rule.topic));
            assert_eq!(own.count(), 1, "{} of {}", rule.topic, rule.id);
        }
    }

    #[test]
    fn each_subject_says_what_is_missing() {
        let machine =
            Machine { hypervisor: Hypervisor::Guest("kvm".into()), nodes: Vec::new(), ..machine(2) };
        let mut diagnosis = Made::new(View::Table, vec![latency()]).diagnosed(machine);
        diagnosis.machine.cpus.cores = None;
        let all: Vec<&Rule> = diagnose::rules().collect();
        let text = subjects(&diagnosis, &all).join(", ");
        for part in ["SMT (no siblings reported)", "NUMA (one node)", "DIMMs (guest)", "network", "studies"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains("studies ("), "{text}");
        assert!(subjects(&diagnosis, &[]).is_empty());
    }
}

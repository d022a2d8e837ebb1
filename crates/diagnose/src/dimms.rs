//! How memory modules are placed, as the firmware reports.

use super::words::{capital, listed};
use super::{Evidence, Rule};
use machine::{self, Balance, Confidence, DimmFinding, Hypervisor, Machine, Population};
use model::vocabulary::host as ids;
use model::{Fact, Finding, Severity};

pub const RULES: &[Rule] = &[POPULATION];

const POPULATION: Rule = Rule {
    id: ids::rule::DIMM_POPULATION,
    title: "Memory modules in the wrong slots",
    topic: "modules",
    meaning: "A socket reaches its bandwidth only if all its channels hold the same memory. Uneven modules \
        make a part of memory several times slower than the rest. Which part a program gets differs from run \
        to run, so results vary.",
    action: "Move the modules as the finding says, or compare the slots with the board's manual. See it: \
        sudo assay machine",
    when: "Channels, controllers or sockets hold different amounts, a socket has a processor and no memory, \
        or channels are empty. Or modules run below their rated speed without a known reason. Two modules \
        against three on a socket's controllers are a note.",
    how: "Reads SMBIOS types 4 and 17 (root only). A rule for each family of boards places the slots; a \
        table of processors gives the channels and what one interleave set covers. Both name their sources \
        (assay machine --json). Known reasons for a lower speed are the processor and the number of modules \
        per channel. In a guest the rule does not apply, since the hypervisor invents the modules.",
    calm: "memory modules placed evenly",
    looked_at: "SMBIOS type 17",
    source: file!(),
    check: population,
};

fn population(evidence: &Evidence) -> Option<Vec<Finding>> {
    found(evidence.machine)
}

/// What a host's modules show, without a run.
pub fn found(machine: &Machine) -> Option<Vec<Finding>> {
    if matches!(machine.hypervisor, Hypervisor::Guest(_)) {
        return None;
    }
    let judged = &machine.population;
    let verdict = judged.dimm_verdict?;
    let mut findings = Vec::new();
    if matches!(verdict, Balance::Unbalanced | Balance::NearBalanced) {
        findings.push(placement(judged, verdict, machine.dimms.len()));
    }
    let slow = judged.dimm_findings.iter().find(|finding| finding.kind == "below_rated_speed");
    findings.extend(
        slow.filter(|finding| finding.severity > Severity::Note)
            .map(|finding| below_rated_speed(judged, finding)),
    );
    Some(findings)
}

/// Findings about where modules sit, the gravest first.
fn placement_findings(judged: &Population) -> impl Iterator<Item = &DimmFinding> {
    let modules =
        |finding: &&DimmFinding| !finding.kind.starts_with("mixed") && finding.kind != "below_rated_speed";
    judged.dimm_findings.iter().filter(modules)
}

fn placement(judged: &Population, verdict: Balance, slots: usize) -> Finding {
    let gravest = placement_findings(judged).next();
    let certain = judged.dimm_confidence > Some(Confidence::Low);
    let severity = gravest.map_or(Severity::Note, |finding| finding.severity);
    let severity = if certain && verdict == Balance::Unbalanced { severity } else { Severity::Note };
    let modules: usize = judged.dimm_sockets.iter().map(|socket| socket.dimms).sum();
    let causes: Vec<String> =
        placement_findings(judged).take(2).map(|finding| sentence(&finding.text)).collect();
    let headline = match verdict {
        Balance::Unbalanced => format!("Memory modules are placed unevenly: {}", layout(judged)),
        _ => format!("Memory channels are empty: {}", layout(judged)),
    };
    let by_manual = || "Compare the slots with the population rules in the board's manual.".to_string();
    Finding::of(POPULATION.id, severity, headline)
        .cause(causes.join(" "))
        .facts(facts(judged))
        .fact("modules", format!("{modules} in {slots} slots"), machine::TABLES)
        .confirm("sudo assay machine")
        .advice(judged.dimm_move.as_deref().map_or_else(by_manual, sentence))
}

fn below_rated_speed(judged: &Population, finding: &DimmFinding) -> Finding {
    Finding::of(POPULATION.id, finding.severity, capital(finding.text.split("; ").next().unwrap_or_default()))
        .cause("Neither the processor nor the number of modules per channel explains it.")
        .facts(facts(judged))
        .confirm("sudo dmidecode -t 17 | grep -E 'Locator|Speed'")
        .advice("Look at the memory speed in the firmware's setup, and at its power profile.")
}

fn facts(judged: &Population) -> Vec<Fact> {
    let mut facts = Vec::new();
    for socket in judged.dimm_sockets.iter().take(4) {
        let total = socket.channels_total.map_or(String::new(), |total| format!(" of {total}"));
        let label = format!("channels of socket {} with modules", socket.socket);
        facts.push(Fact::new(label, format!("{}{total}", socket.channels_populated), machine::TABLES));
    }
    for (label, value, source) in [
        ("slot names from", &judged.dimm_platform, &judged.dimm_source),
        ("channel count from", &judged.dimm_cpu_family, &judged.dimm_cpu_source),
    ] {
        if let (Some(value), Some(source)) = (value, source) {
            facts.push(Fact::new(label, value, source));
        }
    }
    facts
}

/// Modules of each controller, else of each channel: `sockets 0 and 1 have 3+1 modules on their
/// controllers`.
fn layout(judged: &Population) -> String {
    let joined = |counts: Vec<usize>| counts.iter().map(usize::to_string).collect::<Vec<_>>().join("+");
    let words = judged.dimm_sockets.iter().map(|socket| {
        let count = |of: &std::collections::BTreeMap<u32, usize>, all: u32| {
            (0..all).map(|at| of.get(&at).copied().unwrap_or(0)).collect::<Vec<_>>()
        };
        match (&socket.dimms_per_controller, socket.controllers_total, socket.channels_total) {
            (Some(of), Some(all), _) => (joined(count(of, all)), "controllers"),
            (_, _, Some(all)) => (joined(count(&socket.dimms_per_channel, all)), "channels"),
            _ => (socket.dimms.to_string(), "slots"),
        }
    });
    // Sockets that are filled alike are named together.
    let mut layouts: Vec<((String, &str), Vec<String>)> = Vec::new();
    for (words, socket) in words.zip(&judged.dimm_sockets) {
        let number = socket.socket.to_string();
        match layouts.iter_mut().find(|(known, _)| *known == words) {
            Some((_, sockets)) => sockets.push(number),
            None => layouts.push((words, vec![number])),
        }
    }
    let first_place = layouts.first().map(|((_, place), _)| *place);
    let named = layouts.iter().take(MAX_LAYOUTS).enumerate().map(|(at, ((counts, place), sockets))| {
        let sockets: Vec<&str> = sockets.iter().map(String::as_str).collect();
        let (subject, whose) = match sockets.as_slice() {
            [one] => (format!("socket {one} has"), "its"),
            several => (format!("sockets {} have", listed(several)), "their"),
        };
        if at > 0 && Some(*place) == first_place {
            format!("{subject} {counts}")
        } else {
            format!("{subject} {counts} modules on {whose} {place}")
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

/// More different layouts than this do not fit a line.
const MAX_LAYOUTS: usize = 2;

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    format!("{}.", capital(text))
}

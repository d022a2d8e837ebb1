//! Who A and B are, in a line each, and in what they differ, in one.

use super::letter;
use crate::plain::plain;
use crate::text::{Style, Tone, paint, wrapped};
use compare::{About, Comparison, Difference};
use diagnose::words::counted;

/// A line for each result: its letter, its host, what it is, runs and date.
pub fn heading(found: &[Comparison], style: Style) -> String {
    let Some(first) = found.first() else { return String::new() };
    let sides = std::iter::once((first, 0)).chain(found.iter().map(|one| (one, 1)));
    let sides: Vec<(&Comparison, usize)> = sides.collect();
    let whens: Vec<String> = sides.iter().map(|(one, side)| when(one, *side)).collect();
    let hosts: Vec<String> = sides.iter().map(|(one, side)| host(&one.names[*side][0])).collect();
    let widest = hosts.iter().map(|host| host.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (at, (one, side)) in sides.iter().enumerate() {
        let same = |other: usize| hosts[other] == hosts[at] && whens[other] == whens[at] && other != at;
        let [_, file] = &one.names[*side];
        let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
        // If host and date are equal, the file distinguishes the two.
        let when = if whens[at].is_empty() || (0..sides.len()).any(same) {
            [plain(name, 60), whens[at].clone()]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join(", ")
        } else {
            whens[at].clone()
        };
        let head = format!("{}  {:widest$}", letter(at), hosts[at]);
        let what = fitted(
            &one.about[*side],
            style.width.saturating_sub(head.chars().count() + when.chars().count() + 4),
        );
        let line = if what.is_empty() { format!("  {when}") } else { format!("  {what}  {when}") };
        let whole = head.chars().count() + line.chars().count() <= style.width;
        out.push_str(&paint(&head, Tone::Strong, style));
        if whole {
            out.push_str(&format!("{line}\n"))
        } else {
            out.push_str(&format!("\n{}", wrapped(line.trim(), 3, Tone::Plain, style)))
        }
    }
    out
}

/// A host's name; a foreign file may have none.
fn host(name: &str) -> String {
    if name == crate::imported::UNNAMED { "unnamed host".to_string() } else { plain(name, 40) }
}

/// One side in words: `A epyc-01: bare metal, EPYC 7543, 64 CPUs, 5 runs, 20 Nov`.
pub fn words(letter: &str, one: &Comparison, side: usize) -> String {
    let [host, file] = &one.names[side];
    let when = when(one, side);
    let last = if when.is_empty() { file.clone() } else { when };
    let mut parts = one.about[side].what.clone();
    parts.push(last);
    format!("{letter} {host}: {}", parts.join(", "))
}

/// `5 runs, 20 Nov`, `quick, 28 Nov 02:07`.
fn when(one: &Comparison, side: usize) -> String {
    let about = &one.about[side];
    let runs = (one.runs[side] > 1).then(|| format!("{} runs", one.runs[side]));
    let profile = about.profile.as_ref().filter(|_| runs.is_none()).map(|profile| plain(profile, 20));
    let parts = [runs, profile, Some(about.when())];
    parts.into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What a side is, as much of it as fits: parts go from the right.
fn fitted(about: &About, room: usize) -> String {
    let mut parts: Vec<String> = about.what.iter().map(|part| plain(part, 60)).collect();
    while !parts.is_empty() && parts.join(", ").chars().count() > room {
        parts.pop();
    }
    parts.join(", ")
}

/// Differences that are named one by one.
const NAMED: usize = 4;
/// Values longer than this are not quoted in the line.
const LONGEST: usize = 24;

/// In what the hosts differ, in a sentence.
pub fn differences(found: &[Comparison], letters: &[String], style: Style) -> String {
    let said = found.iter().zip(letters).map(|(one, letter)| {
        let who = match (found.len(), one.names[0][0] == one.names[1][0]) {
            (1, true) => "The runs differ in".to_string(),
            (1, false) => "The hosts differ in".to_string(),
            _ => format!("{letter} differs from A in"),
        };
        let mut named: Vec<String> = Vec::new();
        let is_mitigation = |one: &&Difference| one.label.starts_with("mitigation_");
        named.extend(one.environment.iter().filter(|one| !is_mitigation(one)).map(|one| {
            if one.a.chars().count() + one.b.chars().count() <= LONGEST && found.len() == 1 {
                format!("{} ({}, {})", label(&one.label), plain(&one.a, 40), plain(&one.b, 40))
            } else {
                label(&one.label)
            }
        }));
        match one.environment.iter().filter(is_mitigation).count() {
            0 => {}
            many => named.push(counted(many, "mitigation")),
        }
        std::iter::once(sentence(&who, named)).chain(findings_alone(one, letter, found.len() == 1))
    });
    said.flatten().filter(|text| !text.is_empty()).map(|text| wrapped(&text, 2, Tone::Plain, style)).collect()
}

/// The findings that only one of the two has, a sentence a side: of A where this is the only
/// comparison with it.
pub fn findings_alone(one: &Comparison, letter: &str, is_only: bool) -> Vec<String> {
    let sides = ["A", letter].into_iter().zip(&one.rules_alone).skip(usize::from(!is_only));
    let said = sides.map(|(letter, rules)| {
        sentence(&format!("Only {letter} has"), rules.iter().map(|rule| finding(rule)).collect())
    });
    said.filter(|text| !text.is_empty()).collect()
}

/// What is named, at most [`NAMED`] of it; empty where nothing is.
fn sentence(head: &str, mut named: Vec<String>) -> String {
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    match (named.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("{head}: {}.", named.join(", ")),
        (false, more) => format!("{head}: {} and {more} more.", named.join(", ")),
    }
}

/// The finding of a rule, with the command that explains it.
fn finding(rule: &str) -> String {
    let topic = diagnose::topic(rule).unwrap_or("a finding");
    format!("{topic} (assay explain {})", plain(rule, 40))
}

/// What a label of the environment is called.
pub fn label(label: &str) -> String {
    match label {
        "cpu_model" => "processor".to_string(),
        "cpus" => "CPUs".to_string(),
        "numa_nodes" => "NUMA nodes".to_string(),
        "memory_gib" => "memory in GiB".to_string(),
        "dimms_mib" => "memory modules".to_string(),
        "allowed_cpus" => "allowed CPUs".to_string(),
        "background" => "other work".to_string(),
        "assay" => "version of Assay".to_string(),
        other => match other.strip_prefix("mitigation_") {
            Some(name) => format!("mitigation of {}", name.replace('_', " ")),
            // A sysctl keeps the name under which it is set.
            None if other.contains('.') => other.to_string(),
            None => other.replace('_', " "),
        },
    }
}

/// What a difference is known to act on, as the groups and figures of the screens; `None` where no
/// mechanism is known.
pub fn acts_on(label: &str) -> Option<&'static str> {
    Some(match label {
        "cpu_model" | "microcode" => "all figures",
        "cpus" | "cores" | "packages" => "figures of all CPUs",
        "hypervisor" => "memory, wake-ups, page faults",
        "governor" | "highest_frequency" | "turbo" | "core_clock" => "core clock, wake-ups",
        "kernel" | "preemption" => "OS",
        "dimms_mib" | "numa_nodes" => "memory",
        "background" | "steal" => "all figures",
        "container" => "disk, wake-ups, counters",
        "clock_source" => "times of single events",
        "profile" => "width of intervals",
        _ if label.starts_with("mitigation_") => "system calls, context switches",
        "transparent_huge_pages" | "defragmentation_for_huge_pages" | "same_page_merging" => {
            "memory, page faults"
        }
        "smt" => "figures of all CPUs",
        _ if label.starts_with("disk_") || label.starts_with("vm.dirty") => "disk",
        _ if label.starts_with("vm.") => "memory, page faults",
        _ if label.starts_with("net.") => "network",
        _ if label.starts_with("sched.") || label.starts_with("kernel.sched_") => "wake-ups, hackbench",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_side_stand_with_their_command() {
        let rules_alone = [vec![], vec!["no-huge-pages".to_string()]];
        let found = [Comparison { rules_alone, ..Comparison::default() }];
        let said = differences(&found, &["B".to_string()], Style { color: false, unicode: true, width: 100 });
        let words = "Only B has: huge pages (assay explain no-huge-pages).";
        assert_eq!(said.trim(), words);
        let page = crate::comparing::environment(&found, &["B".to_string()]);
        assert!(format!("{:?}", page.blocks).contains(words));
        assert_eq!(crate::comparison::output(&found[0]).of_b.rules_only_in_b, ["no-huge-pages"]);
        assert_eq!(sentence("Only A has", vec!["x".into(); NAMED + 2]), "Only A has: x, x, x, x and 2 more.");
    }
}

//! The first screen of a machine: whether it is fit to measure on, what it is, and what of it will
//! disturb. Words: `READY TO MEASURE`, `MEASURE WITH CARE`, `NOT READY TO MEASURE`, `CANNOT TELL`
//! (of neither CPUs nor modules enough is known).

use super::{facts, network};
use crate::block::{Block, Cell, Table, column};
use crate::plain::plain;
use crate::screen::{HostPart, Screen, Tone};
use crate::sections::screen::about;
use diagnose::readiness::{self, Readiness};
use diagnose::words::{capital, counted, listed, number_word};
use machine::{Archive, Cache, CacheKind, Machine};
use model::Severity;

/// Columns of a fact: one line of a terminal of 80.
const FACT: usize = 63;

/// Longer than any fact's line.
const LONGEST: usize = 200;

/// Lines of findings.
const FINDINGS: usize = 6;

pub fn screen(machine: &Machine) -> Screen {
    let mut findings = readiness::lines(machine);
    let verdict = Readiness::of(machine, &findings);
    let topics = |severity: Severity| -> Vec<&str> {
        findings.iter().filter(|line| line.severity == severity).map(|line| line.topic).collect()
    };
    let (problems, warnings) = (topics(Severity::Problem), topics(Severity::Warning));
    let disturb = |topics: &[&str]| match topics {
        [one] => format!("One thing will disturb measurements: {one}."),
        all => {
            format!("{} things will disturb measurements: {}.", capital(&number_word(all.len())), listed(all))
        }
    };
    let in_doubt: Vec<&str> =
        machine.archive.iter().flat_map(|archive| &archive.in_doubt).map(String::as_str).collect();
    let unknown = if machine.dimms.is_empty() || machine.cpus.model.is_some() {
        "Its CPUs are unknown."
    } else {
        "Only its memory modules are described."
    };
    let decides = match verdict {
        Readiness::CannotTell if !in_doubt.is_empty() => format!(
            "Its sources contradict each other in {}: they come from several hosts, or were edited. Collect again.",
            listed(&in_doubt)
        ),
        Readiness::CannotTell => unknown.to_string(),
        Readiness::NotReady => {
            format!("{} Fix this first: it affects every figure.", disturb(&problems))
        }
        Readiness::WithCare => disturb(&warnings),
        Readiness::Ready if machine.archive.is_some() => {
            "Nothing in the collected files would disturb measurements. They do not show the host's present load."
                .to_string()
        }
        Readiness::Ready => "No setting and no load of this host disturbs measurements.".to_string(),
    };
    let clean = if in_doubt.is_empty() { readiness::clean(machine) } else { Vec::new() };
    let clean = (!clean.is_empty()).then(|| format!("{}.", capital(&clean.join(", "))));
    let is_part = verdict != Readiness::CannotTell && machine.cpus.online.is_empty();
    let part = is_part.then(|| unknown.to_string());
    // Each contradiction of sources has a line, beside the others.
    let apart = machine.archive.as_ref().map_or(0, |archive| archive.contradictions.len());
    findings.truncate(FINDINGS + apart);
    Screen {
        host: host(machine),
        word: match (verdict, &machine.archive) {
            (Readiness::Ready, Some(_)) => "DESCRIBED".into(),
            _ => verdict.words().into(),
        },
        tone: match verdict {
            Readiness::CannotTell | Readiness::WithCare => Tone::Care,
            Readiness::NotReady => Tone::Bad,
            Readiness::Ready => Tone::Good,
        },
        sentences: [Some(decides), clean, part].into_iter().flatten().collect(),
        blocks: vec![Block::Table(table(machine))],
        findings,
        ..Screen::default()
    }
}

fn host(machine: &Machine) -> Vec<HostPart> {
    // Of tables alone the board's name is known.
    let name = machine.host.clone().or_else(|| machine.dmi.product.clone());
    let name = name.unwrap_or_else(|| "unnamed host".to_string());
    let mut parts = vec![HostPart::needed(name)];
    parts.extend(about(machine));
    parts
}

/// What it is, a line each.
fn table(machine: &Machine) -> Table {
    let of_many = |nodes: usize| (nodes > 1).then(|| nodes_of(machine));
    let facts = [
        ("processor", facts::processor(machine)),
        ("CPUs", cpus(machine)),
        ("caches", caches(machine)),
        ("memory", memory(machine)),
        ("modules", facts::modules(machine)),
        ("NUMA", of_many(machine.nodes.len())),
        ("huge pages", facts::huge_pages(machine)),
        ("kernel", facts::kernel(machine).filter(|_| machine.kernel.release.is_some())),
        ("mitigations", mitigations(machine)),
        ("time", facts::clock(machine)),
        ("frequency", facts::frequencies(machine)),
        ("inside", facts::enclosures(machine)),
        ("may use", facts::may_use(machine, false)),
        ("disk", disk(machine)),
        ("network", network::interfaces(machine)),
        ("load", facts::load(machine)),
        ("read from", read_from(machine)),
        ("only counted", archived(machine, |archive| &archive.counted)),
        ("missing", archived(machine, |archive| &archive.absent)),
    ];
    let row = |(name, fact): (&str, Option<String>)| {
        let fact = fitting(&fact?)?;
        Some(vec![Cell::Text(name.to_string()), Cell::Text(fact)])
    };
    Table::new(
        if machine.archive.is_some() {
            vec![column("that host"), column("as its files report it")]
        } else {
            vec![column("host"), column("as the kernel and the firmware report it")]
        },
        facts.into_iter().filter_map(row),
    )
}

/// `sosreport: dmidecode, lscpu`: the tools whose words were understood.
fn read_from(machine: &Machine) -> Option<String> {
    let archive = machine.archive.as_ref()?;
    let tool = |source: &String| source.split(' ').next().unwrap_or(source).to_string();
    let mut tools: Vec<String> = archive.sources.iter().map(tool).collect();
    tools.dedup();
    match archive.sources.iter().any(|source| source.contains(' ')) {
        true => Some(plain(&format!("{}: its files, {}", archive.kind, tools.join(", ")), LONGEST)),
        false if archive.sources.is_empty() => Some(plain(&format!("{}: its files", archive.kind), LONGEST)),
        false => Some(plain(&format!("what {} printed", archive.kind), LONGEST)),
    }
}

/// A list of an archive's, which says in its last part how many had no room.
fn archived(machine: &Machine, list: impl Fn(&Archive) -> &Vec<String>) -> Option<String> {
    let all = list(machine.archive.as_ref()?);
    let mut kept = all.len();
    let text = |kept: usize| match all.len() - kept {
        0 => all.join(", "),
        more => format!("{} and {more} more (--json)", all[..kept].join(", ")),
    };
    while kept > 0 && text(kept).chars().count() > FACT {
        kept -= 1;
    }
    (!all.is_empty()).then(|| plain(&text(kept), LONGEST))
}

/// As many of a fact's parts as its line has room for; what was cut elsewhere is left out.
fn fitting(fact: &str) -> Option<String> {
    let mut kept = String::new();
    for part in fact.split_inclusive([',', ';']) {
        let more = format!("{kept}{part}");
        if more.trim_end_matches([',', ';']).chars().count() > FACT || part.contains('…') {
            break;
        }
        kept = more;
    }
    let kept = kept.trim_end_matches([',', ';']).trim();
    // A part that was opened and not closed would end in the middle.
    let open = kept.matches('(').count() != kept.matches(')').count();
    let kept = if open { kept.rsplit_once(" (").map_or("", |(before, _)| before) } else { kept };
    (!kept.is_empty()).then(|| kept.to_string())
}

/// What the kernel has, or what was counted without it.
fn memory(machine: &Machine) -> Option<String> {
    let counted = machine.archive.as_ref().and_then(|archive| archive.installed_bytes);
    facts::memory(machine)
        .filter(|_| machine.memory.total_bytes.is_some())
        .or_else(|| counted.map(|bytes| format!("{} installed", facts::size(bytes))))
}

fn cpus(machine: &Machine) -> Option<String> {
    let told = machine.summary();
    let mut parts = vec![counted(told.cpus?, "CPU")];
    parts.extend(told.cores.map(|count| counted(count, "core")));
    parts.extend(told.packages.map(|count| counted(count, "socket")));
    parts.extend(match told.threads_per_core.as_deref() {
        Some([one]) => Some(format!("{} per core", counted(*one, "thread"))),
        _ => None,
    });
    if machine.cpus.allowed != machine.cpus.online {
        parts.push(format!("CPUs {} may be used", plain(&machine.cpus.allowed.to_string(), 30)));
    }
    if !machine.cpus.isolated.is_empty() {
        parts.push(format!("CPUs {} isolated", plain(&machine.cpus.isolated.to_string(), 30)));
    }
    Some(parts.join(", "))
}

/// `L1d 32 KiB, L2 512 KiB, L3 32 MiB of 2 CPUs`; how many of the last there are.
fn caches(machine: &Machine) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for level in 1..=4 {
        let all: Vec<&Cache> = machine.data_caches(level).collect();
        let Some(first) = all.first() else { continue };
        let Some(bytes) = first.size_bytes else { continue };
        let letter = if first.kind == CacheKind::Data { "d" } else { "" };
        let times = if level > 2 && all.len() > 1 { format!("{} × ", all.len()) } else { String::new() };
        let of = match first.cpus.len() {
            0 | 1 => String::new(),
            count => format!(" of {count} CPUs"),
        };
        parts.push(format!("{times}L{level}{letter} {}{of}", facts::size(bytes)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn nodes_of(machine: &Machine) -> String {
    let mut parts = vec![counted(machine.nodes.len(), "node")];
    let without = machine.nodes.iter().filter(|node| node.cpus.is_empty()).count();
    if without > 0 {
        parts.push(format!("{without} without CPUs"));
    }
    let mut distances: Vec<u32> =
        machine.nodes.iter().flat_map(|node| node.distances.iter().copied()).collect();
    distances.sort_unstable();
    distances.dedup();
    if let (Some(least), Some(most)) = (distances.first(), distances.last()) {
        parts.push(format!("distances {least}–{most}"));
    }
    parts.join(", ")
}

fn mitigations(machine: &Machine) -> Option<String> {
    let told = &machine.kernel.mitigations;
    let count = |is: &dyn Fn(&str) -> bool| told.values().filter(|answer| is(answer)).count();
    let open = count(&|answer| answer.starts_with("Vulnerable"));
    let on = count(&|answer| answer.contains("Mitigation"));
    let safe = count(&|answer| answer == "Not affected");
    (!told.is_empty()).then(|| format!("{on} on, {open} off, {safe} not needed"))
}

/// What a run would write to.
fn disk(machine: &Machine) -> Option<String> {
    let disk = machine.disk.as_ref()?;
    let mut parts = vec![plain(&disk.name(), 40)];
    if let Some(leaf) = disk.only() {
        parts.push(plain(leaf.model.as_deref().unwrap_or(leaf.kind.words()), 30));
        parts.extend(leaf.scheduler.as_ref().map(|name| plain(name, 20)));
    }
    if let (Some(total), Some(share)) = (disk.total_bytes, disk.used_share()) {
        parts.push(format!("{:.0} % of {} used", 100.0 * share, facts::size(total)));
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_keeps_the_parts_that_fit() {
        assert_eq!(fitting("a, b; c").as_deref(), Some("a, b; c"));
        let long = format!("first, {}, last", "x".repeat(60));
        assert_eq!(fitting(&long).as_deref(), Some("first"));
        assert_eq!(fitting(&"x".repeat(70)), None);
        assert_eq!(fitting("first, cut o…, last").as_deref(), Some("first"));
        let open = format!("4 on (one, two, {})", "x".repeat(60));
        assert_eq!(fitting(&open).as_deref(), Some("4 on"));
    }
}

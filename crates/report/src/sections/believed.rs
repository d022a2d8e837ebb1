//! Topology as the kernel reports it and as measured: CPUs painted by the group that
//! they belong to.

use crate::block::{Block, Section, Tiles};
use diagnose::Diagnosis;
use diagnose::distances::{self, Contention, reported_llcs};
use diagnose::views::Views;
use diagnose::words::{bytes, figure, percent};
use machine::Machine;
use stats::clusters::{Answer, Clusters};
use stats::siblings::Siblings;

/// More CPUs than this are not painted: the matrix shows them.
pub const MAX_PAINTED_CPUS: usize = 256;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let (groups, cores, contention) = (diagnosis.groups(), diagnosis.shared_cores(), diagnosis.contention());
    if groups.is_none() && cores.is_none() && contention.is_empty() {
        return None;
    }
    let machine = &diagnosis.machine;
    let mut rows: Vec<(String, String)> = Vec::new();
    // Where all of a case was rejected, so is what it seems to say.
    let but = |words: String, key: &str| {
        let own = || diagnosis.series.iter().filter(|judged| judged.series.case.key() == key);
        if own().all(|judged| !judged.analysis.verdict.usable()) {
            format!("{words}; rejected, as all of its figures are")
        } else {
            words
        }
    };
    if let Some((found, key)) = &cores {
        rows.push(row(
            "threads of one core, by slowdown",
            but(sibling_words(found), key),
            core_words(machine),
            key,
        ));
    }
    if let Some((found, key)) = &groups {
        for words in group_words(found) {
            rows.push(row("near each other, by line transfers", but(words, key), llc_words(machine), key));
        }
    }
    for found in &contention {
        let words = contention_words(found);
        rows.push(row(
            "last-level cache, by contention",
            but(words, &found.key),
            llc_words(machine),
            &found.key,
        ));
    }
    let mut blocks = vec![Block::Facts(rows)];
    let views = diagnosis.views().filter(|views| views.cpus.len() <= MAX_PAINTED_CPUS);
    blocks.extend(views.map(|views| Block::Tiles(drawn(&views))));
    Some(Section::new("topology", "Topology, reported and measured", blocks).about(
        "Equal letters in a row: one group. Measured groups are CPUs that pass cache lines faster to each other \
                 than to others. Measured cores are CPUs that slow each other when both compute.",
    ))
}

/// What was measured, what the kernel reports, and the case that shows it.
fn row(what: &str, measured: String, reported: String, key: &str) -> (String, String) {
    (what.to_string(), format!("{measured} (kernel reports {reported}; {key})"))
}

fn noise_words(noise: Option<f64>) -> String {
    noise.map_or(String::new(), |noise| format!("; noise {}", percent(noise)))
}

fn sibling_words(found: &Siblings) -> String {
    let noise = noise_words(found.noise);
    if let Some(why) = &found.cannot_tell {
        return format!("unknown: {why}{noise}");
    }
    let open = match found.open.len() {
        0 => String::new(),
        open => format!("; {open} pairs undecided"),
    };
    match found.siblings.is_empty() {
        true if found.apart.is_empty() => format!("unknown for all {} pairs{noise}", found.open.len()),
        true if found.apart.len() == 1 => format!("not these two{open}{noise}"),
        true => format!("none among {} pairs{open}{noise}", found.apart.len()),
        false => format!("{}{open}{noise}", distances::words(&found.cores())),
    }
}

fn group_words(found: &Clusters) -> Vec<String> {
    let noise = noise_words(found.noise);
    match &found.answer {
        Answer::One => {
            vec![format!("one group of {} CPUs{noise}", found.cpus.len())]
        }
        Answer::CannotTell(why) => vec![format!("unknown: {why}")],
        Answer::Floating([one, other]) => vec![format!(
            "they change: {} in one pass, {} in another",
            distances::words(one),
            distances::words(other)
        )],
        Answer::Levels(levels) => levels
            .iter()
            .map(|level| {
                let (within, beyond) = (figure(level.within, "ns"), figure(level.beyond, "ns"));
                let words = distances::words(&level.groups);
                format!("{words}: {within} inside, {beyond} beyond{noise}")
            })
            .collect(),
    }
}

fn contention_words(found: &Contention) -> String {
    let (one, other) = found.cpus;
    let [idle, beside, own] = found.ns.map(|ns| figure(ns, "ns"));
    let times = format!("{idle} undisturbed, {beside} after CPU {other} read, {own} after it read itself");
    let size = bytes(found.bytes);
    match found.shared {
        Some(true) => format!("CPU {one} and CPU {other} share one: blocks of {size}, {times}"),
        Some(false) => format!("CPU {one} and CPU {other} share none: blocks of {size}, {times}"),
        None => {
            format!("CPU {one} and CPU {other}: unknown whether they share one; blocks of {size}, {times}")
        }
    }
}

fn core_words(machine: &Machine) -> String {
    let Some(cores) = &machine.cpus.cores else { return "nothing".into() };
    let several: Vec<Vec<u32>> = cores
        .iter()
        .map(|core| core.cpus.iter().collect::<Vec<u32>>())
        .filter(|cpus| cpus.len() > 1)
        .collect();
    if several.is_empty() {
        format!("{} cores of one thread", cores.len())
    } else {
        distances::words(&several)
    }
}

fn llc_words(machine: &Machine) -> String {
    if machine.caches.is_empty() {
        return "no caches".into();
    }
    let sets: Vec<Vec<u32>> = reported_llcs(machine).iter().map(|set| set.iter().collect()).collect();
    distances::words(&sets)
}

/// Both views of a host's CPUs as a drawing.
pub fn drawn(views: &Views) -> Tiles {
    let columns = views.cpus.iter().map(u32::to_string).collect();
    Tiles { of: "CPU".into(), columns, rows: views.group_numbers() }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of};
    use super::*;
    use model::View;

    #[test]
    fn pairs_of_other_benchmarks_have_no_section_and_alike_ones_are_one_group() {
        let view = || View::Matrix { row: "from".into(), column: "to".into() };
        let point = |a: u64, b: u64| of(&[("from", a.into()), ("to", b.into())]);
        let all: Vec<_> =
            (0..4).flat_map(|a| (a + 1..4).map(move |b| (a, b))).map(|(a, b)| point(a, b)).collect();
        let values: Vec<_> = all.into_iter().map(|point| (point, &[("latency", 40.0)][..])).collect();
        let other = Made::new(view(), vec![latency()]).case(case("all", &[]), &values).diagnosed(machine(1));
        assert!(section(&other).is_none());
        let mut own = case("all", &[]);
        own.bench = "memory.core-to-core".into();
        let diagnosis = Made::new(view(), vec![latency()]).case(own, &values).diagnosed(machine(1));
        let section = section(&diagnosis).expect("a section");
        let Block::Facts(facts) = &section.blocks[0] else { panic!("facts") };
        let measured = &facts[0].1;
        assert!(measured.starts_with("one group of 4 CPUs"), "{measured}");
        let Block::Tiles(tiles) = &section.blocks[1] else { panic!("tiles") };
        assert!(tiles.columns.len() == 4 && tiles.rows.iter().any(|(label, _)| label.starts_with("core, ")));
    }
}

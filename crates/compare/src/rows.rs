//! Rows of two UnixBench tables that belong together and do not go together, and guests that beat
//! what they run on.

use std::collections::BTreeMap;

use super::{Compared, ComparisonSide};
use import::keyed;
use model::vocabulary::unixbench::metric::SCORE;
use model::vocabulary::unixbench::param::COPIES;
use model::{Fact, Finding, Value};
use stats::index::geometric_mean;
use stats::unixbench::{ALONE, CONTEXT, Handover, OddRow, RowRatio, TESTS, Test, odd_rows, of_bench};

/// Ids of the rules.
pub const ODD: &str = "odd-row";
pub const GUEST: &str = "guest-beats-host";

/// What `assay explain odd-row` says.
pub const ODD_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "In two UnixBench tables one row's ratio breaks with the others. A host with 2.36 times the index and 1.26 times the context \
         switching is not slow at switching. The two tasks of that test pass one token back and forth, and the scheduler \
         chooses one CPU or two for them. The row then compares two placements, and the index includes it.",
    ),
    (
        "When it appears",
        "Both tables must share six rows or more at one number of copies. Context switching: its ratio is at least 1.5 times that of Pipe Throughput \
                 (the same calls by one task), or its inverse. It also lies farther from the median row. Process Creation and Shell \
         Scripts: 1.5 times and five robust standard deviations from the median of the others. Intervals must exclude a smaller \
         distance. Half of a round trip without its calls is one hand-over.",
    ),
    (
        "How sure it is",
        "docs/results/comparing.md lists how often a pinned test is found, and how often equal hosts give this finding. The finding \
         names the row; the command shows the placement.",
    ),
];

/// What `assay explain guest-beats-host` says.
pub const GUEST_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "A guest scores higher than a host with a processor of the same class. Kernels as old as 3.10 keep tasks that wake each other on \
         one CPU if the guest reports no shared cache: the score is high, and the woken task waits. Kernels from 5.10 on spread \
         them. There, look for pinned tasks, another compiler, another kernel or another clock.",
    ),
    (
        "When it appears",
        "One result is of a guest: it reports a hypervisor, or its processor has a made-up name (`E5-26xx v4`, `QEMU Virtual CPU`). The \
         other is of no guest, or unknown. Both processors are of one class (an x stands for any digit). A figure of the guest is \
         more than 1.2 times better; if it has an interval, the whole interval is.",
    ),
];

/// Where UnixBench leaves its tasks: wherever the scheduler puts them.
const FREE: &str = "free";

/// Ratio above its host's class from which a guest's figure makes a finding.
pub(super) const BEATS: f64 = 1.2;

/// Rows that a finding names one by one.
const SHOWN: usize = 4;

/// Rows of UnixBench's tests, free, that two results both have, by the number of copies.
pub fn tables(metrics: &[Compared]) -> BTreeMap<i64, Vec<(RowRatio, &Compared)>> {
    let mut by_copies: BTreeMap<i64, Vec<(RowRatio, &Compared)>> = BTreeMap::new();
    for one in metrics {
        let Some(keyed) = of_bench(&one.bench).and_then(|_| keyed(&one.key)) else { continue };
        let case = &keyed.case;
        let is_row = case.placement.name == FREE && keyed.metric == SCORE.as_str();
        if let Some(test) = of_bench(&case.bench).filter(|_| is_row) {
            let copies = case.params.get(COPIES).and_then(Value::int).unwrap_or(1);
            let half = one.ci95.map_or(0.0, |[low, high]| (high / low).ln() / 2.0);
            let row = RowRatio { test, ratio: one.ratio, half };
            by_copies.entry(copies).or_default().push((row, one));
        }
    }
    by_copies
}

/// What two results' rows say against each other.
pub(super) fn findings(a: &ComparisonSide, b: &ComparisonSide, metrics: &[Compared]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (copies, rows) in &tables(metrics) {
        let ratios: Vec<RowRatio> = rows.iter().map(|(row, _)| *row).collect();
        found.extend(odd_rows(&ratios).iter().map(|odd| odd_row(odd, *copies, rows)));
    }
    found.extend(guest(a, b, metrics));
    found
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2} times")
}

/// Rows of one table with what was compared.
pub type Rows<'a> = [(RowRatio, &'a Compared)];

fn odd_row(odd: &OddRow, copies: i64, rows: &Rows) -> Finding {
    let test = odd.row.test;
    let key = |test: &Test| at(test, rows).map_or(String::new(), |one| one.key.clone());
    let mut facts = vec![Fact::new(format!("B/A in {}", test.title), times(odd.row.ratio), key(test))];
    facts.extend(odd.relative.map(|relative| {
        let label = format!("in {}, the same calls by one task", relative.test.title);
        Fact::new(label, times(relative.ratio), key(relative.test))
    }));
    let middle = format!("{} ({:+.1} robust standard deviations away)", times(odd.group), odd.distance);
    facts.push(Fact::new(format!("median of the other {} rows", rows.len() - 1), middle, "all rows"));
    let placed = rows.iter().map(|(row, _)| row.test).filter(|test| test.placed).map(|test| test.title);
    let placed = placed.collect::<Vec<&str>>().join(", ");
    if !placed.is_empty() {
        facts.push(Fact::new("rows whose tasks the scheduler places", placed, "assay explain odd-row"));
    }
    let mut cause =
        "Its tasks wake each other, and the scheduler chooses one CPU or two for them: the row compares two \
                     placements, not only two machines."
            .to_string();
    if let Some([a, b]) = ways(copies, rows).filter(|_| test.name == CONTEXT) {
        let words = |way: Handover| format!("{:.2} µs, of which calls {:.2} µs", way.trip_us, way.calls_us);
        facts.push(Fact::new("round trip of the token in A", words(a), key(test)));
        facts.push(Fact::new("in B", words(b), key(test)));
        let [a, b] = [a, b].map(|way| way.one_way_us());
        cause.push_str(&format!(
            " Waking the other task and switching to it takes {a:.2} µs in A and {b:.2} µs in B."
        ));
    }
    if let Some((with, without)) = indices(None, rows).zip(indices(Some(test), rows)) {
        let words = |[a, b]: [f64; 2]| format!("A {a:.1}, B {b:.1}: {}", times(b / a));
        facts.push(Fact::new("index without it", words(without), "geometric mean of the other rows"));
        facts.push(Fact::new("index with it", words(with), "geometric mean of all rows"));
        let [with, without] = [with, without].map(|[a, b]| times(b / a));
        cause.push_str(&format!(" Without it the index is {without}, with it {with}."));
    }
    let copied = if copies == 1 { String::new() } else { format!(" of {copies} copies") };
    Finding::warning(ODD, format!(
        "{}{copied} scores {:.2} times as much in B, the median row {:.2} times: leave it out",
        test.title,
        odd.row.ratio,
        odd.group
    ))
        .cause(cause)
        .facts(facts)
        .confirm(format!("assay unixbench {}", test.run))
        .advice("Run the command on both hosts: it measures the row on one CPU, on two, and left to the scheduler. Until then use the \
                 index without this row.")
        .concerns([key(test)])
}

fn at<'a>(test: &Test, rows: &Rows<'a>) -> Option<&'a Compared> {
    rows.iter().find(|(row, _)| row.test == test).map(|(_, one)| *one)
}

/// What a round trip of context switching is made of in A and in B, where both have both rows.
fn ways(copies: i64, rows: &Rows) -> Option<[Handover; 2]> {
    let scores = |name: &str| {
        let one = at(TESTS.iter().find(|test| test.name == name)?, rows)?;
        Some([one.a, one.b])
    };
    let (context, pipe) = (scores(CONTEXT)?, scores(ALONE)?);
    let way = |side: usize| Handover::of(context[side], pipe[side], copies as f64);
    Some([way(0)?, way(1)?])
}

/// The index of A and of B without a row; `None` where not all rows of the index are there.
pub fn indices(without: Option<&Test>, rows: &Rows) -> Option<[f64; 2]> {
    let index = |score: fn(&Compared) -> f64| {
        let kept = rows.iter().filter(|(row, _)| Some(row.test) != without);
        geometric_mean(&kept.map(|(row, one)| row.test.index(score(one))).collect::<Vec<_>>())
    };
    let whole = TESTS.iter().all(|test| at(test, rows).is_some());
    Some([index(|one| one.a)?, index(|one| one.b)?]).filter(|_| whole)
}

/// Whether a result is of a guest; `None` if unknown.
pub(super) fn is_guest(setting: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    match setting("hypervisor").as_deref() {
        Some("none") => Some(false),
        Some(_) => Some(true),
        None => setting("cpu_model").filter(|model| made_up(model)).map(|_| true),
    }
}

/// Whether a processor has a name that no hardware has.
fn made_up(model: &str) -> bool {
    let lower = model.to_ascii_lowercase();
    ["qemu", "virtual", "kvm"].iter().any(|word| lower.contains(word))
        || class(model).iter().any(|word| is_masked(word))
}

fn is_masked(word: &str) -> bool {
    word.contains("xx") && word.contains(|c: char| c.is_ascii_digit())
}

/// The class in a processor's name: words that have digits, and the version, without
/// marks and clock.
fn class(model: &str) -> Vec<String> {
    let plain = model.to_ascii_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let named = plain.split('@').next().unwrap_or("");
    named
        .split_whitespace()
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .map(str::to_string)
        .collect()
}

/// Whether two names are of one class; an x stands for any digit.
pub(super) fn one_class(one: &str, other: &str) -> bool {
    let (one, other) = (class(one), class(other));
    let like = |a: &String, b: &String| {
        let hidden = is_masked(a) || is_masked(b);
        let same = |(x, y): (char, char)| {
            x == y || (hidden && ((x == 'x' && y.is_ascii_digit()) || (y == 'x' && x.is_ascii_digit())))
        };
        a.len() == b.len() && a.chars().zip(b.chars()).all(same)
    };
    !one.is_empty() && one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| like(a, b))
}

/// A guest that beats a bare-metal host of its processor's class.
fn guest(a: &ComparisonSide, b: &ComparisonSide, metrics: &[Compared]) -> Option<Finding> {
    let setting = |arm: &ComparisonSide, label: &str| {
        arm.environment.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone())
    };
    let guests = [a, b].map(|arm| is_guest(&|label: &str| setting(arm, label)));
    let guest_is_b = match guests {
        [Some(true), Some(true)] => return None,
        [Some(true), _] => false,
        [_, Some(true)] => true,
        _ => return None,
    };
    let models = [setting(a, "cpu_model")?, setting(b, "cpu_model")?];
    let rows = metrics.iter().filter(|one| one.headline).filter_map(|one| {
        let (ratio, interval) = one.turned()?;
        let (ratio, least) = if guest_is_b {
            (ratio, interval.map_or(ratio, |own| own.low))
        } else {
            (1.0 / ratio, interval.map_or(1.0 / ratio, |own| 1.0 / own.high))
        };
        (least > BEATS).then_some((one, ratio))
    });
    let rows: Vec<(&Compared, f64)> = rows.collect();
    let (guest, host) = if guest_is_b { (b, a) } else { (a, b) };
    let kernel = setting(guest, "kernel");
    beats(
        (&guest.host, kernel.as_deref()),
        &host.host,
        &models,
        rows.iter().map(|(one, ratio)| (one.title.as_str(), one.key.as_str(), *ratio)),
    )
}

/// Whether a kernel spreads the tasks of a guest that reports no shared cache: 5.10 and later ones
/// do (lab/RESULTS.md, measured under 5.10, 6.1 and 6.12; 3.10 keeps them on one CPU).
fn spreads(kernel: &str) -> bool {
    let mut parts = kernel.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (parts.next(), parts.next()) >= (Some(5), Some(10))
}

/// The finding that a guest, named with its kernel where that is known, beats a host; `rows` as
/// title, key and how many times better it is.
pub(super) fn beats<'a>(
    (guest, kernel): (&str, Option<&str>),
    host: &str,
    models: &[String; 2],
    rows: impl Iterator<Item = (&'a str, &'a str, f64)>,
) -> Option<Finding> {
    if !one_class(&models[0], &models[1]) {
        return None;
    }
    let mut rows: Vec<(&str, &str, f64)> = rows.collect();
    rows.sort_by(|one, other| other.2.total_cmp(&one.2));
    let (title, key, most) = *rows.first()?;
    let placed = |key: &str| of_bench(key.split('@').next().unwrap_or("")).is_some_and(|test| test.placed);
    let facts =
        rows.iter().take(SHOWN).map(|(title, key, ratio)| Fact::new(title.to_string(), times(*ratio), *key));
    let mut facts: Vec<Fact> = facts.collect();
    facts.push(Fact::new("processors", models.join(" and "), "/proc/cpuinfo"));
    let context = of_bench(key.split('@').next().unwrap_or("")).filter(|_| placed(key));
    Some(Finding::warning(GUEST, format!(
        "Guest {guest} is {most:.2} times as fast as {host}, a host of its class, in {title}"
    ))
        .cause(match (context, kernel) {
            (Some(_), Some(kernel)) if spreads(kernel) => format!(
                "Linux {kernel} spreads the two tasks even if the guest reports no shared cache. Possible causes: pinned tasks, \
                 another compiler or clock, or a disturbed run on the host. The command shows which CPUs they use."
            ),
            (Some(_), _) => "Most likely its tasks stay on one CPU. Kernels as old as 3.10 look for no other CPU if a guest reports no \
                        shared cache. The score is high, but the woken task waits."
                .into(),
            (None, _) => "A guest cannot exceed its host. Possible causes: another compiler, kernel or clock, or a disturbed run on the host.".into(),
        })
        .facts(facts)
        .confirm(match context {
            Some(test) => format!("assay unixbench {}", test.run),
            None => format!("assay run --only {}", key.split('@').next().unwrap_or(key)),
        })
        .advice("Run the command in the guest and on the host, and compare pinned figures. `assay machine` shows which caches the guest reports.")
        .concerns(rows.iter().take(SHOWN).map(|(_, key, _)| key.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processors_tell_their_class() {
        let host = "Intel(R) Xeon(R) CPU E5-2682 v4 @ 2.50GHz";
        for (other, same) in [
            ("Intel(R) Xeon(R) CPU E5-2682 v4 @ 2.50GHz", true),
            ("Intel Xeon E5-26xx v4", true),
            ("Xeon E5-2682 v4", true),
            ("Intel(R) Xeon(R) CPU E5-2682 v3 @ 2.50GHz", false),
            ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", false),
            ("Intel(R) Xeon(R) Processor @ 2.50GHz", false),
            ("", false),
        ] {
            assert_eq!(one_class(host, other), same, "{other}");
        }
        assert!(made_up("Intel Xeon E5-26xx v4") && made_up("QEMU Virtual CPU version 2.5+"));
        assert!(!made_up(host) && !made_up("AMD EPYC 7551 32-Core Processor"));
    }

    #[test]
    fn the_cause_follows_the_guests_kernel() {
        for (kernel, spread) in [
            ("3.10.0-1160.el7", false),
            ("5.4.0", false),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("x", false),
        ] {
            assert_eq!(spreads(kernel), spread, "{kernel}");
            let rows = [("Pipe-based Context Switching", "unixbench.context1@free?copies=1#score", 1.4)];
            let models = ["Xeon E5-26xx v4", "Xeon E5-2682 v4"].map(str::to_string);
            let found = beats(("vm", Some(kernel)), "host", &models, rows.into_iter()).expect("a finding");
            assert_eq!(found.cause.starts_with("Most likely"), !spread, "{}", found.cause);
        }
    }
}

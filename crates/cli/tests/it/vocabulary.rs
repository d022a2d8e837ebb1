//! The names that measuring, meaning and reports share stand in `model::vocabulary` only, and name
//! what there is.

use std::collections::BTreeSet;

use model::vocabulary::{FAMILIES, Family};

use super::tidy::{Source, code, crate_of, product};

/// The literals of a file's code, without those of its tests.
fn literals(source: &Source) -> Vec<String> {
    let code = code(source);
    let mut rest = code.as_str();
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once('"') {
        // No name has a quotation mark in it: where one is escaped, the pieces are no names either.
        let Some((literal, further)) = after.split_once('"') else { break };
        found.push(literal.to_string());
        rest = further;
    }
    found
}

/// Ids that mean nothing else, wherever they stand. Rules of one word (`steal`, `drift`) are words
/// of other things, too: their type keeps them.
fn ids() -> BTreeSet<&'static str> {
    let of = |family: &Family| {
        let benches = family.benchmarks.iter().map(|id| id.as_str());
        let rules = family.rules.iter().map(|id| id.as_str()).filter(|id| id.contains('-'));
        benches.chain(rules).chain(family.probes.iter().copied()).collect::<Vec<_>>()
    };
    FAMILIES.iter().flat_map(of).collect()
}

/// The family that a file belongs to, by a folder's name or the file's: that of the family, or of a
/// group of its benchmarks.
fn family_of(path: &str) -> Option<&'static Family> {
    let crates = ["bench", "diagnose", "compare", "report", "session"];
    let inside = path.split_once("/src/").filter(|_| crates.contains(&crate_of(path)))?.1;
    let speaks_of = |word: &str| {
        inside
            .trim_end_matches(".rs")
            .split('/')
            .any(|part| part.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
    };
    let groups = |family: &'static Family| {
        family.benchmarks.iter().filter_map(|id| Some(id.as_str().split_once('.')?.0))
    };
    let by_name =
        FAMILIES.iter().filter(|family| speaks_of(family.name)).max_by_key(|family| family.name.len());
    by_name.or_else(|| FAMILIES.iter().find(|family| groups(family).any(speaks_of)))
}

/// Words of a file that are names of its family's metrics or parameters, and mean something else
/// there: a title, a heading, a unit, a choice, a seat's role, a word of another program.
const OTHER_MEANINGS: [(&str, &[&str]); 27] = [
    ("bench/cpu_arithmetic.rs", &["cycles"]),
    ("bench/disk.rs", &["bandwidth"]),
    ("bench/hackbench.rs", &["migrations", "messages", "tasks"]),
    ("bench/ipc_bandwidth.rs", &["bandwidth"]),
    ("bench/memory_bandwidth.rs", &["bandwidth"]),
    ("bench/memory_data_source.rs", &["cycles", "latency"]),
    ("bench/memory_latency.rs", &["stride", "latency"]),
    ("bench/memory_llc_sharing.rs", &["latency"]),
    ("bench/memory_loaded.rs", &["traffic", "latency"]),
    ("bench/memory_nodes.rs", &["bandwidth", "latency"]),
    ("bench/memory_tlb.rs", &["latency"]),
    ("bench/network/metrics.rs", &["bytes"]),
    ("bench/network_path.rs", &["loss"]),
    ("bench/nexmark.rs", &["steal"]),
    ("bench/sched_wake_up.rs", &["requests"]),
    ("bench/selftest.rs", &["instructions"]),
    ("diagnose/network/experiment.rs", &["loss", "bandwidth"]),
    ("diagnose/network/limits.rs", &["bandwidth"]),
    ("diagnose/network/loss.rs", &["sent", "bandwidth"]),
    ("report/sections/guard.rs", &["migrations", "faults", "tasks", "command"]),
    ("report/sections/memory_map.rs", &["physical", "node"]),
    ("report/sections/nexmark.rs", &["late", "load"]),
    ("report/sections/nexmark/charts.rs", &["attainment", "cpu", "load", "rate"]),
    ("report/sections/rate.rs", &["rate"]),
    ("report/sections/smt/capacity/charts.rs", &["clock", "cpu", "level", "performance", "attainment"]),
    ("report/sections/unixbench.rs", &["score", "copies"]),
    ("session/plan/guard.rs", &["command"]),
];

/// The metrics and parameters of a family.
fn names_of(family: &'static Family) -> impl Iterator<Item = &'static str> {
    family.metrics.iter().map(|id| id.as_str()).chain(family.params.iter().map(|id| id.as_str()))
}

/// Code in front of a literal that makes it a name, in a file of any family.
const LOOK_UPS: [&str; 3] = ["metric.name == \"", "metric.name != \"", ".named(\""];

/// The literals of a file that are names of the vocabulary.
fn written_out(source: &Source) -> Vec<String> {
    if source.path.starts_with("crates/model/src/vocabulary/") {
        return Vec::new();
    }
    let mut names = ids();
    names.extend(family_of(&source.path).into_iter().flat_map(names_of));
    for (_, words) in OTHER_MEANINGS.iter().filter(|(path, _)| in_short(&source.path) == *path) {
        names.retain(|name| !words.contains(name));
    }
    let mut found: Vec<String> =
        literals(source).into_iter().filter(|literal| names.contains(literal.as_str())).collect();
    let code = code(source);
    let looked_up =
        LOOK_UPS.iter().flat_map(|way| code.split(way).skip(1)).filter_map(|rest| rest.split('"').next());
    let known = |word: &&str| FAMILIES.iter().flat_map(names_of).any(|name| name == *word);
    found.extend(looked_up.filter(known).map(str::to_string));
    found.into_iter().map(|literal| format!("{}: {literal:?}", source.path)).collect()
}

/// A path without what all have in common.
fn in_short(path: &str) -> String {
    path.replacen("crates/", "", 1).replacen("src/", "", 1)
}

#[test]
fn names_stand_in_the_vocabulary_only() {
    let sources = product();
    let found: Vec<String> = sources.iter().flat_map(written_out).collect();
    for (path, words) in OTHER_MEANINGS {
        let own =
            sources.iter().find(|source| in_short(&source.path) == path).map(literals).unwrap_or_default();
        assert!(
            words.iter().all(|word| own.iter().any(|literal| literal == word)),
            "{path} has not all of {words:?}"
        );
    }
    assert!(found.is_empty(), "take these from model::vocabulary:\n{}", found.join("\n"));
}

#[test]
fn a_name_that_is_written_out_is_found() {
    let planted = |path: &str, text: &str| {
        written_out(&Source { path: path.to_string(), text: text.to_string() }).len()
    };
    assert_eq!(planted("crates/cli/src/x.rs", "f(\"disk.random\", \"disk-others\", \"probe:disk\")"), 3);
    assert_eq!(planted("crates/diagnose/src/disk/x.rs", "f(\"latency_p50\", \"depth\", \"depths\")"), 2);
    assert_eq!(planted("crates/bench/src/vm/x.rs", "f(\"pages_per_fault\")"), 1);
    assert_eq!(
        planted("crates/cli/src/x.rs", "// f(\"disk.random\")\n#[cfg(test)]\nmod tests { \"ipc.pipe\" }"),
        0
    );
    assert_eq!(planted("crates/bench/src/syscall.rs", "f(\"latency_p50\")"), 0, "no metric of these");
    assert_eq!(
        planted("crates/diagnose/src/x.rs", "series.metric.name == \"iops\" && params.named(\"depth\")"),
        2
    );
}

#[test]
fn the_vocabulary_names_what_there_is() {
    let named: BTreeSet<&str> =
        FAMILIES.iter().flat_map(|family| family.benchmarks).map(|id| id.as_str()).collect();
    assert_eq!(named, bench::all().map(|row| row.id.as_str()).collect::<BTreeSet<_>>(), "benchmarks");
    let named: BTreeSet<&str> =
        FAMILIES.iter().flat_map(|family| family.rules).map(|id| id.as_str()).collect();
    assert_eq!(named, diagnose::rules().map(|rule| rule.id.as_str()).collect::<BTreeSet<_>>(), "rules");
    for family in FAMILIES {
        let rows: Vec<_> = bench::all().filter(|row| family.benchmarks.contains(&row.id)).collect();
        let metrics = rows.iter().flat_map(|row| row.metrics).map(|metric| metric.name.as_ref());
        let named: BTreeSet<&str> = family.metrics.iter().map(|id| id.as_str()).collect();
        assert_eq!(named, metrics.collect::<BTreeSet<_>>(), "metrics of {}", family.name);
        let params = rows.iter().flat_map(|row| row.params).map(|param| param.name.as_str());
        let named: BTreeSet<&str> = family.params.iter().map(|id| id.as_str()).collect();
        assert_eq!(named, params.collect::<BTreeSet<_>>(), "parameters of {}", family.name);
    }
}

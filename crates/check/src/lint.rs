//! A spec is read and checked before any run is compared with it: names that
//! nothing has, units in which nothing is measured, ends on the wrong side.

use anyhow::{Context, bail, ensure};
use diagnose::key_figures::{KEY_FIGURES, KeyFigure, named};
use model::vocabulary::selftest::PLANTED;
use model::{did_you_mean, unit_factor};

use super::limit::{Limit, Pick, Quantity};
use super::spec::{FactDemand, PeersDemand, SCHEMA, Spec, is_like, seconds};
use super::subject::OF_RUN_FILES;

/// What this version can measure, as far as a spec can name it.
pub struct Catalogue<'n> {
    pub benches: Vec<KnownBenchmark<'n>>,
    pub profiles: Vec<&'n str>,
}

/// A benchmark with its metrics, each with its unit, and its parameters.
pub struct KnownBenchmark<'n> {
    pub id: &'n str,
    pub metrics: Vec<(&'n str, &'n str)>,
    pub params: Vec<&'n str>,
}

/// Faults of a spec that are listed.
const MAX_FAULTS: usize = 20;

/// Length limit of a spec's glob.
const MAX_SERIES_BYTES: usize = 300;

/// Limits per spec.
const MAX_LIMITS: usize = 500;

/// Facts that are numbers, by the names of a summary's make-up and settings.
const NUMBERS: [&str; 9] = [
    "packages",
    "cores",
    "cpus",
    "numa_nodes",
    "memory_gib",
    "stepping",
    "threads_per_core",
    "memory_mts",
    "highest_frequency",
];

/// Facts that are words. Mitigations have names of their own, which begin alike.
const WORDS: [&str; 24] = [
    "cpu_model",
    "dimms_mib",
    "kernel",
    "microcode",
    "product",
    "hypervisor",
    "bios",
    "governor",
    "energy_preference",
    "turbo",
    "transparent_huge_pages",
    "huge_page_defrag",
    "numa_balancing",
    "preemption",
    "clock_source",
    "container",
    "allowed_cpus",
    "disk",
    "disk_layers",
    "filesystem",
    "mount_options",
    "disk_scheduler",
    "disk_write_cache",
    PLANTED,
];

/// The setting that is a number with its unit.
const CORE_CLOCK: &str = "core_clock";

fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name) || name == CORE_CLOCK
}

/// Faults of a fact: a name that no run has, a number of what is a word.
fn of_fact(name: &str, asked: &FactDemand) -> anyhow::Result<()> {
    let all = || NUMBERS.into_iter().chain(WORDS).chain(OF_RUN_FILES).chain([CORE_CLOCK]);
    ensure!(
        name.starts_with("mitigation_") || all().any(|own| own == name),
        "[machine] {name} is not a fact of a run{}; `assay summary RUN` lists them",
        did_you_mean(name, all())
    );
    ensure!(is_number(name) || !asked.is_of_numbers(), "[machine] {name} is a word: write it in quotes");
    Ok(())
}

fn of_key_figure(name: &str, limit: &Limit) -> anyhow::Result<()> {
    let place = || format!("[limits] {name}");
    let Some(figure) = named(name) else {
        let all = KEY_FIGURES.iter().map(|figure| figure.name);
        let near = did_you_mean(name, all.clone());
        bail!(
            "[limits] {name} is not a key figure{near}; key figures: {}",
            all.collect::<Vec<_>>().join(", ")
        );
    };
    ensure!(limit.series.is_empty(), "{}: a key figure has no series; write it under [[limit]]", place());
    let shares = limit.share().with_context(place)?.is_some();
    ensure!(
        !(shares && figure.is_size()),
        "{} comes from a curve and has no series to compare: give min",
        place()
    );
    for end in limit.quantities().with_context(place)? {
        end.in_unit(figure.unit).with_context(place)?;
    }
    Ok(())
}

/// Why an end is probably on the wrong side: a system call cannot be too fast.
fn direction(figure: &KeyFigure, limit: &Limit) -> Option<String> {
    let is_lower = unit_factor(figure.unit, "s").is_some();
    match (limit.ends().ok()?, is_lower) {
        ([Some(_), None], true) => {
            Some(format!("[limits] {}: less is better, but only min is given: is max meant?", figure.name))
        }
        ([None, Some(_)], false) => {
            Some(format!("[limits] {}: more is better, but only max is given: is min meant?", figure.name))
        }
        _ => None,
    }
}

fn of_series(at: usize, limit: &Limit) -> anyhow::Result<()> {
    let place = || format!("[[limit]] {}", at + 1);
    ensure!(!limit.series.is_empty(), "{} names no series", place());
    ensure!(
        limit.series.len() <= MAX_SERIES_BYTES,
        "{}: its series has {} bytes; the limit is {MAX_SERIES_BYTES}",
        place(),
        limit.series.len()
    );
    for Quantity { value, unit } in limit.quantities().with_context(place)? {
        ensure!(!unit.is_empty(), "{}: {value} has no unit", place());
    }
    Ok(())
}

impl Catalogue<'_> {
    /// What no benchmark of this version has: its name, or its unit.
    fn of_series(&self, at: usize, limit: &Limit) -> anyhow::Result<()> {
        let place = format!("[[limit]] {}", at + 1);
        let bench = bench_of(limit);
        let ids = || self.benches.iter().map(|own| own.id);
        ensure!(
            ids().any(|own| is_like(bench, own)),
            "{place}: this version has no benchmark {bench}{}",
            did_you_mean(bench, ids())
        );
        let metric = limit.series.split_once('#').map_or("*", |(_, metric)| metric);
        let metrics = self.matched(bench).flat_map(|own| &own.metrics);
        let mut units: Vec<&str> =
            metrics.filter(|(name, _)| is_like(metric, name)).map(|(_, unit)| *unit).collect();
        units.sort_unstable();
        units.dedup();
        for Quantity { unit, .. } in limit.quantities().unwrap_or_default() {
            ensure!(
                units.is_empty() || units.iter().any(|own| unit_factor(&unit, own).is_some()),
                "{place}: {unit:?} does not fit: {bench} is measured in {}",
                units.join(", ")
            );
        }
        Ok(())
    }

    fn matched(&self, bench: &str) -> impl Iterator<Item = &KnownBenchmark<'_>> {
        self.benches.iter().filter(move |own| is_like(bench, own.id))
    }

    /// Of blocks of all sizes the best is the one in the first cache.
    fn sizes(&self, at: usize, limit: &Limit) -> Option<String> {
        let has_sizes = self.matched(bench_of(limit)).any(|own| own.params.contains(&"bytes"));
        let named = limit.series.split_once("bytes=").map_or("", |(_, rest)| rest);
        let is_one = named.starts_with(|first: char| first.is_ascii_digit());
        (limit.pick != Pick::Each && has_sizes && !is_one).then(|| {
            format!(
                "[[limit]] {}: pick would choose among block sizes, from caches to memory. Name one: bytes=134217728",
                at + 1
            )
        })
    }
}

/// The glob's part that names benchmarks.
fn bench_of(limit: &Limit) -> &str {
    limit.series.split(['@', '?', '#', '/']).next().unwrap_or_default()
}

impl Spec {
    /// Reads a spec. Errors name the line, or each demand and what would be right.
    pub fn read(text: &str) -> anyhow::Result<Spec> {
        let (spec, faults) = Spec::parsed(text)?;
        ensure!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(spec)
    }

    /// The same by what this version can measure, with what is probably not meant.
    pub fn read_by(text: &str, catalogue: &Catalogue) -> anyhow::Result<(Spec, Vec<String>)> {
        let (spec, mut faults) = Spec::parsed(text)?;
        faults.extend(spec.unknown(catalogue));
        ensure!(faults.is_empty(), "{}", faults.join("\n"));
        let warnings = spec.warnings(catalogue);
        Ok((spec, warnings))
    }

    /// What stands there, and what is wrong with it.
    fn parsed(text: &str) -> anyhow::Result<(Spec, Vec<String>)> {
        let mut spec: Spec =
            toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))?;
        ensure!(spec.schema == SCHEMA, "schema = {}: this version reads schema {SCHEMA}", spec.schema);
        if let Some(why) = spec.is_too_long() {
            bail!(why);
        }
        let mut faults = Vec::new();
        for (name, value) in &spec.machine.0 {
            match FactDemand::of(value) {
                Ok(asked) => spec.facts.push((name.clone(), asked)),
                Err(why) => faults.push(format!("[machine] {name}: {why:#}")),
            }
        }
        if let Some(age) = &spec.run.max_age {
            match seconds(age) {
                Ok(seconds) => spec.run.max_age_s = Some(seconds),
                Err(why) => faults.push(format!("[run] max_age = {age:?}: {why:#}")),
            }
        }
        faults.extend(spec.faults());
        if faults.is_empty() && spec.is_empty() {
            faults
                .push("the spec is empty: give [machine], [findings], [limits], [[limit]] or [peers]".into());
        }
        Ok((spec, faults))
    }

    /// Why it has too many limits to check each of them; `None` if it has not.
    pub(super) fn is_too_long(&self) -> Option<String> {
        let count = self.limits.0.len() + self.limit.len();
        (count > MAX_LIMITS).then(|| format!("it has {count} limits; at most {MAX_LIMITS} are allowed"))
    }

    /// What is wrong with it whatever can be measured.
    pub(super) fn faults(&self) -> Vec<String> {
        let limits = self.limits.0.iter().map(|(name, limit)| of_key_figure(name, limit));
        let series = self.limit.iter().enumerate().map(|(at, limit)| of_series(at, limit));
        let rules = || diagnose::rules().map(|rule| rule.id.as_str());
        let allowed = self.findings.allow.iter().map(|allowed| &allowed.rule);
        let of_rule = |rule: &String| {
            let near = || did_you_mean(rule, rules());
            ensure!(rules().any(|own| own == rule), "[findings] {rule} is not a rule{}", near());
            Ok(())
        };
        let peers = self.peers.as_ref().map_or(Ok(()), PeersDemand::faults);
        let findings = self.findings.none_of.iter().chain(allowed).map(of_rule);
        first_faults(limits.chain(series).chain([self.referenced(), peers]).chain(findings))
    }

    /// What this version does not know of it: facts, profiles, benchmarks, units.
    pub fn unknown(&self, catalogue: &Catalogue) -> Vec<String> {
        let facts = self.facts.iter().map(|(name, asked)| of_fact(name, asked));
        let of_profile = |name: &String| {
            let all = || catalogue.profiles.iter().copied();
            ensure!(
                all().any(|own| own == name),
                "[run] {name} is not a profile{}; profiles: {}",
                did_you_mean(name, all()),
                catalogue.profiles.join(", ")
            );
            Ok(())
        };
        let profiles = self.run.profile.iter().map(of_profile);
        let series = self.limit.iter().enumerate().map(|(at, limit)| catalogue.of_series(at, limit));
        first_faults(facts.chain(profiles).chain(series))
    }

    /// What is probably not meant.
    pub fn warnings(&self, catalogue: &Catalogue) -> Vec<String> {
        let limits = self.limits.0.iter().filter_map(|(name, limit)| direction(named(name)?, limit));
        let series = self.limit.iter().enumerate().filter_map(|(at, limit)| catalogue.sizes(at, limit));
        limits.chain(series).take(MAX_FAULTS).collect()
    }

    fn is_empty(&self) -> bool {
        let findings = self.findings.fail_at.is_none() && self.findings.none_of.is_empty();
        self.facts.is_empty()
            && self.limits.0.is_empty()
            && self.limit.is_empty()
            && findings
            && self.reading.is_none()
            && self.peers.is_none()
    }
}

/// The first faults in words; what comes behind them is not looked at.
fn first_faults(all: impl Iterator<Item = anyhow::Result<()>>) -> Vec<String> {
    all.filter_map(Result::err).map(|error| format!("{error:#}")).take(MAX_FAULTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue<'static> {
        let known = |id, unit, params: &[&'static str]| KnownBenchmark {
            id,
            metrics: vec![("value", unit)],
            params: params.to_vec(),
        };
        Catalogue {
            benches: vec![known("syscall.getpid", "ns", &[]), known("memory.bandwidth", "GB/s", &["bytes"])],
            profiles: vec!["quick", "full"],
        }
    }

    #[test]
    fn what_no_run_can_have_is_named_at_once() {
        for (text, told) in [
            ("[machine]\ncpsu = 2", "did you mean cpus?"),
            ("[machine]\ncpu_modell = \"a\"", "did you mean cpu_model?"),
            ("[machine]\nhypervisor = 4", "is a word"),
            ("[machine]\nkernel = { min = 6 }", "is a word"),
            ("[run]\nprofile = [\"quik\"]\n[machine]\ncpus = 2", "did you mean quick?"),
            ("[[limit]]\nseries = \"syscall.*\"\nmax = \"1 GB/s\"", "measured in ns"),
            ("[[limit]]\nseries = \"memory.bandwith@*\"\nmin = \"1 GB/s\"", "did you mean memory.bandwidth?"),
        ] {
            let spec = Spec::read(text).expect("a spec");
            let found = spec.unknown(&catalogue());
            assert!(found.len() == 1 && found[0].contains(told), "{text}: {found:?}");
        }
        let fine = "[machine]\ncpus = 2.0\nmitigation_x = \"on\"\n[run]\nprofile = [\"full\"]\n\
                    [[limit]]\nseries = \"*\"\nmax = \"1 µs\"";
        assert_eq!(Spec::read(fine).expect("a spec").unknown(&catalogue()), Vec::<String>::new());
    }

    #[test]
    fn all_faults_are_told_and_what_is_probably_not_meant() {
        let two = "[limits]\nsyscal = { max = \"1 s\" }\ndram-latency = { max = \"1 GB/s\" }";
        let error = Spec::read(two).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(error.contains("did you mean syscall?") && error.contains("measured in ns"), "{error}");
        for (text, count) in [
            ("[limits]\nsyscall = { min = \"0.1 µs\" }", 1),
            ("[limits]\nsyscall = { max = \"0.1 µs\" }", 0),
            ("[limits]\nread-one-cpu = { max = \"9 GB/s\" }", 1),
            ("[limits]\nread-one-cpu = { min = \"1 GB/s\", max = \"9 GB/s\" }", 0),
            ("[[limit]]\nseries = \"memory.bandwidth@*\"\npick = \"best\"\nmin = \"1 GB/s\"", 1),
            ("[[limit]]\nseries = \"memory.bandwidth@*bytes=64#*\"\npick = \"best\"\nmin = \"1 GB/s\"", 0),
            ("[[limit]]\nseries = \"memory.bandwidth@*\"\nmin = \"1 GB/s\"", 0),
        ] {
            let spec = Spec::read(text).expect("a spec");
            let found = spec.warnings(&catalogue());
            assert_eq!(found.len(), count, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_spec_that_would_take_minutes_is_refused() {
        let limit = |series: &str| format!("[[limit]]\nseries = \"{series}\"\nmin = \"1 s\"\n");
        let told = |text: &str| Spec::read(text).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(told(&limit(&"*a".repeat(200))).contains("the limit is 300"));
        assert!(told(&limit("a").repeat(501)).contains("at most 500 are allowed"));
        assert_eq!(told(&limit("a").repeat(500)), "");
    }
}

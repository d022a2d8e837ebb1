//! What a spec file can ask of a host, as TOML.

use std::fmt;
use std::marker::PhantomData;

use anyhow::{Context, bail, ensure};
use diagnose::reference::Word;
use model::Severity;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::limit::Limit;

/// The only version of the format.
pub(super) const SCHEMA: u32 = 1;

/// What is asked of a host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    #[serde(default = "first")]
    pub(super) schema: u32,
    #[serde(default)]
    pub name: String,
    /// Facts of the host by the names of a summary's make-up and settings.
    #[serde(default)]
    pub(super) machine: Ordered<toml::Value>,
    #[serde(default)]
    pub run: RunDemand,
    #[serde(default)]
    pub findings: FindingsDemand,
    /// Key figures by their short names.
    #[serde(default)]
    pub limits: Ordered<Limit>,
    /// Series by globs.
    #[serde(default)]
    pub limit: Vec<Limit>,
    #[serde(default)]
    pub reading: Option<ReadingDemand>,
    /// What `within` counts from.
    #[serde(default)]
    pub reference: Option<Reference>,
    /// How it must stand beside hosts of the same make-up.
    #[serde(default)]
    pub peers: Option<PeersDemand>,
    #[serde(skip)]
    pub facts: Vec<(String, FactDemand)>,
}

fn first() -> u32 {
    SCHEMA
}

/// What a run must be to be judged at all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunDemand {
    #[serde(default)]
    pub profile: Vec<String>,
    /// `35d`, `12h`.
    #[serde(default)]
    pub(super) max_age: Option<String>,
    #[serde(skip)]
    pub max_age_s: Option<f64>,
}

/// Findings that a host may not have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingsDemand {
    #[serde(default)]
    pub fail_at: Option<Severity>,
    #[serde(default)]
    pub none_of: Vec<String>,
    #[serde(default)]
    pub allow: Vec<Allowed>,
}

/// A finding that is known and put up with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowed {
    pub rule: String,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub until: Option<toml::value::Datetime>,
}

/// Runs whose figures are the reference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// A run, a folder of runs of one host, or `@NAME`.
    pub runs: String,
}

/// That a host is not behind hosts of the same make-up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeersDemand {
    #[serde(default)]
    pub(super) not_slower: bool,
    /// Further runs that it is compared with, or a folder of them; else those that are checked with
    /// it alone.
    #[serde(default)]
    pub runs: Option<String>,
}

impl PeersDemand {
    pub(super) fn faults(&self) -> anyhow::Result<()> {
        ensure!(self.not_slower, "[peers] is empty: give not_slower = true");
        let named = self.runs.as_ref().is_none_or(|runs| !runs.trim().is_empty());
        ensure!(named, "[peers] runs is empty: name a folder of runs, or remove it");
        Ok(())
    }
}

/// How good every key figure must read that has a reference.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingDemand {
    #[serde(deserialize_with = "word")]
    pub at_least: Word,
}

fn word<'d, D: Deserializer<'d>>(from: D) -> Result<Word, D::Error> {
    match String::deserialize(from)?.as_str() {
        "fast" => Ok(Word::Fast),
        "normal" => Ok(Word::Normal),
        "slow" => Ok(Word::Slow),
        other => Err(serde::de::Error::custom(format!("{other:?} is not a reading (fast, normal, slow)"))),
    }
}

/// A value that a fact may have.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedValue {
    /// May be a glob.
    Text(String),
    Number(f64),
}

impl AllowedValue {
    fn is(&self, fact: &str) -> bool {
        match self {
            AllowedValue::Text(pattern) => is_like(pattern, fact),
            AllowedValue::Number(number) => number_of(fact) == Some(*number),
        }
    }
}

/// The number that a fact begins with: `2400 MHz`.
fn number_of(fact: &str) -> Option<f64> {
    fact.split_whitespace().next()?.parse().ok()
}

/// What is asked of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum FactDemand {
    OneOf(Vec<AllowedValue>),
    Range { min: Option<f64>, max: Option<f64> },
}

impl FactDemand {
    pub fn of(value: &toml::Value) -> anyhow::Result<FactDemand> {
        let scalar = |value: &toml::Value| match value {
            toml::Value::String(text) => Ok(AllowedValue::Text(text.clone())),
            toml::Value::Integer(number) => Ok(AllowedValue::Number(*number as f64)),
            toml::Value::Float(number) if number.is_finite() => Ok(AllowedValue::Number(*number)),
            toml::Value::Boolean(yes) => Ok(AllowedValue::Text(if *yes { "on" } else { "off" }.to_string())),
            toml::Value::Float(number) => bail!("{number} is not a finite number"),
            _ => bail!("give a text, a number, true, false, a list of them, or {{ min = …, max = … }}"),
        };
        match value {
            toml::Value::Array(all) if !all.is_empty() => {
                Ok(FactDemand::OneOf(all.iter().map(scalar).collect::<anyhow::Result<_>>()?))
            }
            toml::Value::Table(table) => {
                if let Some(other) = table.keys().find(|key| !["min", "max"].contains(&key.as_str())) {
                    bail!("{other} is neither min nor max");
                }
                let end = |name: &str| match table.get(name) {
                    None => Ok(None),
                    Some(toml::Value::Integer(number)) => Ok(Some(*number as f64)),
                    Some(toml::Value::Float(number)) if number.is_finite() => Ok(Some(*number)),
                    Some(toml::Value::Float(number)) => {
                        bail!("{name} = {number} is not a finite number")
                    }
                    Some(other) => bail!("{name} = {other} is not a number"),
                };
                let (min, max) = (end("min")?, end("max")?);
                ensure!(min.is_some() || max.is_some(), "it has neither min nor max");
                ensure!(min.zip(max).is_none_or(|(min, max)| min <= max), "min is above max");
                Ok(FactDemand::Range { min, max })
            }
            value => Ok(FactDemand::OneOf(vec![scalar(value)?])),
        }
    }

    /// Whether it asks for a number.
    pub fn is_of_numbers(&self) -> bool {
        match self {
            FactDemand::OneOf(all) => all.iter().any(|one| matches!(one, AllowedValue::Number(_))),
            FactDemand::Range { .. } => true,
        }
    }

    /// As it is shown: `≥ 128`, `balanced or near balanced`.
    pub fn words(&self) -> String {
        match self {
            FactDemand::OneOf(all) => {
                let word = |one: &AllowedValue| match one {
                    AllowedValue::Text(text) => text.clone(),
                    AllowedValue::Number(number) => number.to_string(),
                };
                all.iter().map(word).collect::<Vec<_>>().join(" or ")
            }
            FactDemand::Range { min: Some(min), max: Some(max) } => format!("{min}–{max}"),
            FactDemand::Range { min: Some(min), .. } => format!("≥ {min}"),
            FactDemand::Range { max, .. } => format!("≤ {}", max.unwrap_or_default()),
        }
    }

    /// Whether a fact is as asked; `None` where a number is asked of what is none.
    pub fn holds(&self, fact: &str) -> Option<bool> {
        match self {
            FactDemand::OneOf(all) => Some(all.iter().any(|one| one.is(fact))),
            FactDemand::Range { min, max } => {
                let number = number_of(fact)?;
                Some(min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max))
            }
        }
    }
}

/// Whether a text is like a pattern in which `*` stands for any text.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl Spec {
    /// Whether `[reference]` is used, and `within` has one.
    pub(super) fn referenced(&self) -> anyhow::Result<()> {
        let limits = self.limits.0.iter().map(|(_, limit)| limit).chain(&self.limit);
        let shares = limits.filter_map(|limit| limit.share().ok().flatten()).count();
        let runs = self.reference.as_ref().map(|reference| reference.runs.trim());
        ensure!(runs != Some(""), "[reference] runs is empty: name a run, a folder or @NAME");
        match (runs, shares) {
            (None, 1..) => bail!(
                "within needs a reference: add a table [reference] with runs = \"@NAME\", a run or a folder"
            ),
            (Some(_), 0) => bail!("no limit uses [reference]: give one within = \"10 %\""),
            _ => Ok(()),
        }
    }

    /// What `within` counts from, as it is written; empty where nothing is named.
    pub fn reference_name(&self) -> &str {
        self.reference.as_ref().map_or("", |reference| reference.runs.as_str())
    }
}

/// An age that a run may have, s.
pub(super) fn seconds(age: &str) -> anyhow::Result<f64> {
    let span: jiff::Span = age.parse().ok().context("write it as \"35d\" or \"12h\"")?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let seconds = span.total((jiff::Unit::Second, days)).context("use days or hours")?;
    ensure!(seconds > 0.0, "too short: write it as \"35d\" or \"12h\"");
    Ok(seconds)
}

/// A table in the order in which it was written.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Ordered<T> {
        Ordered(Vec::new())
    }
}

impl<'d, T: Deserialize<'d>> Deserialize<'d> for Ordered<T> {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Ordered<T>, D::Error> {
        struct Rows<T>(PhantomData<T>);
        impl<'d, T: Deserialize<'d>> Visitor<'d> for Rows<T> {
            type Value = Ordered<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let mut rows = Vec::new();
                while let Some(row) = map.next_entry()? {
                    rows.push(row);
                }
                Ok(Ordered(rows))
            }
        }
        from.deserialize_map(Rows(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_matched_whole() {
        for (pattern, text, like) in [
            ("AMD EPYC 9554*", "AMD EPYC 9554 64-Core", true),
            ("AMD EPYC 9554*", "Intel", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "ac", false),
            ("*", "", true),
            ("abc", "abcd", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), like, "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_spec_is_said_with_its_place() {
        for (text, told) in [
            ("", "is empty"),
            ("schema = 2\n[machine]\ncpus = 2", "this version reads schema 1"),
            ("[limits]\ndram-latncy = { max = \"100 ns\" }", "did you mean dram-latency?"),
            ("[limits]\ndram-latency = { max = 100 }", "max = \"100 ns\""),
            ("[limits]\ndram-latency = { max = \"100 GB/s\" }", "measured in ns"),
            ("[limits]\ndram-latency = \"100 ns\"", "a table such as { max = \"100 ns\" }"),
            ("[machine]\ncpus = nan", "not a finite number"),
            ("[machine]\ncpus = { min = nan }", "not a finite number"),
            ("[machine]\ncpus = { max = inf }", "not a finite number"),
            ("[run]\nmax_age = \"-2d\"\n[machine]\ncpus = 2", "35d"),
            ("[limits]\ndram-latency = {}", "is empty"),
            ("[limits]\ndram-latency = { most = \"1 ns\" }", "unknown field"),
            ("[[limit]]\nmin = \"1 ns\"", "names no series"),
            ("[[limit]]\nseries = \"memory.*\"\nmin = \"1\"", "no unit"),
            ("[findings]\nnone_of = [\"steel\"]", "did you mean steal?"),
            ("[machine]\ncpus = { least = 2 }", "neither min nor max"),
            ("[run]\nmax_age = \"soon\"\n[machine]\ncpus = 2", "35d"),
            ("[machine]\ncpus = { min = 3, max = 2 }", "min is above max"),
            ("[limits]\ndram-latency = { min = \"1 µs\", max = \"2 ns\" }", "min is above max"),
            ("[machine\n", "line 1"),
            ("[limits]\ndram-latency = { within = \"10 %\" }", "add a table [reference]"),
            ("[reference]\nruns = \"@a\"\n[machine]\ncpus = 2", "no limit uses"),
            ("[reference]\nruns = \"\"\n[limits]\ndram-latency = { within = \"10 %\" }", "runs is empty"),
            ("[limits]\ndram-latency = { within = 10 }", "within = \"10 %\""),
            ("[limits]\ndram-latency = { within = \"10 ns\" }", "within = \"10 %\""),
            ("[limits]\ndram-latency = { within = \"100 %\" }", "between 0 and 100 %"),
            ("[limits]\ndram-latency = { within = \"5 %\", max = \"1 ns\" }", "excludes min and max"),
            ("[reference]\nruns = \"@a\"\n[limits]\nl3-size = { within = \"5 %\" }", "comes from a curve"),
            ("[[limit]]\nseries = \"memory.*\"\nwithin = \"5 %\"\npick = \"best\"", "remove pick"),
            ("[reading]\nat_least = \"good\"", "fast, normal, slow"),
            ("[peers]\nruns = \"a\"", "not_slower = true"),
            ("[peers]\nnot_slower = true\nruns = \" \"", "name a folder of runs"),
            ("[peers]\nnot_faster = true", "unknown field"),
        ] {
            let error = Spec::read(text).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(told), "{text:?}: {error}");
        }
    }

    #[test]
    fn demands_keep_their_order_and_numbers_are_compared_as_numbers() {
        let spec = Spec::read("[machine]\nkernel = \"6.*\"\ncpus = { min = 9 }\n[run]\nmax_age = \"2d\"")
            .expect("a spec");
        let names: Vec<&str> = spec.facts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kernel", "cpus"]);
        assert_eq!(spec.run.max_age_s, Some(172800.0));
        assert_eq!(spec.facts[1].1.holds("10"), Some(true));
        assert_eq!(spec.facts[1].1.holds("many"), None);
        assert_eq!(spec.facts[0].1.holds("6.1.0"), Some(true));
        let spec =
            Spec::read("[machine]\ncpus = 2.0\nmemory_gib = [24.0, 32]\nkernel = \"6.1\"").expect("a spec");
        let holds = |at: usize, fact: &str| spec.facts[at].1.holds(fact);
        assert_eq!(
            [holds(0, "2"), holds(0, "3"), holds(1, "24"), holds(1, "32")].map(Option::unwrap_or_default),
            [true, false, true, true]
        );
        assert_eq!((holds(2, "6.10"), spec.facts[1].1.words()), (Some(false), "24 or 32".to_string()));
    }
}

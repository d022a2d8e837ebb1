//! What is measured where: [`Case`] = benchmark × placement × parameters × knobs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Index};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use super::CpuSet;
use super::vocabulary::{BenchId, ParamId};

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

/// Parameters by name, in name order: of a case (identifying it) or of a point inside a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(BTreeMap<String, Value>);

/// As the plain map that it is in files.
impl JsonSchema for Params {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Params".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, Value>::json_schema(generator)
    }
}

impl Params {
    pub const fn new() -> Params {
        Params(BTreeMap::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: ParamId) -> Option<&Value> {
        self.0.get(name.as_str())
    }

    /// The value by a name that is data: of a view, or of what a user asks for.
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn contains_key(&self, name: ParamId) -> bool {
        self.get(name).is_some()
    }

    pub fn insert(&mut self, name: ParamId, value: impl Into<Value>) {
        self.set(name, value.into());
    }

    /// The same by a name that is data.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    pub fn remove(&mut self, name: ParamId) -> Option<Value> {
        self.0.remove(name.as_str())
    }

    pub fn retain(&mut self, keeps: impl FnMut(&String, &mut Value) -> bool) {
        self.0.retain(keeps);
    }
}

impl Deref for Params {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &BTreeMap<String, Value> {
        &self.0
    }
}

impl Index<ParamId> for Params {
    type Output = Value;

    fn index(&self, name: ParamId) -> &Value {
        &self.0[name.as_str()]
    }
}

impl<const N: usize> From<[(ParamId, Value); N]> for Params {
    fn from(pairs: [(ParamId, Value); N]) -> Params {
        pairs.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}

impl FromIterator<(String, Value)> for Params {
    fn from_iter<Pairs: IntoIterator<Item = (String, Value)>>(pairs: Pairs) -> Params {
        Params(pairs.into_iter().collect())
    }
}

impl Extend<(String, Value)> for Params {
    fn extend<Pairs: IntoIterator<Item = (String, Value)>>(&mut self, pairs: Pairs) {
        self.0.extend(pairs);
    }
}

impl IntoIterator for Params {
    type Item = (String, Value);
    type IntoIter = std::collections::btree_map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Params {
    type Item = (&'a String, &'a Value);
    type IntoIter = std::collections::btree_map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Value {
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Text(_) => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        // Sizes and counts stay far below 2^63; anything above is a caller's error and shows itself
        // as i64::MAX.
        Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

/// Which pages back the memory that a benchmark touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Whatever the system gives without being asked.
    #[default]
    AsGiven,
    /// Transparent huge pages asked for (`madvise(MADV_HUGEPAGE)`), and checked.
    Huge,
    /// Huge pages refused (`MADV_NOHUGEPAGE`): 4 KiB pages on x86.
    Base,
}

/// What the SMT siblings of the measured CPUs do meanwhile, or without SMT the neighbour cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    #[default]
    Idle,
    SameWork,
    Spinner,
    Stream,
    /// On the measured CPUs themselves, what keeps them from sleeping: tasks that run only while
    /// no one else wants to (`SCHED_IDLE`).
    Awake,
}

/// One participant of a placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seat {
    /// `task`, `ping`, `pong`, `sender`, `copy`, `taskmanager`, ...
    pub role: Cow<'static, str>,
    /// `None`: this host. A two-host network test names the other one here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// CPUs this participant may run on.
    pub cpus: CpuSet,
    /// NUMA nodes its memory is bound to; empty: not bound.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub mem_nodes: CpuSet,
}

/// Who sits where. `name` is the vocabulary of keys, axes and findings:
/// free, one-cpu, same-cpu, smt-sibling, same-cluster, same-llc, other-llc, other-node,
/// other-package, other-cpu, spread, per-llc, per-node, all, one-per-core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    pub name: Cow<'static, str>,
    pub seats: Vec<Seat>,
    #[serde(default)]
    pub pages: Pages,
    #[serde(default)]
    pub beside: Beside,
    /// For each seat the CPUs that `beside` keeps busy; empty where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<CpuSet>,
}

impl Placement {
    /// A placement with this name only: no chosen CPUs, default pages, nothing running beside it.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Placement {
        Placement {
            name: name.into(),
            seats: Vec::new(),
            pages: Pages::AsGiven,
            beside: Beside::Idle,
            neighbours: Vec::new(),
        }
    }

    /// All CPUs that any seat of this host may use.
    pub fn cpus(&self) -> CpuSet {
        let local = self.seats.iter().filter(|seat| seat.host.is_none());
        CpuSet::union_of(local.map(|seat| &seat.cpus))
    }

    /// All CPUs that a visit keeps busy: those of its seats and those beside them.
    pub fn busy_cpus(&self) -> CpuSet {
        CpuSet::union_of(self.neighbours.iter().chain([&self.cpus()]))
    }

    /// Whether all of a visit's own work shares one CPU, with no one beside it.
    pub fn is_of_one_cpu(&self) -> bool {
        self.beside == Beside::Idle && self.busy_cpus().len() == 1
    }

    /// Whether the scheduler chooses where a task runs.
    pub fn is_free(&self) -> bool {
        self.seats.iter().any(|seat| seat.cpus.len() > 1)
    }

    pub fn pages(mut self, pages: Pages) -> Placement {
        self.pages = pages;
        self
    }

    /// The same seats with their memory bound to a NUMA node.
    pub fn memory_on(mut self, node: u32) -> Placement {
        for seat in &mut self.seats {
            seat.mem_nodes = CpuSet::one(node);
        }
        self
    }
}

/// The input of a case that is visited once, when all other cases of its run are through.
pub const LAST: &str = "last";

/// The input that names the compiler of what a case runs, where half of the result is that one's
/// skill.
pub const COMPILER: &str = "compiler";

/// One measurable thing: one child process a visit, which may emit many points (a ladder, a chunk
/// map, rate steps).
///
/// `params` and `knobs` identify; `inputs` (directories, addresses) do not, and secrets never stand
/// in either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    pub bench: Cow<'static, str>,
    pub placement: Placement,
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// Kernel knobs to be set for the visit (journaled and restored), by the names of `assay
    /// knobs`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "known_inputs")]
    pub inputs: BTreeMap<String, String>,
}

/// Inputs without the folders of control groups, which older versions wrote down with the ids of
/// containers.
fn known_inputs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let mut inputs = BTreeMap::deserialize(deserializer)?;
    inputs.remove("groups");
    Ok(inputs)
}

impl Case {
    /// Without parameters, knobs and inputs.
    pub fn new(bench: impl Into<Cow<'static, str>>, placement: Placement) -> Case {
        let (knobs, inputs) = (BTreeMap::new(), BTreeMap::new());
        Case { bench: bench.into(), placement, params: Params::new(), knobs, inputs }
    }

    /// Its benchmark, if this version has it.
    pub fn id(&self) -> Option<BenchId> {
        BenchId::named(&self.bench)
    }

    /// The stable name used for resume, compare and citation:
    /// `bench@placement?param=value&param=value!knob=value`.
    pub fn key(&self) -> String {
        let mut key = format!("{}@{}", self.bench, self.placement.name);
        match self.placement.pages {
            Pages::AsGiven => {}
            Pages::Huge => key.push_str("+huge-pages"),
            Pages::Base => key.push_str("+base-pages"),
        }
        match self.placement.beside {
            Beside::Idle => {}
            Beside::SameWork => key.push_str("+beside-same-work"),
            Beside::Spinner => key.push_str("+beside-spinner"),
            Beside::Stream => key.push_str("+beside-stream"),
            Beside::Awake => key.push_str("+awake"),
        }
        push_params(&mut key, '?', self.params.iter().map(|(name, value)| (name, value.to_string())));
        push_params(&mut key, '!', self.knobs.iter().map(|(name, value)| (name, value.clone())));
        key
    }

    /// The key of one metric at one point of this case: `CASE/point=value#metric`.
    pub fn series_key(&self, point: &Params, metric: &str) -> String {
        let mut key = self.key();
        push_params(&mut key, '/', point.iter().map(|(name, value)| (name, value.to_string())));
        format!("{key}#{metric}")
    }
}

/// A number that is equal for equal texts on every host and in every version (FNV-1a, 64 bits).
pub fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn push_params<'a>(key: &mut String, lead: char, params: impl Iterator<Item = (&'a String, String)>) {
    let mut separator = lead;
    for (name, value) in params {
        key.push(separator);
        key.push_str(name);
        key.push('=');
        for c in value.chars() {
            // The grammar's own marks and anything unprintable are escaped, so that a key splits
            // one way only.
            match c {
                '?' | '&' | '!' | '/' | '#' | '@' | '=' | '%' | '+' => {
                    key.push_str(&format!("%{:02x}", c as u32))
                }
                c if c.is_control() || c.is_whitespace() => key.push_str(&format!("%{:02x}", c as u32)),
                c => key.push(c),
            }
        }
        separator = '&';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::memory as ids;

    #[test]
    fn keys_are_stable_and_split_one_way() {
        let placement = Placement { pages: Pages::Huge, ..Placement::named("one-cpu") };
        let mut case = Case::new(ids::LATENCY, placement);
        assert_eq!(case.key(), "memory.latency@one-cpu+huge-pages");
        case.params.insert(ids::param::ORDER, "a/b#c");
        case.params.set("k", Value::Int(4));
        case.knobs.insert("slice_ns".into(), "3000000".into());
        case.inputs.insert("dir".into(), "/tmp".into());
        let point = Params::from([(ids::param::BYTES, Value::Int(65536))]);
        assert_eq!(
            case.series_key(&point, "latency"),
            "memory.latency@one-cpu+huge-pages?k=4&order=a%2fb%23c!slice_ns=3000000/bytes=65536#latency"
        );
    }
}

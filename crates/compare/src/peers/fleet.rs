//! Results of many hosts: of each the newest counts, and one machine counts once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::kept::{LabelSet, Shared, Value, Values};
use crate::{ComparisonSide, component_of};
use model::{Better, Severity, Summary, SummaryFinding};
use stats::estimate::interval_of_median;

/// One result of one host, as it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostResult {
    pub host: String,
    pub file: String,
    /// UTC, RFC 3339; empty if it is unknown.
    pub started: String,
    pub boot_id: Option<String>,
    pub assay: String,
    /// The profile that measured it; empty where none did.
    pub profile: String,
    pub pretended: bool,
    /// A foreign tool measured it.
    pub imported: bool,
    /// Make-up and settings: label and value.
    pub make_up: Vec<(String, String)>,
    pub series: Vec<Series>,
    pub labels: BTreeMap<String, String>,
    pub findings: Vec<SummaryFinding>,
    /// Figures that benchmarks are about and that its summary had no room for.
    pub left_out: u32,
}

/// One number of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub key: String,
    pub unit: String,
    /// `None`: unknown, and guessed from the unit.
    pub better: Option<Better>,
    pub headline: bool,
    pub median: f64,
    pub ci95: Option<[f64; 2]>,
}

/// What a series is, once for all hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub key: String,
    pub unit: String,
    /// The part of the host that it is about.
    pub component: Arc<str>,
    /// Whether more is better.
    pub higher: bool,
}

/// A host with its newest result.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: String,
    pub file: String,
    pub started: String,
    pub assay: String,
    pub boot_id: Option<String>,
    pub pretended: bool,
    pub imported: bool,
    pub make_up: LabelSet,
    /// What its owner calls it by; no part of the make-up.
    pub labels: LabelSet,
    pub findings: Vec<SummaryFinding>,
    pub(super) values: Values,
    /// Older results of the same host, the newest first.
    pub earlier: Vec<Earlier>,
}

/// An older result of a host: what is needed to say whether it was slow before.
#[derive(Clone, Debug)]
pub struct Earlier {
    pub file: String,
    pub started: String,
    pub(super) values: Values,
}

/// Results of many hosts.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub metrics: Vec<Metric>,
    pub hosts: Vec<Host>,
    /// Results that could not be used: file and reason.
    pub left_out: Vec<(String, String)>,
    /// Results that were given twice.
    pub twice: usize,
    /// Results whose summary had no room for all that benchmarks are about.
    pub cut: usize,
    places: HashMap<String, u32>,
    known: HashMap<String, usize>,
    shared: Shared,
}

/// The better side by the unit, for old summaries without it; `None` of what could be either.
pub(crate) fn better_of(unit: &str) -> Option<Better> {
    match unit {
        "ns" | "us" | "µs" | "ms" | "s" | "cycles" => Some(Better::Lower),
        unit if unit.ends_with("/s") || unit.ends_with("Hz") => Some(Better::Higher),
        _ => None,
    }
}

impl Fleet {
    /// A host's value of a metric, in its unit; both by their places.
    pub fn value(&self, host: usize, metric: usize) -> Option<f64> {
        let own = self.hosts.get(host)?.values.of(u32::try_from(metric).ok()?)?;
        Some(if self.metrics.get(metric)?.higher { own.ln } else { -own.ln }.exp())
    }

    /// Adds a result. Of one host the newest counts, and the others are its history; one run counts
    /// once.
    pub fn add(&mut self, result: HostResult) {
        let HostResult {
            host,
            file,
            started,
            boot_id,
            assay,
            profile: _,
            pretended,
            imported,
            make_up,
            labels,
            series,
            findings,
            left_out,
        } = result;
        let values = self.values(&series);
        if values.is_empty() {
            // A problem made its values useless: a quota, other work.
            let problems = findings.iter().filter(|finding| finding.severity == Severity::Problem);
            let problems: Vec<&str> = problems.map(|finding| finding.headline.as_str()).collect();
            let why = if problems.is_empty() {
                "it has no usable value with a better side".to_string()
            } else {
                format!("it has no usable value: {}", problems.join(" "))
            };
            return self.left_out.push((file, why));
        }
        let values = self.shared.values(values);
        self.cut += usize::from(left_out > 0);
        let (make_up, labels) = (self.shared.words(make_up), self.shared.words(labels));
        // Hosts of one name need not be one machine: half the world is called localhost.
        let told = |label: &str| make_up.get(label).unwrap_or_default();
        let identity =
            format!("{host}\n{}\n{}\n{}\n{pretended}", told("cpu_model"), told("packages"), told("suite"));
        let mut findings = findings;
        findings.retain(|finding| finding.severity > Severity::Note);
        findings.shrink_to_fit();
        let found = Host {
            name: host,
            file,
            started,
            assay,
            boot_id,
            pretended,
            imported,
            findings,
            make_up,
            labels,
            values,
            earlier: Vec::new(),
        };
        let Some(&place) = self.known.get(&identity) else {
            self.known.insert(identity, self.hosts.len());
            return self.hosts.push(found);
        };
        let known = &mut self.hosts[place];
        let times = || std::iter::once(&known.started).chain(known.earlier.iter().map(|one| &one.started));
        if !found.started.is_empty() && times().any(|time| *time == found.started) {
            self.twice += 1;
            return;
        }
        let mut history = std::mem::take(&mut known.earlier);
        let (mut newest, older) = match (&found.started, &found.file) > (&known.started, &known.file) {
            true => (found, known.clone()),
            false => (known.clone(), found),
        };
        history.push(Earlier { file: older.file, started: older.started, values: older.values });
        history.sort_by(|a, b| (&b.started, &b.file).cmp(&(&a.started, &a.file)));
        newest.earlier = history;
        *known = newest;
    }

    /// One host under several names counts once, by its newest result: hosts that ran in one
    /// boot, and hosts that hold the very same numbers. The others are left out, and said to be.
    pub(super) fn without_doubles(mut self) -> Fleet {
        let mut newest_first: Vec<usize> = (0..self.hosts.len()).collect();
        let age = |place: &usize| (&self.hosts[*place].started, &self.hosts[*place].file);
        newest_first.sort_by(|one, other| age(other).cmp(&age(one)));
        let mut boots: HashMap<&str, &str> = HashMap::new();
        // By a checksum of their numbers: what has the same one need not be the same.
        let mut numbers: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut doubles: BTreeMap<usize, String> = BTreeMap::new();
        for place in newest_first {
            let host = &self.hosts[place];
            let mut sum = DefaultHasher::new();
            host.values.bits().for_each(|bits| bits.hash(&mut sum));
            let alike = numbers.entry(sum.finish()).or_default();
            let twin =
                alike.iter().map(|other| &self.hosts[*other]).find(|other| other.values.same(&host.values));
            // Invented runs carry the boot ID of the host that invented them.
            let boot = host.boot_id.as_deref().filter(|boot| !boot.is_empty() && !host.pretended);
            let why = match (boot.and_then(|boot| boots.get(boot)), twin) {
                (Some(other), _) => format!("it ran in one boot with {other}"),
                (None, Some(other)) => format!("its numbers are identical to those of {}", other.name),
                (None, None) => {
                    alike.push(place);
                    boots.extend(boot.map(|boot| (boot, host.name.as_str())));
                    continue;
                }
            };
            doubles.insert(place, format!("{why}: a host under two names counts once"));
        }
        let mut place = 0;
        self.hosts.retain(|host| {
            let double = doubles.get(&place);
            self.left_out.extend(double.map(|why| (host.file.clone(), why.clone())));
            place += 1;
            double.is_none()
        });
        self
    }

    fn values(&mut self, series: &[Series]) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(series.len());
        for one in series.iter().filter(|one| one.headline && one.median.is_finite() && one.median > 0.0) {
            let higher = match one.better.or_else(|| better_of(&one.unit)) {
                Some(Better::Higher) => true,
                Some(Better::Lower) => false,
                Some(Better::Neither) | None => continue,
            };
            let metric = match self.places.get(&one.key) {
                Some(place) => *place,
                None => {
                    let place = self.metrics.len() as u32;
                    let bench = one.key.split('@').next().unwrap_or_default();
                    let component = component_of(bench, &one.unit);
                    let known = self.metrics.iter().find(|metric| *metric.component == *component);
                    let component =
                        known.map_or_else(|| component.into(), |known| Arc::clone(&known.component));
                    let (key, unit) = (one.key.clone(), one.unit.clone());
                    self.places.insert(key.clone(), place);
                    self.metrics.push(Metric { key, unit, component, higher });
                    place
                }
            };
            // One key with two units is two things.
            if self.metrics[metric as usize].unit != one.unit {
                continue;
            }
            let sign = if higher { 1.0 } else { -1.0 };
            let interval = one.ci95.filter(|[low, high]| *low > 0.0 && low <= high && high.is_finite());
            let ln = sign * one.median.ln();
            let ends = interval.map(|ends| ends.map(|end| sign * end.ln()));
            values.push(Value {
                metric,
                ln,
                best: ends.map_or(ln, |[a, b]| a.max(b).max(ln)),
                half: ends.map_or(0.0, |[a, b]| (a - b).abs() / 2.0),
            });
        }
        values
    }
}

impl From<(Summary, String)> for HostResult {
    fn from((summary, file): (Summary, String)) -> HostResult {
        let series = summary.series.into_iter().filter_map(|one| {
            let usable = model::Verdict::new(one.verdict, "").usable();
            Some(Series {
                median: one.median.filter(|_| usable)?,
                key: one.key,
                unit: one.unit,
                better: one.better,
                headline: !one.aside,
                ci95: one.ci95,
            })
        });
        HostResult {
            series: series.collect(),
            host: summary.host,
            file,
            started: summary.started,
            boot_id: summary.boot_id,
            assay: summary.assay,
            profile: summary.profile,
            pretended: summary.pretended,
            imported: false,
            make_up: summary.make_up.into_iter().chain(summary.settings).collect(),
            labels: summary.labels,
            findings: summary.findings,
            left_out: summary.headlines_left_out,
        }
    }
}

impl From<&ComparisonSide> for HostResult {
    /// A saved report or a foreign result.
    fn from(arm: &ComparisonSide) -> HostResult {
        let told = |label: &str| {
            arm.environment.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone())
        };
        let knows = arm.knows_headlines;
        let series = arm.valued().filter(|member| member.verdict.usable()).map(|member| Series {
            key: member.key.clone(),
            unit: member.metric.unit.to_string(),
            better: Some(member.metric.better),
            headline: member.metric.headline || !knows,
            median: member.median,
            ci95: match member.given_interval {
                Some((interval, _)) => Some(interval),
                None => {
                    interval_of_median(&member.medians, 0.95).map(|interval| [interval.low, interval.high])
                }
            },
        });
        // An identity is host and time; foreign files may have none.
        let started =
            arm.identities.keys().next().and_then(|one| one.strip_prefix(&format!("{} ", arm.host)));
        HostResult {
            host: arm.host.clone(),
            file: arm.file.clone(),
            started: started.unwrap_or_default().to_string(),
            boot_id: None,
            assay: told("assay").unwrap_or_default(),
            profile: told("profile").unwrap_or_default(),
            pretended: arm.pretended,
            imported: arm.imported,
            make_up: arm.environment.clone(),
            series: series.collect(),
            labels: BTreeMap::new(),
            findings: Vec::new(),
            left_out: 0,
        }
    }
}

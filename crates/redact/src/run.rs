//! A run without what identifies someone: its lines as JSON, each text by its place.

use anyhow::Context;
use serde_json::{Map, Value};

use model::{Record, Run};

use super::names::{Kind, Names};
use super::place::{PID, Place, place_of};
use super::snapshot;
use super::text::{Filter, Treatment};
use super::vocabulary::Vocabulary;

/// Any text of which nothing else is known.
const FREE: Treatment = Treatment::Words(Kind::Redacted);

/// Redacts the runs of one bundle.
pub struct Redactor<'v> {
    filter: Filter<'v>,
    plans: Vec<String>,
    /// Entries of snapshots that did not leave.
    pub dropped_entries: usize,
    /// Lines of run files that could not be read.
    pub dropped_lines: usize,
}

impl<'v> Redactor<'v> {
    /// All runs are known before the first is redacted: a name may stand in any of them.
    pub fn new(vocabulary: &'v Vocabulary, runs: &[Run]) -> anyhow::Result<Redactor<'v>> {
        let filter = Filter::new(vocabulary);
        let mut redactor = Redactor { filter, plans: Vec::new(), dropped_entries: 0, dropped_lines: 0 };
        for run in runs {
            for record in records(run) {
                let names = &mut redactor.filter.names;
                each_text(&value(&record)?, &mut |text| names.avoid(text));
            }
            snapshot::meet(&mut redactor.filter, &run.header.snapshot);
        }
        for run in runs {
            for record in records(run) {
                redactor.learn(&value(&record)?, "");
            }
        }
        for run in runs {
            snapshot::learn(&mut redactor.filter, &run.header.snapshot);
        }
        Ok(redactor)
    }

    pub fn names(&self) -> &Names {
        &self.filter.names
    }

    /// The run's lines as they leave.
    pub fn run(&mut self, run: &Run) -> anyhow::Result<Vec<Record>> {
        self.dropped_lines += run.damage.len();
        let mut redacted = Vec::new();
        for record in records(run) {
            let mut one = self.walk(value(&record)?, "");
            if let Record::Header(header) = &record {
                let (snapshot, dropped) = snapshot::redacted(&mut self.filter, &header.snapshot);
                self.dropped_entries += dropped;
                one["header"]["snapshot"] = serde_json::to_value(&snapshot).context("a snapshot")?;
            }
            redacted.push(serde_json::from_value(one).context("a redacted line cannot be read back")?);
        }
        Ok(redacted)
    }

    /// Learns what is private by its place.
    fn learn(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, inner)| self.learn(inner, &below(path, name)));
            }
            Value::Array(all) => all.iter().for_each(|inner| self.learn(inner, path)),
            Value::String(text) => {
                if let Some(place) = place_of(path).filter(|place| *place != Place::Command) {
                    self.at(place, text);
                }
            }
            _ => {}
        }
    }

    fn walk(&mut self, value: Value, path: &str) -> Value {
        match value {
            Value::Object(fields) => {
                let mut walked = Map::new();
                for (name, inner) in fields {
                    let inner = self.walk(inner, &below(path, &name));
                    walked.insert(self.filter.text(&name, FREE), inner);
                }
                Value::Object(walked)
            }
            Value::Array(all) => Value::Array(all.into_iter().map(|inner| self.walk(inner, path)).collect()),
            Value::String(text) => Value::String(match place_of(path) {
                Some(place) => self.at(place, &text),
                None => self.filter.text(&text, FREE),
            }),
            Value::Number(number) if path == PID => {
                let name = self.filter.names.of(Kind::Pid, &format!("pid {number}"));
                name.rsplit('-').next().and_then(|digits| digits.parse::<u32>().ok()).into()
            }
            other => other,
        }
    }

    fn at(&mut self, place: Place, text: &str) -> String {
        match place {
            Place::Whole(kind) => self.filter.whole(kind, text),
            Place::Folder => snapshot::folder(&mut self.filter, text),
            Place::Command => self.filter.text(text, Treatment::Strict(Kind::Program)),
            Place::Programs if !text.starts_with("A-") => self.filter.text(text, FREE),
            Place::Programs => {
                let one = |one: &str| match one.split_once('-') {
                    Some((side, name)) => format!("{side}-{}", self.filter.whole(Kind::Program, name)),
                    None => self.filter.text(one, FREE),
                };
                text.split(',').map(one).collect::<Vec<_>>().join(",")
            }
            Place::Peer => match text.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => {
                    format!("{}:{port}", self.peer(host))
                }
                _ => self.peer(text),
            },
            Place::Plan => {
                let known = self.plans.iter().position(|plan| plan == text);
                let place = known.unwrap_or_else(|| {
                    self.plans.push(text.to_string());
                    self.plans.len() - 1
                });
                format!("{:016x}", place + 1)
            }
        }
    }

    fn peer(&mut self, host: &str) -> String {
        match host.parse::<std::net::IpAddr>() {
            Ok(_) => self.filter.text(host, FREE),
            Err(_) => self.filter.whole(Kind::Host, host),
        }
    }
}

/// All texts of a line, names of fields included.
fn each_text(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, inner)| {
            see(name);
            each_text(inner, see);
        }),
        Value::Array(all) => all.iter().for_each(|inner| each_text(inner, see)),
        Value::String(text) => see(text),
        _ => {}
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

/// The lines of a run, the snapshot apart.
fn records(run: &Run) -> Vec<Record> {
    let mut all = vec![Record::Header(Box::new(run.header.clone()))];
    all.extend(run.visits.iter().cloned().map(|visit| Record::Visit(Box::new(visit))));
    all.extend(run.time_lines.iter().cloned().map(Record::TimeLine));
    all.extend(run.events.iter().cloned().map(Record::Event));
    all.extend(run.summary.iter().cloned().map(|summary| Record::Summary(Box::new(summary))));
    all
}

fn value(record: &Record) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(record).context("a line of the run")?;
    // It has a treatment of its own.
    if let Some(header) = value.get_mut("header") {
        header["snapshot"] = Value::Object(Map::new());
    }
    Ok(value)
}

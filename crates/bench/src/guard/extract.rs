//! The number that a program is judged by, taken from what it printed.

use anyhow::{Context, bail, ensure};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::formats::{Format, format_of};
use super::output::OutputTail;
use model::Better;

/// A pattern to search for, and what it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    pub name: String,
    pub unit: String,
    pub better: Better,
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The first capture group, or the whole match where there is none; of several matches the
    /// last.
    Regex(String),
    /// Names and indexes with dots between them, into JSON on standard output.
    Json(String),
    /// A tool whose output is known, by its name in [`super::formats::FORMATS`].
    Format(String),
}

/// The number that a program is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub value: f64,
    /// Results of the tool in what was printed, of which this is the last.
    pub of: usize,
}

impl Wanted {
    /// `NAME=REGEX`, `NAME[UNIT]=REGEX`, `NAME=json:PATH`. `better`: which side is, where the user
    /// says it; else times are better low and all else high.
    pub fn parse(text: &str, better: Option<Better>) -> anyhow::Result<Wanted> {
        let (head, what) = text.split_once('=').context("a metric is NAME=REGEX or NAME=json:PATH")?;
        let (name, unit) = match head.trim().strip_suffix(']').and_then(|head| head.split_once('[')) {
            Some((name, unit)) => (name.trim(), unit.trim()),
            None => (head.trim(), ""),
        };
        let printable = |text: &str| text.chars().count() <= 40 && !text.chars().any(char::is_control);
        ensure!(
            !name.is_empty() && printable(name),
            "the metric's name is empty or longer than 40 characters"
        );
        ensure!(printable(unit), "the metric's unit is longer than 40 characters");
        ensure!(!what.is_empty(), "the metric {name:?} has nothing to look for");
        let source = match what.strip_prefix("json:") {
            Some(path) => {
                ensure!(!steps(path).is_empty(), "the metric {name:?} has an empty JSON path");
                Source::Json(path.to_string())
            }
            None => {
                regex(what)?;
                Source::Regex(what.to_string())
            }
        };
        let better = better.unwrap_or(if is_time(name, unit) { Better::Lower } else { Better::Higher });
        Ok(Wanted { name: name.to_string(), unit: unit.to_string(), better, source })
    }

    pub fn format(format: &Format, better: Option<Better>) -> Wanted {
        Wanted {
            name: format.title.to_string(),
            unit: format.unit.to_string(),
            better: better.unwrap_or(format.better),
            source: Source::Format(format.name.to_string()),
        }
    }

    /// The number in what was printed: standard output first, standard error where it has none. An
    /// error quotes the last lines.
    pub fn find(&self, out: &OutputTail, err: &OutputTail) -> anyhow::Result<Found> {
        let one = |value: f64| Found { value, of: 1 };
        let found = match &self.source {
            Source::Regex(pattern) => {
                let regex = regex(pattern)?;
                let found = |kept: &OutputTail| last_match(&regex, &kept.text());
                found(out).or_else(|| found(err)).map(|text| number(&text)).transpose()?.map(one)
            }
            Source::Json(path) => {
                ensure!(out.is_whole(), "its JSON is longer than what is kept of an output");
                Some(one(at_path(&json(&String::from_utf8_lossy(&out.text()))?, path)?))
            }
            Source::Format(name) => {
                let format =
                    format_of(name).with_context(|| format!("no output format is called {name:?}"))?;
                let found = |kept: &OutputTail| format.find(&String::from_utf8_lossy(&kept.text()));
                let mut values = found(out)?;
                if values.is_empty() {
                    values = found(err)?;
                }
                values.last().map(|value| Found { value: *value, of: values.len() })
            }
        };
        let Some(found) = found else {
            let said = [out.last_lines(), err.last_lines()].into_iter().find(|said| !said.is_empty());
            let said =
                said.map_or("it printed nothing".to_string(), |said| format!("its last lines: {said}"));
            bail!("the metric {} did not appear in its output; {said}", self.name);
        };
        let value = found.value;
        ensure!(value.is_finite(), "the metric {} is {value}, which is no number to judge", self.name);
        Ok(found)
    }
}

/// Bytes, not characters: a program may print anything. `\d`, `\s` and `\w` are those of ASCII.
pub(super) fn regex(pattern: &str) -> anyhow::Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).multi_line(true);
    builder.build().map_err(|error| anyhow::anyhow!("{error}")).context("this regular expression is not one")
}

fn last_match(regex: &Regex, text: &[u8]) -> Option<String> {
    let captures = regex.captures_iter(text).last()?;
    let group = captures.get(1).or_else(|| captures.get(0))?;
    Some(String::from_utf8_lossy(group.as_bytes()).into_owned())
}

/// The numbers that one of our patterns finds.
pub(super) fn all(text: &str, pattern: &str) -> anyhow::Result<Vec<f64>> {
    let regex = regex(pattern)?;
    let found = regex.captures_iter(text.as_bytes()).filter_map(|found| found.get(1));
    found.map(|one| number(&String::from_utf8_lossy(one.as_bytes()))).collect()
}

/// `12`, `1.5e3`, `1,234,567.8`.
pub(super) fn number(text: &str) -> anyhow::Result<f64> {
    let text = text.trim();
    let grouped = text.contains(',') && text.split(['.', 'e']).next().is_some_and(in_thousands);
    let plain = if grouped { text.replace(',', "") } else { text.to_string() };
    plain.parse().with_context(|| format!("{:?} is not a number", text.chars().take(60).collect::<String>()))
}

fn in_thousands(text: &str) -> bool {
    let mut parts = text.trim_start_matches('-').split(',');
    parts.next().is_some_and(|first| (1..=3).contains(&first.len())) && parts.all(|part| part.len() == 3)
}

/// Whether less of it is better.
fn is_time(name: &str, unit: &str) -> bool {
    const UNITS: [&str; 9] = ["s", "sec", "secs", "seconds", "ms", "us", "usecs", "ns", "min"];
    let name = name.to_ascii_lowercase();
    let words = ["time", "latency", "duration", "elapsed", "delay", "jitter"];
    UNITS.contains(&unit) || UNITS.contains(&name.as_str()) || words.iter().any(|word| name.contains(word))
}

/// The JSON in an output: an object at the beginning of a line, since tools print a line or two
/// before it; else a list.
fn json(text: &str) -> anyhow::Result<serde_json::Value> {
    let mut found = ['{', '['].into_iter().flat_map(|open| documents(text, open).into_iter().next());
    found.next().context("its standard output holds no JSON")
}

/// All JSON in a text that begins so, at the beginning of a line.
pub(super) fn documents(text: &str, open: char) -> Vec<serde_json::Value> {
    /// After this number of texts that begin as JSON and are none, the search ends.
    const TRIES: usize = 16;
    let (mut found, mut at, mut failed) = (Vec::new(), 0, 0);
    while let Some(next) = text[at..].find(open).filter(|_| failed < TRIES) {
        let begin = at + next;
        at = begin + 1;
        if begin > 0 && !text[..begin].ends_with('\n') {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                at = begin + values.byte_offset().max(1);
                found.push(value);
            }
            _ => failed += 1,
        }
    }
    found
}

/// `results[0].value` and `results.0.value` alike.
fn steps(path: &str) -> Vec<String> {
    let dotted = path.replace('[', ".").replace(']', "");
    dotted.split('.').filter(|step| !step.is_empty()).map(str::to_string).collect()
}

fn at_path(value: &serde_json::Value, path: &str) -> anyhow::Result<f64> {
    let mut at = value;
    for step in steps(path) {
        let next = match at {
            serde_json::Value::Array(list) => step.parse::<usize>().ok().and_then(|index| list.get(index)),
            other => other.get(&step),
        };
        at = next.with_context(|| format!("its JSON has no {path}: nothing is called {step:?} there"))?;
    }
    let text = at.as_str().map(number).transpose()?;
    at.as_f64().or(text).with_context(|| format!("{path} in its JSON is not a number"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn kept(text: &str) -> OutputTail {
        let mut kept = OutputTail::new(1 << 16);
        kept.take(text.as_bytes());
        kept
    }

    fn found(metric: &str, out: &str, err: &str) -> Result<f64, String> {
        let wanted = Wanted::parse(metric, None).map_err(|error| format!("{error:#}"))?;
        wanted.find(&kept(out), &kept(err)).map(|one| one.value).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn numbers_are_taken_by_pattern_the_last_one_counts() {
        assert_eq!(found(r"rate=rate: ([\d.]+)", "rate: 1.5\nrate: 2.5\n", ""), Ok(2.5));
        assert_eq!(found(r"rate=\d+", "no 12 but 13", "14"), Ok(13.0));
        assert_eq!(found(r"count=COUNT\|(\d+)\|", "", "COUNT|278|1|lps"), Ok(278.0), "standard error too");
        assert_eq!(found(r"n=^n ([\d,.]+)$", "x\nn 1,234,567.5\n", ""), Ok(1_234_567.5));
        let missing = found("rate=rate: (.*)", "a\nb\n", "").expect_err("nothing there");
        assert!(missing.contains("rate did not appear in its output; its last lines: a / b"), "{missing}");
        assert!(found("x=x(.*)", "", "").expect_err("nothing").contains("it printed nothing"));
        assert!(found("x=x(.*)", "xyz", "").expect_err("letters").contains("\"yz\" is not a number"));
        assert!(found("x=x(.*)", "xNaN", "").is_err() && found("x=x(.*)", "xinf", "").is_err());
        for wrong in ["x", "=a", "x=", "x=(", "x=json:"] {
            assert!(Wanted::parse(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn which_side_is_better_follows_from_name_and_unit() {
        let of = |text: &str| Wanted::parse(text, None).expect("a metric");
        assert_eq!((of("p99[us]=x").better, of("p99[us]=x").unit.as_str()), (Better::Lower, "us"));
        assert_eq!(of("p99[us]=x").name, "p99");
        assert_eq!(of("Latency=x").better, Better::Lower);
        assert_eq!(of("rate[1/s]=x").better, Better::Higher);
        assert_eq!(Wanted::parse("time=x", Some(Better::Higher)).expect("one").better, Better::Higher);
    }

    #[test]
    fn paths_lead_into_json() {
        let out = "warning: slow\n{\"runs\": [{\"v\": 1}, {\"v\": \"2.5\"}], \"t\": null}\n";
        assert_eq!(found("v=json:runs.1.v", out, ""), Ok(2.5));
        assert_eq!(found("v=json:runs[0].v", out, ""), Ok(1.0));
        assert!(found("v=json:runs.7.v", out, "").expect_err("no seventh").contains("\"7\""));
        assert!(found("v=json:t", out, "").expect_err("null").contains("not a number"));
        assert!(found("v=json:t", "none", "").expect_err("no JSON").contains("no JSON"));
    }
}

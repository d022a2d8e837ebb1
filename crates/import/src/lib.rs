//! Foreign result files, read into series that can be compared with a run of Assay. Their verdict
//! is `unverified`, because Assay did not watch the measurement.
//!
//! A file is recognised by its text, never by its name. Nothing is dropped in silence: a cell
//! without a number becomes a series without a value and with the reason, and what could not be
//! understood at all is a remark.
//!
//! Invariant: pure: never does I/O, and never judges what it read.

#![forbid(unsafe_code)]
// Tests may be long tables.
#![cfg_attr(test, allow(clippy::too_many_lines))]

mod above;
mod builder;
mod embedded;
pub mod faults;
mod key;
mod kit;
mod names;
mod nearest;
mod percentiles;
pub mod repeats;
mod unwrap;

use std::collections::BTreeSet;
use std::fmt;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Serialize;

use model::{Finding, Title};
use stats::Judged;

pub use faults::topic;
pub use key::{Keyed, keyed};
pub use kit::context::uncounted;
pub use names::{names, whole};
use unwrap::Plain;

/// Bytes of the largest file that is read: known results have some hundred kilobytes.
pub const MAX_BYTES: usize = 16 << 20;

/// More figures than this in one file are a mistake or an attack; the rest is counted and left out.
const MAX_FIGURES: usize = 20_000;

/// The first bytes of a run file of Assay, which users may pass to `import`.
const RUN_FILE: &str = "{\"header\":{";

/// A format of a tool, by its name in words. Each tool has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(&'static str);

impl Format {
    pub const fn word(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A tool whose results can be read.
struct Tool {
    /// Name in the list of formats.
    files: &'static str,
    /// How its files begin that are JSON from the first byte on, without blanks.
    json: &'static [&'static str],
    /// Known from documentation alone: no real output was available.
    documented: bool,
    is_one: fn(&str) -> bool,
    read: fn(&str) -> anyhow::Result<Vec<Imported>>,
}

impl Tool {
    /// A tool whose results are texts, of which one was seen here.
    const fn of(
        files: &'static str,
        is_one: fn(&str) -> bool,
        read: fn(&str) -> anyhow::Result<Vec<Imported>>,
    ) -> Tool {
        Tool { files, json: &[], documented: false, is_one, read }
    }
}

/// Declares the modules and lists their tools: a text is read by the first that knows it.
macro_rules! tools {
    ($($seen:vis $module:ident)+) => {
        $($seen mod $module;)+
        const TOOLS: &[&Tool] = &[$(&$module::TOOL),+];
    };
}

tools! {
    phoronix
    pub speccpu
    fio
    iperf3
    pub unixbench
    sockperf
    sysbench
    hackbench
    iperf2
    netperf
    schbench
    qperf
    nuttcp
    ntttcp
    stream
    wrk
    coremark
    openssl
    stress_ng
    likwid
    perf_bench
    hpl
    hpcg
    npb
    mlc
    multiload
    multichase
    core_to_core
    bw_mem
    sbc_bench
    geekbench
    pub lmbench
}

/// The results of one host in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub format: Format,
    /// As printed (summaries cut it after nine characters); `unknown` where it does not.
    pub host: String,
    /// Facts of the host, by the labels of a run's own make-up where they mean the same. A text
    /// that the format cut off ends in `…`.
    pub make_up: Vec<(String, String)>,
    /// A benchmark each, in the file's order.
    pub catalogue: Vec<Title>,
    pub figures: Vec<Figure>,
    /// The indices that the file prints; empty where the format has none.
    pub index: Vec<Index>,
    /// Sentences about the file that are no figure.
    pub remarks: Vec<String>,
    /// Lines that look like figures and could not be read; a remark names them.
    pub refused: usize,
    /// Faults that the file itself shows.
    pub findings: Vec<Finding>,
}

/// One figure of a foreign result.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub judged: Judged,
    /// What the other tool calls it.
    pub wording: String,
    /// Why it is not strictly what the series of the same key means here; empty where it is.
    pub note: String,
}

/// An index over several tests, as printed and as recomputed from its rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Index {
    pub title: String,
    /// How many copies of each test ran; `None` where the file does not print it.
    pub copies: Option<u32>,
    /// Not all tests are in it.
    pub partial: bool,
    /// As printed.
    pub score: Option<f64>,
    /// From the rows; `None` where some are missing and the file calls it whole.
    pub recomputed: Option<f64>,
    pub tests: Vec<IndexRow>,
    /// What disagrees or is missing; empty where the rows give the printed score.
    pub remark: String,
}

impl Index {
    /// Whether its rows give what it prints.
    pub fn agrees(&self) -> bool {
        self.remark.is_empty()
    }
}

/// One test of an index.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputIndexTest")]
pub struct IndexRow {
    pub title: String,
    /// The benchmark of Assay that measures the same; empty where there is none.
    pub bench: String,
    pub baseline: Option<f64>,
    pub result: f64,
    /// As printed.
    #[serde(rename = "index")]
    pub printed: Option<f64>,
    /// From the row.
    pub recomputed: Option<f64>,
}

/// Whether a file that is JSON from its first byte on begins as another tool's.
pub fn is_json(begin: &[u8]) -> bool {
    let marks: Vec<u8> = begin.iter().filter(|byte| !byte.is_ascii_whitespace()).take(20).copied().collect();
    TOOLS.iter().flat_map(|tool| tool.json).any(|first| marks.starts_with(first.as_bytes()))
}

/// The formats that can be read, one line for each tool.
pub fn known() -> impl Iterator<Item = String> {
    TOOLS.iter().map(|tool| {
        if tool.documented {
            format!("{} (known from documentation only: shown, not judged)", tool.files)
        } else {
            tool.files.to_string()
        }
    })
}

/// How a refusal ends.
const ALL: &str = "`assay import --help` lists the formats that Assay reads";

/// Reads the results of all hosts in a file. An error says that the file is none of those that are
/// known.
pub fn read(bytes: &[u8]) -> anyhow::Result<Vec<Imported>> {
    if bytes.len() > MAX_BYTES {
        bail!("the file is larger than {} MB, which no result that Assay reads is", MAX_BYTES >> 20);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        bail!("it is empty");
    }
    // Sides and labels of it may be too short to be recognised.
    let whole = std::str::from_utf8(bytes).map_or(bytes, |text| once(text).as_bytes());
    let texts = unwrap::unwrapped(whole)?;
    let (mut all, mut refused) = (Vec::new(), None);
    for Plain { source, text } in &texts {
        match of_text(once(text)) {
            Ok(found) => {
                let twice = whole.len() < bytes.len() || once(text).len() < text.len();
                all.extend(found.into_iter().map(|one| one.from(source, twice)));
            }
            Err(error) => _ = refused.get_or_insert((source, error)),
        }
    }
    match (refused, all.first_mut()) {
        (Some((_, error)), None) => Err(error),
        (Some((source, _)), Some(first)) if !source.is_empty() => {
            first.remarks.push(format!("the text under {source:?} has no result that Assay reads"));
            Ok(all)
        }
        _ => Ok(all),
    }
}

/// A text that is the same twice, as a copy of a copy is, without its second half.
fn once(text: &str) -> &str {
    /// Blanks and empty lines by which the halves may differ, bytes.
    const MARGIN: usize = 200;
    /// Fewer lines may be what a tool printed again and again.
    const MIN_LINES: usize = 5;
    let middle = text.len() / 2;
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut near = ends.skip_while(|at| at + MARGIN < middle).take_while(|at| *at <= middle + MARGIN);
    let Some(half) = near.find(|at| text[..*at].trim() == text[*at..].trim()) else { return text };
    let first = &text[..half];
    let lines: BTreeSet<&str> = first.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() < MIN_LINES { text } else { once(first) }
}

/// Reads what one source printed: by every tool that knows a part of it, and where none does, as
/// lmbench's, whose lines have nothing in common.
fn of_text(text: &str) -> anyhow::Result<Vec<Imported>> {
    if text.starts_with(RUN_FILE) {
        bail!("it is a run of Assay and needs no import: give it to `assay report`, `diagnose` or `compare`");
    }
    let (mut all, mut refused) = (Vec::<Imported>::new(), None);
    for tool in TOOLS.iter().filter(|tool| (tool.is_one)(text)) {
        if !all.is_empty() && tool.files == lmbench::TOOL.files && !lmbench::begins(text) {
            continue;
        }
        let found = (tool.read)(text).map(|mut found| {
            found.iter_mut().filter(|_| tool.documented).for_each(faults::from_documentation);
            found.iter_mut().for_each(kit::order::check);
            found
        });
        match found {
            // A second tool's result without figures consists of the first tool's words.
            Ok(found) if all.is_empty() => all = found,
            Ok(found) => all.extend(found.into_iter().filter(Imported::has_figures)),
            Err(error) => _ = refused.get_or_insert(error),
        }
    }
    match refused {
        _ if !all.is_empty() => Ok(all),
        Some(error) => Err(error),
        None => bail!("{}; {ALL}", nearest::refusal(text)),
    }
}

impl Imported {
    fn has_figures(&self) -> bool {
        self.figures.iter().any(|figure| figure.judged.analysis.estimate.is_some())
    }

    /// Notes which source of a log it is from, and whether all of it stands there twice.
    fn from(mut self, source: &str, twice: bool) -> Imported {
        if twice {
            self.remarks.push("the file has the same text twice: it counts once".to_string());
        }
        if !source.is_empty() {
            self.make_up.push(("source".to_string(), source.to_string()));
        }
        self
    }
}

#[cfg(test)]
mod tests;

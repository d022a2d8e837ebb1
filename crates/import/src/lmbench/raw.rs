//! Raw result files: a line a figure, blocks of pairs as curves, and between them whatever went
//! wrong.

use std::collections::BTreeSet;

use super::HEADING;
use super::figures::{MAYBE_WARM, Unit, WHOLE_HOP, find, meaning};
use super::labels::{CURVES, LINES, begins, is_heading, is_optional, ladder, parts, select};
use super::numbers::{rounded, slug};
use crate::Imported;
use crate::builder::{Builder, Meaning, number};
use crate::kit::commands::ShellLine;

const MEMORY_SUMS: &str = "lmbench adds up words of four bytes, which is slower than a core can load";

/// What the lines that follow belong to.
enum Block {
    None,
    /// Pairs of a size in millions of bytes and a value.
    Sizes {
        key: String,
        wording: String,
        unit: Unit,
        note: &'static str,
    },
    /// Pairs of a size in units of 2^20 bytes and nanoseconds.
    Ladder {
        key: String,
        wording: String,
        note: &'static str,
    },
    /// Pairs of a number of processes and microseconds.
    Ring {
        kb: u64,
        /// What was taken off, microseconds.
        overhead: Option<f64>,
    },
    /// Size, files, creations and deletions a second.
    Files,
}

pub fn read(text: &str) -> Vec<Imported> {
    let mut reader = Reader { parts: parts(text), ..Reader::new() };
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if lines.peek().is_none() && !line.ends_with('\n') && !line.trim().is_empty() {
            reader
                .builder
                .remarks
                .push("the file ends in the middle of its last line, which was left out".into());
            break;
        }
        reader.line(number, line.trim_end());
    }
    reader.finish()
}

struct Reader {
    builder: Builder,
    done: Vec<Builder>,
    block: Block,
    /// "Random load latency" came last, not "Memory load latency".
    random: bool,
    /// As many at once of lat_mem_rd, or of stream.
    processes: u32,
    /// Lines that said something else, with their numbers.
    complaints: Vec<(usize, String)>,
    /// Single figures that were found: place in [`LINES`] and line number.
    found: Vec<(usize, usize)>,
    /// The kernel's release as the first line has it, cut; another line has it whole.
    release: String,
    /// Headings of curves that were found, and their line numbers.
    curves: Vec<(String, usize)>,
    /// Single figures that are none of [`LINES`], by what they are called, and their line numbers.
    others: Vec<(String, usize)>,
    /// The last line that was none of lmbench's, if nothing of it has come since: `After:`.
    above: Option<String>,
    /// Lines that head another run's figures, which begin with one that the run before has not.
    parts: BTreeSet<usize>,
}

/// Lines that are no figures and are kept as reasons.
const MAX_COMPLAINTS: usize = 10_000;

impl Reader {
    fn new() -> Reader {
        Reader {
            builder: Builder::new(super::LAT_MEM_RD, ""),
            done: Vec::new(),
            block: Block::None,
            random: false,
            processes: 1,
            complaints: Vec::new(),
            found: Vec::new(),
            release: String::new(),
            curves: Vec::new(),
            others: Vec::new(),
            above: None,
            parts: BTreeSet::new(),
        }
    }

    fn line(&mut self, number: usize, line: &str) {
        if line.starts_with("[lmbench") {
            let heading = self.above.take().filter(|text| is_heading(text));
            self.close();
            self.builder.format = super::RAW;
            if let Some(heading) = heading {
                self.builder.fact(HEADING, heading.trim_end_matches(':'));
            }
            // `[lmbench3.0 results for Linux HOST RELEASE VERSION MACHINE OS]`
            let mut words = line.trim_end_matches(']').split_whitespace().skip(4);
            if let Some(host) = words.next() {
                self.builder.host = host.to_string();
            }
            self.release = words.next().unwrap_or_default().to_string();
        } else if let Some((label, value)) = line.strip_prefix('[').and_then(|line| line.split_once(':')) {
            self.header(label, value.trim_end_matches(']').trim());
        } else if line.trim().is_empty() {
            self.block = Block::None;
        } else if !self.pair(line) && !self.heading(number, line) && !self.single(number, line) {
            self.block = Block::None;
            let typed = ["lat_mem_rd", "stream"].map(|program| ShellLine::of(line, program));
            if let Some(asked) = typed.iter().flatten().find_map(|typed| typed.runs().next()) {
                self.random = asked.has(&["-t"]);
                self.processes = asked.value(&["-P"]).and_then(|many| many.parse().ok()).unwrap_or(1);
            }
            let text: String = line.trim().chars().take(200).collect();
            if self.parts.contains(&number) {
                self.above = None;
                self.part();
                return self.builder.fact(HEADING, text.trim_end_matches(':'));
            }
            self.above = Some(text.clone());
            if self.complaints.len() < MAX_COMPLAINTS {
                self.complaints.push((number, text));
            }
            return;
        }
        if !line.trim().is_empty() {
            self.above = None;
        }
    }

    /// A figure or a curve that was there before, in the line `before`, is another run's where
    /// something that is none of lmbench's stands between, which then heads it; and so may what
    /// stands above the first.
    fn heading_of_figure(&mut self, before: Option<usize>) {
        let between = before.is_some_and(|line| self.complaints.iter().any(|(other, _)| *other > line));
        let is_first = self.found.is_empty() && self.curves.is_empty() && self.others.is_empty();
        let heading = match (between, is_first) {
            (true, _) => self.complaints.pop().map(|(_, text)| text),
            (false, true) => self.above.take().filter(|text| is_heading(text)),
            (false, false) => None,
        };
        if between {
            self.part();
        }
        if let Some(heading) = heading {
            self.complaints.retain(|(_, text)| *text != heading);
            self.builder.fact(HEADING, heading.trim_end_matches(':'));
        }
    }

    /// Begins another result of the same host.
    fn part(&mut self) {
        let (host, facts) = (self.builder.host.clone(), self.builder.make_up.clone());
        self.close();
        self.builder.host = host;
        let facts = facts.iter().filter(|(label, _)| label != HEADING);
        facts.for_each(|(label, value)| self.builder.fact(label, value));
    }

    fn header(&mut self, label: &str, value: &str) {
        let label = match label {
            "HOSTNAME" if !value.is_empty() => {
                self.builder.host = value.to_string();
                return;
            }
            "RELEASE" => "kernel",
            "MHZ" => "mhz",
            "MACHINE" => "machine",
            "OS" => "system",
            "LMBENCH VERSION" => "lmbench",
            "LMBENCH_SCHED" => "scheduling",
            "SYNC_MAX" => "copies",
            "ENOUGH" => "enough_us",
            _ => return,
        };
        self.builder.fact(label, value.trim_end_matches(" MHz"));
    }

    /// A line of numbers inside a block.
    fn pair(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number =
            |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).filter(|n| n.is_finite());
        match &self.block {
            Block::None => false,
            Block::Files => {
                let size = words.first().and_then(|word| word.strip_suffix('k')?.parse::<u32>().ok());
                let (Some(size), 4) = (size, words.len()) else { return false };
                for (at, name) in [(2, "create"), (3, "delete")] {
                    let key = format!("file.create@one-cpu/bytes={}#{name}", u64::from(size) * 1024);
                    let wording = format!("{size}K File {}", if at == 2 { "Create" } else { "Delete" });
                    let figure_meaning =
                        meaning(&key, &wording, Unit::PerSecond, "depends on the file system");
                    self.give(
                        figure_meaning,
                        number(at).filter(|value| *value > 0.0),
                        "lmbench gave up on it",
                    );
                }
                true
            }
            Block::Ring { kb, overhead } => {
                let (Some(processes), Some(us), 2) = (number(0), number(1), words.len()) else {
                    return false;
                };
                let (kb, overhead) = (*kb, *overhead);
                let ring = |metric: &str, words: &str, note: &str| {
                    let key = format!("sched.context-switch@free?processes={processes:.0}/kb={kb}#{metric}");
                    meaning(&key, &format!("{processes:.0}p/{kb}K {words}"), Unit::Us, note)
                };
                let note = find("2p/0K").map_or("", |figure| figure.note);
                self.give(ring("switch", "ctxsw", note), Some(us), "");
                if let Some(overhead) = overhead {
                    let whole = ring("latency", "ctxsw and overhead", WHOLE_HOP);
                    self.give(whole, Some(us + overhead), "");
                }
                true
            }
            Block::Sizes { key, wording, unit, note } => {
                // `0.000064 2.05 MB/sec` as well.
                let (Some(size), Some(value)) = (number(0), number(1)) else { return false };
                if words.len() > 3 {
                    return false;
                }
                let bytes = rounded(words[0], 1e6);
                let key = key.replace("{}", &bytes.to_string());
                let figure_meaning = meaning(&key, wording, *unit, note);
                let value = unit.ours(value).filter(|_| size >= 0.0);
                self.give(figure_meaning, value, "no value");
                true
            }
            Block::Ladder { key, wording, note } => {
                let (Some(_), Some(ns), 2) = (number(0), number(1), words.len()) else { return false };
                let key = key.replace("{}", &rounded(words[0], f64::from(1 << 20)).to_string());
                let figure_meaning = meaning(&key, wording, Unit::Ns, note);
                self.give(figure_meaning, Some(ns), "");
                true
            }
        }
    }

    fn give(&mut self, meaning: Option<Meaning>, value: Option<f64>, why: &str) {
        match (meaning, value) {
            (Some(meaning), Some(value)) => self.builder.value(meaning, value),
            (Some(meaning), None) => self.builder.missing(meaning, why.to_string()),
            (None, _) => {}
        }
    }

    /// A line above a block of numbers; the same one again may begin another run's.
    fn heading(&mut self, number: usize, line: &str) -> bool {
        if !self.block_of(line) {
            return false;
        }
        if !matches!(self.block, Block::None | Block::Files) {
            let name = line.split(" ovr=").next().unwrap_or(line);
            let name = format!("{} {name}", self.random);
            let before = self.curves.iter().rev().find(|(other, _)| *other == name).map(|(_, line)| *line);
            let block = std::mem::replace(&mut self.block, Block::None);
            self.heading_of_figure(before);
            self.block = block;
            self.curves.push((name, number));
        }
        true
    }

    /// Whether a line is the heading of a block, which then begins.
    fn block_of(&mut self, line: &str) -> bool {
        let quoted = line.strip_prefix('"');
        let title = quoted.unwrap_or(line).trim();
        match title {
            "Memory load latency" | "Random load latency" => {
                self.random = title.starts_with("Random");
                return true;
            }
            "File system latency" => {
                self.block = Block::Files;
                return true;
            }
            _ => {}
        }
        if let Some(stride) = title.strip_prefix("stride=").and_then(|stride| stride.parse::<u64>().ok()) {
            let (key, wording, note) = ladder(self.random, stride, self.processes);
            self.block = Block::Ladder { key, wording, note };
            return true;
        }
        if let Some(size) = title.strip_prefix("size=") {
            let kb = size.split(['k', ' ']).next().and_then(|kb| kb.parse().ok());
            let overhead = size.split_once("ovr=").and_then(|(_, us)| us.trim().parse::<f64>().ok());
            let overhead = overhead.filter(|us| us.is_finite() && *us >= 0.0);
            self.block = kb.map_or(Block::None, |kb| Block::Ring { kb, overhead });
            return kb.is_some();
        }
        if let Some((_, key, unit)) = CURVES.iter().find(|(heading, _, _)| *heading == title) {
            let note = match key.split('.').next() {
                Some("memory") => MEMORY_SUMS,
                Some("file") => MAYBE_WARM,
                _ => "",
            };
            self.block = Block::Sizes { key: key.to_string(), wording: title.to_string(), unit: *unit, note };
            return true;
        }
        let other = title.contains("bandwidth") || title.contains("bcopy");
        if quoted.is_some() || (other && !title.contains(':')) {
            let key = format!("lmbench.{}@one-cpu/bytes={{}}#bandwidth", slug(title));
            let unit = if other { Unit::Mb } else { Unit::Number };
            let note = "not measured by Assay in this form";
            self.block = Block::Sizes { key, wording: title.to_string(), unit, note };
            return true;
        }
        false
    }

    /// A figure on a line of its own: `WORDS: NUMBER UNIT`.
    fn single(&mut self, number: usize, line: &str) -> bool {
        let Some((label, rest)) = line.rsplit_once(": ") else { return false };
        let mut words = rest.split_whitespace();
        let value = words.next().and_then(|word| word.parse::<f64>().ok()).filter(|value| value.is_finite());
        let (Some(value), unit) = (value, words.next().unwrap_or_default()) else { return false };
        // A difference to another result may have been added.
        if words.next().is_some_and(|more| !more.ends_with('%')) || value < 0.0 {
            return false;
        }
        let (unit, scale) = match unit {
            "microseconds" => (Unit::Us, 1.0),
            "nanoseconds" => (Unit::Ns, 1.0),
            "milliseconds" => (Unit::Us, 1e3),
            "MB/sec" => (Unit::Mb, 1.0),
            "KB/sec" => (Unit::Mb, 1e-3),
            "pages" | "" if label == "tlb" || label.ends_with("parallelism") => (Unit::Number, 1.0),
            _ => return false,
        };
        let value = value * scale;
        self.block = Block::None;
        let known = LINES.iter().position(|(words, _)| label == *words || begins(label, words));
        match known {
            Some(place) => {
                let before =
                    self.found.iter().rev().find(|(other, _)| *other == place).map(|(_, line)| *line);
                self.heading_of_figure(before);
                self.found.push((place, number));
            }
            None => {
                let before =
                    self.others.iter().rev().find(|(other, _)| other == label).map(|(_, line)| *line);
                self.heading_of_figure(before);
                self.others.push((label.to_string(), number));
            }
        }
        let figure = known.and_then(|place| find(LINES[place].1)).filter(|figure| figure.unit == unit);
        let figure_meaning = match (figure, select(label)) {
            (Some(figure), _) => figure.meaning(),
            (None, Some((fds, group))) => {
                let note = find("select 100").map_or("", |figure| figure.note);
                meaning(&format!("{group}@one-cpu/fds={fds}#latency"), label, unit, note)
            }
            (None, None) => {
                let place = match self.processes {
                    1 => "one-cpu".to_string(),
                    many => format!("free?processes={many}"),
                };
                let key = format!("lmbench.{}@{place}#value", slug(label));
                meaning(&key, label, unit, "not measured by Assay in this form")
            }
        };
        self.give(figure_meaning, unit.ours(value), "no value");
        true
    }

    /// Ends a result: what its file should have had and has not gets the reason that stands in its
    /// place.
    fn close(&mut self) {
        self.block = Block::None;
        let fresh = Builder::new(super::LAT_MEM_RD, "");
        let mut builder = std::mem::replace(&mut self.builder, fresh);
        let (found, complaints) = (std::mem::take(&mut self.found), std::mem::take(&mut self.complaints));
        let (curves, others) = (std::mem::take(&mut self.curves), std::mem::take(&mut self.others));
        if builder.format == super::LAT_MEM_RD && curves.is_empty() && !others.is_empty() {
            builder.format = super::FIGURES_ALONE;
        }
        builder.fact("kernel", &self.release);
        if builder.format == super::RAW || !found.is_empty() {
            builder.format = super::RAW;
            if found.is_empty() && builder.is_empty() {
                builder.remarks.push("started, no test finished: no line has a figure".to_string());
            }
            let expected = LINES.iter().enumerate().filter(|(_, (_, name))| !name.starts_with("remote"));
            for (place, (_, name)) in expected {
                let there = found.iter().any(|(other, _)| *other == place);
                let Some(meaning) = find(name).and_then(|figure| figure.meaning()).filter(|_| !there) else {
                    continue;
                };
                let before = found.iter().filter(|(other, _)| *other < place).map(|(_, line)| *line).max();
                let after = found.iter().filter(|(other, _)| *other > place).map(|(_, line)| *line).min();
                let between = |line: usize| before.is_none_or(|b| b < line) && after.is_none_or(|a| line < a);
                let said: Vec<&str> = complaints
                    .iter()
                    .filter(|(line, _)| before.is_some() && after.is_some() && between(*line))
                    .map(|(_, text)| text.as_str())
                    .collect();
                match said.as_slice() {
                    [] if is_optional(name) => {}
                    [] => builder.missing(meaning, "the file has no such line".to_string()),
                    said => builder.missing(meaning, reason(said)),
                }
            }
        }
        if builder.is_empty() {
            return;
        }
        if !complaints.is_empty() {
            let figure_meaning: Vec<&str> = complaints.iter().map(|(_, text)| text.as_str()).collect();
            builder.remarks.push({
                let lines = number(figure_meaning.len(), "line is not a figure", "lines are not figures");
                format!("{} {lines}: {}", figure_meaning.len(), reason(&figure_meaning))
            });
        }
        self.done.push(builder);
    }

    fn finish(mut self) -> Vec<Imported> {
        self.close();
        self.done.into_iter().map(Builder::finish).collect()
    }
}

/// The first of what was said, each once.
fn reason(said: &[&str]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for text in said {
        if !once.contains(text) && once.len() < 4 {
            once.push(text);
        }
    }
    let (shown, more) = once.split_at(once.len().min(3));
    format!("{}{}", shown.join("; "), if more.is_empty() { "" } else { "; …" })
}

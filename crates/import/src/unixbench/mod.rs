//! Reports of UnixBench 5 and 6: a head, then a section for each number of copies, with a line for
//! each test, the table of the index, and its score.

pub mod doubts;
mod index;
mod lines;

use std::collections::BTreeMap;

use index::Table;
use lines::{Line, TestLine};

use super::builder::{Builder, Meaning};
use super::{Format, Imported, Tool, keyed};
use model::vocabulary::unixbench::param::COPIES;
use model::{Better, Value};
use stats::unixbench::{Beyond, GROUP, INDEX, TESTS, Test, more_than_copies, of_bench, titled};

pub(crate) const TOOL: Tool = Tool::of("UnixBench", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("UnixBench report");

/// What is said of every report.
const GENERAL: &str = "UnixBench drops the worst third of a test's passes, so no spread is known; it prints the geometric mean of \
                       the rest, and its tests run wherever the scheduler puts them";

/// More hosts, sections, or lines of a kind in one section are a mistake or an attack.
const MAX_PARTS: usize = 200;

/// Whether a text is a report, or a part of one.
fn is_one(text: &str) -> bool {
    let known = |line: &str| {
        let line = line.trim_start();
        line.starts_with("BYTE UNIX Benchmarks")
            || line.starts_with("Benchmark Run: ")
            || line.starts_with("System Benchmarks ")
    };
    text.lines().any(known)
}

/// One head with its sections.
#[derive(Default)]
struct Report {
    /// What stands above its head.
    above: String,
    host: String,
    facts: Vec<(&'static str, String)>,
    sections: Vec<Section>,
    unknown: Vec<String>,
    /// Results behind it that are too many.
    left_out: usize,
}

/// What was run at one number of copies.
#[derive(Clone, Debug, Default, PartialEq)]
struct Section {
    /// What stands above it and belongs to no report: `With patch`.
    heading: String,
    when: String,
    cpus: String,
    copies: Option<u32>,
    tests: Vec<TestLine>,
    failed: Vec<(String, String)>,
    tables: Vec<Table>,
    too_many: bool,
}

/// The results in a text: each report is one, and in a part of one each section that says again
/// what another one said. What stands there twice in all its figures counts once.
fn read(text: &str) -> Vec<Imported> {
    let mut reports: Vec<Report> = Vec::new();
    let mut left_out = 0;
    for mut report in split(text).into_iter().flat_map(Report::apart) {
        left_out += std::mem::take(&mut report.left_out);
        let repeats = |other: &Report| {
            let is_there = |own: &Section| other.sections.iter().any(|section| section.is_same(own));
            other.host == report.host && !report.sections.is_empty() && report.sections.iter().all(is_there)
        };
        match reports.iter().position(repeats) {
            Some(known) if reports[known].sections.len() > MAX_PARTS => {}
            Some(known) => reports[known].sections.extend(report.sections),
            None if reports.len() < MAX_PARTS => reports.push(report),
            None => left_out += 1,
        }
    }
    if let Some(last) = reports.last_mut() {
        last.left_out = left_out;
    }
    reports.into_iter().map(imported).filter(|one| !one.figures.is_empty() || !one.index.is_empty()).collect()
}

impl Report {
    /// Sections of as many copies that both have a test are of different runs.
    fn apart(self) -> Vec<Report> {
        let Report { host, facts, sections, unknown, .. } = self;
        let empty = || Report { host: host.clone(), facts: facts.clone(), ..Report::default() };
        let mut all = vec![Report { unknown, ..empty() }];
        let mut left_out = 0;
        // The place of what each section says.
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for section in sections {
            let says = format!("{:?}", Section { heading: String::new(), ..section.clone() });
            let again = |own: &Report| own.sections.iter().any(|other| other.is_again(&section));
            let last = all.len() - 1;
            let fits = known.get(&says).copied().or(Some(last).filter(|last| !again(&all[*last])));
            match fits {
                // Those that are too many are left out.
                Some(fits) if all[fits].sections.len() > MAX_PARTS => {}
                Some(fits) => {
                    all[fits].sections.push(section);
                    known.insert(says, fits);
                }
                None if all.len() > MAX_PARTS => left_out += 1,
                None => {
                    known.insert(says, all.len());
                    all.push(Report { sections: vec![section], ..empty() });
                }
            }
        }
        all[0].left_out = left_out;
        all
    }
}

fn split(text: &str) -> Vec<Report> {
    let mut reports = vec![Report::default()];
    // What the last line said, if it belongs to no report.
    let mut above = String::new();
    for line in text.lines().filter(|line| !line.chars().all(|c| "=-* \t\r".contains(c))) {
        let Some(report) = reports.last_mut() else { break };
        let found = lines::read(line);
        let in_head = report.sections.is_empty() && !(report.facts.is_empty() && report.host.is_empty());
        if lines::is_page_head(line) {
            continue;
        }
        if found.is_none() {
            if !in_head {
                above = line.trim().trim_start_matches('#').trim().chars().take(100).collect();
            }
            if !report.sections.is_empty() {
                report.unknown.push(line.trim().chars().take(100).collect());
            }
            continue;
        }
        let heading = std::mem::take(&mut above);
        let begun = |report: &mut Report, section: Section| {
            let heading = report.heading(&heading);
            report.sections.push(Section { heading, ..section });
        };
        match found {
            Some(Line::Banner { version }) => {
                let fact = ("unixbench", version);
                if in_head || !report.sections.is_empty() {
                    report.heading(&heading);
                    reports.push(Report { facts: vec![fact], above: heading, ..Report::default() });
                } else {
                    report.facts.push(fact);
                    report.above = heading;
                }
            }
            Some(Line::System { host }) => report.host = host,
            Some(Line::Fact(label, value)) => report.facts.push((label, value)),
            Some(Line::Run { when }) => begun(report, Section { when, ..Section::default() }),
            Some(Line::RunOf { cpus, copies }) => {
                begun(report, Section { cpus, copies: Some(copies), ..Section::default() });
            }
            Some(line) => {
                // A part that was pasted alone has no line of its own that begins it.
                if report.sections.last().is_none_or(|last| last.is_over(&line, &heading)) {
                    begun(report, Section::default());
                }
                if let Some(section) = report.sections.last_mut() {
                    section.take(line);
                }
            }
            None => {}
        }
    }
    reports
}

impl Report {
    /// What stands above a section that begins now, which is no line of unknown meaning then.
    fn heading(&mut self, above: &str) -> String {
        if above.is_empty() {
            return self.above.clone();
        }
        if self.unknown.last().is_some_and(|last| last.trim_start_matches('#').trim() == above) {
            self.unknown.pop();
        }
        above.to_string()
    }
}

impl Section {
    /// Whether it is the same section once more.
    fn is_same(&self, other: &Section) -> bool {
        let said = |section: &Section| (section.copies, section.too_many);
        (&self.when, &self.cpus, said(self)) == (&other.when, &other.cpus, said(other))
            && (&self.tests, &self.failed, &self.tables) == (&other.tests, &other.failed, &other.tables)
    }

    /// Whether a line behind it is another section's: it says again what this one says.
    fn is_over(&self, line: &Line, heading: &str) -> bool {
        let table = |title: &str| self.tables.iter().find(|table| table.title == title);
        match line {
            Line::Copies { .. } => self.copies.is_some(),
            Line::Index { title, .. } => table(title).is_some(),
            Line::Score { title, .. } => table(title).is_some_and(|table| table.score.is_some()),
            Line::Test(test) => !heading.is_empty() && self.tests.iter().any(|own| own.title == test.title),
            _ => false,
        }
    }

    /// The tests of which it has a score.
    fn titles(&self) -> impl Iterator<Item = &str> {
        let rows = self.tables.iter().flat_map(|table| &table.rows).map(|row| row.title.as_str());
        self.tests.iter().map(|test| test.title.as_str()).chain(rows)
    }

    /// Whether it is of another run: it has a test or a score of the other at as many copies, or
    /// ran on a host with more or fewer CPUs.
    fn is_again(&self, other: &Section) -> bool {
        if !self.cpus.is_empty() && !other.cpus.is_empty() && self.cpus != other.cpus {
            return true;
        }
        let scored = |title: &str| other.tables.iter().any(|own| own.title == title && own.score.is_some());
        let has = self.titles().any(|title| other.titles().any(|own| own == title))
            || self.tables.iter().any(|own| own.score.is_some() && scored(&own.title));
        self.copies == other.copies && has
    }

    fn take(&mut self, line: Line) {
        let rows: usize = self.tables.iter().map(|table| table.rows.len() + 1).sum();
        if self.tests.len().max(self.failed.len()).max(rows) >= MAX_PARTS {
            self.too_many = true;
            return;
        }
        match line {
            Line::Copies { cpus, copies } => (self.cpus, self.copies) = (cpus, Some(copies)),
            Line::Test(test) => self.tests.push(test),
            Line::Failed { title, why } => self.failed.push((title, why)),
            Line::Index { title, partial } => self.tables.push(Table { title, partial, ..Table::default() }),
            Line::Row(row) => self.table("").rows.push(row),
            Line::PageRow(test, row) => {
                self.tests.push(test);
                if let Some(row) = row {
                    self.table("").rows.push(row);
                }
            }
            Line::Score { title, score } => self.table(&title).score = score,
            Line::Banner { .. }
            | Line::System { .. }
            | Line::Fact(..)
            | Line::Run { .. }
            | Line::RunOf { .. } => {}
        }
    }

    /// The last table; a new one where its heading is missing, or it is another one's.
    fn table(&mut self, title: &str) -> &mut Table {
        let fits = |table: &Table| title.is_empty() || table.title == title;
        if !self.tables.last().is_some_and(fits) {
            let title = if title.is_empty() { INDEX } else { title };
            self.tables.push(Table { title: title.to_string(), ..Table::default() });
        }
        let last = self.tables.len() - 1;
        &mut self.tables[last]
    }

    /// How remarks call it.
    fn words(&self) -> String {
        let copies = match self.copies {
            Some(1) => "1 copy".to_string(),
            Some(copies) => format!("{copies} copies"),
            None => "an unknown number of copies".to_string(),
        };
        if self.when.is_empty() { copies } else { format!("{copies}, {}", self.when) }
    }
}

fn imported(report: Report) -> Imported {
    let Report { host, facts, mut sections, mut unknown, left_out, .. } = report;
    let mut builder = Builder::new(FORMAT, &host);
    facts.iter().for_each(|(label, value)| builder.fact(label, value));
    builder.remarks.push(GENERAL.to_string());
    if sections.len() > MAX_PARTS || sections.iter().any(|section| section.too_many) {
        builder
            .remarks
            .push(format!("more than {MAX_PARTS} sections, or lines in one of them: the rest was left out"));
    }
    if left_out > 0 {
        builder.remarks.push(format!("more than {MAX_PARTS} results: the rest was left out"));
    }
    sections.truncate(MAX_PARTS);
    let mut indices = Vec::new();
    let mut seen: Vec<&Section> = Vec::new();
    for section in &sections {
        if seen.iter().any(|other| other.is_same(section)) {
            builder
                .remarks
                .push(format!("{}: the file has the section twice and counts it once", section.words()));
            continue;
        }
        seen.push(section);
        builder.fact("cpus", &section.cpus);
        builder.fact("heading", &section.heading);
        if section.copies.is_none() {
            builder.remarks.push(
                "the number of copies of a section is unknown: the keys of its figures do not have it"
                    .to_string(),
            );
        }
        section.figures(&mut builder);
        for table in &section.tables {
            let score_of = |title: &str| {
                section.tests.iter().find(|test| test.title == title).and_then(|test| test.value)
            };
            let found = table.index(section.copies, score_of);
            if !found.remark.is_empty() {
                builder.remarks.push(format!("{}: {}: {}", section.words(), found.title, found.remark));
            }
            if let Some(meaning) = meaning(&format!("{} Index Score", table.title), "", section.copies, "") {
                match (found.score, found.partial) {
                    (Some(score), false) if found.agrees() => builder.value(meaning, score),
                    _ => builder.missing(meaning, found.remark.clone()),
                }
            }
            indices.push(found);
        }
    }
    if sections.is_empty() {
        builder.remarks.push("the file ends before the first \"Benchmark Run\"".to_string());
    }
    if !unknown.is_empty() {
        let more = unknown.len().saturating_sub(10);
        unknown.truncate(10);
        let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
        let quoted: Vec<String> = unknown.iter().map(|line| format!("{line:?}")).collect();
        builder.remarks.push(format!("lines that are not part of a report: {}{rest}", quoted.join(", ")));
    }
    builder.remarks.truncate(MAX_PARTS);
    let imported = Imported { index: indices, ..builder.finish() };
    let more = more_than_copies(&beyond(&imported)).into_iter();
    Imported { findings: more.chain(doubts::findings(&sections)).collect(), ..imported }
}

/// Scores of many copies that one copy contradicts.
fn beyond(imported: &Imported) -> Vec<Beyond> {
    let cpus = imported.make_up.iter().find(|(label, _)| label == "cpus");
    let cpus = cpus.and_then(|(_, cpus)| cpus.parse().ok()).filter(|cpus| *cpus > 0);
    let figures = imported.figures.iter().filter_map(|figure| {
        let series = &figure.judged.series;
        let copies = series.case.params.get(COPIES).and_then(Value::int)?;
        let score = figure.judged.analysis.estimate.as_ref()?.median;
        Some((of_bench(&series.case.bench)?, copies, score, series.key.as_str()))
    });
    let figures: Vec<(&'static Test, i64, f64, &str)> = figures.collect();
    let beyond = |(test, copies, score, key): &(&'static Test, i64, f64, &str)| {
        let (_, _, one, _) = figures.iter().find(|(other, copies, _, _)| other == test && *copies == 1)?;
        Beyond::of(test, [*one, *score], *copies, cpus, key)
    };
    figures.iter().filter_map(beyond).collect()
}

impl Section {
    fn figures(&self, builder: &mut Builder) {
        for test in &self.tests {
            let note = format!("{} passes of {} s remain", test.samples, test.seconds);
            let Some(meaning) = meaning(&test.title, &test.unit, self.copies, &note) else { continue };
            match test.value {
                Some(value) if value > 0.0 => builder.value(meaning, value),
                _ => builder.missing(meaning, "UnixBench prints no valid score".to_string()),
            }
        }
        let has_line = |title: &str| self.tests.iter().any(|test| test.title == title);
        // Where only the table was kept.
        for row in self.tables.iter().flat_map(|table| &table.rows).filter(|row| !has_line(&row.title)) {
            let unit = titled(&row.title).map_or("", |test| test.unit);
            if let Some(meaning) = meaning(&row.title, unit, self.copies, "from the table of the index") {
                if row.result > 0.0 {
                    builder.value(meaning, row.result)
                } else {
                    builder.missing(meaning, "a score of 0".to_string())
                }
            }
        }
        for (title, why) in self.failed.iter().filter(|(title, _)| !has_line(title)) {
            let unit = titled(title).map_or("", |test| test.unit);
            if let Some(meaning) = meaning(title, unit, self.copies, "") {
                builder.missing(meaning, format!("UnixBench says {why:?} instead of a score"));
            }
        }
        let has_row =
            |title: &str| self.tables.iter().any(|table| table.rows.iter().any(|row| row.title == title));
        let score_of = |title: &str| has_line(title) || has_row(title);
        let absent: Vec<&str> =
            TESTS.iter().map(|test| test.title).filter(|title| !score_of(title)).collect();
        if !absent.is_empty() {
            let all = absent.len() == TESTS.len();
            let which = if all { "any of the twelve".to_string() } else { absent.join(", ") };
            builder
                .remarks
                .push(format!("{}: a partial set without {which}, so no full index", self.words()));
        }
    }
}

/// A score of UnixBench in our words: tests of the index under the names of our benchmarks, others
/// by their own.
fn meaning(title: &str, unit: &str, copies: Option<u32>, note: &str) -> Option<Meaning> {
    let name = match titled(title) {
        Some(test) => test.name.to_string(),
        None if title == format!("{INDEX} Index Score") => "index".to_string(),
        None => slug(title),
    };
    let copies = copies.map_or(String::new(), |copies| format!("?copies={copies}"));
    Some(Meaning {
        keyed: keyed(&format!("{GROUP}.{name}@free{copies}#score"))?,
        wording: title.chars().take(100).collect(),
        unit: unit.chars().take(20).collect::<String>().into(),
        better: Better::Higher,
        note: note.to_string(),
    })
}

/// Letters and digits of a title, with a dash between its words.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").to_ascii_lowercase().chars().take(60).collect();
    if slug.is_empty() { "unnamed".to_string() } else { slug }
}

#[cfg(test)]
mod tests;

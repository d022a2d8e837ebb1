//! The first screen of imported results. Words: `READ WHOLE` (every figure that the files announce
//! has a value), `READ IN PART`, `READ, BUT FAULTY` (the figures contradict each other, or what was
//! measured failed), `NOTHING COMPLETE` (no figure has a value).

use std::collections::{BTreeMap, BTreeSet};

use super::findings_of;
use crate::block::{Block, Cell, Column, Table};
use crate::plain;
use crate::screen::{FindingLine, HostPart, Row, Screen, Tone};
use crate::sections::screen::{bare_row, read};
use crate::text::numbers::bare;
use diagnose::key_figures::{Group, KEY_FIGURES, KeyFigure};
use diagnose::reference::{HostClass, References};
use diagnose::words::{bytes as bytes_words, capital, counted, listed};
use import::repeats::{Repeats, repeats};
use import::{Figure, Imported, names, topic, whole};
use machine::Machine;
use model::vocabulary::memory::param::BYTES;
use model::vocabulary::unixbench::param::COPIES;
use model::{Finding, Severity, Snapshot, percent};

/// Lines of figures at most, and columns of a figure's name.
const ROWS: usize = 16;
const NAME: usize = 24;

/// Behind the reading of a figure that Assay measures in another way.
pub const DIFFERS: &str = "differs";

/// Lines of findings.
const FINDINGS: usize = 5;

/// What the figures of all results come to.
struct Counts {
    with: usize,
    without: usize,
}

fn counts<'a>(results: impl Iterator<Item = &'a Imported>) -> Counts {
    let figures: Vec<&Figure> = results.flat_map(|one| &one.figures).collect();
    let with = figures.iter().filter(|figure| has_value(figure)).count();
    Counts { with, without: figures.len() - with }
}

fn has_value(figure: &Figure) -> bool {
    figure.judged.analysis.estimate.is_some()
}

/// The results of all files on one screen: of one its figures, of several a line each.
pub fn screen(results: &[(String, Imported)], references: &References) -> Screen {
    let all = || results.iter().map(|(_, one)| one);
    let groups = repeats(&all().collect::<Vec<_>>());
    let counts = counts(all());
    let found = gathered(results, &groups);
    let problems: BTreeSet<&str> = found
        .iter()
        .filter(|finding| finding.severity == Severity::Problem)
        .filter_map(|finding| topic_of(finding))
        .collect();
    let (word, tone) = match (counts.with, counts.without, problems.is_empty()) {
        (0, ..) => ("NOTHING COMPLETE", Tone::Care),
        (_, _, false) => ("READ, BUT FAULTY", Tone::Bad),
        _ if all().flat_map(|one| &one.figures).all(|figure| !figure.judged.analysis.verdict.usable()) => {
            ("READ, NOT BELIEVED", Tone::Care)
        }
        (_, 0, true) if all().all(|one| one.refused == 0) => ("READ WHOLE", Tone::Good),
        _ => ("READ IN PART", Tone::Care),
    };
    let mut sentences = vec![what(results, &counts)];
    if !problems.is_empty() {
        let problems: Vec<&str> = problems.into_iter().collect();
        sentences.push(format!("Do not compare it before this is explained: {}.", listed(&problems)));
    }
    sentences.extend(groups.iter().find_map(|group| first_sentence(&group.conclusion)));
    if sentences.len() < 3 {
        sentences.push("Assay did not watch while it was measured, so every figure is unverified.".into());
    }
    let mut screen = Screen {
        word: word.into(),
        tone,
        sentences,
        findings: findings(results, &found),
        figures: counts.with + counts.without,
        ..Screen::default()
    };
    match results {
        [(_, one)] => {
            screen.host = about(one);
            screen.rows = rows(one, references);
            let more = counts.with - screen.rows.len();
            if more > 0 {
                screen.remarks.push((String::new(), format!("{} more: --all", counted(more, "figure"))));
            }
        }
        _ => {
            let files: BTreeSet<&str> = results.iter().map(|(file, _)| file.as_str()).collect();
            screen.host = vec![
                HostPart::needed(counted(results.len(), "result")),
                HostPart::needed(format!("of {}", counted(files.len(), "file"))),
            ];
            let table = groups.iter().find(|group| !group.rows.is_empty()).map(repeated);
            screen.blocks.push(Block::Table(table.unwrap_or_else(|| beside(results))));
        }
    }
    screen
}

/// Which tool's figures of which host have a value, and how many do not.
fn what(results: &[(String, Imported)], counts: &Counts) -> String {
    let of = match results {
        [(_, one)] => {
            let host = if one.host == "unknown" { String::new() } else { format!(" of {}", one.host) };
            format!("{}{host}", one.format.word())
        }
        _ => {
            let formats: BTreeSet<&str> = results.iter().map(|(_, one)| one.format.word()).collect();
            listed(&formats.into_iter().collect::<Vec<_>>())
        }
    };
    let left_out = match counts.without {
        0 => String::new(),
        1 => ", 1 has none".to_string(),
        count => format!(", {count} have none"),
    };
    let has = if counts.with == 1 { "has" } else { "have" };
    format!("{of}: {} {has} a value{left_out}.", counted(counts.with, "figure"))
}

/// Host, tool and what the file says of the machine; what a format cut off stands without its mark.
fn about(one: &Imported) -> Vec<HostPart> {
    let mut parts = vec![HostPart::needed(match one.host.as_str() {
        "unknown" => "unnamed host".to_string(),
        host => whole(host),
    })];
    parts.push(HostPart::needed(one.format.word()));
    let fact = |(label, value): &(String, String)| {
        let value = whole(value);
        HostPart::spare(match label.as_str() {
            "cpu_model" | "system" | "architecture" | "machine" => value,
            "cpus" if value == "1" => "1 CPU".to_string(),
            "cpus" => format!("{value} CPUs"),
            "kernel" => format!("Linux {value}"),
            "mhz" => format!("{value} MHz"),
            label => format!("{} {value}", label.replace('_', " ")),
        })
    };
    let said = |(label, _): &&(String, String)| label != "language";
    parts.extend(one.make_up.iter().filter(said).map(fact));
    parts
}

/// Key figures first, then what means the same here, then the rest; each by its group, in the
/// file's order.
fn rows(one: &Imported, references: &References) -> Vec<Row> {
    let class = class_of(one, references);
    let figures = || one.figures.iter().filter(|figure| has_value(figure));
    let found = KEY_FIGURES.iter().filter_map(|key| {
        let series = key.find(figures(), |figure| &figure.judged.series.key)?;
        Some((series.judged.series.key.as_str(), key))
    });
    let found: Vec<(&str, &KeyFigure)> = found.collect();
    let key_of = |figure: &Figure| {
        found.iter().find(|(series, _)| *series == figure.judged.series.key).map(|(_, key)| *key)
    };
    let mut chosen: Vec<(Option<&KeyFigure>, &Figure)> =
        figures().map(|figure| (key_of(figure), figure)).collect();
    let used: BTreeSet<&str> =
        chosen.iter().filter(|(key, _)| key.is_some()).map(|(_, figure)| figure.wording.as_str()).collect();
    // Of several that have one name the first stands for all, of its curve the last point: what is
    // shown of one benchmark is of one case.
    let mut stands: BTreeMap<&str, &Figure> = BTreeMap::new();
    for figure in figures() {
        let place = stands.entry(figure.wording.as_str()).or_insert(figure);
        if size_of(figure).is_some() && of_one_curve(place, figure) {
            *place = figure;
        }
    }
    let several = |figure: &Figure| {
        let same = |other: &&Figure| other.wording == figure.wording && of_one_curve(other, figure);
        figures().filter(same).filter(|other| size_of(other).is_some()).count() > 1
    };
    let name = |figure: &Figure| {
        let apart = figures()
            .filter(|other| other.wording == figure.wording && !of_one_curve(other, figure))
            .map(|other| what_differs(figure, other))
            .max_by_key(String::len);
        let size = size_of(figure).filter(|_| several(figure)).map(bytes_words);
        let parts = [Some(figure.wording.clone()), apart.filter(|apart| !apart.is_empty()), size];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    chosen.retain(|(key, figure)| {
        if key.is_none() && is_one_of_many(figure) {
            return false;
        }
        let wording = figure.wording.as_str();
        let key_of = |figure: &&Figure| figure.judged.series.key.clone();
        let stands_for_all = stands.get(wording).map(key_of) == Some(key_of(figure));
        key.is_some() || stands_for_all && !used.contains(wording)
    });
    chosen.sort_by_key(|(key, figure)| (key.is_none(), weight(figure), !figure.note.is_empty()));
    // A name that is longer than its column takes lines of its own.
    let mut lines = 0;
    let mut fits = |(key, figure): &(Option<&KeyFigure>, &Figure)| {
        let name = key.map_or_else(|| name(figure), |key| key.alone.to_string());
        lines += plain::lines(&name, NAME).len().max(1);
        lines <= ROWS
    };
    let chosen: Vec<(Option<&KeyFigure>, &Figure)> = chosen.into_iter().take_while(|one| fits(one)).collect();
    let mut rows: Vec<Row> = chosen
        .into_iter()
        .map(|(key, figure)| {
            let unit = key.map_or(figure.judged.series.metric.unit.as_ref(), |key| key.unit);
            let label = key.map_or_else(|| name(figure), |key| key.label.to_string());
            let mut row = bare_row(&figure.judged, label, unit);
            read(&mut row, &figure.judged, references, &class);
            if let Some(key) = key {
                (row.name, row.group, row.alone) = (Some(key.name), key.group.word(), key.alone.to_string());
            }
            if figure.judged.series.case.bench.starts_with("speccpu.") {
                // What a whole program does belongs to no part of a host.
                row.group = "";
            }
            if !figure.note.is_empty() && row.reading.extra.is_empty() {
                row.reading.extra = DIFFERS.to_string();
            }
            row
        })
        .collect();
    rows.sort_by_key(|row| Group::ALL.iter().position(|group| group.word() == row.group));
    rows
}

/// Whether two figures are of one case, and at other sizes at most.
fn of_one_curve(one: &Figure, other: &Figure) -> bool {
    let bare = |figure: &Figure| {
        let series = &figure.judged.series;
        let mut point = series.point.clone();
        point.remove(BYTES);
        series.case.series_key(&point, "")
    };
    bare(one) == bare(other)
}

/// What tells a figure from another of the same name: parameters that only it has, or of another
/// value. Of copies the first number is meant.
fn what_differs(figure: &Figure, other: &Figure) -> String {
    let [own, theirs] = [figure, other].map(|one| &one.judged.series);
    let is_other = |name: &str, value: &model::Value| theirs.case.params.named(name) != Some(value);
    own.case
        .params
        .iter()
        .filter(|(name, value)| *name != COPIES.as_str() && is_other(name, value))
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect::<Vec<_>>()
        .join(", ")
}

/// How much a figure matters: a score or a median, then its tail, then what stands behind it.
fn weight(figure: &Figure) -> usize {
    let metric = &figure.judged.series.metric;
    match metric.name.as_ref() {
        "latency_p99" => 1,
        "iterations" => 2,
        "time" if figure.judged.series.case.bench.starts_with("speccpu.") => 2,
        _ if !metric.headline => 2,
        _ => 0,
    }
}

/// Whether it is a percentile that says little beside the median and the tail.
fn is_one_of_many(figure: &Figure) -> bool {
    let percentile = figure.judged.series.metric.name.rsplit_once("_p").map(|(_, percent)| percent);
    percentile
        .is_some_and(|percent| percent.parse::<u32>().is_ok() && !["50", "99", "999"].contains(&percent))
}

/// The size that a point of a curve is of.
fn size_of(figure: &Figure) -> Option<f64> {
    figure.judged.series.point.get(BYTES)?.number()
}

/// The class by what the file says of the processor: of the generation if it names it.
fn class_of(one: &Imported, references: &References) -> HostClass {
    let mut machine = Machine::from(&Snapshot::default());
    let said = |labels: &[&str]| {
        let found = one.make_up.iter().find(|(label, _)| labels.contains(&label.as_str()));
        found.map(|(_, value)| value.clone())
    };
    machine.cpus.model = said(&["cpu_model"]);
    let name = machine.cpus.model.as_deref().unwrap_or_default();
    machine.cpus.vendor = match () {
        () if name.contains("Intel") => Some("GenuineIntel".to_string()),
        () if name.contains("AMD") => Some("AuthenticAMD".to_string()),
        () => None,
    };
    let system = said(&["architecture", "machine", "system"]).unwrap_or_default();
    let known = ["x86_64", "aarch64"].into_iter().find(|known| system.contains(known));
    machine.cpus.architecture = known.map(str::to_string);
    references.class_of(&machine)
}

/// A line each result.
fn beside(results: &[(String, Imported)]) -> Table {
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
    let all: Vec<&Imported> = results.iter().map(|(_, one)| one).collect();
    let row = |(one, name): (&Imported, String)| {
        let counts = counts(std::iter::once(one));
        let first = one.figures.iter().find(|figure| has_value(figure));
        let value = first.and_then(|figure| Some((figure, figure.judged.analysis.estimate.as_ref()?)));
        let value = value.map_or(Cell::Empty, |(figure, found)| {
            let unit = figure.judged.series.metric.unit.replace("us", "µs");
            Cell::Text(format!("{} {} {unit}", figure.wording, bare(found.median)).trim_end().to_string())
        });
        vec![
            Cell::Text(name),
            Cell::Text(one.format.word().to_string()),
            Cell::Number(counts.with.to_string()),
            Cell::Number(counts.without.to_string()),
            value,
        ]
    };
    let columns = vec![
        column("result", false),
        column("of", false),
        column("figures", true),
        column("left out", true),
        column("first figure", false),
    ];
    let named = all.iter().copied().zip(names(&all));
    crate::sections::shortened(Table { columns, rows: named.map(row).collect(), folded: false })
}

/// Runs of one machine beside each other.
fn repeated(group: &Repeats) -> Table {
    let column = |title: &str, right: bool| Column { title: title.to_string(), right };
    let row = |row: &import::repeats::Row| {
        vec![
            Cell::Text(row.title.clone()),
            Cell::Number(row.values.len().to_string()),
            Cell::Number(bare(row.median)),
            Cell::Number(percent(row.apart)),
        ]
    };
    let columns = vec![
        column(&format!("runs of {}", whole(&group.host)), false),
        column("runs", true),
        column("median", true),
        column("apart", true),
    ];
    crate::sections::shortened(Table { columns, rows: group.rows.iter().map(row).collect(), folded: false })
}

fn gathered(results: &[(String, Imported)], groups: &[Repeats]) -> Vec<Finding> {
    let own = results.iter().flat_map(|(file, one)| findings_of(file, one));
    own.chain(groups.iter().filter_map(|group| group.finding.clone())).collect()
}

fn topic_of(finding: &Finding) -> Option<&'static str> {
    topic(&finding.rule).or_else(|| diagnose::topic(&finding.rule))
}

/// What was found, what was left out and why, and what is to be known of the tool and the file.
fn findings(results: &[(String, Imported)], found: &[Finding]) -> Vec<FindingLine> {
    let note = |topic: &'static str, text: String, more: usize| FindingLine {
        severity: Severity::Note,
        topic,
        text,
        rule: String::new(),
        advice: String::new(),
        more,
    };
    let mut all: Vec<FindingLine> = Vec::new();
    for finding in found {
        match all.iter_mut().find(|line| line.rule == finding.rule) {
            Some(line) => line.more += 1,
            None => all.push(FindingLine {
                severity: finding.severity,
                topic: topic_of(finding).unwrap_or("file"),
                text: format!("{}.", finding.headline.trim_end_matches('.')),
                rule: finding.rule.clone(),
                // Some headlines end with what to do.
                advice: match finding.headline.contains(finding.advice.trim_end_matches('.')) {
                    true => String::new(),
                    false => finding.advice.clone(),
                },
                more: 0,
            }),
        }
    }
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    let figures = || results.iter().flat_map(|(_, one)| &one.figures);
    all.extend(left_out(figures()).into_iter().map(|text| note("left out", text, 0)));
    // What a format always says comes first in a file, and once where several have it.
    let mut said: BTreeSet<String> = BTreeSet::new();
    for (at, remark) in results.iter().flat_map(|(_, one)| one.remarks.iter().enumerate()) {
        let text = head(remark, &["; "]).trim_end_matches('.');
        // A tool keeps the name that it has.
        let text = format!("{}.", if at == 0 { text.to_string() } else { capital(text) });
        if said.insert(text.clone()) {
            all.push(note(if at == 0 { "tool" } else { "file" }, uncut(&text), 0));
        }
    }
    all.truncate(FINDINGS);
    all
}

fn uncut(text: &str) -> String {
    text.replace('…', "...")
}

/// Figures without a value by the reason: those whose reasons differ in their numbers alone are
/// counted together. The commonest first.
fn left_out<'a>(figures: impl Iterator<Item = &'a Figure>) -> Vec<String> {
    let mut reasons: Vec<(String, String, usize)> = Vec::new();
    for figure in figures.filter(|figure| !has_value(figure)) {
        let whole = figure.judged.analysis.verdict.reason.as_str();
        let reason = head(whole, &[": ", " (", "; "]);
        // `bind: Address in use`: one word is what failed, and not why.
        let reason = if reason.contains(' ') { reason } else { head(whole, &[" (", "; "]) };
        let masked: String = reason.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        match reasons.iter_mut().find(|(known, ..)| *known == masked) {
            Some((.., count)) => *count += 1,
            None => reasons.push((masked, reason.to_string(), 1)),
        }
    }
    reasons.sort_by_key(|(.., count)| std::cmp::Reverse(*count));
    let line = |(_, reason, count): (String, String, usize)| {
        format!("{}: {}.", counted(count, "figure"), uncut(reason.trim_end_matches('.')))
    };
    reasons.into_iter().map(line).collect()
}

/// A text up to the first of some marks.
fn head<'a>(text: &'a str, marks: &[&str]) -> &'a str {
    let end = marks.iter().filter_map(|mark| text.find(mark)).min();
    &text[..end.unwrap_or(text.len())]
}

fn first_sentence(text: &str) -> Option<String> {
    let first = head(text, &[". "]).trim_end_matches('.');
    (!first.is_empty()).then(|| format!("{first}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Screen {
        let results = import::read(text.as_bytes()).expect("a result");
        let named: Vec<(String, Imported)> =
            results.into_iter().map(|one| ("FILE".to_string(), one)).collect();
        screen(&named, &References::published())
    }

    const RAW: &str = "[lmbench3.0 results for Linux host 3.10.0 #1 SMP x86_64 GNU/Linux]\n\nSimple syscall: 0.2000 microseconds\n";

    #[test]
    fn a_key_figure_has_its_name_and_unit() {
        let shown = of(RAW);
        assert_eq!(shown.rows.len(), 1);
        let row = &shown.rows[0];
        assert_eq!((row.name, row.value, row.unit.as_str()), (Some("syscall"), Some(0.2), "µs"));
    }

    #[test]
    fn a_curve_has_one_row_and_names_its_size() {
        let shown = of(&format!("{RAW}\n\"mappings\n0.524288 6736\n1.048576 8230\n\n"));
        let names: Vec<&str> = shown.rows.iter().map(|row| row.label.as_str()).collect();
        assert!(names.contains(&"mappings, 1 MiB") && names.len() == 2, "{names:?}");
        assert!(
            shown.remarks.iter().any(|(_, text)| text.starts_with("1 figure more")),
            "{:?}",
            shown.remarks
        );
    }

    #[test]
    fn a_file_without_a_value_is_not_called_read() {
        let shown = of(
            "[lmbench3.0 results for Linux host 3.10.0 #1 SMP x86_64 GNU/Linux]\n\nlat_rpc: built with NO_RPC (musl); skipping\n",
        );
        assert_eq!(shown.word, "NOTHING COMPLETE");
        assert!(shown.rows.is_empty() && shown.findings.iter().any(|line| line.topic == "left out"));
    }

    #[test]
    fn reasons_are_counted_by_their_kind() {
        assert_eq!(head("the cell is empty: lmbench had no value", &[": ", " ("]), "the cell is empty");
        assert_eq!(head("nothing", &[": "]), "nothing");
        assert_eq!(first_sentence("One. Two."), Some("One.".to_string()));
        assert_eq!(first_sentence(""), None);
    }
}

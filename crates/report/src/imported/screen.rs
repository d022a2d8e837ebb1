//! The first screen of imported results. Words: `READ` (every figure that the files announce has a
//! value, and each line that looks like one is read), `READ IN PART`, `FAULTY RESULT` (the figures
//! contradict each other, or what was measured failed), `NOT JUDGED` (all figures are rejected),
//! `NO RESULT` (no figure has a value).

use std::collections::BTreeSet;

use super::findings_of;
use super::notes::{findings, first_sentence, topic_of};
use super::rows::{rows, values};
use super::several::{are_repetitions, beside, repeated, repetitions};
use super::{Counts, UNNAMED, counts, has_value};
use crate::block::Block;
use crate::screen::{HostPart, Row, Screen, Tone};
use diagnose::reference::References;
use diagnose::words::{counted, listed};
use import::faults::INTERRUPTED;
use import::repeats::{Repeats, repeats};
use import::{Figure, Imported, whole};
use model::{Finding, Severity};

pub use super::rows::DIFFERS;

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
    let (word, tone) = verdict(results, &counts, &found, problems.is_empty());
    let mut sentences = vec![what(results, &counts)];
    if !problems.is_empty() {
        let problems: Vec<&str> = problems.into_iter().collect();
        sentences.push(format!("Do not use it before the cause is found: {}.", listed(&problems)));
    }
    sentences.extend(groups.iter().find_map(|group| first_sentence(&group.conclusion)));
    let every: Vec<&Imported> = all().collect();
    let paths: Vec<&str> = results.iter().map(|(path, _)| path.as_str()).collect();
    let are_repeated = are_repetitions(&paths, &every);
    let shown = match results {
        [(_, one)] => rows(one, references),
        _ => Vec::new(),
    };
    sentences.extend(match results {
        [(_, one)] => of_several_values(one, &shown),
        _ if are_repeated => Some("The results look like repetitions of one test.".to_string()),
        _ => None,
    });
    sentences.truncate(3);
    if sentences.len() < 3 && counts.with > 0 {
        sentences.push("Assay did not watch the measurement, so every figure is unverified.".into());
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
            screen.rows = shown;
            let more = counts.with - screen.rows.len();
            if more > 0 {
                screen.remarks.push((String::new(), format!("{} more: --all", counted(more, "figure"))));
            }
        }
        _ => {
            let files: BTreeSet<&str> = results.iter().map(|(file, _)| file.as_str()).collect();
            screen.host = vec![
                HostPart::needed(counted(results.len(), "result")),
                HostPart::needed(format!("in {}", counted(files.len(), "file"))),
            ];
            let table = groups.iter().find(|group| !group.rows.is_empty()).map(repeated);
            screen.blocks.push(Block::Table(match table {
                Some(table) => table,
                None if are_repeated => repetitions(&every),
                None => beside(&every),
            }));
        }
    }
    screen
}

/// What the results come to in a word.
fn verdict(
    results: &[(String, Imported)],
    counts: &Counts,
    found: &[Finding],
    no_problem: bool,
) -> (&'static str, Tone) {
    let mut all = results.iter().map(|(_, one)| one);
    let unusable = |figure: &Figure| !figure.judged.analysis.verdict.usable();
    let interrupted = || found.iter().any(|finding| finding.rule == INTERRUPTED);
    match (counts.with, counts.without, no_problem) {
        (0, ..) => ("NO RESULT", Tone::Care),
        (_, _, false) => ("FAULTY RESULT", Tone::Bad),
        _ if all.clone().flat_map(|one| &one.figures).all(unusable) => ("NOT JUDGED", Tone::Care),
        (_, 0, true) if all.all(|one| one.refused == 0) && !interrupted() => ("READ", Tone::Good),
        _ => ("READ IN PART", Tone::Care),
    }
}

/// Which tool's figures of which host have a value, and how many do not.
fn what(results: &[(String, Imported)], counts: &Counts) -> String {
    let of = match results {
        [(_, one)] => {
            let host = if one.host == UNNAMED { String::new() } else { format!(" of {}", one.host) };
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
    if counts.with == 0 {
        return match counts.without {
            1 => format!("{of}: its figure has no value."),
            count => format!("{of}: none of its {count} figures has a value."),
        };
    }
    let has = if counts.with == 1 { "has" } else { "have" };
    format!("{of}: {} {has} a value{left_out}.", counted(counts.with, "figure"))
}

/// Of how many values the figures that are shown are the median, and what stands behind ±.
fn of_several_values(one: &Imported, shown: &[Row]) -> Option<String> {
    let keys: BTreeSet<&str> = shown.iter().filter_map(|row| row.key.as_deref()).collect();
    let is_shown = |figure: &&Figure| has_value(figure) && keys.contains(figure.judged.series.key.as_str());
    let figures = || one.figures.iter().filter(is_shown);
    let counts: Vec<usize> = figures().map(|figure| values(figure).len()).collect();
    let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
    let of = match (least, most) {
        (_, ..2) => return None,
        (_, most) if counts.len() == 1 => format!("It is the median of {most} values"),
        (least, most) if least == most => format!("Each figure is the median of {most} values"),
        (1, most) => format!("Figures with n are medians of up to {most} values"),
        (least, most) => format!("Each figure is the median of {least}–{most} values"),
    };
    let is_without = |figure: &Figure| {
        let analysis = &figure.judged.analysis;
        values(figure).len() > 1 && analysis.estimate.as_ref().is_some_and(|found| found.interval.is_none())
    };
    let range = match figures().any(is_without) {
        true if most < MIN_INTERVAL_VALUES => ", ± their range",
        true => ", ± the 95 % interval (of fewer than 5 the range)",
        false => "",
    };
    Some(format!("{of}{range}."))
}

/// Fewer values have no interval.
const MIN_INTERVAL_VALUES: usize = 5;

/// Host, tool and the host as the file describes it; cut-off texts lose their mark.
fn about(one: &Imported) -> Vec<HostPart> {
    let mut parts = vec![HostPart::needed(match one.host.as_str() {
        UNNAMED => "unnamed host".to_string(),
        host => whole(host),
    })];
    parts.push(HostPart::needed(one.format.word()));
    let fact = |(label, value): &(String, String)| {
        let value = whole(value).split_whitespace().collect::<Vec<_>>().join(" ");
        HostPart::spare(match label.as_str() {
            "cpu_model" | "system" | "architecture" | "machine" => value,
            "cpus" if value == "1" => "1 CPU".to_string(),
            "cpus" => format!("{value} CPUs"),
            "kernel" => format!("Linux {value}"),
            "mhz" if value.contains("MHz") => value,
            "mhz" => format!("{value} MHz"),
            "nominal_mhz" => format!("nominal {value} MHz"),
            label => format!("{} {value}", label.replace('_', " ")),
        })
    };
    // A program named like its tool adds nothing.
    let tool = one.format.word().to_lowercase();
    let is_tool = |program: &str| {
        let name = program.rsplit('/').next().unwrap_or(program).to_lowercase();
        tool.contains(name.trim_end_matches(|c: char| c.is_ascii_digit()))
    };
    let said = |(label, value): &&(String, String)| match label.as_str() {
        "language" => false,
        "program" => !is_tool(value),
        _ => true,
    };
    parts.extend(one.make_up.iter().filter(said).map(fact));
    parts
}

fn gathered(results: &[(String, Imported)], groups: &[Repeats]) -> Vec<Finding> {
    let own = results.iter().flat_map(|(file, one)| findings_of(file, one));
    own.chain(groups.iter().filter_map(|group| group.finding.clone())).collect()
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
        assert_eq!(shown.word, "NO RESULT");
        assert!(shown.rows.is_empty() && shown.findings.iter().any(|line| line.topic == "left out"));
        // Nor one with a row that fits no table.
        let matrix = "core-to-core-latency\n,,\n1.5,,\n2.5,3.5,\n";
        let words = [of(matrix).word, of(&format!("{matrix}9.5,,1.5\n")).word];
        assert_eq!(words, ["READ", "READ IN PART"]);
    }
}

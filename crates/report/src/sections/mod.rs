//! From a diagnosis to blocks: what is said, in which order. What things look like is the
//! renderers' affair.

pub mod believed;
mod beside;
mod cards;
mod conditions;
mod curves;
mod figures;
mod guard;
mod hops;
mod latencies;
mod levels;
mod machine;
#[cfg(test)]
mod made;
mod matrix;
mod memory_map;
mod method;
pub(crate) mod names;
pub use names::label;
mod nexmark;
mod notes;
mod observed;
mod placements;
mod profile;
mod rate;
mod readings;
mod results;
mod samples;
pub mod screen;
mod shown;
mod smt;
mod study;
mod sweep;
mod topology;
mod trade;
mod unapplied;
pub(crate) mod unixbench;
mod wide;

pub(crate) use study::shortened;

use super::block::{
    Block, CONCLUSION, Cell, Check, CheckMark, FINDINGS, Report, Section, Table, column, columns, right,
};
use super::json;
use compare::Comparison;
use diagnose::Diagnosis;
use diagnose::reference::References;
use model::{Severity, Title, View};

/// Makes the sections of one family, where the run has any.
type Sections = fn(&Diagnosis) -> Vec<Section>;

macro_rules! families {
    ($($sections:path,)+) => {
        [$(|diagnosis| $sections(diagnosis).into_iter().collect()),+]
    };
}

/// What each family shows of its own, in the order of reports.
const FAMILIES: [Sections; 9] = families![
    unixbench::section,
    sweep::section,
    profile::section,
    smt::capacity::section,
    rate::section,
    memory_map::section,
    nexmark::sections,
    smt::section,
    guard::section,
];

/// What a study comes to, in paragraphs: those of each family that says so.
const CONCLUSIONS: [fn(&Diagnosis) -> Vec<String>; 5] = [
    unixbench::conclusion,
    sweep::conclusion,
    smt::capacity::conclusion,
    nexmark::conclusion,
    rate::conclusion,
];

/// What stands before all else in the report of a study.
fn conclusion(diagnosis: &Diagnosis) -> Option<Section> {
    let paragraphs: Vec<String> = CONCLUSIONS.iter().flat_map(|own| own(diagnosis)).collect();
    (!paragraphs.is_empty())
        .then(|| Section::new(CONCLUSION, "Conclusion", paragraphs.into_iter().map(Block::Prose).collect()))
}

/// The whole report of a run.
pub fn compose(diagnosis: &Diagnosis) -> anyhow::Result<Report> {
    compose_with(diagnosis, &[], &References::published(), &[])
}

/// The same with older results beside it, each compared with the run (A is the older), read against
/// what is normal, and the units that figures are wanted in.
pub fn compose_with(
    diagnosis: &Diagnosis,
    older: &[Comparison],
    references: &References,
    units: &[String],
) -> anyhow::Result<Report> {
    let header = &diagnosis.run.header;
    let mut sections: Vec<Section> = conclusion(diagnosis).into_iter().collect();
    let against = older.iter().flat_map(|comparison| &comparison.findings);
    let findings = diagnosis.findings.iter().chain(against).cloned().collect();
    sections.push(Section::new(FINDINGS, "Findings", vec![Block::Findings(findings)]));
    sections.extend(results::section(diagnosis, references, units));
    sections.extend(FAMILIES.iter().flat_map(|own| own(diagnosis)));
    sections.extend(beside::section(diagnosis, older));
    sections.extend(readings::section(diagnosis));
    sections.extend(believed::section(diagnosis));
    let own_view = header.catalogue.iter().filter(|title| !tells_capacity(&title.id));
    sections.extend(own_view.filter_map(|title| view(diagnosis, title)));
    sections.extend(latencies::section(diagnosis));
    sections.extend(hops::section(diagnosis));
    sections.extend(placements::section(diagnosis));
    sections.extend(observed::section(diagnosis));
    sections.extend(observed::charts(diagnosis));
    sections.extend(samples::section(diagnosis));
    sections.push(machine::section(diagnosis));
    sections.extend(notes::section(diagnosis));
    sections.extend(conditions::section(diagnosis));
    sections.push(method::section(diagnosis));
    sections.push(results::raw(diagnosis));
    let screen = screen::screen(diagnosis, references, units);
    Ok(Report {
        title: format!("{}: {} run", header.host, header.profile),
        machine: machine::one_line(diagnosis),
        subtitle: subtitle(diagnosis),
        checks: checks(diagnosis),
        sections,
        json: serde_json::to_string(&json::output_with(diagnosis, older, references, &screen))?,
        screen: Some(screen),
        tone: crate::screen::Tone::Plain,
    })
}

/// Whether a benchmark measures capacity, and has all its charts in a section of its own.
fn tells_capacity(bench: &str) -> bool {
    bench == model::vocabulary::smt::LOAD || bench.starts_with(nexmark::GROUP)
}

/// The section of a benchmark whose view needs one.
fn view(diagnosis: &Diagnosis, title: &Title) -> Option<Section> {
    match &title.view {
        View::Table => None,
        View::Wide => wide::section(diagnosis, title),
        View::Curve { x, log } => curves::section(diagnosis, title, x, *log),
        View::Trade { x, y } => trade::section(diagnosis, title, x, y),
        View::Matrix { row, column } => matrix::section(diagnosis, title, [row, column]),
    }
}

fn subtitle(diagnosis: &Diagnosis) -> String {
    let header = &diagnosis.run.header;
    let state = match (&diagnosis.run.summary, header.pretend) {
        (_, Some(seed)) => format!(", INVENTED SAMPLES (--pretend {seed})"),
        (None, _) if diagnosis.run.events.iter().any(|event| event.kind == "interrupted") => {
            ", interrupted".to_string()
        }
        _ => String::new(),
    };
    let state = match diagnosis.planted() {
        Some(words) => format!(", SLOWED ON PURPOSE (--planted: {words}){state}"),
        None => state,
    };
    format!(
        "{} profile, {} passes in {:.0} s, {}, Assay {}{state}",
        header.profile,
        diagnosis.run.visit_count(),
        diagnosis.elapsed_s(),
        header.started,
        header.assay
    )
}

/// What was looked at: findings as they are, rules that found nothing in their own few words.
fn checks(diagnosis: &Diagnosis) -> Vec<Check> {
    let found = diagnosis.findings.iter().map(|finding| {
        let mark = match finding.severity {
            Severity::Problem => CheckMark::Bad,
            Severity::Warning => CheckMark::Care,
            Severity::Note => CheckMark::Note,
        };
        (&finding.rule, Check { mark, text: finding.headline.clone() })
    });
    // Of a rule that found several things the first stands for all.
    let mut rules: Vec<&String> = Vec::new();
    let mut checks: Vec<Check> = Vec::new();
    for (rule, check) in found {
        if !rules.contains(&rule) {
            rules.push(rule);
            checks.push(check);
        }
    }
    let calm = diagnosis.clean.iter().filter(|rule| !rule.calm.is_empty());
    checks.extend(calm.map(|rule| Check { mark: CheckMark::Good, text: rule.calm.to_string() }));
    let thinned = diagnosis.run.thinned.iter();
    checks.extend(thinned.map(|thinned| Check { mark: CheckMark::Note, text: thinned.words() }));
    let damage = &diagnosis.run.damage;
    checks.extend(damage.iter().take(3).map(|text| Check { mark: CheckMark::Bad, text: text.clone() }));
    if damage.len() > 3 {
        let text = format!("{} more damages of the file (all of them in --json)", damage.len() - 3);
        checks.push(Check { mark: CheckMark::Bad, text });
    }
    checks
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

fn number(text: impl Into<String>) -> Cell {
    Cell::Number(text.into())
}

/// A table of two columns.
fn pairs(titles: [&str; 2], rows: Vec<(String, String)>) -> Table {
    Table::new(
        titles.map(column).to_vec(),
        rows.into_iter().map(|(label, value)| vec![text(label), text(value)]),
    )
}

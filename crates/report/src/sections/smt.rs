//! The SMT table: each call alone, beside the same work, beside a spinner, and with SMT off.

pub mod capacity;

use super::figures::median_words;
use super::names::{label, placement_words};
use super::wide::weight;
use super::{column, number, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::neighbours::{Cost, Row, Tally, VARIANTS, Variant, expectation, neighbour, rows};
use diagnose::pays::what_pays;
use diagnose::words::counted;
use model::Case;

/// Whether a case stands beside another one in this table, and nowhere else.
pub fn is_variant(case: &Case) -> bool {
    Variant::of(case).is_some()
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let variants = || diagnosis.run.header.plan.iter().filter(|planned| is_variant(&planned.case));
    variants().next()?;
    let rows = rows(&diagnosis.series);
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Block::Prose(words(diagnosis, &rows)));
        for (several, title) in [(false, "single-process"), (true, "several processes")] {
            let own: Vec<Vec<Cell>> =
                rows.iter().filter(|row| row.several == several).map(|row| cells(diagnosis, row)).collect();
            if !own.is_empty() {
                blocks.push(Block::Table(Table::new(columns(title), own)));
            }
        }
    }
    blocks.extend(what_pays(&diagnosis.machine, &rows).map(Block::Prose));
    let absent = absent(diagnosis);
    if !absent.is_empty() {
        blocks.push(Block::Prose(format!("not tested: {absent}")));
    }
    Some(Section::new("smt", "Busy siblings and SMT", blocks).about(
        "Each call alone, and how many times longer it takes with company. `pays` and \
                 `the same` need the whole 95 % interval of pairs from one pass, at 2 %. `undecided` needs more passes.",
    ))
}

/// Which calls pay, in sentences.
fn words(diagnosis: &Diagnosis, rows: &[Row]) -> String {
    let mut sentences = vec![match neighbour(&diagnosis.machine, rows) {
        "SMT sibling" => "Company runs on the SMT siblings of the measured CPUs.".to_string(),
        _ => "No SMT: company runs on the next core.".to_string(),
    }];
    for (several, class) in [(false, "Single-process calls"), (true, "Calls of several processes")] {
        let tallies = VARIANTS.map(|variant| (variant, Tally::of(rows, several, variant)));
        let told: Vec<String> = tallies
            .iter()
            .filter(|(_, tally)| tally.rows > 0)
            .map(|(variant, tally)| format!("{}: {}", variant.words(), tally.words()))
            .collect();
        if !told.is_empty() {
            sentences.push(format!("{class}, {}.", told.join(" | ")));
        }
    }
    sentences.push(match expectation(rows) {
        Some(words) => format!("{words}."),
        None => "Nothing was measured with SMT off: the cost of SMT without company is unknown.".into(),
    });
    sentences.join(" ")
}

fn columns(class: &str) -> Vec<crate::block::Column> {
    let variants = VARIANTS.map(|variant| right(variant.words()));
    let first = [column(class), column("placement"), right("alone")];
    first.into_iter().chain(variants).chain([column("verdict")]).collect()
}

fn cells(diagnosis: &Diagnosis, row: &Row) -> Vec<Cell> {
    let alone = row.alone;
    let mut cells = vec![
        text(label(diagnosis, alone)),
        text(placement_words(&alone.series.case.placement.name)),
        number(median_words(alone)),
    ];
    cells.extend(
        row.costs.iter().map(|cost| cost.as_ref().map_or(Cell::Empty, |cost| number(cost_words(cost)))),
    );
    let others = row.costs.iter().flatten().map(|cost| cost.judged);
    let gravest = [alone].into_iter().chain(others).map(|judged| &judged.analysis.verdict);
    // Of equally grave ones that of the case alone.
    let gravest = gravest.rev().max_by_key(|verdict| weight(verdict));
    cells.push(gravest.cloned().map_or(Cell::Empty, Cell::Verdict));
    cells
}

/// `169 ns, 1.62× pays`.
fn cost_words(cost: &Cost) -> String {
    let word = match cost {
        cost if cost.pays() => "pays",
        cost if cost.gains() => "faster",
        cost if cost.same() => "the same",
        _ => "undecided",
    };
    format!("{}, {:.2}× {word}", median_words(cost.judged), cost.ratio.ratio)
}

/// What could not be measured and why, each reason once with how many cases it concerns.
fn absent(diagnosis: &Diagnosis) -> String {
    let mut reasons: Vec<(&str, &str, usize)> = Vec::new();
    for planned in &diagnosis.run.header.plan {
        let (Some(variant), Some(why)) = (Variant::of(&planned.case), planned.unmet.as_deref()) else {
            continue;
        };
        // How much time was left differs from case to case.
        let why = if why.starts_with("budget") { "no time in the budget" } else { why };
        match reasons.iter_mut().find(|(what, other, _)| *what == variant.words() && *other == why) {
            Some((_, _, count)) => *count += 1,
            None => reasons.push((variant.words(), why, 1)),
        }
    }
    let calls = |count: usize| counted(count, "call");
    let said = reasons.into_iter().map(|(what, why, count)| format!("{what}, {} ({why})", calls(count)));
    said.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of, tables, texts};
    use super::super::results;
    use super::*;
    use diagnose::reference::References;
    use model::{Beside, CpuSet, View};

    /// A call that takes 100 ns alone, on CPU 0 of a host whose CPU 0 has this sibling or none.
    fn made(beside: u32, same: f64, spinner: f64, off: Option<f64>) -> Diagnosis {
        let at = |ns: f64| [("latency", ns)];
        let neighbour = |kind: Beside| {
            let mut case = case("one-cpu", &[]);
            (case.placement.beside, case.placement.neighbours) = (kind, vec![CpuSet::one(beside)]);
            case
        };
        let mut switched = case("one-cpu", &[]);
        switched.knobs.insert("smt".into(), "off".into());
        let made = Made::new(View::Table, vec![latency()])
            .case(case("one-cpu", &[]), &[(of(&[]), &at(100.0))])
            .case(neighbour(Beside::SameWork), &[(of(&[]), &at(same))])
            .case(neighbour(Beside::Spinner), &[(of(&[]), &at(spinner))]);
        let made = match off {
            Some(ns) => made.case(switched, &[(of(&[]), &at(ns))]),
            None => made.unmet(switched, "this machine has no SMT"),
        };
        made.diagnosed(machine(2))
    }

    fn prose(section: &Section) -> String {
        section.prose().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_call_that_pays_beside_others_and_not_for_smt_itself() {
        // CPUs 0 and 4 are threads of one core.
        let diagnosis = made(4, 160.0, 130.0, Some(100.5));
        let section = section(&diagnosis).expect("variants were measured");
        let rows = texts(tables(&section)[0]);
        assert_eq!(
            rows[0][..6],
            [
                "Test",
                "one CPU",
                "100 ns",
                "160 ns, 1.60× pays",
                "130 ns, 1.30× pays",
                "100 ns, 1.00× the same"
            ]
        );
        let prose = prose(&section);
        for words in
            ["on the SMT siblings", "1 of 1 pay; 1.60×", "single-process calls are unaffected, as expected"]
        {
            assert!(prose.contains(words), "{words:?} is missing in {prose}");
        }
        let end =
            "With SMT on: single-process calls the same (within 1 %), two threads on one core do 1.25 times";
        assert!(prose.contains(end), "{prose}");
        // The table of results holds the case alone.
        let results = results::section(&diagnosis, &References::published(), &[]).expect("results");
        assert!(matches!(&results.blocks[0], Block::Figures(rows) if rows.len() == 1), "{results:?}");
    }

    #[test]
    fn without_smt_it_is_said() {
        let section = section(&made(1, 101.0, 100.0, None)).expect("variants were measured");
        let prose = prose(&section);
        for words in [
            "No SMT: company runs on the next core",
            "1 of 1 the same",
            "Nothing was measured with SMT off",
            "SMT off, 1 call (this machine has no SMT)",
            "SMT on or off is open",
        ] {
            assert!(prose.contains(words), "{words:?} is missing in {prose}");
        }
    }

    #[test]
    fn what_smt_costs_while_merely_on_is_against_the_expectation() {
        let prose = prose(&section(&made(4, 160.0, 130.0, Some(90.0))).expect("a section"));
        assert!(prose.contains("some single-process calls pay, against the expectation"), "{prose}");
    }

    #[test]
    fn runs_without_variants_have_no_such_section() {
        let plain = Made::new(View::Table, vec![latency()])
            .case(case("one-cpu", &[]), &[(of(&[]), &[("latency", 5.0)])])
            .diagnosed(machine(2));
        assert!(section(&plain).is_none());
    }
}

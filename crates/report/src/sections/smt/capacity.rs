//! Work at rising load: what CPU% hides, and how much more fits.

mod charts;

use crate::block::{Block, Cell, Section, Table};
use crate::sections::figures::value_words;
use crate::sections::names::placement_words;
use crate::sections::{columns, number, right, text};
use diagnose::Diagnosis;
use diagnose::capacity::{self, Level, Levels, READ_CPU_SHARES, Second, Study, yield_words};
use model::vocabulary::smt as ids;
use model::{Case, percent};
use stats::compare::Ratio;
use stats::smt::{Sentence, spread_first};

/// The section's anchor.
pub const ID: &str = "capacity";

/// Whether a case stands in this section, and nowhere else.
pub fn is_own(case: &Case) -> bool {
    case.bench == ids::LOAD
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let levels = Levels::of(&diagnosis.series);
    let study = capacity::study(&diagnosis.run, &levels)?;
    let mut blocks = vec![Block::Prose(words(&study))];
    // What was rejected is shown, and nothing is concluded from it.
    blocks.extend(truths(&study).filter(|_| study.doubt().is_none()).map(Block::Table));
    blocks.push(Block::Table(kinds(&study)));
    blocks.extend(charts::all(&study).into_iter().map(Block::from));
    let absent = absent(diagnosis);
    if !absent.is_empty() {
        blocks.push(Block::Prose(format!("not tested: {absent}")));
    }
    Some(Section::new(ID, "Real core use beside CPU%", blocks).about(
        "Fixed work at rising load, on one CPU, on two threads of one core, on separate \
                 cores. CPU% is the kernel's: 100 % minus idle time.",
    ))
}

/// Capacity, and what half of CPU% means.
pub fn conclusion(diagnosis: &Diagnosis) -> Vec<String> {
    let levels = Levels::of(&diagnosis.series);
    let Some(study) = capacity::study(&diagnosis.run, &levels).filter(|study| study.doubt().is_none()) else {
        return Vec::new();
    };
    let sentences = sentences(&study);
    if sentences.is_empty() { Vec::new() } else { vec![sentences.join(" ")] }
}

/// The same in sentences.
pub fn sentences(study: &Study) -> Vec<String> {
    let half = study.sentence(0.5).map(|half| format!("{}.", half.words_where(study.premise())));
    study.bottom_line().into_iter().chain(half).collect()
}

fn words(study: &Study) -> String {
    let mut sentences = Vec::new();
    if let Some(why) = study.doubt() {
        sentences.push(format!("No conclusion: {why}."));
    } else if study.sentence(0.5).is_some_and(|half| !half.has_interval()) {
        sentences.push("One pass has no interval.".to_string());
    }
    if !study.smt {
        sentences.push(
            "This host shows no SMT. The same study ran on two cores, whose work should rise in a straight line with CPU%.".to_string(),
        );
    }
    if let (true, [only]) = (study.smt, study.seconds.as_slice()) {
        sentences.push(format!("Only the kind {} was measured: other work may differ.", only.kind));
    }
    sentences.push(match study.no_ipc {
        Some(why) => {
            format!("No IPC ({}). Work per second of CPU time replaces it.", why.replace(": ", ", "))
        }
        None => "The CPU counts IPC in user space.".to_string(),
    });
    sentences.join(" ")
}

/// What a CPU% of one core means, where idle cores are taken first, and where all CPUs are alike.
fn truths(study: &Study) -> Option<Table> {
    let kinds = study.seconds.len();
    // One kind of work gives no range over kinds.
    let yields = study.range().filter(|_| study.smt && kinds > 1);
    let alike = study.alike();
    let row = |says: &f64| {
        let sentence = study.sentence(*says)?;
        let mut row = vec![number(percent(*says)), number(sentence.used_words())];
        row.extend(yields.map(|s| number(of_all_kinds(&sentence, *says, [s.lo, s.hi]))));
        let words = [sentence.growth_words(), sentence.kept_words(study.free)];
        row.extend(words.map(|words| number(words.replace(" times today's", "×"))));
        row.push(number(format!("{:.2}×", 1.0 / says)));
        let alike = alike.as_ref().and_then(|alike| alike.sentence(*says));
        row.push(number(alike.map_or("–".to_string(), |alike| alike.used_words())));
        Some(row)
    };
    let rows: Vec<Vec<Cell>> = READ_CPU_SHARES.iter().filter_map(row).collect();
    let whose = if study.smt { "CPU% of a core's threads" } else { "CPU% of two cores" };
    let first = if study.smt { "one thread first" } else { "one core first" };
    let mut columns = vec![right(whose), right(&format!("in use, loop, {first} (95 %)"))];
    columns.extend(yields.map(|_| right(&format!("in use, range of {kinds} kinds"))));
    columns.extend([
        right("work can grow to"),
        right(&format!("with {:.0} % kept free", study.free * 100.0)),
        right("CPU% suggests"),
        right("in use, loop, all CPUs alike"),
    ]);
    (!rows.is_empty()).then_some(Table::new(columns, rows))
}

/// From the least to the most that is used by the yields of all kinds of work and by the measured
/// line of `loop`, which is one of them.
fn of_all_kinds(sentence: &Sentence, says: f64, yields: [f64; 2]) -> String {
    // A core whose threads hinder each other does most with one.
    let by_yield = yields.map(|s| spread_first(says, s.max(1.0), 2, 1.0));
    let used = sentence.used();
    let (low, high) = (by_yield[1].min(used.lo), by_yield[0].max(used.hi));
    format!("{:.0}–{:.0} %", (100.0 * low + 1e-6).floor(), (100.0 * high - 1e-6).ceil())
}

fn ratio_words(ratio: Option<&Ratio>) -> String {
    let Some(ratio) = ratio else { return "–".to_string() };
    match ratio.interval {
        Some(between) => format!("{:.2} ({:.2}–{:.2})", ratio.ratio, between.low, between.high),
        None => format!("{:.2}", ratio.ratio),
    }
}

/// What a second CPU gives to each kind of work, at full load.
fn kinds(study: &Study) -> Table {
    let counted = study.no_ipc.is_none();
    let pair = if study.smt { "both threads" } else { "two cores" };
    let rate = if counted { "IPC" } else { "work per busy second" };
    let columns = columns(&format!(
        "kind of work | one CPU: | {pair}: | two over one: | {rate}, two over one: | p99 of a request, two over one: | verdict"
    ));
    let row = |second: &Second| {
        let value =
            |level: &Level| level.judged(ids::metric::PERFORMANCE).map_or("–".to_string(), value_words);
        let verdicts =
            [second.one, second.both].into_iter().filter_map(|level| level.judged(ids::metric::PERFORMANCE));
        let verdict = verdicts
            .map(|judged| &judged.analysis.verdict)
            .max_by_key(|verdict| crate::sections::wide::weight(verdict));
        let share = if counted { second.ipc.as_ref() } else { second.per_busy.as_ref() };
        vec![
            text(second.kind),
            number(value(second.one)),
            number(value(second.both)),
            number(yield_words(&second.found.throughput)),
            number(ratio_words(share)),
            number(ratio_words(second.p99.as_ref())),
            verdict.cloned().map_or(Cell::Empty, Cell::Verdict),
        ]
    };
    Table::new(columns, study.seconds.iter().map(row))
}

/// What could not be measured and why.
fn absent(diagnosis: &Diagnosis) -> String {
    let own = diagnosis.run.header.plan.iter().filter(|planned| is_own(&planned.case));
    let mut said: Vec<String> = Vec::new();
    for planned in own {
        let Some(why) = planned.unmet.as_deref() else { continue };
        let why = if why.starts_with("budget") { "no time in the budget" } else { why };
        let words = format!("{} ({why})", placement_words(&planned.case.placement.name));
        if !said.contains(&words) {
            said.push(words);
        }
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::made::{charts, tables, texts};
    use crate::sections::{results, shown};
    use diagnose::diagnose;
    use diagnose::reference::References;
    use model::VerdictKind;
    use testkit::capacity::{made, made_of};

    fn prose(section: &Section) -> String {
        section.prose().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_core_with_two_threads_has_its_truth_and_its_charts() {
        let diagnosis = diagnose(made(1.25, true));
        let section = section(&diagnosis).expect("a study");
        let concluded = conclusion(&diagnosis).join(" ");
        for words in [
            "CPU% says 50, one thread of each core busy: 80 % (79–81) are used; work can grow to 1.25 times today's (1.24–1.26), not 2.00 times",
            "Capacity at 100 %: 125 M/s (125–125)",
            "With 20 % kept free: 100 M/s (99.8–100), at CPU% 50 (49–51) with idle cores taken first, 6",
        ] {
            assert!(concluded.contains(words), "{words:?} is missing in {concluded}");
        }
        assert!(concluded.starts_with("Capacity at 100 %"), "the report begins with it: {concluded}");
        let truths = texts(tables(&section)[0]);
        assert_eq!(truths[3][1..2], ["80 % (79–81)"], "{truths:?}");
        let all = charts(&section);
        let ids: Vec<&str> = all.iter().map(|chart| chart.id.as_str()).collect();
        let names =
            ["performance", "ratio", "cpu", "attainment", "gap"].map(|name| format!("chart-capacity-{name}"));
        assert_eq!(ids, names);
        let kinds = texts(tables(&section)[1]);
        assert!(kinds[0][3].starts_with("1.25"), "{kinds:?}");
        assert!(shown::first(&diagnosis).0.is_empty(), "rows of this study stand here only");
        assert!(results::section(&diagnosis, &References::published(), &[]).is_none());
        let finding =
            diagnosis.findings.iter().find(|finding| finding.rule == "smt-capacity").expect("found");
        assert!(finding.headline.starts_with("The second thread of a core adds 25"), "{}", finding.headline);
    }

    /// A table speaks of the kinds that were measured, and of no share above all.
    #[test]
    fn one_kind_says_nothing_of_any_and_hindering_threads_use_no_more_than_all() {
        let titles = |section: &Section| -> Vec<String> {
            tables(section)[0].columns.iter().map(|column| column.title.to_string()).collect()
        };
        let one = section(&diagnose(made(1.25, true))).expect("a study");
        assert!(!titles(&one).iter().any(|title| title.contains("kind")), "{:?}", titles(&one));
        assert!(prose(&one).contains("Only the kind loop was measured"), "{}", prose(&one));
        let kinds = [("loop", 1.25), ("chase", 1.9), ("stream", 0.7)];
        let three = section(&diagnose(made_of(&kinds, true))).expect("a study");
        assert!(titles(&three)[2].contains("range of 3 kinds"), "{:?}", titles(&three));
        let mut last = 0.0;
        for row in texts(tables(&three)[0]) {
            let ends: Vec<f64> = row[2].split([' ', '–']).filter_map(|word| word.parse().ok()).collect();
            assert!(ends.len() == 2 && ends[1] <= 100.0 && ends[1] >= last, "{row:?}");
            last = ends[1];
        }
    }

    #[test]
    fn without_smt_the_line_is_straight_and_said() {
        let diagnosis = diagnose(made(2.0, false));
        let prose = prose(&section(&diagnosis).expect("a study"));
        assert!(prose.contains("shows no SMT"), "{prose}");
        let concluded = conclusion(&diagnosis).join(" ");
        assert!(concluded.contains("says 50, one of two cores busy: 50 % ("), "{concluded}");
        assert!(diagnosis.clean.iter().any(|rule| rule.id == "smt-capacity"));
        let mut disturbed = diagnose(made(2.0, false));
        for judged in &mut disturbed.series {
            judged.analysis.verdict = model::Verdict::new(VerdictKind::Rejected, "somebody else".to_string());
        }
        let section = section(&disturbed).expect("a study");
        let prose = self::prose(&section);
        assert!(prose.contains("No conclusion: "), "{prose}");
        assert!(conclusion(&disturbed).is_empty());
        assert_eq!(tables(&section).len(), 1, "no table of truths");
        let hidden = diagnose(made(1.25, false));
        let finding = hidden.findings.iter().find(|finding| finding.rule == "smt-capacity").expect("found");
        assert!(finding.headline.contains("reports them as two cores"), "{}", finding.headline);
    }
}

//! What a second thread of a core adds (`assay smt`). Words: `A SECOND THREAD ADDS 27 %`, `A SECOND
//! THREAD COSTS 5 %`, `NO SECOND THREADS`, `SECOND THREADS ARE HIDDEN`, `NO CONCLUSION`.

use super::super::figures::median_words;
use super::super::{columns, number, smt, text};
use super::{Answer, sentence};
use crate::block::{Block, Cell, Table};
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::capacity::{self, Level, Levels, MAIN, Second, Study};
use model::percent;
use model::vocabulary::smt as ids;
use stats::smt::spread_first;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let levels = Levels::of(&diagnosis.series);
    let study = capacity::study(&diagnosis.run, &levels)?;
    if let Some(why) = study.doubt() {
        let doubted = Answer::new("NO CONCLUSION", Tone::Care).sentences([sentence(&why)]);
        return Some(doubted.table(kinds(&study)));
    }
    let found = diagnosis.findings.iter().any(|finding| ids::rule::SMT_CAPACITY == finding.rule);
    let adds = study.main().map(|second| second.found.throughput.value.mid - 1.0);
    let (word, tone) = match (study.smt, adds) {
        (true, Some(adds)) if adds >= 0.0 => (format!("A SECOND THREAD ADDS {}", whole(adds)), Tone::Strong),
        (true, Some(adds)) => (format!("A SECOND THREAD COSTS {}", whole(-adds)), Tone::Care),
        (true, None) => ("NO CONCLUSION".to_string(), Tone::Care),
        (false, _) if found => ("SECOND THREADS ARE HIDDEN".to_string(), Tone::Care),
        (false, _) => ("NO SECOND THREADS".to_string(), Tone::Strong),
    };
    let by_kind = by_kind(&study);
    // What half of CPU% means before the capacity.
    let said = smt::capacity::sentences(&study).into_iter().rev();
    let mut answer = Answer::new(word, tone).sentences(by_kind.into_iter().chain(said)).table(kinds(&study));
    answer.blocks.extend(bars(&study).map(Block::Preformatted));
    if study.smt && adds.is_some() {
        answer.next.push("now: assay utilization --study RUN".to_string());
    }
    Some(answer)
}

/// Columns of a bar of 100 %.
const BAR: f64 = 46.0;

/// Of a core with two threads the work that is done at some CPU%, beside what CPU% suggests.
fn bars(study: &Study) -> Option<String> {
    let bar = |share: f64, sign: &str| {
        format!("{} {:.0}", sign.repeat((share * BAR).round() as usize), 100.0 * share)
    };
    let pair = |says: f64| {
        let done = study.sentence(says)?.used().mid;
        let shown = format!("{:3.0} %", 100.0 * says);
        Some(format!("{shown:8}{}\n{:8}{}", bar(done, "█"), "", bar(says, "░")))
    };
    let pairs: Vec<String> = [0.25, 0.5, 0.75].into_iter().filter(|_| study.smt).filter_map(pair).collect();
    let head = format!("CPU %   of the most work ({MAIN}): done █   what CPU % suggests ░");
    (!pairs.is_empty()).then(|| format!("{head}\n{}", pairs.join("\n")))
}

/// A share of one in whole per cent.
fn whole(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The least and the most that it adds.
fn by_kind(study: &Study) -> Option<String> {
    let adds = || study.seconds.iter().map(|second| second.found.throughput.value.mid - 1.0);
    let (least, most) = (adds().reduce(f64::min)?, adds().reduce(f64::max)?);
    (study.smt && study.seconds.len() > 1).then(|| {
        let to = if least < 0.0 { " to " } else { "–" };
        let [least, most] = [least, most].map(|share| format!("{:.0}", 100.0 * share));
        format!("By kind of work it adds {least}{to}{most} %.")
    })
}

/// What a second CPU gives to each kind of work, and what half of CPU% means there.
fn kinds(study: &Study) -> Table {
    let columns = columns(if study.smt {
        "kind of work | one thread: | both threads: | second adds: | 50 % CPU is:"
    } else {
        "kind of work | one core: | two cores: | second adds: | :"
    });
    let row = |second: &Second| {
        let value =
            |level: &Level| level.judged(ids::metric::PERFORMANCE).map_or("–".to_string(), median_words);
        let found = second.found.throughput.value.mid;
        // A core whose threads hinder each other does most with one.
        let used = spread_first(0.5, found.max(1.0), 2, 1.0);
        vec![
            text(second.kind),
            number(value(second.one)),
            number(value(second.both)),
            number(whole(found - 1.0)),
            if study.smt { number(format!("{} full", percent(used))) } else { Cell::Empty },
        ]
    };
    let mut table = Table::new(columns, study.seconds.iter().map(row));
    if !study.smt {
        table.columns.pop();
        for row in &mut table.rows {
            row.pop();
        }
    }
    table
}

//! What a guest really gets (`assay host`). Words: `WHOLE CPUS`, `THE HOST TAKES 12 % OF CPU 1`,
//! `CPU 1 PAUSES 12 %` (where nothing says whether a host lies below), `CPUS SHARE ONE OF THE
//! HOST'S`, `STOPPED AS A GUEST`, `CANNOT TELL`, `BARE METAL`.

use super::super::{column, text};
use super::{Answer, sentence};
use crate::block::{Cell, Table};
use crate::host::{doubt_words, rows, unseen};
use crate::screen::Tone;
use diagnose::{Diagnosis, Pauses, milliseconds};
use model::percent;
use stats::pauses::{Answer as Found, CpuTime, PairAnswer};

/// A stop of all CPUs that takes less of the time than this is told of in the table alone.
const STOPS_LEAST: f64 = 0.005;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let pauses = diagnosis.pauses()?;
    let (word, tone) = word(&pauses);
    let rows = rows(diagnosis, &pauses);
    let row = |row: &crate::host::HostRow| {
        let grade = Cell::Reading { reading: row.shown(), is_problem: false, why: String::new() };
        vec![text(row.what), grade, text(row.reading.clone())]
    };
    let columns = vec![column(""), column("grade"), column("reading")];
    let table = Table::new(columns, rows.iter().map(row));
    let answer = Answer::new(word, tone).sentences(sentences(&pauses)).table(table);
    Some(Answer { regardless: true, ..answer })
}

fn word(pauses: &Pauses) -> (String, Tone) {
    let withheld = pauses.withheld();
    let all_whole = pauses.found.cpus.iter().all(|cpu| cpu.answer == Found::Whole);
    let as_a_guest = pauses.found.stops.is_some_and(|stops| stops.share >= STOPS_LEAST);
    match withheld.first() {
        _ if pauses.guest == Some(false) => ("BARE METAL".to_string(), Tone::Strong),
        Some(_) if !pauses.pairs_that(PairAnswer::TakeTurns).is_empty() => {
            ("CPUS SHARE ONE OF THE HOST'S".to_string(), Tone::Bad)
        }
        Some(_) if as_a_guest => ("STOPPED AS A GUEST".to_string(), Tone::Bad),
        Some(most) if pauses.guest.is_none() => {
            (format!("CPU {} PAUSES {}", most.cpu, percent(most.withheld)), Tone::Care)
        }
        Some(most) => (format!("THE HOST TAKES {} OF CPU {}", percent(most.withheld), most.cpu), Tone::Bad),
        None if all_whole => ("WHOLE CPUS".to_string(), Tone::Good),
        None => ("CANNOT TELL".to_string(), Tone::Care),
    }
}

fn sentences(pauses: &Pauses) -> Vec<String> {
    let most = pauses.found.cpus.iter().max_by(|one, other| one.withheld.total_cmp(&other.withheld));
    let doubt = pauses.found.cpus.iter().find_map(|cpu| match cpu.answer {
        Found::CannotTell(doubt) => Some(sentence(&doubt_words(cpu, doubt))),
        _ => None,
    });
    let mut said = Vec::new();
    if pauses.guest == Some(false) {
        said.push("This is bare metal: no hypervisor runs below, and no host takes CPU time.".to_string());
    }
    if let Some(words) = pauses.pairs_words() {
        said.push(sentence(&words));
    }
    said.extend(most.map(|most| taken(most, pauses.guest)));
    said.extend(doubt.filter(|_| pauses.withheld().is_empty()));
    said.push(format!(
        "Pauses of 4 ms that take less than {} of the time stay unseen.",
        percent(unseen(pauses))
    ));
    said
}

fn taken(most: &CpuTime, guest: Option<bool>) -> String {
    let who = if guest == Some(true) { "The host" } else { "Firmware or interrupts" };
    if most.count == 0 {
        return format!("{who} paused no CPU in {:.0} s.", most.seconds);
    }
    format!(
        "{who} paused CPU {} for {} of {:.0} s, at most {} at once.",
        most.cpu,
        percent(most.withheld),
        most.seconds,
        milliseconds(most.longest)
    )
}

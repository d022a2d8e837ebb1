//! What is behind a guest's memory, by looks at regions: pages, parts that differ, what is left in
//! the shared cache, neighbours.

use super::{HostRow, RowGrade};
use crate::text::blocks;
use diagnose::Diagnosis;
use diagnose::regions::EvaluatedRegions;
use machine::CacheKind;
use model::vocabulary::memory_map;
use model::{figure, percent};
use stats::order::{Interval, median};
use stats::regions::{BLOCK_S, Cause, Neighbour};

/// Share of a program's lines that stays in a cache that no other task uses.
const KEPT_MOST: f64 = 0.9;
/// And the share below which others use most of it.
const KEPT_LEAST: f64 = 0.5;
/// Looks push lines out of a second level by reading 4 MiB: a cache behind it is larger than this.
const MIN_CACHE: u64 = 8 << 20;

/// The rows of pages and parts.
pub fn rows(diagnosis: &Diagnosis) -> [HostRow; 2] {
    let all = diagnosis.regions();
    let Some(own) = all.first() else {
        return ["memory pages", "memory parts"]
            .map(|what| HostRow::missing(what, diagnosis, memory_map::REGIONS));
    };
    [pages(own), parts(own)]
}

/// The shared cache by what is left in it.
pub fn cache_kept(diagnosis: &Diagnosis, own: &EvaluatedRegions) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("cache share", grade, word, reading);
    let caches = diagnosis.machine.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
    let largest = caches.filter_map(|cache| cache.size_bytes).max();
    let Some(Interval { low, high }) = own.kept.filter(|_| largest.is_some_and(|bytes| bytes >= MIN_CACHE))
    else {
        return HostRow::cannot_tell("cache share", "no cache of 8 MiB or more is reported".to_string());
    };
    let reading = format!("{}–{} is left after 0.25 ms", percent(low), percent(high));
    match (low, high) {
        (low, _) if low >= KEPT_MOST => row(RowGrade::Good, "ours", reading),
        (_, high) if high < KEPT_LEAST => row(RowGrade::Poor, "contended", reading),
        _ => row(RowGrade::Fact, "shared", reading),
    }
}

fn pages(own: &EvaluatedRegions) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("memory pages", grade, word, reading);
    let Some(small) = own.small else {
        return HostRow::cannot_tell("memory pages", "this system gave no huge pages".to_string());
    };
    let Interval { low, high } = small.share();
    let price = own
        .found
        .price_ns
        .map_or(String::new(), |ns| format!("; {}–{} per load", figure(ns.low, ""), figure(ns.high, "ns")));
    match (low, high) {
        (low, _) if low > 0.5 => {
            row(RowGrade::Poor, "small", format!("{}–{} of huge pages{price}", percent(low), percent(high)))
        }
        (_, high) if high < 0.05 => row(RowGrade::Good, "huge", format!("all of {} checked", small.of)),
        _ => HostRow::cannot_tell(
            "memory pages",
            format!("{}–{} are small{price}", percent(low), percent(high)),
        ),
    }
}

fn parts(own: &EvaluatedRegions) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("memory parts", grade, word, reading);
    let named = own.found.named().next();
    match (named, own.found.differences.iter().find(|found| found.is_notable())) {
        (Some(found), _) => {
            let word = match found.cause {
                Cause::Translation => "translation",
                Cause::Distance => "distance",
                Cause::Transfer => "transfer",
            };
            row(RowGrade::Poor, word, own.size_words(found))
        }
        (None, _) if let Some(size) = own.far_size() => {
            let grade =
                if own.far.is_some_and(|far| far.matters()) { RowGrade::Poor } else { RowGrade::Fact };
            row(grade, "distance", size)
        }
        (None, None) => row(RowGrade::Good, "alike", "pages, distance and transfer".to_string()),
        (None, Some(found)) => HostRow::cannot_tell("memory parts", own.size_words(found)),
    }
}

/// Who slowed loads between looks at regions.
pub fn interference(own: &EvaluatedRegions) -> HostRow {
    let Some(found) = &own.neighbour else {
        return HostRow::not_measured("interference", "too few seconds were watched");
    };
    of_neighbour(found, found.blocks.len() as f64 * BLOCK_S)
}

/// The row of interference in these seconds, with its time line.
pub fn of_neighbour(found: &Neighbour, seconds: f64) -> HostRow {
    let row = |grade, word: &str, reading: String| HostRow::new("interference", grade, word, reading);
    let line = time_line(found);
    let slower = format!("{:.2} × slower in {} of {seconds:.0} s {line}", found.slower, percent(found.share));
    match (found.is_named(), found.is_quiet()) {
        (true, _) => row(RowGrade::Poor, "other guests", slower),
        (false, true) => row(RowGrade::Good, "none seen", format!("memory, {seconds:.0} s {line}")),
        (false, false) => HostRow::cannot_tell("interference", slower),
    }
}

/// Columns of a time line, and the share of the slowest below which it looks flat.
const COLUMNS: usize = 16;
const FLAT: f64 = 0.5;

/// How much slower memory was, from the first half second to the last.
fn time_line(found: &Neighbour) -> String {
    let (count, columns) = (found.blocks.len(), COLUMNS.min(found.blocks.len()));
    let column = |at: usize| {
        let own = &found.blocks[at * count / columns..(at + 1) * count / columns];
        median(&own.iter().map(|block| block.slower).collect::<Vec<f64>>())
    };
    blocks(&(0..columns).map(column).collect::<Vec<Option<f64>>>(), FLAT, true)
}

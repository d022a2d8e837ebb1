//! `make prove`: runs the experiments behind docs/method, and writes their tables into
//! docs/results.
//!
//! `cargo run --release -p prove` runs all sections, `... -- NAME...` some, `-- --list` names them.
//! `a-a` takes `--runs N` (10 by default), `--only GROUPS` and `--budget TIME` for each of its
//! runs, or folders of runs that were made before (`--from DIR`, `--planted DIR`, `--hogs DIR`);
//! what is planted by trials takes `--trials N` (100 by default), `kills` takes `--kills N` (200 by
//! default). A section's table stands in one file of docs/results between `<!-- prove:NAME -->` and
//! `<!-- /prove -->`, with the commit and the day on which it was measured.

mod a_a;
mod comparing;
mod curves;
mod detection;
mod few;
mod held_back;
mod kills;
mod memmap;
mod neighbours_planted;
mod network;
mod pauses;
mod peers;
mod regions;
mod regions_planted;
mod rows;
mod smt;
mod statistics;
mod sweep;
mod topology;
mod trend;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use prove::results;

/// One table, or a few that belong together.
pub struct Section {
    pub name: &'static str,
    pub title: &'static str,
    /// Measures, and gives markdown.
    pub run: fn() -> String,
}

const SECTIONS: &[&[Section]] = &[
    statistics::SECTIONS,
    comparing::SECTIONS,
    peers::SECTIONS,
    trend::SECTIONS,
    rows::SECTIONS,
    curves::SECTIONS,
    smt::SECTIONS,
    memmap::SECTIONS,
    regions::SECTIONS,
    regions_planted::SECTIONS,
    neighbours_planted::SECTIONS,
    network::SECTIONS,
    pauses::SECTIONS,
    sweep::SECTIONS,
    kills::SECTIONS,
    topology::SECTIONS,
    detection::SECTIONS,
    a_a::SECTIONS,
];

fn main() -> ExitCode {
    // Whatever starts with a dash but --list means nothing here.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sections = || SECTIONS.iter().flat_map(|sections| sections.iter());
    if arguments.iter().any(|argument| argument == "--list") {
        sections().for_each(|section| println!("{:20} {}", section.name, section.title));
        return ExitCode::SUCCESS;
    }
    let wanted = names(&arguments);
    if let Some(unknown) = wanted.iter().find(|name| sections().all(|section| section.name != **name)) {
        eprintln!("there is no section {unknown}; --list names them");
        return ExitCode::from(2);
    }
    let mut left_out = Vec::new();
    for section in
        sections().filter(|section| wanted.is_empty() || wanted.iter().any(|name| *name == section.name))
    {
        let started = Instant::now();
        let commit = results::commit();
        let table = (section.run)();
        let seconds = started.elapsed().as_secs_f64();
        println!("## {} ({seconds:.0} s)\n\n{table}", section.title);
        left_out
            .extend(results::write_table(&format!("prove:{}", section.name), &table, &commit, seconds).err());
    }
    if left_out.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!("{}", left_out.join("\n"));
        ExitCode::FAILURE
    }
}

/// The arguments that are neither options nor their values.
fn names(arguments: &[String]) -> Vec<&String> {
    let is_value = |place: usize| {
        place.checked_sub(1).is_some_and(|before| OPTIONS.contains(&arguments[before].as_str()))
    };
    let named = arguments
        .iter()
        .enumerate()
        .filter(|(place, argument)| !argument.starts_with('-') && !is_value(*place));
    named.map(|(_, argument)| argument).collect()
}

/// Options with a value, each `--NAME VALUE`.
const OPTIONS: [&str; 8] =
    ["--runs", "--only", "--budget", "--from", "--planted", "--hogs", "--kills", "--trials"];

/// The value of an option.
pub fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next().and_then(|_| arguments.next())
}

/// The results of `measure` for all cells, in their order, on all CPUs.
pub fn measured<C: Sync, R: Send>(cells: &[C], measure: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, cell)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    cells.get(index).map(|cell| (index, cell))
                } {
                    let result = measure(cell);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A markdown table.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(header.to_vec());
    text.push_str(&line(vec!["---"; header.len()]));
    rows.iter().for_each(|row| text.push_str(&line(row.iter().map(String::as_str).collect())));
    text
}

//! `make soak`: Assay is killed at random moments for twenty minutes, by every family of benchmarks
//! that leaves objects, amid files of a user's that look like ours. Nothing may be lost, nothing
//! left, and every run gone on with.
//!
//! `SOAK_SECONDS` says how long, `SOAK_SEED` repeats, `SOAK_FAMILY` and `SOAK_KILLS` narrow it down
//! to one bout.

mod bout;
mod decoys;
mod ground;
mod left;
mod scenes;
pub mod tally;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bout::Outcome;
use tally::{Soak, Tally};

const USUAL_SECONDS: u64 = 1200;

fn told<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Kills in bouts that have ended and in those that run, by family.
#[derive(Default)]
struct Course {
    begun: BTreeMap<&'static str, u64>,
    bouts: u64,
    kills: u64,
    faults: Vec<String>,
}

impl Course {
    /// The family whose turn it is; a cluster is not begun where hardly any time is left.
    fn next(&self, possible: &[(&'static str, u32)], left: Duration) -> &'static str {
        let share = |(family, weight): &(&'static str, u32)| {
            1000 * self.begun.get(family).copied().unwrap_or(0) / u64::from(*weight)
        };
        let short =
            |family: &str| family == "nexmark" && possible.len() > 1 && left < Duration::from_secs(240);
        let may = possible.iter().filter(|(family, _)| !short(family));
        may.min_by_key(|one| share(one)).expect("a family").0
    }
}

/// An IPC namespace for the calling thread and all that it starts, so that System V objects of
/// others are not taken for ours.
fn own_objects() {
    // SAFETY: no file system or file descriptors are shared anew; where it is refused nothing
    // changes.
    let _ = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWIPC) };
}

/// Kills until the time is over, in several lanes, and reports each bout.
fn soak(
    families: &[(&'static str, u32)],
    seconds: u64,
    seed: u64,
    lanes: usize,
    tell: impl Fn(&str, u64, &Outcome) -> Vec<String> + Sync,
) -> Course {
    let course = Mutex::new(Course::default());
    let locked = || course.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = Instant::now();
    let lane = || {
        own_objects();
        while begin.elapsed() < Duration::from_secs(seconds) {
            let (family, kills, own_seed) = {
                let mut course = locked();
                let family =
                    course.next(families, Duration::from_secs(seconds).saturating_sub(begin.elapsed()));
                let own_seed = seed.wrapping_mul(1_000_003).wrapping_add(course.bouts) & ((1 << 53) - 1);
                let kills = if family == "nexmark" { 4 } else { 1 + (own_seed % 3) as u32 };
                course.bouts += 1;
                *course.begun.entry(family).or_default() += u64::from(kills);
                (family, kills, own_seed)
            };
            let Some(outcome) = bout::fight(family, kills, own_seed) else { continue };
            let mut course = locked();
            course.kills += outcome.kills.len() as u64;
            let faults = tell(family, own_seed, &outcome);
            course.faults.extend(faults);
        }
    };
    std::thread::scope(|scope| (0..lanes).for_each(|_| drop(scope.spawn(lane))));
    course.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The families that can be had here, and why the others cannot.
fn possible() -> (Vec<(&'static str, u32)>, Vec<String>) {
    let (mut can, mut skipped) = (Vec::new(), scenes::partly());
    for (family, weight) in scenes::FAMILIES {
        match scenes::possible(family) {
            Ok(()) => can.push((family, weight)),
            Err(why) => skipped.push(format!("{family}: {why}")),
        }
    }
    (can, skipped)
}

#[test]
fn a_few_kills_lose_nothing_and_leave_nothing() {
    let families = [("ipc", 1), ("file", 1), ("guard", 1), ("sweep", 1)];
    let course =
        soak(&families, 6, 28, 2, |family, seed, outcome| Tally::default().add(family, seed, outcome));
    assert!(course.faults.is_empty(), "{}", course.faults.join("\n"));
    assert!(course.kills > 0, "nobody was killed");
}

#[test]
#[ignore = "twenty minutes of kills: make soak"]
fn kills() {
    let (mut families, skipped) = possible();
    let seed = told("SOAK_SEED").unwrap_or_else(|| fastrand::u64(..1 << 40));
    if let (Some(family), Some(kills)) = (told::<String>("SOAK_FAMILY"), told("SOAK_KILLS")) {
        own_objects();
        let outcome = bout::fight(&family, kills, seed).expect("nobody else needs what it needs");
        println!("{}\n{:#?}", outcome.shown, outcome.kills);
        assert!(outcome.faults.is_empty(), "{:#?}\nkept in {:?}", outcome.faults, outcome.folder);
        return;
    }
    if let Some(family) = told::<String>("SOAK_FAMILY") {
        families.retain(|(name, _)| *name == family);
    }
    let seconds = told("SOAK_SECONDS").unwrap_or(USUAL_SECONDS);
    let lanes = told("SOAK_LANES").unwrap_or(4);
    println!("seed {seed}, {seconds} s, {lanes} lanes");
    skipped.iter().for_each(|why| println!("skipped {why}"));
    let path = tally::kept();
    let tally = Mutex::new(Tally { skipped, ..Tally::load(&path) });
    let begin = Instant::now();
    let next_word = Mutex::new(60);
    let course = soak(&families, seconds, seed, lanes, |family, own_seed, outcome| {
        let mut tally = tally.lock().expect("no lane panicked");
        let faults = tally.add(family, own_seed, outcome);
        faults.iter().for_each(|line| println!("{line}"));
        let mut word = next_word.lock().expect("no lane panicked");
        if begin.elapsed().as_secs() >= *word {
            *word += 60;
            println!("{} s: {} kills of this commit", begin.elapsed().as_secs(), tally.total());
        }
        faults
    });
    let mut tally = tally.into_inner().expect("no lane panicked");
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    tally.soaks.push(Soak { date, seed, seconds: begin.elapsed().as_secs(), kills: course.kills });
    tally.save(&path);
    tally.publish();
    println!("\n{}\nkept in {}", tally.tables(), path.display());
    assert!(course.faults.is_empty(), "something was lost, left or not gone on with: see above");
    assert!(course.kills > 0, "nobody was killed");
}

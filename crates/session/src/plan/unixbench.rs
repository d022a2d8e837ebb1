//! The plan of the UnixBench index: the tests of each name, and their cases with the requested
//! numbers of copies.

use super::{Candidate, Scope};
use model::vocabulary::unixbench::param::COPIES;
use model::{Case, CpuSet, Seat, did_you_mean};
use stats::unixbench::{TESTS, Test};

/// Names of sets of tests, as `./Run` takes them. `index2` is the index of the published comparison
/// of a Xeon and an Atom.
const SETS: [(&str, &[&str]); 6] = [
    ("index", &[]),
    ("index2", &[]),
    (
        "system",
        &[
            "execl", "fstime", "fsbuffer", "fsdisk", "pipe", "context1", "spawn", "syscall", "shell1",
            "shell8",
        ],
    ),
    ("oldsystem", &["execl", "fstime", "fsbuffer", "fsdisk", "pipe", "context1", "spawn", "syscall"]),
    ("fs", &["fstime", "fsbuffer", "fsdisk"]),
    ("shell", &["shell1", "shell8"]),
];

/// Other names of single tests.
const ALSO: [(&str, &str); 3] = [("dhry", "dhry2reg"), ("dhrystone", "dhry2reg"), ("whets", "whetstone")];

/// The tests of these names, in the order of a report; all of them without names. An error lists
/// the names.
pub fn tests(names: &[String]) -> Result<Vec<&'static Test>, String> {
    let mut wanted: Vec<&str> = Vec::new();
    for name in names {
        let single = ALSO.iter().find(|(also, _)| also == name).map_or(name.as_str(), |(_, test)| *test);
        match (
            SETS.iter().find(|(set, _)| set == name),
            TESTS.iter().find(|test| test.run == single || test.name == single),
        ) {
            (Some((_, [])), _) => wanted.extend(TESTS.iter().map(|test| test.name)),
            (Some((_, set)), _) => wanted.extend(set.iter()),
            (None, Some(test)) => wanted.push(test.name),
            (None, None) => {
                let sets: Vec<&str> = SETS.iter().map(|(set, _)| *set).collect();
                let own: Vec<&str> = TESTS.iter().map(|test| test.run).collect();
                let meant = did_you_mean(name, own.iter().chain(&sets).copied());
                let (sets, own) = (sets.join(", "), own.join(", "));
                return Err(format!(
                    "no test of the UnixBench index is called {name:?}{meant}; tests are {own}; sets are {sets}"
                ));
            }
        }
    }
    Ok(TESTS.iter().filter(|test| names.is_empty() || wanted.contains(&test.name)).collect())
}

/// The default numbers of copies, as of `./Run`: one, and one for each usable CPU.
pub fn usual_copies(cpus: usize) -> Vec<u64> {
    if cpus > 1 { vec![1, cpus as u64] } else { vec![1] }
}

/// Every case with each number of copies: in the classic form, and context switching on one CPU and
/// on the two nearest ones. The cases of the first number's index are cut last.
pub fn with_copies(candidates: Vec<Candidate>, scope: &Scope, copies: &[u64]) -> Vec<Candidate> {
    let single = |one: &&Candidate| copies_of(&one.case) == 1;
    let single: Vec<&Candidate> = candidates.iter().filter(single).collect();
    let is_pair = |one: &Candidate| !["free", "same-cpu"].contains(&one.case.placement.name.as_ref());
    // Candidates offer pairs from the nearest on.
    let possible = single.iter().position(|one| is_pair(one) && one.unmet.is_none());
    let pair = possible.or_else(|| single.iter().position(|one| is_pair(one)));
    let wanted = |(at, one): &(usize, &Candidate)| !is_pair(one) || pair == Some(*at);
    let wanted: Vec<&Candidate> = single.into_iter().enumerate().filter(wanted).map(|(_, one)| one).collect();
    let of = |(place, copies): (usize, &u64)| -> Vec<Candidate> {
        let with_priority = |one: &&Candidate| {
            // The benchmark decides what its own numbers of copies need.
            let own = |other: &&Candidate| {
                let (case, other) = (&one.case, &other.case);
                (&case.bench, &case.placement.name) == (&other.bench, &other.placement.name)
                    && u64::try_from(copies_of(other)) == Ok(*copies)
            };
            let found = candidates.iter().find(own).map(same);
            Candidate {
                priority: priority(one, place),
                ..found.unwrap_or_else(|| several(one, scope, *copies))
            }
        };
        wanted.iter().map(with_priority).collect()
    };
    copies.iter().enumerate().flat_map(of).collect()
}

fn same(candidate: &Candidate) -> Candidate {
    let Candidate { priority, seconds, memory_bytes, .. } = *candidate;
    let (mut case, unmet) = (candidate.case.clone(), candidate.unmet.clone());
    if !case.params.contains_key(COPIES) {
        case.params.insert(COPIES, 1u64);
    }
    Candidate { case, priority, seconds, memory_bytes, unmet, with_last: false }
}

fn copies_of(case: &Case) -> i64 {
    case.params.get(COPIES).and_then(|copies| copies.int()).unwrap_or(1)
}

fn priority(candidate: &Candidate, place: usize) -> u32 {
    let form = match candidate.case.placement.name.as_ref() {
        "free" => 100,
        "same-cpu" => 92,
        _ => 84,
    };
    form - 4 * place.min(10) as u32
}

fn several(candidate: &Candidate, scope: &Scope, copies: u64) -> Candidate {
    let Candidate { seconds, memory_bytes, .. } = *candidate;
    let mut case = candidate.case.clone();
    case.params.insert(COPIES, copies);
    case.placement.seats =
        (0..copies as usize).flat_map(|copy| seats(&candidate.case, scope, copy)).collect();
    // Copies share the CPUs; if each is several tasks, from the second copy on.
    let shared = 1.0 + (copies - 1) as f64 / scope.placements.cpus().len().max(1) as f64;
    Candidate {
        case,
        priority: 0,
        seconds: seconds * shared,
        memory_bytes: memory_bytes.saturating_mul(copies),
        unmet: candidate.unmet.clone(),
        with_last: false,
    }
}

/// The seats of a copy: the first as the case says, pinned ones on their own CPUs while there are
/// some, equally far apart.
fn seats(case: &Case, scope: &Scope, copy: usize) -> Vec<Seat> {
    let placement = &case.placement;
    let cpus: Vec<u32> = scope.placements.cpus().iter().collect();
    let Some(first) = placement.seats.first().and_then(|seat| seat.cpus.first()).filter(|_| copy > 0) else {
        return placement.seats.clone();
    };
    let at = cpus.iter().position(|cpu| *cpu == first).unwrap_or(0);
    let around = |steps: usize| cpus[(at + steps) % cpus.len()];
    let own = around(copy);
    let pinned = |seat: &Seat, cpu: u32| Seat { cpus: CpuSet::one(cpu), ..seat.clone() };
    match placement.name.as_ref() {
        "free" => placement.seats.clone(),
        "same-cpu" => placement.seats.iter().map(|seat| pinned(seat, own)).collect(),
        name => {
            let others = (1..cpus.len()).map(|steps| around(copy + steps));
            let partner =
                others.into_iter().find(|other| scope.placements.distance(own, *other).name() == name);
            match (partner, placement.seats.as_slice()) {
                (Some(partner), [one, other]) => vec![pinned(one, own), pinned(other, partner)],
                _ => placement.seats.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::Depth;
    use bench::placement::Placements;
    use machine::{Core, Machine};

    fn named(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        tests(&names).map(|tests| tests.iter().map(|test| test.name).collect())
    }

    #[test]
    fn names_are_those_of_run() {
        assert_eq!(named(&[]).expect("all").len(), 12);
        assert_eq!(named(&["index2", "context1"]), named(&[]));
        assert_eq!(named(&["shell8", "context1"]).expect("both"), ["context1", "shell8"]);
        assert_eq!(named(&["whetstone-double", "dhry"]).expect("both"), ["dhry2reg", "whetstone"]);
        assert_eq!(named(&["system"]).expect("a set").len(), 10);
        let why = named(&["context2"]).expect_err("unknown");
        assert!(
            why.contains("\"context2\"") && why.contains("whetstone-double") && why.contains("index2"),
            "{why}"
        );
        let known = |name: &&str| TESTS.iter().any(|test| test.name == *name);
        assert!(SETS.iter().flat_map(|(_, set)| set.iter()).all(known));
        assert_eq!((usual_copies(1), usual_copies(4)), (vec![1], vec![1, 4]));
    }

    #[test]
    fn copies_have_seats_of_their_own() {
        let mut machine = Machine::default();
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        let cores = ["0,2", "1,3"].map(|cpus| Core { cpus: set(cpus), ..Core::default() });
        (machine.cpus.cores, machine.cpus.online) = (Some(cores.to_vec()), set("0-3"));
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Quick, 1 << 30);
        let offered = || {
            let mut all = vec![Candidate::new(
                model::vocabulary::unixbench::CONTEXT1,
                placements.free(&["a", "b"]).expect("free"),
                50,
                1.0,
            )];
            for (distance, placement) in placements.pairs(["a", "b"]) {
                all.push(match placement {
                    Ok(placement) => {
                        Candidate::new(model::vocabulary::unixbench::CONTEXT1, placement, 50, 1.0)
                    }
                    Err(why) => {
                        Candidate::unmet(model::vocabulary::unixbench::CONTEXT1, distance.name(), why)
                    }
                });
            }
            all
        };
        let all = with_copies(offered(), &scope, &[1, 3]);
        let keys: Vec<String> = all.iter().map(|one| one.case.key()).collect();
        let key = |place: &str, copies: u64| format!("unixbench.context1@{place}?copies={copies}");
        let places = ["free", "same-cpu", "smt-sibling"];
        assert_eq!(keys, [1, 3].map(|copies| places.map(|place| key(place, copies))).concat());
        let seats = |at: usize| -> Vec<String> {
            all[at].case.placement.seats.iter().map(|seat| seat.cpus.to_string()).collect()
        };
        assert_eq!(seats(3), ["0-3"; 6]);
        // From the quiet CPU on: 1, 2, 3, then 1 with 3, 2 with 0, 3 with 1.
        assert_eq!(seats(4), ["1", "1", "2", "2", "3", "3"]);
        assert_eq!(seats(5), ["1", "3", "2", "0", "3", "1"]);
        assert!(all[0].priority > all[3].priority && all[3].priority > all[4].priority);
        assert!(all[0].seconds < all[3].seconds);
    }
}

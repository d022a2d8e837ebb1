//! The plans of both SMT studies: work at rising load, and the table, with each case alone, with
//! the same work on the siblings, with a spinner there, and with SMT off.

use super::{Candidate, Scope};
use bench::MARGIN;
use bench::placement::second_threads;
use model::vocabulary::smt as ids;
use model::{Beside, Case, CpuSet, Pages, Placement, Value};

/// Load on the siblings of a case, and its estimated slowdown: neighbours mostly share a core.
const NEIGHBOUR_COSTS: [(Beside, f64); 2] = [(Beside::SameWork, 3.0), (Beside::Spinner, 1.5)];

/// The cases of rising load of these kinds of work (none: all), with the margin in percent.
pub fn load(candidates: Vec<Candidate>, kinds: &[String], margin: u8) -> Vec<Candidate> {
    let wanted = |candidate: &Candidate| {
        let kind = candidate.case.params.get(ids::param::KIND).and_then(Value::text);
        kinds.is_empty() || kind.is_some_and(|kind| kinds.iter().any(|wanted| wanted == kind))
    };
    let mut all: Vec<Candidate> = candidates.into_iter().filter(wanted).collect();
    all.iter_mut().for_each(|one| {
        one.case.inputs.insert(MARGIN.to_string(), margin.to_string());
    });
    all
}

/// Estimated time of all variants over that of the cases alone.
pub fn times() -> f64 {
    2.0 + NEIGHBOUR_COSTS.iter().map(|(_, cost)| cost).sum::<f64>()
}

/// Every pinned case in all variants, adjacent, so that a budget cuts them together. `no_switch`:
/// why SMT cannot be switched off here. Unpinned cases have no neighbour: only SMT on and off is
/// compared.
pub fn table(candidates: Vec<Candidate>, scope: &Scope, no_switch: Option<&str>) -> Vec<Candidate> {
    candidates.into_iter().flat_map(|candidate| variants(candidate, scope, no_switch)).collect()
}

fn variants(candidate: Candidate, scope: &Scope, no_switch: Option<&str>) -> Vec<Candidate> {
    if candidate.unmet.is_some() {
        return vec![candidate];
    }
    let placement = &candidate.case.placement;
    // Benchmarks with their own neighbours are left out.
    if placement.seats.is_empty() || placement.beside != Beside::Idle {
        return Vec::new();
    }
    if placement.is_free() {
        let off = switched_off(&candidate, scope, no_switch);
        return if off.unmet.is_none() { vec![candidate, off] } else { Vec::new() };
    }
    let mut all: Vec<Candidate> =
        NEIGHBOUR_COSTS.into_iter().map(|(beside, cost)| busy(&candidate, scope, beside, cost)).collect();
    all.push(switched_off(&candidate, scope, no_switch));
    all.insert(0, candidate);
    all
}

fn busy(candidate: &Candidate, scope: &Scope, beside: Beside, cost: f64) -> Candidate {
    match scope.placements.beside(scope.machine, &candidate.case.placement, beside) {
        Ok(placement) => {
            // Every rank of siblings has its own memory.
            let twins = placement.neighbours.iter().map(CpuSet::len).min().unwrap_or(0) as u64;
            let times = if beside == Beside::SameWork { 1 + twins } else { 1 };
            let case = Case { placement, ..candidate.case.clone() };
            Candidate {
                seconds: candidate.seconds * cost,
                memory_bytes: candidate.memory_bytes * times,
                ..with(candidate, case)
            }
        }
        Err(why) => {
            let mut case = impossible(&candidate.case);
            case.placement.beside = beside;
            Candidate { unmet: Some(why), ..with(candidate, case) }
        }
    }
}

fn switched_off(candidate: &Candidate, scope: &Scope, no_switch: Option<&str>) -> Candidate {
    let mut case = candidate.case.clone();
    let gone = second_threads(scope.machine).intersection(&case.placement.cpus());
    if case.placement.is_free() {
        // Unpinned among the CPUs that stay.
        case.placement.seats.iter_mut().for_each(|seat| seat.cpus = seat.cpus.difference(&gone));
    }
    let left_out =
        case.placement.seats.iter().any(|seat| !seat.cpus.is_disjoint(&gone) || seat.cpus.is_empty());
    let unmet = match no_switch {
        Some(why) => Some(why.to_string()),
        None if left_out => Some(format!("CPU {gone} goes offline with SMT")),
        None => None,
    };
    if unmet.is_some() {
        case = impossible(&case);
    }
    case.knobs.insert("smt".to_string(), "off".to_string());
    Candidate { unmet, ..with(candidate, case) }
}

fn with(candidate: &Candidate, case: Case) -> Candidate {
    let Candidate { priority, seconds, memory_bytes, .. } = *candidate;
    Candidate { case, priority, seconds, memory_bytes, unmet: None, with_last: false }
}

/// An impossible case has no seats.
fn impossible(case: &Case) -> Case {
    let name = case.placement.name.clone();
    let (pages, beside) = (Pages::default(), Beside::default());
    let placement = Placement { pages, beside, ..Placement::named(name) };
    Case { placement, ..case.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PROFILES, candidates, select};
    use bench::Depth;
    use bench::placement::Placements;
    use machine::{Core, Machine};

    fn planned(cores: &[&str], no_switch: Option<&str>) -> Vec<(String, Option<String>)> {
        let mut machine = Machine::default();
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        machine.cpus.cores =
            Some(cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() }).collect());
        machine.cpus.online = cores.iter().flat_map(|cpus| set(cpus).iter().collect::<Vec<u32>>()).collect();
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Quick, 1 << 30);
        let only = ["syscall.getpid", "ipc.pipe-pingpong"].map(str::to_string);
        let candidates = candidates(&scope, &select(&only, Depth::Quick).expect("both"));
        let all = table(candidates, &scope, no_switch);
        all.into_iter().map(|candidate| (candidate.case.key(), candidate.unmet)).collect()
    }

    fn unmet(plan: &[(String, Option<String>)], key: &str) -> Option<String> {
        let found = plan.iter().find(|(other, _)| other == key);
        found.unwrap_or_else(|| panic!("no {key} in {plan:?}")).1.clone()
    }

    /// Whatever the budget, a kind of work is measured alone and on both threads, or not at all.
    #[test]
    fn a_cut_budget_leaves_whole_kinds() {
        let mut machine = Machine::default();
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        let cores = ["0-1", "2-3", "4-5", "6-7"];
        machine.cpus.cores =
            Some(cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() }).collect());
        machine.cpus.online = (0..8).collect();
        let placements = Placements::of(&machine);
        let mut counts = Vec::new();
        for budget_s in 0..120 {
            let profile = crate::plan::Profile { budget_s: 5.0 * f64::from(budget_s), ..PROFILES[1] };
            let scope = Scope::new(&machine, &placements, profile.depth, 1 << 30);
            let row = bench::find(&ids::LOAD).expect("a row");
            let all = load(bench::smt_cases(row, &scope, bench::USUAL_LEVELS), &[], 20);
            let plan = crate::plan::fit(all, &scope, &profile);
            let kinds = |name: &str| -> Vec<String> {
                let own = plan.iter().filter(|one| one.unmet.is_none() && one.case.placement.name == name);
                let own =
                    own.filter_map(|one| one.case.params.get(ids::param::KIND)?.text().map(str::to_string));
                own.filter(|kind| kind != "loop").collect()
            };
            assert_eq!(kinds("one-cpu"), kinds("smt-sibling"), "{budget_s}");
            counts.push(kinds("one-cpu").len());
        }
        assert!(counts[0] == 0 && counts.contains(&3) && counts[119] == 7, "{counts:?}");
    }

    #[test]
    fn four_variants_of_each_pinned_case() {
        let plan = planned(&["0-1", "2-3"], None);
        let first: Vec<&str> = plan.iter().take(4).map(|(key, _)| key.as_str()).collect();
        let variants = ["", "+beside-same-work", "+beside-spinner", "!smt=off"];
        assert_eq!(first, variants.map(|variant| format!("syscall.getpid@one-cpu{variant}")));
        assert!(plan.iter().take(4).all(|(_, unmet)| unmet.is_none()));
        let free: Vec<&(String, Option<String>)> =
            plan.iter().filter(|(key, _)| key.contains("@free")).collect();
        let keys: Vec<&str> = free.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["ipc.pipe-pingpong@free", "ipc.pipe-pingpong@free!smt=off"]);
        assert!(free.iter().all(|(_, unmet)| unmet.is_none()), "{free:?}");
        let siblings = "ipc.pipe-pingpong@smt-sibling";
        assert_eq!(unmet(&plan, siblings), None);
        assert!(unmet(&plan, &format!("{siblings}!smt=off")).is_some_and(|why| why.contains("goes offline")));
        assert!(
            unmet(&plan, &format!("{siblings}+beside-spinner"))
                .is_some_and(|why| why.contains("runs a task of the benchmark"))
        );
    }

    #[test]
    fn without_smt_the_neighbour_core_and_no_switch() {
        let plan = planned(&["0", "1"], Some("this machine has no SMT"));
        assert_eq!(unmet(&plan, "syscall.getpid@one-cpu+beside-same-work"), None);
        let off = unmet(&plan, "syscall.getpid@one-cpu!smt=off");
        assert_eq!(off.as_deref(), Some("this machine has no SMT"));
        assert!(plan.iter().all(|(key, _)| !key.contains("@free")), "{plan:?}");
    }
}

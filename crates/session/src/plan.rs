//! From a host and a request to an ordered list of visits: what is measured, how often, in which
//! order, and what the budget cuts.

use std::collections::BTreeSet;

use anyhow::bail;

use bench::{self, Benchmark, Candidate, Depth, Scope, Windows};
use model::vocabulary::core_bound;
use model::{Beside, Case, Planned, did_you_mean, fingerprint};
use stats::guarded::GUARDED;
use stats::interleave::latin_order;

pub mod factors;
pub mod guard;
pub mod smt;
pub mod sweep;
pub mod unixbench;

/// How much to measure, how precisely, for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    pub name: &'static str,
    pub about: &'static str,
    pub depth: Depth,
    /// Seconds for measuring: the whole run, or each group of benchmarks.
    pub budget_s: f64,
    pub budget_per_group: bool,
    /// Relative half-width of the 99 % interval of the median at which a series is precise enough.
    pub precision: f64,
    /// Passes of every case, if the budget allows.
    pub passes_min: u32,
    pub passes_max: u32,
    pub until: Until,
    pub windows: Windows,
}

/// Time for measuring in 90 s, after the gate, planning and the report.
const QUICK_S: f64 = 85.0;

/// When a case gets no more visits after its first passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// In every pass until the stop rule is met (`stats::stop`).
    Looks,
    /// In rounds of the cases that gain most (`stats::spend`): for runs whose cases are judged
    /// separately.
    Rounds,
    /// All cells of a sweep in every pass, until the requested effect is detectable
    /// (`stats::sweep::detectable_effect`).
    Seen,
    /// Two alternating commands, until their quads are precise enough (`stats::quads`).
    Quads,
}

pub const PROFILES: [Profile; 3] = [
    Profile {
        name: "quick",
        about: "the essentials in 90 s",
        depth: Depth::Quick,
        budget_s: QUICK_S,
        budget_per_group: false,
        precision: 0.03,
        passes_min: Depth::Quick.passes_min(),
        passes_max: 20,
        until: Until::Looks,
        windows: Depth::Quick.windows(),
    },
    Profile {
        name: "standard",
        about: "the full set of figures in 10 minutes",
        depth: Depth::Standard,
        budget_s: 570.0,
        budget_per_group: false,
        precision: 0.01,
        passes_min: Depth::Standard.passes_min(),
        passes_max: 56,
        until: Until::Looks,
        windows: Depth::Standard.windows(),
    },
    Profile {
        name: "full",
        about: "all sizes and depths, 10 minutes per group",
        depth: Depth::Full,
        budget_s: 570.0,
        budget_per_group: true,
        precision: 0.01,
        passes_min: Depth::Full.passes_min(),
        passes_max: 80,
        until: Until::Looks,
        windows: Depth::Full.windows(),
    },
];

pub fn profile(name: &str) -> Option<Profile> {
    PROFILES.into_iter().find(|profile| profile.name == name)
}

/// Longer visits, s, are planned once: an interval of them would take hours, and the remaining
/// budget gives more passes anyway.
const LONG_VISIT_S: f64 = 30.0;

/// Windows of core-bound cases in a quick run's rounds.
pub(crate) const QUICK_CORE_WINDOWS: usize = 9;
/// Most processes of a case in a quick run's rounds.
const MAX_QUICK_ROUNDS: u32 = 30;

impl Profile {
    /// For a run whose cases are judged separately: rounds after the first passes, of which a quick
    /// run has enough for an interval.
    pub fn in_rounds(mut self) -> Profile {
        self.until = Until::Rounds;
        if self.depth == Depth::Quick {
            self.passes_min = *GUARDED.start() as u32;
            self.passes_max = MAX_QUICK_ROUNDS;
        }
        self
    }

    /// With this budget for all groups together.
    pub fn within(self, budget_s: f64) -> Profile {
        Profile { budget_s, budget_per_group: false, ..self }
    }

    /// Planned seconds of a case with visits of `visit_s`.
    pub fn seconds_of(&self, visit_s: f64) -> f64 {
        if visit_s > LONG_VISIT_S { visit_s } else { visit_s * f64::from(self.passes_min) }
    }

    /// The windows of a case. Processes of a core-bound benchmark hardly differ in cycles on a
    /// quiet host (0 to 1 %), but their windows do (2.6 % on a recorded guest): so a quick run has
    /// more windows.
    pub fn windows_of(&self, case: &Case) -> Windows {
        let timed = bench::find(&case.bench).is_some_and(|bench| {
            let mut headline = bench.metrics.iter().filter(|metric| metric.headline);
            bench.group() != "memory" && headline.all(|metric| core_bound(bench.id.as_str(), &metric.name))
        });
        let alone = case.placement.cpus().len() == 1 && case.placement.beside == Beside::Idle;
        if self.until == Until::Rounds && self.depth == Depth::Quick && timed && alone {
            Windows { count: QUICK_CORE_WINDOWS, ..self.windows }
        } else {
            self.windows
        }
    }

    /// With the own budget of these benchmarks, if none is named and all have one.
    pub fn with_own_budget(mut self, benches: &[&Benchmark]) -> Profile {
        let own: Option<Vec<f64>> = benches.iter().map(|bench| bench.budget_s).collect();
        if let Some(longest) = own.and_then(|own| own.into_iter().reduce(f64::max))
            && !self.budget_per_group
        {
            self.budget_s = longest;
        }
        self
    }

    /// With the budget for a run of `benches`.
    pub fn for_run_of(mut self, benches: &[&Benchmark]) -> Profile {
        if self.budget_per_group {
            let groups: BTreeSet<&str> = benches.iter().map(|bench| bench.group()).collect();
            self.budget_s *= groups.len() as f64;
            self.budget_per_group = false;
        }
        self
    }
}

/// Share of the free memory that a visit may touch: the rest is for all others.
const MEMORY_SHARE: f64 = 0.7;
/// Memory of the parent and the child, bytes.
const RESERVED_MEMORY: u64 = 24 << 20;
/// Limits of the quick and the standard profile, bytes: only the full profile goes beyond any
/// last-level cache.
const QUICK_MEMORY: u64 = 256 << 20;
const STANDARD_MEMORY: u64 = 1 << 30;
/// If the kernel does not report free memory, bytes.
const DEFAULT_MEMORY: u64 = 256 << 20;

/// Memory that one visit may touch on this host now, bytes: by `MemAvailable` and the cgroup's
/// limit.
pub fn memory_budget(machine: &machine::Machine, depth: Depth) -> u64 {
    let limits = &machine.limits;
    let in_cgroup =
        limits.memory_bytes.map(|limit| limit.saturating_sub(limits.memory_used_bytes.unwrap_or(0)));
    let free = [machine.memory.available_bytes, in_cgroup].into_iter().flatten().min();
    let usable = match free {
        Some(free) => (free.saturating_sub(RESERVED_MEMORY) as f64 * MEMORY_SHARE) as u64,
        None => DEFAULT_MEMORY,
    };
    match depth {
        Depth::Quick => usable.min(QUICK_MEMORY),
        Depth::Standard => usable.min(STANDARD_MEMORY),
        Depth::Full => usable,
    }
}

/// The benchmarks that `--only` names: `group`, `group.name` or a prefix (hidden ones by full name
/// only). Empty: all that are not hidden. Unless a benchmark is named by its dot, only those of
/// this profile's depth, or all of a group without any.
pub fn select(only: &[String], depth: Depth) -> anyhow::Result<Vec<&'static Benchmark>> {
    let named = |bench: &Benchmark, wish: &str| {
        let begins = || bench.id.strip_prefix(wish).is_some_and(|rest| !rest.is_empty() && !bench.hidden);
        bench.group() == wish || bench.id == wish || begins()
    };
    let only: Vec<&str> = only.iter().map(String::as_str).filter(|wish| !wish.is_empty()).collect();
    if let Some(wish) = only.iter().copied().find(|wish| !bench::all().any(|bench| named(bench, wish))) {
        let mut groups: Vec<&str> = shown().map(Benchmark::group).collect();
        groups.dedup();
        let names = groups.iter().copied().chain(shown().map(|bench| bench.id.as_str()));
        bail!(
            "no benchmark is called {wish:?}{}; groups are {}, and `assay list` shows their benchmarks",
            did_you_mean(wish, names),
            groups.join(", ")
        );
    }
    let in_time = |bench: &Benchmark| bench.from <= depth;
    let late = |wish: &str| !bench::all().any(|bench| named(bench, wish) && in_time(bench));
    let wanted = |bench: &&Benchmark| match only.as_slice() {
        [] => !bench.hidden && in_time(bench),
        only => only.iter().any(|wish| {
            named(bench, wish)
                && (in_time(bench) || wish.contains('.') || (bench.group() == *wish && late(wish)))
        }),
    };
    Ok(bench::all().filter(wanted).collect())
}

/// The benchmarks that are not hidden.
pub fn shown() -> impl Iterator<Item = &'static Benchmark> {
    bench::all().filter(|bench| !bench.hidden)
}

/// What each benchmark could measure on this host.
pub fn candidates(scope: &Scope, benches: &[&Benchmark]) -> Vec<Candidate> {
    benches.iter().flat_map(|bench| (bench.cases)(bench, scope)).collect()
}

/// The plan of these benchmarks.
pub fn make(scope: &Scope, benches: &[&Benchmark], profile: &Profile) -> Vec<Planned> {
    fit(candidates(scope, benches), scope, profile)
}

/// Cuts candidates to memory and budget, the least important first, and groups as a whole. Those
/// that are cut or impossible stay in the plan, with the reason.
pub fn fit(candidates: Vec<Candidate>, scope: &Scope, profile: &Profile) -> Vec<Planned> {
    let with_last: Vec<bool> = candidates.iter().map(|candidate| candidate.with_last).collect();
    let mut planned: Vec<Planned> = candidates.into_iter().map(|candidate| admit(candidate, scope)).collect();
    let mut by_priority: Vec<usize> = (0..planned.len()).collect();
    by_priority.sort_by_key(|index| std::cmp::Reverse(planned[*index].priority));
    let mut left_s = profile.budget_s;
    let mut first = true;
    for together in by_priority.chunk_by(|_, next| with_last[*next]) {
        let runnable: Vec<usize> =
            together.iter().copied().filter(|index| planned[*index].unmet.is_none()).collect();
        if runnable.is_empty() {
            continue;
        }
        let needs_s: f64 = runnable.iter().map(|index| profile.seconds_of(planned[*index].seconds)).sum();
        // The most important case runs with any budget: the clock ends it.
        if needs_s > left_s && !first {
            for index in runnable {
                let left_s = left_s.max(0.0);
                planned[index].unmet =
                    Some(format!("budget: no time was left ({left_s:.1} s of {:.0} s)", profile.budget_s));
            }
            continue;
        }
        first = false;
        left_s -= needs_s;
    }
    planned
}

fn admit(candidate: Candidate, scope: &Scope) -> Planned {
    let Candidate { case, priority, seconds, memory_bytes, unmet, with_last: _ } = candidate;
    let unmet = unmet.or_else(|| {
        (memory_bytes > scope.memory_bytes).then(|| {
            format!("memory: needs {} MiB, {} MiB may be used", memory_bytes >> 20, scope.memory_bytes >> 20)
        })
    });
    Planned { case, priority, seconds, memory_bytes, unmet }
}

/// Input that names the points of a case, if they can be chosen.
const POINTS: &str = "points";

/// Equal for equal cases in equal order. Sizes that depend on free memory do not count: a resumed
/// run uses the plan of its file.
pub fn plan_id(planned: &[Planned], profile: &Profile) -> String {
    let mut text = format!("{} {} {:?}", profile.name, profile.precision, profile.windows);
    for case in planned {
        text.push('\n');
        text.push_str(&case.case.key());
        // Points that the user named do not depend on free memory.
        text.extend(case.case.inputs.get(POINTS).map(|points| format!(" {points}")));
    }
    format!("{:016x}", fingerprint(&text))
}

/// The order of runnable cases in each pass: two alternate ABBA or BAAB, more follow random cyclic
/// Latin squares, so that drift affects all alike.
pub fn orders(runnable: &[usize], passes: u32, seed: u64) -> Vec<Vec<usize>> {
    let orders = latin_order(runnable.len(), passes as usize, seed);
    orders.into_iter().map(|order| order.into_iter().map(|index| runnable[index]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::placement::Placements;
    use machine::Machine;

    fn plan(budget_s: f64, memory_bytes: u64) -> Vec<Planned> {
        let mut machine = Machine::default();
        machine.cpus.online = (0..2).collect();
        let profile = Profile { budget_s, ..PROFILES[0] };
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, profile.depth, memory_bytes);
        make(&scope, &select(&[], profile.depth).expect("all"), &profile)
    }

    #[test]
    fn a_small_budget_keeps_the_most_important_and_says_what_it_cut() {
        let all = plan(1e6, 1 << 30);
        assert!(all.iter().all(|case| case.unmet.as_ref().is_none_or(|why| !why.contains("budget"))));
        let few = plan(2.0, 1 << 30);
        let kept: Vec<u32> =
            few.iter().filter(|case| case.unmet.is_none()).map(|case| case.priority).collect();
        assert!(!kept.is_empty() && kept.len() < all.len());
        assert!(few.iter().any(|case| case.unmet.as_ref().is_some_and(|why| why.contains("budget"))));
        assert!(plan(0.0, 1 << 30).iter().filter(|case| case.unmet.is_none()).count() == 1);
    }

    #[test]
    fn little_memory_shrinks_blocks_and_never_exceeds() {
        for memory in [1 << 20, 8 << 20, 40 << 20, 1 << 30] {
            for case in plan(1e6, memory).iter().filter(|case| case.unmet.is_none()) {
                assert!(case.memory_bytes <= memory, "{} of {memory}", case.memory_bytes);
            }
        }
    }

    #[test]
    fn the_full_profile_has_its_time_for_each_group() {
        let budget = |only: &str, profile: usize| {
            let benches = select(&[only.to_string()], Depth::Full).expect("a group");
            PROFILES[profile].for_run_of(&benches).budget_s
        };
        assert_eq!(budget("memory", 2), PROFILES[2].budget_s);
        assert!(budget("", 2) >= 3.0 * PROFILES[2].budget_s);
        assert_eq!(budget("", 1), PROFILES[1].budget_s);
    }

    #[test]
    fn long_visits_are_planned_for_once_and_rows_may_have_their_own_budget() {
        let standard = PROFILES[1];
        assert_eq!((standard.seconds_of(2.0), standard.seconds_of(100.0)), (20.0, 100.0));
        let rows = |only: &str| select(&[only.to_string()], Depth::Standard).expect("a group");
        let nexmark = rows("nexmark");
        assert_eq!(
            nexmark.len(),
            7,
            "a group that is named is measured although no profile below full has it"
        );
        assert!(standard.with_own_budget(&nexmark).budget_s < 300.0);
        assert_eq!(standard.with_own_budget(&rows("memory")).budget_s, standard.budget_s);
        let both: Vec<&Benchmark> = [nexmark, rows("memory")].concat();
        assert_eq!(standard.with_own_budget(&both).budget_s, standard.budget_s);
        assert!(select(&[], Depth::Standard).expect("all").iter().all(|bench| bench.group() != "nexmark"));
        assert_eq!(PROFILES[2].with_own_budget(&rows("nexmark")).budget_s, PROFILES[2].budget_s);
    }

    #[test]
    fn orders_hold_all_cases_and_repeat_for_a_seed() {
        assert_eq!(orders(&[3, 5, 7], 4, 9), orders(&[3, 5, 7], 4, 9));
        for order in orders(&[3, 5, 7], 40, 9) {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [3, 5, 7], "{order:?}");
        }
        assert_eq!(orders(&[], 3, 1), vec![Vec::<usize>::new(); 3]);
    }

    #[test]
    fn only_takes_groups_and_beginnings() {
        let ids = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|wish| wish.to_string()).collect();
            select(&only, Depth::Quick)
                .map(|benches| benches.iter().map(|bench| bench.id.as_str()).collect())
                .unwrap_or_default()
        };
        assert_eq!(ids(&["ipc.pipe-p"]), ["ipc.pipe-pingpong"]);
        assert!(ids(&["ipc.pipe"]).starts_with(&["ipc.pipe-pingpong", "ipc.pipe-work", "ipc.pipe"]));
        assert!(ids(&["memory"]).len() >= 2);
        assert_eq!(ids(&["mem"]), ids(&["memory", ""]));
        assert!(!ids(&[]).contains(&"memory.tlb") && !ids(&["memory"]).contains(&"memory.tlb"));
        assert_eq!(ids(&["memory.tlb"]), ["memory.tlb"], "what is named is measured in any profile");
        assert!(ids(&["nothing"]).is_empty() && ids(&["selftest.st"]).is_empty());
        assert_eq!(ids(&["selftest.steady"]), ["selftest.steady"]);
    }

    #[test]
    fn what_takes_too_long_is_cut_with_a_reason() {
        let mut machine = Machine::default();
        machine.cpus.online = (0..512).collect();
        machine.cpus.allowed = (0..512).collect();
        let placements = Placements::of(&machine);
        let profile = PROFILES[1];
        let scope = Scope { all: true, ..Scope::new(&machine, &placements, profile.depth, 8 << 30) };
        let benches =
            ["memory.latency", "memory.core-to-core"].map(|id| bench::find(id).expect("a benchmark"));
        let planned = make(&scope, &benches, &profile);
        let cut =
            planned.iter().find(|planned| planned.case.bench == "memory.core-to-core").expect("planned");
        assert!(cut.unmet.as_ref().is_some_and(|why| why.contains("budget")), "{:?}", cut.unmet);
    }
}

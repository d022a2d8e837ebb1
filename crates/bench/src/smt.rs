//! Fixed work at rising load, by one thread of a core, by both, by separate cores: what CPU% says
//! of it, and what is left.

use super::{Benchmark, Candidate, Depth, Param, Sampler, Scope, check_answer, point};
use crate::placement::Distance;
use crate::row::{curve, note, quantile_us, value};
use model::vocabulary::MetricId;
use model::vocabulary::smt as ids;
use model::{Better, Case, Form, Metric, Params, Placement, Value};
use sys::core_counters::CoreCounters;
use sys::counters::{CpuTime, CpuTimes, ticks_per_second};

mod crew;
mod kinds;

use crew::{Crew, LevelResult};
pub use kinds::Kind;

pub const NO_IPC: &str = "no_ipc";
/// The input that says which percent of the capacity is to be kept free.
pub const MARGIN: &str = "margin";

/// Steps of load: in the usual study, and in a fine one.
pub const USUAL_LEVELS: u64 = 7;
pub const FINE_LEVELS: u64 = 20;

/// The input that says how long a level takes, ms; and the one that has the heaviest level only.
const WINDOW_MS: &str = "window_ms";
const FULL_ONLY: &str = "full_load_only";

const fn quantile(name: MetricId, title: &'static str, q: f64) -> Metric {
    quantile_us(name, title, q).aside()
}

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::LOAD,
    title: "Work at rising load",
    about: "How much work one thread of a core, both threads, and separate cores do at rising load, and what CPU% \
            shows meanwhile.",
    reading: "Twice the tasks on separate cores do twice the work. Two threads of one core do only 1–2 × the work of \
              one, while CPU% counts two full CPUs. At CPU% 50 the work can less than double. `attainment` is work \
              for each percent of CPU; it is flat if CPU% is right. IPC needs the CPU's counters; `per_busy` is work \
              per second of CPU time.",
    method: "Each task does a fixed number of requests, each 200 µs of work when alone, and sleeps in between. At \
             level k of n a lone task is busy k/n of the time; at the last it never sleeps. Sleeps are equal in all \
             placements. Levels come in random order, and early tasks continue until all are done. Kinds: `loop` is \
             L1 loads and scalar arithmetic with high IPC; `integer` register additions; `branchy` unpredictable \
             branches. `float` and `vector` are floating point, `chase` dependent cache misses, `stream` a triad \
             beyond the caches. `mixed` alternates all but the last. CPU% comes from idle time in /proc/stat for the \
             tasks' CPUs (100 is one CPU). `cpu_ticks` adds it up as top does; kernels that sample at ticks get \
             timer-driven work wrong. Every answer is checked.",
    source: file!(),
    metrics: &[
        Metric::new(
            ids::metric::PERFORMANCE,
            "work done",
            "M/s",
            Better::Higher,
            // Work is in operations: operations / ns are thousands of millions a second.
            Form::WorkPerTime { scale: 1e3 },
        ),
        note(ids::metric::CPU, "CPU% from idle time, CPUs together", "%"),
        note(ids::metric::CPU_TICKS, "CPU% as top adds it up, CPUs together", "%"),
        value(ids::metric::ATTAINMENT, "work for each % of CPU", "M/s", Better::Higher),
        value(ids::metric::WALL, "time for the fixed work", "s", Better::Lower),
        quantile(ids::metric::P50, "request time, median", 0.5),
        quantile(ids::metric::P99, "request time, 99th percentile", 0.99),
        value(ids::metric::PER_BUSY, "work per second of CPU time", "M/s", Better::Higher),
        note(ids::metric::TASK_CPU, "CPU time of the tasks", "%"),
        note(ids::metric::BUSY_ONE, "time with one of two CPUs busy", "%"),
        note(ids::metric::BUSY_BOTH, "time with both CPUs busy", "%"),
        note(ids::metric::CPU_FIRST, "CPU% of the first CPU", "%"),
        note(ids::metric::CPU_SECOND, "CPU% of the second CPU", "%"),
        value(ids::metric::IPC, "instructions per cycle", "", Better::Higher),
        value(ids::metric::CLOCK, "core clock under this load", "GHz", Better::Higher),
    ],
    params: &[
        Param::choice(ids::param::KIND, "kind of work", Kind::NAMES),
        Param::int(ids::param::LEVELS, "steps of load", 2..=100),
        Param::int(ids::param::LEVEL, "step of load; the last is full load", 1..=100),
    ],
    view: &curve(ids::param::LEVEL),
    from: Depth::Full,
    cases: |bench, scope| cases(bench, scope, USUAL_LEVELS),
    points,
    run,
    ..Benchmark::PINNED
}];

/// A request alone, ns.
pub const REQUEST_NS: f64 = 200e3;

/// The cases of a study with this many levels.
pub fn cases(bench: &Benchmark, scope: &Scope, levels: u64) -> Vec<Candidate> {
    let (window_s, others_s) = match scope.depth {
        Depth::Quick => (0.3, 0.2),
        Depth::Standard => (0.6, 0.4),
        Depth::Full => (1.0, 1.0),
    };
    let no_ipc = CoreCounters::refusal();
    let planned = |kind: Kind, placement: Placement, priority: u32| {
        let every = kind == Kind::Loop || scope.depth == Depth::Full;
        let (steps, window_s) = if every { (levels, window_s) } else { (1, others_s) };
        let seats = placement.seats.len() as u64;
        // Siblings at full load take up to twice as long as one alone.
        let share =
            if placement.name == Distance::SmtSibling.name() || placement.name == "all" { 1.5 } else { 1.1 };
        let seconds = 0.1 + kind.setup_s() + steps as f64 * window_s * share;
        let mut candidate = Candidate::new(bench.id, placement, priority, seconds)
            .memory(seats * kind.bytes())
            .param(ids::param::KIND, kind.name())
            .param(ids::param::LEVELS, levels);
        let inputs = &mut candidate.case.inputs;
        inputs.insert(WINDOW_MS.into(), format!("{:.0}", window_s * 1e3));
        if !every {
            inputs.insert(FULL_ONLY.into(), "yes".into());
        }
        if let Some(why) = &no_ipc {
            inputs.insert(NO_IPC.into(), why.clone());
        }
        candidate
    };
    let mut all = Vec::new();
    let mut pair = None;
    for (at, (placement, priority)) in placements(scope).into_iter().enumerate() {
        match placement {
            Ok(placement) => {
                // What one thread more gives: a sibling, and without SMT the next core.
                if at > 0 && pair.is_none() {
                    pair = Some(placement.clone());
                }
                all.push(planned(Kind::Loop, placement, priority));
            }
            Err((name, why)) => {
                all.push(
                    Candidate::unmet(bench.id, name, why)
                        .param(ids::param::KIND, Kind::Loop.name())
                        .param(ids::param::LEVELS, levels),
                );
            }
        }
    }
    // A kind of work alone and on the pair, or not at all.
    if let (Ok(one), Some(pair)) = (scope.placements.one_cpu("task"), pair) {
        for kind in OTHERS {
            all.push(planned(kind, one.clone(), OTHERS_PRIORITY));
            all.push(Candidate { with_last: true, ..planned(kind, pair.clone(), OTHERS_PRIORITY) });
        }
    }
    all
}

/// The kinds other than `loop`. Those that gain most and least by a second thread come first, so
/// that a small budget still shows the range.
const OTHERS: [Kind; 7] =
    [Kind::Chase, Kind::Stream, Kind::Integer, Kind::Float, Kind::Mixed, Kind::Vector, Kind::Branchy];
/// After the whole host and the nearest two cores, before distant cores.
const OTHERS_PRIORITY: u32 = 83;

/// A placement with its priority; or its name, and why this host lacks it.
type Place = (Result<Placement, (&'static str, String)>, u32);

/// One thread, its sibling too, two cores next to each other and two far apart, all cores, all
/// threads.
fn placements(scope: &Scope) -> Vec<Place> {
    let placements = scope.placements;
    let mut all = vec![(placements.one_cpu("task").map_err(|why| ("one-cpu", why)), 90)];
    let (mut siblings, mut apart) = (None, Vec::new());
    for (distance, pair) in placements.pairs(["task"; 2]) {
        match (distance, pair) {
            (Distance::SameCpu, _) => {}
            (Distance::SmtSibling, pair) => siblings = Some(pair.map_err(|why| (distance.name(), why))),
            (_, pair) => apart.extend(pair.ok()),
        }
    }
    let has_smt = siblings.as_ref().is_some_and(|pair| pair.is_ok());
    all.extend(siblings.map(|pair| (pair, 88)));
    let far = if apart.len() > 1 { apart.pop() } else { None };
    let near = if apart.is_empty() { None } else { Some(apart.swap_remove(0)) };
    let whole = placements.all("task");
    let same_as_pair = |placement: &Placement| {
        let pairs = all.iter().filter_map(|(pair, _)| pair.as_ref().ok()).chain(&near);
        pairs.map(|pair| pair.cpus()).any(|cpus| cpus == placement.cpus())
    };
    let everybody = |placement: Placement| match same_as_pair(&placement) || placement.seats.len() < 2 {
        true => Err((name_of(&placement), "the same CPUs as a pair above".to_string())),
        false => Ok(placement),
    };
    let mut rest = Vec::new();
    if has_smt {
        rest.push((everybody(placements.one_per_core("task")), 82));
    }
    rest.push((everybody(whole), 84));
    let one_core = || ("same-llc", "needs two usable cores".to_string());
    all.push((near.ok_or_else(one_core), 86));
    all.extend(far.map(|far| (Ok(far), 80)));
    all.extend(rest);
    all
}

fn name_of(placement: &Placement) -> &'static str {
    if placement.name == "all" { "all" } else { "one-per-core" }
}

fn levels_of(case: &Case) -> u64 {
    case.params
        .get(ids::param::LEVELS)
        .and_then(Value::int)
        .and_then(|n| u64::try_from(n).ok())
        .unwrap_or(USUAL_LEVELS)
}

fn points(case: &Case) -> Vec<Params> {
    let last = levels_of(case);
    let first = if case.inputs.contains_key(FULL_ONLY) { last } else { 1 };
    (first..=last).map(|level| point(ids::param::LEVEL, level)).collect()
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let name = case.params.get(ids::param::KIND).and_then(Value::text).unwrap_or_default();
    let kind = Kind::named(name).ok_or_else(|| anyhow::anyhow!("unknown kind of work {name:?}"))?;
    let window_ms = case.inputs.get(WINDOW_MS).and_then(|text| text.parse::<f64>().ok()).unwrap_or(300.0);
    let levels = levels_of(case);
    let mut times = CpuTimes::open(std::path::Path::new("/"));
    let mut crew = Crew::start(case, kind, (levels, window_ms * 1e6), sampler.clock())?;
    let mut order: Vec<Params> = points(case);
    fastrand::Rng::with_seed(sampler.seed()).shuffle(&mut order);
    for at in order {
        let level = at.get(ids::param::LEVEL).and_then(Value::int).unwrap_or(1) as u64;
        let (before, begin) = (times.of_each_cpu(), sampler.clock().now());
        let seen = crew.work(level)?;
        let (after, end) = (times.of_each_cpu(), sampler.clock().now());
        check_answer(seen.right, || format!("a request of kind {} gave a wrong answer", kind.name()))?;
        let cpus = case.placement.cpus();
        let busy: Option<Vec<Busy>> =
            cpus.iter().map(|cpu| Busy::of(cpu, (&before, &after), end - begin)).collect();
        emit(sampler, at, &seen, busy.as_deref(), kind)?;
    }
    Ok(())
}

/// A CPU over a level, percent.
struct Busy {
    /// What idle time and the hypervisor leave.
    left: f64,
    /// As `top` adds it up.
    ticks: f64,
}

impl Busy {
    fn of(cpu: u32, (before, after): (&[CpuTime], &[CpuTime]), ns: f64) -> Option<Busy> {
        let of = |times: &[CpuTime]| times.iter().find(|time| time.cpu == cpu).copied();
        let (before, after) = (of(before)?, of(after)?);
        let all = after.all().checked_sub(before.all()).filter(|all| *all > 0)?;
        let busy = after.busy.saturating_sub(before.busy);
        let rest = (after.idle + after.steal).saturating_sub(before.idle + before.steal);
        let rest_ns = rest as f64 / ticks_per_second() * 1e9;
        Some(Busy {
            left: 100.0 * (1.0 - rest_ns / ns).clamp(0.0, 1.0),
            ticks: 100.0 * busy as f64 / all as f64,
        })
    }
}

fn emit(
    sampler: &mut Sampler,
    at: Params,
    seen: &LevelResult,
    busy: Option<&[Busy]>,
    kind: Kind,
) -> anyhow::Result<()> {
    let ns = seen.wall_ns;
    let operations = seen.rounds_per_ns * kind.operations() as f64;
    let performance = operations * 1e3;
    sampler.windows_timed(at.clone(), ids::metric::PERFORMANCE, (vec![operations * ns], vec![ns]), 0)?;
    sampler.histogram_at(at.clone(), &[ids::metric::P50, ids::metric::P99], seen.latencies(), ns)?;
    let sum = |of: fn(&Busy) -> f64| busy.map(|busy| busy.iter().map(of).sum::<f64>());
    let cpu = sum(|busy| busy.left);
    let pair = busy.filter(|busy| busy.len() == 2);
    let values = [
        (ids::metric::CPU, cpu),
        (ids::metric::CPU_TICKS, sum(|busy| busy.ticks)),
        (ids::metric::ATTAINMENT, cpu.filter(|cpu| *cpu > 0.0).map(|cpu| performance / cpu)),
        (ids::metric::WALL, Some(ns / 1e9)),
        (ids::metric::PER_BUSY, Some(performance / seen.cpus_used)),
        (ids::metric::TASK_CPU, Some(seen.cpus_used * 100.0)),
        (ids::metric::BUSY_ONE, seen.overlap.map(|(one, _)| one * 100.0)),
        (ids::metric::BUSY_BOTH, seen.overlap.map(|(_, both)| both * 100.0)),
        (ids::metric::CPU_FIRST, pair.map(|busy| busy[0].left)),
        (ids::metric::CPU_SECOND, pair.map(|busy| busy[1].left)),
        (ids::metric::IPC, seen.ipc),
        (ids::metric::CLOCK, Some(seen.clock_ghz)),
    ];
    for (metric, value) in values {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            sampler.value(at.clone(), metric, value, ns)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rehearsal;
    use super::*;
    use crate::placement::Placements;
    use machine::{Core, Machine};
    use model::CpuSet;

    fn planned(cores: &[&str]) -> Vec<Candidate> {
        let set = |text: &str| CpuSet::parse_list(text).expect("a list");
        let mut machine = Machine::default();
        machine.cpus.cores =
            Some(cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() }).collect());
        machine.cpus.online = cores.iter().flat_map(|cpus| set(cpus).iter().collect::<Vec<u32>>()).collect();
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Quick, 1 << 30);
        cases(&BENCHMARKS[0], &scope, USUAL_LEVELS)
    }

    fn of_loop(plan: &[Candidate]) -> Vec<(String, String, bool)> {
        let own = plan.iter().filter(|one| one.case.params[ids::param::KIND].text() == Some("loop"));
        own.map(|one| {
            let placement = &one.case.placement;
            (placement.name.to_string(), placement.cpus().to_string(), one.unmet.is_none())
        })
        .collect()
    }

    #[test]
    fn two_cores_of_two_threads_have_every_placement() {
        let plan = planned(&["0,4", "1,5"]);
        let seats = |name: &str, cpus: &str| (name.to_string(), cpus.to_string(), true);
        assert_eq!(
            of_loop(&plan),
            [
                seats("one-cpu", "1"),
                seats("smt-sibling", "1,5"),
                seats("other-cpu", "0-1"),
                ("one-per-core".to_string(), String::new(), false),
                seats("all", "0-1,4-5"),
            ]
        );
        let others: Vec<&Candidate> =
            plan.iter().filter(|one| one.case.params[ids::param::KIND].text() != Some("loop")).collect();
        assert_eq!(others.len(), 2 * (Kind::ALL.len() - 1));
        assert!(others.iter().all(|one| points(&one.case) == [point(ids::param::LEVEL, USUAL_LEVELS)]));
        let both = |two: &[&Candidate]| {
            let names = [0, 1].map(|at| two[at].case.placement.name.to_string());
            let kinds = [0, 1].map(|at| two[at].case.params[ids::param::KIND].text());
            names == ["one-cpu", "smt-sibling"]
                && kinds[0] == kinds[1]
                && !two[0].with_last
                && two[1].with_last
        };
        assert!(others.chunks(2).all(both), "each kind alone and on both threads, together");
        assert_eq!(points(&plan[0].case).len(), 7);
    }

    #[test]
    fn without_smt_it_is_two_cores_and_said() {
        let plan = planned(&["0", "1"]);
        let names: Vec<(String, bool)> =
            of_loop(&plan).into_iter().map(|(name, _, there)| (name, there)).collect();
        let name = |name: &str, there: bool| (name.to_string(), there);
        assert_eq!(
            names,
            [name("one-cpu", true), name("smt-sibling", false), name("other-cpu", true), name("all", false)]
        );
        assert!(plan[1].unmet.as_ref().is_some_and(|why| why.contains("siblings")), "{:?}", plan[1].unmet);
        assert!(
            planned(&["0"])
                .iter()
                .filter(|one| one.unmet.is_none())
                .all(|one| one.case.placement.name == "one-cpu")
        );
    }

    #[test]
    fn idle_time_tells_what_ticks_miss() {
        let time = |busy: u64, idle: u64, steal: u64| [CpuTime { cpu: 3, busy, interrupts: 0, idle, steal }];
        let unit_ns = 1e9 / ticks_per_second();
        // 100 units pass: 70 idle, and of the rest only 20 were met at ticks.
        let seen = Busy::of(3, (&time(5, 5, 5), &time(25, 75, 5)), 100.0 * unit_ns).expect("known");
        assert!((seen.left - 30.0).abs() < 1e-9 && (seen.ticks - 100.0 * 20.0 / 90.0).abs() < 1e-9);
        let stolen = Busy::of(3, (&time(0, 0, 0), &time(20, 60, 20)), 100.0 * unit_ns).expect("known");
        assert!((stolen.left - 20.0).abs() < 1e-9);
        assert!(Busy::of(4, (&time(0, 0, 0), &time(1, 1, 1)), unit_ns).is_none());
    }

    #[test]
    fn every_kind_works_at_its_levels_and_is_checked() {
        for case in rehearsal::cases(ids::LOAD, Depth::Quick) {
            let samples = rehearsal::visit_all(&case);
            let of = |name: &str| samples.iter().filter(|one| one.metrics == [name]).count();
            let levels = points(&case).len();
            assert_eq!(
                (of(&ids::metric::PERFORMANCE), of(&ids::metric::WALL), of(&ids::metric::CLOCK)),
                (levels, levels, levels),
                "{}",
                case.key()
            );
            assert_eq!(of(&ids::metric::BUSY_BOTH), if case.placement.seats.len() == 2 { levels } else { 0 });
        }
    }
}

//! The cases on hosts of several shapes, what a pass reports of its windows, and what must never
//! control the job.

use super::walk::{FULL, Rejected, Step, Window};
use super::*;
use crate::placement::Placements;
use crate::sampler::{Order, Windows};
use machine::{Core, Machine};
use model::Samples;
use model::vocabulary::nexmark as ids;
use sys::clock;

fn machine(cores: &[&str]) -> Machine {
    let mut machine = Machine::default();
    let set = |text: &str| CpuSet::parse_list(text).expect("a list");
    machine.cpus.cores = Some(cores.iter().map(|cpus| Core { cpus: set(cpus), ..Core::default() }).collect());
    machine.cpus.online = cores.iter().flat_map(|cpus| set(cpus).iter().collect::<Vec<u32>>()).collect();
    machine
}

const WINDOWS: Windows = Windows { window_ns: 2e6, count: 5, warm_up: 1, limit_s: 2.0 };

fn with_scope<T>(machine: &Machine, then: impl FnOnce(&Scope) -> T) -> T {
    let placements = Placements::of(machine);
    let (memory_bytes, depth) = (1 << 30, Depth::Standard);
    then(&Scope { machine, placements: &placements, depth, memory_bytes, windows: WINDOWS, all: false })
}

/// Name, CPUs of the TaskManager and CPUs elsewhere, or why not.
fn placed(machine: &Machine) -> Vec<(String, String, String)> {
    let all = with_scope(machine, |scope| cases(&BENCHMARKS[0], scope));
    let of = |candidate: &Candidate, role: &str| -> String {
        let seats = candidate.case.placement.seats.iter().filter(|seat| seat.role == role);
        seats.flat_map(|seat| seat.cpus.iter().collect::<Vec<u32>>()).collect::<CpuSet>().to_string()
    };
    let one = |candidate: Candidate| {
        let own = candidate.unmet.clone().unwrap_or_else(|| of(&candidate, TASKMANAGER));
        (candidate.case.placement.name.to_string(), own, of(&candidate, JOBMANAGER))
    };
    all.into_iter().map(one).collect()
}

#[test]
fn one_thread_both_two_cores_and_all_with_the_jobmanager_off_their_cores() {
    let of = |name: &str, own: &str, other: &str| (name.to_string(), own.to_string(), other.to_string());
    assert_eq!(
        placed(&machine(&["0,4", "1,5", "2,6", "3,7"])),
        [
            of("one-cpu", "1", "0,2"),
            of("smt-sibling", "1,5", "0,2"),
            of("other-cpu", "0-1", "2-3"),
            of("all", "0-7", "")
        ]
    );
    assert_eq!(
        placed(&machine(&["0", "1"])),
        [
            of("one-cpu", "1", "0"),
            of("smt-sibling", "needs SMT siblings", ""),
            of("other-cpu", "0-1", ""),
            of("all", "all CPUs are the same as other-cpu", "")
        ]
    );
    let mut small = machine(&["0", "1"]);
    small.memory.available_bytes = Some(300 << 20);
    assert!(placed(&small)[0].1.starts_with("needs "));
    // What is enough for Q0 may be too little for windows.
    small.memory.available_bytes = Some(cluster::memory(1, false));
    assert_eq!(placed(&small)[0].1, "1");
    let windows = with_scope(&small, |scope| cases(BENCHMARKS.last().expect("a row"), scope));
    assert!(windows[0].unmet.as_ref().is_some_and(|why| why.contains("MiB of memory for a Flink cluster")));
}

#[test]
fn pinned_cases_are_not_called_free_and_q0_comes_first() {
    with_scope(&machine(&["0,2", "1,3"]), |scope| {
        let all: Vec<Candidate> = BENCHMARKS.iter().flat_map(|bench| cases(bench, scope)).collect();
        assert!(all.iter().all(|candidate| !candidate.case.placement.is_free()));
        let rising = |one: &Candidate, other: &Candidate| one.priority > other.priority;
        assert!(all.is_sorted_by(rising), "{:?}", all.iter().map(|one| one.priority).collect::<Vec<u32>>());
        // Everywhere JobManager and driver sit is said: where no CPU is left, by having no seat.
        assert!(!shares_its_cpus(&all[0].case) && shares_its_cpus(&all[3].case));
        // Two passes and their preparation end in five minutes.
        assert!(2.0 * all[0].seconds < BUDGET_S && BUDGET_S < 280.0);
    });
}

#[test]
fn cases_are_supplied_with_a_cluster_or_sent_to_one() {
    with_scope(&machine(&["0", "1"]), |scope| {
        let all = || BENCHMARKS.iter().flat_map(|bench| cases(bench, scope)).collect::<Vec<Candidate>>();
        let error = JobSpec::of(&all()[0].case).err().expect("nothing is known of Flink yet");
        assert!(error.to_string().contains("assay run --only nexmark"));
        let own = On::Own { java: "/j/java".into(), home: "/f".into(), port: Some(8081) };
        let own = Flink { jar: "/p.jar".into(), on: own }.supply(all(), scope);
        assert_eq!(own.len(), all().len());
        // The last of the queries has windows, the first has none.
        let windows = |candidate: &Candidate| match JobSpec::of(&candidate.case).expect("told").on {
            Target::Own(plan) => plan.windows,
            Target::Running { .. } => panic!("a cluster of our own"),
        };
        let (first, last) = (own.first(), own.iter().rfind(|one| one.unmet.is_none()));
        assert_eq!((first.map(windows), last.map(windows)), (Some(false), Some(true)));
        let spec = JobSpec::of(&own[0].case).expect("told");
        assert_eq!((spec.query.as_str(), spec.parallelism, spec.length.rounds), ("q0", 1, 2));
        let Target::Own(plan) = spec.on else { panic!("a cluster of our own") };
        assert_eq!(
            (plan.port, plan.seats.to_string(), plan.elsewhere.to_string()),
            (Some(8081), "1".into(), "0".into())
        );
        let on = On::Running { address: "flink:8081".into(), slots: 6, apart_s: 10.0 };
        let running = Flink { jar: "/p.jar".into(), on }.supply(all(), scope);
        assert_eq!(
            running.iter().map(|one| one.case.key()).collect::<Vec<_>>(),
            ["q0", "q1", "q2", "q5", "q7", "q8", "q11"].map(|query| format!("nexmark.{query}@free"))
        );
        let spec = JobSpec::of(&running[0].case).expect("told");
        assert!(
            matches!(spec.on, Target::Running { address, job } if address == "flink:8081" && job.len() == 32)
        );
        assert_eq!((spec.parallelism, spec.length.step_s), (6, 22.0), "two readings have room");
        assert!(running[0].case.placement.cpus().is_empty(), "its CPUs are not this host's");
    });
}

/// What a pass reports of these windows.
fn said(walked: &Walked) -> anyhow::Result<Vec<Samples>> {
    let order = Order {
        case: with_scope(&machine(&["0", "1"]), |scope| cases(&BENCHMARKS[0], scope)).remove(0).case,
        windows: WINDOWS,
        clock: clock::calibrate(false),
        seed: 1,
        pass: 0,
        pretend: None,
        secret: None,
        parent: None,
    };
    let mut out = Vec::new();
    let mut sampler = Sampler::new(&order, &mut out);
    emit(walked, &mut sampler)?;
    let lines = std::str::from_utf8(&out)?.lines().map(|line| match serde_json::from_str(line) {
        Ok(crate::Line::Samples(samples)) => *samples,
        other => panic!("{other:?}"),
    });
    Ok(lines.collect())
}

fn step(load: u64) -> Step {
    Step { load, seconds: 5.0, counted: true }
}

#[test]
fn every_metric_of_a_window_follows_from_its_readings() {
    let window = Window {
        ns: 2e9,
        events: 1e6,
        target: Some(500_000.0),
        late_ms: 1.5,
        cpu_ticks: Some(0.5),
        cpu: Some(0.25),
        others: Some(0.01),
        steal: Some(0.0),
        process_cpus: Some(0.5),
        gc: Some(0.03),
    };
    let full = Window { target: None, ..window.clone() };
    let walked = Walked {
        windows: vec![
            (step(50), Ok(window.clone())),
            (step(FULL), Ok(full)),
            (step(50), Err(Rejected::Contaminated(30))),
        ],
        restarts: vec![step(FULL)],
    };
    let said = said(&walked).expect("samples");
    let at = |load: u64, name: &str| -> Option<f64> {
        let samples =
            said.iter().find(|one| one.metrics == [name] && one.point == point(ids::param::LOAD, load))?;
        let metric = METRICS.iter().find(|metric| metric.name == name).expect("a metric");
        samples.values(metric.form).first().copied()
    };
    for (name, value) in [
        (ids::metric::RATE, 500_000.0),
        (ids::metric::CPU, 25.0),
        (ids::metric::PROCESS_CPU, 50.0),
        (ids::metric::COST, 1.0),
        (ids::metric::ATTAINMENT, 20_000.0),
        (ids::metric::TARGET, 500_000.0),
        (ids::metric::ACHIEVED, 100.0),
        (ids::metric::LATE, 1.5),
        (ids::metric::OTHERS, 1.0),
        (ids::metric::STEAL, 0.0),
        (ids::metric::GC, 3.0),
        (ids::metric::REJECTED, 1.0),
        (ids::metric::RESTARTS, 0.0),
    ] {
        assert!(at(50, &name).is_some_and(|found| (found - value).abs() < 1e-9 * value.max(1.0)), "{name}");
    }
    assert_eq!(
        (at(FULL, &ids::metric::TARGET), at(FULL, &ids::metric::ACHIEVED), at(FULL, &ids::metric::RESTARTS)),
        (None, None, Some(1.0))
    );
    assert_eq!((at(10, &ids::metric::RATE), at(10, &ids::metric::REJECTED)), (None, Some(0.0)));
}

#[test]
fn a_visit_without_a_window_fails_and_says_why() {
    let windows = vec![
        (step(10), Err(Rejected::Contaminated(30))),
        (step(20), Err(Rejected::NotAdvanced)),
        (step(50), Err(Rejected::Contaminated(8))),
    ];
    let why = said(&Walked { windows, restarts: Vec::new() }).expect_err("nothing to say").to_string();
    assert_eq!(
        why,
        "no sample of 3 can be used: of 1 its readings did not advance, of 2 other work used 8 % or more of the TaskManager's CPUs"
    );
}

/// Flink's rate metrics are averages of a minute, and its rate limiter costs more than the query.
#[test]
fn neither_flinks_rates_nor_its_limiter_are_used() {
    let root = testkit::root();
    let words = ["PerSecond", "RateLimiter"].map(|end| match end {
        "PerSecond" => ["numRecordsOut", end].concat(),
        end => [end, "Strategy"].concat(),
    });
    let mut folders = vec![root.join("crates"), root.join("nexmark")];
    let mut looked = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs" || end == "java") {
                let text = std::fs::read_to_string(&path).expect("text");
                looked += 1;
                for word in &words {
                    assert!(!text.contains(word.as_str()), "{} uses {word}", path.display());
                }
            }
        }
    }
    assert!(looked > 100, "{looked} files");
}

//! Starting programs and threads.

use anyhow::{Context, bail};
use model::vocabulary::kernel as ids;

use super::resident::{self, Resident};
use super::{Benchmark, Candidate, Depth, LATENCY_US, Param, Point, Sampler, Scope, check_answer, point};
use model::{Case, Metric, Pages, Params, Placement};
use sys::program::{self, Program};
use sys::spawn::{self, Stack, StartMethod};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::PROCESS_VFORK_EXEC,
        title: "vfork and exec",
        about: "Time to start a program the fastest way, until it has ended and is reaped. The child borrows the \
                parent's memory (vfork) and calls execve.",
        reading: "Lower is better: 50–300 µs for `minimal`, several hundred more for `true`, which a dynamic linker \
                  loads. The rest is making the address space and taking it down. Guests (nested page tables) and \
                  page-table isolation cost more. The parent's page tables are not copied, so its size does not \
                  matter.",
        method: "The child is made by clone with CLONE_VM and CLONE_VFORK, on its own stack, as vfork does. \
                 `minimal` is a static executable of 200 bytes in memory (memfd) that only exits. `true` is the \
                 system's /bin/true. The environment is empty. Every exit code is checked.",
        metrics: &[LATENCY_US],
        params: PARAMS,
        cases: |bench, scope| starting(bench, scope, 60, STRETCH, &RESIDENT_MB_IF_DEEP),
        points,
        run: |case, sampler| {
            let stack = Stack::new().context("cannot map a stack")?;
            start(
                case,
                sampler,
                &ProgramStart { way: StartMethod::Vfork(&stack), by_shell: false, stretch: STRETCH },
            )
        },
        source: file!(),
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::PROCESS_SPAWN,
        title: "posix_spawn",
        about: "Time to start a program with the C library's posix_spawn, until it has ended and is reaped. Most \
                shells and languages use it.",
        reading: "Lower is better: a few µs above process.vfork-exec. Near process.exec of a large parent, the C \
                  library copies the parent's memory, as glibc did before 2.24.",
        method: "In glibc this is process.vfork-exec with a stack mapped and signals blocked for each child. The \
                 programs are those of process.vfork-exec. The environment is empty, and every exit code is checked.",
        metrics: &[LATENCY_US],
        params: PARAMS,
        cases: |bench, scope| starting(bench, scope, 55, STRETCH, &RESIDENT_MB_IF_DEEP),
        points,
        run: |case, sampler| {
            start(case, sampler, &ProgramStart { way: StartMethod::Spawn, by_shell: false, stretch: STRETCH })
        },
        source: file!(),
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::PROCESS_EXEC,
        title: "fork and exec",
        about: "Time to start a program with fork and execve, until it has ended and is reaped. fork copies the \
                parent's page tables, and execve discards them.",
        reading: "Lower is better: 100–600 µs for `minimal`, up to 1 ms for a dynamic program. Its excess over \
                  process.vfork-exec is the copy that execve discards. That is 5–20 ms for each GB of the parent, in \
                  guests up to 40.",
        method: "As lmbench's fork+execve, with the programs of process.vfork-exec (`true` is nearer to lmbench's). \
                 The environment is empty, and every exit code is checked. The parent is as small as Assay; on one \
                 CPU it also has resident_mb of written memory in base pages. per_gb is the slope of a straight line \
                 through these.",
        metrics: COPYING,
        params: PARAMS,
        cases: |bench, scope| starting(bench, scope, 75, STRETCH, &RESIDENT_MB),
        points,
        run: |case, sampler| {
            start(case, sampler, &ProgramStart { way: StartMethod::Fork, by_shell: false, stretch: STRETCH })
        },
        source: file!(),
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::PROCESS_SHELL,
        title: "Start by the shell",
        about: "Time to start a program through /bin/sh -c, as system() and scripts do, until it has ended.",
        reading: "Lower is better: 0.5–2 ms with dash or busybox, two to three times that with bash. Compare hosts \
                  with the same shell only. A shell that forks for the last command pays for one more process.",
        method: "As lmbench's fork+/bin/sh, with the programs of process.vfork-exec. The shell is loaded, reads the \
                 line, finds the program, becomes it or forks a child, and returns its exit code. The environment is \
                 empty, and exit codes are checked. resident_mb and per_gb are those of process.exec.",
        metrics: COPYING,
        params: PARAMS,
        cases: by_shell_cases,
        points,
        run: |case, sampler| {
            start(
                case,
                sampler,
                &ProgramStart { way: StartMethod::Fork, by_shell: true, stretch: SHELL_STRETCH },
            )
        },
        source: file!(),
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::PROCESS_THREAD,
        title: "Thread start",
        about: "Time to start a thread with pthread_create and wait for its end with pthread_join.",
        reading: "Lower is better: 10–40 µs on one CPU, where the new thread runs once its creator sleeps in join. \
                  That is one clone, two switches and one futex. Free, the thread may start on another CPU, and \
                  waking that CPU is added.",
        method: "The thread adds one to a count and ends; the count is checked. Its stack has 1 MiB, which glibc \
                 reuses, so no memory is mapped after the first thread.",
        metrics: &[LATENCY_US],
        cases: |bench, scope| seated(bench, scope, 70, Depth::Standard, STRETCH),
        run: threads,
        source: file!(),
        ..Benchmark::PINNED
    },
];

const PARAMS: &[Param] = &[
    Param::choice(ids::param::PROGRAM, "a static program of 200 bytes, or /bin/true", &["minimal", "true"]),
    resident::PARAM,
];

const COPYING: &[Metric] = &[LATENCY_US, resident::PER_GB.aside()];

/// Further sizes of the parent's memory, MiB, with the depth that adds them.
const RESIDENT_MB: [(u64, Depth); 3] = [(64, Depth::Standard), (256, Depth::Standard), (1024, Depth::Full)];
/// The same for ways that copy nothing or take long: they have nothing to add where time is short.
const RESIDENT_MB_IF_DEEP: [(u64, Depth); 2] = [(64, Depth::Full), (1024, Depth::Full)];

/// A process takes 0.1–1 ms; a sample has at least ten.
pub const STRETCH: f64 = 2.0;
const SHELL_STRETCH: f64 = 5.0;

/// Pinned to one CPU, parent and child alike; from `free_from` on also where the scheduler puts
/// them.
pub fn seated(
    bench: &Benchmark,
    scope: &Scope,
    priority: u32,
    free_from: Depth,
    stretch: f64,
) -> Vec<Candidate> {
    let candidate = |name, placement: Result<Placement, String>, priority| match placement {
        Ok(placement) => Candidate::new(bench.id, placement, priority, scope.seconds(1, stretch, 0.002)),
        Err(why) => Candidate::unmet(bench.id, name, why),
    };
    let mut candidates = vec![candidate("one-cpu", scope.placements.one_cpu("task"), priority)];
    if scope.depth >= free_from {
        candidates.push(candidate("free", scope.placements.free(&["task"]), priority - 15));
    }
    candidates
}

/// Every program, and on one CPU parents of these MiB.
fn starting(
    bench: &Benchmark,
    scope: &Scope,
    priority: u32,
    stretch: f64,
    resident_mb: &[(u64, Depth)],
) -> Vec<Candidate> {
    let with_true = scope.depth >= Depth::Standard && program::is_executable(program::TRUE);
    let programs = if with_true { "minimal,true" } else { "minimal" };
    let mut candidates = seated(bench, scope, priority, Depth::Standard, stretch);
    for candidate in &mut candidates {
        candidate.case.inputs.insert("programs".into(), programs.into());
        candidate.seconds *= if with_true { 2.0 } else { 1.0 };
        if candidate.case.placement.name == "one-cpu" {
            resident::plan(candidate, scope, resident_mb, stretch);
        }
    }
    candidates
}

fn programs(case: &Case) -> impl Iterator<Item = &str> {
    case.inputs.get("programs").map_or("minimal", String::as_str).split(',')
}

fn points(case: &Case) -> Vec<Params> {
    let larger = resident::sizes(case).into_iter().map(larger);
    programs(case).map(|name| point(ids::param::PROGRAM, name)).chain(larger).collect()
}

/// The smallest program, started by a parent with this much memory.
fn larger(mb: u64) -> Params {
    let mut at = point(ids::param::PROGRAM, "minimal");
    at.extend(point(resident::PARAM.name, mb));
    at
}

fn program_of(name: &str) -> anyhow::Result<Program> {
    Ok(match name {
        "minimal" => Program::minimal()?,
        "true" => Program::at(program::TRUE, &[c"true"], 0),
        other => bail!("unknown program {other:?}"),
    })
}

/// How a program is started.
struct ProgramStart<'a> {
    way: StartMethod<'a>,
    /// Through `sh -c`.
    by_shell: bool,
    stretch: f64,
}

/// Starts each program by a small parent, then the smallest one by larger and larger parents.
fn start(case: &Case, sampler: &mut Sampler, how: &ProgramStart) -> anyhow::Result<()> {
    let mut parent = Resident::of(case, Pages::Base)?;
    for name in programs(case) {
        let ns = one(sampler, name, point(ids::param::PROGRAM, name), how)?;
        if name == "minimal" {
            parent.took(0, ns);
        }
    }
    for mb in resident::sizes(case) {
        parent.grow(mb)?;
        let ns = one(sampler, "minimal", larger(mb), how)?;
        parent.took(mb, ns);
    }
    if !resident::sizes(case).is_empty() {
        parent.note(sampler);
    }
    // The other ways copy nothing, so there is no slope.
    if matches!(how.way, StartMethod::Fork) {
        parent.per_gb(sampler)?;
    }
    no_child_left()
}

fn one(sampler: &mut Sampler, name: &str, at: Params, how: &ProgramStart) -> anyhow::Result<f64> {
    // Its file must stay open as long as a shell is to find it.
    let program = program_of(name)?;
    let at = Point::new(ids::metric::LATENCY, 1.0).at(at).stretch(how.stretch);
    match how.by_shell {
        true => measure(sampler, at, how.way, &program.by_shell()),
        false => measure(sampler, at, how.way, &program),
    }
}

/// Times starts of one program, ns each, and checks how each child ended.
fn measure(sampler: &mut Sampler, at: Point, way: StartMethod, program: &Program) -> anyhow::Result<f64> {
    let clock = sampler.clock();
    sampler.time_by(at, |starts| {
        let begin = clock.now();
        for _ in 0..starts {
            let ended = spawn::start(way, program)
                .with_context(|| format!("cannot start {}", program.path().to_string_lossy()))?;
            if !program.is_right(ended.code()) {
                check_answer(false, || format!("{} ended with {ended}", program.path().to_string_lossy()))?;
            }
        }
        Ok(clock.now() - begin)
    })
}

/// Every child was reaped where it was started: none may be left, dead or alive.
pub fn no_child_left() -> anyhow::Result<()> {
    check_answer(spawn::has_no_child(), || "a child process was not reaped".to_string())
}

fn by_shell_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    match program::is_executable(program::SHELL) {
        true => starting(bench, scope, 65, SHELL_STRETCH, &RESIDENT_MB_IF_DEEP),
        false => vec![Candidate::unmet(bench.id, "one-cpu", "this system has no /bin/sh".to_string())],
    }
}

fn threads(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let clock = sampler.clock();
    sampler.time_by(Point::new(ids::metric::LATENCY, 1.0), |threads| {
        let begin = clock.now();
        let counted = spawn::threads(threads).context("cannot start a thread")?;
        let ns = clock.now() - begin;
        check_answer(counted == threads, || format!("{counted} of {threads} threads have run"))?;
        Ok(ns)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{WrongAnswer, rehearsal};
    use super::*;
    use model::Form;

    #[test]
    fn every_way_is_measured_and_leaves_no_child() {
        for id in [
            ids::PROCESS_VFORK_EXEC,
            ids::PROCESS_SPAWN,
            ids::PROCESS_EXEC,
            ids::PROCESS_SHELL,
            ids::PROCESS_THREAD,
        ] {
            let cases = rehearsal::cases(id, Depth::Standard);
            assert!(cases.iter().any(|case| case.placement.name == "one-cpu"), "{id}");
            for case in cases {
                rehearsal::visit_all(&case);
                assert!(spawn::has_no_child(), "{id}");
            }
        }
    }

    #[test]
    fn only_ways_that_copy_have_a_slope() {
        for (id, copies) in
            [(ids::PROCESS_EXEC, true), (ids::PROCESS_SHELL, true), (ids::PROCESS_SPAWN, false)]
        {
            let case = rehearsal::cases(id, Depth::Full).remove(0);
            // A rehearsal may use 128 MiB.
            assert_eq!(case.inputs["resident_mb"], "64", "{id}");
            let samples = rehearsal::visit_all(&case);
            let slopes = samples.iter().filter(|one| one.metrics == [ids::metric::PER_GB]);
            let slopes: Vec<f64> = slopes.flat_map(|one| one.values(Form::Value)).collect();
            assert_eq!(slopes.len(), usize::from(copies), "{id}");
            assert!(slopes.iter().all(|slope| slope.is_finite()), "{id}: {slopes:?}");
            let free = rehearsal::cases(id, Depth::Full).pop().expect("a case");
            assert!(free.placement.name == "free" && resident::sizes(&free).is_empty(), "{id}");
        }
    }

    #[test]
    fn a_program_that_ends_otherwise_is_a_wrong_answer() {
        let false_one = Program::at(program::TRUE, &[c"true"], 1);
        let error = rehearsal::with_sampler(|sampler| {
            measure(sampler, Point::new(ids::metric::LATENCY, 1.0), StartMethod::Spawn, &false_one).map(drop)
        });
        let error = error.expect_err("it ends with 0, not with 1");
        let wrong = error.downcast_ref::<WrongAnswer>().expect("a wrong answer");
        assert!(wrong.to_string().contains("exit status: 0"), "{wrong}");
    }

    #[test]
    fn a_child_that_nobody_reaped_is_a_wrong_answer() {
        let left = sys::process::fork(|| 0).expect("a child");
        assert!(no_child_left().is_err());
        drop(left);
        no_child_left().expect("none is left");
    }
}

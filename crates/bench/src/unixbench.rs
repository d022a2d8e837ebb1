//! The twelve tests of the UnixBench system index, in the classic's own units: what has been
//! compared for forty years.
//!
//! Written from the descriptions of the suite and of the programs that it took over; nothing of its
//! code is in here.

use std::rc::Rc;

use anyhow::Context;

use super::occupancy::{self, CLASS, OCCUPANCY};
use super::pair::{self, Play, ROLES, channel};
use super::{Benchmark, Candidate, Param, Sampler, Scope, file};
use crate::placement::Distance;
use model::vocabulary::BenchId;
use model::vocabulary::unixbench as ids;
use model::{Better, COMPILER, Case, Form, Metric, Placement};
use sys::exec_chain;
use sys::scratch::Scratch;

mod calls;
mod context;
mod copies;
mod dhrystone;
mod file_copy;
mod shell;
mod whetstone;

pub use copies::with_copies;

use copies::Timing;
use file_copy::Shape;

/// By which compiler this program was built.
pub const RUSTC: &str = env!("ASSAY_COMPILER");

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::DHRY2REG,
        title: "Dhrystone 2 using register variables",
        about: "Weicker's Dhrystone 2: eight procedures and three functions on records, strings and arrays that fit \
                any L1 cache. What the definition puts into two compilation units is called through pointers that the \
                compiler cannot see through; strings are compared by the C library. The published final values of all \
                variables are checked.",
        reading: "One core's speed on small integer code of the eighties, and half of it the compiler's skill: figures of \
                  two builds compare compilers. This one is Rust's, for any CPU of the architecture; the classic is built \
                  by gcc -O3 for the very CPU. Memory, caches beyond L1 and the kernel have no part in it.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| Ok(dhrystone::loops())),
        ..ROW
    },
    Benchmark {
        id: ids::WHETSTONE,
        title: "Double-Precision Whetstone",
        about: "The eight active modules of Curnow's and Wichmann's Whetstone in double precision, with the published \
                weights, in millions of Whetstone instructions a second; sin, cos, atan, exp and log are the C library's. \
                The published results are checked to nine digits. One module (integer arithmetic) comes to constants \
                at compile time, with us as with the classic's gcc.",
        reading: "Half of it is one chain of dependent additions and multiplications, a third the C library's functions: \
                  the core's latencies times its clock. Vectors and memory have no part in it. The classic is built with \
                  -ffast-math, which hardly helps here.",
        metrics: &[Metric::new(
            ids::metric::SCORE,
            "millions of Whetstone instructions a second",
            "MWIPS",
            Better::Higher,
            PER_S,
        )],
        run: |case, sampler| {
            copies::measure(case, sampler, usual(whetstone::MILLIONS), |_| whetstone::loops())
        },
        ..ROW
    },
    Benchmark {
        id: ids::EXECL,
        title: "Execl Throughput",
        about: "A process that becomes the same program again and again by execve. As in the classic that is a small \
                program which the system's dynamic linker loads together with the C library; ours is an executable of 1.2 KB, \
                written into memory (memfd), linked as /bin/sh is, with the segments of a compiled program, which calls \
                the C library a few times and asks a pipe whether to go on. (process.exec starts one that nothing links: \
                less than half the price.) Every exec is counted.",
        reading: "0.3 to 1 ms each: tearing down an address space, making one, mapping and relocating the linker and the \
                  C library with their page faults. Nested page tables of guests and the kernel's mitigations move it \
                  most. Free to run, exec may move the process to another CPU.",
        metrics: &[LPS],
        cases: exec_cases,
        run: |case, sampler| copies::measure(case, sampler, stretched(EXEC, 1.0), |_| calls::programs()),
        ..ROW
    },
    Benchmark { id: ids::FSTIME, title: "File Copy 1024 bufsize 2000 maxblocks", ..COPYING },
    Benchmark { id: ids::FSBUFFER, title: "File Copy 256 bufsize 500 maxblocks", ..COPYING },
    Benchmark { id: ids::FSDISK, title: "File Copy 4096 bufsize 8000 maxblocks", ..COPYING },
    Benchmark {
        id: ids::PIPE,
        title: "Pipe Throughput",
        about: "One process writes 512 bytes to a pipe and reads them back, again and again: two system calls and two \
                copies a loop, no other process, no wake-up. The calls go through the C library, as the classic's do (here that alone \
                costs a third more than calls of our own). A number in each piece is checked.",
        reading: "150 to 600 ns a loop: the price of two system calls, so that mitigations of 2018 and later show most. It \
                  says nothing about processes that talk to each other; that is context1.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| calls::pipe()),
        ..ROW
    },
    Benchmark {
        id: ids::CONTEXT1,
        title: "Pipe-based Context Switching",
        about: "Two processes pass a growing number to and fro over two pipes; a loop is a round trip, checked. The \
                classic's number has 4 bytes, ours 8, which makes no difference to be measured. Free as in the classic; \
                one copy also with both processes on one CPU and on the nearest two, which are figures of their own.",
        reading: "The classic number that says most about placement and least about the machine: both processes on one CPU \
                  score several times what two CPUs do, as nobody has to be woken from idle, and it is the scheduler that \
                  chooses. Compare the pinned figures; occupancy says which of them a free pair is a mix of.",
        metrics: CONTEXT,
        params: &[COPIES, CLASS],
        cases: context_cases,
        run: context,
        ..ROW
    },
    Benchmark {
        id: ids::SPAWN,
        title: "Process Creation",
        about: "A process forks a child that ends at once, waits for it, and so on. Every child's exit code is checked. \
                Ours ends by _exit: what exit runs at a program's end is more in our larger process than in the classic's, \
                and the two differences about cancel out (20 page faults a child to 29).",
        reading: "50 to 200 µs a loop: the copy of a small process's page tables, a wake-up on whatever CPU the scheduler \
                  takes for the child, and the end of an address space. The classic's process is a little smaller than \
                  ours. process.fork has it pinned, and with memory.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| calls::children()),
        ..ROW
    },
    Benchmark {
        id: ids::SHELL1,
        title: "Shell Scripts (1 concurrent)",
        cases: shell_cases,
        run: |case, sampler| scripts(case, sampler, 1),
        ..SCRIPTS
    },
    Benchmark {
        id: ids::SHELL8,
        title: "Shell Scripts (8 concurrent)",
        cases: shell_cases,
        run: |case, sampler| scripts(case, sampler, 8),
        ..SCRIPTS
    },
    Benchmark {
        id: ids::SYSCALL,
        title: "System Call Overhead",
        about: "The classic's mix of system calls that do nothing: dup and close of a file, getpid, getuid and umask are one \
                loop of five calls, through the C library. Every answer is checked.",
        reading: "0.3 to 2 µs a loop: entering and leaving the kernel five times. Mitigations of 2018 and later make it up \
                  to five times as dear; kernels that audit calls or filter them (seccomp, as containers do) add to it.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| calls::system_calls()),
        ..ROW
    },
];

const PER_S: Form = Form::WorkPerTime { scale: 1e9 };
const LPS: Metric = Metric::new(ids::metric::SCORE, "loops a second", "lps", Better::Higher, PER_S);

/// How many processes do the test at once.
const COPIES: Param = Param::int(
    ids::param::COPIES,
    "processes (of context1: pairs) that do the test at once, whose scores are added",
    1..=copies::MOST,
);

const ROW: Benchmark =
    Benchmark { hidden: true, params: &[COPIES], cases: free_cases, source: file!(), ..Benchmark::PINNED };

const COPYING: Benchmark = Benchmark {
    about: "Copies a file of its own into another one by read and write of bufsize bytes, and begins both anew after \
            maxblocks blocks; a KB is 1024 bytes. As in the classic the first file was written and read before, and both \
            stay in the page cache; the classic also counts those two phases, outside of the index, and calls sync \
            before them, which we leave out. The files lie in a folder of ours in the directory of --dir; a filesystem \
            in memory (tmpfs) has other prices than one on a disk. What was copied is compared in the end.",
    reading: "Two system calls and two copies in memory a block: with blocks of 256 bytes the calls, with those of 4096 the \
              copies and the page cache's own work. No disk has any part in it, whatever its name says, until so much is \
              dirty that the kernel slows the writer down.",
    metrics: &[Metric::new(ids::metric::SCORE, "KB copied a second", "KBps", Better::Higher, PER_S)],
    cases: copying_cases,
    run: copying,
    ..ROW
};

const SCRIPTS: Benchmark = Benchmark {
    about: "A loop starts a shell that starts so many scripts at once and waits for them: each sorts a text of 9 KB into a \
            file, dumps that by od into another sort, greps it into tee and wc, and removes what it made. The tools are \
            the system's own, the text and the script are ours, of the classic's shape and size; the language is the \
            suite's (en_US.utf8). What the steps make is checked once, how they end each time. The files lie in a folder of \
            ours in the directory of --dir.",
    reading: "Ten processes a script, so that it is mostly starting and ending processes, wake-ups and page faults: 4 to 20 \
              ms each. It compares systems with one and the same shell and tools only: busybox, dash and bash differ by \
              more than CPUs do. Where the language is installed, sort, grep and wc take up to a fifth longer than where \
              it is not.",
    metrics: &[Metric::new(
        ids::metric::SCORE,
        "loops a minute",
        "lpm",
        Better::Higher,
        Form::WorkPerTime { scale: 60e9 },
    )],
    ..ROW
};

const CONTEXT: &[Metric] =
    &[LPS, pair::VOLUNTARY, pair::INVOLUNTARY, OCCUPANCY, pair::MIGRATIONS, pair::AFFINE];

/// Windows in units of the usual one: 20 ms in the quick profile, long enough for the scheduler to
/// change its mind.
const USUAL: f64 = 10.0;
/// Half a millisecond an exec.
const EXEC: f64 = 20.0;
/// Windows of ten loops and more, of four where eight scripts run at once.
const SCRIPT: f64 = 40.0;
const EIGHT_SCRIPTS: f64 = 60.0;

fn stretched(stretch: f64, work: f64) -> Timing {
    Timing { stretch, work, tasks: 1 }
}

fn usual(work: f64) -> Timing {
    stretched(USUAL, work)
}

fn stretch_of(bench: Option<BenchId>) -> f64 {
    match bench {
        Some(ids::EXECL) => EXEC,
        Some(ids::SHELL1) => SCRIPT,
        Some(ids::SHELL8) => EIGHT_SCRIPTS,
        _ => USUAL,
    }
}

const PRIORITY: u32 = 60;

/// One copy and as many as there are CPUs, where the scheduler puts them.
fn free_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    free_with(bench, scope, &["copy"])
}

fn free_with(bench: &Benchmark, scope: &Scope, roles: &[&'static str]) -> Vec<Candidate> {
    let placement = match scope.floor.free(roles) {
        Ok(placement) => placement,
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why).param(COPIES.name, 1u64)],
    };
    // A process to fork for each.
    let setup_s = |copies: u64| 0.01 + copies as f64 * 1e-3;
    let cpus = scope.floor.cpus().len() as u64;
    let counts = [1, cpus.min(copies::MOST as u64)];
    let counts = if cpus > 1 { &counts[..] } else { &counts[..1] };
    let candidate = |copies: &u64| {
        let seconds = scope.seconds(1, stretch_of(Some(bench.id)), setup_s(*copies));
        let mut candidate = Candidate::new(bench.id, placement.clone(), PRIORITY, seconds);
        candidate.case = with_copies(&candidate.case, *copies);
        if COMPILED.contains(&bench.id) {
            candidate.case.inputs.insert(COMPILER.into(), RUSTC.into());
        }
        candidate
    };
    counts.iter().map(candidate).collect()
}

fn copying_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Some(shape) = Shape::of(Some(bench.id)) else { return Vec::new() };
    let with_files = |mut candidate: Candidate| {
        let bytes = shape.bytes() * copies::of(&candidate.case).unwrap_or(1) as u64;
        // Written, read and compared at 0.5 GB/s.
        candidate.seconds += bytes as f64 * 2e-9;
        if candidate.unmet.is_none() && bytes > file::room(scope) {
            candidate.unmet =
                Some(format!("its files of {} MiB are more than a tenth of the free room", bytes >> 20));
        }
        file::in_directory(scope, candidate).memory(bytes)
    };
    free_cases(bench, scope).into_iter().map(with_files).collect()
}

fn copying(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let shape = Shape::of(case.id()).context("no test copies files by this name")?;
    let folder = Rc::new(Scratch::new(&file::directory_of(case), file_copy::HOLDS)?);
    copies::measure(case, sampler, usual(shape.kilobytes()), |copy| {
        file_copy::copying(folder.clone(), copy, shape)
    })
}

fn exec_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    match exec_chain::why_unavailable() {
        None => free_cases(bench, scope),
        Some(why) => vec![Candidate::unmet(bench.id, "free", why).param(COPIES.name, 1u64)],
    }
}

fn shell_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    match shell::path() {
        Ok(_) => {
            let candidates = free_cases(bench, scope).into_iter();
            candidates.map(|candidate| file::in_directory(scope, candidate)).collect()
        }
        Err(why) => vec![Candidate::unmet(bench.id, "free", why).param(COPIES.name, 1u64)],
    }
}

fn scripts(case: &Case, sampler: &mut Sampler, at_once: u32) -> anyhow::Result<()> {
    let folder = Rc::new(Scratch::new(&file::directory_of(case), shell::HOLDS)?);
    shell::prepare(&folder)?;
    let timing = stretched(stretch_of(case.id()), 1.0);
    copies::measure(case, sampler, timing, |_| shell::scripts(folder.clone(), at_once))
}

/// Free with one and more copies; one pair on one CPU, and on the nearest two.
fn context_cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut candidates = free_with(bench, scope, &ROLES);
    for candidate in &mut candidates {
        occupancy::tell(&mut candidate.case, scope.floor);
    }
    let mut apart = 0;
    for (distance, pair) in scope.floor.pairs(ROLES) {
        apart += u32::from(distance != Distance::SameCpu && pair.is_ok());
        let Ok(placement) = pair else { continue };
        if distance != Distance::SameCpu && apart > 1 {
            continue;
        }
        let stretch = pair::stretch(scope.windows, &placement, CONTEXT_NS);
        let seconds = scope.seconds(1, stretch, 0.01 + pair::settling_s(&placement));
        candidates.push(Candidate::new(bench.id, placement, PRIORITY, seconds).param(COPIES.name, 1u64));
    }
    candidates
}

/// A round trip takes 2 to 100 us: windows of many.
const CONTEXT_NS: f64 = 4e6;

fn context(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let stretch = pair::stretch(sampler.windows(), &case.placement, CONTEXT_NS);
    if copies::of(case)? == 1 {
        let play = Play { metric: ids::metric::SCORE, stretch, wakeup_ns: 0.0 };
        let placement: Placement = copies::seats(&case.placement, 0, ROLES.len());
        return pair::visit(&Case { placement, ..case.clone() }, sampler, play, channel::pipes);
    }
    let clock = sampler.clock();
    let timing = Timing { stretch, work: 1.0, tasks: ROLES.len() };
    copies::measure(case, sampler, timing, |copy| context::pair(case, clock, copy))
}

/// What these measure is half their compiler's skill.
const COMPILED: [BenchId; 2] = [ids::DHRY2REG, ids::WHETSTONE];
#[cfg(test)]
mod tests;

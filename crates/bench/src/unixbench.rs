//! The twelve tests of the UnixBench system index, in the classic's own units: what has been
//! compared for forty years.
//!
//! Written from the descriptions of the suite and of the programs that it took over; nothing of its
//! code is in here.

use std::rc::Rc;

use anyhow::Context;

use super::occupancy::{self, CLASS, OCCUPANCY};
use super::pair::{self, PairPlan, ROLES, channel};
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
        about: "Rate of Weicker's Dhrystone 2: procedures and functions on records, strings and arrays that fit any \
                L1 cache.",
        reading: "More is better. It is one core's speed on small integer code of the 1980s, and half of it is the \
                  compiler. Two builds compare compilers: this is Rust for any CPU of the architecture, the classic \
                  gcc -O3 for this CPU. Memory, larger caches and the kernel have no part.",
        method: "The two compilation units of the definition are separated by pointers that the compiler cannot \
                 follow. Strings are compared by the C library. The published final values of all variables are \
                 checked.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| Ok(dhrystone::loops())),
        ..ROW
    },
    Benchmark {
        id: ids::WHETSTONE,
        title: "Double-Precision Whetstone",
        about: "Rate of the eight active modules of the Whetstone benchmark in double precision, in millions of \
                Whetstone instructions a second.",
        reading: "More is better. Half is one chain of dependent additions and multiplications, a third the C \
                  library's functions. It is the core's latencies times its clock. Vectors and memory have no part. \
                  The classic uses -ffast-math, which changes little.",
        method: "Weights are the published ones; sin, cos, atan, exp and log are the C library's. The published \
                 results are checked to nine digits. One module (integer arithmetic) becomes constants at compile \
                 time, as with the classic's gcc.",
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
        about: "Rate at which a process replaces itself with the same program by execve, one execve after the other.",
        reading: "More is better: 0.3–1 ms each for a new address space, the dynamic linker and the C library with \
                  their page faults. Nested page tables of guests and mitigations add most. Free, exec may move the \
                  process to another CPU.",
        method: "As in the classic, the system's dynamic linker loads a small program with the C library. Assay's is \
                 an executable of 1.2 KB in memory (memfd), linked as /bin/sh is. It calls the C library a few times \
                 and checks a pipe whether to continue. process.exec starts an unlinked program for less than half \
                 the price. Every exec is counted.",
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
        about: "Rate at which one process writes 512 bytes to a pipe and reads them back, with no other process and \
                no wake-up.",
        reading: "More is better: 150–600 ns a loop for two system calls and two copies. Mitigations since 2018 show \
                  here most. It does not apply to processes that talk to each other; that is context1.",
        method: "The calls go through the C library as in the classic, which alone costs a third more here. A number \
                 in each piece is checked.",
        metrics: &[LPS],
        run: |case, sampler| copies::measure(case, sampler, usual(1.0), |_| calls::pipe()),
        ..ROW
    },
    Benchmark {
        id: ids::CONTEXT1,
        title: "Pipe-based Context Switching",
        about: "Rate at which two processes pass a number over two pipes. A loop is a round trip.",
        reading: "More is better, but it shows placement more than hardware. Both processes on one CPU score several \
                  times what two CPUs do, and the scheduler chooses. Compare the pinned figures. Occupancy is the \
                  mix of them behind a free figure.",
        method: "The numbers are checked. They have 8 bytes; the classic's 4 make no measurable difference. It runs \
                 free as in the classic. One copy also runs on one CPU and on the nearest two, as figures of their \
                 own.",
        metrics: CONTEXT,
        params: &[COPIES, CLASS],
        cases: context_cases,
        run: context,
        ..ROW
    },
    Benchmark {
        id: ids::SPAWN,
        title: "Process Creation",
        about: "Rate at which a process forks a child that ends at once, and waits until it has ended.",
        reading: "More is better: 50–200 µs a loop. That is a copy of small page tables, a wake-up on the child's \
                  CPU and the end of an address space. process.fork measures it pinned and with memory.",
        method: "Every exit code is checked. The child ends by _exit, because exit handlers do more in Assay than in \
                 the classic's smaller process. The two differences about cancel out (20 page faults a child against \
                 29).",
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
        about: "Rate of the classic's mix of cheap system calls. dup, close, getpid, getuid and umask are one loop.",
        reading: "More is better: 0.3–2 µs a loop for five entries into the kernel. Mitigations since 2018 make it \
                  up to five times as long. Audit and filters (seccomp, as in containers) add to it.",
        method: "The calls go through the C library. Every answer is checked.",
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
    "processes at once (pairs for context1); scores are added",
    1..=copies::MAX_COPIES,
);

const ROW: Benchmark =
    Benchmark { hidden: true, params: &[COPIES], cases: free_cases, source: file!(), ..Benchmark::PINNED };

const COPYING: Benchmark = Benchmark {
    about: "Rate at which one process copies a file into another by read and write of bufsize bytes, within the page \
            cache. After maxblocks blocks both start anew.",
    reading: "More is better. A block takes two system calls and two copies in memory. With 256 bytes the calls \
              dominate, with 4096 the copies and the page cache. No disk takes part until the kernel throttles the \
              writer for dirty pages.",
    method: "A KB is 1024 bytes. As in the classic the first file was written and read before, so both stay in the \
             page cache. The classic counts those phases outside of the index and calls sync first; both are left \
             out here. The files are in Assay's folder in the directory of --dir; tmpfs has other costs than a \
             disk's filesystem. The copy is compared at the end.",
    metrics: &[Metric::new(ids::metric::SCORE, "KB copied a second", "KBps", Better::Higher, PER_S)],
    cases: copying_cases,
    run: copying,
    ..ROW
};

const SCRIPTS: Benchmark = Benchmark {
    about: "Rate at which a shell starts a number of scripts at once and waits for them. Each script sorts, dumps, \
            greps and counts a text of 9 KB.",
    reading: "More is better: 4–20 ms a script. A script runs ten processes, so it is mostly process start and end, \
              wake-ups and page faults. Compare hosts with the same shell and tools only; busybox, dash and bash \
              differ more than CPUs. With the suite's language installed sort, grep and wc take up to 20 % longer.",
    method: "A script sorts the text into a file and dumps that by od into another sort. It greps it into tee and \
             wc, and removes its files. The tools are the system's; text and script are Assay's, of the classic's \
             shape and size. The language is the suite's (en_US.utf8). The results are checked once, exit codes each \
             time. The files are in Assay's folder in the directory of --dir.",
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

/// Samples in units of the usual one: 20 ms in the quick profile, long enough for the scheduler to
/// move tasks.
const USUAL: f64 = 10.0;
/// Half a millisecond an exec.
const EXEC: f64 = 20.0;
/// Samples of ten loops and more, of four where eight scripts run at once.
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
    let placement = match scope.placements.free(roles) {
        Ok(placement) => placement,
        Err(why) => return vec![Candidate::unmet(bench.id, "free", why).param(COPIES.name, 1u64)],
    };
    // A process to fork for each.
    let setup_s = |copies: u64| 0.01 + copies as f64 * 1e-3;
    let cpus = scope.placements.cpus().len() as u64;
    let counts = [1, cpus.min(copies::MAX_COPIES as u64)];
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
                Some(format!("its files of {} MiB are more than a tenth of the free space", bytes >> 20));
        }
        file::in_directory(scope, candidate).memory(bytes)
    };
    free_cases(bench, scope).into_iter().map(with_files).collect()
}

fn copying(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let shape = Shape::of(case.id()).context("unknown file copy test")?;
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
        occupancy::tell(&mut candidate.case, scope.placements);
    }
    let mut apart = 0;
    for (distance, pair) in scope.placements.pairs(ROLES) {
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

/// A round trip takes 2–100 µs; a sample has many.
const CONTEXT_NS: f64 = 4e6;

fn context(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let stretch = pair::stretch(sampler.windows(), &case.placement, CONTEXT_NS);
    if copies::of(case)? == 1 {
        let play = PairPlan { metric: ids::metric::SCORE, stretch, wakeup_ns: 0.0 };
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

//! Signals: installing a handler, sending, catching, and faults that arrive as signals.

use crate::row::{latency_ns, value};
use anyhow::Context;
use model::vocabulary::kernel as ids;

use super::syscall::answers;
use super::{Benchmark, Candidate, Point, Sampler, Scope, View, check_answer, pinned};
use kernels::Faults;
use model::{Better, Case, Form, Params};
use sys::mapping::Mapping;
use sys::signals::{Counted, Ignored, send};

const NS: Form = Form::TimePerWork { scale: 1.0 };

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::SIGNAL_HANDLER,
        title: "Signal to a handler",
        about: "Time for a process to send itself a signal and run its handler. `install` is sigaction alone, `send` \
                an ignored signal, `handle` delivery alone.",
        reading: "Lower is better: install and send 0.1–0.4 µs, latency 0.5–2 µs. Most of it is saving and restoring \
                  registers (wider vectors take longer) and returning from the handler. signal.protection-fault is \
                  another case, raised by the CPU; do not subtract one from the other.",
        method: "`latency` is kill(SIGUSR1) until the handler has run and kill returns. `total` installs, sends and \
                 handles. `handle` is total less install less send, of the same pass. lmbench's handler overhead is \
                 latency less a kill with signal 0. Signals caught must equal those sent, and none may be caught \
                 while ignored.",
        source: file!(),
        metrics: &[
            latency_ns(ids::metric::LATENCY, "signal sent and handled"),
            latency_ns(ids::metric::INSTALL, "handler installed"),
            latency_ns(ids::metric::SEND, "signal sent while ignored"),
            latency_ns(ids::metric::TOTAL, "installed, sent and handled").aside(),
            value(ids::metric::HANDLE, "total less install less send", "ns", Better::Lower),
        ],
        view: &View::Wide,
        cases,
        run: handler,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::SIGNAL_PROTECTION_FAULT,
        title: "Protection fault",
        about: "Time of a write to a read-only page: the CPU traps, the kernel sends SIGSEGV, the handler skips the \
                write and returns.",
        reading: "Lower is better: 0.5–2 µs. Garbage collectors and checkpointers that protect memory pay it. \
                  lmbench subtracts its handler overhead; this figure is whole. Do not compare it with \
                  signal.handler, which has no fault but a system call.",
        method: "One figure covers the exception, the search for the memory area, delivery and return. Each write \
                 must fault, and the page must keep its content.",
        source: file!(),
        metrics: &[latency_ns(ids::metric::LATENCY, "fault, handler and return")],
        cases,
        run: protection_fault,
        ..Benchmark::PINNED
    },
];

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let mut candidates = pinned(bench, scope);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        let timed = bench.metrics.iter().filter(|metric| metric.form == NS).count();
        candidate.seconds = scope.seconds(timed, 1.0, 0.0);
        candidate.priority = 70;
    }
    candidates
}

fn handler(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let own = rustix::process::getpid();
    let handler = Counted::install().context("cannot install a handler for SIGUSR1")?;
    let mut sent = 0u64;
    let mut send_counted = || {
        sent += 1;
        send(own)
    };
    let at = |metric| Point::new(metric, 1.0);
    let install_again = || handler.install_again().map_err(errno);
    let before = handler.caught();
    answers(sampler, at(ids::metric::LATENCY), "kill", (), &mut send_counted)?;
    let install = answers(
        sampler,
        at(ids::metric::INSTALL),
        "sigaction with our handler before it",
        true,
        install_again,
    )?;
    let total = answers(sampler, at(ids::metric::TOTAL), "sigaction and kill", true, || {
        let was_ours = install_again()?;
        send_counted()?;
        Ok(was_ours)
    })?;
    all_caught(sent, handler.caught() - before)?;
    let ignored = Ignored::set().context("cannot ignore SIGUSR1")?;
    let send = answers(sampler, at(ids::metric::SEND), "kill with an ignored signal", (), || send(own))?;
    drop(ignored);
    all_caught(sent, handler.caught() - before)?;
    sampler.value(Params::new(), ids::metric::HANDLE, total - install - send, 0.0)
}

fn errno(error: std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

fn all_caught(sent: u64, caught: u64) -> anyhow::Result<()> {
    check_answer(sent == caught, || format!("{sent} signals were sent and {caught} caught"))
}

/// What the protected page holds, and what is tried to be written.
const KEPT: u64 = 0x5a5a_5a5a_5a5a_5a5a;
const TRIED: u8 = 0xff;

fn protection_fault(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut page = Mapping::guarded(rustix::param::page_size()).context("cannot map a page")?;
    page.words_mut().fill(KEPT);
    page.set_writable(false).context("cannot protect a page")?;
    let mut faults = Faults::on(&mut page).context("cannot install a handler for SIGSEGV")?;
    let (mut tried, mut faulted) = (0, 0);
    sampler.time(Point::new(ids::metric::LATENCY, 1.0), |n| {
        faulted += faults.write(TRIED, n);
        tried += n;
    })?;
    check_answer(tried == faulted, || format!("{tried} forbidden writes caused {faulted} faults"))?;
    check_answer(faults.memory().words().iter().all(|word| *word == KEPT), || {
        "a write to a read-only page succeeded".to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;
    use crate::rehearsal::visit_row;

    #[test]
    fn signals_and_faults_can_be_visited_and_the_difference_is_that_of_its_parts() {
        let samples = visit_row(ids::SIGNAL_HANDLER);
        let of = |name: &str| samples.iter().find(|one| one.metrics[0] == name).expect("sampled");
        let median = |name: &str| crate::median(of(name).values(NS).split_off(1));
        let handle = of("handle").values(Form::Value)[0];
        let expected = median("total") - median("install") - median("send");
        assert!((handle / expected - 1.0).abs() < 1e-6, "{handle} {expected}");
        visit_row(ids::SIGNAL_PROTECTION_FAULT);
    }

    #[test]
    fn a_lost_signal_is_a_wrong_answer() {
        assert!(all_caught(7, 7).is_ok());
        let error = all_caught(7, 6).expect_err("one was lost");
        assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error}");
    }
}

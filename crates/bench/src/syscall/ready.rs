//! Which of many descriptors is ready: select, poll and epoll on the same ones.

use std::os::fd::{AsFd, OwnedFd};

use anyhow::Context;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll};
use rustix::process::{Resource, getrlimit};

use super::answers;
use crate::row::log_curve;
use crate::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, pinned, point};
use model::vocabulary::kernel as ids;
use model::{Case, Params};

pub const SELECT: Benchmark = Benchmark {
    id: ids::SYSCALL_SELECT,
    title: "select",
    about: "Time of select on n descriptors without waiting. The kernel checks every descriptor and copies three \
            sets of bits.",
    run: select,
    ..ROW
};

pub const POLL: Benchmark = Benchmark {
    id: ids::SYSCALL_POLL,
    title: "poll",
    about: "Time of poll on n descriptors without waiting. The kernel checks every descriptor and copies 8 bytes for \
            each in and out.",
    run: poll,
    ..ROW
};

pub const EPOLL: Benchmark = Benchmark {
    id: ids::SYSCALL_EPOLL,
    title: "epoll",
    about: "Time of epoll_wait on n registered descriptors without waiting. The kernel checks only those that became \
            ready.",
    run: wait,
    ..ROW
};

const ROW: Benchmark = Benchmark {
    reading: "Lower is better. select and poll take 5–20 ns for each descriptor, more for sockets; epoll should be \
              flat at 0.1–0.3 µs. Above about ten descriptors epoll is the better choice. Steps in the poll curve \
              are allocations, beyond about 30 descriptors.",
    method: "All descriptors are event counters (eventfd) of which only the last is readable, and each answer must \
             name it. select is called as pselect6, which C libraries use, poll as ppoll. For epoll the descriptors \
             are registered once before (level-triggered).",
    source: file!(),
    params: &[Param::int(ids::param::FDS, "descriptors", 1..=1000)],
    view: &log_curve(ids::param::FDS),
    cases,
    points,
    ..Benchmark::PINNED
};

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Upper limit of other descriptors that a pass holds.
const OTHERS: u64 = 24;

/// Each pass measures the whole curve. More than 1024 are beyond select, and by default beyond a
/// process.
fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let wanted: &[u64] = match scope.depth {
        Depth::Quick => &[10, 100],
        _ => &[10, 20, 50, 100, 200, 500, 1000],
    };
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).saturating_sub(OTHERS);
    let counts: Vec<u64> = wanted.iter().copied().filter(|count| *count <= allowed).collect();
    if counts.is_empty() {
        let why = format!("only {allowed} further files may be opened: raise ulimit -n");
        return vec![Candidate::unmet(bench.id, "one-cpu", why)];
    }
    let mut candidates = pinned(bench, scope);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.unmet.is_none()) {
        candidate.priority = 70;
        let list = counts.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        candidate.case.inputs.insert(ids::param::FDS.into(), list);
        candidate.seconds = scope.seconds(counts.len(), 1.0, 0.0);
    }
    candidates
}

fn counts(case: &Case) -> Vec<u64> {
    let list = case.inputs.get(&*ids::param::FDS).map_or("", String::as_str);
    list.split(',').filter_map(|count| count.parse().ok()).collect()
}

fn points(case: &Case) -> Vec<Params> {
    counts(case).into_iter().map(|count| point(ids::param::FDS, count)).collect()
}

fn at(count: u64) -> Point {
    Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::FDS, count))
}

/// As many event counters, all empty but the last.
fn descriptors(count: u64) -> anyhow::Result<Vec<OwnedFd>> {
    let one = |index| rustix::event::eventfd(u32::from(index + 1 == count), EventfdFlags::CLOEXEC);
    (0..count)
        .map(|index| one(index).with_context(|| format!("cannot make event counter {index} of {count}")))
        .collect()
}

fn select(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    for count in counts(case) {
        let all = descriptors(count)?;
        let mut set = sys::ready::ReadSet::of(all.iter().map(AsFd::as_fd));
        answers(sampler, at(count), "select", 1, || {
            set.ask()
                .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
        })?;
        check_answer(all.last().is_some_and(|last| set.is_readable(last)), || {
            format!("select returned a wrong one of {count} descriptors")
        })?;
    }
    Ok(())
}

fn poll(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    for count in counts(case) {
        let all = descriptors(count)?;
        let mut asked: Vec<PollFd> = all.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        answers(sampler, at(count), "poll", (1, true), || {
            let ready = rustix::event::poll(&mut asked, Some(&AT_ONCE))?;
            Ok((ready, asked.last().is_some_and(|last| last.revents() == PollFlags::IN)))
        })?;
    }
    Ok(())
}

fn wait(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    for count in counts(case) {
        let all = descriptors(count)?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll set")?;
        for (fd, name) in all.iter().zip(1..) {
            epoll::add(&set, fd, epoll::EventData::new_u64(name), epoll::EventFlags::IN)
                .with_context(|| format!("cannot register descriptor {name} of {count}"))?;
        }
        // Room for more than the one that is ready, as programs have it.
        let nothing = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; 16];
        answers(sampler, at(count), "epoll_wait", (1, count), || {
            let ready = epoll::wait(&set, &mut events, Some(&AT_ONCE))?;
            Ok((ready, { events[0].data }.u64()))
        })?;
    }
    Ok(())
}

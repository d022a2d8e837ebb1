//! Two programs at once, each on its own of two like CPUs, which they swap for every other round:
//! what disturbs the host meanwhile disturbs both.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::output::OutputTail;
use super::{CommandSpec, GRACE, LEAVE, Streams, Tree, commands, ids, once, own_all};
use crate::Sampler;
use model::{Case, CpuSet, Params};
use sys::counters;
use sys::events::Events;
use sys::process::{self, Child};

/// What the two are called in words.
const ARMS: [&str; 2] = ["A", "B"];
/// Longest wait before the state of all processes is checked again.
const LOOK: Duration = Duration::from_secs(1);

/// A process that runs one of the two commands, and its pipe. It sends a blank when ready, starts
/// at the first byte received, reports the outcome, and emits its samples at the second byte.
struct CommandProcess {
    child: Child,
    line: UnixStream,
}

/// Clock readings at the start and the end of a run, ns, or why there are none.
type Went = Result<[f64; 2], String>;

/// Who sits on the first CPU in this round, and begins first; then the other one.
fn order(pass: u32) -> [usize; 2] {
    if pass.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// One round.
pub fn both(case: &Case, rival: &[String], sampler: &mut Sampler) -> anyhow::Result<()> {
    let (points, cpus) = (commands(case), case.placement.cpus());
    ensure!(points.len() == ARMS.len() && cpus.len() == ARMS.len(), "a duet needs two commands and two CPUs");
    let order = order(sampler.pass());
    // Before the forks: the children do as this process does.
    counters::die_as_the_parent_does();
    let _tree = Tree;
    let mut arms = [None, None];
    for (arm, cpu) in order.into_iter().zip(cpus.iter()) {
        let (line, theirs) = UnixStream::pair().context("cannot make a channel to a process")?;
        let words = (arm == 1).then_some(rival);
        let child = process::fork(|| match play(case, words, cpu, &points[arm], theirs, sampler) {
            Ok(()) => 0,
            Err(_) => 1,
        });
        arms[arm] = Some(CommandProcess { child: child.context("cannot start a process")?, line });
    }
    let [Some(a), Some(b)] = arms else { bail!("both commands need a CPU each") };
    let mut arms = [a, b];
    // After the forks: the children's signals are their own.
    let mut events = own_all()?;
    let ran = run_both(&mut arms, order, &mut events);
    if ran.is_err() {
        stop(&mut arms);
    }
    let [[a_begin, a_end], [b_begin, b_end]] = ran?;
    for (arm, name) in arms.iter_mut().zip(ARMS) {
        arm.line.write_all(b".").with_context(|| format!("{name}: its observer ended"))?;
        ensure!(arm.child.reap()?.success(), "{name}: its observer sent no valid data");
    }
    let longer = (a_end - a_begin).max(b_end - b_begin);
    let overlap = (a_end.min(b_end) - a_begin.max(b_begin)).max(0.0);
    sampler.value(Params::new(), ids::metric::OVERLAP, overlap / longer, longer)
}

/// Lets both begin, and waits for their ends.
fn run_both(
    arms: &mut [CommandProcess; 2],
    order: [usize; 2],
    events: &mut Events,
) -> anyhow::Result<[[f64; 2]; 2]> {
    let [a, b] = arms.each_ref().map(|arm| arm.line.try_clone().map(OwnedFd::from));
    let mut heard = Streams::of(Some(a?), Some(b?))?;
    let mut begun = false;
    loop {
        heard.wait(events, Instant::now() + LOOK)?;
        ensure!(!events.asked_to_end(), "this run was interrupted");
        heard.drain();
        let said = [&heard.out, &heard.err].map(OutputTail::text);
        if !begun && said.iter().all(|said| !said.is_empty()) {
            for arm in order {
                arms[arm].line.write_all(b".").context("an observer ended")?;
            }
            begun = true;
        }
        let mut ran = [None, None];
        for (arm, name) in ARMS.into_iter().enumerate() {
            // Its text ends with the line; an end without one is its watcher's.
            let went: Went = match (said[arm].ends_with(b"\n"), &heard.from[arm]) {
                (true, _) => serde_json::from_slice(&said[arm])?,
                (false, None) => Err("its observer ended".to_string()),
                (false, Some(_)) => continue,
            };
            ran[arm] = Some(went.map_err(|why| anyhow!("{name}: {why}"))?);
        }
        if let [Some(a), Some(b)] = ran {
            return Ok([a, b]);
        }
    }
}

/// Asks both to end, as programs of a run that failed are.
fn stop(arms: &mut [CommandProcess; 2]) {
    for arm in arms.iter() {
        // Already gone is as good as asked.
        let _ = Pid::from_raw(arm.child.id() as i32).map(|pid| kill_process(pid, Signal::TERM));
    }
    for arm in arms {
        let _ = arm.child.wait(GRACE + LEAVE);
    }
}

/// The process of one of the two: of A by the case's own words.
fn play(
    case: &Case,
    words: Option<&[String]>,
    cpu: u32,
    point: &Params,
    mut line: UnixStream,
    sampler: &mut Sampler,
) -> anyhow::Result<()> {
    let mut events = own_all()?;
    let mut heard = Streams::of(Some(line.try_clone()?.into()), None)?;
    let mut run = || {
        let mut told = CommandSpec { seats: CpuSet::one(cpu), ..CommandSpec::of(case)? };
        words.into_iter().for_each(|words| told.words = words.to_vec());
        once(told, sampler, &mut events, |events| {
            line.write_all(b" ")?;
            hear(&mut heard, 1, events)
        })
    };
    let ran = run();
    let went: Went = ran.as_ref().map(|ran| [ran.begin, ran.end]).map_err(|why| format!("{why:#}"));
    line.write_all(format!("{}\n", serde_json::to_string(&went)?).as_bytes())?;
    let ran = ran?;
    hear(&mut heard, 2, &mut events)?;
    ran.emit(point, sampler)
}

/// Waits until `bytes` bytes have arrived.
fn hear(heard: &mut Streams, bytes: usize, events: &mut Events) -> anyhow::Result<()> {
    while heard.out.text().len() < bytes {
        ensure!(!events.asked_to_end() && heard.from[0].is_some(), "this run was interrupted");
        heard.wait(events, Instant::now() + LOOK)?;
        heard.drain();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_and_turns_are_swapped_each_round() {
        assert_eq!([0, 1, 2, 3].map(order), [[0, 1], [1, 0], [0, 1], [1, 0]]);
    }
}

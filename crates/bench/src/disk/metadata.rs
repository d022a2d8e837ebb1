//! Calls that touch no data: `disk.metadata`.

use anyhow::{Context, bail, ensure};
use model::vocabulary::disk as ids;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::report;
use crate::buckets::Buckets;
use crate::file::{SHARE_OF_ROOM, directory_of};
use crate::{Point, Sampler, check_answer};
use model::{Case, Params};
use sys::clock::Clock;
use sys::scratch::Scratch;

/// The filesystem's own work makes samples uneven, so they are longer than usual.
pub const STRETCH: f64 = 2.0;
/// More files than this in one directory measure the directory: what takes longer goes over as many
/// again.
pub const MAX_FILES: u64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Create,
    Stat,
    Rename,
    Unlink,
}

/// What lies in the directory: files, and what they are renamed to.
const HOLDS: &[&str] = &["f#", "g#"];

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let op = match case.params.get(ids::param::OP).and_then(|op| op.text()) {
        Some("create") => Op::Create,
        Some("stat") => Op::Stat,
        Some("rename") => Op::Rename,
        Some("unlink") => Op::Unlink,
        other => bail!("unknown call {other:?}"),
    };
    if case.inputs.contains_key(super::DEVICE) {
        bail!("a raw device has no files");
    }
    let directory = directory_of(case);
    let scratch = Scratch::new(&directory, HOLDS)?;
    let clock = sampler.clock();
    let mut latencies = Buckets::new();
    let mut timed = 0.0;
    sampler.time_by(Point::new(ids::metric::RATE, 1.0).stretch(STRETCH), |calls| {
        let most = MAX_FILES.min(scratch.free_bytes()? / SHARE_OF_ROOM / 4096);
        ensure!(
            most > 0,
            "no space for a file in {}: name another directory with --dir",
            directory.display()
        );
        let ns = rounds(&scratch, op, calls, most, clock, &mut latencies)?;
        timed += ns;
        Ok(ns)
    })?;
    report::latencies(sampler, &Params::new(), latencies.histogram(), timed)
}

/// Splits `calls` into rounds with at most `most` files in the directory: files and calls of each.
/// `stat` repeats over the same files; all others start with an empty directory.
fn portions(op: Op, calls: u64, most: u64) -> Vec<(u64, u64)> {
    if op == Op::Stat {
        return vec![(calls.min(most), calls)];
    }
    let whole = (0..calls / most).map(|_| most);
    whole.chain(Some(calls % most).filter(|rest| *rest > 0)).map(|files| (files, files)).collect()
}

/// The time of `calls` calls of a kind, ns.
fn rounds(
    scratch: &Scratch,
    op: Op,
    calls: u64,
    most: u64,
    clock: Clock,
    latencies: &mut Buckets,
) -> anyhow::Result<f64> {
    let all = portions(op, calls, most);
    all.into_iter().map(|portion| round(scratch, op, portion, clock, latencies)).sum()
}

/// One round over `files` files, from an empty directory to an empty one: the time of the measured
/// calls, ns. There is one call for each file, but `calls` of stat.
fn round(
    scratch: &Scratch,
    op: Op,
    (files, calls): (u64, u64),
    clock: Clock,
    latencies: &mut Buckets,
) -> anyhow::Result<f64> {
    let folder = scratch.folder();
    let names: Vec<String> = (0..files).map(|index| format!("f{index:06}")).collect();
    let others: Vec<String> = (0..files).map(|index| format!("g{index:06}")).collect();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let create = |index: usize| -> anyhow::Result<()> {
        let made = rustix::fs::openat(folder, names[index].as_str(), flags, Mode::RUSR | Mode::WUSR);
        made.map(drop).context("cannot create a file")
    };
    let stat = |index: usize| -> anyhow::Result<()> {
        let name = names[index % names.len()].as_str();
        let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.context("cannot stat a file")?;
        check_answer(found.st_size == 0, || format!("an empty file has {} bytes", found.st_size))
    };
    let rename = |index: usize| {
        rustix::fs::renameat(folder, names[index].as_str(), folder, others[index].as_str())
            .context("cannot rename a file")
    };
    let unlink = |index: usize| {
        let name = if op == Op::Rename { &others[index] } else { &names[index] };
        rustix::fs::unlinkat(folder, name.as_str(), AtFlags::empty()).context("cannot remove a file")
    };
    // Timed or not, each call of a kind follows the other.
    let mut all = |call: &dyn Fn(usize) -> anyhow::Result<()>, calls: u64, timed| -> anyhow::Result<f64> {
        let begin = clock.now();
        let mut last = begin;
        for index in 0..calls as usize {
            call(index)?;
            if timed {
                let now = clock.now();
                latencies.record(now - last);
                last = now;
            }
        }
        Ok(clock.now() - begin)
    };
    let created = all(&create, files, op == Op::Create)?;
    let count = scratch.count()? as u64;
    check_answer(count == files, || format!("{count} files found after {files} were created"))?;
    let ns = match op {
        Op::Create | Op::Unlink => created,
        Op::Stat => all(&stat, calls, true)?,
        Op::Rename => all(&rename, files, true)?,
    };
    let count = scratch.count()? as u64;
    check_answer(count == files, || format!("{count} of {files} files are left"))?;
    let removed = all(&unlink, files, op == Op::Unlink)?;
    let count = scratch.count()?;
    check_answer(count == 0, || format!("{count} files were left after their removal"))?;
    Ok(if op == Op::Unlink { removed } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_calls_is_made_with_a_bounded_number_of_files() {
        assert_eq!(portions(Op::Stat, 50, 20), [(20, 50)]);
        assert_eq!(portions(Op::Stat, 7, 20), [(7, 7)]);
        for op in [Op::Create, Op::Rename, Op::Unlink] {
            assert_eq!(portions(op, 50, 20), [(20, 20), (20, 20), (10, 10)]);
            assert_eq!((portions(op, 40, 20).len(), portions(op, 1, 20)), (2, vec![(1, 1)]));
        }
    }

    #[test]
    fn each_round_times_one_call_a_file_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(folder.path(), HOLDS).expect("a directory");
        for op in [Op::Create, Op::Stat, Op::Rename, Op::Unlink] {
            let mut latencies = Buckets::new();
            for (most, total) in [(1000, 50), (20, 100)] {
                let ns = rounds(&scratch, op, 50, most, Clock::Raw, &mut latencies).expect("done");
                assert!(ns > 0.0);
                assert_eq!(latencies.histogram().total(), total, "{op:?}: calls, whatever the files");
                assert_eq!(scratch.count().expect("readable"), 0);
            }
        }
        std::fs::write(scratch.path().join("foreign"), "x").expect("a file");
        let error =
            round(&scratch, Op::Stat, (3, 3), Clock::Raw, &mut Buckets::new()).expect_err("one too many");
        assert!(error.to_string().contains("4 files found"), "{error}");
    }
}

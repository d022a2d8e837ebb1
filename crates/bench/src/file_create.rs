//! Making and removing small files.

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, Mode, OFlags};

use super::file::{SHARE_OF_ROOM, directory_of, in_directory, room};
use super::memory::{size_points, sizes_input, sizes_of};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, check_answer, point};
use crate::row::{curve, per_second};
use model::Case;
use model::vocabulary::file as ids;
use sys::clock::Clock;
use sys::scratch::Scratch;

pub const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: ids::CREATE,
    title: "Create and remove files",
    about: "Rate of creating and of removing files of 0, 1, 4 and 10 KiB in one directory. Nothing is synced.",
    reading: "More is better: 50–300 thousand a second on tmpfs, 20–100 thousand on ext4 and XFS, less on overlay \
              and network filesystems. Removing is about as fast as creating. Files with content also allocate and \
              free pages. Security modules, quotas, audit, virus scanners and full directories slow it down. For the \
              time to reach the disk see disk.sync.",
    method: "A file is opened with O_CREAT and O_EXCL, written with one call, and closed. Then all files are removed \
             in the order in which they were made. Both are timed separately, with the sizes of lmbench. The files \
             are counted after each phase, and the size of the last one is checked.",
    source: file!(),
    metrics: &[
        per_second(ids::metric::CREATE, "files created a second"),
        per_second(ids::metric::DELETE, "files removed a second"),
    ],
    params: &[Param::bytes(ids::param::BYTES, "bytes of each file", 0..=1 << 20)],
    view: &curve(ids::param::BYTES),
    cases,
    points: size_points,
    run,
    ..Benchmark::PINNED
}];

const SIZES: [u64; 4] = [0, 1 << 10, 4 << 10, 10 << 10];

/// The filesystem's own work makes samples uneven, so they are longer than usual.
const STRETCH: f64 = 2.0;
/// More files than this in one directory measure the directory.
const MAX_FILES: u64 = 20_000;

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let sizes: &[u64] = if scope.depth == Depth::Quick { &SIZES[..1] } else { &SIZES };
    if room(scope) < MAX_FILES * (16 << 10) {
        let why = "less than 3 GB are free for the files: name another directory with --dir".to_string();
        return vec![Candidate::unmet(bench.id, "one-cpu", why)];
    }
    let seconds = scope.seconds(sizes.len(), STRETCH, 0.0);
    let mut candidate = Candidate::new(bench.id, one, 65, seconds);
    candidate.case.inputs.insert(ids::param::BYTES.into(), sizes_input(sizes));
    vec![in_directory(scope, candidate)]
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let directory = directory_of(case);
    let scratch = Scratch::new(&directory, HOLDS)?;
    let clock = sampler.clock();
    for bytes in sizes_of(case) {
        let data = vec![0xa5u8; bytes as usize];
        let at = |metric| Point::new(metric, 1.0).at(point(ids::param::BYTES, bytes)).stretch(STRETCH);
        sampler.time_each(vec![at(ids::metric::CREATE), at(ids::metric::DELETE)], |files| {
            let room = files.saturating_mul(bytes.next_multiple_of(4096) + 4096);
            if files > MAX_FILES || room > scratch.free_bytes()? / SHARE_OF_ROOM {
                bail!("{files} files of {bytes} bytes do not fit {}", directory.display());
            }
            Ok(vec![make(&scratch, files, &data, clock)?, unmake(&scratch, files, clock)?])
        })?;
    }
    Ok(())
}

/// What lies in the directory.
const HOLDS: &[&str] = &["f#"];

fn name(index: u64) -> String {
    format!("f{index:06}")
}

/// Creates this many files of this content; returns the time, ns.
fn make(scratch: &Scratch, files: u64, data: &[u8], clock: Clock) -> anyhow::Result<f64> {
    let names: Vec<String> = (0..files).map(name).collect();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let begin = clock.now();
    for name in &names {
        let file = rustix::fs::openat(scratch.folder(), name.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .context("cannot make a file")?;
        if !data.is_empty() {
            let wrote = rustix::io::write(&file, data).context("cannot write a small file")?;
            check_answer(wrote == data.len(), || {
                format!("a write to a file took {wrote} of {} bytes", data.len())
            })?;
        }
    }
    let ns = clock.now() - begin;
    let count = scratch.count()?;
    check_answer(count as u64 == files, || format!("{count} files found after {files} were created"))?;
    let last = names.last().map_or("", String::as_str);
    let stat = rustix::fs::statat(scratch.folder(), last, AtFlags::SYMLINK_NOFOLLOW)
        .context("cannot stat the last file")?;
    check_answer(stat.st_size as usize == data.len(), || {
        format!("the last file has {} of {} bytes", stat.st_size, data.len())
    })?;
    Ok(ns)
}

/// Removes them in the order of their making; how long it took, ns.
fn unmake(scratch: &Scratch, files: u64, clock: Clock) -> anyhow::Result<f64> {
    let names: Vec<String> = (0..files).map(name).collect();
    let begin = clock.now();
    for name in &names {
        rustix::fs::unlinkat(scratch.folder(), name.as_str(), AtFlags::empty())
            .context("cannot remove a file")?;
    }
    let ns = clock.now() - begin;
    let count = scratch.count()?;
    check_answer(count == 0, || format!("{count} of {files} files were left after their removal"))?;
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WrongAnswer, rehearsal};

    #[test]
    fn files_are_counted_and_a_foreign_one_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(folder.path(), HOLDS).expect("a directory");
        for (files, data) in [(1, &b""[..]), (7, b"content")] {
            make(&scratch, files, data, Clock::Raw).expect("made");
            unmake(&scratch, files, Clock::Raw).expect("removed");
        }
        std::fs::write(scratch.path().join("other"), "").expect("a file");
        let error = make(&scratch, 3, b"", Clock::Raw).expect_err("one too many");
        assert!(error.downcast_ref::<WrongAnswer>().is_some_and(|wrong| wrong.0.contains("4 files found")));
        let error = unmake(&scratch, 3, Clock::Raw).expect_err("one is left");
        assert!(error.to_string().contains("1 of 3 files were left"), "{error}");
    }

    #[test]
    fn a_visit_emits_both_rates_at_every_size() {
        for case in rehearsal::cases(ids::CREATE, Depth::Standard) {
            let samples = rehearsal::visit_all(&case);
            let metrics: Vec<&str> =
                samples.iter().flat_map(|one| &one.metrics).map(String::as_str).collect();
            assert_eq!(metrics, [ids::metric::CREATE, ids::metric::DELETE].repeat(SIZES.len()));
        }
    }
}

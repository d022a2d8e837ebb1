//! Files in and out of the page cache: read(2) and mmap, with and without opening and closing.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::fs::{Mode, OFlags};

use super::memory::{last_level_bytes, size_points, sizes_input, sizes_of};
use super::{Benchmark, Candidate, Depth, Param, Point, Sampler, Scope, View, check_answer, point};
use crate::row::{gb_per_s, log_curve, note};
use kernels::{BLOCK_BYTES, Op, Stream, streams};
use model::vocabulary::file as ids;
use model::vocabulary::file::metric::{CACHED_SHARE, IO, OPEN_CLOSE};
use model::vocabulary::file::param::{BYTES, CACHE};
use model::{Case, CpuSet, Metric, Pages};
use sys::clock::Clock;
use sys::counters;
use sys::file_map::{FileMap, cached_share, drop_cached};
use sys::mapping::Mapping;
use sys::scratch::Scratch;

const METRICS: &[Metric] = &[
    gb_per_s(IO, "bandwidth, I/O only"),
    gb_per_s(OPEN_CLOSE, "bandwidth, open to close"),
    note(CACHED_SHARE, "share of the file in the page cache", ""),
];

const PARAMS: &[Param] = &[
    Param::choice(CACHE, "in the page cache (warm) or dropped from it (cold)", &["warm", "cold"]),
    Param::bytes(BYTES, "bytes of the file", 512..=1 << 46),
];

const CURVE: View = log_curve(BYTES);

const ROW: Benchmark = Benchmark {
    source: file!(),
    metrics: METRICS,
    params: PARAMS,
    view: &CURVE,
    cases,
    points: size_points,
    run,
    ..Benchmark::PINNED
};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::READ,
        title: "File read",
        about: "Bandwidth of read(2) on a file that is in the page cache (warm) or was dropped from it (cold). \
                open_close includes open and close.",
        reading: "Warm is the kernel's copy out of the page cache: 5–15 GB/s, more if the file fits the L3. It never \
                  exceeds memory bandwidth. Cold is the device with readahead: hard disk 0.1–0.25 GB/s, SATA 0.5, \
                  NVMe 1–7. Many requests at once reach more (disk.sequential). In a guest cold means this kernel's \
                  cache only; the host may still have the file in its own.",
        method: "The file is read in pieces of 64 KiB, as lmbench does, and every piece is added up and checked. \
                 Before each cold pass it is synced and dropped with posix_fadvise. mincore must confirm that: more \
                 than 1 % still cached fails the pass. cached_share is the largest share found before a cold pass \
                 and the smallest before warm ones.",
        ..ROW
    },
    Benchmark {
        id: ids::MMAP,
        title: "Mapped file read",
        about: "Bandwidth of adding up a file in place through mmap, warm or cold as in file.read. open_close \
                includes open, mmap, munmap and close.",
        reading: "Warm io is as fast as memory.bandwidth for a block of that size. open_close adds page faults and \
                  reaches a tenth to a half of that. Cold is the device behind single faults with readahead, mostly \
                  slower than file.read. In a guest cold means this kernel's cache only; the host may still have the \
                  file in its own.",
        method: "Warm io keeps its mapping with all pages entered, so the kernel has no part. Cold makes a new \
                 mapping before the clock starts. open_close takes one fault for every 64 KiB, as the kernel maps 16 \
                 pages around a fault. mincore is asked before each cold pass. A cold figure above memory bandwidth \
                 is rejected, because the file was warm. Every sum is checked.",
        ..ROW
    },
];

const MIB: u64 = 1 << 20;

/// Bytes of each read(2): lmbench's XFERSIZE.
const PIECE: usize = 64 << 10;

/// Largest share of the file that a cold pass may find in the cache, and a warm one may miss.
const MAX_CACHED: f64 = 0.01;

/// Files take no more than this share of a filesystem's free room.
pub const SHARE_OF_ROOM: u64 = 10;

/// The input of cold cases for which the whole host's page cache is to be dropped too, as the
/// user wishes.
pub const DROP_CACHES: &str = "drop_caches";

/// The directory that a case's files go to.
pub fn directory_of(case: &Case) -> PathBuf {
    case.inputs.get("dir").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Notes the directory of a case's files; a mere description of the host names none.
pub fn in_directory(scope: &Scope, mut candidate: Candidate) -> Candidate {
    if let Some(directory) = &scope.machine.directory {
        let on = format!("{} on {}", directory.filesystem, directory.device);
        candidate.case.inputs.extend([("dir".into(), directory.path.clone()), ("filesystem".into(), on)]);
    }
    candidate
}

/// The bytes that files may take there.
pub fn room(scope: &Scope) -> u64 {
    let free = scope.machine.directory.as_ref().and_then(|directory| directory.free_bytes);
    free.map_or(u64::MAX, |free| free / SHARE_OF_ROOM)
}

fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    let Ok(one) = scope.placements.one_cpu("task") else { return bench.no_cpu(scope) };
    let memory_only = scope.machine.directory.as_ref().filter(|directory| directory.is_memory());
    ["warm", "cold"]
        .into_iter()
        .map(|cache| {
            let unmet = |why| Candidate::unmet(bench.id, "one-cpu", why).param(CACHE, cache);
            let cold = cache == "cold";
            if let Some(directory) = memory_only.filter(|_| cold) {
                return unmet(format!(
                    "{} is {}, which is all cache: name a directory on a disk with --dir",
                    directory.path, directory.filesystem
                ));
            }
            // The file and what else the pass needs; a file in the cache is memory too.
            let most = room(scope).min(scope.memory_bytes / 4 * 3);
            let beyond = last_level_bytes(scope.machine, &one).saturating_mul(4).next_power_of_two();
            let mut sizes = match (scope.depth, cold) {
                (Depth::Quick, false) => vec![16 * MIB],
                (Depth::Quick, true) => vec![4 * MIB],
                (Depth::Standard, false) => {
                    let mut sizes = vec![MIB, 16 * MIB, 64 * MIB];
                    // In place no kernel copies: there the caches show most.
                    let in_place = bench.id == ids::MMAP;
                    sizes.extend(Some(beyond.min(STANDARD_MOST)).filter(|most| in_place && *most > 64 * MIB));
                    sizes
                }
                (Depth::Standard, true) => vec![16 * MIB],
                (Depth::Full, false) => {
                    let mut sizes = vec![MIB / 16, MIB / 4, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB];
                    sizes.extend(Some(beyond).filter(|beyond| *beyond > 1024 * MIB));
                    sizes
                }
                (Depth::Full, true) => vec![4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB],
            };
            sizes.retain(|size| *size <= most);
            let Some(largest) = sizes.last().copied() else {
                return unmet(format!("a file of 16 MiB is more than a tenth of the free space, or than memory allows ({most} bytes)"));
            };
            // Written at 1 GB/s, to a disk at half that; read at 4 GB/s and 1 GB/s.
            let (write, read) = if cold { (2e-9, 1e-9) } else { (1e-9, 0.25e-9) };
            let windows = (scope.windows.count + scope.windows.warm_up + 5) as f64;
            let window = |size: &u64| (*size as f64 * read).max(if cold { 0.0 } else { scope.windows.window_ns / 1e9 });
            let passes: f64 = sizes.iter().map(window).sum::<f64>() * windows * SPANS;
            let seconds = scope.seconds(0, 0.0, largest as f64 * write + passes);
            let priority = if cold { 65 } else { 70 };
            let mut candidate = Candidate::new(bench.id, one.clone(), priority, seconds).param(CACHE, cache);
            candidate.case.inputs.insert(BYTES.into(), sizes_input(&sizes));
            in_directory(scope, candidate).memory(largest)
        })
        .collect()
}

/// The standard profile has no time to go beyond caches larger than this.
const STANDARD_MOST: u64 = 256 * MIB;

/// Both are timed in every pass.
const SPANS: f64 = 2.0;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    Io,
    OpenClose,
}

fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let sizes = sizes_of(case);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let cold = case.params.get(CACHE).and_then(|cache| cache.text()) == Some("cold");
    let clock = sampler.clock();
    let mut file = TestFile::written(&directory_of(case), largest, sampler.seed() >> 32)?;
    if cold {
        file.sync()?;
    }
    for bytes in sizes {
        let mut shares: Vec<f64> = Vec::new();
        for (metric, span) in [(IO, Span::Io), (OPEN_CLOSE, Span::OpenClose)] {
            // One mapping for all passes through a warm file.
            let mut kept = None;
            sampler.time_by(Point::new(metric, bytes as f64).at(point(BYTES, bytes)), |passes| {
                let mut ns = 0.0;
                if !cold {
                    shares.push(file.must_be_warm(bytes)?);
                }
                for _ in 0..passes {
                    if cold {
                        kept = None;
                        if case.inputs.contains_key(DROP_CACHES) {
                            counters::drop_all_caches().context("cannot drop all caches (vm.drop_caches)")?;
                        }
                        shares.push(file.make_cold(bytes)?);
                    }
                    let (sum, took) = match case.id() {
                        Some(ids::READ) => file.read(bytes, span, clock)?,
                        _ => file.map(bytes, span, clock, &mut kept)?,
                    };
                    ns += took;
                    let meant = file.sum(bytes);
                    check_answer(sum == meant, || {
                        format!("{bytes} bytes of the file add up to {sum}, not {meant}")
                    })?;
                }
                Ok(ns)
            })?;
        }
        let worst = shares.into_iter().reduce(if cold { f64::max } else { f64::min });
        sampler.value(point(BYTES, bytes), CACHED_SHARE, worst.unwrap_or(0.0), 0.0)?;
    }
    Ok(())
}

const NAME: &str = "data";

/// A file of our own whose word number i is i + salt.
struct TestFile {
    scratch: Scratch,
    file: OwnedFd,
    salt: u64,
    piece: Mapping,
    adder: Stream,
}

impl TestFile {
    /// Writes it; all of it is in the page cache then.
    fn written(directory: &Path, bytes: u64, salt: u64) -> anyhow::Result<TestFile> {
        let scratch = Scratch::new(directory, &[NAME])?;
        let free = scratch.free_bytes()?;
        if bytes > free / SHARE_OF_ROOM {
            bail!(
                "a file of {bytes} bytes is more than a tenth of the {free} bytes free in {}",
                directory.display()
            );
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(scratch.folder(), NAME, flags, Mode::RUSR | Mode::WUSR)
            .context("cannot make the test file")?;
        let mut piece = Mapping::private(PIECE, Pages::AsGiven, &CpuSet::default())?;
        for at in (0..bytes).step_by(PIECE) {
            for (word, index) in piece.words_mut().iter_mut().zip(at / 8..) {
                *word = index + salt;
            }
            let count = PIECE.min((bytes - at) as usize);
            let data = &piece.bytes_mut()[..count];
            let wrote = rustix::io::write(&file, data).context("cannot write the test file")?;
            if wrote != count {
                bail!("the filesystem took {wrote} of {count} bytes: is it full?");
            }
        }
        let adder = streams(Op::Read)[0];
        Ok(TestFile { scratch, file, salt, piece, adder })
    }

    fn sync(&self) -> anyhow::Result<()> {
        rustix::fs::fsync(&self.file).context("cannot sync the test file")
    }

    /// What its first `bytes` add up to.
    fn sum(&self, bytes: u64) -> u64 {
        let words = bytes / 8;
        (words * words.saturating_sub(1) / 2).wrapping_add(words.wrapping_mul(self.salt))
    }

    fn open(&self) -> anyhow::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(self.scratch.folder(), NAME, flags, Mode::empty())
            .context("cannot open the test file")
    }

    fn cached_share(&self, bytes: u64) -> anyhow::Result<f64> {
        cached_share(&self.file, bytes as usize)
            .context("cannot read how much of the file is cached (mincore)")
    }

    fn must_be_warm(&self, bytes: u64) -> anyhow::Result<f64> {
        let share = self.cached_share(bytes)?;
        if share < 1.0 - MAX_CACHED {
            bail!("only {:.1} % of the file stayed in the page cache: free some memory", share * 100.0);
        }
        Ok(share)
    }

    /// Drops it from the page cache and sees that it is gone; returns the share that stayed.
    fn make_cold(&self, bytes: u64) -> anyhow::Result<f64> {
        const TRIES: u32 = 4;
        let mut share = 1.0;
        for attempt in 0..TRIES {
            drop_cached(&self.file).context("cannot drop the file from the page cache (posix_fadvise)")?;
            share = self.cached_share(bytes)?;
            if share <= MAX_CACHED {
                return Ok(share);
            }
            // Pages on their way to a list of the kernel's cannot be dropped just then.
            std::thread::sleep(Duration::from_millis(1 << attempt));
        }
        bail!(
            "{:.1} % of the file stayed in the page cache after it was dropped: name another directory with --dir",
            share * 100.0
        )
    }

    /// Reads the first `bytes` piece by piece; their sum, and how long it took.
    fn read(&mut self, bytes: u64, span: Span, clock: Clock) -> anyhow::Result<(u64, f64)> {
        let open = match span {
            Span::Io => Some(self.open()?),
            Span::OpenClose => None,
        };
        let begin = clock.now();
        let file = match open {
            Some(file) => file,
            None => self.open()?,
        };
        let (mut sum, mut left) = (0u64, bytes as usize);
        while left > 0 {
            let piece = &mut self.piece.bytes_mut()[..left.min(PIECE)];
            let count = rustix::io::read(&file, piece).context("cannot read the test file")?;
            if count == 0 || !count.is_multiple_of(BLOCK_BYTES) {
                bail!("a read of the test file returned {count} bytes");
            }
            sum = sum.wrapping_add(self.adder.run(&mut self.piece.words_mut()[..count / 8], 1, 0));
            left -= count;
        }
        let io_end = clock.now();
        drop(file);
        let end = if span == Span::Io { io_end } else { clock.now() };
        Ok((sum, end - begin))
    }

    /// Adds up the first `bytes` in a mapping; their sum, and how long it took. I/O only goes
    /// through `kept`.
    fn map(
        &self,
        bytes: u64,
        span: Span,
        clock: Clock,
        kept: &mut Option<FileMap>,
    ) -> anyhow::Result<(u64, f64)> {
        let map = |file: &OwnedFd| FileMap::new(file, bytes as usize).context("cannot map the test file");
        if span == Span::Io {
            let mapped = match kept {
                Some(mapped) => mapped,
                None => kept.insert(map(&self.file)?),
            };
            let begin = clock.now();
            let sum = self.adder.run(mapped.words_mut(), 1, 0);
            return Ok((sum, clock.now() - begin));
        }
        let begin = clock.now();
        let file = self.open()?;
        let mut mapped = map(&file)?;
        let sum = self.adder.run(mapped.words_mut(), 1, 0);
        drop((mapped, file));
        Ok((sum, clock.now() - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Placements;
    use crate::rehearsal;
    use machine::{Directory, Machine};
    use model::Reason;

    /// On the disk that holds the program: a temporary directory may well be in memory.
    fn disk() -> PathBuf {
        let program = std::env::current_exe().expect("a program");
        program.parent().expect("a folder").to_path_buf()
    }

    fn file(bytes: u64) -> TestFile {
        TestFile::written(&disk(), bytes, 77).expect("a test file")
    }

    fn on(filesystem: &str, free_bytes: u64) -> Vec<Candidate> {
        let mut machine = Machine::default();
        machine.cpus.online = CpuSet::one(0);
        machine.directory = Some(Directory {
            path: "/data".into(),
            filesystem: filesystem.into(),
            free_bytes: Some(free_bytes),
            ..Directory::default()
        });
        let placements = Placements::of(&machine);
        let scope = Scope::new(&machine, &placements, Depth::Standard, 1 << 30);
        cases(&BENCHMARKS[1], &scope)
    }

    #[test]
    fn files_take_a_tenth_of_the_room_and_memory_has_nothing_cold() {
        let ext4 = on("ext4", 300 * MIB);
        assert_eq!(sizes_of(&ext4[0].case), [MIB, 16 * MIB]);
        assert_eq!(ext4[1].case.inputs["dir"], "/data");
        let tmpfs = on("tmpfs", 1 << 40);
        // Beyond the size that is assumed for an unreported last-level cache.
        let largest = sizes_of(&tmpfs[0].case).into_iter().max();
        assert!(
            tmpfs[0].unmet.is_none()
                && largest.is_some_and(|most| (64 * MIB..=STANDARD_MOST).contains(&most))
        );
        assert!(tmpfs[1].unmet.as_ref().is_some_and(|why| why.contains("is all cache")));
        assert!(on("ext4", 2 * MIB).iter().all(|candidate| candidate.unmet.is_some()));
    }

    #[test]
    fn cold_is_out_of_the_cache_and_a_pass_makes_it_warm() {
        let mut file = file(4 * MIB);
        assert_eq!(file.must_be_warm(4 * MIB).expect("a fresh file is warm"), 1.0);
        file.sync().expect("synced");
        match file.make_cold(4 * MIB) {
            Err(error) => {
                return println!("skipped: no directory with a page cache before a disk here ({error})");
            }
            Ok(share) => assert!(share <= MAX_CACHED),
        }
        assert!(
            file.must_be_warm(4 * MIB).is_err_and(|error| error.to_string().contains("free some memory"))
        );
        let (sum, ns) = file.read(4 * MIB, Span::OpenClose, Clock::Raw).expect("read");
        assert_eq!((sum, ns > 0.0), (file.sum(4 * MIB), true));
        assert_eq!(file.cached_share(4 * MIB).expect("mincore"), 1.0);
    }

    #[test]
    fn what_is_mapped_and_what_lies_in_memory_stays_and_fails_the_pass() {
        let shm = Path::new("/dev/shm");
        let Ok(in_memory) = TestFile::written(shm, MIB, 1) else {
            return println!("skipped: no {}", shm.display());
        };
        let error = in_memory.make_cold(MIB).expect_err("it has nowhere else to be").to_string();
        assert!(error.contains("100.0 % of the file stayed"), "{error}");
    }

    #[test]
    fn both_ways_read_the_same_and_a_changed_word_is_seen() {
        let mut file = file(MIB);
        for span in [Span::Io, Span::OpenClose] {
            for bytes in [64 << 10, MIB] {
                let mut kept = None;
                assert_eq!(file.read(bytes, span, Clock::Raw).expect("read").0, file.sum(bytes));
                assert_eq!(file.map(bytes, span, Clock::Raw, &mut kept).expect("mapped").0, file.sum(bytes));
                assert_eq!(kept.is_some(), span == Span::Io);
            }
        }
        rustix::io::pwrite(&file.file, b"x", 70_000).expect("written");
        assert_ne!(file.read(MIB, Span::Io, Clock::Raw).expect("read").0, file.sum(MIB));
        assert_ne!(file.map(MIB, Span::OpenClose, Clock::Raw, &mut None).expect("mapped").0, file.sum(MIB));
        assert!(TestFile::written(&disk(), 1 << 60, 0).is_err());
    }

    #[test]
    fn visits_emit_both_bandwidths_and_leave_nothing() {
        let directory = tempfile::tempdir_in(disk()).expect("a folder");
        for id in [ids::READ, ids::MMAP] {
            for mut case in rehearsal::cases(id, Depth::Quick) {
                case.inputs.insert("dir".into(), directory.path().to_string_lossy().into_owned());
                case.inputs.insert(BYTES.into(), MIB.to_string());
                let samples = match rehearsal::visit(&case) {
                    (samples, None) => samples,
                    (_, Some(Reason::WrongAnswer(why))) => panic!("{}: {why}", case.key()),
                    (_, Some(reason)) if case.key().contains("cold") => {
                        println!("skipped {}: {}", case.key(), reason.text());
                        continue;
                    }
                    (_, reason) => panic!("{}: {reason:?}", case.key()),
                };
                let metrics: Vec<&str> =
                    samples.iter().flat_map(|one| &one.metrics).map(String::as_str).collect();
                assert_eq!(metrics, [IO, OPEN_CLOSE, CACHED_SHARE], "{}", case.key());
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}

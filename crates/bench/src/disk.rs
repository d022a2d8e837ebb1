//! Disks: sequential, random and paced I/O, past the page cache or through it, and what makes data
//! durable.

use super::{Benchmark, Depth, Param, View};
use crate::row::{fact, gb_per_s, per_second, quantile_us, value};
use model::vocabulary::disk as ids;
use model::{Better, Metric};

mod cases;
mod crew;
mod engine;
mod job;
mod metadata;
mod overrides;
mod pace;
mod pattern;
mod report;
mod stream;
mod sustained;
mod sync;
mod target;
mod trim;
mod verify;
mod way;

pub use cases::{
    DEVICE, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_NUMBER, DEVICE_WRITE, MAX_JOBS, SECONDS, not_on_a_device,
};
pub use overrides::{Overrides, wished};

const BANDWIDTH: Metric = gb_per_s(ids::metric::BANDWIDTH, "bandwidth");
const IOPS: Metric = per_second(ids::metric::IOPS, "IOPS");

const P50: Metric = quantile_us(ids::metric::LATENCY_P50, "latency, median", 0.5);
const P90: Metric = quantile_us(ids::metric::LATENCY_P90, "latency, 90th percentile", 0.9);
const P99: Metric = quantile_us(ids::metric::LATENCY_P99, "latency, 99th percentile", 0.99);
const P999: Metric = quantile_us(ids::metric::LATENCY_P999, "latency, 99.9th percentile", 0.999);
const P9999: Metric = quantile_us(ids::metric::LATENCY_P9999, "latency, 99.99th percentile", 0.9999);
const MAX: Metric = quantile_us(ids::metric::LATENCY_MAX, "latency, longest", 1.0);
const CPU_PER_IO: Metric = value(ids::metric::CPU_PER_IO, "CPU time for each I/O", "us", Better::Lower);
const GENERATOR_BUSY: Metric = fact(ids::metric::GENERATOR_BUSY, "CPU share of the load generator", "");
const DEVICE_SHARE: Metric =
    fact(ids::metric::DEVICE_SHARE, "bytes moved by the device for each byte of I/O", "");
const IN_FLIGHT: Metric = fact(ids::metric::IN_FLIGHT, "I/Os in flight at the device, mean", "");
const DEVICE_BUSY: Metric = fact(ids::metric::DEVICE_BUSY, "busy share of the device", "");

/// A row's own metrics, then those of every I/O benchmark.
macro_rules! beside_io {
    ($($own:expr),+) => {
        &[
            $($own,)+
            P90.detail(),
            P999.detail(),
            P9999.detail(),
            MAX.detail(),
            CPU_PER_IO,
            GENERATOR_BUSY,
            DEVICE_SHARE,
            IN_FLIGHT,
            DEVICE_BUSY,
        ]
    };
}

const OP: Param = Param::choice(ids::param::OP, "kind of I/O", &["read", "write", "mixed"]);
const CACHE: Param =
    Param::choice(ids::param::CACHE, "past the page cache (O_DIRECT) or through it", &["direct", "buffered"]);
const ENGINE: Param = Param::choice(
    ids::param::ENGINE,
    "I/O engine, if not io_uring with interrupts",
    &["uring", "polled", "psync"],
);
const TIME: Param = Param::int(SECONDS, "seconds of each point, if not the profile's", 1..=3600);
const BLOCK: Param = Param::bytes(ids::param::BLOCK, "bytes of each I/O", 512..=1 << 26);
const DEPTH: Param = Param::int(ids::param::DEPTH, "I/Os in flight of each job", 1..=1024);
/// Only of as many as were chosen: "one-per-core" and "one-cpu" say it themselves.
const JOBS: Param = Param::int(
    ids::param::JOBS,
    "jobs at once, if chosen by --jobs or fewer than cores",
    2..=cases::MAX_JOBS as i64,
);

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::SEQUENTIAL,
        title: "Sequential I/O",
        about: "Bandwidth and latency of reading or writing a file from start to end, past the page cache or through \
                it.",
        reading: "Hard disk 0.1–0.25 GB/s, SATA 0.5, NVMe 1–14; a cloud volume gives what was paid for. At depth 1 \
                  each block waits for one round trip. device_share near 1 means that the device did the work, near \
                  0 a cache. Above 1, other work uses the device or copies are written. A small or fresh file looks \
                  faster than a full disk (see disk.sustained). generator_busy near 1 means that the CPU was the \
                  limit.",
        method: "I/O goes through io_uring with registered file and buffers. Where that is refused, pread and pwrite \
                 run at depth 1 (engine=psync). direct is O_DIRECT. buffered drops the file from the page cache \
                 before reading it and again at each end. The file is allocated, filled with incompressible data \
                 past the cache, and synced. Each job is a pinned process with its own file. A sample runs from one \
                 completion to another. Latency counts from before submission until the completion is seen. A \
                 percentile is given if at least ten I/Os lie beyond it. The device's own counters and the \
                 generator's CPU time are recorded.",
        source: file!(),
        metrics: beside_io![BANDWIDTH, IOPS.aside(), P50.aside(), P99.aside()],
        params: &[OP, CACHE, ENGINE, JOBS, TIME, BLOCK, DEPTH],
        view: &View::Wide,
        cases: cases::sequential,
        points: cases::points,
        run: stream::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::RANDOM,
        title: "Random I/O",
        about: "IOPS and latency of reads and writes at random places of a file. mixed is seven reads to three \
                writes.",
        reading: "4 KiB at depth 1 is latency: 100–250 IOPS on a hard disk, 5–15 thousand on NVMe and good cloud \
                  volumes. Depth 32 is what the device does at once: 100–1000 thousand on NVMe. IOPS that stop \
                  growing with depth have reached a limit of the device or the plan; more depth then only adds \
                  latency. A file that fits a cache of the device or host is read from that cache. For durable \
                  writes see disk.sync.",
        method: "As disk.sequential, at places drawn evenly and independently, each a whole number of blocks from \
                 the start. buffered reads begin with the file dropped from the page cache, which then fills. \
                 device_share is the share that still came from the device.",
        source: file!(),
        metrics: beside_io![IOPS, BANDWIDTH.aside(), P50.aside(), P99.aside()],
        params: &[OP, CACHE, ENGINE, JOBS, TIME, BLOCK, DEPTH],
        view: &View::Wide,
        cases: cases::random,
        points: cases::points,
        run: stream::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::PACED,
        title: "I/O at a fixed rate",
        about: "Latency of random I/O that arrives at a fixed rate, whether or not earlier I/O has completed (open \
                loop).",
        reading: "Lower is better: near the latency of disk.random at depth 1 while the device keeps up. p99 is what \
                  one request in a hundred sees. If achieved is below the rate, the device cannot do that much. The \
                  latency is then only the length of the run, so choose a lower rate.",
        method: "Latency counts from when an I/O was due, not from when it was submitted. A stall therefore delays \
                 every I/O that was due meanwhile, as it would for users. Up to 256 are in flight, and the others \
                 wait with their latency running. I/O that is still open some time after the end counts with the \
                 time it has waited. achieved is what completed within the time in which the I/O was due.",
        source: file!(),
        metrics: beside_io![
            P99,
            per_second(ids::metric::ACHIEVED, "I/Os completed a second in the time when due").aside(),
            P50.aside()
        ],
        params: &[
            OP,
            CACHE,
            ENGINE,
            TIME,
            BLOCK,
            Param::int(ids::param::RATE, "I/Os due a second, all jobs together", 1..=10_000_000),
        ],
        from: Depth::Standard,
        view: &View::Wide,
        cases: cases::paced,
        points: cases::points,
        run: pace::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::SYNC,
        title: "fsync and fdatasync",
        about: "Latency of fsync or fdatasync after overwriting 4 KiB of a file of Assay's own. The write itself is \
                not timed.",
        reading: "Lower is better, and it is the cost of a database commit. 20–100 µs is a write cache, one that \
                  survives a power cut or one that does not. 0.3–2 ms is flash or a network volume that really \
                  writes, 5–30 ms a hard disk. fsync above fdatasync is the filesystem's journal. Below 20 µs \
                  nothing was made durable, as on tmpfs, without barriers, or in a guest whose host does not flush.",
        method: "One block after the other is overwritten with write(2). All blocks were written and synced before, \
                 so fdatasync has no metadata to write.",
        source: file!(),
        metrics: beside_io![P50, IOPS.aside(), P99.aside()],
        params: &[Param::choice(ids::param::OP, "the call that is timed", &["fsync", "fdatasync"]), BLOCK],
        view: &View::Wide,
        cases: cases::sync,
        points: cases::points,
        run: sync::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::METADATA,
        title: "File metadata",
        about: "Rate and latency of create, stat, rename and unlink on empty files in one directory.",
        reading: "More is better. stat reaches 0.5–2 million a second, the others 50–400 thousand on ext4 and XFS. \
                  Overlay is slower, a network filesystem ten times slower or more. latency_max shows waits for the \
                  journal. Quotas, audit, security modules and directory watches slow it down.",
        method: "Each call is timed: open with O_CREAT and O_EXCL and close, stat, rename within the directory, \
                 unlink. Nothing is synced, so the filesystem works in memory and waits only for its journal. The \
                 files are counted after each round. At most 20,000 exist at once; longer samples have several \
                 rounds.",
        source: file!(),
        metrics: &[
            per_second(ids::metric::RATE, "calls a second"),
            P50.aside(),
            P90.detail(),
            P99.aside(),
            P999.detail(),
            P9999.detail(),
            MAX.detail(),
        ],
        params: &[Param::choice(
            ids::param::OP,
            "the call that is timed",
            &["create", "stat", "rename", "unlink"],
        )],
        from: Depth::Standard,
        cases: cases::metadata,
        run: metadata::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::TRIM,
        title: "Discard (TRIM)",
        about: "Latency of giving blocks of a file or raw device back. A file gets holes (fallocate), a raw device \
                is discarded (BLKDISCARD).",
        reading: "Lower is better. A filesystem takes 10–200 µs and only notes the hole. A mount with `discard` \
                  passes it on when its journal commits. A raw device takes 20 µs–10 ms, and some devices delay all \
                  other I/O meanwhile. device_share is the bytes that the device discarded for each byte given back. \
                  It is 0 where the filesystem leaves discards to fstrim.",
        method: "The file was written and synced before. Blocks are given back one by one, in the order of the file, \
                 and the file is synced at the end.",
        source: file!(),
        metrics: &[P50, P90.detail(), P99.aside(), P999.detail(), P9999.detail(), MAX.detail(), DEVICE_SHARE],
        params: &[BLOCK],
        from: Depth::Full,
        cases: cases::trim,
        points: cases::points,
        run: trim::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::VERIFY,
        title: "Write, read back and compare",
        about: "Whether a disk returns what was written. A file is written, synced, read back past the page cache \
                and compared word by word.",
        reading: "The speed matters little: about half of what the disk writes and reads. A figure at all means that \
                  every byte came back. A wrong answer names the block. An old generation is a lost write, another \
                  place a misdirected one, anything else is damage in cable, controller or memory.",
        method: "Each 4 KiB hold their place and the generation of the file in every word. The next generation \
                 overwrites the same place. A sample is one generation: write, sync, read and compare. A wrong word \
                 is reported with its offset.",
        source: file!(),
        metrics: &[BANDWIDTH],
        params: &[BLOCK],
        from: Depth::Standard,
        cases: cases::verify,
        points: cases::points,
        run: verify::run,
        ..Benchmark::PINNED
    },
    Benchmark {
        id: ids::SUSTAINED,
        title: "Sustained writes",
        about: "Bandwidth of sequential writes past the page cache over a minute (or --io-time), as a time line.",
        reading: "Flat is good: a steady state. A fall after a high start means that a fast cache was full or burst \
                  credits were spent. The lower level is the sustained figure. Flat at a round number is a limit \
                  that was set. Repeated falls and rises mean that the device cleans up in between.",
        method: "A file is written over and over. Each sample is half a second, kept in order. The file was filled \
                 once before, so the disk is already in use; the notes of the pass name its size.",
        source: file!(),
        metrics: beside_io![BANDWIDTH, P50.aside(), P99.aside()],
        params: &[OP, CACHE, ENGINE, TIME, BLOCK, DEPTH],
        from: Depth::Full,
        cases: cases::sustained,
        points: cases::points,
        run: sustained::run,
        ..Benchmark::PINNED
    },
];

#[cfg(test)]
mod tests;

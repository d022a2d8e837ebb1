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
mod wish;

pub use cases::{
    DEVICE, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_NUMBER, DEVICE_WRITE, MOST_JOBS, SECONDS, not_on_a_device,
};
pub use wish::{Wish, wished};

const BANDWIDTH: Metric = gb_per_s(ids::metric::BANDWIDTH, "bytes read and written a second");
const IOPS: Metric = per_second(ids::metric::IOPS, "IOPS");

const P50: Metric = quantile_us(ids::metric::LATENCY_P50, "latency, median", 0.5);
const P90: Metric = quantile_us(ids::metric::LATENCY_P90, "latency, 90th percentile", 0.9);
const P99: Metric = quantile_us(ids::metric::LATENCY_P99, "latency, 99th percentile", 0.99);
const P999: Metric = quantile_us(ids::metric::LATENCY_P999, "latency, 99.9th percentile", 0.999);
const P9999: Metric = quantile_us(ids::metric::LATENCY_P9999, "latency, 99.99th percentile", 0.9999);
const MAX: Metric = quantile_us(ids::metric::LATENCY_MAX, "latency, longest", 1.0);
const CPU_PER_IO: Metric = value(ids::metric::CPU_PER_IO, "CPU for an I/O", "us", Better::Lower);
const GENERATOR_BUSY: Metric =
    fact(ids::metric::GENERATOR_BUSY, "share of its CPUs' time that the generator ran", "");
const DEVICE_SHARE: Metric =
    fact(ids::metric::DEVICE_SHARE, "bytes that the device moved for a byte of ours", "");
const IN_FLIGHT: Metric = fact(ids::metric::IN_FLIGHT, "I/Os in flight at the device, mean", "");
const DEVICE_BUSY: Metric = fact(ids::metric::DEVICE_BUSY, "share of time that the device had work", "");

/// A row's own metrics, then those beside every I/O.
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

const OP: Param = Param::choice(ids::param::OP, "what is done", &["read", "write", "mixed"]);
const CACHE: Param =
    Param::choice(ids::param::CACHE, "past the page cache (O_DIRECT) or through it", &["direct", "buffered"]);
const ENGINE: Param = Param::choice(
    ids::param::ENGINE,
    "how I/O is asked for, where it is not the usual io_uring that interrupts end",
    &["uring", "polled", "psync"],
);
const TIME: Param =
    Param::int(SECONDS, "how long a point counts, s, where that is not the profile's", 1..=3600);
const BLOCK: Param = Param::int(ids::param::BLOCK, "bytes of an I/O", 512..=1 << 26);
const DEPTH: Param = Param::int(ids::param::DEPTH, "I/Os in flight of each job", 1..=1024);
/// Only of as many as were chosen: "one-per-core" and "one-cpu" say it themselves.
const JOBS: Param = Param::int(
    ids::param::JOBS,
    "jobs at once, where their number was chosen (--jobs) or there are more cores than jobs",
    2..=cases::MOST_JOBS as i64,
);

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: ids::SEQUENTIAL,
        title: "Sequential I/O",
        about: "Reads or writes a file of our own from its beginning to its end, again and again, so many blocks in \
                flight (io_uring with registered file and buffers, submitted together; where a kernel or container refuses it \
                pread and pwrite at depth 1, as cases of their own: engine=psync). direct: O_DIRECT, past \
                the page cache. buffered: through it; a read begins with the file dropped from the cache and drops it again \
                at each end of the file. The file is preconditioned: allocated, and filled with incompressible data just \
                before, by writes past the cache, and synced. Jobs are the placement's seats: a pinned process each, with a file of its \
                own. A window is a stretch of time, from one completion to another; I/Os in flight go on between windows. Latency is from \
                before submitting to after the completion was seen, of all counted windows in one histogram a visit; a \
                percentile stands there only where ten I/Os or more lie beyond it. Beside it: CPU time of the generator, \
                and what the block device's own counters (its stat file) say it moved.",
        reading: "A hard disk 0.1 to 0.25 GB/s, SATA 0.5, NVMe 1 to 14, a cloud volume what was paid for, exactly. Depth 1 \
                  pays a round trip for each block. device_share near 1: the device did it; near 0: a cache did; above: \
                  somebody else uses the device, or copies are written. A file is small beside a disk: a device's own cache \
                  and unused burst credits make short runs look better than long ones (disk.sustained), and a file that was just \
                  written is in fresh flash (SLC). generator_busy near 1: the CPU was measured, not the disk.",
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
        about: "As disk.sequential, at places of the file drawn evenly and independently, each a whole number of blocks \
                from its beginning. mixed: seven reads to three writes, drawn too. buffered: a read begins with the file \
                dropped from the page cache, which then fills: device_share says how much still came from the device.",
        reading: "Blocks of 4 KiB at depth 1 are latency: 100 to 250 a second of a hard disk, 5 to 15 thousand of NVMe \
                  and of good cloud volumes. At depth 32 it is what the device does at once: 100 to 1000 thousand of NVMe; a \
                  number that stays the same from some depth on is a limit (of the device, or one that was paid for), and \
                  more depth then only makes waiting longer. Reads of a file that fits the device's or the host's cache are that \
                  cache's. Writes are acknowledged by a cache that may or may not survive a power cut: see disk.sync.",
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
        about: "Random I/Os of a file of our own that fall due at a fixed rate, whether or not the earlier ones have come \
                back (open loop). Latency counts from when an I/O was due, not from when it could be asked for: a stall \
                of the device makes all those late that fell due meanwhile, as it would users, where a loop that waits for \
                its answers would see one slow I/O. Up to 256 are in flight; what is due beyond waits, and its latency runs. \
                What is still open some time after the last was due counts with the time it had waited until then. achieved is \
                what came back within the time in which they fell due.",
        reading: "Near the latency of disk.random at depth 1 while the device keeps up; p99 is what a service on this disk \
                  sees in one of a hundred requests. achieved below the rate: the device cannot do so much, latency is then \
                  the length of the run and no property of the device: choose a lower rate.",
        source: file!(),
        metrics: beside_io![
            P99,
            per_second(ids::metric::ACHIEVED, "I/Os done a second while they fell due").aside(),
            P50.aside()
        ],
        params: &[
            OP,
            CACHE,
            ENGINE,
            TIME,
            BLOCK,
            Param::int(ids::param::RATE, "I/Os that fall due a second, of all jobs together", 1..=10_000_000),
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
        title: "Making data durable",
        about: "Overwrites 4 KiB of a file of our own (write(2), one block after the other), then fsync or fdatasync; the \
                latency is the sync call's alone. The blocks were written and synced before, so that fdatasync has no metadata to write.",
        reading: "What a database's commit costs. 20 to 100 µs: the device acknowledges at once (a write cache that survives a \
                  power cut, or one that lies). 0.3 to 2 ms: flash that really writes, or a network volume. 5 to 30 ms: a \
                  hard disk turns. fsync above fdatasync: the filesystem's journal. Below 10 µs nothing was made durable \
                  (tmpfs, a filesystem without barriers, a guest whose host does not flush).",
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
        title: "Metadata of files",
        about: "Files in an empty directory of our own, one after the other, empty: make (open with O_CREAT and O_EXCL, \
                close), stat, rename to another name in the same directory, unlink. Each call is timed; nothing is synced, so the \
                filesystem works in memory and waits for the disk where its journal must. The files are counted after \
                each round. No more than 20,000 lie there at once: longer windows have several rounds, and stat goes over \
                the same files again.",
        reading: "stat 0.5 to 2 million a second, the others 50 to 400 thousand on ext4 and XFS, less on overlay, a tenth \
                  and less on network filesystems. latency_max shows where the journal had to wait. Slower than on equal machines: quotas, audit, \
                  security modules, a directory that is watched.",
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
        title: "Giving room back",
        about: "Punches holes into a file of our own (fallocate), a block each, in the order of the file, which was written and \
                synced before; of a raw device that may be written it discards them (the ioctl BLKDISCARD). The latency is the call's. After it the \
                file is synced, and device_share says how many bytes the device was told to discard for each byte \
                given back: 0 where the filesystem keeps discards for fstrim.",
        reading: "10 to 200 µs in a filesystem, which only notes it; a mount with `discard` passes it on when its journal \
                  commits. On a raw device 20 µs to 10 ms, and with some devices everybody else waits meanwhile.",
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
        title: "Writing and reading back, compared",
        about: "Writes a file of our own in which every 4 KiB name their place and the generation of the file, in every \
                word, syncs it, reads it back past the page cache and compares every word; then the next generation over the same place. A \
                wrong word is a wrong answer, and named by its offset in the file. A window is a generation: write, sync, \
                read and compare.",
        reading: "The figure itself matters little: half of what the disk writes and reads. That it is there at all says \
                  that every byte came back. A wrong answer says which block: an old generation is a lost write, a foreign \
                  place a misdirected one, anything else damage on the way (cable, controller, memory).",
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
        title: "Sequential writes for long",
        about: "Writes a file of our own sequentially past the page cache, over and over, for a minute (or --io-time) in equal periods of \
                half a second; each sample is one period, in their order, so that the samples of a visit are its time line. \
                The file was filled once before (its size and that stand in the visit's notes): this is the disk that is \
                already in use.",
        reading: "Flat: a steady state. High at first, then lower for good: a fast cache was full (SLC in flash, a controller's \
                  memory) or burst credits were spent (cloud volumes); what is left is the sustained figure. Flat at a round \
                  number: somebody limits it. Falling and rising again and again: the device cleans up in between.",
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

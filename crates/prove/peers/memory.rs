//! Memory, against likwid-bench, mbw, sysbench and perf bench; the ladder against a chain written
//! differently; and what the core's clock must agree with.

use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_after, number_before};
use model::Case;

/// A level: its name and the block of each thread, bytes.
struct Level {
    name: &'static str,
    bytes: u64,
}

const MIB: f64 = (1 << 20) as f64 / 1e9;
const GIB: f64 = (1 << 30) as f64 / 1e9;

pub fn rows(bench: &Bench) -> Rows {
    let cpu = bench.first_cpu();
    let cache = |level: u32, usual: u64| {
        let found = bench.machine.data_caches(level).find(|cache| cache.cpus.contains(cpu));
        found.and_then(|cache| cache.size_bytes).unwrap_or(usual)
    };
    let last = bench.machine.last_level_cache(cpu).and_then(|cache| cache.size_bytes).unwrap_or(32 << 20);
    let levels = [
        Level { name: "L1", bytes: 1 << (cache(1, 32 << 10) / 2).ilog2() },
        Level { name: "L2", bytes: 1 << (cache(2, 1 << 20) / 2).ilog2() },
        Level { name: "DRAM", bytes: (2 * last).next_power_of_two().clamp(64 << 20, 1 << 30) },
    ];
    let mut rows = clock_rows(bench);
    for level in &levels {
        rows.push(ladder(bench, level));
    }
    let threads = bench.placements.cpus().len() as u64;
    for level in &levels {
        for threads in [1, threads] {
            for (op, kernel) in
                [("read", "load"), ("copy", "copy"), ("copy-nt", "copy_mem"), ("triad", "stream")]
            {
                // Past the caches is a way to memory only.
                if op != "copy-nt" || level.name == "DRAM" {
                    rows.push(likwid(bench, level, threads, op, kernel));
                }
            }
            rows.push(sysbench(bench, level, threads));
        }
        // The C library copies by `rep movsb`, and past the caches what is larger than they are.
        let default = if level.name == "DRAM" { "copy-nt" } else { "copy-rep" };
        rows.push(perf(bench, level, "default", default));
        rows.push(perf(bench, level, "x86-64-movsb", "copy-rep"));
    }
    rows.push(mbw(bench, &levels[2], "-t0", "copy", "mbw word by word"));
    rows.push(mbw(bench, &levels[2], "-t1", "copy-nt", "mbw memcpy"));
    rows
}

/// Our bandwidth at one block: on one CPU, or on all.
fn ours(bench: &Bench, level: &Level, threads: u64, op: &str) -> Option<Case> {
    let placement = if threads == 1 { "one-cpu" } else { "all" };
    let is_op = |case: &Case| {
        case.params.get(model::vocabulary::memory::param::OP).and_then(|value| value.text()) == Some(op)
    };
    let case = bench.case("memory.bandwidth", |case| case.placement.name == placement && is_op(case))?;
    let mut case = if threads == 1 { bench.on_first_cpu(case) } else { case };
    case.inputs.insert("bytes".into(), level.bytes.to_string());
    Some(case)
}

fn bandwidth(
    bench: &Bench,
    (level, threads, op): (&Level, u64, &str),
    scale: f64,
    tool: &str,
    peer: Peer,
) -> Result<Row, String> {
    let who = if threads == 1 { "one thread".to_string() } else { format!("{threads} threads") };
    let name = format!("{} {op}, {who} ({tool})", level.name);
    let case = ours(bench, level, threads, op).ok_or(name.clone())?;
    let ours = Ours::new(case, "bandwidth");
    Ok(Row {
        name,
        unit: "GB/s",
        ours,
        scale,
        peer,
        wanted: Wanted::AtLeast(1.0),
        pairs: super::PAIRS_MIN,
        limit: super::ROW_LIMIT,
        note: "",
    })
}

/// likwid's kernels in the widest vectors that we use ourselves; it counts bytes as we do.
fn likwid(bench: &Bench, level: &Level, threads: u64, op: &str, kernel: &str) -> Result<Row, String> {
    // Some tenths of a second, whatever the level.
    let passes = (if level.bytes < 1 << 24 { 20u64 << 30 } else { 4 << 30 }) / level.bytes;
    let kernel = format!("{kernel}{}", widest());
    let words = format!(
        "likwid-bench -t {kernel} -i {} -W S0:{}kB:{threads}",
        passes.max(4),
        level.bytes * threads / 1000
    );
    let peer =
        Peer::Program(split(&words), |text| number_after(text, "MByte/s:").map(|megabytes| megabytes / 1e3));
    bandwidth(bench, (level, threads, op), 1.0, &format!("likwid-bench {kernel}"), peer)
}

#[cfg(target_arch = "x86_64")]
fn widest() -> &'static str {
    match () {
        () if std::arch::is_x86_feature_detected!("avx512f") => "_avx512",
        () if std::arch::is_x86_feature_detected!("avx2") => "_avx",
        () => "_sse",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest() -> &'static str {
    ""
}

/// sysbench reads words in a loop of its own; every thread has the block to itself.
fn sysbench(bench: &Bench, level: &Level, threads: u64) -> Result<Row, String> {
    let words = format!(
        "taskset -c {} sysbench memory --memory-scope=local --memory-oper=read --memory-total-size=8G \
         --memory-block-size={}K --threads={threads} run",
        if threads == 1 { bench.first_cpu().to_string() } else { bench.placements.cpus().to_string() },
        level.bytes >> 10
    );
    let peer = Peer::Program(split(&words), |text| number_before(text, " MiB/sec").map(|mib| mib * MIB));
    bandwidth(bench, (level, threads, "read"), 1.0, "sysbench memory", peer)
}

/// perf counts the bytes copied: half of Assay's.
fn perf(bench: &Bench, level: &Level, function: &str, op: &str) -> Result<Row, String> {
    let loops = ((4u64 << 30) / level.bytes).max(4);
    let words = format!(
        "taskset -c {} perf bench mem memcpy -s {}KB -l {loops} -f {function}",
        bench.first_cpu(),
        level.bytes >> 11
    );
    let peer = Peer::Program(split(&words), |text| number_before(text, " GB/sec").map(|gib| gib * GIB));
    let tool = format!("perf bench mem memcpy {function}");
    bandwidth(bench, (level, 1, op), 0.5, &tool, peer)
}

/// mbw counts the bytes copied: half of Assay's. What it calls MEMCPY (`-t0`) is a loop over words
/// in its machine code, and what it calls DUMB (`-t1`) the C library's memcpy. Its block-wise copy
/// always reads the same block.
fn mbw(bench: &Bench, level: &Level, test: &str, op: &str, tool: &str) -> Result<Row, String> {
    let words = format!("taskset -c {} mbw -q {test} -n 5 {}", bench.first_cpu(), level.bytes >> 21);
    let peer = Peer::Program(split(&words), |text| {
        let line = text.lines().find(|line| line.starts_with("AVG"))?;
        number_after(line, "Copy:").map(|mib| mib * MIB)
    });
    bandwidth(bench, (level, 1, op), 0.5, tool, peer)
}

/// The ladder at one block against a chain that shares no code with it.
fn ladder(bench: &Bench, level: &Level) -> Result<Row, String> {
    let name = format!("{} latency (a chain written differently)", level.name);
    let is_random = |case: &Case| {
        case.params.len() == 1
            && case.params.get(model::vocabulary::memory::param::ORDER).and_then(|order| order.text())
                == Some("random")
    };
    let case = bench.case("memory.latency", is_random).ok_or(name.clone())?;
    let mut case = bench.on_first_cpu(case);
    case.inputs.insert("bytes".into(), level.bytes.to_string());
    let peer = Peer::Chain { bytes: level.bytes, cpu: bench.first_cpu() };
    let ours = Ours::new(case, "latency");
    Ok(Row {
        name,
        unit: "ns",
        ours,
        scale: 1.0,
        peer,
        wanted: Wanted::Within(0.03),
        pairs: super::PAIRS_MIN,
        limit: super::ROW_LIMIT,
        note: "",
    })
}

/// Two chains that must give the same clock.
fn clock_rows(bench: &Bench) -> Rows {
    let name = "core clock by additions (by multiplications)";
    let Some(case) = bench.case("cpu.clock", |_| true) else { return vec![Err(name.into())] };
    let case = bench.on_first_cpu(case);
    let ours = Ours::new(case.clone(), "clock");
    let peer = Peer::Ours(Box::new(Ours::new(case, "clock_by_multiply")));
    let wanted = Wanted::Within(0.02);
    vec![Ok(Row {
        name: name.into(),
        unit: "GHz",
        ours,
        scale: 1.0,
        peer,
        wanted,
        pairs: super::PAIRS_MIN,
        limit: super::ROW_LIMIT,
        note: "",
    })]
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_string).collect()
}

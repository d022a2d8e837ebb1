//! How long it takes until data is durable: `disk.sync`.

use std::os::fd::OwnedFd;

use anyhow::{Context, bail, ensure};

use super::cases::{params, shapes};
use super::engine::complaint;
use super::report::{self, Done, Watch};
use super::stream::window_ns;
use super::target::Target;
use crate::buckets::Buckets;
use crate::sampler::whole::Piece;
use crate::{Point, Sampler};
use model::Case;
use model::vocabulary::disk as ids;
use sys::clock;

/// A median needs as many.
const MIN_CALLS: u64 = 24;

/// The two calls.
#[derive(Clone, Copy)]
enum Call {
    Fsync,
    Fdatasync,
}

impl Call {
    fn make(self, file: &OwnedFd) -> anyhow::Result<()> {
        match self {
            Call::Fsync => rustix::fs::fsync(file).context("fsync failed"),
            Call::Fdatasync => rustix::fs::fdatasync(file).context("fdatasync failed"),
        }
    }
}

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let call = match case.params.get(ids::param::OP).and_then(|op| op.text()) {
        Some("fsync") => Call::Fsync,
        Some("fdatasync") => Call::Fdatasync,
        other => bail!("unknown call {other:?}"),
    };
    let shape = *shapes(case).first().context("the case has no point")?;
    let (clock, seed) = (sampler.clock(), sampler.seed());
    let target = Target::prepare(case, 1, false, seed)?;
    sampler.facts().notes.extend(target.words());
    let (file, base) = target.open(0)?;
    let blocks = (target.bytes / shape.block).max(1);
    let mut data = vec![0; shape.block as usize];
    let mut random = fastrand::Rng::with_seed(seed);
    random.fill(&mut data);
    let mut number = 0u64;
    let mut latencies = Buckets::new();
    let mut once = |latencies: &mut Buckets| -> anyhow::Result<f64> {
        let offset = base + number % blocks * shape.block;
        number += 1;
        data[..8].copy_from_slice(&number.to_ne_bytes());
        let wrote = rustix::io::pwrite(&file, &data, offset);
        let wrote = wrote.map(|bytes| bytes as u32).map_err(|error| error.raw_os_error());
        if let Some(words) = complaint(true, offset, shape.block as u32, wrote) {
            bail!(words);
        }
        let before = clock.now();
        call.make(&file)
            .with_context(|| format!("after a write of {} bytes at offset {offset}", shape.block))?;
        let now = clock.now();
        latencies.record(now - before);
        Ok(now)
    };
    let windows = sampler.windows();
    let ns = window_ns(case, windows);
    // A sample has its share of the calls that the median needs, and then ends with the first call
    // after its time.
    let least = MIN_CALLS.div_ceil(windows.count.max(1) as u64);
    let limit = windows.limit_s.max(windows.count as f64 * ns / 1e9) * 1e9;
    once(&mut latencies)?;
    let begin = clock.now();
    while clock.now() - begin < ns * windows.warm_up as f64 {
        once(&mut latencies)?;
    }
    latencies.clear();
    let at = params(case.id(), shape);
    let mut watch = Watch::new(target.counters(), clock);
    let (cpu, start) = (clock::own_usage()?.cpu_ms, clock.now());
    let mut count = 0;
    sampler.whole_pieces(Point::new(ids::metric::IOPS, 1.0).at(at.clone()), &[], windows.count, |_| {
        let begin = clock.now();
        let (mut calls, mut now) = (0, begin);
        while now - begin < ns || (calls < least && now - start < limit) {
            now = once(&mut latencies)?;
            calls += 1;
        }
        ensure!(calls > 0, "no call ended within {:.1} s", limit / 1e9);
        count += calls;
        Ok(Piece { work: calls as f64, ns: now - begin, notes: Vec::new() })
    })?;
    let ns = clock.now() - start;
    ensure!(count >= 20, "only {count} calls within {:.1} s: too few for a median", ns / 1e9);
    let done = Done {
        ios: count as f64,
        read_bytes: 0.0,
        written_bytes: count as f64 * shape.block as f64,
        cpu_ms: clock::own_usage()?.cpu_ms - cpu,
        seats_ms: ns / 1e6,
    };
    report::beside(sampler, &at, done, &mut watch)?;
    report::latencies(sampler, &at, latencies.histogram(), ns)
}

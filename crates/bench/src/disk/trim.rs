//! Holes punched into a file, or discards of a raw device: `disk.trim`.

use std::io;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::cases::{DEVICE, NO_DISCARD, params, shapes};
use super::report::{self, Watch};
use super::target::Target;
use crate::buckets::Buckets;
use crate::{Sampler, check_answer};
use model::Case;
use model::vocabulary::disk as ids;
use sys::discard::discard;

/// Discards reach the device when the filesystem's journal commits; its counters are read after
/// this.
const SETTLE: Duration = Duration::from_millis(20);

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let shape = *shapes(case).first().context("the case has no point")?;
    let clock = sampler.clock();
    let target = Target::prepare(case, 1, false, sampler.seed())?;
    sampler.facts().notes.extend(target.words());
    let (file, base) = target.open(0)?;
    let holes = target.bytes.min(MAX_BYTES) / shape.block;
    ensure!(holes >= MIN_HOLES, "only {holes} holes fit the file, too few for a median: use a larger file");
    let raw = case.inputs.contains_key(DEVICE);
    let give_back = |offset: u64| -> io::Result<()> {
        match raw {
            true => discard(&file, offset, shape.block),
            false => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(rustix::fs::fallocate(&file, flags, offset, shape.block)?)
            }
        }
    };
    let mut latencies = Buckets::new();
    let mut watch = Watch::new(target.counters(), clock);
    let begin = clock.now();
    for hole in 0..holes {
        let offset = base + hole * shape.block;
        let before = clock.now();
        if let Err(error) = give_back(offset) {
            if raw && error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) {
                bail!(NO_DISCARD);
            }
            return Err(error)
                .with_context(|| format!("trim of {} bytes at offset {offset} failed", shape.block));
        }
        latencies.record(clock.now() - before);
    }
    let ns = clock.now() - begin;
    target.sync()?;
    std::thread::sleep(SETTLE);
    let (moved, watched_ns) = watch.moved();
    // A hole reads as zeros; what a device's discarded sectors read as is its own affair.
    if !raw {
        let mut first = [1; 4096];
        let count = rustix::io::pread(&file, &mut first, 0).context("cannot read a hole")?;
        check_answer(first[..count].iter().all(|byte| *byte == 0), || {
            "a hole in the file at offset 0 does not read as zeros".to_string()
        })?;
    }
    let at = params(case.id(), shape);
    if let Some(moved) = moved {
        let share = moved.discarded_bytes / (holes * shape.block) as f64;
        sampler.value(at.clone(), ids::metric::DEVICE_SHARE, share, watched_ns)?;
    }
    report::latencies(sampler, &at, latencies.histogram(), ns)
}

/// A median needs as many.
const MIN_HOLES: u64 = 20;

/// Most bytes discarded in one pass: a raw device may be large.
const MAX_BYTES: u64 = 1 << 30;

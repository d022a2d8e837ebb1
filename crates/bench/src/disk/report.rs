//! Figures next to bandwidth and rate: percentiles with enough samples, the generator's CPU, the
//! device's counters.

use crate::{Sampler, backed};
use model::vocabulary::disk as ids;
use model::{Histogram, Params};
use sys::clock::Clock;
use sys::counters::{BlockCounts, BlockDevice};

/// Emits the percentiles of a point's latencies that took `ns` to gather.
pub fn latencies(sampler: &mut Sampler, point: &Params, histogram: Histogram, ns: f64) -> anyhow::Result<()> {
    match histogram.total() {
        0 => Ok(()),
        total => sampler.histogram_at(point.clone(), &backed(total), histogram, ns),
    }
}

/// A reading of the device's counters, to be compared with a later one.
pub struct Watch {
    device: Option<BlockDevice>,
    before: Option<BlockCounts>,
    clock: Clock,
    begin: f64,
}

impl Watch {
    pub fn new(device: Option<BlockDevice>, clock: Clock) -> Watch {
        let mut watch = Watch { device, before: None, clock, begin: 0.0 };
        watch.start();
        watch
    }

    /// From now on.
    pub fn start(&mut self) {
        self.before = self.device.as_mut().and_then(BlockDevice::read);
        self.begin = self.clock.now();
    }

    /// What the device did since the start, and how long ago that was, ns.
    pub fn moved(&mut self) -> (Option<BlockCounts>, f64) {
        let now = self.device.as_mut().and_then(BlockDevice::read);
        let moved = now.zip(self.before).map(|(now, before)| now.since(before));
        (moved, self.clock.now() - self.begin)
    }
}

/// What the device did between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub ios: f64,
    pub read_bytes: f64,
    pub written_bytes: f64,
    /// CPU time of the generator, and that of the clock on its CPUs, ms.
    pub cpu_ms: f64,
    pub seats_ms: f64,
}

/// Emits what the generator needed and what the device did.
pub fn beside(sampler: &mut Sampler, point: &Params, done: Done, watch: &mut Watch) -> anyhow::Result<()> {
    let (moved, ns) = watch.moved();
    if done.ios > 0.0 && done.seats_ms > 0.0 {
        sampler.value(point.clone(), ids::metric::CPU_PER_IO, done.cpu_ms * 1e3 / done.ios, ns)?;
        sampler.value(
            point.clone(),
            ids::metric::GENERATOR_BUSY,
            (done.cpu_ms / done.seats_ms).min(1.0),
            ns,
        )?;
    }
    let Some(moved) = moved.filter(|_| ns > 0.0) else { return Ok(()) };
    if let Some(share) = share(done, moved) {
        sampler.value(point.clone(), ids::metric::DEVICE_SHARE, share, ns)?;
    }
    sampler.value(point.clone(), ids::metric::IN_FLIGHT, moved.waited_ms * 1e6 / ns, ns)?;
    sampler.value(point.clone(), ids::metric::DEVICE_BUSY, (moved.busy_ms * 1e6 / ns).min(1.0), ns)
}

/// Bytes that the device moved for each byte of I/O, in the directions that had any.
fn share(done: Done, moved: BlockCounts) -> Option<f64> {
    let ours = done.read_bytes + done.written_bytes;
    let read = if done.read_bytes > 0.0 { moved.read_bytes } else { 0.0 };
    let written = if done.written_bytes > 0.0 { moved.written_bytes } else { 0.0 };
    (ours > 0.0).then(|| (read + written) / ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_directions_count_for_the_share() {
        let moved = BlockCounts { read_bytes: 100.0, written_bytes: 50.0, ..BlockCounts::default() };
        let reads = Done { read_bytes: 200.0, ..Done::default() };
        assert_eq!(share(reads, moved), Some(0.5));
        assert_eq!(share(Done { written_bytes: 50.0, ..reads }, moved), Some(0.6));
        assert_eq!(share(Done::default(), moved), None);
    }
}

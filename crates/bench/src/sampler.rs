//! The only way to emit a sample: calibrates, warms up, times samples, notes what moved, writes
//! lines to the parent.

use std::io::Write;

use anyhow::Context;
use model::vocabulary::MetricId;
use model::{Case, Covariates, Form, Histogram, Packed, Params, ProcessFacts, Reason, RunClock, Samples};
use serde::{Deserialize, Serialize};
use sys::affinity;
use sys::clock::{self, Clock};
use sys::counters::OwnCounters;

mod alternating;
mod calibration;
mod columns;
mod latencies;
mod look;
mod planted;
mod point;
mod secret;
pub mod whole;

pub use calibration::explained as calibration_explained;
use calibration::{calibrate, linearity};
use columns::{Columns, Gauge};
pub use latencies::backed;
pub use look::{core_clock_ghz, fetch_cycles};
pub use planted::NOT_SLOWED;
use planted::{Planted, done};
pub use point::Point;
pub use secret::Secret;

/// What the parent asks of a child, one JSON object on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub case: Case,
    pub windows: Windows,
    pub clock: RunClock,
    /// Seeds all random orders of the pass, so that it can be repeated.
    pub seed: u64,
    /// The round of the plan that this pass belongs to, from 0.
    #[serde(default)]
    pub pass: u32,
    /// Invent samples from this seed instead of measuring.
    #[serde(default)]
    pub pretend: Option<u64>,
    /// The secret that the other host of a network test asks for; never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// The process that waits for the answer: without it nothing is done. None by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
}

/// How samples are timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Length that calibration aims at, ns: at least 1 ms and 1000 clock steps.
    pub window_ns: f64,
    /// Counted samples of each point.
    pub count: usize,
    /// Samples before them, marked and not counted.
    pub warm_up: usize,
    /// A point that takes longer than this ends with the samples it has, s.
    pub limit_s: f64,
}

impl Windows {
    /// The stretch (at most 1) with which a sample is no longer than this: loops that repeat within
    /// microseconds need not fill the long samples of deep profiles.
    pub fn no_longer_than(&self, ns: f64) -> f64 {
        (ns / self.window_ns).min(1.0)
    }
}

/// What a child says, one JSON object a line on its standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Samples(Box<Samples>),
    Process(Box<ProcessFacts>),
    /// The last line: `None` when all went well and the answer was right.
    Done(Option<Reason>),
}

/// Runs this many iterations of a benchmark and returns how long they took, ns. A trait object, so
/// that the functions that take it are compiled once and not for each benchmark.
type Body<'b> = &'b mut dyn FnMut(u64) -> anyhow::Result<f64>;

pub struct Sampler<'a> {
    clock: Clock,
    windows: Windows,
    seed: u64,
    pass: u32,
    secret: Option<Secret>,
    own: OwnCounters,
    /// Reading stolen time costs a pass over all CPUs in the kernel: not done where it is dear.
    reads_steal: bool,
    planted: Option<Planted>,
    out: &'a mut dyn Write,
    facts: ProcessFacts,
}

/// A reading of stolen time that takes longer than this is left out, ns.
const STEAL_READING_NS: f64 = 20_000.0;
/// Clock steps that a sample must have, so that reading the clock is an error of 0.1 % at most.
const STEPS: f64 = 1000.0;

impl<'a> Sampler<'a> {
    pub fn new(order: &Order, out: &'a mut dyn Write) -> Sampler<'a> {
        let clock = Clock::from_run(&order.clock);
        let mut windows = order.windows;
        windows.window_ns = windows.window_ns.max(STEPS * order.clock.resolution_ns);
        let mut own = OwnCounters::open();
        let begin = clock.now();
        let steal = affinity::current_cpu().and_then(|cpu| own.steal_ms(cpu));
        let reads_steal = steal.is_some() && clock.now() - begin < STEAL_READING_NS;
        Sampler {
            clock,
            windows,
            seed: order.seed,
            pass: order.pass,
            secret: order.secret.clone(),
            own,
            reads_steal,
            planted: Planted::of(&order.case),
            out,
            facts: ProcessFacts::default(),
        }
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    pub fn windows(&self) -> Windows {
        self.windows
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn pass(&self) -> u32 {
        self.pass
    }

    pub fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.0.as_str())
    }

    /// Facts about this process that the parent gets at the end.
    pub fn facts(&mut self) -> &mut ProcessFacts {
        &mut self.facts
    }

    /// Times samples of `body`, which does the given number of iterations; the clock is read around
    /// it. The answer is the median of the counted samples, ns per unit of work: for values derived
    /// from it (a sample's length, a share).
    pub fn time(&mut self, point: Point, mut body: impl FnMut(u64)) -> anyhow::Result<f64> {
        self.time_loop(point, &mut body)
    }

    /// The loop is called, not inlined between the readings: docs/method/measuring.md#the-clock.
    #[inline(never)]
    fn time_loop(&mut self, point: Point, body: &mut dyn FnMut(u64)) -> anyhow::Result<f64> {
        let clock = self.clock;
        self.time_by(point, |iterations| {
            let begin = clock.now();
            body(iterations);
            Ok(clock.now() - begin)
        })
    }

    /// Times samples of `body`, which reports its own nanoseconds (a team's first start to last
    /// end); the answer is that of [`Self::time`].
    pub fn time_by(
        &mut self,
        point: Point,
        mut body: impl FnMut(u64) -> anyhow::Result<f64>,
    ) -> anyhow::Result<f64> {
        self.timed(point, &mut body)
    }

    fn timed(&mut self, point: Point, body: Body) -> anyhow::Result<f64> {
        let samples = self.windows_of(&point, body)?;
        if let Some((metric, factor)) = point.times {
            self.emit(samples.times(metric, factor))?;
        }
        let counted = samples.warm_up.min(samples.len());
        let each = samples.values(Form::TimePerWork { scale: 1.0 }).split_off(counted);
        self.emit(samples)?;
        Ok(median(each))
    }

    /// Calibrates, checks linearity and times the samples of a point.
    fn windows_of(&mut self, point: &Point, body: Body) -> anyhow::Result<Samples> {
        let window_ns = self.windows.window_ns * point.stretch;
        let iterations = calibrate(window_ns, body).context("while calibrating")?;
        let metrics = point.metrics().into_iter().chain(point.times.map(|(metric, _)| metric.to_string()));
        let (iterations, more) =
            self.slowed(&point.params, metrics.collect(), iterations, (window_ns, &mut *body))?;
        let body: Body = &mut |reported| body(done(reported, more));
        let linearity = linearity(iterations, body)?;
        let mut columns = Columns::default();
        let begin = self.clock.now();
        for _ in 0..self.windows.warm_up + self.windows.count {
            let before = self.gauge();
            let ns = body(iterations)?;
            let after = self.gauge();
            after.add_pauses(&before, &mut self.facts);
            columns.push(&before, &after, iterations as f64 * point.work, ns);
            columns.probe_core(self.clock);
            if self.clock.now() - begin > self.windows.limit_s * 1e9 {
                break;
            }
        }
        // A point cut short keeps at least its last sample as a counted one.
        let warm_up = self.windows.warm_up.min(columns.ns.len().saturating_sub(1));
        Ok(columns.samples(point.params.clone(), point.metrics(), warm_up, Some(linearity)))
    }

    /// As [`Self::time_by`], with further series of the same samples, a point and a metric each,
    /// whose work `body` returns with the nanoseconds (bytes that others moved meanwhile, shares of
    /// the iterations).
    pub fn time_noting(
        &mut self,
        point: Point,
        notes: &[(Params, MetricId)],
        mut body: impl FnMut(u64) -> anyhow::Result<(f64, Vec<f64>)>,
    ) -> anyhow::Result<f64> {
        let (samples, noted) = self.noted_windows(&point, &mut body)?;
        let each = samples.values(Form::TimePerWork { scale: 1.0 });
        let counted = samples.warm_up.min(samples.len());
        self.emit_notes(&samples, notes, &noted)?;
        self.emit(samples)?;
        Ok(median(each[counted..].to_vec()))
    }

    /// The samples of a point, and what `body` notes in each.
    fn noted_windows<Note>(
        &mut self,
        point: &Point,
        body: &mut dyn FnMut(u64) -> anyhow::Result<(f64, Note)>,
    ) -> anyhow::Result<(Samples, Vec<Note>)> {
        let mut noted = Vec::new();
        let windows = self.windows.warm_up + self.windows.count;
        let samples = self.windows_of(point, &mut |iterations| {
            let (ns, note) = body(iterations)?;
            noted.push(note);
            Ok(ns)
        })?;
        // The last rounds are the samples; those before calibrated.
        let noted = noted.split_off(noted.len().saturating_sub(samples.len().min(windows)));
        Ok((samples, noted))
    }

    /// As [`Self::time_by`], with the work of a sample as `body` returns it with the nanoseconds:
    /// that of several tasks, each doing what it can.
    pub fn time_counted(
        &mut self,
        point: Point,
        mut body: impl FnMut(u64) -> anyhow::Result<(f64, f64)>,
    ) -> anyhow::Result<()> {
        // The tasks count their own work, so none of it can be left unreported.
        let planted = self.planted.take();
        let windows = self.noted_windows(&point, &mut body);
        self.planted = planted;
        let (samples, works) = windows?;
        self.emit(Samples { work: Packed::pack(works), ..samples })
    }

    /// As [`Self::time_by`], with a second metric of the same samples whose work `body` returns
    /// with the nanoseconds.
    pub fn time_beside(
        &mut self,
        point: Point,
        beside: MetricId,
        mut body: impl FnMut(u64) -> anyhow::Result<(f64, f64)>,
    ) -> anyhow::Result<()> {
        let at = point.params.clone();
        self.time_noting(point, &[(at, beside)], |iterations| {
            body(iterations).map(|(ns, work)| (ns, vec![work]))
        })?;
        Ok(())
    }

    /// Emits what was noted in the samples of `samples`: a value for each note and sample.
    fn emit_notes(
        &mut self,
        samples: &Samples,
        notes: &[(Params, MetricId)],
        noted: &[Vec<f64>],
    ) -> anyhow::Result<()> {
        for (index, (at, metric)) in notes.iter().enumerate() {
            // A note that is missing once is left out: unknown is better than misplaced.
            let value = |values: &Vec<f64>| values.get(index).copied().filter(|value| value.is_finite());
            let Some(values) = noted.iter().map(value).collect::<Option<Vec<f64>>>() else { continue };
            self.emit(Samples {
                point: at.clone(),
                metrics: vec![metric.to_string()],
                work: Packed::pack(values),
                histograms: Vec::new(),
                ..samples.clone()
            })?;
        }
        Ok(())
    }

    /// Times samples in which several things are timed at once, a point each: `body` does the given
    /// number of iterations of all and reports the nanoseconds of each. Calibrated by the slowest.
    pub fn time_each(
        &mut self,
        points: Vec<Point>,
        mut body: impl FnMut(u64) -> anyhow::Result<Vec<f64>>,
    ) -> anyhow::Result<()> {
        self.each_timed(points, &mut body)
    }

    fn each_timed(
        &mut self,
        points: Vec<Point>,
        body: &mut dyn FnMut(u64) -> anyhow::Result<Vec<f64>>,
    ) -> anyhow::Result<()> {
        let Some(stretch) = points.iter().map(|point| point.stretch).reduce(f64::max) else { return Ok(()) };
        let window_ns = self.windows.window_ns * stretch;
        let mut slowest = |iterations| Ok(body(iterations)?.into_iter().fold(0.0, f64::max));
        let mut iterations = calibrate(window_ns, &mut slowest).context("while calibrating")?;
        let mut more = 0.0;
        for point in &points {
            (iterations, more) =
                self.slowed(&point.params, point.metrics(), iterations, (window_ns, &mut slowest))?;
        }
        let linearity = linearity(iterations, &mut |reported| slowest(done(reported, more)))?;
        let mut columns: Vec<Columns> = points.iter().map(|_| Columns::default()).collect();
        let begin = self.clock.now();
        for _ in 0..self.windows.warm_up + self.windows.count {
            let laps = body(done(iterations, more))?;
            for ((point, columns), ns) in points.iter().zip(&mut columns).zip(laps) {
                columns.work.push(iterations as f64 * point.work);
                columns.ns.push(ns);
            }
            if self.clock.now() - begin > self.windows.limit_s * 1e9 {
                break;
            }
        }
        for (point, columns) in points.into_iter().zip(columns) {
            let warm_up = self.windows.warm_up.min(columns.ns.len().saturating_sub(1));
            let metrics = point.metrics();
            self.emit(columns.samples(point.params, metrics, warm_up, Some(linearity)))?;
        }
        Ok(())
    }

    /// Emits `windows` histograms of latencies, each made by `body`, which also reports the
    /// sample's length, ns, and a value for each further metric of these samples that `notes`
    /// names.
    pub fn histograms(
        &mut self,
        params: Params,
        metrics: &[MetricId],
        notes: &[MetricId],
        mut body: impl FnMut() -> anyhow::Result<(Histogram, f64, Vec<f64>)>,
    ) -> anyhow::Result<()> {
        let mut columns = Columns::default();
        let (mut histograms, mut noted) = (Vec::new(), Vec::new());
        for _ in 0..self.windows.warm_up + self.windows.count {
            let before = self.gauge();
            let (histogram, ns, values) = body()?;
            columns.push(&before, &self.gauge(), histogram.total() as f64, ns);
            histograms.push(histogram);
            noted.push(values);
        }
        let metrics = metrics.iter().map(|metric| metric.to_string()).collect();
        let notes: Vec<(Params, MetricId)> = notes.iter().map(|metric| (params.clone(), *metric)).collect();
        let mut samples = columns.samples(params, metrics, self.windows.warm_up, None);
        self.emit_notes(&samples, &notes, &noted)?;
        samples.histograms = histograms;
        self.emit(samples)
    }

    /// Emits a value that is no timing (a share, a count), measured over `ns`.
    pub fn value(&mut self, params: Params, metric: MetricId, value: f64, ns: f64) -> anyhow::Result<()> {
        self.value_beside(params, metric, value, ns, Covariates::default())
    }

    /// The same with what moved meanwhile.
    pub fn value_beside(
        &mut self,
        params: Params,
        metric: MetricId,
        value: f64,
        ns: f64,
        beside: Covariates,
    ) -> anyhow::Result<()> {
        self.emit(Samples {
            point: params,
            metrics: vec![metric.to_string()],
            warm_up: 0,
            work: Packed::Same(value),
            ns: vec![ns],
            beside,
            histograms: Vec::new(),
            linearity: None,
        })
    }

    /// Emits samples that the caller timed itself: the work and the nanoseconds of each, the first
    /// `warm_up` not counted.
    pub fn windows_timed(
        &mut self,
        params: Params,
        metric: MetricId,
        (work, ns): (Vec<f64>, Vec<f64>),
        warm_up: usize,
    ) -> anyhow::Result<()> {
        self.emit_windows(params, metric, (work, ns), warm_up, Covariates::default())
    }

    fn emit_windows(
        &mut self,
        params: Params,
        metric: MetricId,
        (work, ns): (Vec<f64>, Vec<f64>),
        warm_up: usize,
        beside: Covariates,
    ) -> anyhow::Result<()> {
        self.emit(Samples {
            point: params,
            metrics: vec![metric.to_string()],
            warm_up: warm_up.min(ns.len().saturating_sub(1)),
            work: Packed::pack(work),
            ns,
            beside,
            histograms: Vec::new(),
            linearity: None,
        })
    }

    /// The last lines of a pass.
    pub fn finish(mut self, reason: Option<Reason>) -> anyhow::Result<()> {
        let facts = std::mem::take(&mut self.facts);
        self.write(&Line::Process(Box::new(facts)))?;
        self.write(&Line::Done(reason))
    }

    fn emit(&mut self, samples: Samples) -> anyhow::Result<()> {
        let remarks = self.planted.iter().flat_map(|planted| planted.remarks(&samples));
        self.facts.notes.extend(remarks);
        self.write(&Line::Samples(Box::new(samples)))
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(line).context("cannot write a sample line")?;
        text.push('\n');
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).context("the parent is gone")
    }

    fn gauge(&mut self) -> Gauge {
        let at_ns = self.clock.now();
        let usage = clock::own_usage().unwrap_or_default();
        let cpu = affinity::current_cpu();
        Gauge {
            at_ns,
            cpu,
            usage,
            wait_ns: self.own.wait_ns(),
            steal_ms: cpu.filter(|_| self.reads_steal).and_then(|cpu| self.own.steal_ms(cpu)),
        }
    }
}

/// The median, of the two in the middle their mean; NaN of nothing.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) =
        (values.get(values.len().saturating_sub(1) / 2), values.get(values.len() / 2))
    else {
        return f64::NAN;
    };
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stand_in_the_middle() {
        assert_eq!(median(vec![3.0, -1.0, 2.0]), 2.0);
        assert_eq!(median(vec![1.0, 4.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}

//! Curves of a run, and the cache sizes that the latency ladder shows.

use super::{Evidence, environment};
use machine::CacheKind;
use model::vocabulary::memory as ids;
use model::vocabulary::{BenchId, MetricId, ParamId};
use model::{Case, Pages};
use stats::analysis::Judged;
use stats::order::median;
use stats::steps::{Step, Steps, steps};

/// A metric of one case over one parameter of its points, rising.
pub struct Curve<'a> {
    pub points: Vec<(f64, f64)>,
    pub series: Vec<&'a Judged>,
    /// Key of the case.
    pub key: String,
    pub case: &'a Case,
}

/// The curves of a benchmark's cases that are wanted, in the plan's order; points without a usable
/// number are left out, and cases without points.
pub fn curves<'a>(
    evidence: &Evidence<'a>,
    bench: BenchId,
    metric: MetricId,
    x: ParamId,
    wanted: impl Fn(&Case) -> bool,
) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut last = None;
    for judged in evidence.series {
        let series = &judged.series;
        if series.case.bench != bench || series.metric.name != metric || !wanted(&series.case) {
            continue;
        }
        let at = series.point.get(x).and_then(|value| value.number());
        let (Some(at), Some(estimate)) = (at, &judged.analysis.estimate) else { continue };
        if !judged.analysis.verdict.usable() {
            continue;
        }
        if last != Some(series.planned) {
            let (points, key) = (Vec::new(), series.case.key());
            curves.push(Curve { points, series: Vec::new(), key, case: &series.case });
            last = Some(series.planned);
        }
        if let Some(curve) = curves.last_mut() {
            curve.points.push((at, estimate.median));
            curve.series.push(judged);
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    curves
}

/// No memory answers in less than the first, and no server cache takes longer than the second;
/// latencies in between are undecided.
const MIN_MEMORY_NS: f64 = 55.0;
const MAX_CACHE_NS: f64 = 45.0;

/// A ladder counts where huge pages backed this much of it: page walks give levels of their own.
const MIN_HUGE_SHARE: f64 = 0.95;

/// The latency ladder, read.
pub struct Ladder<'a> {
    pub curve: Curve<'a>,
    pub steps: Steps,
    /// Data caches that the kernel reports for its CPU: name and bytes, rising.
    pub claimed: Vec<(String, f64)>,
    /// Latency of the largest block, ns.
    pub end_ns: f64,
}

/// What a ladder shows of the last cache.
pub enum LastCache<'a> {
    /// It ends at this step.
    Ends(&'a Step),
    /// The largest block (bytes), twice the reported size or more, still lies in a cache.
    AtLeast(f64),
}

/// How large a cache is for one task: as measured if that contradicts the kernel, else as reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSize {
    /// Bytes, with the bounds of what also fits the ladder; all three are the reported size if that
    /// is right.
    pub at: f64,
    pub low: f64,
    pub high: f64,
    pub by_ladder: bool,
}

impl CacheSize {
    pub fn claimed(bytes: f64) -> CacheSize {
        CacheSize { at: bytes, low: bytes, high: bytes, by_ladder: false }
    }

    fn of_step(step: &Step) -> CacheSize {
        CacheSize { at: step.at, low: step.low, high: step.high, by_ladder: true }
    }

    /// Where the size comes from, as words behind it.
    pub fn source(&self) -> &'static str {
        if self.by_ladder { "as measured" } else { "as the kernel reports" }
    }
}

/// The ladder of random loads on huge pages; `None` where there is none, too short a one, or one
/// that other work disturbed, so that it does not count.
pub fn ladder<'a>(evidence: &Evidence<'a>) -> Option<Ladder<'a>> {
    let plain = |case: &Case| {
        let order = case.params.get(ids::param::ORDER).and_then(|order| order.text());
        case.placement.pages == Pages::Huge && case.params.len() == 1 && order == Some("random")
    };
    let curve =
        curves(evidence, ids::LATENCY, ids::metric::LATENCY, ids::param::BYTES, plain).into_iter().next()?;
    let planned = curve.series.first()?.series.planned as u32;
    let shares: Vec<f64> = evidence.visits_of(planned).filter_map(|visit| visit.process.huge_share).collect();
    if median(&shares).is_some_and(|share| share < MIN_HUGE_SHARE)
        || environment::is_disturbed(evidence, planned)
    {
        return None;
    }
    let steps = steps(&curve.points)?;
    let cpu = curve.case.placement.cpus().first()?;
    let claimed = claimed(evidence, cpu);
    let end_ns = curve.points.last()?.1;
    Some(Ladder { curve, steps, claimed, end_ns })
}

/// Name and size of each data cache of a CPU as the kernel reports it, from the first level on.
pub(super) fn claimed(evidence: &Evidence, cpu: u32) -> Vec<(String, f64)> {
    let own = evidence.machine.caches.iter().filter(|cache| cache.cpus.contains(cpu));
    let data = own.filter(|cache| cache.kind != CacheKind::Instruction);
    let named = data.filter_map(|cache| {
        let name = format!("L{}{}", cache.level, if cache.kind == CacheKind::Data { "d" } else { "" });
        Some((name, cache.size_bytes? as f64))
    });
    named.collect()
}

/// A cache whose measured size contradicts the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCache {
    pub name: String,
    /// The reported size, bytes; `None` if the kernel does not report this cache.
    pub claimed: Option<f64>,
    pub size: CacheSize,
}

/// Where the ladder of a run contradicts the kernel; empty without a ladder.
pub fn measured_caches(evidence: &Evidence) -> Vec<MeasuredCache> {
    ladder(evidence).map_or_else(Vec::new, |ladder| ladder.contradicted())
}

/// Page colours take up to half of a cache that is indexed beyond a page. So the reported size of a
/// core's own caches is contradicted only from this factor beyond the bounds on.
const MIN_INNER_FACTOR: f64 = 2.0;

impl Ladder<'_> {
    /// Each cache whose reported size is wrong; the last one by [`Ladder::last_size`].
    fn contradicted(&self) -> Vec<MeasuredCache> {
        let mut all = Vec::new();
        let Some((last, inner)) = self.claimed.split_last() else { return all };
        for (index, (name, claimed)) in inner.iter().enumerate() {
            let Some(step) = self.step_of(index) else { continue };
            if *claimed > MIN_INNER_FACTOR * step.high || MIN_INNER_FACTOR * claimed < step.low {
                let (name, claimed) = (name.clone(), Some(*claimed));
                all.push(MeasuredCache { name, claimed, size: CacheSize::of_step(step) });
            }
        }
        if let Some(size) = self.last_size().filter(|size| size.by_ladder) {
            let (name, claimed) = last;
            // With one step more than caches, of which one is where the last cache should end,
            // there is one behind that.
            let as_claimed = |step: &Step| step.at < size.at && step.agrees(*claimed);
            let further =
                self.steps.steps.len() > self.claimed.len() && self.steps.steps.iter().any(as_claimed);
            let (name, claimed) =
                if further { (format!("cache beyond {name}"), None) } else { (name.clone(), Some(*claimed)) };
            all.push(MeasuredCache { name, claimed, size });
        }
        all
    }

    /// The last cache, where the ladder shows its end or that it goes on; `None` where the largest
    /// block could be either a slow cache's or a fast memory's.
    pub fn last_cache(&self) -> Option<LastCache<'_>> {
        if self.end_ns >= MIN_MEMORY_NS {
            return self.steps.steps.last().map(LastCache::Ends);
        }
        let claimed = self.claimed.last()?.1;
        let beyond = self.end_ns <= MAX_CACHE_NS && self.steps.end >= 2.0 * claimed;
        beyond.then_some(LastCache::AtLeast(self.steps.end))
    }

    /// The size of the last cache that all rules use. A reported size within the measured bounds is
    /// better than their middle. `None` if the ladder does not show it.
    pub fn last_size(&self) -> Option<CacheSize> {
        let claimed = self.claimed.last()?.1;
        Some(match self.last_cache()? {
            LastCache::Ends(step) if step.agrees(claimed) => CacheSize::claimed(claimed),
            LastCache::Ends(step) => CacheSize::of_step(step),
            LastCache::AtLeast(end) => CacheSize { at: end, low: end, high: f64::INFINITY, by_ladder: true },
        })
    }

    /// Memory's latency, where the ladder reaches it, ns.
    pub fn memory_ns(&self) -> Option<f64> {
        self.steps.last().filter(|_| self.end_ns >= MIN_MEMORY_NS)
    }

    /// The step at which a claimed cache ends: the last one for the last; for the others the one in
    /// the same place where there are as many, else the nearest within four times.
    pub fn step_of(&self, cache: usize) -> Option<&Step> {
        let steps = &self.steps.steps;
        let inner = steps.len().checked_sub(1)?;
        if cache + 1 == self.claimed.len() {
            return match self.last_cache()? {
                LastCache::Ends(step) => Some(step),
                LastCache::AtLeast(_) => None,
            };
        }
        if steps.len() == self.claimed.len() {
            return steps.get(cache);
        }
        let size = self.claimed.get(cache)?.1;
        let distance = |step: &&Step| (step.at / size).ln().abs();
        let nearest = steps[..inner].iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        nearest.filter(|step| distance(step) < 4f64.ln())
    }
}

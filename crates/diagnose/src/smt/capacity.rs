//! The result of a study of rising load: what the second thread of a core adds, how full the cores
//! are at a given CPU%, and how much more work fits.

use crate::Diagnosis;
use model::vocabulary::smt as ids;
use model::vocabulary::{MetricId, ParamId};
use model::{Case, Planned, Run, Value, VerdictKind, figure};
use stats::analysis::Judged;
use stats::bootstrap::Resampling;
use stats::compare::{Ratio, paired_ratio};
use stats::smt::{
    Bounds, CoreUse, Curve, Estimated, Gap, Pass, Point, Sentence, USUAL_MARGIN, Yield, YieldPass, Yields,
    estimate_yield, used,
};

pub const MAIN: &str = "loop";
const ONE: &str = "one-cpu";
const SIBLING: &str = "smt-sibling";
const ALL: &str = "all";

/// What a study found.
pub struct Study<'a> {
    /// Whether the second CPU of a pair is a thread of the same core.
    pub smt: bool,
    /// The main kind of work by placement, in the order of the plan.
    pub arms: Vec<PlacementLevels<'a>>,
    /// What a second CPU adds (a sibling, or without SMT the next core), for each kind of work.
    pub seconds: Vec<Second<'a>>,
    /// Share of the capacity that is to be kept free, 0..1.
    pub free: f64,
    /// Why there is no IPC.
    pub no_ipc: Option<&'a str>,
}

/// One placement at all levels.
pub struct PlacementLevels<'a> {
    pub case: &'a Case,
    /// CPUs that its tasks are on.
    pub cpus: usize,
    pub levels: Vec<Level<'a>>,
}

/// One placement at one level.
#[derive(Clone)]
pub struct Level<'a> {
    pub level: i64,
    series: Vec<&'a Judged>,
}

/// A kind of work on one CPU and on two.
pub struct Second<'a> {
    pub kind: &'a str,
    pub one: &'a Level<'a>,
    pub both: &'a Level<'a>,
    pub found: Yields,
    /// IPC with both over IPC with one, and the same of the work per second of CPU time.
    pub ipc: Option<Ratio>,
    pub per_busy: Option<Ratio>,
    /// Time of a request, 99 % of them: with both over with one.
    pub p99: Option<Ratio>,
}

impl<'a> Level<'a> {
    pub fn judged(&self, metric: MetricId) -> Option<&'a Judged> {
        self.series.iter().find(|judged| judged.series.metric.name == metric).copied()
    }

    /// The median of a metric.
    pub fn median(&self, metric: MetricId) -> Option<f64> {
        Some(self.judged(metric)?.analysis.estimate.as_ref()?.median)
    }

    /// Number and value of each pass.
    pub fn passes(&self, metric: MetricId) -> Vec<(u32, f64)> {
        let Some(judged) = self.judged(metric) else { return Vec::new() };
        let value = |process: &stats::series::Process| Some((process.pass, *process.values.first()?));
        judged.series.processes.iter().filter_map(value).collect()
    }

    /// This metric over the same of another level, by pairs of a pass.
    pub fn over(&self, other: &Level, metric: MetricId) -> Option<Ratio> {
        let pairs = joined(&other.passes(metric), &self.passes(metric));
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        paired_ratio(&first, &second, 0.95)
    }

    /// CPU% of `cpus` CPUs, 0..1, and the work per second, pass by pass.
    fn point(&self, cpus: usize) -> Option<Point> {
        let pairs = joined(&self.passes(ids::metric::CPU), &self.passes(ids::metric::PERFORMANCE));
        let pass = |(cpu, performance): (f64, f64)| Pass { share: cpu / 100.0 / cpus as f64, performance };
        Point::of(pairs.into_iter().map(pass).collect())
    }

    /// How much of the pair's core is used by the shares of time with one and with both at work; of
    /// two cores: each by itself.
    pub fn used(&self, s: Yield, smt: bool) -> Option<Bounds> {
        let (one, both) =
            (self.median(ids::metric::BUSY_ONE)? / 100.0, self.median(ids::metric::BUSY_BOTH)? / 100.0);
        let cores = match smt {
            true => vec![CoreUse::exactly(&[one, both])?],
            false => vec![CoreUse::exactly(&[one / 2.0 + both])?; 2],
        };
        Some(used(&cores, s)?.used)
    }
}

impl<'a> PlacementLevels<'a> {
    pub fn name(&self) -> &'a str {
        &self.case.placement.name
    }

    /// Its curve, with CPU% of that many CPUs.
    pub fn curve_of(&self, cpus: usize) -> Option<Curve> {
        Curve::of(self.levels.iter().filter_map(|level| level.point(cpus)).collect())
    }

    pub fn curve(&self) -> Option<Curve> {
        self.curve_of(self.cpus)
    }

    pub fn full(&self) -> Option<&Level<'a>> {
        self.levels.last()
    }

    /// Why one of its levels was rejected.
    fn doubt(&self) -> Option<&'a str> {
        let mut verdicts = self
            .levels
            .iter()
            .filter_map(|level| level.judged(ids::metric::PERFORMANCE))
            .map(|judged| &judged.analysis.verdict);
        verdicts.find(|verdict| verdict.kind == VerdictKind::Rejected).map(|verdict| verdict.reason.as_str())
    }

    /// The most work per second that a level came to, as the tables show it.
    fn most(&self) -> Option<&'a Judged> {
        let work = |level: &Level<'a>| {
            let judged = level.judged(ids::metric::PERFORMANCE)?;
            Some((judged.analysis.figure()?.median, judged))
        };
        let most = self.levels.iter().filter_map(work).max_by(|(one, _), (other, _)| one.total_cmp(other));
        most.map(|(_, judged)| judged)
    }
}

impl<'a> Study<'a> {
    pub fn arm(&self, name: &str) -> Option<&PlacementLevels<'a>> {
        self.arms.iter().find(|arm| arm.name() == name)
    }

    /// Why nothing can be concluded: a series that it rests on was rejected, or two of its figures
    /// cannot both be so.
    pub fn doubt(&self) -> Option<String> {
        let rejected = [self.arm(ONE), self.pair()].into_iter().flatten().find_map(PlacementLevels::doubt);
        rejected.map(|why| format!("what it rests on was rejected: {why}")).or_else(|| self.contradiction())
    }

    /// What the threads of one core do over one, where those of all cores surely do more for each
    /// core: memory, power and clock are shared by all, so that they can only do less.
    pub fn contradiction(&self) -> Option<String> {
        let found = &self.main()?.found;
        let (pair, all) = (found.throughput, found.all_cores.filter(|_| self.smt)?);
        let apart = all.value.lo > (1.0 + POINTS) * pair.value.hi;
        apart.then(|| {
            format!(
                "two threads of one core do {} times the work of one, those of all cores {} times per core",
                yield_words(&pair),
                yield_words(&all)
            )
        })
    }

    /// Two threads of one core, or without SMT two cores.
    pub fn pair(&self) -> Option<&PlacementLevels<'a>> {
        match self.smt {
            true => self.arm(SIBLING),
            false => self.arms.iter().find(|arm| arm.cpus == 2),
        }
    }

    /// The whole host, as far as it was measured and not rejected: every thread, else the pair.
    pub fn whole(&self) -> Option<&PlacementLevels<'a>> {
        self.arm(ALL).filter(|arm| arm.doubt().is_none()).or_else(|| self.pair())
    }

    pub fn main(&self) -> Option<&Second<'a>> {
        self.seconds.iter().find(|second| second.kind == MAIN)
    }

    /// The yield over all kinds of work.
    pub fn range(&self) -> Option<Yield> {
        let yields: Vec<Yield> = self.seconds.iter().map(|second| second.found.throughput.value).collect();
        Yield::over_kinds(&yields)
    }

    /// One core's curve where idle cores are taken first, as Linux does: one of its CPUs up to full
    /// load; from there on the share of time in which both are at work grows, and the work in a
    /// straight line to that of both at full load.
    pub fn first(&self) -> Option<Curve> {
        let (one, pair) = (self.arm(ONE)?, self.pair()?);
        let alone = one.levels.iter().filter_map(|level| level.point(pair.cpus));
        let full = alone.clone().map(|point| point.share).fold(0.0, f64::max);
        let both = pair.full().and_then(|level| level.point(pair.cpus));
        Curve::of(alone.chain(both.filter(|point| point.share > full)).collect())
    }

    /// The curve of the whole host, as far as it was measured, where all its CPUs have the same
    /// load: the same CPU% is less work than with idle cores taken first.
    pub fn alike(&self) -> Option<Curve> {
        self.whole()?.curve()
    }

    /// What a sentence of half of CPU% rests on: `, one thread of each core busy`.
    pub fn premise(&self) -> &'static str {
        if self.smt { ", one thread of each core busy" } else { ", one of two cores busy" }
    }

    /// How far the work that is done is ahead of CPU%, at most.
    pub fn gap(&self) -> Option<Gap> {
        self.first()?.gap(Resampling { resamples: 1999, confidence: 0.95, seed: 1 })
    }
}

/// Values of equal passes, in pairs.
fn joined(one: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<(f64, f64)> {
    let partner = |(pass, value): &(u32, f64)| {
        let (_, theirs) = other.iter().find(|(own, _)| own == pass)?;
        Some((*value, *theirs))
    };
    one.iter().filter_map(partner).collect()
}

fn text(case: &Case, name: ParamId) -> Option<&str> {
    case.params.get(name).and_then(Value::text)
}

/// The levels of each case, in the order of the plan.
pub struct Levels<'a>(Vec<(&'a Case, Vec<Level<'a>>)>);

impl<'a> Levels<'a> {
    pub fn of(series: &'a [Judged]) -> Levels<'a> {
        let mut cases: Vec<(usize, &Case, Vec<Level>)> = Vec::new();
        let own = series.iter().filter(|judged| judged.series.case.bench == ids::LOAD);
        for judged in own.filter(|judged| judged.analysis.estimate.is_some()) {
            let Some(level) = judged.series.point.get(ids::param::LEVEL).and_then(Value::int) else {
                continue;
            };
            let at = match cases.iter().position(|(planned, _, _)| *planned == judged.series.planned) {
                Some(at) => at,
                None => {
                    cases.push((judged.series.planned, &judged.series.case, Vec::new()));
                    cases.len() - 1
                }
            };
            let levels = &mut cases[at].2;
            match levels.iter_mut().find(|other| other.level == level) {
                Some(found) => found.series.push(judged),
                None => levels.push(Level { level, series: vec![judged] }),
            }
        }
        for (_, _, levels) in &mut cases {
            levels.sort_by_key(|level| level.level);
        }
        cases.sort_by_key(|(planned, _, _)| *planned);
        Levels(cases.into_iter().map(|(_, case, levels)| (case, levels)).collect())
    }
}

/// What a run found, where it has such a study.
pub fn study<'a>(run: &'a Run, levels: &'a Levels<'a>) -> Option<Study<'a>> {
    let own: Vec<&Planned> = run
        .header
        .plan
        .iter()
        .filter(|planned| planned.case.bench == ids::LOAD && planned.unmet.is_none())
        .collect();
    let first = levels.0.first()?.0;
    let smt = own.iter().any(|planned| planned.case.placement.name == SIBLING);
    let arms = levels.0.iter().filter(|(case, _)| text(case, ids::param::KIND) == Some(MAIN)).map(
        |(case, levels)| PlacementLevels { case, cpus: case.placement.cpus().len(), levels: levels.clone() },
    );
    let input = |name: &str| own.iter().find_map(|planned| planned.case.inputs.get(name).map(String::as_str));
    let margin: f64 = input("margin").and_then(|text| text.parse().ok()).unwrap_or(f64::from(USUAL_MARGIN));
    let mut kinds: Vec<&str> = Vec::new();
    for kind in levels.0.iter().filter_map(|(case, _)| text(case, ids::param::KIND)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let steps = first.params.get(ids::param::LEVELS).and_then(Value::int).unwrap_or(7);
    let seconds = kinds.into_iter().filter_map(|kind| second(levels, kind, smt, steps)).collect();
    Some(Study { smt, arms: arms.collect(), seconds, free: margin / 100.0, no_ipc: input("no_ipc") })
}

/// What a second CPU gives to a kind of work at full load.
fn second<'a>(levels: &'a Levels<'a>, kind: &'a str, smt: bool, full: i64) -> Option<Second<'a>> {
    let at = |wanted: &dyn Fn(&Case) -> bool| {
        let own = |case: &Case| text(case, ids::param::KIND) == Some(kind) && wanted(case);
        let (_, levels) = levels.0.iter().find(|(case, _)| own(case))?;
        levels.iter().find(|level| level.level == full)
    };
    let one = at(&|case| case.placement.name == ONE)?;
    let both = match smt {
        true => at(&|case| case.placement.name == SIBLING)?,
        false => at(&|case| case.placement.cpus().len() == 2)?,
    };
    let everybody =
        at(&|case| case.placement.name == ALL).map(|level| level.passes(ids::metric::PERFORMANCE));
    let cores = levels.0.iter().find(|(case, _)| case.placement.name == ALL);
    let cores = cores.map_or(0, |(case, _)| case.placement.cpus().len() / 2);
    let of = |level: &Level, metric: MetricId, pass: u32| {
        level.passes(metric).into_iter().find(|(own, _)| *own == pass).map(|(_, value)| value)
    };
    let passes: Vec<YieldPass> = one
        .passes(ids::metric::PERFORMANCE)
        .into_iter()
        .filter_map(|(pass, alone)| {
            let all = everybody.as_ref().and_then(|all| all.iter().find(|(own, _)| *own == pass));
            Some(YieldPass {
                one: alone,
                both: of(both, ids::metric::PERFORMANCE, pass)?,
                clock_one: of(one, ids::metric::CLOCK, pass),
                clock_both: of(both, ids::metric::CLOCK, pass),
                all: all.filter(|_| smt && cores > 0).map(|(_, work)| (*work, cores)),
            })
        })
        .collect();
    Some(Second {
        kind,
        one,
        both,
        found: estimate_yield(&passes)?,
        ipc: both.over(one, ids::metric::IPC),
        per_busy: both.over(one, ids::metric::PER_BUSY),
        p99: both.over(one, ids::metric::P99),
    })
}

/// The yield that a run of `assay smt` measured, over all kinds of work that were not rejected, and
/// these kinds; `None` where it has no siblings, no study, or contradicts itself.
pub fn yield_of_study(diagnosis: &Diagnosis) -> Option<(Yield, Vec<String>)> {
    let levels = Levels::of(&diagnosis.series);
    let study = study(&diagnosis.run, &levels).filter(|study| study.contradiction().is_none())?;
    let sound = |level: &Level| {
        let judged = level.judged(ids::metric::PERFORMANCE);
        judged.is_some_and(|judged| judged.analysis.verdict.kind != VerdictKind::Rejected)
    };
    let sound = study.seconds.iter().filter(|second| study.smt && sound(second.one) && sound(second.both));
    let (yields, kinds): (Vec<Yield>, Vec<String>) =
        sound.map(|second| (second.found.throughput.value, second.kind.to_string())).unzip();
    Some((Yield::over_kinds(&yields)?, kinds))
}

/// CPU% of a core that are read, 0..1.
pub const READ_CPU_SHARES: [f64; 6] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Error of CPU% up to which it counts as the share in use, 0..1.
pub const POINTS: f64 = 0.03;

impl Study<'_> {
    /// What a CPU% of a core means if idle cores are taken first; `None` beyond the measured load.
    pub fn sentence(&self, says: f64) -> Option<Sentence> {
        self.first()?.sentence(says)
    }

    /// Whether CPU% is the share in use, within [`POINTS`] at every CPU% that is read, with idle
    /// cores taken first and with all CPUs alike, as in the table of the report. `None` if one of
    /// them is unknown and none is known to differ.
    pub fn cpu_percent_tells(&self) -> Option<bool> {
        let curves: Vec<Curve> = self.first().into_iter().chain(self.alike()).collect();
        let all: Vec<Option<bool>> = curves
            .iter()
            .flat_map(|curve| READ_CPU_SHARES.into_iter().filter_map(|says| curve.sentence(says)))
            .map(|sentence| sentence.agrees(POINTS))
            .collect();
        match (all.contains(&Some(false)), all.iter().all(Option::is_some)) {
            (true, _) => Some(false),
            (false, true) if !all.is_empty() => Some(true),
            _ => None,
        }
    }

    /// Capacity at 100 % and with the margin: the report's bottom line.
    pub fn bottom_line(&self) -> Option<String> {
        let whole = self.whole()?;
        let whose = match whole.name() {
            ALL => format!("all {} CPUs", whole.cpus),
            SIBLING => "the two threads of a core".to_string(),
            _ => format!("{} CPUs of {} cores", whole.cpus, whole.cpus),
        };
        // The CPU% at which that is reached follows from the curves of the report's table.
        let at = |curve: Option<Curve>| curve?.capacity(1.0 - self.free).kept_at;
        // Where a second thread takes work away, the capacity with idle cores first is another one.
        let idle_first = || self.first().filter(|curve| curve.falls_to().is_none());
        let (first, alike) = (at(idle_first()), at(self.alike()));
        let words = |curve: Option<Curve>| kept_at_words(&curve?, self.free);
        let shown = match (words(idle_first()), words(self.alike())) {
            (Some(own), Some(other)) if first.zip(alike).is_some_and(|(a, b)| (a - b).abs() > POINTS) => {
                format!(", at CPU% {own} with idle cores taken first, {other} with all CPUs alike")
            }
            (own, other) => own.or(other).map_or(String::new(), |at| format!(", at CPU% {at}")),
        };
        let most = whole.most()?;
        let unit = &most.series.metric.unit;
        Some(format!(
            "{}: {} of {MAIN} work on {whose}. With {:.0} % kept free: {}{shown}.",
            capacity_head(&whole.curve()?, |work| figure(work, unit)),
            times_words(most, 1.0)?,
            self.free * 100.0,
            times_words(most, 1.0 - self.free)?,
        ))
    }
}

/// The words before a capacity: its CPU%, whether full load was reached, and the work at full load
/// if that is less.
pub fn capacity_head(curve: &Curve, work: impl Fn(f64) -> String) -> String {
    let capacity = curve.capacity(1.0);
    let last = curve.points().last().map_or(0.0, |point| point.share);
    match (capacity.full, curve.falls_to()) {
        (false, _) => format!("The most below full load (CPU% up to {:.0})", 100.0 * last),
        (true, Some(last)) => format!(
            "Capacity, at CPU% {:.0} (beyond it falls, to {} at full load)",
            100.0 * capacity.at,
            work(last.performance)
        ),
        (true, None) => "Capacity at 100 %".to_string(),
    }
}

/// At which CPU% the work is done that leaves this share (0..1) free: `72 (70–75)`.
pub fn kept_at_words(curve: &Curve, free: f64) -> Option<String> {
    let capacity = curve.capacity(1.0 - free);
    let between = capacity.kept_at_interval.map_or(String::new(), |at| {
        format!(" ({:.0}–{:.0})", (100.0 * at.low).floor(), (100.0 * at.high).ceil())
    });
    Some(format!("{:.0}{between}", 100.0 * capacity.kept_at?))
}

/// A figure with its interval, both times a factor: `125 M/s (123–127)`.
pub fn times_words(judged: &Judged, factor: f64) -> Option<String> {
    let found = judged.analysis.figure()?;
    let value = figure(factor * found.median, &judged.series.metric.unit);
    Some(match found.interval {
        Some(between) => {
            let [low, high] = [between.low, between.high].map(|end| figure(factor * end, ""));
            format!("{value} ({low}–{high})")
        }
        None => value,
    })
}

/// `1.27 (1.22–1.31)`.
pub fn yield_words(found: &Estimated) -> String {
    let Yield { lo, mid, hi } = found.value;
    if lo == hi { format!("{mid:.2}") } else { format!("{mid:.2} ({lo:.2}–{hi:.2})") }
}

#[cfg(test)]
pub mod tests;

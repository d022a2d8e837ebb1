//! A study of rising load, understood: what the second thread of a core gives, how much is used
//! when CPU% says so much, and how much more work fits.

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
    pub arms: Vec<Arm<'a>>,
    /// What a second CPU gives: of a sibling, or without SMT of the next core; for each kind of
    /// work.
    pub seconds: Vec<Second<'a>>,
    /// Share of the capacity that is to be kept free, 0..1.
    pub free: f64,
    /// Why there is no IPC.
    pub no_ipc: Option<&'a str>,
}

/// One placement at all levels.
pub struct Arm<'a> {
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

    /// Pass and value of each visit.
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

impl<'a> Arm<'a> {
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
    pub fn arm(&self, name: &str) -> Option<&Arm<'a>> {
        self.arms.iter().find(|arm| arm.name() == name)
    }

    /// Why nothing can be concluded: a series that it rests on was rejected.
    pub fn doubt(&self) -> Option<&'a str> {
        [self.arm(ONE), self.pair()].into_iter().flatten().find_map(Arm::doubt)
    }

    /// Two threads of one core, or without SMT two cores.
    pub fn pair(&self) -> Option<&Arm<'a>> {
        match self.smt {
            true => self.arm(SIBLING),
            false => self.arms.iter().find(|arm| arm.cpus == 2),
        }
    }

    /// The whole machine, as far as it was measured and not rejected: every thread, else the pair.
    pub fn whole(&self) -> Option<&Arm<'a>> {
        self.arm(ALL).filter(|arm| arm.doubt().is_none()).or_else(|| self.pair())
    }

    pub fn main(&self) -> Option<&Second<'a>> {
        self.seconds.iter().find(|second| second.kind == MAIN)
    }

    /// The yield to reckon with: over all kinds of work.
    pub fn range(&self) -> Option<Yield> {
        let yields: Vec<Yield> = self.seconds.iter().map(|second| second.found.throughput.value).collect();
        Yield::over_kinds(&yields)
    }

    /// One core's curve where idle cores are taken first, as Linux does: one of its CPUs up to full
    /// load; from there on the share of time in which both are at work grows, and the work in a
    /// straight line to that of both at full load.
    pub fn core(&self) -> Option<Curve> {
        let (one, pair) = (self.arm(ONE)?, self.pair()?);
        let alone = one.levels.iter().filter_map(|level| level.point(pair.cpus));
        let full = alone.clone().map(|point| point.share).fold(0.0, f64::max);
        let both = pair.full().and_then(|level| level.point(pair.cpus));
        Curve::of(alone.chain(both.filter(|point| point.share > full)).collect())
    }

    /// How far the work that is done is ahead of CPU%, at most.
    pub fn gap(&self) -> Option<Gap> {
        self.core()?.gap(Resampling { resamples: 1999, confidence: 0.95, seed: 1 })
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
    let arms = levels
        .0
        .iter()
        .filter(|(case, _)| text(case, ids::param::KIND) == Some(MAIN))
        .map(|(case, levels)| Arm { case, cpus: case.placement.cpus().len(), levels: levels.clone() });
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

/// The yield that a run of `assay smt` measured, over all kinds of work that were not rejected;
/// `None` where it has no siblings, or no study.
pub fn yield_of_study(diagnosis: &Diagnosis) -> Option<Yield> {
    let levels = Levels::of(&diagnosis.series);
    let study = study(&diagnosis.run, &levels)?;
    let sound = |level: &Level| {
        let judged = level.judged(ids::metric::PERFORMANCE);
        judged.is_some_and(|judged| judged.analysis.verdict.kind != VerdictKind::Rejected)
    };
    let sound = study.seconds.iter().filter(|second| study.smt && sound(second.one) && sound(second.both));
    Yield::over_kinds(&sound.map(|second| second.found.throughput.value).collect::<Vec<Yield>>())
}

/// CPU% of a core that are read, 0..1.
pub const SAID: [f64; 6] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

/// Points by which CPU% may be off where it is said to tell what is used, 0..1.
pub const POINTS: f64 = 0.03;

impl Study<'_> {
    /// What a CPU% of a core means, as far as the study got.
    pub fn sentence(&self, says: f64) -> Option<Sentence> {
        self.core()?.sentence(says)
    }

    /// Whether CPU% tells what is used, within [`POINTS`] at every CPU% that was read: as the table
    /// beside it has it. `None` where that is not known of one of them, and of none it is known
    /// that it does not.
    pub fn cpu_percent_tells(&self) -> Option<bool> {
        let all: Vec<Option<bool>> = SAID
            .into_iter()
            .filter_map(|says| self.sentence(says))
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
        // At which CPU% that is reached follows from the curve of a core that the table beside this
        // is read off.
        let shown = self.core().map(|core| core.capacity(1.0 - self.free)).and_then(|capacity| {
            let percent = |share: f64| format!("{:.0}", 100.0 * share);
            let between = capacity.kept_at_interval.map_or(String::new(), |at| {
                format!(" ({:.0} to {:.0})", (100.0 * at.low).floor(), (100.0 * at.high).ceil())
            });
            Some(format!(", which CPU% shows as {}{between}", percent(capacity.kept_at?)))
        });
        let full = match whole.curve()?.capacity(1.0).full {
            true => "Capacity at 100 %",
            false => "The most that was reached (full load was not)",
        };
        let most = whole.most()?;
        Some(format!(
            "{full}: {} of the kind {MAIN} on {whose}; with {:.0} % kept free, {}{}.",
            times_words(most, 1.0)?,
            self.free * 100.0,
            times_words(most, 1.0 - self.free)?,
            shown.unwrap_or_default(),
        ))
    }
}

/// A figure with its interval, both times a factor: `125 M/s (123 to 127)`.
pub fn times_words(judged: &Judged, factor: f64) -> Option<String> {
    let found = judged.analysis.figure()?;
    let value = figure(factor * found.median, &judged.series.metric.unit);
    Some(match found.interval {
        Some(between) => {
            let [low, high] = [between.low, between.high].map(|end| figure(factor * end, ""));
            format!("{value} ({low} to {high})")
        }
        None => value,
    })
}

/// `1.27 (1.22 to 1.31)`.
pub fn yield_words(found: &Estimated) -> String {
    let Yield { lo, mid, hi } = found.value;
    if lo == hi { format!("{mid:.2}") } else { format!("{mid:.2} ({lo:.2} to {hi:.2})") }
}

#[cfg(test)]
pub mod tests;

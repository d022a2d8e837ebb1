//! A free score explained by placement: the share of rounds at each distance, the time of tasks
//! pinned there, and the rest.

use std::collections::HashMap;

use super::Evidence;
use model::vocabulary::ipc as ids;
use model::{Beside, Case, Form, Metric, Params, Samples, Visit};
use stats::analysis::Judged;

/// Rounds of free tasks by how far they were apart.
pub struct Mix<'a> {
    pub free: &'a Judged,
    /// Time of a unit of work over all counted samples together (not their median: the parts add up
    /// to a mean), ns.
    pub free_ns: f64,
    /// By falling share; those that never occurred are left out.
    pub parts: Vec<Part<'a>>,
    /// Counted samples for which the places of the tasks are known.
    pub windows: usize,
}

/// The rounds at one distance.
pub struct Part<'a> {
    pub class: String,
    /// Of all rounds, 0..1.
    pub share: f64,
    /// The same benchmark pinned there, and its mean time of a unit of work, ns; `None` where that
    /// was not measured.
    pub pinned: Option<(&'a Judged, f64)>,
    /// What a unit of work took in the samples that free tasks spent at this distance alone, ns.
    pub alone_ns: Option<f64>,
    /// The number of those samples.
    pub alone: usize,
    /// The series of its shares.
    pub series: &'a Judged,
}

/// Samples with a larger share of one distance count as spent there.
const MIN_ALONE_SHARE: f64 = 0.95;
/// Distances with a smaller share need no pinned figure.
const MAX_NEGLIGIBLE_SHARE: f64 = 0.01;

/// Indexes of a run's series and passes, since free series may be thousands.
pub struct Index<'a> {
    by_key: HashMap<&'a str, &'a Judged>,
    /// By case: where its tasks were.
    occupancy: HashMap<usize, Vec<&'a Judged>>,
    /// By all but the placement: what was measured of pinned tasks.
    pinned: HashMap<String, Vec<&'a Judged>>,
    visits: HashMap<usize, Vec<&'a Visit>>,
}

impl<'a> Index<'a> {
    pub fn of(evidence: &Evidence<'a>) -> Index<'a> {
        let mut index = Index {
            by_key: evidence.series.iter().map(|judged| (judged.series.key.as_str(), judged)).collect(),
            occupancy: HashMap::new(),
            pinned: HashMap::new(),
            visits: HashMap::new(),
        };
        for judged in evidence.series {
            let series = &judged.series;
            let place = &series.case.placement;
            if series.metric.name == ids::metric::OCCUPANCY {
                index.occupancy.entry(series.planned).or_default().push(judged);
            } else if place.beside == Beside::Idle && !place.is_free() && place.seats.len() > 1 {
                index.pinned.entry(elsewhere(judged, "")).or_default().push(judged);
            }
        }
        for visit in evidence.visits().filter(|visit| visit.reason.is_none()) {
            index.visits.entry(visit.case as usize).or_default().push(visit);
        }
        index
    }

    pub fn at(&self, key: &str) -> Option<&'a Judged> {
        self.by_key.get(key).copied()
    }

    /// The same measurement with its tasks pinned, wherever.
    pub fn pinned(&self, free: &Judged) -> &[&'a Judged] {
        self.pinned.get(&elsewhere(free, "")).map_or(&[], Vec::as_slice)
    }

    fn visits(&self, of: &Judged) -> impl Iterator<Item = &&'a Visit> {
        self.visits.get(&of.series.planned).into_iter().flatten()
    }
}

/// A series' key with another placement.
fn elsewhere(judged: &Judged, placement: &str) -> String {
    let mut there: Case = judged.series.case.clone();
    there.placement.name = placement.to_string().into();
    there.series_key(&judged.series.point, &judged.series.metric.name)
}

struct Window {
    work: f64,
    ns: f64,
    shares: Vec<f64>,
}

/// Takes apart the headline series of a free case; `None` if the places of its tasks were not
/// recorded.
pub fn mix<'a>(index: &Index<'a>, free: &'a Judged) -> Option<Mix<'a>> {
    let series = &free.series;
    let classes: Vec<(&Judged, String)> = index
        .occupancy
        .get(&series.planned)?
        .iter()
        .filter_map(|other| {
            let mut point = other.series.point.clone();
            let class = point.remove(ids::param::CLASS)?.text()?.to_string();
            (point == series.point).then_some((*other, class))
        })
        .collect();
    let visits = index.visits(free);
    let windows: Vec<Window> =
        visits.flat_map(|visit| windows(&visit.samples, &series.point, &series.metric, &classes)).collect();
    let work: f64 = windows.iter().map(|window| window.work).sum();
    let ns: f64 = windows.iter().map(|window| window.ns).sum();
    if windows.is_empty() || work <= 0.0 || !(ns / work).is_finite() {
        return None;
    }
    let part = |(at, (judged, class)): (usize, &(&'a Judged, String))| {
        let share = windows.iter().map(|window| window.work * window.shares[at]).sum::<f64>() / work;
        let own: Vec<&Window> =
            windows.iter().filter(|window| window.shares[at] >= MIN_ALONE_SHARE).collect();
        let (own_work, own_ns) =
            own.iter().fold((0.0, 0.0), |(work, ns), window| (work + window.work, ns + window.ns));
        Part {
            class: class.clone(),
            share,
            pinned: pinned(index, free, class),
            alone_ns: (own_work > 0.0).then(|| own_ns / own_work),
            alone: own.len(),
            series: judged,
        }
    };
    let mut parts: Vec<Part> = classes.iter().enumerate().map(part).filter(|part| part.share > 0.0).collect();
    parts.sort_by(|one, other| other.share.total_cmp(&one.share));
    (!parts.is_empty()).then_some(Mix { free, free_ns: ns / work, parts, windows: windows.len() })
}

/// The counted samples of one point in a pass, with the shares of the classes in each.
fn windows(
    samples: &[Samples],
    point: &Params,
    metric: &Metric,
    classes: &[(&Judged, String)],
) -> Vec<Window> {
    let named = |samples: &&Samples, name: &str| samples.metrics.iter().any(|own| own == name);
    let own = samples.iter().find(|one| one.point == *point && named(one, &metric.name));
    let shares: Vec<Option<&Samples>> = classes
        .iter()
        .map(|(judged, _)| {
            samples.iter().find(|one| one.point == judged.series.point && named(one, &ids::metric::OCCUPANCY))
        })
        .collect();
    let Some(own) = own else { return Vec::new() };
    let counted = own.warm_up..own.len();
    let window = |at: usize| {
        let shares: Option<Vec<f64>> = shares.iter().map(|one| (*one)?.work.get(at)).collect();
        let (work, ns, shares) = (own.work.get(at)?, own.ns[at], shares?);
        let sound = work > 0.0 && ns > 0.0 && shares.iter().all(|share| (0.0..=1.0).contains(share));
        sound.then_some(Window { work, ns, shares })
    };
    counted.filter_map(window).collect()
}

/// The same benchmark with its tasks pinned at this distance, with the mean time of a unit of work,
/// ns: of all counted samples, as that of the free ones.
fn pinned<'a>(index: &Index<'a>, free: &Judged, class: &str) -> Option<(&'a Judged, f64)> {
    let judged = index.at(&elsewhere(free, class))?;
    let series = &judged.series;
    let visits = index.visits(judged);
    let all: Vec<Window> =
        visits.flat_map(|visit| windows(&visit.samples, &series.point, &series.metric, &[])).collect();
    let (work, ns) = all.iter().fold((0.0, 0.0), |(work, ns), one| (work + one.work, ns + one.ns));
    let mean = ns / work;
    (mean.is_finite() && mean > 0.0).then_some((judged, mean))
}

impl Mix<'_> {
    /// A time of a unit of work in the metric's own form.
    pub fn value(&self, ns: f64) -> f64 {
        match self.free.series.metric.form {
            Form::WorkPerTime { scale } => scale / ns,
            Form::TimePerWork { scale } => ns * scale,
            _ => f64::NAN,
        }
    }

    /// Σ share × pinned time, ns; `None` where a distance that matters was not measured pinned.
    pub fn expected_ns(&self) -> Option<f64> {
        let part = |part: &Part| match part.pinned {
            Some((_, ns)) => Some(part.share * ns),
            None => (part.share < MAX_NEGLIGIBLE_SHARE).then_some(0.0),
        };
        let covered: f64 =
            self.parts.iter().filter(|part| part.pinned.is_some()).map(|part| part.share).sum();
        let sum = self.parts.iter().map(part).sum::<Option<f64>>()?;
        (covered > 0.0).then(|| sum / covered)
    }

    /// How many times the measured time is that of the mix of pinned ones.
    pub fn rest(&self) -> Option<f64> {
        self.expected_ns().map(|expected| self.free_ns / expected)
    }

    /// The same sum with what free tasks themselves took at each distance, where enough samples
    /// show it: what is still left then is the changing from one to the other.
    pub fn expected_alone_ns(&self) -> Option<f64> {
        let part_ns = |part: &Part| {
            let own = part.alone_ns.filter(|_| part.alone >= MIN_ALONE_WINDOWS);
            own.or(part.pinned.map(|(_, ns)| ns)).map(|ns| part.share * ns)
        };
        let anything = self.parts.iter().any(|part| part.alone >= MIN_ALONE_WINDOWS);
        self.parts.iter().map(part_ns).sum::<Option<f64>>().filter(|_| anything)
    }
}

/// Fewer samples at one distance give no figure of their own.
pub const MIN_ALONE_WINDOWS: usize = 3;

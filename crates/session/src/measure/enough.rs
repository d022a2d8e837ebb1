//! Whether a case has enough visits.

use std::collections::HashMap;

use model::{Metric, Title, Visit, figure};
use stats::order::median;
use stats::stop::{self, Decision, Futility, Target};

use crate::plan::Profile;

/// Whether every main series of these visits is precise enough, or more visits would not help.
pub fn is_enough(title: &Title, visits: &[&Visit], profile: &Profile, seed: u64) -> bool {
    !any(title, visits, profile, seed, |decision| matches!(decision, Decision::Go { .. }))
}

/// Whether every main series of these visits is multimodal or drifting: more visits would not give
/// one value.
pub fn is_futile(title: &Title, visits: &[&Visit], profile: &Profile, seed: u64) -> bool {
    !any(title, visits, profile, seed, |decision| {
        !matches!(decision, Decision::MoreWontHelp(Futility::Modes | Futility::Drift))
    })
}

/// The first main series of these visits so far, at its last point: `165 ns`.
pub fn so_far(title: &Title, visits: &[&Visit]) -> Option<String> {
    let metric = title.metrics.iter().find(|metric| metric.headline)?;
    let processes = by_point(visits, metric).pop()?;
    let medians: Vec<f64> = processes.iter().filter_map(|values| median(values)).collect();
    Some(figure(median(&medians)?, &metric.unit))
}

/// Whether the stop rule decides so for any main series.
fn any(
    title: &Title,
    visits: &[&Visit],
    profile: &Profile,
    seed: u64,
    so: impl Fn(Decision) -> bool,
) -> bool {
    let target = Target { precision: profile.precision, most: profile.passes_max as usize };
    let decided = |processes: &Vec<Vec<f64>>| so(stop::decide(processes, target, seed));
    let mut headlines = title.metrics.iter().filter(|metric| metric.headline);
    headlines.any(|metric| by_point(visits, metric).iter().any(decided))
}

/// The counted values of one metric: per point, in order, a list per visit.
fn by_point(visits: &[&Visit], metric: &Metric) -> Vec<Vec<Vec<f64>>> {
    let mut points = Vec::new();
    let mut places = HashMap::new();
    for samples in visits.iter().flat_map(|visit| &visit.samples) {
        if samples.metrics.iter().any(|name| *name == metric.name) {
            let place = *places.entry(format!("{:?}", samples.point)).or_insert(points.len());
            if place == points.len() {
                points.push(Vec::new());
            }
            points[place].push(samples.values(metric.form).split_off(samples.warm_up.min(samples.len())));
        }
    }
    points
}

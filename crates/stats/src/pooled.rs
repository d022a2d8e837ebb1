//! Percentiles from the latencies of several visits together, where one visit has too few.
//!
//! A percentile is given if ten latencies or more lie beyond it ([`model::BEYOND`]). A visit of a
//! few tenths of a second rarely has as many for p99.9 and p99.99; several together do. Visits that
//! follow each other are pooled until they suffice, so that there are as many values as possible,
//! each from other visits. Visits that are left over join the last group.

use std::collections::BTreeMap;

use model::{Case, Form, Histogram, Metric, Params, Samples, Visit, backs};

/// Visits whose latencies are pooled into one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    pub first: &'a Visit,
    /// Number of visits.
    pub visits: usize,
    latencies: BTreeMap<u64, u64>,
    total: u64,
}

/// A quantile at a point, of groups of visits; by the key of its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled<'a> {
    pub key: String,
    pub point: Params,
    pub metric: Metric,
    pub groups: Vec<Group<'a>>,
}

impl<'a> Group<'a> {
    fn of(visit: &'a Visit) -> Group<'a> {
        Group { first: visit, visits: 0, latencies: BTreeMap::new(), total: 0 }
    }

    fn add(&mut self, histogram: &Histogram) {
        for (ns, count) in histogram.ns.iter().zip(&histogram.count) {
            let own = self.latencies.entry(*ns).or_default();
            *own = own.saturating_add(*count);
            self.total = self.total.saturating_add(*count);
        }
    }

    fn join(&mut self, other: Group) {
        self.visits += other.visits;
        let (ns, count) = other.latencies.into_iter().unzip();
        self.add(&Histogram { ns, count });
    }

    /// The quantile of all its latencies, in the metric's unit.
    pub fn value(&self, form: Form) -> f64 {
        let Form::Quantile { q, scale } = form else { return f64::NAN };
        let (ns, count) = self.latencies.iter().unzip();
        Histogram { ns, count }.quantile(q).map_or(f64::NAN, |ns| ns * scale)
    }
}

/// Metrics that read one histogram have one name up to their last `_`: `latency_p99` and
/// `latency_p9999`.
fn family(metric: &str) -> &str {
    metric.rsplit_once('_').map_or("", |(family, _)| family)
}

/// The quantiles of `metrics` for which no visit alone has enough latencies, but groups of two
/// visits or more have. `is_reported` says whether a visit has a series of this key; `visits` are
/// those that count, in their order.
pub fn pooled<'a>(
    case: &Case,
    metrics: &[Metric],
    visits: &[&'a Visit],
    is_reported: impl Fn(&str) -> bool,
) -> Vec<Pooled<'a>> {
    let mut found = Vec::new();
    for metric in metrics {
        let Form::Quantile { q, .. } = metric.form else { continue };
        let mut points: BTreeMap<String, (Params, Vec<Group>)> = BTreeMap::new();
        let own =
            |samples: &&Samples| samples.metrics.iter().any(|other| family(other) == family(&metric.name));
        for visit in visits {
            for samples in visit.samples.iter().filter(own) {
                let key = case.series_key(&samples.point, &metric.name);
                if samples.histograms.len() <= samples.warm_up || is_reported(&key) {
                    continue;
                }
                let (_, groups) = points.entry(key).or_insert_with(|| (samples.point.clone(), Vec::new()));
                if groups.last().is_none_or(|last| backs(last.total, q)) {
                    groups.push(Group::of(visit));
                }
                let Some(group) = groups.last_mut() else { continue };
                group.visits += 1;
                samples.histograms[samples.warm_up..].iter().for_each(|one| group.add(one));
            }
        }
        for (key, (point, mut groups)) in points {
            if let Some(rest) = groups.pop_if(|last| !backs(last.total, q)) {
                match groups.last_mut() {
                    Some(last) => last.join(rest),
                    None => continue,
                }
            }
            if !groups.is_empty() {
                found.push(Pooled { key, point, metric: metric.clone(), groups });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::vocabulary::network::metric::LATENCY_P50;
    use model::{Better, Covariates, Packed};
    use testkit::{point, visit};

    fn metric(name: &'static str, q: f64) -> Metric {
        let form = Form::Quantile { q, scale: 1e-3 };
        Metric { name: name.into(), ..Metric::new(LATENCY_P50, "latency", "us", Better::Lower, form) }
    }

    /// A visit at a point, with this many latencies of 1 us and one of `slow` ns; its own
    /// percentile is the median.
    fn of(order: u32, at: u64, fast: u64, slow: u64) -> Visit {
        let histogram = Histogram { ns: vec![1000, slow], count: vec![fast, 1] };
        let warm = Histogram { ns: vec![1], count: vec![1_000_000] };
        let samples = Samples {
            point: point(at),
            metrics: vec!["latency_p50".into()],
            warm_up: 1,
            work: Packed::Same(1.0),
            ns: vec![1e6, 1e6],
            beside: Covariates::default(),
            histograms: vec![warm, histogram],
            linearity: None,
        };
        visit(order, 0, order, vec![samples])
    }

    fn case() -> Case {
        testkit::run(1, vec![]).header.plan[0].case.clone()
    }

    #[test]
    fn visits_are_put_together_until_ten_lie_beyond() {
        let visits: Vec<Visit> = (0..7).map(|order| of(order, 1, 399, 5000 + u64::from(order))).collect();
        let visits: Vec<&Visit> = visits.iter().collect();
        let metrics =
            [metric("latency_p50", 0.5), metric("latency_p99", 0.99), metric("latency_p9999", 0.9999)];
        // 400 latencies each: three visits back a 99th percentile, the seventh joins the second
        // group.
        let found = pooled(&case(), &metrics, &visits, |key| key.ends_with("p50"));
        let [p99] = found.as_slice() else { panic!("{found:?}") };
        assert!(p99.key.ends_with("/bytes=1#latency_p99"), "{}", p99.key);
        let groups: Vec<(u32, usize)> =
            p99.groups.iter().map(|group| (group.first.order, group.visits)).collect();
        assert_eq!(groups, [(0, 3), (3, 4)]);
        assert_eq!(p99.groups[0].value(p99.metric.form), 1.0);
        // A quantile that the slow ones reach, of all seven.
        let tail = Form::Quantile { q: 0.999, scale: 1e-3 };
        assert_eq!(p99.groups[1].value(tail), 5.005, "the third of four slow ones among 1600");
    }

    #[test]
    fn what_was_told_and_what_too_few_back_is_left_alone() {
        let visits: Vec<Visit> = (0..2).map(|order| of(order, 1, 399, 5000)).collect();
        let visits: Vec<&Visit> = visits.iter().collect();
        let metrics = [metric("latency_p99", 0.99), metric("latency_max", 1.0), metric("other_p50", 0.5)];
        assert_eq!(pooled(&case(), &metrics, &visits, |_| false), []);
        let p50 = [metric("latency_p50", 0.5)];
        assert_eq!(pooled(&case(), &p50, &visits, |_| true), []);
        // Each suffices alone: a group each.
        assert_eq!(pooled(&case(), &p50, &visits, |_| false)[0].groups.len(), 2);
    }

    #[test]
    fn points_are_kept_apart() {
        let visits: Vec<Visit> = (0..8).map(|order| of(order, u64::from(order % 2), 399, 5000)).collect();
        let visits: Vec<&Visit> = visits.iter().collect();
        let found = pooled(&case(), &[metric("latency_p99", 0.99)], &visits, |_| false);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|one| one.groups.len() == 1 && one.groups[0].visits == 4));
    }
}

//! Limits as a share of a reference's figures: `within = "10 %"`. What is held against the limit is
//! the interval of the ratio of both, as a comparison has it.

use super::demand::{Demand, absent, decided, doubt, left_out, of_series, undecided, usable};
use super::limit::{Limit, Share};
use super::subject::{Figure, Subject};

impl Share {
    pub fn held(self, own: Demand, figure: &Figure, limit: &Limit, subject: &Subject) -> Demand {
        if let Some(why) = doubt(figure, limit) {
            return undecided(own, figure, why);
        }
        let Some(against) = &subject.against else {
            return undecided(own, figure, "the reference was not read".to_string());
        };
        if against.same_run {
            let why = "the run is part of the reference: equal figures prove nothing";
            return undecided(own, figure, why.to_string());
        }
        let Some(ratio) = against.ratios.iter().find(|ratio| ratio.key == figure.key) else {
            let refused = against.refused.iter().find(|(key, _)| *key == figure.key);
            let why = refused.map_or("the reference does not have it".to_string(), |(_, why)| {
                format!("it cannot be compared with the reference: {why}")
            });
            return undecided(own, figure, why);
        };
        let own = Demand {
            value: Some(ratio.value),
            low_high: ratio.low_high,
            unit: "×".to_string(),
            series: usable(figure),
            why: ratio.figures.clone(),
            ..own
        };
        let why = own.why.clone();
        let own = match ratio.low_high {
            Some(ends) => decided(own, figure, ends, self.ends(ratio.better)),
            None => undecided(own, figure, String::new()),
        };
        let few = if ratio.low_high.is_none() { "; measured too few times for an interval" } else { "" };
        Demand { why: format!("{why}{few}"), ..own }
    }

    /// A demand for each series; of a glob that names no metric, for those that their benchmarks
    /// are about.
    pub fn of_series(self, mut found: Vec<&Figure>, limit: &Limit, subject: &Subject) -> Vec<Demand> {
        if !limit.series.contains('#') && found.iter().any(|figure| figure.headline) {
            found.retain(|figure| figure.headline);
        }
        if found.is_empty() {
            return vec![absent(of_series(&limit.series, &limit.series, self.words()), limit, subject)];
        }
        let one = |figure: &Figure| {
            self.held(of_series(&figure.key, &figure.label, self.words()), figure, limit, subject)
        };
        let mut all: Vec<Demand> = found.into_iter().map(one).collect();
        all.extend(left_out(limit, &self.words(), subject, &all));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Against, Ratio, Spec, Standing, check};
    use model::{Better, VerdictKind};

    fn standing_of(better: Better, within: &str, ends: [f64; 2], change: impl Fn(&mut Against)) -> Standing {
        let spec = format!(
            "[reference]\nruns = \"@before\"\n[[limit]]\nseries = \"memory.latency@*\"\nwithin = \"{within}\""
        );
        let spec = Spec::read(&spec).expect("a spec");
        let key = "memory.latency@one-cpu#latency".to_string();
        let figure = Figure {
            key: key.clone(),
            label: "latency".into(),
            unit: "ns".into(),
            value: Some(100.0),
            low_high: Some([99.0, 101.0]),
            verdict: VerdictKind::Trusted,
            reason: String::new(),
            better: Some(better),
            headline: true,
        };
        let value = (ends[0] + ends[1]) / 2.0;
        let ratio = Ratio { key, figures: String::new(), value, low_high: Some(ends), better };
        let mut against = Against { ratios: vec![ratio], ..Against::default() };
        change(&mut against);
        let subject = Subject { figures: vec![figure], against: Some(against), ..Subject::default() };
        check(&spec, &subject, 0.0).expect("an outcome").demands[0].standing
    }

    #[test]
    fn a_share_counts_on_the_worse_side() {
        let of = |better, ends| standing_of(better, "10 %", ends, |_| {});
        assert_eq!(of(Better::Lower, [1.02, 1.08]), Standing::Met);
        assert_eq!(of(Better::Lower, [0.5, 0.6]), Standing::Met);
        assert_eq!(of(Better::Lower, [1.05, 1.15]), Standing::Undecided);
        assert_eq!(of(Better::Lower, [1.11, 1.2]), Standing::Missed);
        assert_eq!(of(Better::Higher, [1.5, 1.6]), Standing::Met);
        assert_eq!(of(Better::Higher, [0.8, 0.89]), Standing::Missed);
        assert_eq!(of(Better::Neither, [1.11, 1.2]), Standing::Missed);
    }

    #[test]
    fn what_cannot_be_compared_is_no_pass() {
        let of = |change: fn(&mut Against)| standing_of(Better::Lower, "50 %", [1.0, 1.01], change);
        assert_eq!(of(|_| {}), Standing::Met);
        assert_eq!(of(|against| against.same_run = true), Standing::Undecided);
        assert_eq!(of(|against| against.ratios.clear()), Standing::Undecided);
        assert_eq!(of(|against| against.ratios[0].low_high = None), Standing::Undecided);
    }
}

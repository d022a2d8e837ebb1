//! The difference between two settings of many knobs, split into the effects of single knobs.

use model::{Factors, Metric, Run, VerdictKind, percent};
use stats::analysis::Judged;
use stats::factorial::{Effect, Observation, Shares, share_out};
use stats::order::median;

/// An evaluated factorial experiment.
pub struct EvaluatedProfile<'a> {
    pub factors: &'a Factors,
    pub metric: &'a Metric,
    pub shares: Shares,
    pub keys: Vec<String>,
    /// How many of these series were rejected.
    rejected: usize,
    /// The median of each measured setting, by its bit mask of changed knobs.
    pub medians: Vec<(u64, f64)>,
}

/// `None` if the run is no such experiment, or if too little was measured.
pub fn evaluated_profile<'a>(run: &'a Run, series: &'a [Judged]) -> Option<EvaluatedProfile<'a>> {
    let factors = run.header.factors.as_ref()?;
    let own: Vec<(u64, &Judged)> = series
        .iter()
        .filter(|judged| judged.series.case.bench == factors.target.bench.as_str())
        .filter(|judged| judged.series.metric.name == factors.target.metric && judged.series.point.is_empty())
        .filter_map(|judged| Some((factors.mask(&judged.series.case)?, judged)))
        .collect();
    let looks: Vec<Observation> = own
        .iter()
        .flat_map(|(mask, judged)| judged.series.processes.iter().map(move |process| (*mask, process)))
        .filter_map(|(mask, process)| {
            let value = median(&process.values)?;
            Some(Observation { mask, pass: process.pass, at: process.at_ms, value })
        })
        .collect();
    let shares = share_out(factors.factors.len(), &looks)?;
    let median_of = |wanted: u64| {
        let values = looks.iter().filter(|look| look.mask == wanted).map(|look| look.value);
        median(&values.collect::<Vec<f64>>()).map(|median| (wanted, median))
    };
    Some(EvaluatedProfile {
        factors,
        metric: &own.first()?.1.series.metric,
        shares,
        rejected: own
            .iter()
            .filter(|(_, judged)| judged.analysis.verdict.kind == VerdictKind::Rejected)
            .count(),
        keys: own.iter().map(|(_, judged)| judged.series.key.clone()).collect(),
        medians: own.iter().filter_map(|(mask, _)| median_of(*mask)).collect(),
    })
}

impl EvaluatedProfile<'_> {
    /// Whether the figures of most settings were rejected.
    pub fn is_rejected(&self) -> bool {
        self.rejected * 2 > self.keys.len()
    }

    /// A knob with both values: `thp madvise → always`.
    pub fn turn(&self, factor: usize) -> String {
        self.factors
            .factors
            .get(factor)
            .map_or(String::new(), |factor| format!("{} {} → {}", factor.name, factor.before, factor.after))
    }

    pub fn name(&self, factor: usize) -> &str {
        self.factors.factors.get(factor).map_or("", |factor| factor.name.as_str())
    }
}

/// An effect with its interval, in per cent: `-18 % (-21 % to -15 %)`.
pub fn words(effect: &Effect) -> String {
    let signed = |ln: f64| {
        let change = ln.exp() - 1.0;
        format!("{}{}", if change < 0.0 { "-" } else { "+" }, percent(change.abs()))
    };
    format!("{} ({} to {})", signed(effect.ln), signed(effect.interval.low), signed(effect.interval.high))
}

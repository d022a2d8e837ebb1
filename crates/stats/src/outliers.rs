//! Outliers: marked, and explained by what happened beside them where that can be shown; never
//! deleted.

use std::borrow::Cow;

use super::contingency::Table;
use super::multiple::holm;
use super::order::{finite, mad, mean, median, quantile};
use super::ranks::{Correlation, spearman};

/// Beyond this size of the modified z a value is an outlier (Iglewicz & Hoaglin 1993).
pub const OUTLIER_Z: f64 = 3.5;

/// Modified z of every value: `0.6745 (x - median) / MAD`, where the MAD is zero the mean absolute
/// deviation takes its place (`(x - median) / (1.2533 MeanAD)`). 0 where nothing varies and for
/// values that are not finite.
pub fn modified_z(values: &[f64]) -> Vec<f64> {
    let centre = median(values).unwrap_or(0.0);
    let distances: Vec<f64> = finite(values).iter().map(|value| (value - centre).abs()).collect();
    let scale = match mad(values) {
        Some(mad) if mad > 0.0 => mad / 0.6745,
        _ => 1.253_314 * mean(&distances).unwrap_or(0.0),
    };
    let z = |value: &f64| if scale > 0.0 && value.is_finite() { (value - centre) / scale } else { 0.0 };
    values.iter().map(z).collect()
}

/// Which values are outliers, on either side.
pub fn outliers(values: &[f64]) -> Vec<bool> {
    modified_z(values).iter().map(|z| z.abs() > OUTLIER_Z).collect()
}

/// Something that was recorded beside every value.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    pub name: Cow<'static, str>,
    /// Aligned with the values that it stands beside; NaN where unknown.
    pub values: Vec<f64>,
}

/// A covariate that goes with the outliers.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub covariate: Cow<'static, str>,
    /// Whether high values of it go with outliers, or low ones.
    pub high: bool,
    /// A covariate beyond this is a hit: its 95th (5th) percentile beside values that are no
    /// outliers.
    pub beyond: f64,
    /// Outliers that are hits, and all outliers.
    pub explained: usize,
    pub of: usize,
    /// Hits among all values.
    pub hits: usize,
    /// Of Fisher's test after Holm's adjustment over covariates and sides.
    pub p: f64,
}

/// Outliers of a series and what explains them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribution {
    /// Aligned with the values.
    pub outlier: Vec<bool>,
    /// Of those, the ones that some explanation covers.
    pub explained: Vec<bool>,
    /// Significant ones, the one that explains most first.
    pub explanations: Vec<Explanation>,
}

impl Attribution {
    pub fn outliers(&self) -> usize {
        self.outlier.iter().filter(|&&outlier| outlier).count()
    }

    /// Whether the outliers may be left out of a second, explained number: at least 80 % of them
    /// are explained and they are at most 10 % of the values.
    pub fn may_leave_out(&self) -> bool {
        let (outliers, explained) = (self.outliers(), self.explained.iter().filter(|&&e| e).count());
        explained > 0 && 5 * explained >= 4 * outliers && 10 * outliers <= self.outlier.len()
    }
}

/// Significance of an explanation, after adjustment.
pub const EXPLANATION_P: f64 = 0.05;

/// Attributes outliers (flags, one a value) to covariates. A covariate's hits and the outliers are
/// tested for coming together by Fisher's exact test *inside* strata (as processes: equal `strata`
/// number), because a process that is slow throughout and a counter that is high throughout meet by
/// luck too easily; where all strata hold one value the test is over all values.
pub fn attribute(outlier: &[bool], strata: &[usize], covariates: &[Covariate]) -> Attribution {
    let none = Attribution {
        outlier: outlier.to_vec(),
        explained: vec![false; outlier.len()],
        explanations: vec![],
    };
    let of = none.outliers();
    if of == 0 || strata.len() != outlier.len() {
        return none;
    }
    let mut found: Vec<(Explanation, Vec<bool>)> = Vec::new();
    for covariate in covariates.iter().filter(|covariate| covariate.values.len() == outlier.len()) {
        for high in [true, false] {
            let Some((beyond, hit)) = hits(outlier, &covariate.values, high) else { continue };
            let explained = hit.iter().zip(outlier).filter(|(hit, outlier)| **hit && **outlier).count();
            let hits = hit.iter().filter(|&&hit| hit).count();
            let p = together_inside_strata(outlier, &hit, strata);
            let covariate = covariate.name.clone();
            found.push((Explanation { covariate, high, beyond, explained, of, hits, p }, hit));
        }
    }
    let adjusted = holm(&found.iter().map(|(explanation, _)| explanation.p).collect::<Vec<f64>>());
    found.iter_mut().zip(adjusted).for_each(|((explanation, _), p)| explanation.p = p);
    found.retain(|(explanation, _)| explanation.p < EXPLANATION_P);
    found.sort_by(|(a, _), (b, _)| b.explained.cmp(&a.explained).then(a.p.total_cmp(&b.p)));
    let covered = |index: usize| outlier[index] && found.iter().any(|(_, hit)| hit[index]);
    let explained = (0..outlier.len()).map(covered).collect();
    let explanations = found.into_iter().map(|(explanation, _)| explanation).collect();
    Attribution { explained, explanations, ..none }
}

/// Which values of a covariate lie beyond the percentile that it has beside ordinary values.
fn hits(outlier: &[bool], covariate: &[f64], high: bool) -> Option<(f64, Vec<bool>)> {
    let ordinary: Vec<f64> =
        covariate.iter().zip(outlier).filter(|(_, o)| !**o).map(|(value, _)| *value).collect();
    let beyond = quantile(&ordinary, if high { 0.95 } else { 0.05 })?;
    let hit = |value: &f64| if high { *value > beyond } else { *value < beyond };
    let hit: Vec<bool> = covariate.iter().map(hit).collect();
    hit.contains(&true).then_some((beyond, hit))
}

/// One-sided p that outliers and hits come together as often as they do, given how many of each
/// every stratum has: Fisher's test in each, their counts added by convolution.
fn together_inside_strata(outlier: &[bool], hit: &[bool], strata: &[usize]) -> f64 {
    let mut numbers = strata.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let alone = numbers.len() == strata.len();
    let tables: Vec<Table> = if alone {
        vec![Table::count(outlier, hit)]
    } else {
        let inside = |number: &usize| {
            let members = || (0..strata.len()).filter(|&index| strata[index] == *number);
            let flags = |flags: &[bool]| -> Vec<bool> { members().map(|index| flags[index]).collect() };
            Table::count(&flags(outlier), &flags(hit))
        };
        numbers.iter().map(inside).collect()
    };
    let observed: usize = tables.iter().map(|table| table.both).sum();
    let (mut lowest, mut sums) = (0, vec![1.0]);
    for table in &tables {
        let (from, probabilities) = table.probabilities();
        lowest += from;
        let mut next = vec![0.0; sums.len() + probabilities.len() - 1];
        for (i, sum) in sums.iter().enumerate() {
            for (j, probability) in probabilities.iter().enumerate() {
                next[i + j] += sum * probability;
            }
        }
        sums = next;
    }
    sums.iter().skip(observed - lowest).sum::<f64>().min(1.0)
}

/// Rank correlation of the values with every covariate that varies (a clock, a share of huge
/// pages), those with an adjusted p below 0.01 only, the strongest first.
pub fn correlations(values: &[f64], covariates: &[Covariate]) -> Vec<(Cow<'static, str>, Correlation)> {
    let mut found: Vec<(Cow<'static, str>, Correlation)> = covariates
        .iter()
        .filter(|covariate| covariate.values.len() == values.len())
        .filter_map(|covariate| Some((covariate.name.clone(), spearman(values, &covariate.values)?)))
        .collect();
    let adjusted = holm(&found.iter().map(|(_, correlation)| correlation.p).collect::<Vec<f64>>());
    found.iter_mut().zip(adjusted).for_each(|((_, correlation), p)| correlation.p = p);
    found.retain(|(_, correlation)| correlation.p < 0.01);
    found.sort_by(|(_, a), (_, b)| b.rho.abs().total_cmp(&a.rho.abs()));
    found
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::noise::{Noise, exponential};
    use super::*;

    #[test]
    fn modified_z_by_hand() {
        // Median 3, MAD 1: 0.6745 * (103 - 3) / 1.
        let z = modified_z(&[1.0, 2.0, 3.0, 4.0, 103.0]);
        assert!((z[4] - 67.45).abs() < 1e-9 && (z[0] + 1.349).abs() < 1e-9, "{z:?}");
        // Half equal: MAD 0, mean absolute deviation 10 / 5.
        let z = modified_z(&[5.0, 5.0, 5.0, 5.0, 15.0]);
        assert!((z[4] - 10.0 / (1.253_314 * 2.0)).abs() < 1e-9, "{z:?}");
        assert_eq!(modified_z(&[1.0, 1.0, f64::NAN]), vec![0.0; 3]);
        assert_eq!(outliers(&[]), Vec::<bool>::new());
    }

    fn disturbed(rng: &mut Rng) -> (Vec<f64>, Vec<usize>, Vec<Covariate>) {
        let mut values = Noise::Lognormal { cv: 0.01 }.series(200, rng);
        let strata = (0..200).map(|index| index / 20).collect();
        let mut stolen = vec![0.0; 200];
        let mut faults: Vec<f64> = (0..200).map(|_| f64::from(rng.u8(0..4))).collect();
        faults[7] = f64::NAN;
        for index in (0..200).step_by(17) {
            values[index] *= 1.3;
            stolen[index] = 10.0 * exponential(rng);
        }
        let covariates = vec![
            Covariate { name: "faults".into(), values: faults },
            Covariate { name: "stolen".into(), values: stolen },
        ];
        (values, strata, covariates)
    }

    #[test]
    fn the_culprit_is_named() {
        let (values, strata, covariates) = disturbed(&mut Rng::with_seed(14));
        let found = attribute(&outliers(&values), &strata, &covariates);
        assert_eq!(found.explanations.len(), 1, "{:?}", found.explanations);
        let stolen = &found.explanations[0];
        assert_eq!(
            (stolen.covariate.as_ref(), stolen.explained, stolen.of, stolen.beyond),
            ("stolen", 12, 12, 0.0)
        );
        assert!(found.may_leave_out() && found.explained[17] && !found.explained[18]);
        // A clock that fell explains from below.
        let clock = Covariate {
            name: "clock".into(),
            values: values.iter().map(|value| if *value > 1.2 { 2.0 } else { 3.0 }).collect(),
        };
        let found = attribute(&outliers(&values), &strata, &[clock]);
        assert!(!found.explanations[0].high && found.explanations[0].explained == 12);
    }

    #[test]
    fn a_process_slow_throughout_is_no_proof() {
        let mut values = Noise::Lognormal { cv: 0.01 }.series(100, &mut Rng::with_seed(15));
        values[..10].iter_mut().for_each(|value| *value *= 1.5);
        let strata: Vec<usize> = (0..100).map(|index| index / 10).collect();
        let stolen = strata.iter().map(|&process| if process == 0 { 5.0 } else { 0.0 }).collect();
        let stolen = [Covariate { name: "stolen".into(), values: stolen }];
        let outlier = outliers(&values);
        assert_eq!(attribute(&outlier, &strata, &stolen).explanations, vec![]);
        // Without strata (one value a process) the same counts are evidence.
        let alone: Vec<usize> = (0..100).collect();
        assert_eq!(attribute(&outlier, &alone, &stolen).explanations.len(), 1);
    }

    #[test]
    fn degenerate_attributions() {
        assert_eq!(attribute(&[], &[], &[]), Attribution::default());
        let short = [Covariate { name: "x".into(), values: vec![1.0] }];
        assert!(attribute(&[true, false], &[0, 1], &short).explanations.is_empty());
        assert!(
            attribute(&[true, true], &[0, 1], &[Covariate { name: "x".into(), values: vec![1.0, 2.0] }])
                .explanations
                .is_empty()
        );
        assert!(!Attribution::default().may_leave_out());
    }

    #[test]
    fn correlated_covariates() {
        let (values, _, covariates) = disturbed(&mut Rng::with_seed(16));
        let clock =
            Covariate { name: "clock".into(), values: values.iter().map(|value| 3.0 / value).collect() };
        let found = correlations(&values, &[covariates[0].clone(), clock]);
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == "clock" && found[0].1.rho < -0.999);
    }
}

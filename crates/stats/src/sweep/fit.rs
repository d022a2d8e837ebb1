//! Levels of cells with the host's drift taken out: `ln value = cell + drift(time) + noise`. A
//! cell is one combination of settings.
//!
//! Least squares, with terms of the drift chosen one at a time (a slope, a bend, a step) as long as
//! the next is significant, and with outliers set aside. Terms are kept orthogonal to cells and to
//! each other, so that no equations have to be solved: with `w` a term's values, `q = w - (its mean
//! in each cell)` of length one, its coefficient is `q·y`, and a contrast `Σ a_c level_c` has the
//! variance `σ² (Σ a_c² / n_c + Σ_w (Σ a_c mean_c(w))²)`.

use crate::order::{Interval, MAD_TO_SIGMA, median};
use crate::tails::{t_quantile, t_two_sided};

/// One measured value of a cell, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogValue {
    /// From 0.
    pub cell: usize,
    pub pass: u32,
    /// On the run's time line, any unit.
    pub time: f64,
    /// Natural logarithm of the value.
    pub log: f64,
}

/// Whether each pass has a level of its own, in addition to the significant drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassLevels {
    Shared,
    PerPass,
}

/// A difference of logarithms with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    pub value: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

impl Contrast {
    /// Student's, at 95 %.
    pub fn interval(&self) -> Interval {
        let half = self.error * t_quantile(0.95, self.freedom).unwrap_or(f64::INFINITY);
        // An error of 0 times infinity: the observations do not scatter, so this is a point.
        if half.is_nan() {
            Interval { low: self.value, high: self.value }
        } else {
            Interval { low: self.value - half, high: self.value + half }
        }
    }

    /// Two-sided p that the difference is zero.
    pub fn p(&self) -> f64 {
        if self.error == 0.0 && self.value == 0.0 {
            1.0
        } else {
            t_two_sided(self.value / self.error, self.freedom)
        }
    }
}

/// A term of the drift.
struct Term {
    /// Its values at all observations.
    raw: Vec<f64>,
    /// `raw` less its mean in each cell, of length one; 0 at observations that do not count.
    centred: Vec<f64>,
}

/// The fitted levels, drift and noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    levels: Vec<Option<f64>>,
    counts: Vec<usize>,
    /// Of each term, its mean in each cell.
    term_means: Vec<Vec<f64>>,
    /// Standard deviation of one observation's logarithm.
    pub sigma: f64,
    /// Degrees of freedom of `sigma`, from 1.
    pub freedom: f64,
    /// The drift at each observation less its mean, as a logarithm. Levels of passes
    /// ([`PassLevels::PerPass`]) are part of it.
    pub drift: Vec<f64>,
    /// Each observation less its cell's level and the drift.
    pub residuals: Vec<f64>,
    /// Observations that count; the others are outliers.
    pub kept: Vec<bool>,
}

/// An observation farther from its fit than this, in robust standard deviations, is an outlier: one
/// in 16 000 of normal noise.
const OUTLIER_SIGMAS: f64 = 4.0;
/// Before the first fit the limit is this many times wider: medians of few observations are rough.
const FIRST_LIMIT_FACTOR: f64 = 1.5;
/// Neighbours in time on each side, for the running median before the first fit.
const NEIGHBOURS_PER_SIDE: usize = 7;
/// Rounds of setting aside and fitting again.
const MAX_ROUNDS: usize = 4;
/// Each outlier counts in the variance as this part of the squared limit. None of it would make
/// intervals too narrow.
const OUTLIER_VARIANCE: f64 = 0.5 * OUTLIER_SIGMAS * OUTLIER_SIGMAS;
const MAX_TERMS: usize = 8;
/// Degrees of freedom needed for each chosen term.
const FREEDOM_PER_TERM: usize = 6;
/// Most times at which a step, or a bend, may begin.
const MAX_STEP_TIMES: usize = 80;
const MAX_BEND_TIMES: usize = 8;
/// A term is significant if its F exceeds this plus 2 ln(candidates): by chance alone the largest F
/// of n candidates is about 2 ln(n).
const F_THRESHOLD: f64 = 7.0;
/// Observations before a step, and after it.
const MIN_PER_SIDE: usize = 4;
/// A term of which no more than this part is left without the terms before it is rounding error.
const NEGLIGIBLE_PART: f64 = 1e-6;

/// Fits cells `0..cells`. `None` if there are no more observations than cells (the noise is then
/// unknown), or if an observation is not finite or of another cell.
pub fn fit(observations: &[LogValue], cells: usize, passes: PassLevels) -> Option<Fit> {
    let is_valid = |one: &LogValue| one.cell < cells && one.log.is_finite() && one.time.is_finite();
    if observations.is_empty() || !observations.iter().all(is_valid) {
        return None;
    }
    let mut kept = kept_at_first(observations, cells);
    let mut fitted = Fit::new(observations, cells, passes, &kept)?;
    for _ in 0..MAX_ROUNDS {
        let next = fitted.next_kept(observations, cells);
        if next == kept {
            break;
        }
        kept = next;
        fitted = Fit::new(observations, cells, passes, &kept)?;
    }
    Some(fitted)
}

impl Fit {
    fn new(observations: &[LogValue], cells: usize, passes: PassLevels, kept: &[bool]) -> Option<Fit> {
        let kept_by_cell = KeptByCell::new(observations, cells, kept);
        let known_cells = kept_by_cell.counts.iter().filter(|n| **n > 0).count();
        let kept_count: usize = kept_by_cell.counts.iter().sum();
        let logs: Vec<f64> = observations.iter().map(|one| one.log).collect();

        // Terms: the levels of passes, then those of the drift that are significant.
        let mut terms = match passes {
            PassLevels::Shared => Vec::new(),
            PassLevels::PerPass => kept_by_cell.pass_terms(),
        };
        let pass_terms = terms.len();
        let free = kept_count.checked_sub(known_cells + pass_terms)?;
        if known_cells == 0 || free == 0 {
            return None;
        }
        let rest = kept_by_cell.add_drift_terms(&logs, &mut terms, free);

        // Noise. A chosen term costs two degrees of freedom: its coefficient and the time at which
        // it begins.
        let freedom = free.saturating_sub(2 * (terms.len() - pass_terms)).max(1) as f64;
        let outlier_share = (kept.len() - kept_count) as f64 / kept.len() as f64;
        let sigma = (dot(&rest, &rest) / freedom).sqrt() * (1.0 + OUTLIER_VARIANCE * outlier_share).sqrt();

        // Drift, levels and residuals.
        let mut drift = vec![0.0; observations.len()];
        for term in &terms {
            add(&mut drift, dot(&term.centred, &logs), &term.raw);
        }
        let mean_drift = drift.iter().sum::<f64>() / drift.len() as f64;
        drift.iter_mut().for_each(|drift| *drift -= mean_drift);
        let corrected: Vec<f64> = logs.iter().zip(&drift).map(|(log, drift)| log - drift).collect();
        let means = kept_by_cell.means(&corrected);
        let levels: Vec<Option<f64>> =
            means.into_iter().zip(&kept_by_cell.counts).map(|(mean, n)| (*n > 0).then_some(mean)).collect();
        let residuals = observations
            .iter()
            .zip(&corrected)
            .map(|(one, log)| levels[one.cell].map_or(0.0, |level| log - level))
            .collect();
        let term_means = terms.iter().map(|term| kept_by_cell.means(&term.raw)).collect();
        let counts = kept_by_cell.counts;
        Some(Fit { levels, counts, term_means, sigma, freedom, drift, residuals, kept: kept.to_vec() })
    }

    /// The level of a cell, as a logarithm; `None` without observations.
    pub fn level(&self, cell: usize) -> Option<f64> {
        self.levels.get(cell).copied().flatten()
    }

    /// Of each term of the drift, its mean in each cell.
    pub fn term_means(&self) -> &[Vec<f64>] {
        &self.term_means
    }

    /// Observations that count of a cell.
    pub fn count(&self, cell: usize) -> usize {
        self.counts.get(cell).copied().unwrap_or(0)
    }

    /// `Σ weight × level`; weights of one cell add up, and ought to be zero in sum. `None` where
    /// a cell has no observations.
    pub fn contrast(&self, weights: &[(usize, f64)]) -> Option<Contrast> {
        let mut weight_by_cell = vec![0.0; self.levels.len()];
        for (cell, weight) in weights {
            *weight_by_cell.get_mut(*cell)? += weight;
        }
        let (mut value, mut variance) = (0.0, 0.0);
        for (cell, weight) in weight_by_cell.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            value += weight * self.levels[cell]?;
            variance += weight * weight / self.counts[cell] as f64;
        }
        for term_means in &self.term_means {
            variance += dot(term_means, &weight_by_cell).powi(2);
        }
        Some(Contrast { value, error: self.sigma * variance.sqrt(), freedom: self.freedom })
    }

    /// The part of an observation's noise that its cell's level, a mean of n, contains: 1 / n.
    fn leverage(&self, one: &LogValue) -> f64 {
        1.0 / self.counts[one.cell].max(1) as f64
    }

    /// Whether an observation counts and is not alone in its cell, so that its residual says
    /// something about the noise.
    fn shows_noise(&self, observations: &[LogValue], index: usize) -> bool {
        self.kept[index] && self.counts[observations[index].cell] > 1
    }

    /// Residuals of the observations that count, scaled to a variance of one. Fitting a cell's
    /// level leaves only `1 - leverage` of their variance, which is undone first. Empty if no
    /// residual differs from 0.
    pub fn scaled_residuals(&self, observations: &[LogValue]) -> Vec<f64> {
        let unshrunk: Vec<f64> = (0..observations.len())
            .filter(|index| self.shows_noise(observations, *index))
            .map(|index| self.residuals[index] / (1.0 - self.leverage(&observations[index])).sqrt())
            .collect();
        let size = (dot(&unshrunk, &unshrunk) / unshrunk.len() as f64).sqrt();
        if size > 0.0 { unshrunk.iter().map(|residual| residual / size).collect() } else { Vec::new() }
    }

    /// Which observations count in the next round: the farthest outlier of each cell no longer
    /// does, and those that are no outliers by this fit do again.
    fn next_kept(&self, observations: &[LogValue], cells: usize) -> Vec<bool> {
        let distances: Vec<f64> = observations
            .iter()
            .zip(&self.residuals)
            .zip(&self.kept)
            .map(|((one, residual), kept)| {
                // The level contains noise of the observations that count, so their residuals are
                // smaller than the noise; those of the others have the level's error on top.
                let variance =
                    if *kept { (1.0 - self.leverage(one)).max(1e-9) } else { 1.0 + self.leverage(one) };
                residual.abs() / variance.sqrt()
            })
            .collect();
        let counted: Vec<f64> = (0..observations.len())
            .filter(|index| self.shows_noise(observations, *index))
            .map(|index| distances[index])
            .collect();
        let limit = OUTLIER_SIGMAS * MAD_TO_SIGMA * median(&counted).unwrap_or(0.0);
        let mut next: Vec<bool> =
            self.kept.iter().zip(&distances).map(|(kept, distance)| *kept || *distance <= limit).collect();
        set_farthest_aside(observations, cells, &distances, limit, &mut next);
        next
    }
}

/// The farthest observation of each cell beyond the limit no longer counts, unless fewer than half
/// of the cell's observations, or than two, would be left.
fn set_farthest_aside(
    observations: &[LogValue],
    cells: usize,
    distances: &[f64],
    limit: f64,
    kept: &mut [bool],
) {
    let mut by_cell: Vec<Vec<usize>> = vec![Vec::new(); cells];
    observations.iter().enumerate().for_each(|(index, one)| by_cell[one.cell].push(index));
    for of_cell in by_cell {
        let counting: Vec<usize> = of_cell.iter().copied().filter(|index| kept[*index]).collect();
        let enough = counting.len() > 2 && 2 * (counting.len() - 1) >= of_cell.len();
        let farthest = counting.into_iter().max_by(|a, b| distances[*a].total_cmp(&distances[*b]));
        if let Some(index) = farthest.filter(|index| enough && distances[*index] > limit) {
            kept[index] = false;
        }
    }
}

/// Which observations count in the first fit. The deviation of an observation from its cell's
/// median is compared with those of its neighbours in time, so that drift makes no outliers.
fn kept_at_first(observations: &[LogValue], cells: usize) -> Vec<bool> {
    let mut logs_by_cell: Vec<Vec<f64>> = vec![Vec::new(); cells];
    observations.iter().for_each(|one| logs_by_cell[one.cell].push(one.log));
    let cell_medians: Vec<f64> = logs_by_cell.iter().map(|logs| median(logs).unwrap_or(0.0)).collect();

    let mut by_time: Vec<usize> = (0..observations.len()).collect();
    by_time.sort_by(|a, b| observations[*a].time.total_cmp(&observations[*b].time));
    let deviations: Vec<f64> = by_time
        .iter()
        .map(|index| observations[*index].log - cell_medians[observations[*index].cell])
        .collect();

    let mut distances = vec![0.0; observations.len()];
    for (place, index) in by_time.iter().enumerate() {
        let end = (place + NEIGHBOURS_PER_SIDE + 1).min(deviations.len());
        let neighbours = &deviations[place.saturating_sub(NEIGHBOURS_PER_SIDE)..end];
        distances[*index] = (deviations[place] - median(neighbours).unwrap_or(0.0)).abs();
    }
    // A median of few observations is often one of them; such a distance of 0 does not show the
    // noise.
    let nonzero: Vec<f64> = distances.iter().copied().filter(|distance| *distance > 0.0).collect();
    let limit = FIRST_LIMIT_FACTOR * OUTLIER_SIGMAS * MAD_TO_SIGMA * median(&nonzero).unwrap_or(0.0);
    let mut kept = vec![true; observations.len()];
    set_farthest_aside(observations, cells, &distances, limit, &mut kept);
    kept
}

/// The observations that count, by cell.
struct KeptByCell<'a> {
    observations: &'a [LogValue],
    kept: &'a [bool],
    counts: Vec<usize>,
}

impl KeptByCell<'_> {
    fn new<'a>(observations: &'a [LogValue], cells: usize, kept: &'a [bool]) -> KeptByCell<'a> {
        let mut counts = vec![0; cells];
        let counted = observations.iter().zip(kept).filter(|(_, kept)| **kept);
        counted.for_each(|(one, _)| counts[one.cell] += 1);
        KeptByCell { observations, kept, counts }
    }

    /// The mean in each cell, 0 without observations.
    fn means(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for ((one, value), kept) in self.observations.iter().zip(values).zip(self.kept) {
            if *kept {
                sums[one.cell] += value;
            }
        }
        sums.iter().zip(&self.counts).map(|(sum, n)| sum / (*n).max(1) as f64).collect()
    }

    /// Values less the mean in each cell; 0 at observations that do not count.
    fn centred(&self, values: &[f64]) -> Vec<f64> {
        let means = self.means(values);
        let values = self.observations.iter().zip(values).zip(self.kept);
        values.map(|((one, value), kept)| if *kept { value - means[one.cell] } else { 0.0 }).collect()
    }

    /// A term for each pass but the first, which is the base of their levels.
    fn pass_terms(&self) -> Vec<Term> {
        let mut passes: Vec<u32> = self.observations.iter().map(|one| one.pass).collect();
        passes.sort_unstable();
        passes.dedup();
        let mut terms = Vec::new();
        for pass in passes.into_iter().skip(1) {
            let raw = self.observations.iter().map(|one| f64::from(one.pass == pass)).collect();
            terms.extend(self.term(raw, &terms));
        }
        terms
    }

    /// A term orthogonal to `terms` and of length one; `None` if it is a sum of these.
    fn term(&self, mut raw: Vec<f64>, terms: &[Term]) -> Option<Term> {
        let mut centred = self.centred(&raw);
        let length_before = dot(&centred, &centred).sqrt();
        for term in terms {
            let projection = dot(&term.centred, &centred);
            add(&mut centred, -projection, &term.centred);
            add(&mut raw, -projection, &term.raw);
        }
        let length = dot(&centred, &centred).sqrt();
        if length.is_nan() || length <= NEGLIGIBLE_PART * length_before || length == 0.0 {
            return None;
        }
        raw.iter_mut().chain(&mut centred).for_each(|value| *value /= length);
        Some(Term { raw, centred })
    }

    /// Adds terms of the drift as long as the best candidate is significant. Returns the logarithms
    /// less cells and all terms.
    fn add_drift_terms(&self, logs: &[f64], terms: &mut Vec<Term>, free: usize) -> Vec<f64> {
        let mut rest = self.centred(logs);
        let raws = self.candidates();
        let mut candidates: Vec<Vec<f64>> = raws.iter().map(|raw| self.centred(raw)).collect();
        let lengths: Vec<f64> = candidates.iter().map(|candidate| dot(candidate, candidate)).collect();
        for term in terms.iter() {
            subtract_projection(&mut rest, term);
            candidates.iter_mut().for_each(|candidate| subtract_projection(candidate, term));
        }
        let min_f = F_THRESHOLD + 2.0 * (raws.len().max(1) as f64).ln();
        for chosen in 1..=MAX_TERMS.min(free / FREEDOM_PER_TERM) {
            // What each candidate would explain of the sum of squares; lengths are squared.
            let gains = candidates.iter().zip(&lengths).map(|(candidate, length_before)| {
                let length = dot(candidate, candidate);
                let is_new = length > NEGLIGIBLE_PART * length_before;
                if is_new { dot(candidate, &rest).powi(2) / length } else { 0.0 }
            });
            let Some((best, gain)) = gains.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let freedom = free.saturating_sub(chosen);
            let left = dot(&rest, &rest) - gain;
            if freedom == 0 || gain <= 0.0 || gain * freedom as f64 <= min_f * left {
                break;
            }
            let Some(term) = self.term(raws[best].clone(), terms) else { break };
            subtract_projection(&mut rest, &term);
            candidates.iter_mut().for_each(|candidate| subtract_projection(candidate, &term));
            terms.push(term);
        }
        rest
    }

    /// Bends and steps over the time of the observations, each from 0 to 1. A bend is 0 until it
    /// begins and then rises in a line; the first begins with the observations and is the slope.
    fn candidates(&self) -> Vec<Vec<f64>> {
        let counted = self.observations.iter().zip(self.kept).filter(|(_, kept)| **kept);
        let mut times: Vec<f64> = counted.map(|(one, _)| one.time).collect();
        times.sort_unstable_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Vec::new() };
        if last <= first {
            return Vec::new();
        }
        let all_times = || self.observations.iter().map(|one| one.time);
        let bend_from =
            |begin: f64| all_times().map(|time| ((time - begin) / (last - begin)).max(0.0)).collect();
        let step_at = |begin: f64| all_times().map(|time| f64::from(time >= begin)).collect();
        let bends = (0..MAX_BEND_TIMES)
            .map(|number| times[number * times.len() / MAX_BEND_TIMES])
            .filter(|begin| *begin < last)
            .map(bend_from);
        let stride = (times.len() / MAX_STEP_TIMES).max(1);
        let steps = (MIN_PER_SIDE..(times.len() + 1).saturating_sub(MIN_PER_SIDE))
            .step_by(stride)
            .map(|place| step_at(times[place]));
        bends.chain(steps).collect()
    }
}

/// Takes out of the values what the term explains of them.
fn subtract_projection(values: &mut [f64], term: &Term) {
    let projection = dot(&term.centred, values);
    add(values, -projection, &term.centred);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `to += factor × what`.
fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

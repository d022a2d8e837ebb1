//! Levels of settings with the machine's drift taken out: `ln value = setting + drift(time) +
//! noise`.
//!
//! Least squares, with terms of the drift chosen one at a time (a slope, a bend, a step) as long as
//! each can be shown, and with observations set aside that lie too far from all others. Terms are
//! kept orthogonal to settings and to each other, so that no equations have to be solved: with `w`
//! a term's values, `q = w - (its mean in each setting)` of length one, its coefficient is `q·y`,
//! and a contrast `Σ a_c level_c` has the variance `σ² (Σ a_c² / n_c + Σ_w (Σ a_c mean_c(w))²)`.

use crate::order::{Interval, MAD_TO_SIGMA, median};
use crate::tails::{t_quantile, t_two_sided};

/// A logarithm at a time, under a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The setting, from 0.
    pub cell: usize,
    pub pass: u32,
    /// On the run's time line, any unit.
    pub at: f64,
    /// Natural logarithm of the value.
    pub log: f64,
}

/// Whether each pass has a level of its own beside the drift that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassLevels {
    Shared,
    PerPass,
}

/// A difference of logarithms with what is known of it.
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

/// A term of the drift: its values at all observations, and the same less its mean in each setting,
/// of length one over the observations that count.
struct Term {
    raw: Vec<f64>,
    centred: Vec<f64>,
}

/// What was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    levels: Vec<Option<f64>>,
    counts: Vec<usize>,
    /// Of each term, its mean in each setting.
    term_means: Vec<Vec<f64>>,
    /// Standard deviation of one observation's logarithm.
    pub sigma: f64,
    /// Degrees of freedom of `sigma`, from 1.
    pub freedom: f64,
    /// The drift at each observation, as a logarithm, from its mean; what passes have of their own
    /// is part of it.
    pub drift: Vec<f64>,
    /// Each observation less its setting's level and the drift.
    pub residuals: Vec<f64>,
    /// Observations that count; the others lay too far from all others.
    pub kept: Vec<bool>,
}

/// An observation farther from its fit than this, in robust standard deviations, is set aside: of
/// normal noise one in 16 000.
const OUTLIER_SIGMAS: f64 = 4.0;
/// Rounds of setting aside and fitting again.
const MAX_ROUNDS: usize = 4;
/// Most chosen terms.
const MAX_TERMS: usize = 8;
/// Most places of a step, and of a bend.
const MAX_STEP_PLACES: usize = 80;
const MAX_BEND_PLACES: usize = 8;
/// A term is taken where its F is above this and twice the logarithm of the number of candidates:
/// that many chances.
const F_THRESHOLD: f64 = 7.0;
/// Observations on either side of a step.
const MIN_PER_SIDE: usize = 4;

/// Fits settings `0..cells`; `None` where there are no more observations than settings, so that
/// the noise is unknown, and where a point is not finite or of no setting.
pub fn fit(points: &[Point], cells: usize, passes: PassLevels) -> Option<Fit> {
    let sound =
        points.iter().all(|point| point.cell < cells && point.log.is_finite() && point.at.is_finite());
    if !sound || points.is_empty() {
        return None;
    }
    let mut kept = first_guess(points, cells);
    let mut fitted = Fit::new(points, cells, passes, &kept)?;
    for _ in 0..MAX_ROUNDS {
        let next = fitted.next_kept(points, cells);
        if next == kept {
            break;
        }
        kept = next;
        fitted = Fit::new(points, cells, passes, &kept)?;
    }
    Some(fitted)
}

impl Fit {
    fn new(points: &[Point], cells: usize, passes: PassLevels, kept: &[bool]) -> Option<Fit> {
        let space = KeptByCell::new(points, cells, kept);
        let settings = space.counts.iter().filter(|n| **n > 0).count();
        let observations: usize = space.counts.iter().sum();
        let logs: Vec<f64> = points.iter().map(|point| point.log).collect();
        let mut terms: Vec<Term> = Vec::new();
        if passes == PassLevels::PerPass {
            let mut names: Vec<u32> = points.iter().map(|point| point.pass).collect();
            names.sort_unstable();
            names.dedup();
            for name in names.into_iter().skip(1) {
                let raw = points.iter().map(|point| f64::from(point.pass == name)).collect();
                terms.extend(space.term(raw, &terms));
            }
        }
        let free = observations.checked_sub(settings + terms.len())?;
        if settings == 0 || free == 0 {
            return None;
        }
        let given = terms.len();
        let rest = space.choose(&logs, &mut terms, free);
        // Each chosen term costs its coefficient and its place.
        let freedom = free.saturating_sub(2 * (terms.len() - given)).max(1) as f64;
        let sigma = (dot(&rest, &rest) / freedom).sqrt();
        // What was set aside counts as much as the farthest that was not (a winsorised variance).
        let aside = (kept.len() - observations) as f64;
        let sigma = sigma * (1.0 + 0.5 * OUTLIER_SIGMAS * OUTLIER_SIGMAS * aside / kept.len() as f64).sqrt();
        let shares: Vec<f64> = terms.iter().map(|term| dot(&term.centred, &logs)).collect();
        let mut drift = vec![0.0; points.len()];
        for (share, term) in shares.iter().zip(&terms) {
            drift.iter_mut().zip(&term.raw).for_each(|(drift, raw)| *drift += share * raw);
        }
        let middle = drift.iter().sum::<f64>() / drift.len() as f64;
        drift.iter_mut().for_each(|drift| *drift -= middle);
        let corrected: Vec<f64> = logs.iter().zip(&drift).map(|(log, drift)| log - drift).collect();
        let sums = space.means(&corrected);
        let levels: Vec<Option<f64>> =
            sums.into_iter().zip(&space.counts).map(|(mean, n)| (*n > 0).then_some(mean)).collect();
        let residuals = points
            .iter()
            .zip(&corrected)
            .map(|(point, log)| levels[point.cell].map_or(0.0, |level| log - level))
            .collect();
        let term_means = terms.iter().map(|term| space.means(&term.raw)).collect();
        let counts = space.counts.clone();
        Some(Fit { levels, counts, term_means, sigma, freedom, drift, residuals, kept: kept.to_vec() })
    }

    /// The level of a setting, as a logarithm; `None` without observations.
    pub fn level(&self, cell: usize) -> Option<f64> {
        self.levels.get(cell).copied().flatten()
    }

    /// Of each term of the drift, its mean in each setting.
    pub fn term_means(&self) -> &[Vec<f64>] {
        &self.term_means
    }

    /// Observations that count of a setting.
    pub fn count(&self, cell: usize) -> usize {
        self.counts.get(cell).copied().unwrap_or(0)
    }

    /// `Σ weight × level`; weights of one setting add up, and ought to be zero in sum. `None` where
    /// a setting has no observations.
    pub fn contrast(&self, weights: &[(usize, f64)]) -> Option<Contrast> {
        let mut of = vec![0.0; self.levels.len()];
        for (cell, weight) in weights {
            *of.get_mut(*cell)? += weight;
        }
        let (mut value, mut variance) = (0.0, 0.0);
        for (cell, weight) in of.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            value += weight * self.levels[cell]?;
            variance += weight * weight / self.counts[cell] as f64;
        }
        for term_means in &self.term_means {
            variance += dot(term_means, &of).powi(2);
        }
        Some(Contrast { value, error: self.sigma * variance.sqrt(), freedom: self.freedom })
    }

    /// What is left of the observations that count, with the variance that their setting's level
    /// took from them given back, and all scaled to a variance of one. Empty where nothing is left
    /// over.
    pub fn scaled_residuals(&self, points: &[Point]) -> Vec<f64> {
        let own: Vec<f64> = (0..points.len())
            .filter(|index| self.kept[*index] && self.counts[points[*index].cell] > 1)
            .map(|index| self.residuals[index] / (1.0 - 1.0 / self.counts[points[index].cell] as f64).sqrt())
            .collect();
        let size = (dot(&own, &own) / own.len() as f64).sqrt();
        if size > 0.0 { own.iter().map(|rest| rest / size).collect() } else { Vec::new() }
    }

    /// Which observations count in the next round: of each setting at most the farthest goes, those
    /// near enough come back.
    fn next_kept(&self, points: &[Point], cells: usize) -> Vec<bool> {
        let share = |point: &Point| 1.0 / self.counts[point.cell].max(1) as f64;
        let scaled: Vec<f64> = points
            .iter()
            .zip(&self.residuals)
            .zip(&self.kept)
            .map(|((point, rest), kept)| {
                if *kept {
                    rest.abs() / (1.0 - share(point)).max(1e-9).sqrt()
                } else {
                    rest.abs() / (1.0 + share(point)).sqrt()
                }
            })
            .collect();
        let counted: Vec<f64> = (0..points.len())
            .filter(|index| self.kept[*index] && self.counts[points[*index].cell] > 1)
            .map(|index| scaled[index])
            .collect();
        let limit = OUTLIER_SIGMAS * MAD_TO_SIGMA * median(&counted).unwrap_or(0.0);
        let mut next: Vec<bool> = self.kept.clone();
        (0..points.len()).filter(|index| scaled[*index] <= limit).for_each(|index| next[index] = true);
        set_farthest_aside(points, cells, &scaled, limit, &mut next);
        next
    }
}

/// The farthest observation of each setting beyond the limit no longer counts, unless too few would
/// be left.
fn set_farthest_aside(points: &[Point], cells: usize, far: &[f64], limit: f64, kept: &mut [bool]) {
    let mut of: Vec<Vec<usize>> = vec![Vec::new(); cells];
    points.iter().enumerate().for_each(|(index, point)| of[point.cell].push(index));
    for observations in of {
        let counting = observations.iter().filter(|index| kept[**index]).count();
        let farthest = observations
            .iter()
            .copied()
            .filter(|index| kept[*index])
            .max_by(|a, b| far[*a].total_cmp(&far[*b]));
        let enough = counting > 2 && 2 * (counting - 1) >= observations.len();
        if let Some(index) = farthest.filter(|index| enough && far[*index] > limit) {
            kept[index] = false;
        }
    }
}

/// Which observations count at first: those that a running median over what is beside the settings'
/// medians does not call far.
fn first_guess(points: &[Point], cells: usize) -> Vec<bool> {
    let mut of: Vec<Vec<f64>> = vec![Vec::new(); cells];
    points.iter().for_each(|point| of[point.cell].push(point.log));
    let middles: Vec<f64> = of.iter().map(|logs| median(logs).unwrap_or(0.0)).collect();
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*a].at.total_cmp(&points[*b].at));
    let beside: Vec<f64> =
        order.iter().map(|index| points[*index].log - middles[points[*index].cell]).collect();
    const HALF: usize = 7;
    let mut far = vec![0.0; points.len()];
    for (place, index) in order.iter().enumerate() {
        let around = &beside[place.saturating_sub(HALF)..(place + HALF + 1).min(beside.len())];
        far[*index] = (beside[place] - median(around).unwrap_or(0.0)).abs();
    }
    // Medians of few observations are often observations themselves: what is zero says nothing
    // of the noise.
    let moved: Vec<f64> = far.iter().copied().filter(|far| *far > 0.0).collect();
    let limit = 1.5 * OUTLIER_SIGMAS * MAD_TO_SIGMA * median(&moved).unwrap_or(0.0);
    let mut kept = vec![true; points.len()];
    set_farthest_aside(points, cells, &far, limit, &mut kept);
    kept
}

/// The observations that count, by setting.
struct KeptByCell<'a> {
    points: &'a [Point],
    kept: &'a [bool],
    counts: Vec<usize>,
}

impl KeptByCell<'_> {
    fn new<'a>(points: &'a [Point], cells: usize, kept: &'a [bool]) -> KeptByCell<'a> {
        let mut counts = vec![0; cells];
        points.iter().zip(kept).filter(|(_, kept)| **kept).for_each(|(point, _)| counts[point.cell] += 1);
        KeptByCell { points, kept, counts }
    }

    /// The mean in each setting, 0 without observations.
    fn means(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.counts.len()];
        for ((point, value), kept) in self.points.iter().zip(values).zip(self.kept) {
            if *kept {
                sums[point.cell] += value;
            }
        }
        sums.iter().zip(&self.counts).map(|(sum, n)| sum / (*n).max(1) as f64).collect()
    }

    /// Less the mean in each setting; 0 for what does not count.
    fn centred(&self, values: &[f64]) -> Vec<f64> {
        let means = self.means(values);
        let observations = self.points.iter().zip(values).zip(self.kept);
        observations
            .map(|((point, value), kept)| if *kept { value - means[point.cell] } else { 0.0 })
            .collect()
    }

    /// Made orthogonal to the terms there are, and of length one; `None` where nothing is left.
    fn term(&self, mut raw: Vec<f64>, terms: &[Term]) -> Option<Term> {
        let mut centred = self.centred(&raw);
        let before = dot(&centred, &centred);
        for term in terms {
            let share = dot(&term.centred, &centred);
            add(&mut centred, -share, &term.centred);
            add(&mut raw, -share, &term.raw);
        }
        let length = dot(&centred, &centred).sqrt();
        if length.is_nan() || length <= 1e-6 * before.sqrt() || length == 0.0 {
            return None;
        }
        raw.iter_mut().chain(&mut centred).for_each(|value| *value /= length);
        Some(Term { raw, centred })
    }

    /// Adds terms as long as one can be shown; gives what is left of the logarithms.
    fn choose(&self, logs: &[f64], terms: &mut Vec<Term>, free: usize) -> Vec<f64> {
        let mut rest = self.centred(logs);
        for term in terms.iter() {
            let share = dot(&term.centred, &rest);
            add(&mut rest, -share, &term.centred);
        }
        let raws = self.candidates();
        let mut candidates: Vec<Vec<f64>> = raws.iter().map(|raw| self.centred(raw)).collect();
        let lengths: Vec<f64> = candidates.iter().map(|candidate| dot(candidate, candidate)).collect();
        for term in terms.iter() {
            orthogonal(&mut candidates, term);
        }
        let told = F_THRESHOLD + 2.0 * (raws.len().max(1) as f64).ln();
        for taken in 1..=MAX_TERMS.min(free / 6) {
            let gains = candidates.iter().zip(&lengths).map(|(candidate, before)| {
                let length = dot(candidate, candidate);
                if length <= 1e-6 * before { 0.0 } else { dot(candidate, &rest).powi(2) / length }
            });
            let Some((best, gain)) = gains.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let freedom = free.saturating_sub(taken);
            let left = dot(&rest, &rest) - gain;
            if freedom == 0 || gain <= 0.0 || gain * freedom as f64 <= told * left {
                break;
            }
            let Some(term) = self.term(raws[best].clone(), terms) else { break };
            let share = dot(&term.centred, &rest);
            add(&mut rest, -share, &term.centred);
            orthogonal(&mut candidates, &term);
            terms.push(term);
        }
        rest
    }

    /// A slope, bends and steps over the time of the observations, each from 0 to 1.
    fn candidates(&self) -> Vec<Vec<f64>> {
        let mut times: Vec<f64> =
            self.points.iter().zip(self.kept).filter(|(_, kept)| **kept).map(|(point, _)| point.at).collect();
        times.sort_unstable_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Vec::new() };
        if last <= first {
            return Vec::new();
        }
        let raw = |of: &dyn Fn(f64) -> f64| -> Vec<f64> { self.points.iter().map(|p| of(p.at)).collect() };
        let bend = |from: f64| raw(&|at| ((at - from) / (last - from)).max(0.0));
        let mut candidates: Vec<Vec<f64>> = (0..MAX_BEND_PLACES)
            .map(|bend| bend * times.len() / MAX_BEND_PLACES)
            .filter(|place| times[*place] < last)
            .map(|place| bend(times[place]))
            .collect();
        let stride = (times.len() / MAX_STEP_PLACES).max(1);
        let steps = (MIN_PER_SIDE..(times.len() + 1).saturating_sub(MIN_PER_SIDE)).step_by(stride);
        candidates.extend(steps.map(|place| raw(&|at| f64::from(at >= times[place]))));
        candidates
    }
}

fn orthogonal(candidates: &mut [Vec<f64>], term: &Term) {
    for candidate in candidates {
        let share = dot(&term.centred, candidate);
        add(candidate, -share, &term.centred);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += times * what);
}

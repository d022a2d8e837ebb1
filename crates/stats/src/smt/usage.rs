//! From busy shares of CPUs to the used share of cores.
//!
//! With `yield(k)` linear in the number k of busy siblings of n, the work of a core depends on two
//! numbers only: the share `a` of time in which any sibling is busy and the mean number `B` of busy
//! ones. With `c = (B - a) / (n - 1)` its used share is `U = c + (a - c) / s`. For n = 2 that is
//! `t1 / s + t2` with `t2 = c = B - a`, `t1 = a - c`; without siblings `U = B`.
//!
//! `B` is what the kernel counts. `a` is not, and lies between the busiest sibling's share and the
//! sum of all, at most 1; independent siblings give `1 - (1 - b1)(1 - b2)...`. Bounds of short
//! windows, added up, are the tighter the less siblings change inside a window.

use super::super::tails::normal_quantile;
use super::{Bounds, Yield};

/// What a core did over a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreUse {
    /// Siblings that are online, from 1.
    pub threads: usize,
    /// Mean number of busy siblings, 0..threads: `t1 + 2 t2` of two.
    pub busy: f64,
    /// Share of time in which any sibling is busy: `t1 + t2` of two.
    pub any: Bounds,
    /// Standard error of `busy` (see [`Counting`]); 0 where it is exact.
    pub error: f64,
    /// The core's clock over the clock with all siblings of all cores busy; 1 where it is not
    /// known.
    pub clock: Bounds,
}

/// Busy shares of a core's siblings over one short window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub seconds: f64,
    /// 0..1 of each sibling; a count of ticks may say more than 1 of a short window.
    pub busy: Vec<f64>,
}

/// How busy time was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting {
    Exactly,
    /// In units of this many seconds (0.01 in /proc/stat). The kernel may look at its ticks only
    /// and charge whole ones, so a unit counts as one look: a share of n units is off by `sqrt(b (1
    /// - b) / n)`, and by part of a unit.
    Ticks(f64),
}

impl CoreUse {
    /// From the shares of time in which exactly 1, 2, ... siblings were busy: `[t1, t2]` of a core
    /// with two. `None` where they are negative, not finite or more than all of the time (by 1e-9).
    pub fn exactly(shares: &[f64]) -> Option<CoreUse> {
        let any: f64 = shares.iter().sum();
        let sound = shares.iter().all(|share| *share >= 0.0) && any <= 1.0 + 1e-9 && !shares.is_empty();
        let busy = shares.iter().zip(1..).map(|(share, k)| share * f64::from(k)).sum();
        sound.then(|| CoreUse::known(shares.len(), busy, Bounds::exactly(any.min(1.0))))
    }

    /// From the busy share of each sibling over the whole time: nothing is known of when.
    pub fn of_shares(busy: &[f64]) -> Option<CoreUse> {
        CoreUse::of_windows(&[Window { seconds: 1.0, busy: busy.to_vec() }], Counting::Exactly)
    }

    /// From many short windows, one after the other. Exact shares: the bounds of all windows, added
    /// up. Counted in ticks, a short window is mostly noise, and noise alone makes the busiest
    /// sibling look busier and the sum exceed the window: windows are joined to ever longer ones,
    /// the bounds of each length widened by what its noise can do, and the tightest taken. The
    /// middle is that of siblings which are independent inside a shortest window. `None` without a
    /// window, or where windows are of no time or of different numbers of siblings.
    pub fn of_windows(windows: &[Window], counting: Counting) -> Option<CoreUse> {
        let threads = windows.first()?.busy.len();
        let sound = |window: &Window| {
            let shares = window.busy.iter().all(|share| share.is_finite() && *share >= 0.0);
            window.seconds > 0.0 && window.seconds.is_finite() && window.busy.len() == threads && shares
        };
        if threads == 0 || !windows.iter().all(sound) {
            return None;
        }
        let whole = joined(windows);
        let busy: f64 = whole.busy.iter().map(|share| share.min(1.0)).sum();
        let limit = |any: f64| any.max(busy / threads as f64).min(busy.min(1.0));
        let mid = windows.iter().map(|window| window.seconds * independent(&window.busy)).sum::<f64>();
        let mid = limit(mid / whole.seconds);
        let (lo, hi) = match counting {
            Counting::Exactly => bounds_of(windows, whole.seconds, 0.0),
            Counting::Ticks(tick) => {
                let (mut lo, mut hi) = (0f64, f64::INFINITY);
                let mut lengths: Vec<Window> = windows.to_vec();
                loop {
                    let widening = noise(&lengths, &whole, tick);
                    let (low, high) = bounds_of(&lengths, whole.seconds, widening);
                    (lo, hi) = (lo.max(low), hi.min(high));
                    if lengths.len() == 1 {
                        break;
                    }
                    lengths = lengths.chunks(2).map(joined).collect();
                }
                if lo > hi { (mid, mid) } else { (lo, hi) }
            }
        };
        let error = match counting {
            Counting::Exactly => 0.0,
            Counting::Ticks(tick) => whole.busy.iter().map(|b| error_of(*b, whole.seconds / tick)).sum(),
        };
        let any = Bounds::ordered(limit(lo), mid, limit(hi));
        Some(CoreUse { error, ..CoreUse::known(threads, busy, any) })
    }

    /// Stretches of one core's time, each with its seconds, as one. `None` without any time.
    pub fn joined(parts: &[(f64, CoreUse)]) -> Option<CoreUse> {
        let seconds: f64 = parts.iter().map(|(seconds, _)| seconds).sum();
        let mean = |of: &dyn Fn(&CoreUse) -> f64| {
            parts.iter().map(|(own, part)| own * of(part)).sum::<f64>() / seconds
        };
        let bounds = |of: fn(&CoreUse) -> Bounds| Bounds {
            lo: mean(&|part| of(part).lo),
            mid: mean(&|part| of(part).mid),
            hi: mean(&|part| of(part).hi),
        };
        let error = parts.iter().map(|(own, part)| (own * part.error).powi(2)).sum::<f64>().sqrt() / seconds;
        let (any, clock) = (bounds(|part| part.any), bounds(|part| part.clock));
        let threads = parts.iter().map(|(_, part)| part.threads).max()?;
        (seconds > 0.0).then(|| CoreUse { threads, busy: mean(&|part| part.busy), any, error, clock })
    }

    fn known(threads: usize, busy: f64, any: Bounds) -> CoreUse {
        CoreUse { threads, busy, any, error: 0.0, clock: Bounds::ONE }
    }

    /// With its clock over the clock with everything busy.
    pub fn at_clock(self, clock: Bounds) -> CoreUse {
        CoreUse { clock, ..self }
    }

    /// Share of time with both siblings busy; of more than two, the mean number of busy ones beyond
    /// the first over the most there can be.
    pub fn t2(&self) -> Bounds {
        let of = |any: f64| self.together(any);
        Bounds::ordered(of(self.any.hi), of(self.any.mid), of(self.any.lo))
    }

    fn together(&self, any: f64) -> f64 {
        match self.threads {
            0 | 1 => 0.0,
            threads => ((self.busy - any) / (threads - 1) as f64).max(0.0),
        }
    }

    /// Used share of the core at this yield and this share of time with any sibling busy, at the
    /// clock of everything busy.
    fn at(&self, s: f64, any: f64) -> f64 {
        match self.threads {
            0 | 1 => self.busy,
            _ => {
                let together = self.together(any);
                // Where siblings hinder each other, a core does most with one of them busy.
                together + (any - together) / s.max(1.0)
            }
        }
    }

    /// Its used share: each bound is that of the worst yield, overlap and clock together, without
    /// the counting's error. Above 1 only where the clock is above what it would be with everything
    /// busy: a yield below 1 counts as 1.
    pub fn used(&self, s: Yield) -> Bounds {
        let ends = |s: f64| [self.at(s, self.any.lo), self.at(s, self.any.hi)];
        let [a, b] = ends(s.hi);
        let [c, d] = ends(s.lo);
        let mid = self.clock.mid * self.at(s.mid, self.any.mid);
        Bounds::ordered(self.clock.lo * a.min(b), mid, self.clock.hi * c.max(d))
    }

    /// How far `used` moves with `busy`, at most.
    fn leverage(&self, s: f64) -> f64 {
        match self.threads {
            0 | 1 => self.clock.hi,
            threads => self.clock.hi * (1f64.max((s - 1.0) / (threads - 1) as f64)) / s.max(1.0),
        }
    }
}

/// Windows one after the other as one.
fn joined(windows: &[Window]) -> Window {
    let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
    let threads = windows.first().map_or(0, |window| window.busy.len());
    let share =
        |i: usize| windows.iter().map(|window| window.seconds * window.busy[i]).sum::<f64>() / seconds;
    Window { seconds, busy: (0..threads).map(share).collect() }
}

/// Share of time with any sibling busy where they are independent. Unbiased where the shares are,
/// so they are not clipped.
fn independent(busy: &[f64]) -> f64 {
    1.0 - busy.iter().map(|share| 1.0 - share).product::<f64>()
}

/// Bounds of the share of time with any sibling busy, of all windows added up and widened by so
/// many seconds.
fn bounds_of(windows: &[Window], seconds: f64, widening: f64) -> (f64, f64) {
    let busiest = |window: &Window| window.busy.iter().copied().fold(0.0, f64::max);
    let sum = |window: &Window| window.busy.iter().sum::<f64>().min(1.0);
    let low: f64 = windows.iter().map(|window| window.seconds * busiest(window)).sum();
    let high: f64 = windows.iter().map(|window| window.seconds * sum(window)).sum();
    ((low - widening) / seconds, (high + widening) / seconds)
}

/// By how many seconds, over all windows, noise of the counts moves their bounds inwards at most:
/// for a window with errors of variance v1, v2, ... the mean of the largest share is too high by at
/// most `sqrt(v1 + v2) / 2` of two siblings and `sqrt((n - 1) / n (v1 + v2 + ...))` of n (Aven
/// 1985), the mean of the clipped sum too low by at most half the root.
fn noise(windows: &[Window], whole: &Window, tick: f64) -> f64 {
    let n = windows.len() as f64;
    let variance: f64 = (0..whole.busy.len())
        .map(|i| {
            let of_looks = |window: &Window| {
                let units = window.seconds / tick;
                // From the window's own share where it holds several looks, else from the whole
                // time's.
                if units >= 2.0 {
                    window.busy[i].mul_add(-window.busy[i], window.busy[i]).max(0.0) * units * units
                        / (units - 1.0)
                } else {
                    whole.busy[i].mul_add(-whole.busy[i], whole.busy[i]).max(0.0) * units
                }
            };
            // A count in whole units is off by a fraction f with the variance f (1 - f): at most a
            // quarter, and at most f.
            let units = whole.busy[i] * whole.seconds / tick;
            windows.iter().map(of_looks).sum::<f64>() + (0.25 * n).min(units)
        })
        .sum();
    let threads = whole.busy.len() as f64;
    let factor = if threads > 2.0 { ((threads - 1.0) / threads).sqrt() } else { 0.5 };
    // The root of a mean is at least the mean of roots.
    factor * tick * (n * variance).sqrt()
}

/// Standard error of a share that was counted in this many units.
fn error_of(share: f64, units: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    // A count of 0 is no proof of 0: a unit's part may be hidden at each end.
    ((share * (1.0 - share) / units) + (0.5 / units).powi(2)).sqrt()
}

/// Cores whose clock was not measured, on a host that clocks up to `turbo` times higher (from 1)
/// while few cores are busy: between 1 and that; the middle falls in a straight line with the share
/// of cores that are busy.
pub fn clocked_up_to(cores: &mut [CoreUse], turbo: f64) {
    let busy = cores.iter().map(|core| core.any.mid).sum::<f64>() / cores.len() as f64;
    let clock = Bounds::ordered(1.0, turbo - (turbo - 1.0) * busy, turbo.max(1.0));
    cores.iter_mut().for_each(|core| core.clock = clock);
}

/// How much of several cores is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// CPU%: mean busy share of the CPUs, 0..1.
    pub naive: f64,
    /// U, with 95 % confidence: bounds of yield and overlap, widened by the error of counting.
    pub used: Bounds,
    pub cores: usize,
    pub cpus: usize,
}

/// How many more units of the present load fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Further {
    /// What CPU% suggests; `None` of an idle host.
    pub naive: Option<f64>,
    pub real: Option<Bounds>,
}

/// All cores count the same. `None` without a core.
pub fn used(cores: &[CoreUse], s: Yield) -> Option<Used> {
    let n = cores.len() as f64;
    let cpus: usize = cores.iter().map(|core| core.threads).sum();
    let each: Vec<Bounds> = cores.iter().map(|core| core.used(s)).collect();
    let mean = |end: fn(&Bounds) -> f64| each.iter().map(end).sum::<f64>() / n;
    let error = cores.iter().map(|core| (core.error * core.leverage(s.lo)).powi(2)).sum::<f64>().sqrt() / n;
    let error = error * normal_quantile(0.975)?;
    let most = cores.iter().map(|core| core.clock.hi).sum::<f64>() / n;
    let (lo, hi) = (mean(|u| u.lo) - error, mean(|u| u.hi) + error);
    let naive = cores.iter().map(|core| core.busy).sum::<f64>() / cpus as f64;
    let used = Bounds::ordered(lo.max(0.0), mean(|u| u.mid), hi.min(most));
    (cpus > 0).then_some(Used { naive, used, cores: cores.len(), cpus })
}

impl Used {
    /// To how many times today's the work can grow, by CPU%; `None` of an idle host.
    pub fn growth_naive(&self) -> Option<f64> {
        (self.naive > 0.0).then(|| 1.0 / self.naive)
    }

    /// The same by used cores, until all siblings are busy all the time. `hi` is infinite where
    /// nothing may be used.
    pub fn growth(&self) -> Option<Bounds> {
        let used = self.used;
        (used.mid > 0.0).then(|| Bounds { lo: 1.0 / used.hi, mid: 1.0 / used.mid, hi: 1.0 / used.lo })
    }

    /// How many more units of work fit beside `load` units of the same that run now.
    pub fn further(&self, load: f64) -> Further {
        let more = |growth: f64| load * (growth - 1.0);
        let real = self.growth().map(|g| Bounds { lo: more(g.lo), mid: more(g.mid), hi: more(g.hi) });
        Further { naive: self.growth_naive().map(more), real }
    }
}

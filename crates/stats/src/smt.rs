//! How much of its cores a host with SMT uses, and how much more work fits: what CPU% does not
//! report.
//!
//! Linux counts each sibling of a core as a CPU of its own. Here a core is one thing that can do
//! `s` times the work of one busy sibling while all its siblings are busy; `s` is the [`Yield`].
//! The used share of a core is the work that it does over the work that it could do: with one
//! sibling busy for a share `t1` of the time and both for `t2`, `U = (t1 / s + t2) f / f_all`
//! ([`usage`]), which is what IBM's PURR counts in hardware. A [`curve`] of performance over CPU%
//! shows the same thing from outside, [`yields`] finds `s`.
//!
//! Shares are 0..1 throughout, times are seconds, performance is work per second in the caller's
//! unit.

pub mod crossing;
pub mod curve;
pub mod sentence;
pub mod ticks;
pub mod usage;
pub mod watch;
pub mod yields;

pub use crossing::{Cross, Crossing, crossing};
pub use curve::{Capacity, Curve, Gap, Pass, Point, pack_first, spread_first};
pub use sentence::{Sentence, USUAL_MARGIN};
pub use usage::{CoreUse, Counting, Further, Used, Window, clocked_up_to, used};
pub use watch::{ObservedUse, Watch, Watched};
pub use yields::{Estimated, Method, YieldPass, Yields, estimate_yield};

#[cfg(test)]
mod tests;

/// A number between bounds, with the value that is taken where one must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub lo: f64,
    pub mid: f64,
    pub hi: f64,
}

impl Bounds {
    pub const ONE: Bounds = Bounds::exactly(1.0);

    pub const fn exactly(value: f64) -> Bounds {
        Bounds { lo: value, mid: value, hi: value }
    }

    /// Bounds in their order, the middle between them; what is no number is handed on.
    pub fn ordered(lo: f64, mid: f64, hi: f64) -> Bounds {
        let (lo, hi) = (lo.min(hi), hi.max(lo));
        Bounds { lo, mid: mid.max(lo).min(hi), hi }
    }

    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }
}

/// Throughput of all siblings of a core over that of one alone, for one kind of work: usually 1
/// (nothing gained) to 2 (as good as two cores), below 1 where siblings hinder each other, up to
/// the number of siblings where there are more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yield {
    pub lo: f64,
    pub mid: f64,
    pub hi: f64,
}

/// What servers show where nothing was measured: memory streams near 1.0, integer work 1.1 to 1.3,
/// POWER7's four threads and loads that wait for memory 1.6. Sources: research of the kernel's old
/// `smt_gain` (1178/1024 = 1.15) and of the factors behind POWER's PURR (1.4 for two threads, 1.6
/// for four).
pub const USUAL: Yield = Yield { lo: 1.0, mid: 1.3, hi: 1.6 };

/// Yields outside of this are no yields: at least a twentieth, at most eight siblings that all
/// count.
pub const POSSIBLE: std::ops::RangeInclusive<f64> = 0.05..=8.0;

impl Yield {
    pub const fn exactly(s: f64) -> Yield {
        Yield { lo: s, mid: s, hi: s }
    }

    /// A range without a favourite: its middle is the geometric one, since yields are ratios.
    /// `None` where a bound is not [`POSSIBLE`] or they are in the wrong order.
    pub fn between(lo: f64, hi: f64) -> Option<Yield> {
        let possible = POSSIBLE.contains(&lo) && POSSIBLE.contains(&hi) && lo <= hi;
        possible.then(|| Yield { lo, mid: (lo * hi).sqrt().clamp(lo, hi), hi })
    }

    /// What holds for any of several kinds of work: from the lowest bound to the highest, with the
    /// median of the middles.
    pub fn over_kinds(yields: &[Yield]) -> Option<Yield> {
        let mids: Vec<f64> = yields.iter().map(|s| s.mid).collect();
        let lo = yields.iter().map(|s| s.lo).reduce(f64::min)?;
        let hi = yields.iter().map(|s| s.hi).reduce(f64::max)?;
        let mid = super::order::median(&mids)?;
        (POSSIBLE.contains(&lo) && POSSIBLE.contains(&hi)).then_some(Yield { lo, mid, hi })
    }

    /// Work per second of `busy` of `threads` siblings over that of one: 0, then 1, then linear up
    /// to `s`. Linear because the steps between are rarely measured; POWER7's (1, 1.4 for two, 1.6
    /// for four) lie above the line, so that a partly busy core is rather more used than this says.
    /// Exact for two siblings.
    pub fn of(s: f64, busy: usize, threads: usize) -> f64 {
        match (busy, threads) {
            (0, _) => 0.0,
            (_, 0 | 1) => 1.0,
            _ => 1.0 + (busy - 1) as f64 * (s - 1.0) / (threads - 1) as f64,
        }
    }
}

/// What `assay explain utilization` prints, a heading and its text each.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "What it says",
        "Linux counts each logical CPU as busy or idle, and CPU% is their mean. Siblings (SMT, hyper-threading) share one core. \
         While one is busy the core is mostly used up, but CPU% shows half. Here the used share of a core is the work it does over \
         the work it can do with all siblings busy. Work can grow to 1/U times today's; by CPU% it would be 1/u.",
    ),
    (
        "Formula",
        "U = mean over cores of (t1/s + t2) f/f_all. t1: share of the time with exactly one sibling busy; t2: with both; s: work \
         per second of both over that of one; f/f_all: the core's clock over the clock with everything busy. A core \
         of n siblings, whose work grows linearly from 1 to s, has U = c + (a - c)/s. a is the share of time with any sibling \
         busy, B the mean number of busy ones, c = (B - a)/(n - 1). Without siblings U is CPU%.",
    ),
    (
        "What is measured",
        "/proc/stat reports the busy time of each CPU (user, nice, system, irq, softirq; guest time is in user; waiting for a disk \
         is idle, steal is neither). It does not report which CPUs were busy together. From two shares b1, b2 alone t2 lies \
         between max(0, b1 + b2 - 1) and min(b1, b2); independent siblings give b1 b2, the middle. Readings every 20 ms add up \
         these bounds over short intervals. That is much tighter if siblings keep their state for longer than an interval.",
    ),
    (
        "Units of 10 ms",
        "The kernel counts in 10 ms, and many kernels only sample the running task at each tick. An interval of 20 ms is then mostly \
         noise, which would make bounds too tight. So intervals are joined to longer ones, the bounds of each length are widened \
         by the possible noise, and the tightest count. Changes faster than about 100 ms stay unknown, as the bounds show. Shares \
         of the whole time are off by about sqrt(b (1 - b) 0.01 s / time). The bounds contain the truth in more than 95 % of \
         cases (docs/method/smt.md).",
    ),
    (
        "Assumptions",
        "A second thread adds 0–100 %, depending on the work: nothing to memory streams, 100 % to pointer chasing. `assay smt` \
         measures it here for several kinds. Without --yield or --study, 0–60 % is assumed: the kernel's own smt_gain was \
         15 %, IBM's POWER7 counts 40 % for two threads and 60 % for four. Below 0 it counts as 0: such a core does most with \
         one thread. Clocks are assumed to be equal. If cores clock up to T times higher while few are busy, give --turbo T; else U \
         may be up to T times as large. More work means more of the same, limited only by cores (not by memory bandwidth, disks, \
         locks).",
    ),
    (
        "Example",
        "A core serves 10 requests per second of 0.1 s each. Six of them show 30 % and 30 % on its siblings. If a \
         second thread adds nothing and siblings are never busy together, t1 = 0.6 and t2 = 0. Then U = 0.6, and work can grow to \
         1.67 times, four requests more. By CPU% it would be 3.33 times, fourteen more.",
    ),
    (
        "Sources",
        "IBM's PURR and SPURR (POWER7: one busy thread of four counts 62.5 % of the core); Solaris pgstat; B. Gregg, CPU \
         utilization is wrong; B. Long, measured: 50 % CPU is 60–65 % of the work.",
    ),
];

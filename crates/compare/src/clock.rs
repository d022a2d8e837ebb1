//! Core clocks: what they explain between two runs of one host, and results brought to one.

use super::environment::{CLOCK, OR};
use super::{ComparisonSide, Member};
use stats::clock::{GATE_SERIES, moves};
use stats::contrast::Clocks;
use stats::core_bound::{is_core_bound_by_name, rescale};
use stats::order::{finite, mean, median, variance};

/// Labels that make two results ones of the same host, and settings that explain another clock.
const SAME_MACHINE: [&str; 2] = ["cpu_model", "cpus"];
const SETTINGS: [&str; 3] = ["governor", "highest_frequency", "turbo"];

/// Share of a shift to another clock by which a difference may be off.
const SLACK: f64 = 0.10;

impl ComparisonSide {
    pub(super) fn setting(&self, label: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
    }

    /// The core clock, GHz: from its benchmark, from the foreign file, or as it was
    /// seen beside all windows.
    pub fn clock_ghz(&self) -> Option<f64> {
        let number = |text: &str| text.split(' ').next()?.parse::<f64>().ok();
        let mhz = self
            .setting(CLOCK)
            .and_then(|text| median(&text.split(OR).filter_map(number).collect::<Vec<_>>()));
        let beside = || median(&self.members.iter().filter_map(Member::clock_ghz).collect::<Vec<f64>>());
        mhz.map(|mhz| mhz / 1e3).or_else(beside).filter(|ghz| *ghz > 0.0)
    }
}

impl Member {
    /// The clock beside its own windows, GHz.
    pub fn clock_ghz(&self) -> Option<f64> {
        median(&finite(&self.clocks)).filter(|ghz| *ghz > 0.0)
    }

    /// ln(GHz) of its processes; `None` where the clock of one is not known.
    fn logarithms_of_clocks(&self) -> Option<Vec<f64>> {
        let clocks: Vec<f64> = self.clocks.iter().map(|ghz| ghz.ln()).collect();
        let known = !clocks.is_empty() && clocks.iter().all(|clock| clock.is_finite());
        known.then_some(clocks)
    }

    fn mean_clock(&self) -> Option<f64> {
        mean(&self.logarithms_of_clocks()?)
    }

    /// Whether its processes ran at different clocks.
    fn clock_moved(&self) -> bool {
        self.logarithms_of_clocks().and_then(|clocks| variance(&clocks)).is_some_and(|it| moves(it.sqrt()))
    }

    /// What each process would have given at a clock of `ghz`: where its run brought it to one, or
    /// where its names say that it is bound by the core, by the clock beside each process or by
    /// `otherwise`. `None` for all else.
    fn at(&self, ghz: f64, otherwise: Option<f64>) -> Option<Vec<f64>> {
        if let Some(at_clock) = &self.at_clock {
            return Some(at_clock.at(&self.metric, ghz));
        }
        if !is_core_bound_by_name(&self.case, &self.point, &self.metric) {
            return None;
        }
        let one = |(value, clock): (&f64, &f64)| {
            let clock = Some(*clock).filter(|ghz| ghz.is_finite() && *ghz > 0.0).or(otherwise)?;
            rescale(&self.metric, *value, clock, ghz)
        };
        let values: Option<Vec<f64>> = self.medians.iter().zip(&self.clocks).map(one).collect();
        values.filter(|values| !values.is_empty())
    }
}

/// How two results are brought to one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockScaling {
    /// They are not: two hosts, whose clocks are theirs, or settings that explain another clock.
    AsTheyRan,
    /// Two runs of one machine: what both runs brought to a clock, to A's.
    OneMachine,
    /// Two runs of one host that lie farther apart at one clock than as they ran: |ln| of the
    /// ratios of their core-bound metrics, in the middle.
    Closed { as_they_ran: f64, at_one_clock: f64 },
    /// Because it was asked for (`--common-clock`): whatever is bound by the core, to this one,
    /// GHz.
    Asked(f64),
}

/// By which clocks two members are compared: the values of both at one, and whether there is one;
/// and what is not known of the clocks, by which their difference may be off.
pub fn brought(
    common: ClockScaling,
    arms: [&ComparisonSide; 2],
    a: &Member,
    b: &Member,
) -> (Option<[Vec<f64>; 2]>, Clocks) {
    let apart = a.mean_clock().zip(b.mean_clock()).map_or(0.0, |(a, b)| b - a);
    match (common, &a.at_clock, &b.at_clock) {
        (ClockScaling::Asked(ghz), _, _) => {
            let both = a.at(ghz, arms[0].clock_ghz()).zip(b.at(ghz, arms[1].clock_ghz()));
            let slack = if both.is_some() { SLACK * apart.abs() } else { 0.0 };
            (both.map(|(a, b)| [a, b]), Clocks { slack, ..Clocks::default() })
        }
        (ClockScaling::OneMachine, Some(of_a), Some(of_b)) => {
            let both = [of_a.medians.clone(), of_b.at(&b.metric, of_a.ghz)];
            (Some(both), Clocks { slack: SLACK * apart.abs(), ..Clocks::default() })
        }
        // Time goes with the clock by a power between -1 and 0: at one clock a time differs by what
        // was measured, by that times the ratio of the clocks, or by anything between; a rate by
        // the inverse.
        (ClockScaling::OneMachine | ClockScaling::Closed { .. }, _, _) => {
            let shift = match rescale(&b.metric, 1.0, 1.0, 2.0) {
                Some(doubled) if doubled > 1.0 => -apart,
                _ => apart,
            };
            (None, Clocks { slack: 0.0, below: (-shift).max(0.0), above: shift.max(0.0) })
        }
        (ClockScaling::AsTheyRan, _, _) => (None, Clocks::default()),
    }
}

/// Whether two results are ones of the same host, and no setting explains another clock: then
/// the host was in another state, and whatever moved the clock moved the numbers too.
fn one_machine(a: &ComparisonSide, b: &ComparisonSide) -> bool {
    let same = |label: &&str| a.setting(label).is_some() && a.setting(label) == b.setting(label);
    let differs = |label: &&str| a.setting(label) != b.setting(label);
    a.host == b.host && SAME_MACHINE.iter().all(same) && !SETTINGS.iter().any(differs)
}

/// How two results are brought to one clock. `pairs` are those that both have.
pub fn common<'m>(
    a: &ComparisonSide,
    b: &ComparisonSide,
    asked: bool,
    pairs: impl Iterator<Item = (&'m Member, &'m Member)>,
) -> ClockScaling {
    if let Some(ghz) = a.clock_ghz().filter(|_| asked) {
        return ClockScaling::Asked(ghz);
    }
    if !one_machine(a, b) {
        return ClockScaling::AsTheyRan;
    }
    let core: Vec<(&Member, &Member)> =
        pairs.filter(|(a, b)| a.at_clock.is_some() && b.at_clock.is_some()).collect();
    // What moved inside both runs has passed the gates of these.
    let moved = core.iter().filter(|(a, b)| a.clock_moved() && b.clock_moved()).count();
    let apart: Vec<[f64; 2]> = core.iter().filter_map(|(a, b)| differences(a, b)).collect();
    if moved >= GATE_SERIES || apart.len() < GATE_SERIES {
        return ClockScaling::OneMachine;
    }
    let middle = |which: usize| median(&apart.iter().map(|both| both[which]).collect::<Vec<f64>>());
    match middle(0).zip(middle(1)) {
        Some((as_they_ran, at_one_clock)) if at_one_clock > as_they_ran => {
            ClockScaling::Closed { as_they_ran, at_one_clock }
        }
        _ => ClockScaling::OneMachine,
    }
}

/// By how much a core-bound pair differs as it ran and at one clock: |ln| of the ratio of medians;
/// `None` where the clocks of the two hardly differ.
fn differences(a: &Member, b: &Member) -> Option<[f64; 2]> {
    let (of_a, of_b) = a.at_clock.as_ref().zip(b.at_clock.as_ref())?;
    let of = |a: &[f64], b: &[f64]| Some((median(b)? / median(a)?).ln().abs());
    let both = [of(&a.medians, &b.medians)?, of(&of_a.medians, &of_b.at(&b.metric, of_a.ghz))?];
    moves(b.mean_clock()? - a.mean_clock()?).then_some(both)
}

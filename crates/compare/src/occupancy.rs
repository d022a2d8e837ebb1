//! Where the tasks of a free case were, in two results: a score of both on one CPU and one of each
//! on its own are no measurements of the same thing.

use std::collections::BTreeMap;

use super::Arm;
use super::arm::Member;
use model::Value;
use model::vocabulary::ipc as ids;
use stats::nested::mean_and_half_width;

/// How often a case was seen in a class of placement.
#[derive(Clone, Copy, Default)]
pub struct Share {
    /// Mean over its processes, 0 to 1: a process mostly stays where it began, so that their median
    /// tells of half of them.
    pub mean: f64,
    /// Half of its 95 % interval; 0 where single values are not kept.
    pub half: f64,
}

impl Share {
    fn of(member: &Member) -> Share {
        let values: Vec<f64> = member.medians.iter().copied().filter(|share| share.is_finite()).collect();
        let told = Share { mean: member.median, half: 0.0 };
        mean_and_half_width(&values, 0.95).map_or(told, |(mean, half)| Share { mean, half })
    }
}

/// The share of each class of placement.
pub type Occupancy = BTreeMap<String, Share>;

/// Placements that differ in more than this share of the rounds are different ones: a round trip
/// between two CPUs takes up to thirty times one on a single CPU, so that a tenth more there is a
/// score of its own.
const SAME_PLACEMENT: f64 = 0.10;
/// Half-widths that a difference must exceed: shares of equal runs scatter widely, and a comparison
/// has many free cases.
const SURE: f64 = 2.0;

/// By the key of the case.
pub fn occupancies(arm: &Arm) -> BTreeMap<String, Occupancy> {
    let mut all: BTreeMap<String, Occupancy> = BTreeMap::new();
    let shares = arm.members.iter().filter(|member| member.tells_occupancy() && member.median.is_finite());
    for member in shares {
        if let Some(class) = member.point.get(ids::param::CLASS).and_then(Value::text) {
            all.entry(member.case.key()).or_default().insert(class.to_string(), Share::of(member));
        }
    }
    all
}

/// Why two scores of a free case are those of different placements; `None` where they are not, or
/// nobody tells.
pub fn difference(a: &Occupancy, b: &Occupancy) -> Option<String> {
    let share = |occupancy: &Occupancy, class: &str| occupancy.get(class).copied().unwrap_or_default();
    let apart = |class: &str| (share(a, class).mean - share(b, class).mean).abs();
    let classes = || a.keys().chain(b.keys().filter(|class| !a.contains_key(*class)));
    let in_all = classes().map(|class| apart(class)).sum::<f64>() / 2.0;
    let most = classes().max_by(|x, y| apart(x).total_cmp(&apart(y)))?;
    let half = share(a, most).half.hypot(share(b, most).half);
    (in_all > SAME_PLACEMENT && apart(most) > SURE * half).then(|| {
        let percent = |occupancy: &Occupancy| format!("{:.0} %", 100.0 * share(occupancy, most).mean);
        format!(
            "the scheduler kept the tasks on {most} for {} of the rounds in A, for {} in B",
            percent(a),
            percent(b)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_rounds_is_a_difference() {
        let with = |share: f64, half: f64| {
            let of = |mean: f64| Share { mean, half };
            Occupancy::from([("same-cpu".to_string(), of(share)), ("other-cpu".to_string(), of(1.0 - share))])
        };
        let of = |share: f64| with(share, 0.0);
        let words = difference(&of(0.98), &of(0.03)).expect("a difference");
        assert!(
            words.starts_with("the scheduler kept the tasks on ") && words.contains(" in A, for "),
            "{words}"
        );
        assert_eq!(difference(&of(0.5), &of(0.45)), None);
        assert_eq!(
            difference(&of(1.0), &Occupancy::new()).map(|text| text.contains("for 0 % in B")),
            Some(true)
        );
        assert_eq!(difference(&Occupancy::new(), &Occupancy::new()), None);
        // What may well be chance is none.
        assert_eq!(difference(&with(0.5, 0.2), &with(0.2, 0.1)), None);
        assert!(difference(&with(0.9, 0.1), &with(0.1, 0.1)).is_some());
    }
}

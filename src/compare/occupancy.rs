//! Where the tasks of a free case were, in two results: a score of both on one CPU and one of each on its own are no
//! measurements of the same thing.

use std::collections::BTreeMap;

use super::Arm;
use crate::model::Value;

/// The share of its time that a case spent in each class of placement.
pub type Occupancy = BTreeMap<String, f64>;

/// Placements that differ in more than this share of the time are different ones: a round trip between two CPUs takes up
/// to thirty times one on a single CPU, so that a tenth of the time more there is a score of its own.
const SAME_PLACEMENT: f64 = 0.10;

/// By the key of the case.
pub fn occupancies(arm: &Arm) -> BTreeMap<String, Occupancy> {
    let mut all: BTreeMap<String, Occupancy> = BTreeMap::new();
    let shares = arm.members.iter().filter(|member| member.tells_occupancy() && member.median.is_finite());
    for member in shares {
        if let Some(class) = member.point.get("class").and_then(Value::text) {
            all.entry(member.case.key()).or_default().insert(class.to_string(), member.median);
        }
    }
    all
}

/// Why two scores of a free case are those of different placements; `None` where they are not, or nobody tells.
pub fn difference(a: &Occupancy, b: &Occupancy) -> Option<String> {
    let share = |occupancy: &Occupancy, class: &str| occupancy.get(class).copied().unwrap_or(0.0);
    let classes = || a.keys().chain(b.keys().filter(|class| !a.contains_key(*class)));
    let apart: f64 = classes().map(|class| (share(a, class) - share(b, class)).abs()).sum::<f64>() / 2.0;
    let most = classes().max_by(|x, y| {
        let apart = |class: &str| (share(a, class) - share(b, class)).abs();
        apart(x).total_cmp(&apart(y))
    })?;
    (apart > SAME_PLACEMENT).then(|| {
        let percent = |occupancy: &Occupancy| format!("{:.0} %", 100.0 * share(occupancy, most));
        format!("left free, A ran {} of the time on {most}, B {}", percent(a), percent(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_time_is_a_difference() {
        let of = |share: f64| {
            Occupancy::from([("same-cpu".to_string(), share), ("other-cpu".to_string(), 1.0 - share)])
        };
        let words = difference(&of(0.98), &of(0.03)).expect("a difference");
        assert!(words.starts_with("left free, A ran ") && words.contains("-cpu, B "), "{words}");
        assert_eq!(difference(&of(0.5), &of(0.45)), None);
        assert_eq!(difference(&of(1.0), &Occupancy::new()).map(|text| text.contains("B 0 %")), Some(true));
        assert_eq!(difference(&Occupancy::new(), &Occupancy::new()), None);
    }
}

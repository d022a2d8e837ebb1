//! All questions of a surface together, by closed testing (Marcus, Peritz and Gabriel 1976): an
//! answer is given where every set of "there is nothing" that holds its own is rejected at 5 %. So
//! all that is said is right in 95 %, whatever is true.
//!
//! That no cell differs from any other says all of it at once, and has a test of its own, which
//! looks for more than the sum of the questions: that is what [`Hypothesis::Any`] tests.
//! Other sets are tested by their smallest p times their size.

use super::{Hypothesis, TestResult};

/// About which share of 5 % a question has to itself, on a surface of this many knobs.
pub fn share(hypothesis: Hypothesis, knobs: usize) -> f64 {
    match hypothesis {
        Hypothesis::Any => 0.4,
        Hypothesis::Main { .. } | Hypothesis::Trend { .. } if knobs == 1 => 0.5,
        Hypothesis::Main { .. } | Hypothesis::Trend { .. } | Hypothesis::Interaction => 0.2,
    }
}

/// Sets what the closed test makes of each question's own p.
pub fn adjust(test_results: &mut [TestResult]) {
    let any = test_results.iter().find(|answer| answer.hypothesis == Hypothesis::Any).map(|answer| answer.p);
    let single: Vec<(Hypothesis, f64)> = test_results
        .iter()
        .filter(|answer| answer.hypothesis != Hypothesis::Any)
        .map(|answer| (answer.hypothesis, answer.p))
        .collect();
    let sets: Vec<(Vec<Hypothesis>, f64)> = (1..1_usize << single.len())
        .map(|set| {
            let own: Vec<(Hypothesis, f64)> = (0..single.len())
                .filter(|index| set >> index & 1 == 1)
                .filter_map(|index| single.get(index).copied())
                .collect();
            let p = together(&own, any);
            (own.into_iter().map(|(asked, _)| asked).collect(), p)
        })
        .collect();
    for answer in test_results.iter_mut().filter(|answer| answer.hypothesis != Hypothesis::Any) {
        let own = sets.iter().filter(|(set, _)| set.contains(&answer.hypothesis));
        answer.adjusted = own.map(|(_, p)| *p).fold(answer.p, f64::max);
    }
}

/// p that there is nothing of a whole set; `any`: that no cell differs from another.
fn together(set: &[(Hypothesis, f64)], any: Option<f64>) -> f64 {
    // Values that do not differ do not rise.
    let implied = |hypothesis: Hypothesis| match hypothesis {
        Hypothesis::Trend { axis } => set.iter().any(|(other, _)| *other == Hypothesis::Main { axis }),
        _ => false,
    };
    let own: Vec<&(Hypothesis, f64)> = set.iter().filter(|(asked, _)| !implied(*asked)).collect();
    let nothing = [Hypothesis::Main { axis: 0 }, Hypothesis::Main { axis: 1 }, Hypothesis::Interaction];
    match any.filter(|_| nothing.iter().all(|asked| own.iter().any(|(other, _)| other == asked))) {
        Some(any) => any,
        None => (own.iter().map(|(_, p)| *p).fold(1.0, f64::min) * own.len() as f64).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjusted(questions: &[(Hypothesis, f64)]) -> Vec<f64> {
        let of = |&(asked, p): &(Hypothesis, f64)| TestResult {
            hypothesis: asked,
            p,
            adjusted: p,
            effects: Vec::new(),
            floor: None,
        };
        let mut test_results: Vec<TestResult> = questions.iter().map(of).collect();
        adjust(&mut test_results);
        test_results.iter().map(|answer| (answer.adjusted * 1e6).round() / 1e6).collect()
    }

    const COLUMNS: Hypothesis = Hypothesis::Main { axis: 0 };
    const ROWS: Hypothesis = Hypothesis::Main { axis: 1 };
    const RISE: Hypothesis = Hypothesis::Trend { axis: 0 };

    #[test]
    fn a_question_of_one_knob_stands_alone_and_a_trend_needs_its_knob_to_matter() {
        assert_eq!(adjusted(&[(COLUMNS, 0.03)]), [0.03]);
        assert_eq!(adjusted(&[(COLUMNS, 0.03), (RISE, 0.02)]), [0.03, 0.03]);
        assert_eq!(adjusted(&[(COLUMNS, 0.02), (RISE, 0.3)]), [0.02, 0.3]);
    }

    #[test]
    fn nothing_is_told_where_cells_do_not_differ_and_sets_count_by_their_size() {
        let of = |any: f64| {
            adjusted(&[(COLUMNS, 0.4), (ROWS, 0.01), (Hypothesis::Interaction, 0.6), (Hypothesis::Any, any)])
        };
        assert_eq!(of(0.2), [0.8, 0.2, 0.8, 0.2]);
        // Of {columns, together} two times 0.4, of {rows, together} two times 0.01.
        assert_eq!(of(0.001), [0.8, 0.02, 0.8, 0.001]);
    }

    #[test]
    fn what_is_certain_leaves_more_room_for_the_others() {
        let found = adjusted(&[
            (COLUMNS, 0.001),
            (RISE, 0.001),
            (ROWS, 0.03),
            (Hypothesis::Interaction, 0.04),
            (Hypothesis::Any, 0.001),
        ]);
        // {rows, together}: two times 0.03.
        assert_eq!(found, [0.002, 0.003, 0.06, 0.06, 0.001]);
    }
}

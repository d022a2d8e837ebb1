//! The plan of a factorial experiment: two settings of many knobs, each knob alone, and pairs of
//! the strong ones.

use super::Candidate;
use model::factors::Factor;

/// Up to this number of knobs all pairs are measured at once; of more, only those of the strong
/// ones, later.
pub const ALL_PAIRS: usize = 4;
/// Most knobs: the design grows with their number.
pub const MAX_FACTORS: usize = 40;

/// The settings of the design, as bits: no knob changed, all, each alone, and these pairs.
pub fn masks(factors: usize, pairs_of: &[usize]) -> Vec<u64> {
    let all = (1u64 << factors) - 1;
    let mut masks = vec![0, all];
    masks.extend((0..factors).map(|index| 1 << index));
    for (at, one) in pairs_of.iter().enumerate() {
        masks.extend(pairs_of[at + 1..].iter().map(|other| 1 << one | 1 << other));
    }
    let mut seen = Vec::new();
    masks.retain(|mask| {
        let new = !seen.contains(mask);
        seen.push(*mask);
        new
    });
    masks
}

/// The cases of these settings.
pub fn cases(base: &Candidate, factors: &[Factor], masks: &[u64]) -> Vec<Candidate> {
    let of = |mask: &u64| {
        let mut case = base.case.clone();
        for (index, factor) in factors.iter().enumerate() {
            let value = if mask >> index & 1 == 1 { &factor.after } else { &factor.before };
            case.knobs.insert(factor.name.clone(), value.clone());
        }
        let Candidate { priority, seconds, memory_bytes, .. } = *base;
        Candidate { case, priority, seconds, memory_bytes, unmet: base.unmet.clone(), with_last: false }
    };
    masks.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alone_and_pairs() {
        assert_eq!(masks(1, &[0]), [0, 1]);
        assert_eq!(masks(2, &[0, 1]), [0, 3, 1, 2]);
        assert_eq!(masks(3, &[0, 2]), [0, 7, 1, 2, 4, 5]);
        assert_eq!(masks(4, &[0, 1, 2, 3]).len(), 2 + 4 + 6);
    }
}

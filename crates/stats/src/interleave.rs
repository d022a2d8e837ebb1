//! In which order to visit what is compared, so that drift hits all of it alike.

use fastrand::Rng;

use super::ranks::shuffled;

/// `rounds` orders of `0..k`, every arm once a round. Two arms alternate as ABBA or BAAB, a coin
/// deciding each pair of rounds; more follow random cyclic Latin squares: over k rounds every arm
/// stands at every position once. The same seed gives the same orders.
pub fn latin_order(k: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = Rng::with_seed(seed);
    let mut orders = Vec::with_capacity(rounds);
    while orders.len() < rounds {
        let arms = shuffled(k, &mut rng);
        let shifts = match k {
            2 => vec![0, 1],
            k => shuffled(k.max(1), &mut rng),
        };
        let shifted = |shift: usize| (0..k).map(|position| arms[(position + shift) % k]).collect();
        orders.extend(shifts.into_iter().map(shifted));
    }
    orders.truncate(rounds);
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arms_go_forth_and_back() {
        let orders = latin_order(2, 40, 7);
        assert_eq!(orders.len(), 40);
        for pair in orders.chunks(2) {
            assert!(pair[0][0] == pair[1][1] && pair[0][1] == pair[1][0], "{pair:?}");
        }
        let begins_with_0 = orders.iter().step_by(2).filter(|order| order[0] == 0).count();
        assert!((4..=16).contains(&begins_with_0), "{begins_with_0} of 20");
        assert_eq!(orders, latin_order(2, 40, 7));
        assert_ne!(orders, latin_order(2, 40, 8));
    }

    #[test]
    fn every_arm_stands_everywhere() {
        for k in 1..8 {
            let orders = latin_order(k, k, 3);
            for position in 0..k {
                let mut arms: Vec<usize> = orders.iter().map(|order| order[position]).collect();
                arms.sort_unstable();
                assert_eq!(arms, (0..k).collect::<Vec<usize>>());
            }
        }
        assert_eq!(latin_order(0, 3, 1), vec![Vec::<usize>::new(); 3]);
        assert_eq!(latin_order(5, 0, 1), Vec::<Vec<usize>>::new());
        assert_eq!(latin_order(5, 7, 1).len(), 7);
    }
}

//! Regions that were made up; how often claims err is in `prove`.

use super::*;
use crate::noise::normal;
use fastrand::Rng;

/// Sixteen regions, four of them slow by these, in this many rounds.
fn made(translation: f64, distance: f64, transfer: f64, seed: u64) -> Vec<Region> {
    let mut rng = Rng::with_seed(seed);
    let rounds: Vec<f64> = (0..8).map(|_| 1.0 + 0.2 * rng.f64()).collect();
    let one = |region: usize| {
        let slow = (4..8).contains(&region);
        let of = |value: f64| if slow { value } else { 1.0 };
        let mut own = Region::default();
        for round in &rounds {
            let mut reading = |level: f64| level * round * (0.04 * normal(&mut rng)).exp();
            let near = reading(170.0 * of(distance));
            own.near.push(near);
            own.scattered.push(near * 1.08);
            own.hopping
                .push(near * 1.08 + 18.0 + if slow { translation } else { 0.0 } + 8.0 * normal(&mut rng));
            own.bandwidth.push(20.0 / of(transfer) / round * (0.05 * normal(&mut rng)).exp());
        }
        own
    };
    (0..16).map(one).collect()
}

fn causes(found: &Regions) -> Vec<Cause> {
    found.named().map(|difference| difference.cause).collect()
}

#[test]
fn each_cause_by_its_name_with_its_regions_and_size() {
    let planted = [
        (Cause::Translation, made(30.0, 1.0, 1.0, 1), 30.0, 6.0),
        (Cause::Distance, made(0.0, 1.4, 1.0, 2), 1.4, 0.05),
        (Cause::Transfer, made(0.0, 1.0, 1.33, 3), 1.33, 0.05),
    ];
    for (cause, made, size, off) in planted {
        let found = regions(&made).expect("regions");
        assert_eq!(causes(&found), [cause]);
        let difference = found.named().next().expect("one");
        assert!((difference.size - size).abs() < off, "{difference:?}");
        assert_eq!(difference.slow_share(), 0.25);
        assert!(difference.interval.low <= difference.size && difference.size <= difference.interval.high);
        assert!((4..8).all(|region| difference.slow[region]));
    }
}

#[test]
fn what_a_cause_takes_from_bandwidth_is_not_another() {
    let both = regions(&made(60.0, 1.0, 1.4, 4)).expect("regions");
    assert_eq!(causes(&both), [Cause::Translation]);
    let far = regions(&made(0.0, 1.5, 1.6, 5)).expect("regions");
    assert_eq!(causes(&far), [Cause::Distance]);
}

/// Base pages whose tables lie differently cost differently: three levels, of which the middle one
/// is of either side.
#[test]
fn three_levels_are_two_sets_as_well() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(100 + seed);
        let mut made = made(0.0, 1.0, 1.0, seed);
        for (at, region) in made.iter_mut().enumerate() {
            let more = [0.0, 30.0, 55.0][at % 3];
            region.hopping.iter_mut().for_each(|ns| *ns += more + 8.0 * normal(&mut rng));
            region.bandwidth.iter_mut().for_each(|rate| *rate /= 1.0 + more / 200.0);
        }
        let found = regions(&made).expect("regions");
        assert_eq!(causes(&found), [Cause::Translation], "{seed}");
    }
}

#[test]
fn nothing_and_too_little() {
    let alike = regions(&made(0.0, 1.0, 1.0, 6)).expect("regions");
    assert!(causes(&alike).is_empty());
    let price = alike.translation_ns.expect("a price");
    assert!(price.low < 18.0 && 18.0 < price.high && price.high - price.low < 12.0, "{price:?}");
    assert!(alike.price_ns.expect("a price").low > price.low);
    assert_eq!(regions(&made(50.0, 1.0, 1.0, 7)[..3]), None, "three regions");
    let short =
        made(50.0, 1.0, 1.0, 8).into_iter().map(|region| Region { near: region.near[..5].into(), ..region });
    assert_eq!(regions(&short.collect::<Vec<_>>()), None, "five rounds");
    assert_eq!(slow_count(&[1.0, 1.0, 1.0, 1.0]), None);
}

fn moments(slow: impl Fn(f64) -> bool, times: f64, seed: u64) -> Vec<Vec<Moment>> {
    let mut rng = Rng::with_seed(seed);
    let moment = |at: usize| {
        let at_s = at as f64 * 0.03;
        let level = if slow(at_s) { 170.0 * times } else { 170.0 };
        Moment { at_s, region: at % 8, load_ns: level * (0.05 * normal(&mut rng)).exp() }
    };
    vec![(0..600).map(moment).collect()]
}

#[test]
fn neighbours_by_their_share_of_the_time() {
    let there = neighbour(&moments(|at| at % 4.0 < 1.5, 1.3, 1)).expect("moments");
    assert!(there.is_named() && !there.is_quiet() && (there.slower - 1.3).abs() < 0.05, "{there:?}");
    assert!((there.share - 0.375).abs() < 0.1, "{there:?}");
    let slow: Vec<f64> = there.blocks.iter().filter(|own| own.is_slow).map(|own| own.at_s % 4.0).collect();
    assert!(slow.iter().all(|at_s| *at_s < 1.5), "half seconds in their order: {slow:?}");
    let nobody = neighbour(&moments(|_| false, 1.0, 2)).expect("moments");
    assert!(nobody.is_quiet() && !nobody.is_named() && nobody.blocks.len() == 36, "{nobody:?}");
    // All of every third visit.
    let visits = (0..9).map(|visit| {
        let own = &moments(|_| visit % 3 == 0, 1.3, 10 + visit)[0][..100];
        own.iter().map(|look| Moment { at_s: look.at_s + 10.0 * visit as f64, ..*look }).collect()
    });
    let whole = neighbour(&visits.collect::<Vec<_>>()).expect("moments");
    assert!(whole.is_named() && (whole.share - 0.33).abs() < 0.05, "{whole:?}");
    // Turns that are shorter than half a second.
    let short = neighbour(&moments(|at| at % 1.0 < 0.3, 1.3, 5)).expect("moments");
    assert!(short.is_named() && (short.share - 0.3).abs() < 0.06, "{short:?}");
    let small = neighbour(&moments(|at| at % 4.0 < 1.5, 1.02, 3)).expect("moments");
    assert!(!small.is_named(), "{small:?}");
    assert_eq!(neighbour(&[moments(|_| false, 1.0, 4)[0][..100].to_vec()]), None);
}

/// Regions that differ by as much as a neighbour makes are no neighbour, in any order.
#[test]
fn regions_that_differ_are_no_neighbour() {
    let mut rng = Rng::with_seed(6);
    let mut order: Vec<usize> = (0..12).collect();
    let mut moments: Vec<Moment> = Vec::new();
    for round in 0..36 {
        rng.shuffle(&mut order);
        for (at, region) in order.iter().flat_map(|region| [*region; 2]).enumerate() {
            let at_s = (round * 24 + at) as f64 * 0.02;
            let level = if region % 3 == 0 { 170.0 } else { 125.0 };
            moments.push(Moment { at_s, region, load_ns: level * (0.04 * normal(&mut rng)).exp() });
        }
    }
    let found = neighbour(std::slice::from_ref(&moments)).expect("moments");
    assert!(found.is_quiet() && found.share < 0.01, "{found:?}");
    // With one there, both are known.
    let there = |look: &Moment| if look.at_s % 2.5 < 0.8 { look.load_ns * 1.3 } else { look.load_ns };
    let beside = moments.iter().map(|look| Moment { load_ns: there(look), ..*look }).collect();
    let found = neighbour(&[beside]).expect("moments");
    assert!(found.is_named() && (found.share - 0.32).abs() < 0.05, "{found:?}");
}

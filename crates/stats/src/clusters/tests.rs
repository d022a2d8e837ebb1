//! Machines made of a rule: what is found, and what is not claimed.

use super::*;

/// Values by a rule, the same in every visit but for a little.
fn measured(count: u32, value: impl Fn(u32, u32, u32) -> f64) -> Pairs {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut pairs = Pairs::default();
    for visit in 0..6 {
        for one in 0..count {
            for other in one + 1..count {
                let noise = (0.02 * super::super::noise::normal(&mut rng)).exp();
                pairs.push((one, other), visit, value(one, other, visit) * noise);
            }
        }
    }
    pairs.settled()
}

fn levels(pairs: &Pairs) -> Vec<String> {
    match clusters(pairs).answer {
        Answer::Levels(levels) => levels.iter().map(|level| format!("{:?}", level.groups)).collect(),
        other => panic!("no levels: {other:?}"),
    }
}

#[test]
fn two_levels_are_found_nearest_first() {
    let pairs = measured(8, |one, other, _| match () {
        () if one / 2 == other / 2 => 9.0,
        () if one / 4 == other / 4 => 40.0,
        () => 120.0,
    });
    assert_eq!(levels(&pairs), ["[[0, 1], [2, 3], [4, 5], [6, 7]]", "[[0, 1, 2, 3], [4, 5, 6, 7]]"]);
    let Answer::Levels(found) = clusters(&pairs).answer else { panic!("levels") };
    assert!((found[0].within / 9.0 - 1.0).abs() < 0.05 && (found[0].beyond / 40.0 - 1.0).abs() < 0.05);
    assert!((found[1].within / 40.0 - 1.0).abs() < 0.05 && (found[1].beyond / 120.0 - 1.0).abs() < 0.05);
}

#[test]
fn one_group_two_cpus_and_too_much_noise() {
    assert_eq!(clusters(&measured(8, |_, _, _| 40.0)).answer, Answer::One);
    let two = clusters(&measured(2, |_, _, _| 40.0));
    assert!(matches!(&two.answer, Answer::CannotTell(why) if why.contains("one pair")), "{two:?}");
    let loud =
        measured(6, |one, other, visit| [20.0, 90.0][((one * 7 + other * 5 + visit * 3) % 2) as usize]);
    let answer = clusters(&loud).answer;
    assert!(matches!(answer, Answer::CannotTell(_) | Answer::Floating(_)), "{answer:?}");
}

#[test]
fn a_slow_cpu_is_no_group() {
    let slow = |cpu: u32| if cpu == 3 { 2.0 } else { 1.0 };
    let one = clusters(&measured(8, |a, b, _| 40.0 * slow(a) * slow(b)));
    assert!(matches!(&one.answer, Answer::CannotTell(why) if why.contains("CPU 3 is far")), "{one:?}");
    // But one pair of siblings among single CPUs is one.
    let pair = measured(6, |a, b, _| if (a, b) == (0, 1) { 10.0 } else { 45.0 });
    assert_eq!(levels(&pair), ["[[0, 1], [2], [3], [4], [5]]"]);
}

#[test]
fn cpus_that_change_places_are_floating() {
    let pairs = measured(4, |a, b, visit| {
        let of = |cpu: u32| if visit < 3 { cpu / 2 } else { cpu % 2 };
        if of(a) == of(b) { 25.0 } else { 100.0 }
    });
    let answer = clusters(&pairs).answer;
    assert_eq!(answer, Answer::Floating([vec![vec![0, 1], vec![2, 3]], vec![vec![0, 2], vec![1, 3]]]));
}

#[test]
fn a_sample_of_pairs_is_not_grouped() {
    let mut pairs = Pairs::default();
    for visit in 0..6 {
        (0..64).step_by(2).for_each(|cpu| pairs.push((cpu, cpu + 1), visit, 20.0));
    }
    let answer = clusters(&pairs.settled()).answer;
    assert!(matches!(&answer, Answer::CannotTell(why) if why.contains("32 of 2016")), "{answer:?}");
}

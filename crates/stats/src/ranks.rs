//! Ranks, and the tests that need nothing else: Spearman, Kruskal-Wallis, Mann-Whitney.

use fastrand::Rng;

use super::tails::{chi_square_above, normal_two_sided, permutation_p, t_two_sided};

/// Ranks from 1, ties sharing the mean of theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    pub ranks: Vec<f64>,
    /// Sizes of the groups of equal values (1 where a value stands alone), lowest value first.
    pub ties: Vec<usize>,
}

impl Ranked {
    /// Size of the largest group of equal values; 0 without values.
    pub fn largest_tie(&self) -> usize {
        self.ties.iter().copied().max().unwrap_or(0)
    }

    /// Sum over groups of `t³ - t`, what ties take from a rank statistic's variance.
    fn tie_cubes(&self) -> f64 {
        self.ties.iter().map(|&t| (t as f64).powi(3) - t as f64).sum()
    }
}

/// Mid-ranks of values that are finite.
pub fn mid_ranks(values: &[f64]) -> Ranked {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut ties) = (vec![0.0; values.len()], Vec::new());
    let mut start = 0;
    while start < order.len() {
        let same = |index: &&usize| values[**index] == values[order[start]];
        let size = order[start..].iter().take_while(same).count().max(1);
        for &index in &order[start..start + size] {
            ranks[index] = (2 * start + size + 1) as f64 / 2.0;
        }
        ties.push(size);
        start += size;
    }
    Ranked { ranks, ties }
}

/// A rank correlation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// -1..1.
    pub rho: f64,
    /// Two-sided.
    pub p: f64,
    /// Pairs used.
    pub n: usize,
}

/// Spearman's rank correlation with ties; p exact up to n = 7, by Student's t above (as R and SciPy
/// approximate). Pairs with a value that is not finite are left out. `None` below 4 pairs or where
/// one side does not vary.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<Correlation> {
    let finite = |(x, y): &(&f64, &f64)| x.is_finite() && y.is_finite();
    let (x, y): (Vec<f64>, Vec<f64>) = x.iter().zip(y).filter(finite).map(|(x, y)| (*x, *y)).unzip();
    let n = x.len();
    if n < 4 {
        return None;
    }
    let centre = (n + 1) as f64 / 2.0;
    let centred =
        |values: &[f64]| -> Vec<f64> { mid_ranks(values).ranks.iter().map(|r| r - centre).collect() };
    let (x, y) = (centred(&x), centred(&y));
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let scale = (product(&x, &x) * product(&y, &y)).sqrt();
    if scale == 0.0 {
        return None;
    }
    let rho = (product(&x, &y) / scale).clamp(-1.0, 1.0);
    let p = match n {
        ..=7 => {
            let least = rho.abs() * scale - 1e-9;
            let (mut hits, mut all) = (0_u32, 0_u32);
            for_each_permutation(y, |y| {
                all += 1;
                hits += u32::from(product(&x, y).abs() >= least);
            });
            f64::from(hits) / f64::from(all)
        }
        _ => {
            let freedom = (n - 2) as f64;
            t_two_sided(rho * (freedom / (1.0 - rho * rho)).sqrt(), freedom)
        }
    };
    Some(Correlation { rho, p, n })
}

/// Calls `visit` with every order of the values (Heap's algorithm); n! calls.
fn for_each_permutation(mut values: Vec<f64>, mut visit: impl FnMut(&[f64])) {
    let mut turns = vec![0; values.len()];
    visit(&values);
    let mut i = 0;
    while i < values.len() {
        if turns[i] < i {
            values.swap(if i % 2 == 0 { 0 } else { turns[i] }, i);
            visit(&values);
            turns[i] += 1;
            i = 0;
        } else {
            turns[i] = 0;
            i += 1;
        }
    }
}

/// p of Kruskal and Wallis's test that all groups have one distribution: by chi-square where every
/// group has five values or more, else by permutation. Groups without finite values are left out;
/// `None` with fewer than two groups, as many groups as values, or values that are all equal.
pub fn kruskal_wallis(groups: &[Vec<f64>], seed: u64) -> Option<f64> {
    let groups: Vec<Vec<f64>> = groups.iter().map(|group| super::order::finite(group)).collect();
    let sizes: Vec<usize> = groups.iter().map(Vec::len).filter(|&size| size > 0).collect();
    let pooled: Vec<f64> = groups.into_iter().flatten().collect();
    let ranked = mid_ranks(&pooled);
    let n = pooled.len() as f64;
    let ties = 1.0 - ranked.tie_cubes() / (n.powi(3) - n);
    if sizes.len() < 2 || sizes.len() == pooled.len() || ties <= 0.0 {
        return None;
    }
    let statistic = |ranks: &[f64]| -> f64 {
        let mut from = 0;
        let mut sum = 0.0;
        for &size in &sizes {
            let total: f64 = ranks[from..from + size].iter().sum();
            sum += total * total / size as f64;
            from += size;
        }
        (12.0 / (n * (n + 1.0)) * sum - 3.0 * (n + 1.0)) / ties
    };
    let observed = statistic(&ranked.ranks);
    if sizes.iter().all(|&size| size >= 5) {
        return Some(chi_square_above(observed, (sizes.len() - 1) as f64));
    }
    let mut ranks = ranked.ranks;
    Some(permutation_p(9999, seed, |rng| {
        rng.shuffle(&mut ranks);
        statistic(&ranks) >= observed - 1e-9
    }))
}

/// What two samples' order says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the second sample's value is the larger, ties half.
    pub u: f64,
    /// Two-sided.
    pub p: f64,
    /// Cliff's delta, `2U / (n m) - 1`: -1 where every second value is smaller, 1 where every one
    /// is larger.
    pub delta: f64,
}

/// How large an effect is, by |Cliff's delta| (limits of Romano et al. 2006).
pub fn effect_words(delta: f64) -> &'static str {
    match delta.abs() {
        d if d < 0.147 => "negligible",
        d if d < 0.33 => "small",
        d if d < 0.474 => "medium",
        _ => "large",
    }
}

/// Mann-Whitney U of `second` against `first`: p exact (also with ties) up to 20 values each, else
/// by the normal approximation with ties and continuity. `None` where a sample has no finite value.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    let (first, second) = (super::order::finite(first), super::order::finite(second));
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 {
        return None;
    }
    let pooled: Vec<f64> = first.into_iter().chain(second).collect();
    let ranked = mid_ranks(&pooled);
    let rank_sum: f64 = ranked.ranks[n..].iter().sum();
    let pairs = (n * m) as f64;
    let u = rank_sum - (m * (m + 1)) as f64 / 2.0;
    let p = if n.max(m) <= 20 {
        exact_rank_sum_p(&ranked.ranks, m, rank_sum)
    } else {
        let all = (n + m) as f64;
        let variance = pairs / 12.0 * (all + 1.0 - ranked.tie_cubes() / (all * (all - 1.0)));
        let distance = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
        if variance > 0.0 { normal_two_sided(distance / variance.sqrt()) } else { 1.0 }
    };
    Some(MannWhitney { u, p, delta: 2.0 * u / pairs - 1.0 })
}

/// Two-sided p of a rank sum: the share of all choices of `m` of the ranks whose sum lies at least
/// as far from its mean. Ranks are doubled, so that mid-ranks are whole.
fn exact_rank_sum_p(ranks: &[f64], m: usize, rank_sum: f64) -> f64 {
    let doubled: Vec<usize> = ranks.iter().map(|rank| (2.0 * rank) as usize).collect();
    let most: usize = doubled.iter().sum();
    // ways[k][s]: choices of k ranks with the doubled sum s, by adding one rank after the other.
    let mut ways = vec![vec![0.0; most + 1]; m + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for (count, &rank) in doubled.iter().enumerate() {
        reached += rank;
        for k in (1..=m.min(count + 1)).rev() {
            for sum in (rank..=reached).rev() {
                ways[k][sum] += ways[k - 1][sum - rank];
            }
        }
    }
    let centre = (m * (ranks.len() + 1)) as f64;
    let distance = (2.0 * rank_sum - centre).abs() - 1e-6;
    let all: f64 = ways[m].iter().sum();
    let far: f64 =
        ways[m].iter().enumerate().filter(|(s, _)| (*s as f64 - centre).abs() >= distance).map(|w| w.1).sum();
    far / all
}

/// A random order of `0..n`.
pub fn shuffled(n: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    rng.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
    }

    #[test]
    fn ties_share_ranks() {
        let ranked = mid_ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(ranked, Ranked { ranks: vec![4.0, 1.0, 4.0, 2.0, 4.0], ties: vec![1, 1, 3] });
        assert_eq!(ranked.largest_tie(), 3);
        assert_eq!(mid_ranks(&[]).largest_tie(), 0);
    }

    /// References: scipy 1.17.1 `spearmanr`; the exact one by enumerating 720 orders in Python.
    #[test]
    fn spearman_references() {
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        let found = spearman(&x, &[2.0, 1.0, 4.0, 3.0, 7.0, 5.0, 6.0, 9.0, 10.0, 8.0]).expect("10 pairs");
        near(found.rho, 0.903_030_303_030_302_8);
        near(found.p, 0.000_343_612_197_763_282_4);
        let found = spearman(&x, &[1.0, 1.0, 2.0, 5.0, 4.0, 4.0, 7.0, 3.0, 9.0, 2.0]).expect("10 pairs");
        near(found.rho, 0.538_248_951_839_554);
        near(found.p, 0.108_488_389_603_165_52);
        let found = spearman(&x[..6], &[2.0, 1.0, 4.0, 3.0, 6.0, 5.0]).expect("6 pairs");
        near(found.p, 0.058_333_333_333_333_334);
        assert_eq!(spearman(&x, &[1.0; 10]), None);
        assert_eq!(spearman(&x[..3], &x[..3]), None);
        assert_eq!(spearman(&[f64::NAN; 10], &x), None);
        assert_eq!(spearman(&x, &x).map(|found| found.p), Some(0.0));
    }

    /// Reference: scipy 1.17.1 `kruskal`.
    #[test]
    fn kruskal_wallis_references() {
        let groups = [
            vec![1.0, 3.0, 5.0, 7.0, 9.0],
            vec![2.0, 4.0, 6.0, 8.0, 10.0],
            vec![11.0, 12.0, 13.0, 14.0, 14.0],
        ];
        near(kruskal_wallis(&groups, 1).expect("three groups"), 0.008_578_490_471_899_161);
        // 3 + 3 values wholly apart: 2 of 20 splits are as extreme.
        let p = kruskal_wallis(&[vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]], 1).expect("two groups");
        assert!((0.05..0.2).contains(&p), "{p}");
        assert_eq!(kruskal_wallis(&[vec![1.0, 1.0], vec![1.0]], 1), None);
        assert_eq!(kruskal_wallis(&[vec![1.0], vec![2.0]], 1), None);
        assert_eq!(kruskal_wallis(&[vec![1.0, 2.0], vec![]], 1), None);
    }

    /// References: scipy 1.17.1 `mannwhitneyu`; the exact one with ties by enumerating 462 choices
    /// in Python.
    #[test]
    fn mann_whitney_references() {
        let a = [1.1, 2.2, 3.3, 4.4, 5.5];
        let b = [2.1, 3.1, 4.1, 5.1, 6.1, 7.1];
        let found = mann_whitney(&a, &b).expect("values");
        near(found.u, 20.0);
        near(found.p, 0.428_571_428_571_428_55);
        near(found.delta, 2.0 * 20.0 / 30.0 - 1.0);
        let found =
            mann_whitney(&[1.0, 2.0, 2.0, 3.0, 4.0], &[2.0, 3.0, 4.0, 4.0, 5.0, 6.0]).expect("values");
        near(found.u, 24.5);
        near(found.p, 0.110_389_610_389_610_38);
        let a = [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 12, 13, 14, 15, 16, 17, 18, 18, 19, 20];
        let b = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 22];
        let found = mann_whitney(&a.map(f64::from), &b.map(f64::from)).expect("values");
        near(found.u, 335.5);
        near(found.p, 0.200_408_256_819_406_22);
        assert_eq!(mann_whitney(&[1.0; 30], &[1.0; 30]).map(|found| found.p), Some(1.0));
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn effects_have_words() {
        let words: Vec<&str> = [0.1, -0.2, 0.4, -1.0].into_iter().map(effect_words).collect();
        assert_eq!(words, ["negligible", "small", "medium", "large"]);
    }
}

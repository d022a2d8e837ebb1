//! Programs with known results, and faults.

use super::*;
use crate::vectors::with_widest_vectors;

fn run(text: &str, argument: i64) -> anyhow::Result<i64> {
    let code = compile(text)?;
    let mut machine = Machine::new();
    let plain = machine.run(&code, argument);
    let wide = with_widest_vectors(
        #[inline(always)]
        || machine.run(&code, argument),
    );
    assert_eq!(wide, plain);
    Ok(plain.0)
}

#[test]
fn expressions_are_what_rust_makes_of_them() -> anyhow::Result<()> {
    for n in [0i64, 1, 5, 77, 1000] {
        assert_eq!(run("fn main(n) { return 1 + 2 * n - n / 3 % 5; }", n)?, 1 + 2 * n - n / 3 % 5);
        assert_eq!(run("fn main(n) { return (n << 2 | 3) & 55 ^ n >> 1; }", n)?, (n << 2 | 3) & 55 ^ n >> 1);
        let known =
            i64::from(n > 3) + 10 * i64::from(n >= 5) + 100 * i64::from(n != 5) + 1000 * i64::from(n <= 77);
        let text = "fn main(n) { return (n > 3) + 10 * (n >= 5) + 100 * (n != 5) + 1000 * (n <= 77); }";
        assert_eq!(run(text, n)?, known);
        let text =
            "fn f(a, b, c) { x = a - b; return x - c; } fn main(n) { m[n] = f(9, n, 2); y = m[n]; f(1, 2, 3);
                    if y < 0 { y = 0 - y; } else { y = y + 100; } return y - f(y, y, 1); }";
        let y = if 7 - n < 0 { n - 7 } else { 107 - n };
        assert_eq!(run(text, n)?, y + 1);
    }
    assert_eq!(run("fn main(n) { x = 3; }", 4)?, 0);
    assert!(compile("fn main(n) { return k; }").is_err());
    assert!(compile("fn main(n) { return f(1); }").is_err());
    assert!(compile("fn main(n) { return (1; }").is_err());
    Ok(())
}

#[test]
fn results_are_those_of_the_same_in_rust() -> anyhow::Result<()> {
    let primes =
        |n: i64| (2..n).filter(|x| (2..*x).take_while(|y| y * y <= *x).all(|y| x % y > 0)).count() as i64;
    assert_eq!(primes(30_000), PROGRAMS[0].2);
    let palindromes =
        (0..100_000).filter(|x: &i64| x.to_string() == x.to_string().chars().rev().collect::<String>());
    assert_eq!(palindromes.count() as i64, PROGRAMS[5].2);
    let steps = |x: i64| std::iter::successors(Some(x), |x| Some(if x % 2 == 1 { 3 * x + 1 } else { x / 2 }));
    let best =
        (1..100_000).rev().map(|x| (steps(x).take_while(|x| *x > 1).count(), x)).max_by_key(|found| found.0);
    assert_eq!(best, Some((350, 77_031)));
    for (text, argument, result) in [(PROGRAMS[1].0, 6, 4), (PROGRAMS[2].0, 10, 55), (PROGRAMS[3].0, 2, 29)] {
        assert_eq!(run(text, argument)?, result);
    }
    Ok(())
}

#[test]
fn any_flipped_bit_is_noticed() -> anyhow::Result<()> {
    let mut all = Programs::new(&[(PROGRAMS[1].0, 6, 4), (PROGRAMS[2].0, 10, 55)])?;
    let good = all.verify();
    assert!(good.is_ok());
    for bit in 0..64 {
        all.results[bit % 2].0 ^= 1 << bit;
        assert!(all.verify().is_err());
        all.results[bit % 2].0 ^= 1 << bit;
        all.results[bit % 2].1 ^= 1 << bit;
        assert!(all.verify().is_err());
        all.results[bit % 2].1 ^= 1 << bit;
    }
    assert_eq!(all.verify(), good);
    Ok(())
}

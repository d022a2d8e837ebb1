//! A naive solver, rooms, and faults.

use super::*;

fn system(sides: [u64; 3]) -> System {
    System::new(&mut Arena::new(0), sides).expect("arena")
}

/// The matrix in full.
fn dense(system: &System) -> Vec<Vec<f64>> {
    let mut begin = 0;
    let rows = system.ends.iter().map(|&end| {
        let mut row = vec![0.0; system.ends.len()];
        for entry in begin..end as usize {
            row[system.columns[entry] as usize] += system.values[entry];
        }
        begin = end as usize;
        row
    });
    rows.collect()
}

#[test]
fn pairs_all() {
    for count in [2, 6, 64, 100, 1002] {
        let shuffle = Shuffle::new(count);
        let mut far = 0;
        for at in 0..count {
            let other = shuffle.partner(at);
            assert!(other < count && other != at && shuffle.partner(other) == at);
            assert_eq!(shuffle.back(shuffle.forth(at)), at);
            far += u64::from(other.abs_diff(at) > count / 8);
        }
        assert!(far > count / 2, "{far} of {count}");
    }
}

#[test]
fn is_what_it_says() {
    let system = system([6, 5, 4]);
    let dense = dense(&system);
    for (i, row) in dense.iter().enumerate() {
        assert!(near(row.iter().sum(), 1.0, 1e-13));
        let around = |at: usize| [at % 6, at / 6 % 5, at / 30];
        for (j, value) in row.iter().enumerate() {
            assert_eq!(*value, dense[j][i], "symmetric");
            let close = around(i).iter().zip(around(j)).all(|(a, b)| a.abs_diff(b) < 2);
            assert!(*value != 0.0 || !close && Shuffle::new(120).partner(i as u64) != j as u64);
        }
    }
}

/// Conjugate gradients by the book, in full.
#[test]
fn solves_as_the_book_does() {
    let mut system = system([6, 5, 4]);
    let dense = dense(&system);
    let times = |x: &[f64]| -> Vec<f64> {
        dense.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let right = times(&(0..120).map(solution).collect::<Vec<f64>>());
    let (mut x, mut r, mut p) = (vec![0.0; 120], right.clone(), right.clone());
    for _ in 0..ITERATIONS {
        let q = times(&p);
        let old = dot(&r, &r);
        let step = old / dot(&p, &q);
        (0..120).for_each(|i| x[i] += step * p[i]);
        (0..120).for_each(|i| r[i] -= step * q[i]);
        let share = dot(&r, &r) / old;
        (0..120).for_each(|i| p[i] = r[i] + share * p[i]);
    }
    system.iterate();
    assert!(system.x.iter().zip(&x).all(|(a, b)| near(*a, *b, 1e-12)));
    assert!(system.residual.iter().zip(&r).all(|(a, b)| near(*a, *b, 1e-12)));
}

#[test]
fn notices_faults() -> Result<(), String> {
    let mut system = system([12, 11, 10]);
    system.iterate();
    let right = system.verify()?;
    for bit in [0, 1, 31, 52, 63] {
        for array in 0..2 {
            let at = 20 * bit + array;
            let values = if array == 0 { &mut system.x } else { &mut system.residual };
            values[at] = f64::from_bits(values[at].to_bits() ^ (1 << bit));
            assert_ne!(system.verify(), Ok(right));
            system.iterate();
            assert_eq!(system.verify(), Ok(right));
        }
    }
    system.solve();
    assert_eq!(system.verify(), Ok(right), "without wide vectors");
    system.values[100] *= 1.0 + 1e-9;
    system.iterate();
    assert!(system.verify().is_err());
    Ok(())
}

#[test]
fn fills_the_arena() {
    for mib in [16, 17, 23, 64, 100, 255, 256, 1000, 4096, 16384] {
        let [x, y, z] = sides(mib << 20).expect("enough");
        let entries = (3 * x - 2) * (3 * y - 2) * (3 * z - 2) + x * y * z;
        let bytes = entries * 12 + x * y * z * 48;
        assert!(bytes <= mib << 20 && bytes * 10 > (mib << 20) * 9, "{mib} {x} {y} {z}");
    }
    assert!(sides(1 << 18).is_err());
}

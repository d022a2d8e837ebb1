//! Tests of `multigrid`.
use super::*;

#[test]
fn solves_the_equation() -> Result<()> {
    let mut made = Multigrid::new(&mut Arena::new(1 << 20))?;
    let fine = made.shapes[0];
    (0..5).for_each(|_| made.solve());
    made.verify().map_err(anyhow::Error::msg)?;
    // The sum over faces of what flows out, point by point.
    let point = |u: &[f64], i: usize, j: usize, k: usize| match [i, j, k] {
        [i, j, k] if i % fine.nx == 0 || j % fine.ny == 0 || k % fine.nz == 0 => 0.0,
        _ => u[(k * fine.ny + j) * fine.nx + i],
    };
    let mut exact = vec![0.0; fine.points()];
    known(fine, |at, line| exact[at..at + fine.nx].copy_from_slice(line));
    for k in 1..fine.nz {
        for j in 1..fine.ny {
            for i in 1..fine.nx {
                let mut out = 0.0;
                for (x, y, z) in [(0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)] {
                    out += point(&exact, i, j, k) - point(&exact, i + x - 1, j + y - 1, k + z - 1);
                }
                assert!((out - point(&made.f, i, j, k)).abs() < 1e-12);
            }
        }
    }
    Ok(())
}

/// Weighting is interpolation's transpose (but for the scale): what is added up is the same.
#[test]
fn down_and_up_belong_together() {
    let fine = Shape { nx: 16, ny: 12, nz: 8 };
    let next = fine.half();
    let mut rng = Rng(7);
    let mut coarse = vec![0.0; next.points()];
    for (k, j) in (1..next.nz).flat_map(|k| (1..next.ny).map(move |j| (k, j))) {
        coarse[next.at(j, k) + 1..][..next.nx - 1].fill_with(|| rng.unit());
    }
    let (mut up, mut f) = (vec![0.0; fine.points()], vec![0.0; fine.points()]);
    let (mut sum, mut planes) = (vec![0.0; 64], vec![0.0; 3 * fine.plane()]);
    interpolate(fine, &mut up, &coarse, &mut sum);
    for (k, j) in (1..fine.nz).flat_map(|k| (1..fine.ny).map(move |j| (k, j))) {
        f[fine.at(j, k) + 1..][..fine.nx - 1].fill_with(|| rng.unit());
    }
    let mut down = vec![0.0; next.points()];
    let zeros = vec![0.0; fine.points()];
    let squares = restrict(fine, &zeros, &f, &mut planes, &mut sum, &mut down);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert!((dot(&up, &f) - 2.0 * dot(&coarse, &down)).abs() < 1e-10);
    assert!((squares - dot(&f, &f)).abs() < 1e-10);
}

#[test]
fn a_flipped_bit_is_noticed() -> Result<()> {
    let mut made = Multigrid::new(&mut Arena::new(2 << 20))?;
    made.iterate();
    let good = made.verify().map_err(anyhow::Error::msg)?;
    let shape = made.shapes[0];
    let middle = shape.at(shape.ny / 2, shape.nz / 2) + shape.nx / 2;
    for (at, bit) in [(0, 0), (shape.points() - 1, 1), (middle, 0), (middle, 62)] {
        let kept = made.u[at];
        made.u[at] = f64::from_bits(kept.to_bits() ^ (1 << bit));
        assert_ne!(made.verify(), Ok(good));
        assert!(bit < 60 || made.verify().is_err());
        made.u[at] = kept;
    }
    assert_eq!(made.verify(), Ok(good));
    made.solve();
    assert_eq!(made.verify(), Ok(good), "without the widest vectors");
    Ok(())
}

#[test]
fn arenas_are_filled() {
    for bytes in [16 << 20, 50_000_000, (64 << 20) + 12_345, 1_000_000_007, 3 << 30, 16 << 30] {
        let size = shapes(bytes).map_or(0, |shapes| size(&shapes));
        assert!(size <= bytes && size as f64 > 0.85 * bytes as f64, "{size} of {bytes}");
    }
    for mib in 16..2000 {
        let size = shapes(mib << 20).map_or(0, |shapes| size(&shapes));
        assert!(size as f64 > 0.8 * (mib << 20) as f64, "{size} of {mib} MiB");
    }
    assert!(Multigrid::new(&mut Arena::new(10_000)).is_err());
}

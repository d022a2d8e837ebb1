//! A naive flow, decay, rooms, and faults.

use super::*;

fn flow(sides: [usize; 3]) -> Flow {
    Flow::new(&mut Arena::new(0), Shape::new(sides)).expect("arena")
}

/// The textbook's way: two grids, populations pulled from where they come from.
fn naive(flow: &Flow) -> Vec<[f64; Q]> {
    let [nx, ny, nz] = flow.shape.sides;
    let by = |k: usize| {
        let (x, y, z) = PAIRS[(k + 8) % 9];
        [x as isize, y, z].map(|by| if k == 0 { 0 } else { by })
    };
    // In the order of `PAIRS` here: rest, the first of each pair, then the opposites.
    let signed = |k: usize| by(if k > 9 { k - 9 } else { k }).map(|by| if k > 9 { -by } else { by });
    let equal = |k: usize, density: f64, u: [f64; 3]| {
        let c = signed(k);
        let along: f64 = (0..3).map(|axis| c[axis] as f64 * u[axis]).sum();
        let square: f64 = u.iter().map(|u| u * u).sum();
        let weight = [1.0 / 3.0, 1.0 / 18.0, 1.0 / 36.0][c.iter().filter(|c| **c != 0).count()];
        weight * density * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * square)
    };
    let cell = |x: usize, y: usize, z: usize| (z * ny + y) * nx + x;
    let mut now = vec![[0.0; Q]; nx * ny * nz];
    for (x, y, z) in (0..nx * ny * nz).map(|at| (at % nx, at / nx % ny, at / nx / ny)) {
        let [a, b, c] = [(x, nx), (y, ny), (z, nz)].map(|(at, side)| 2.0 * PI * at as f64 / side as f64);
        let u = [c.sin() + b.cos(), a.sin() + c.cos(), b.sin() + a.cos()].map(|u| u * SPEED);
        now[cell(x, y, z)] = std::array::from_fn(|k| equal(k, 1.0, u));
    }
    for _ in 0..STEPS {
        for f in &mut now {
            let density: f64 = f.iter().sum();
            let u = std::array::from_fn(|axis| {
                (0..Q).map(|k| signed(k)[axis] as f64 * f[k]).sum::<f64>() / density
            });
            *f = std::array::from_fn(|k| f[k] + OMEGA * (equal(k, density, u) - f[k]));
        }
        let was = now.clone();
        for (x, y, z) in (0..nx * ny * nz).map(|at| (at % nx, at / nx % ny, at / nx / ny)) {
            now[cell(x, y, z)] = std::array::from_fn(|k| {
                let c = signed(k).map(|c| -c);
                was[cell(moved(x, c[0], nx), moved(y, c[1], ny), moved(z, c[2], nz))][k]
            });
        }
    }
    now
}

#[test]
fn as_the_textbook_says() {
    let mut flow = flow([16, 7, 10]);
    flow.iterate();
    let grid = &flow.grid[flow.skip..];
    for (at, cell) in naive(&flow).iter().enumerate() {
        let [x, y, z] = [at % 16, at / 16 % 7, at / 16 / 7];
        for (k, value) in cell.iter().enumerate() {
            let slot = if k == 0 { 0 } else { 1 + (k - 1) % 9 * 2 + (k - 1) / 9 };
            let ours = grid[slot * flow.shape.stride + flow.shape.row(y, z) + x];
            assert!((ours - value).abs() < 1e-14, "{x} {y} {z} {slot}: {ours} {value}");
        }
    }
}

#[test]
fn theory_has_the_viscosity() {
    let (side, steps) = (200, 4000);
    let rate = (decay(side, steps / 2) / decay(side, steps)).ln() / (steps / 2) as f64;
    let square = (2.0 * PI / side as f64).powi(2);
    assert!((rate / square / ((1.0 / OMEGA - 0.5) / 3.0) - 1.0).abs() < 1e-3);
}

#[test]
fn notices_faults() -> Result<(), String> {
    let mut flow = flow([16, 12, 11]);
    flow.iterate();
    let right = flow.verify()?;
    for (k, bit) in [(0, 0), (5, 1), (18, 30), (7, 63), (11, 51)] {
        let at = flow.skip + k * flow.shape.stride + flow.shape.row(k % 12, k % 11) + k % 16;
        flow.grid[at] = f64::from_bits(flow.grid[at].to_bits() ^ (1 << bit));
        assert_ne!(flow.verify(), Ok(right));
        flow.iterate();
        assert_eq!(flow.verify(), Ok(right));
    }
    flow.work();
    assert_eq!(flow.verify(), Ok(right), "without wide vectors");
    Ok(())
}

#[test]
fn fills_the_arena() {
    for mib in [16, 17, 23, 64, 100, 255, 256, 1000, 4096, 16384] {
        let shape = Shape::within(mib << 20).expect("enough");
        let bytes = 8 * (Q * shape.stride + 2 * LANES + 2 * shape.sides.iter().sum::<usize>()) as u64;
        assert!(bytes <= mib << 20 && bytes * 10 > (mib << 20) * 9, "{mib} {:?}", shape.sides);
    }
    assert!(Shape::within(4 << 20).is_err());
}

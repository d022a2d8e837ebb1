//! Yee's scheme as it is written, energy, rooms, and faults.

use super::*;

fn waves(sides: [usize; 3]) -> Waves {
    Waves::new(&mut Arena::new(0), Shape::new(sides)).expect("arena")
}

#[test]
fn sines() {
    for at in 0..200 {
        let right = (std::f64::consts::PI * f64::from(at) / 37.0).sin();
        assert!((sine(f64::from(at), 37.0) - right).abs() < 4e-15, "{at}");
    }
}

/// Yee's equations point by point, from any fields.
#[test]
fn as_yee_says() {
    let sides = [16, 7, 9];
    let mut waves = waves(sides);
    let shape = waves.shape;
    let place = |x: usize, y: usize, z: usize| shape.at(y, z) + x;
    let mut rng = super::super::Rng(1);
    waves.reset();
    for array in split(&mut waves.grid[waves.skip..], shape.stride) {
        for (y, z) in shape.rows() {
            for x in 0..sides[0] {
                array[place(x, y, z)] += rng.unit() * f64::from(u8::from(x > 0 && y > 0 && z > 0));
            }
        }
    }
    let mut was: Vec<Vec<f64>> =
        waves.grid[waves.skip..].chunks_exact(shape.stride).map(<[f64]>::to_vec).collect();
    let energy = |fields: &[Vec<f64>], before: &[Vec<f64>]| -> f64 {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        (0..6)
            .map(|field| product(&fields[field], if field < 3 { &fields[field] } else { &before[field] }))
            .sum()
    };
    let step = [1, shape.row, shape.plane];
    let mut energies = Vec::new();
    for _ in 0..10 {
        for axis in 0..3 {
            let (b, c) = ((axis + 1) % 3, (axis + 2) % 3);
            for (y, z) in shape.rows() {
                for x in 0..sides[0] {
                    let (at, xyz) = (place(x, y, z), [x, y, z]);
                    if xyz[b] > 0 && xyz[c] > 0 {
                        let turn = was[3 + c][at] - was[3 + c][at - step[b]] - was[3 + b][at]
                            + was[3 + b][at - step[c]];
                        was[axis][at] += SPEED * turn;
                    }
                }
            }
        }
        let before = was.clone();
        for axis in 0..3 {
            let (b, c) = ((axis + 1) % 3, (axis + 2) % 3);
            for (y, z) in shape.rows() {
                for x in 0..sides[0] {
                    let at = place(x, y, z);
                    let turn = was[c][at + step[b]] - was[c][at] - was[b][at + step[c]] + was[b][at];
                    was[3 + axis][at] -= SPEED * turn;
                }
            }
        }
        energies.push(energy(&was, &before));
        let grid = &mut waves.grid[waves.skip..];
        electric(grid, shape, SPEED);
        magnetic(grid, shape, SPEED);
        for (ours, right) in grid.chunks_exact(shape.stride).zip(&was) {
            assert!(ours.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-13));
        }
    }
    assert!(energies.iter().all(|energy| (energy / energies[0] - 1.0).abs() < 1e-12), "{energies:?}");
}

#[test]
fn notices_faults() -> Result<(), String> {
    let mut waves = waves([16, 13, 11]);
    waves.iterate();
    let right = waves.verify()?;
    for (field, bit) in [(0, 0), (1, 1), (2, 29), (3, 40), (4, 63), (5, 2)] {
        let at = waves.skip + field * waves.shape.stride + waves.shape.at(field * 2, field) + field + 1;
        waves.grid[at] = f64::from_bits(waves.grid[at].to_bits() ^ (1 << bit));
        assert_ne!(waves.verify(), Ok(right));
        waves.iterate();
        assert_eq!(waves.verify(), Ok(right));
    }
    waves.work();
    assert_eq!(waves.verify(), Ok(right), "without wide vectors");
    Ok(())
}

#[test]
fn fills_the_arena() {
    for mib in [16, 17, 23, 64, 100, 255, 256, 1000, 4096, 16384] {
        let shape = Shape::within(mib << 20).expect("enough");
        let bytes = 8 * (6 * shape.stride + LANES + 4 * shape.sides.iter().sum::<usize>()) as u64;
        assert!(bytes <= mib << 20 && bytes * 10 > (mib << 20) * 9, "{mib} {:?}", shape.sides);
    }
    assert!(Shape::within(1 << 19).is_err());
}

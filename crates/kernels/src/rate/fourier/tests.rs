//! The definition, single waves, rooms, and faults.

use super::pencil::turn;
use super::*;

fn fourier(sides: [usize; 3]) -> Fourier {
    Fourier::new(&mut Arena::new(0), Shape::new(sides)).expect("arena")
}

#[test]
fn turns_are_turns() {
    for side in [16, 24, 72, 1536] {
        for at in 0..side {
            let angle = -2.0 * std::f64::consts::PI * at as f64 / side as f64;
            let (re, im) = turn(at, side);
            assert!(
                near(re, angle.cos(), 2e-15) && near(im, angle.sin(), 2e-15),
                "{at} of {side}: {re} {im}"
            );
        }
    }
}

/// Against the sum that defines it.
#[test]
fn transforms_by_definition() {
    for side in [16, 24, 36, 64, 72, 96] {
        let plan = Plan::new(side);
        let (mut pencil, mut spare, mut rng) = (Pencil::new(side), Pencil::new(side), Rng(5));
        pencil.re.as_flattened_mut().iter_mut().for_each(|value| *value = rng.unit());
        pencil.im.as_flattened_mut().iter_mut().for_each(|value| *value = rng.unit());
        let was = (pencil.re.clone(), pencil.im.clone());
        transform(&plan, &mut pencil, &mut spare);
        for wave in 0..side {
            for lane in 0..LANES {
                let mut sum = (0.0, 0.0);
                for at in 0..side {
                    let (sin, cos) =
                        (-2.0 * std::f64::consts::PI * (wave * at) as f64 / side as f64).sin_cos();
                    let turned = times((was.0[at][lane], was.1[at][lane]), (cos, sin));
                    sum = (sum.0 + turned.0, sum.1 + turned.1);
                }
                assert!(near(pencil.re[wave][lane], sum.0, 1e-11), "{side} {wave} {lane}");
                assert!(near(pencil.im[wave][lane], sum.1, 1e-11), "{side} {wave} {lane}");
            }
        }
    }
}

/// A single wave is a single number, on each axis.
#[test]
fn knows_single_waves() {
    for side in [128, 144, 192, 2048] {
        let plan = Plan::new(side);
        let (mut pencil, mut spare) = (Pencil::new(side), Pencil::new(side));
        for at in 0..side {
            for lane in 0..LANES {
                let (re, im) = turn(at * (lane + 1) * 5 % side, side);
                (pencil.re[at][lane], pencil.im[at][lane]) = (re, -im);
            }
        }
        transform(&plan, &mut pencil, &mut spare);
        for at in 0..side {
            for lane in 0..LANES {
                let right = if at == (lane + 1) * 5 { side as f64 } else { 0.0 };
                assert!(near(pencil.re[at][lane], right, 1e-10) && near(pencil.im[at][lane], 0.0, 1e-10));
            }
        }
    }
}

#[test]
fn notices_faults() -> Result<(), String> {
    let mut work = fourier([24, 16, 32]);
    work.iterate();
    let right = work.verify()?;
    for (bit, at) in [(0, (3, 2, 1)), (1, (0, 0, 0)), (33, (23, 15, 31)), (63, (7, 8, 9))] {
        let line = work.shape.plane * at.2 + work.shape.row * at.1 + at.0;
        for part in 0..2 {
            let (re, im) = work.field.parts_mut();
            let value = if part == 0 { &mut re[line][bit % 8] } else { &mut im[line][bit % 8] };
            *value = f64::from_bits(value.to_bits() ^ (1 << bit));
            assert_ne!(work.verify(), Ok(right));
            work.iterate();
            assert_eq!(work.verify(), Ok(right));
        }
    }
    work.work();
    assert_eq!(work.verify(), Ok(right), "without wide vectors");
    work.energy[3] *= 1.0 + 1e-15;
    assert_ne!(work.verify(), Ok(right));
    Ok(())
}

#[test]
fn fills_the_arena() {
    for mib in [16, 17, 19, 23, 29, 37, 64, 100, 255, 256, 700, 1000, 4096, 12000, 16384] {
        let shape = Shape::within(mib << 20).expect("enough");
        let bytes = 4 * 64 * (shape.lines as u64 + 1) + (1 << 18);
        assert!(bytes <= (mib << 20) + 256 && bytes * 10 > (mib << 20) * 8, "{mib} {shape:?}");
    }
    assert!(Shape::within(1 << 20).is_err());
}

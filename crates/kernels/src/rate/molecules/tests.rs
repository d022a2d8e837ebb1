//! Tests of `molecules`.
use super::super::STANDARD_BYTES;
use super::*;

#[test]
fn forces_are_the_slopes_of_the_energy() -> Result<()> {
    let mut made = Molecules::new(&Arena::new(STANDARD_BYTES))?;
    made.run(1);
    let forces = all_pairs(&made.x).1;
    for (atom, axis) in [(0, 0), (1237, 1), (ATOMS - 1, 2)] {
        let energy = |by: f64| {
            let mut x = made.x.clone();
            x[atom / LANES][axis][atom % LANES] += by;
            all_pairs(&x).0
        };
        let slope = (energy(1e-5) - energy(-1e-5)) / 2e-5;
        assert!(
            (slope + forces[atom][axis]).abs() < 1e-5 * slope.abs().max(1.0),
            "{slope} {:?}",
            forces[atom]
        );
    }
    Ok(())
}

#[test]
fn the_potential_ends_smoothly() {
    let at = |s: f64| 4.0 * (1.0 / (s * s * s) - 1.0) / (s * s * s) + SLOPE * s + LEVEL;
    assert!(at(CUTOFF2).abs() < 1e-15);
    assert!((at(CUTOFF2 * 1.000_01) - at(CUTOFF2 * 0.999_99)).abs() < 1e-12);
}

#[test]
fn the_same_with_and_without_the_widest_vectors() -> Result<()> {
    let mut made = Molecules::new(&Arena::new(STANDARD_BYTES))?;
    made.run(3);
    let plain = (made.x.clone(), made.v.clone());
    made.verify().map_err(anyhow::Error::msg)?;
    with_widest_vectors(
        #[inline(always)]
        || made.run(3),
    );
    assert!(plain == (made.x, made.v));
    Ok(())
}

#[test]
fn the_expected_checksum_and_a_flipped_bit() -> Result<()> {
    let mut made = Molecules::new(&Arena::new(STANDARD_BYTES))?;
    made.iterate();
    assert_eq!(made.verify(), Ok(COMPONENT.expected_checksum));
    for (cluster, lane, bit) in [(0, 0, 0), (CLUSTERS - 1, 7, 62)] {
        for position in [true, false] {
            let values = if position { &mut made.x } else { &mut made.v };
            let kept = values[cluster][1][lane];
            values[cluster][1][lane] = f64::from_bits(kept.to_bits() ^ (1 << bit));
            assert_ne!(made.verify(), Ok(COMPONENT.expected_checksum));
            assert!(bit < 60 || made.verify().is_err());
            let values = if position { &mut made.x } else { &mut made.v };
            values[cluster][1][lane] = kept;
        }
    }
    Ok(())
}

#[test]
fn too_small_an_arena_is_refused() {
    assert!(Molecules::new(&Arena::new(1 << 20)).is_err());
}

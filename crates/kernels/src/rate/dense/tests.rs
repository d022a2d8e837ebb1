//! Tests of `dense`.
use super::super::STANDARD_BYTES;
use super::*;

/// Gauss's elimination by rows with partial pivoting.
fn eliminate(matrix: &[f64], right: &[f64]) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = (0..ORDER)
        .map(|i| matrix.iter().skip(i).step_by(ORDER).chain([&right[i]]).copied().collect())
        .collect();
    for j in 0..ORDER {
        let best = (j..ORDER).max_by(|&a, &b| rows[a][j].abs().total_cmp(&rows[b][j].abs()));
        rows.swap(j, best.unwrap_or(j));
        let (done, later) = rows.split_at_mut(j + 1);
        for row in later {
            let factor = row[j] / done[j][j];
            row[j..].iter_mut().zip(&done[j][j..]).for_each(|(to, from)| *to -= factor * from);
        }
    }
    let mut x = vec![0.0; ORDER];
    for j in (0..ORDER).rev() {
        let known: f64 = (j + 1..ORDER).map(|k| rows[j][k] * x[k]).sum();
        x[j] = (rows[j][ORDER] - known) / rows[j][j];
    }
    x
}

/// One test, because a pass takes seconds.
#[test]
fn as_plain_elimination_has_it_and_a_flipped_bit_is_noticed() -> Result<()> {
    let mut made = Dense::new(&mut Arena::new(STANDARD_BYTES))?;
    made.iterate();
    for index in [0, SYSTEMS - 1] {
        let (matrix, right) = system(&made.pool, index).split_at(ORDER * ORDER);
        let expected = eliminate(matrix, right);
        for (x, expected) in made.x[index * ORDER..].iter().zip(&expected) {
            assert!((x - expected).abs() < 1e-7 * expected.abs().max(1.0), "{x} {expected}");
        }
    }
    let good = made.verify().map_err(anyhow::Error::msg)?;
    assert_eq!(good, COMPONENT.expected_checksum);
    for (at, bit) in [(0, 0), (made.x.len() - 1, 1), (9_999, 50), (77, 62)] {
        let kept = made.x[at];
        made.x[at] = f64::from_bits(kept.to_bits() ^ (1 << bit));
        assert_ne!(made.verify(), Ok(good));
        assert!(bit < 50 || made.verify().is_err());
        made.x[at] = kept;
    }
    let last = &mut made.x[(SYSTEMS - 1) * ORDER..];
    let wide = last.to_vec();
    let (matrix, right) = system(&made.pool, SYSTEMS - 1).split_at(ORDER * ORDER);
    for (to, from) in made.a.chunks_exact_mut(STRIDE).zip(matrix.chunks_exact(ORDER)) {
        to[..ORDER].copy_from_slice(from);
    }
    last.copy_from_slice(right);
    factor(&mut made.a, &mut made.packs, &mut made.pivots);
    solve(&made.a, &made.pivots, last);
    assert!(wide == *last, "without the widest vectors");
    Ok(())
}

#[test]
fn too_small_an_arena_is_refused() {
    assert!(Dense::new(&mut Arena::new(1 << 20)).is_err());
}

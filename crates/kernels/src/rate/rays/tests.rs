//! Tests of `rays`.
use super::super::STANDARD_BYTES;
use super::*;

fn rays() -> Rays {
    Rays { scene: Scene::new(), picture: vec![[0.0; 3]; SIDE * SIDE], big: 0 }
}

#[test]
fn the_expected_checksum_and_a_flipped_bit() {
    let mut made = rays();
    made.iterate();
    assert_eq!(made.verify(), Ok(COMPONENT.expected_checksum));
    for (pixel, channel, bit) in [(1, 0, 0), (SIDE * SIDE - 1, 2, 1), (199, 1, 0), (777, 1, 62)] {
        let kept = made.picture[pixel][channel];
        made.picture[pixel][channel] = f64::from_bits(kept.to_bits() ^ (1 << bit));
        assert_ne!(made.verify(), Ok(COMPONENT.expected_checksum));
        assert!(pixel != 199 || made.verify().is_err());
        made.picture[pixel][channel] = kept;
    }
    for index in (0..SIDE * SIDE).step_by(7) {
        assert!(made.scene.pixel::<true>(index).0 == made.picture[index], "without the widest vectors");
    }
    made.big = 0;
    assert!(made.verify().is_err());
}

/// In a white world under a white sky nothing is lost but what does not come out in time.
#[test]
fn a_furnace_is_white() {
    let mut scene = Scene::new();
    scene.white = true;
    let (mut sum, mut count) = (0.0, 0);
    for index in (0..SIDE * SIDE).step_by(51) {
        let light = scene.pixel::<true>(index).0[0];
        assert!((light * SAMPLES as f64).fract() == 0.0 && light <= 1.0, "{light}");
        (sum, count) = (sum + light, count + 1);
    }
    assert!(sum > 0.7 * f64::from(count), "{sum} of {count}");
}

#[test]
fn all_is_in_its_box() {
    let scene = Scene::new();
    assert_eq!(scene.spheres.len(), SPHERES);
    let mut held = vec![0; SPHERES];
    for node in scene.nodes.iter().filter(|node| node.count > 0) {
        let first = node.first as usize;
        for (held, sphere) in held.iter_mut().zip(&scene.spheres).skip(first).take(usize::from(node.count)) {
            *held += 1;
            let Sphere { middle, radius, .. } = *sphere;
            let low = middle.iter().zip(&node.low).all(|(middle, low)| *low < middle - radius);
            assert!(low && middle.iter().zip(&node.high).all(|(middle, high)| *high > middle + radius));
        }
    }
    assert!(held.iter().all(|count| *count == 1));
    assert!((COMPONENT.make)(&mut Arena::new(1 << 10)).is_err());
    assert!((COMPONENT.make)(&mut Arena::new(STANDARD_BYTES)).is_ok());
}

//! The colour of a value on a map: blue is the good side and orange the bad one, which people who
//! are blind to red or green can distinguish; without a middle, viridis.

use crate::block::Map;
use model::Better;

/// A colour on a light and on a dark page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    pub light: [u8; 3],
    pub dark: [u8; 3],
}

/// From the good side over the middle to the bad one.
const LIGHT: [[u8; 3]; 7] = [
    [0x1f, 0x55, 0xa5],
    [0x6a, 0x9f, 0xd8],
    [0xbd, 0xd6, 0xf0],
    [0xf4, 0xf4, 0xf2],
    [0xfb, 0xd3, 0xad],
    [0xf0, 0x93, 0x4c],
    [0xb4, 0x4a, 0x06],
];
const DARK: [[u8; 3]; 7] = [
    [0x9c, 0xc8, 0xff],
    [0x4a, 0x86, 0xd6],
    [0x2e, 0x4f, 0x80],
    [0x2d, 0x32, 0x3c],
    [0x7a, 0x46, 0x22],
    [0xd0, 0x73, 0x2a],
    [0xff, 0xc2, 0x85],
];
const VIRIDIS: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2c, 0x7a],
    [0x3b, 0x51, 0x8b],
    [0x2c, 0x71, 0x8e],
    [0x21, 0x90, 0x8d],
    [0x27, 0xad, 0x81],
    [0x5c, 0xc8, 0x63],
    [0xaa, 0xdc, 0x32],
    [0xfd, 0xe7, 0x25],
];

/// From dark for 0 to bright for 1.
pub fn viridis(place: f64) -> [u8; 3] {
    between(&VIRIDIS, place)
}

/// Changes of less than this many per cent stay pale: noise must not look like an effect.
const MIN_PERCENT: f64 = 5.0;

/// Values that reach over more than this factor have logarithmic colours.
const WIDE: f64 = 20.0;

/// The colours of one map.
#[derive(Clone, Debug)]
pub struct Shades {
    kind: Kind,
    /// From here to there values have colours of their own; further ones have that of the end.
    pub low: f64,
    pub high: f64,
    /// Values lie beyond the end.
    pub beyond: [bool; 2],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The middle, how far the colours reach to both sides, and whether the low side is the good
    /// one.
    Diverging {
        around: f64,
        reach: f64,
        low_is_good: bool,
    },
    Linear,
    Log,
}

impl Shades {
    pub fn of(map: &Map) -> Shades {
        let sorted = map.sorted();
        let ends = sorted.first().zip(sorted.last()).map(|(low, high)| (*low, *high));
        match map.around.filter(|around| around.is_finite()) {
            Some(around) => Shades::diverging(map, around, &sorted),
            None => {
                let (low, high) = ends.unwrap_or((0.0, 1.0));
                let high = if high > low { high } else { low + low.abs().max(1.0) };
                let kind = if low > 0.0 && high / low > WIDE { Kind::Log } else { Kind::Linear };
                Shades { kind, low, high, beyond: [false; 2] }
            }
        }
    }

    /// Equal strength on both sides means equal change.
    fn diverging(map: &Map, around: f64, sorted: &[f64]) -> Shades {
        let mut far: Vec<f64> = sorted.iter().map(|value| (value - around).abs()).collect();
        far.sort_by(f64::total_cmp);
        let most = far.last().copied().unwrap_or(0.0);
        let usual = far.get(far.len().saturating_sub(1) * 9 / 10).copied().unwrap_or(0.0);
        // A few far cells must not take all the colours.
        let reach = if far.len() >= 10 && usual > 0.0 && most > 2.5 * usual { 1.25 * usual } else { most };
        let least = match map.unit.trim() {
            "%" => MIN_PERCENT,
            _ => around.abs() * MIN_PERCENT / 100.0,
        };
        let reach = reach.clamp(f64::MIN_POSITIVE, f64::MAX / 4.0).max(least);
        let reach = if most > 0.0 || least > 0.0 { reach } else { 1.0 };
        let low = sorted.first().copied().unwrap_or(around);
        let high = sorted.last().copied().unwrap_or(around);
        let kind = Kind::Diverging { around, reach, low_is_good: map.better != Better::Higher };
        let beyond = [low < around - reach, high > around + reach];
        // A side without values still shows where it would begin.
        let low = low.min(around - reach / 4.0).max(around - reach);
        let high = high.max(around + reach / 4.0).min(around + reach);
        Shades { kind, low, high, beyond }
    }

    pub fn colour(&self, value: f64) -> Colour {
        match self.kind {
            Kind::Diverging { around, reach, low_is_good } => {
                let side = ((value - around) / reach).clamp(-1.0, 1.0);
                let place = if low_is_good { 0.5 + side / 2.0 } else { 0.5 - side / 2.0 };
                Colour { light: between(&LIGHT, place), dark: between(&DARK, place) }
            }
            _ => {
                let shade = between(&VIRIDIS, self.place(value));
                Colour { light: shade, dark: shade }
            }
        }
    }

    /// Where a value lies between the ends of the colour bar, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.kind {
            Kind::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            _ => (value - self.low) / (self.high - self.low),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The value at a place of the colour bar.
    pub fn at(&self, place: f64) -> f64 {
        match self.kind {
            Kind::Log => self.low * (self.high / self.low).powf(place),
            _ => self.low + (self.high - self.low) * place,
        }
    }

    pub fn middle(&self) -> Option<f64> {
        match self.kind {
            Kind::Diverging { around, .. } => Some(around),
            _ => None,
        }
    }
}

fn between(steps: &[[u8; 3]], place: f64) -> [u8; 3] {
    let last = steps.len() - 1;
    let at = place.clamp(0.0, 1.0) * last as f64;
    let below = (at.floor() as usize).min(last - 1);
    let share = at - below as f64;
    let mix = |part: usize| {
        let (from, to) = (f64::from(steps[below][part]), f64::from(steps[below + 1][part]));
        (from + (to - from) * share).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

/// Black or white, whichever can be read better on a colour.
pub fn ink(on: [u8; 3]) -> &'static str {
    let bright = luminance(on);
    // The ratios of contrast to white and to black.
    if 1.05 / (bright + 0.05) > (bright + 0.05) / 0.05 { "#ffffff" } else { "#000000" }
}

/// How bright people see a colour, as WCAG computes it.
fn luminance(colour: [u8; 3]) -> f64 {
    let linear = |part: u8| {
        let share = f64::from(part) / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{hackbench, row};

    #[test]
    fn numbers_can_be_read_on_every_colour() {
        for steps in [&LIGHT[..], &DARK, &VIRIDIS] {
            for place in 0..=1000 {
                let on = between(steps, f64::from(place) / 1000.0);
                let bright = luminance(on);
                let contrast = match ink(on) {
                    "#ffffff" => 1.05 / (bright + 0.05),
                    _ => (bright + 0.05) / 0.05,
                };
                assert!(contrast >= 4.5, "{on:?} {contrast}");
            }
        }
    }

    #[test]
    fn the_good_side_is_blue_whichever_it_is() {
        let mut map = hackbench();
        let blue = |colour: Colour| colour.light[2] > colour.light[0] && colour.dark[2] > colour.dark[0];
        assert!(blue(Shades::of(&map).colour(-30.0)) && !blue(Shades::of(&map).colour(30.0)));
        map.better = Better::Higher;
        assert!(!blue(Shades::of(&map).colour(-30.0)) && blue(Shades::of(&map).colour(30.0)));
    }

    #[test]
    fn noise_stays_pale_and_far_cells_do_not_take_all_colours() {
        let shades = Shades::of(&row(&[Some(0.3), Some(-0.4), Some(0.0)]));
        assert!(shades.colour(-0.4).light.iter().all(|part| *part > 220), "{shades:?}");
        assert_eq!(shades.beyond, [false, false]);

        let mut values = vec![Some(-10.0); 19];
        values.push(Some(900.0));
        let shades = Shades::of(&row(&values));
        assert_eq!((shades.high, shades.beyond), (12.5, [false, true]));
        assert_eq!(shades.colour(900.0), shades.colour(12.5));
    }

    #[test]
    fn without_a_middle_colours_go_from_low_to_high() {
        let mut map = row(&[Some(1.0), Some(4.0), Some(10.0)]);
        map.around = None;
        let shades = Shades::of(&map);
        assert_eq!((shades.place(5.5), shades.middle()), (0.5, None));
        map.values[0].push(Some(100.0));
        map.x.labels.push("more".into());
        let shades = Shades::of(&map);
        assert!((shades.place(10.0) - 0.5).abs() < 1e-9 && shades.at(0.5).round() == 10.0);
        // Nothing, and one value only.
        assert_eq!(Shades::of(&row(&[None])).place(3.0), 1.0);
        let mut one = row(&[Some(7.0)]);
        one.around = None;
        assert_eq!((Shades::of(&one).low, Shades::of(&one).high), (7.0, 14.0));
    }
}

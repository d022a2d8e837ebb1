//! What the colours of a map mean: its title, a bar from end to end, and which end is the better
//! one.

use super::canvas::{Anchor, Canvas, INK, MUTED, measured};
use crate::block::Map;
use crate::map::Shades;
use model::{Better, figure};

/// From the top of the picture to below the bar's numbers.
pub const HEIGHT: f64 = 54.0;

const LENGTH: f64 = 240.0;
const STEPS: usize = 60;
const BETTER: &str = "better";

pub fn width(map: &Map) -> f64 {
    let words = 2.0 * (measured(BETTER, 12.0) + 8.0);
    measured(&map.heading(), 12.0).max(LENGTH + words)
}

pub fn draw(canvas: &mut Canvas, map: &Map, shades: &Shades) {
    canvas.text([0.0, 13.0], Anchor::Start, 12.0, INK, &map.heading());
    let low_is_good = map.better == Better::Lower;
    let word = measured(BETTER, 12.0) + 8.0;
    let left = if low_is_good { word } else { 0.0 };
    let [top, height] = [24.0, 11.0];
    match map.better {
        Better::Lower => canvas.text([0.0, top + 10.0], Anchor::Start, 12.0, MUTED, BETTER),
        Better::Higher => {
            canvas.text([LENGTH + 8.0, top + 10.0], Anchor::Start, 12.0, MUTED, BETTER);
        }
        Better::Neither => {}
    }
    canvas.raw("<g class=\"bar\">");
    for step in 0..STEPS {
        let wide = LENGTH / STEPS as f64;
        let colour = shades.colour(shades.at((step as f64 + 0.5) / STEPS as f64));
        let more = if step + 1 < STEPS { 0.6 } else { 0.0 };
        canvas.step([left + wide * step as f64, top], [wide + more, height], colour);
    }
    canvas.raw("</g>\n");
    let middle = shades.middle().unwrap_or_else(|| shades.at(0.5));
    for (value, end) in [(shades.low, Some(0)), (middle, None), (shades.high, Some(1))] {
        let place = shades.place(value);
        let (anchor, sign) = match end {
            Some(0) => (Anchor::Start, if shades.beyond[0] { "\u{2264} " } else { "" }),
            Some(_) => (Anchor::End, if shades.beyond[1] { "\u{2265} " } else { "" }),
            None => (Anchor::Middle, ""),
        };
        let text = format!("{sign}{}", tick(map, shades, value)).replace('-', "\u{2212}");
        canvas.text([left + LENGTH * place, top + height + 14.0], anchor, 11.0, MUTED, &text);
    }
}

fn tick(map: &Map, shades: &Shades, value: f64) -> String {
    let reach = shades.low.abs().max(shades.high.abs());
    if map.signed() { map.number(value, usize::from(reach < 10.0)) } else { figure(value, "") }
}

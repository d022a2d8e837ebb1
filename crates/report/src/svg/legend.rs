//! The legend of a map: what each sign on it means.

use super::canvas::{Anchor, Canvas, INK, MUTED, PAPER, measured, short};
use super::signs::{dot, ring, star};
use crate::block::Map;
use crate::map::{CellMark, NAME};
use crate::plain::plain;

#[derive(Clone, Debug, PartialEq)]
enum Sign {
    Star,
    Dot,
    Ring,
    Gap,
    Region(String),
}

/// What each mark means, in lines below the map.
pub struct Legend {
    /// Left end, line, sign and words.
    entries: Vec<(f64, usize, Sign, String)>,
    pub width: f64,
    pub top: f64,
}

const LINE: f64 = 21.0;

impl Legend {
    pub fn new(map: &Map, room: f64) -> Legend {
        let mut signs: Vec<(Sign, String)> = Vec::new();
        for (at, words) in map.region_words() {
            let name = plain(&map.regions[at].name, NAME);
            let kind = words.strip_prefix(&name).unwrap_or("").trim().to_string();
            signs.push((Sign::Region(name), kind));
        }
        let fixed = [
            (map.has(CellMark::Best), Sign::Star, "best"),
            (map.has(CellMark::AsGood), Sign::Dot, "as good as the best"),
            (map.own().is_some(), Sign::Ring, "the setting before"),
            (map.has_gaps(), Sign::Gap, "not measured"),
        ];
        signs.extend(fixed.into_iter().filter(|(is, ..)| *is).map(|(_, sign, words)| (sign, words.into())));
        let (mut entries, mut x, mut line, mut width) = (Vec::new(), 0.0, 0, 0.0_f64);
        for (sign, words) in signs {
            let wide = sign.width() + 7.0 + measured(&words, 12.0);
            if x > 0.0 && x + wide > room {
                (x, line) = (0.0, line + 1);
            }
            entries.push((x, line, sign, words));
            width = width.max(x + wide);
            x += wide + 18.0;
        }
        Legend { entries, width: width.ceil(), top: 0.0 }
    }

    pub fn height(&self) -> f64 {
        self.entries.last().map_or(0.0, |(_, line, ..)| LINE * (*line + 1) as f64)
    }

    pub fn draw(&self, canvas: &mut Canvas) {
        canvas.raw("<g class=\"legend\">\n");
        for (x, line, sign, words) in &self.entries {
            let y = self.top + LINE * *line as f64 + 10.0;
            let (wide, middle) = (sign.width(), x + sign.width() / 2.0);
            match sign {
                Sign::Star => star(canvas, [middle, y]),
                Sign::Dot => dot(canvas, [middle, y]),
                Sign::Ring => ring(canvas, [middle, y]),
                Sign::Gap => canvas.gap([*x, y - 7.0], [wide, 14.0]),
                Sign::Region(name) => {
                    let ((class, fill), x, y0) = (INK, short(*x), short(y - 7.0));
                    canvas.raw(&format!(
                        "<rect x=\"{x}\" y=\"{y0}\" width=\"{}\" height=\"14\" rx=\"2\" class=\"{class}\" fill=\"{fill}\"/>",
                        short(wide)
                    ));
                    canvas.text([middle, y + 3.6], Anchor::Middle, 10.0, PAPER, name);
                }
            }
            canvas.text([x + wide + 7.0, y + 4.2], Anchor::Start, 12.0, MUTED, words);
        }
        canvas.raw("</g>\n");
    }
}

impl Sign {
    fn width(&self) -> f64 {
        match self {
            Sign::Region(name) => (measured(name, 10.0) + 7.0).max(15.0),
            Sign::Gap => 20.0,
            Sign::Dot => 8.0,
            _ => 15.0,
        }
    }
}

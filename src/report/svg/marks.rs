//! Marks on a map's cells (the best, what is as good, the machine's own setting), and the legend that says so.

use super::canvas::{Anchor, Canvas, INK, MUTED, PAPER, measured, short};
use super::layout::Layout;
use crate::report::block::Map;
use crate::report::map::{Mark, NAME};
use crate::report::plain::plain;

/// From a cell's upper edge to the middle of its marks.
const BAND: f64 = 9.0;

pub fn draw(canvas: &mut Canvas, map: &Map, layout: &Layout) {
    for cell in map.cells() {
        let [x, y] = layout.corner(cell);
        let at = [x + layout.cell[0] - 9.5, y + BAND];
        match map.mark(cell) {
            Some(Mark::Best) => star(canvas, at),
            Some(Mark::AsGood) => dot(canvas, at),
            None => {}
        }
    }
    let Some(own) = map.own() else { return };
    let [x, y] = layout.place(own);
    let height = layout.cell[1];
    let y = match own[1].fract() == 0.0 {
        // In a row of cells it stands where marks do.
        true => y - height / 2.0 + BAND,
        // Between two it keeps off the numbers of the cell that it is drawn on.
        false => {
            let row = layout.origin[1] + ((y - layout.origin[1]) / height).floor() * height;
            let below = y - row;
            let (from, to) = (layout.middle - 12.0, height - 1.0);
            if below > from && below < to {
                row + if below - from < to - below { from } else { to }
            } else {
                y
            }
        }
    };
    ring(canvas, [x, y]);
}

fn star(canvas: &mut Canvas, [x, y]: [f64; 2]) {
    let tip = |at: usize| {
        let (angle, far) =
            (at as f64 * std::f64::consts::PI / 5.0, if at.is_multiple_of(2) { 6.4 } else { 2.7 });
        format!("{} {}", short(x + far * angle.sin()), short(y - far * angle.cos()))
    };
    let tips: Vec<String> = (0..10).map(tip).collect();
    cased(canvas, "star", &format!("M{}Z", tips.join("L")));
}

fn dot(canvas: &mut Canvas, [x, y]: [f64; 2]) {
    cased(canvas, "dot", &format!("M{} {}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z", short(x - 3.0), short(y)));
}

/// Filled, with a light edge that makes it seen on any colour.
fn cased(canvas: &mut Canvas, class: &str, path: &str) {
    let ((ink, fill), (_, edge)) = (INK, PAPER);
    canvas.raw(&format!(
        "<path d=\"{path}\" class=\"{class} {ink} cased\" fill=\"{fill}\" stroke=\"{edge}\" stroke-width=\"2.4\" \
         stroke-linejoin=\"round\" paint-order=\"stroke\"/>\n"
    ));
}

/// A ring with four hairs.
fn ring(canvas: &mut Canvas, [x, y]: [f64; 2]) {
    let [x0, top, bottom, left, right] = [x, y - 7.5, y + 7.5, x - 7.5, x + 7.5].map(short);
    let path = format!(
        "M{} {y0}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0ZM{x0} {top}v4M{x0} {bottom}v-4M{left} {y0}h4M{right} {y0}h-4",
        short(x - 4.0),
        y0 = short(y)
    );
    let (ink, paper) = ((INK.0, INK.1, 1.7), (PAPER.0, PAPER.1, 4.4));
    for (class, colour, width) in [paper, ink] {
        canvas.raw(&format!(
            "<path d=\"{path}\" class=\"own {class} line\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n"
        ));
    }
}

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
            (map.has(Mark::Best), Sign::Star, "best"),
            (map.has(Mark::AsGood), Sign::Dot, "not told apart from the best"),
            (map.own().is_some(), Sign::Ring, "the machine's own setting"),
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

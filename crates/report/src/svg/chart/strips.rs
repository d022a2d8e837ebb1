//! Every sample as a dot, one strip a series, relative to the series' own median.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::rows::{self, HEIGHT, MIDDLE, Row};
use super::scale::{Scaled, Span};
use super::{Drawing, thousand};
use crate::block::{Dot, Scale, Strip};
use crate::html::verdict::worth;

/// How many columns of dots fit side by side.
const COLUMNS: f64 = 110.0;

/// One in this many counted samples may lie outside the drawn range; it is drawn at the edge.
const BEYOND: usize = 50;

/// No more than from nought to twice the median is drawn in place, and no less than this to both
/// sides.
const NARROWEST: f64 = 0.02;

const TITLE: &str = "relative to the median of each series, 1 = the median";

pub fn drawing(strips: &[Strip]) -> Drawing {
    let span = span(strips);
    let scaled = Scaled::new(Scale::Linear, span, [0.02, 0.02]);
    let rows: Vec<Row> = strips
        .iter()
        .map(|strip| Row::new(&strip.label, &strip.figure, &strip.verdict, marks(strip, span, &scaled)))
        .collect();
    let axis = (!strips.is_empty()).then_some(&scaled);
    Drawing { key: key(strips, span), ..Drawing::one(rows::html(&rows, axis, TITLE)) }
}

/// Both ends of what is drawn in place: a sample at a hundred times the median must not press all
/// others into a line.
fn span(strips: &[Strip]) -> Span {
    let all = || strips.iter().flat_map(|strip| &strip.dots).filter(|dot| dot.relative.is_finite());
    let mut far: Vec<f64> = all().filter(|dot| !dot.warm_up).map(|dot| (dot.relative - 1.0).abs()).collect();
    far.sort_by(f64::total_cmp);
    let most = far.len().checked_sub(1 + far.len() / BEYOND).map_or(0.0, |at| far[at]);
    let most = (most * 1.05).clamp(NARROWEST, 1.0);
    let ends = strips.iter().filter_map(|strip| strip.low_high).flatten();
    let within = |value: f64| value.clamp(1.0 - most, 1.0 + most);
    let values = all().map(|dot| dot.relative).chain(ends).map(within);
    let narrowest = [1.0 - NARROWEST, 1.0 + NARROWEST];
    Span::of(Scale::Linear, values.chain(narrowest)).unwrap_or(Span { low: narrowest[0], high: narrowest[1] })
}

fn is_beyond(dot: &Dot, span: Span) -> bool {
    dot.relative < span.low || dot.relative > span.high
}

/// The interval as a wide pale bar, the samples, the median.
fn marks(strip: &Strip, span: Span, scaled: &Scaled) -> String {
    let ink = worth(strip.verdict.kind).ink;
    let place = |value: f64| scaled.place(value.clamp(span.low, span.high)).unwrap_or(0.5);
    let mut out = String::new();
    if let Some([low, high]) = strip.low_high.filter(|ends| ends.iter().all(|end| end.is_finite())) {
        let [low, high] = [place(low), place(high)].map(thousand);
        let _ = write!(out, "<path class=\"interval {ink}\" d=\"M{low} {MIDDLE}H{high}\"/>");
    }
    let dots: Vec<&Dot> = strip.dots.iter().filter(|dot| dot.relative.is_finite()).collect();
    let (mut counted, mut warm, mut far) = (Vec::new(), Vec::new(), Vec::new());
    for (dot, down) in dots.iter().zip(swarm(&dots, place)) {
        let at = [(place(dot.relative) * 1000.0).round() as i64, (MIDDLE + down).round() as i64];
        match dot {
            dot if is_beyond(dot, span) => far.push(at),
            dot if dot.warm_up => warm.push(at),
            _ => counted.push(at),
        }
    }
    let [counted, warm, far] = [counted, warm, far].map(trail);
    for (class, path) in [("dots", &counted), ("dots warm", &warm), ("dots core", &warm), ("dots far", &far)]
    {
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"{class} {ink}\" d=\"{path}\"/>");
        }
    }
    if !dots.is_empty() {
        let _ = write!(out, "<path class=\"median\" d=\"M{} 3v{}\"/>", thousand(place(1.0)), HEIGHT - 6.0);
    }
    out
}

/// Dots as a path, each by its way from the one before: that is a third shorter.
fn trail(mut dots: Vec<[i64; 2]>) -> String {
    dots.sort_unstable();
    let mut path = String::new();
    let mut before = [0, 0];
    for dot in dots {
        let [across, down] = [0, 1].map(|axis| dot[axis] - before[axis]);
        let space = if down < 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(path, "{}{across}{space}{down}h0", if path.is_empty() { 'M' } else { 'm' });
        before = dot;
    }
    path
}

/// How far each dot stands below its row's middle so that neighbours do not cover each other.
fn swarm(dots: &[&Dot], place: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut height = BTreeMap::<i64, usize>::new();
    let ranks: Vec<usize> = dots
        .iter()
        .map(|dot| {
            let next = height.entry((place(dot.relative) * COLUMNS).round() as i64).or_default();
            *next += 1;
            *next - 1
        })
        .collect();
    let most = height.values().copied().max().unwrap_or(1);
    let step = (9.0 / most.div_ceil(2).max(1) as f64).min(4.0);
    // 0, above, below, further above …
    let offset = |rank: usize| rank.div_ceil(2) as f64 * step * if rank % 2 == 1 { -1.0 } else { 1.0 };
    ranks.into_iter().map(offset).collect()
}

/// What the signs mean; only those that occur.
fn key(strips: &[Strip], span: Span) -> String {
    let dots = || strips.iter().flat_map(|strip| &strip.dots);
    let care = strips.iter().any(|strip| worth(strip.verdict.kind).ink == "amber");
    let signs = [
        (true, "k-dot", "one sample"),
        (dots().any(|dot| dot.warm_up), "k-open", "warm-up, not counted"),
        (dots().any(|dot| is_beyond(dot, span)), "k-far", "outside the chart"),
        (true, "k-tick", "median"),
        (strips.iter().any(|strip| strip.low_high.is_some()), "k-bar", "its 95 % interval"),
        (care, "k-care", "read with care"),
    ];
    let shown = signs.iter().filter(|(occurs, ..)| *occurs && !strips.is_empty());
    shown.map(|(_, class, words)| format!("<span><i class=\"{class}\"></i>{words}</span>")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Verdict;

    fn strip(dots: Vec<Dot>) -> Strip {
        let low_high = Some([0.97, 1.03]);
        Strip { label: "s".to_owned(), figure: String::new(), dots, low_high, verdict: Verdict::trusted() }
    }

    fn dot(relative: f64, warm_up: bool) -> Dot {
        Dot { relative, warm_up }
    }

    fn html(strip: Strip) -> String {
        drawing(&[strip]).orders.remove(0).html
    }

    #[test]
    fn every_sample_is_a_dot() {
        let html = html(strip(vec![dot(1.0, false), dot(1.0, false), dot(1.3, true), dot(0.9, false)]));
        let dots = |class: &str| {
            let (_, after) = html.split_once(&format!("class=\"{class} ")).expect("is drawn");
            after.split("/>").next().map_or(0, |path| path.matches("h0").count())
        };
        assert_eq!((dots("dots"), dots("dots far")), (3, 1), "{html}");
        assert_eq!(html.matches("class=\"median\"").count(), 1);
    }

    #[test]
    fn equal_samples_stand_apart() {
        let dots = [dot(1.0, false), dot(1.0, false), dot(1.0, false), dot(1.5, false)];
        let dots: Vec<&Dot> = dots.iter().collect();
        assert_eq!(swarm(&dots, |value| value / 2.0), [0.0, -4.0, 4.0, 0.0]);
    }

    #[test]
    fn a_far_sample_stands_at_the_edge_and_presses_no_other() {
        let mut dots: Vec<Dot> = (0..100).map(|index| dot(0.95 + 0.001 * f64::from(index), false)).collect();
        dots.extend([dot(150.0, false), dot(0.0, true), dot(f64::NAN, false)]);
        let strip = strip(dots);
        let span = span(std::slice::from_ref(&strip));
        assert!(span.low > 0.94 && span.high < 1.06, "{span:?}");
        let html = html(strip);
        assert_eq!(html.matches("h0").count(), 102, "none is left out that has a value");
        assert!(html.contains("dots far") && !html.contains("NaN"), "{html}");
    }
}

//! The signs of a map: the best, what is as good, the host's own setting.

use super::canvas::{Canvas, INK, PAPER, short};

pub fn star(canvas: &mut Canvas, [x, y]: [f64; 2]) {
    let tip = |at: usize| {
        let (angle, far) =
            (at as f64 * std::f64::consts::PI / 5.0, if at.is_multiple_of(2) { 6.4 } else { 2.7 });
        format!("{} {}", short(x + far * angle.sin()), short(y - far * angle.cos()))
    };
    let tips: Vec<String> = (0..10).map(tip).collect();
    cased(canvas, "star", &format!("M{}Z", tips.join("L")));
}

pub fn dot(canvas: &mut Canvas, [x, y]: [f64; 2]) {
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
pub fn ring(canvas: &mut Canvas, [x, y]: [f64; 2]) {
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

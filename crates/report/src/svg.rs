//! Maps as SVG pictures, inside the page and as a file that stands alone, and `chart`, the other
//! charts of the page.
//!
//! Colours of maps are in the attributes, so that a picture shows wherever it goes; the page's
//! style sheet replaces them where it is dark. What a colour says is said by a number, a letter or
//! a mark as well.

mod bar;
mod canvas;
pub mod chart;
mod forest;
mod layout;
mod legend;
mod marks;
mod outline;
mod signs;
#[cfg(test)]
mod tests;

use super::block::Map;
use super::map::{Shades, TITLE, ink};
use super::plain::plain;
pub use canvas::escaped;
use canvas::{Anchor, Canvas, INK, MUTED};
use layout::Layout;

pub use super::map::first as first_map;
pub use forest::forest;

/// Where a picture will be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// In the page, which has a style sheet and may be dark.
    Page,
    /// In a file of its own, on white.
    Alone,
}

/// How many pixels wide the picture of a map is.
pub fn width(map: &Map) -> f64 {
    Layout::new(map).width
}

/// The picture of a map as an SVG element, or as a whole SVG file.
pub fn map(map: &Map, theme: Theme) -> String {
    let layout = Layout::new(map);
    let shades = Shades::of(map);
    let mut canvas = Canvas::new(theme, [layout.width, layout.height]);
    canvas.element("title", &title(map));
    canvas.element("desc", &description(map));
    if theme == Theme::Alone {
        canvas.raw("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        canvas.raw(&format!("<g transform=\"translate({0} {0})\">\n", canvas::BORDER));
    }
    bar::draw(&mut canvas, map, &shades);
    cells(&mut canvas, map, &layout, &shades);
    // What is drawn over the cells lets the pointer through to them.
    canvas.raw("<g pointer-events=\"none\">\n");
    outline::draw(&mut canvas, map, &layout);
    marks::draw(&mut canvas, map, &layout);
    canvas.raw("</g>\n");
    axes(&mut canvas, map, &layout);
    layout.legend.draw(&mut canvas);
    if theme == Theme::Alone {
        canvas.raw("</g>\n");
    }
    canvas.end()
}

fn title(map: &Map) -> String {
    let sides: Vec<String> = map
        .y
        .iter()
        .chain([&map.x])
        .map(|side| plain(&side.title, TITLE))
        .filter(|t| !t.is_empty())
        .collect();
    format!("{} by {}", map.heading(), sides.join(" and "))
}

/// The map for who cannot see it.
fn description(map: &Map) -> String {
    let mut said = format!("A map of {} columns and {} rows.", map.columns(), map.rows());
    let best = map.best.first().filter(|cell| map.value(**cell).is_some());
    if let Some(cell) = best {
        said.push_str(&format!(" Best: {}.", map.said(*cell)));
    }
    if let Some(own) = map.own_words() {
        said.push_str(&format!(" The setting before: {own}."));
    }
    for (at, words) in map.region_words() {
        said.push_str(&format!(" Region {words}: {} cells.", map.regions[at].cells.len()));
    }
    said
}

fn cells(canvas: &mut Canvas, map: &Map, layout: &Layout, shades: &Shades) {
    for cell in map.cells() {
        let [x, y] = layout.corner(cell);
        let [width, height] = layout.cell;
        canvas.raw("<g class=\"cell\">");
        canvas.element("title", &map.said(cell));
        let Some(value) = map.value(cell) else {
            canvas.gap([x, y], layout.cell);
            canvas.raw("</g>\n");
            continue;
        };
        let colour = shades.colour(value);
        canvas.shade([x, y], [width, height], colour);
        if let Some((digits, size)) = layout.numbers {
            let text = map.number(value, digits).replace('-', "\u{2212}");
            let inks = [ink(colour.light), ink(colour.dark)];
            canvas.number([x + width / 2.0, y + layout.middle], size, inks, &text);
        }
        canvas.raw("</g>\n");
    }
}

fn axes(canvas: &mut Canvas, map: &Map, layout: &Layout) {
    let [width, height] = layout.cell;
    let [left, top] = layout.origin;
    let bottom = top + height * map.rows() as f64;
    if let Some(side) = &map.y {
        let text = format!("\u{2191} {}", plain(&side.title, TITLE));
        canvas.text([0.0, top - 9.0], Anchor::Start, 12.0, INK, text.trim_end());
        for (row, label) in side.labels.iter().enumerate() {
            let at = [left - 8.0, layout.corner([row, 0])[1] + layout.middle + 4.3];
            canvas.text(at, Anchor::End, 12.0, MUTED, &plain(label, super::map::LABEL));
        }
    }
    for (column, label) in map.x.labels.iter().enumerate() {
        let (centre, label) = (left + (column as f64 + 0.5) * width, plain(label, super::map::LABEL));
        if layout.slanted {
            canvas.slanted([centre + 5.0, bottom + 13.0], &label)
        } else {
            canvas.text([centre, bottom + 17.0], Anchor::Middle, 12.0, MUTED, &label)
        }
    }
    let text = format!("{} \u{2192}", plain(&map.x.title, TITLE));
    canvas.text([layout.x_title[0], layout.x_title[1]], Anchor::End, 12.0, INK, text.trim_start());
}

//! Writing SVG: escaped texts, short numbers, colours for both kinds of pages.

use std::fmt::Write;

use super::Theme;
use crate::map::Colour;

/// White space around a picture that stands alone.
pub const BORDER: f64 = 16.0;

/// The page's own font, by name: pictures are looked at without the page as well.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";

/// A colour of a light page, and the class that stands for it in the style sheet.
pub type Role = (&'static str, &'static str);
pub const INK: Role = ("ink", "#171c26");
pub const MUTED: Role = ("muted", "#5c6577");
pub const PAPER: Role = ("paper-ink", "#ffffff");

#[derive(Clone, Copy, PartialEq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

pub struct Canvas {
    out: String,
    theme: Theme,
}

impl Canvas {
    pub fn new(theme: Theme, size: [f64; 2]) -> Canvas {
        let border = if theme == Theme::Alone { 2.0 * BORDER } else { 0.0 };
        let [width, height] = size.map(|side| (side + border).ceil());
        let space = if theme == Theme::Alone { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
        let out = format!(
            "<svg{space} class=\"map\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\">\n"
        );
        Canvas { out, theme }
    }

    pub fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// Markup of our own.
    pub fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// An element with nothing but a text.
    pub fn element(&mut self, name: &str, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "<{name}>{}</{name}>", escaped(text));
    }

    pub fn text(&mut self, at: [f64; 2], anchor: Anchor, size: f64, role: Role, text: &str) {
        if text.is_empty() {
            return;
        }
        let ((class, fill), anchor) = (role, anchored(anchor));
        let (x, y) = (short(at[0]), short(at[1]));
        let text = escaped(text);
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\"{anchor} font-size=\"{}\" class=\"{class}\" fill=\"{fill}\">{text}</text>",
            short(size)
        );
    }

    /// A label that rises to its end.
    pub fn slanted(&mut self, at: [f64; 2], text: &str) {
        let (x, y) = (short(at[0]), short(at[1]));
        let ((class, fill), text) = (MUTED, escaped(text));
        let _ = writeln!(
            self.out,
            "<text transform=\"translate({x} {y}) rotate(-45)\" text-anchor=\"end\" font-size=\"12\" \
             class=\"{class}\" fill=\"{fill}\">{text}</text>"
        );
    }

    /// A number in the middle of a cell, in its ink on a light and on a dark page.
    pub fn number(&mut self, at: [f64; 2], size: f64, inks: [&str; 2], text: &str) {
        let dark = self.dark(inks[1]);
        // Half the height of a digit below the middle.
        let (x, y) = (short(at[0]), short(at[1] + 0.36 * size));
        let _ = write!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"{}\" class=\"shade n\" fill=\"{}\"{dark}>{}</text>",
            short(size),
            inks[0],
            escaped(text)
        );
    }

    /// The ground of a cell.
    pub fn shade(&mut self, corner: [f64; 2], size: [f64; 2], colour: Colour) {
        let dark = self.dark(&hex(colour.dark));
        let [x, y] = corner.map(|at| short(at + 0.5));
        let [width, height] = size.map(|side| short(side - 1.0));
        let _ = write!(
            self.out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" class=\"shade\" fill=\"{}\"{dark}/>",
            hex(colour.light)
        );
    }

    /// A step of the colour bar; neighbours overlap so that nothing shines through.
    pub fn step(&mut self, at: [f64; 2], size: [f64; 2], colour: Colour) {
        let dark = self.dark(&hex(colour.dark));
        let ([x, y], [width, height]) = (at.map(short), size.map(short));
        let _ = write!(
            self.out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"shade\" fill=\"{}\"{dark}/>",
            hex(colour.light)
        );
    }

    /// A cell where nothing was measured.
    pub fn gap(&mut self, corner: [f64; 2], size: [f64; 2]) {
        let [x, y] = corner.map(|at| short(at + 1.5));
        let [width, height] = size.map(|side| short(side - 3.0));
        let middle = [corner[0] + size[0] / 2.0, corner[1] + size[1] / 2.0];
        let half = (size[0].min(size[1]) / 4.0).min(6.0);
        let ([from, above], [to, below]) =
            (middle.map(|at| short(at - half)), middle.map(|at| short(at + half)));
        // The pointer finds the whole of it.
        let _ = write!(
            self.out,
            "<path d=\"M{x} {y}h{width}v{height}h-{width}Z\" class=\"gap\" fill=\"none\" pointer-events=\"all\" \
             stroke=\"#a9b0bd\" stroke-dasharray=\"2 2\"/><path d=\"M{from} {below}L{to} {above}\" class=\"gap\" \
             fill=\"none\" stroke=\"#a9b0bd\"/>"
        );
    }

    fn dark(&self, colour: &str) -> String {
        match self.theme {
            Theme::Page => format!(" style=\"--dark:{colour}\""),
            Theme::Alone => String::new(),
        }
    }
}

fn anchored(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    }
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A place with at most one decimal.
pub fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_string(),
        Some(whole) => whole.to_string(),
        None => text,
    }
}

/// Text that is nothing but text, in elements and in attributes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no place for these, not even escaped.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The width of a text in pixels at this size, estimated on the large side: the font is unknown.
pub fn measured(text: &str, size: f64) -> f64 {
    let share = |c: char| match c {
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.98,
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' | '·' | '!' | '(' | ')' | '/' => 0.38,
        '+' | '\u{2212}' | '→' | '↑' => 0.84,
        'a'..='z' => 0.6,
        'A'..='Z' => 0.74,
        c if u32::from(c) >= 0x1100 => 1.05,
        _ => 0.64,
    };
    text.chars().map(share).sum::<f64>() * size
}

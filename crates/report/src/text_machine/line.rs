//! Lines of spans: what is drawn, before it becomes coloured or plain text.

use anstyle::{AnsiColor, Style as Paint};

use super::Style;

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Title,
    Frame,
    Cpu,
    Muted,
    Warning,
}

/// One line of the picture.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(Role, String)>);

impl Line {
    pub fn of(role: Role, text: impl Into<String>) -> Line {
        Line(vec![(role, text.into())])
    }

    pub fn push(&mut self, role: Role, text: impl Into<String>) {
        self.0.push((role, text.into()));
    }

    pub fn append(&mut self, other: Line) {
        self.0.extend(other.0);
    }

    /// Columns: one per character, as all that is drawn is of single width but for names in wide
    /// scripts.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Drops what stands behind `width` columns.
    pub fn cut(&mut self, width: usize) {
        let mut room = width;
        for (_, text) in &mut self.0 {
            let count = text.chars().count();
            if count > room {
                *text = text.chars().take(room).collect();
            }
            room = room.saturating_sub(count);
        }
    }

    pub fn pad(&mut self, width: usize) {
        let missing = width.saturating_sub(self.width());
        if missing > 0 {
            self.push(Role::Plain, " ".repeat(missing));
        }
    }
}

fn paint(role: Role) -> Paint {
    match role {
        Role::Plain => Paint::new(),
        Role::Title => Paint::new().bold(),
        Role::Frame => Paint::new().dimmed(),
        Role::Cpu => AnsiColor::Cyan.on_default(),
        Role::Muted => AnsiColor::BrightBlack.on_default(),
        Role::Warning => AnsiColor::Yellow.on_default(),
    }
}

pub(super) fn render(lines: &[Line], style: &Style) -> String {
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (role, span) in &line.0 {
            let paint = paint(*role);
            if style.color && paint != Paint::new() && !span.trim().is_empty() {
                text.push_str(&format!("{paint}{span}{paint:#}"))
            } else {
                text.push_str(span)
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    if style.unicode { out } else { ascii(&out) }
}

/// Only our own marks are replaced: foreign text went through `plain` and keeps its letters.
fn ascii(text: &str) -> String {
    let replaced = |c: char| match c {
        '┌' | '┐' | '└' | '┘' => '+',
        '─' => '-',
        '│' => '|',
        '×' => 'x',
        '·' => ';',
        '…' => '~',
        'µ' => 'u',
        c => c,
    };
    text.chars().map(replaced).collect()
}

//! The first screen as a terminal shows it: at most 40 lines, nothing cut.

use super::super::plain::{lines, plain};
use super::findings::{checks, findings};
use super::numbers::{spread, three};
use super::picture::picture;
use super::{LONGEST, Style, paint};
use crate::screen::{HostPart, Row, RowReading, Screen, Tone};

/// Which parts of a screen are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The verdict and the findings alone.
    pub quiet: bool,
    /// Every check, one line each, in place of the figures.
    pub checks: bool,
    /// The key of each figure below it.
    pub keys: bool,
}

/// More lines than this are no first screen.
const LINES: usize = 40;

/// Columns of a line of figures.
struct Columns {
    /// Of the group's name; 0: the label says it.
    group: usize,
    label: usize,
    /// Before and behind the decimal point.
    whole: usize,
    decimals: usize,
    unit: usize,
    /// 0: it is left out.
    spread: usize,
    /// 0: it is left out.
    typical: usize,
    /// Whether there is room for what is to be added to a reading.
    extras: bool,
    /// Whether it takes the place of the words that say that there is no reference.
    instead: bool,
}

/// Decimals of a value, with the point.
const DECIMALS: usize = 4;

/// Columns that ± takes beside its unit's.
const SPREAD: usize = 6;

/// The title over readings.
const READING: &str = "reading";

/// A terminal with fewer columns has no column of groups, one with fewer still no room for what is
/// typical, and the narrowest none for intervals.
const WIDE: usize = 98;
const NARROW: usize = 80;
const NARROWEST: usize = 60;

impl Columns {
    fn of(rows: &[Row], style: Style) -> Columns {
        let longest = |part: &dyn Fn(&Row) -> String| {
            rows.iter().map(|row| shown(&part(row), style).chars().count()).max().unwrap_or(0)
        };
        let whole = 1 + longest(&|row| number(row).0);
        let typical = longest(&|row| row.typical.clone());
        // A column in which nothing stands gives its room to the names.
        let spread = match longest(&interval) {
            0 => 0,
            _ => longest(&|row| format!("{} {}", unit_of(row), interval(row))).saturating_sub(6).max(7),
        };
        let without = |typical: usize, room: usize| {
            (if typical == 0 { room } else { 0 }) + if spread == 0 { SPREAD } else { 0 }
        };
        let (decimals, unit) = (DECIMALS, 7);
        match style.width {
            width if width >= WIDE => {
                let freed = without(typical, 15);
                // What is no key figure has a longer name; it takes the room of what is added.
                let label = longest(&|row| row.label.clone()).clamp(25, width - 73 + freed);
                let extras = label <= 27 + freed || width >= 110;
                let whole = whole.max(6);
                let typical = if typical == 0 { 0 } else { (typical + 1).max(15) };
                Columns { group: 10, label, whole, decimals, unit, spread, typical, extras, instead: true }
            }
            width if width >= NARROW => {
                let label = longest(&|row| row.alone.clone()).clamp(24, 24 + without(typical, 13));
                let whole = whole.max(6);
                let typical = if typical == 0 { 0 } else { (typical + 2).max(13) };
                let (extras, instead) = (false, true);
                Columns { group: 0, label, whole, decimals, unit, spread, typical, extras, instead }
            }
            // Each column is as wide as what stands in it; names have the rest.
            width => {
                let decimals = longest(&|row| number(row).1);
                let unit = 1 + longest(&|row| unit_of(row).to_string());
                let room = longest(&|row| format!("{} {}", unit_of(row), interval(row)));
                let spread = if width < NARROWEST { 0 } else { (room + 1).saturating_sub(unit).max(4) };
                let (typical, extras, instead) = (0, false, false);
                let own =
                    Columns { group: 0, label: 0, whole, decimals, unit, spread, typical, extras, instead };
                let bare = Style { color: false, ..style };
                let reading = longest(&|row| reading(row, &own, bare)).max(READING.len());
                let taken = own.before_reading() + reading;
                let label = longest(&|row| row.alone.clone()).min(width.saturating_sub(taken)).max(12);
                Columns { label, ..own }
            }
        }
    }

    /// Where readings begin.
    fn before_reading(&self) -> usize {
        let gap = if self.group > 0 { 3 } else { 2 };
        let spread = self.spread.saturating_sub(1);
        self.point() + self.decimals + 1 + self.unit + spread + gap + self.typical
    }

    /// Where the values' decimal point stands.
    fn point(&self) -> usize {
        2 + self.group + self.label + self.whole
    }
}

/// A value before its decimal point, and from it on.
fn number(row: &Row) -> (String, String) {
    let value = row.value.map_or(String::new(), three);
    let point = value.find('.').unwrap_or(value.len());
    (value[..point].to_string(), value[point..].to_string())
}

fn unit_of(row: &Row) -> &str {
    if row.value.is_some() { &row.unit } else { "" }
}

fn interval(row: &Row) -> String {
    row.value.map_or(String::new(), |value| spread(value, row.low_high))
}

/// The screen, at most `style.width` columns wide. On a narrow terminal that would need more than
/// 40 lines, all sentences but the first, the remarks, then figures that are not slow are left out.
pub fn render(screen: &Screen, wanted: Wanted, closing: &[Vec<String>], style: Style) -> String {
    let is_long = |text: &str| text.lines().count() > LINES;
    let mut text = whole(screen, wanted, closing, style);
    if style.width >= NARROW || wanted.quiet || wanted.checks || wanted.keys || !is_long(&text) {
        return text;
    }
    let mut less = screen.clone();
    less.sentences.truncate(1);
    text = whole(&less, wanted, closing, style);
    if is_long(&text) {
        less.remarks.clear();
        text = whole(&less, wanted, closing, style);
    }
    let mut left_out = 0;
    while is_long(&text) {
        let last = |sign: &char| less.rows.iter().rposition(|row| row.reading.sign == *sign);
        let Some(at) = ['–', '●', '▲'].iter().find_map(last) else { break };
        less.rows.remove(at);
        left_out += 1;
        let more = format!("{} more: --all prints {}", left_out, if left_out == 1 { "it" } else { "them" });
        less.remarks = vec![(String::new(), more)];
        text = whole(&less, wanted, closing, style);
    }
    text
}

fn whole(screen: &Screen, wanted: Wanted, closing: &[Vec<String>], style: Style) -> String {
    let style = Style { width: style.width.clamp(40, 140), ..style };
    let mut head = host(&screen.host, style);
    for notice in &screen.notices {
        let text = lines(&shown(&plain(notice, LONGEST), style), style.width);
        head.extend(text.iter().map(|line| paint(line, Tone::Care, style)));
    }
    head.push(String::new());
    head.extend(verdict(screen, style));
    let mut figures = Vec::new();
    if !wanted.quiet && !wanted.checks {
        figures.extend(self::figures(screen, wanted, style));
        for block in &screen.blocks {
            let lines = picture(block, style);
            figures.extend((!figures.is_empty() && !lines.is_empty()).then(String::new));
            figures.extend(lines);
        }
    }
    let checks = if wanted.checks { checks(screen, style) } else { Vec::new() };
    let closing = match wanted.quiet {
        true => Vec::new(),
        false if screen.next.is_empty() => self::closing(closing, style),
        false => {
            [self::closing(std::slice::from_ref(&screen.next), style), self::closing(closing, style)].concat()
        }
    };
    let parts = [head.len(), figures.len(), checks.len(), closing.len()];
    let taken: usize = parts.iter().map(|lines| lines + 1).sum();
    let findings = match (wanted.checks, wanted.quiet) {
        (true, _) => Vec::new(),
        (_, true) => findings(screen, usize::MAX, style),
        _ => findings(screen, LINES.saturating_sub(taken).max(3), style),
    };
    let parts = [head, figures, checks, findings, closing];
    let filled: Vec<String> =
        parts.iter().filter(|part| !part.is_empty()).map(|part| part.join("\n") + "\n").collect();
    filled.join("\n")
}

/// Text as the locale shows it. Signs that need more than one letter are written out, so that
/// columns are laid out by what is printed.
pub(crate) fn shown(text: &str, style: Style) -> String {
    if style.unicode { text.to_string() } else { crate::plain::spelled_out(text) }
}

pub(crate) fn host(parts: &[HostPart], style: Style) -> Vec<String> {
    let dot = shown(" · ", style);
    let join = |parts: &[&str]| {
        let kept: Vec<String> = parts.iter().map(|part| shown(&plain(part, LONGEST), style)).collect();
        kept.join(&dot)
    };
    let fits = |line: &str| line.chars().count() <= style.width;
    let long: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    if fits(&join(&long)) {
        return vec![join(&long)];
    }
    let short = |part: &HostPart| if part.short.is_empty() { part.text.clone() } else { part.short.clone() };
    let mut kept: Vec<(String, bool)> = parts.iter().map(|part| (short(part), part.spare)).collect();
    let line =
        |kept: &[(String, bool)]| join(&kept.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>());
    while !fits(&line(&kept)) {
        let Some(last) = kept.iter().rposition(|(_, spare)| *spare) else { break };
        kept.remove(last);
    }
    lines(&line(&kept), style.width)
}

/// The verdict's word, and its sentences behind and below it.
pub(crate) fn verdict(screen: &Screen, style: Style) -> Vec<String> {
    let word = shown(&screen.word, style);
    let sentences: Vec<String> =
        screen.sentences.iter().map(|text| shown(&plain(text, LONGEST), style)).collect();
    let room = style.width.saturating_sub(2).max(30);
    // The word takes its place as if it were one of the text.
    let mark = "\u{1}".repeat(word.chars().count() + 2);
    let wrap = |text: String| lines(&text, room);
    let first = sentences.first().cloned().unwrap_or_default();
    let rest = sentences.get(1..).unwrap_or_default().join(" ");
    let mut all = if style.width >= 96 {
        let mut all = wrap(format!("{mark} {first}"));
        all.extend(wrap(rest));
        all
    } else {
        wrap(format!("{mark} {first} {rest}"))
    };
    if let Some(line) = all.first_mut() {
        let painted = format!("{}  ", paint(&word, screen.tone, style));
        *line = line.replacen(&mark, &painted, 1).trim_end().to_string();
    }
    all.into_iter().map(|line| format!("  {line}")).collect()
}

/// A text of this width, from the left or from the right.
pub(super) fn left(text: &str, width: usize) -> String {
    format!("{text:width$}")
}

pub(super) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

fn figures(screen: &Screen, wanted: Wanted, style: Style) -> Vec<String> {
    if screen.rows.is_empty() && screen.remarks.is_empty() {
        return Vec::new();
    }
    let columns = Columns::of(&screen.rows, style);
    let dim = |text: &str| paint(text, Tone::Dim, style);
    let mut all = Vec::new();
    if !screen.rows.is_empty() {
        let mut head = format!("  {}{}", " ".repeat(columns.group), left("figure", columns.label));
        head = left(&head, columns.point().saturating_sub(2)) + "value";
        head = left(&head, columns.point() + columns.decimals + 1 + columns.unit);
        if columns.spread > 0 {
            head += &right(&shown("±", style), columns.spread - 1);
        }
        let gap = if columns.group > 0 { 3 } else { 2 };
        if columns.typical > 0 {
            head += &format!("{}{}", " ".repeat(gap), left("typical", columns.typical));
        } else {
            head += &" ".repeat(gap);
        }
        all.push(dim(&format!("{head}{READING}")));
    }
    let mut group = "";
    for row in &screen.rows {
        let first = row.group != group;
        group = row.group;
        all.extend(figure(row, first, &columns, style));
        if let Some(key) = row.key.as_ref().filter(|_| wanted.keys) {
            all.extend(super::figures::key(key, columns.group + 4, style));
        }
    }
    for (group, text) in &screen.remarks {
        let indent = if columns.group > 0 { columns.group } else { 2 + group.chars().count() };
        let text = lines(&shown(&plain(text, LONGEST), style), style.width.saturating_sub(2 + indent));
        for (at, line) in text.iter().enumerate() {
            let name = if at == 0 { group.as_str() } else { "" };
            all.push(dim(&format!("  {}{line}", left(name, indent))));
        }
    }
    all
}

/// A figure on its line; a name that is longer than its column has lines of its own above it.
fn figure(row: &Row, first: bool, columns: &Columns, style: Style) -> Vec<String> {
    let dim = |text: &str| paint(text, Tone::Dim, style);
    let label = if columns.group > 0 { &row.label } else { &row.alone };
    let mut labels = lines(&shown(&plain(label, LONGEST), style), columns.label);
    let label = labels.pop().unwrap_or_default();
    let group = if first && columns.group > 0 { row.group } else { "" };
    let name = |at: usize, label: &str| {
        let group = if at == 0 { group } else { "" };
        format!("  {}{}", left(group, columns.group), left(label, columns.label))
    };
    let mut all: Vec<String> =
        labels.iter().enumerate().map(|(at, label)| name(at, label).trim_end().to_string()).collect();
    let (whole, decimals) = number(row);
    let mut line = name(labels.len(), &label);
    line += &format!("{}{} ", right(&whole, columns.whole), left(&decimals, columns.decimals));
    let unit = shown(unit_of(row), style);
    // A wide interval takes what its unit leaves.
    let room = columns.unit + columns.spread.saturating_sub(1);
    let spread = if columns.spread > 0 { shown(&interval(row), style) } else { String::new() };
    line += &dim(&format!("{unit}{}", right(&spread, room.saturating_sub(unit.chars().count()))));
    line += if columns.group > 0 { "   " } else { "  " };
    if columns.typical > 0 {
        line += &dim(&left(&shown(&row.typical, style), columns.typical));
    }
    line += &reading(row, columns, style);
    all.push(line.trim_end().to_string());
    all
}

fn reading(row: &Row, columns: &Columns, style: Style) -> String {
    let reading = &row.reading;
    let sign = shown(&reading.sign.to_string(), style);
    let extra = shown(&reading.extra, style);
    // Without a reference there is room for what else is known.
    let word = match (reading.sign, columns.extras) {
        ('–', _) if !extra.is_empty() && columns.instead => {
            // `5.8 × one` says the same as `5.8 × one CPU`; what still has no room is left out.
            let room = style.width.saturating_sub(columns.before_reading() + 2);
            let fits = |extra: &&str| extra.chars().count() <= room;
            let shorter = extra.strip_suffix(" CPU").unwrap_or_default();
            let extra = [extra.as_str(), shorter].into_iter().find(fits).unwrap_or_default();
            return paint(format!("{sign} {extra}").trim_end(), Tone::Dim, style);
        }
        ('–', false) => "",
        // The worse of two words comes first.
        ('?', _) if !columns.extras => reading.word.split(' ').next().unwrap_or_default(),
        _ => reading.word.as_str(),
    };
    let mut text = paint(format!("{sign} {word}").trim_end(), reading.tone, style);
    if reading.wide {
        text += &paint(" ~", Tone::Dim, style);
    }
    if columns.extras && !extra.is_empty() {
        text += &paint(&format!(" {extra}"), Tone::Dim, style);
    }
    text
}

/// A reading cut to this width: as many of its words as fit.
pub(super) fn reading_words(reading: &RowReading, room: usize, style: Style) -> String {
    let sign = shown(&reading.sign.to_string(), style);
    let extra = shown(&reading.extra, style);
    let short = reading.word.split(' ').next().unwrap_or_default();
    let wide = if reading.wide { " ~" } else { "" };
    let words = match (reading.sign, extra.as_str()) {
        ('–', "") => vec![(reading.word.as_str(), String::new()), ("", String::new())],
        // Without a reference there is room for what else is known.
        ('–', extra) => vec![(extra, String::new()), ("", String::new())],
        (_, "") => vec![(reading.word.as_str(), wide.to_string()), (short, wide.to_string())],
        (_, extra) => vec![
            (reading.word.as_str(), format!("{wide} {extra}")),
            (short, format!("{wide} {extra}")),
            (reading.word.as_str(), wide.to_string()),
            (short, wide.to_string()),
        ],
    };
    let fits = |(word, behind): &&(&str, String)| {
        sign.chars().count() + 1 + word.chars().count() + behind.chars().count() <= room
    };
    let (word, behind) = words.iter().find(fits).or(words.last()).cloned().unwrap_or_default();
    let own = paint(format!("{sign} {word}").trim_end(), reading.tone, style);
    format!("{own}{}", paint(&behind, Tone::Dim, style))
}

/// Lines of parts: the first ones on the left, the others where they stand under each other if
/// there is room.
pub(crate) fn closing(rows: &[Vec<String>], style: Style) -> Vec<String> {
    let cell = |text: &String| shown(&plain(text, LONGEST), style);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let fits = 2 + widths.iter().sum::<usize>() + 4 * columns.saturating_sub(1) <= style.width;
    let mut all = Vec::new();
    for row in &rows {
        let cells = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty() || fits);
        let line = match fits {
            true => cells.map(|(at, cell)| left(cell, widths[at])).collect::<Vec<_>>().join("    "),
            // What stands behind the first part is dropped where it does not fit.
            false => {
                let mut cells: Vec<String> = cells.map(|(_, cell)| cell.clone()).collect();
                while cells.len() > 1 && 2 + cells.join("   ").chars().count() > style.width {
                    cells.pop();
                }
                cells.join("   ")
            }
        };
        for line in lines_kept(line.trim_end(), style.width.saturating_sub(2)) {
            all.push(paint(&format!("  {line}"), Tone::Dim, style));
        }
    }
    all
}

/// A line as it is where it fits, else its words on lines.
fn lines_kept(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width { vec![line.to_string()] } else { lines(line, width) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_has_its_columns() {
        let row = |label: &str, value: f64, low_high: Option<[f64; 2]>, typical: &str| Row {
            label: label.to_string(),
            alone: label.to_string(),
            group: "network",
            value: Some(value),
            low_high,
            unit: "1/s".to_string(),
            typical: typical.to_string(),
            ..Row::default()
        };
        let wide = row("netperf interval rate", 19_132.0, Some([12_753.0, 26_628.0]), "");
        let usual = row("a name that is longer than any column of names", 2.5, None, "1–2");
        for (rows, typical) in [(vec![wide.clone()], false), (vec![wide.clone(), usual], true)] {
            let screen = Screen { rows, ..Screen::default() };
            for width in 40..=140 {
                let style = Style { color: false, unicode: true, width };
                let text = render(&screen, Wanted::default(), &[], style);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!(widest <= width, "{widest} of {width}:\n{text}");
                assert_eq!(text.contains("typical"), typical && width >= NARROW, "{width}:\n{text}");
                assert!(
                    width < NARROWEST || text.contains("1/s 1") || text.contains("1/s  "),
                    "{width}:\n{text}"
                );
            }
        }
        let screen = Screen { rows: vec![row("a", 2.0, None, "")], ..Screen::default() };
        let text = render(&screen, Wanted::default(), &[], Style { color: false, unicode: true, width: 80 });
        assert!(!text.contains('±'), "a column is empty:\n{text}");
    }
}

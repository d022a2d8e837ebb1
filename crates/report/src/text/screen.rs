//! The first screen as a terminal shows it: at most 40 lines, nothing cut.

use super::super::plain::{lines, plain};
pub use super::numbers::{bare, spread, three};
use super::picture::picture;
use super::{LONGEST, Style, paint};
use crate::screen::{FindingLine, HostPart, Row, RowReading, Screen, Tone};
use model::Severity;

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

/// Findings on it, where there is no problem among them and where there is.
const FINDINGS: usize = 5;
const WITH_PROBLEMS: usize = 7;

/// Columns of a line of figures.
struct Columns {
    /// Of the group's name; 0: the label says it.
    group: usize,
    label: usize,
    /// Before and behind the decimal point.
    whole: usize,
    unit: usize,
    /// 0: it is left out.
    spread: usize,
    /// 0: it is left out.
    typical: usize,
    /// Whether there is room for what is to be added to a reading.
    extras: bool,
}

/// Decimals of a value, with the point.
const DECIMALS: usize = 4;

impl Columns {
    fn of(rows: &[Row], width: usize) -> Columns {
        let longest =
            |label: fn(&Row) -> &str| rows.iter().map(|row| label(row).chars().count()).max().unwrap_or(0);
        match width {
            width if width >= 96 => {
                // What is no key figure has a longer name; it takes the room of what is added.
                let label = longest(|row| &row.label).clamp(25, width - 73);
                let extras = label <= 27 || width >= 110;
                Columns { group: 10, label, whole: 6, unit: 7, spread: 7, typical: 15, extras }
            }
            width if width >= 80 => {
                Columns { group: 0, label: 24, whole: 6, unit: 7, spread: 7, typical: 13, extras: false }
            }
            width => {
                let rest = width.saturating_sub(2 + 5 + DECIMALS + 8 + 2 + 10);
                let spread = if width >= 60 { 8 } else { 0 };
                let label = longest(|row| &row.alone).min(rest.saturating_sub(spread)).max(12);
                Columns { group: 0, label, whole: 5, unit: 7, spread, typical: 0, extras: false }
            }
        }
    }

    /// Where the values' decimal point stands.
    fn point(&self) -> usize {
        2 + self.group + self.label + self.whole
    }
}

/// The screen, at most `style.width` columns wide.
pub fn render(screen: &Screen, wanted: Wanted, closing: &[Vec<String>], style: Style) -> String {
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
    let columns = Columns::of(&screen.rows, style.width);
    let dim = |text: &str| paint(text, Tone::Dim, style);
    let mut all = Vec::new();
    if !screen.rows.is_empty() {
        let mut head = format!("  {}{}", " ".repeat(columns.group), left("figure", columns.label));
        head = left(&head, columns.point().saturating_sub(2)) + "value";
        head = left(&head, columns.point() + DECIMALS + 1 + columns.unit);
        if columns.spread > 0 {
            head += &right(&shown("±", style), columns.spread - 1);
        }
        let gap = if columns.group > 0 { 3 } else { 2 };
        if columns.typical > 0 {
            head += &format!("{}{}", " ".repeat(gap), left("typical", columns.typical));
        } else {
            head += &" ".repeat(gap);
        }
        all.push(dim(format!("{head}reading").trim_end()));
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
    let value = row.value.map_or(String::new(), three);
    let (whole, decimals) = match value.find('.') {
        Some(point) => value.split_at(point),
        None => (value.as_str(), ""),
    };
    let mut line = name(labels.len(), &label);
    line += &format!("{}{} ", right(whole, columns.whole), left(decimals, DECIMALS));
    let unit = if row.value.is_some() { shown(&row.unit, style) } else { String::new() };
    // A wide interval takes what its unit leaves.
    let room = columns.unit + columns.spread.saturating_sub(1);
    let spread = row.value.map_or(String::new(), |value| shown(&spread(value, row.low_high), style));
    let spread = if columns.spread > 0 { spread } else { String::new() };
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
        ('–', _) if !extra.is_empty() && columns.typical > 0 => {
            return paint(&format!("{sign} {extra}"), Tone::Dim, style);
        }
        ('–', false) => "",
        // The worse of two words comes first.
        ('?', _) if columns.typical == 0 || !columns.extras => {
            reading.word.split(' ').next().unwrap_or_default()
        }
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

/// A reading in so many columns: as many of its words as fit.
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

/// The mark of a finding.
pub fn mark(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Problem => ("✗", Tone::Bad),
        Severity::Warning => ("!", Tone::Care),
        Severity::Note => ("·", Tone::Dim),
    }
}

/// Findings in at most so many lines, the gravest first; what more there are is counted.
fn findings(screen: &Screen, most: usize, style: Style) -> Vec<String> {
    let problems = screen.count(Severity::Problem) > 0;
    let usual = if problems { WITH_PROBLEMS } else { FINDINGS };
    let limit = if most == usize::MAX { usize::MAX } else { usual };
    let mut all: Vec<String> = Vec::new();
    for (at, line) in screen.findings.iter().enumerate() {
        let own = finding(line, style);
        let left = screen.findings.len() - at;
        if at == limit || (all.len() + own.len() + usize::from(left > 1) > most && at > 0) {
            // Where no checks were made, the long form has them.
            let checked = !screen.passed.is_empty() || !screen.not_applicable.is_empty();
            let option = if checked { "--checks" } else { "--all" };
            all.push(paint(&format!("    {left} more: {option} lists them"), Tone::Dim, style));
            break;
        }
        all.extend(own);
    }
    all
}

/// A topic takes at most as many columns.
const TOPIC: usize = 12;

pub(crate) fn finding(line: &FindingLine, style: Style) -> Vec<String> {
    let (sign, tone) = mark(line.severity);
    let topic = shown(&plain(line.topic, 24), style);
    let wide = topic.chars().count().max(TOPIC - 1) + 1;
    let room = style.width.saturating_sub(4 + wide).max(20);
    let told = match line.more_words() {
        more if more.is_empty() => plain(&line.text, LONGEST),
        more => format!("{} ({more})", plain(&line.text, LONGEST)),
    };
    let mut text = lines(&shown(&told, style), room);
    if line.severity == Severity::Problem && !line.advice.is_empty() {
        text.extend(lines(&shown(&plain(&line.advice, LONGEST), style), room));
    }
    let strong = if line.severity == Severity::Note { Tone::Dim } else { Tone::Strong };
    text.iter()
        .enumerate()
        .map(|(at, text)| match at {
            0 => {
                let sign = paint(&shown(sign, style), tone, style);
                format!("  {sign} {}{text}", paint(&left(&topic, wide), strong, style))
            }
            _ => format!("    {}{text}", " ".repeat(wide)),
        })
        .collect()
}

/// Every check, one line each: what was found, then what was looked at and found in order.
fn checks(screen: &Screen, style: Style) -> Vec<String> {
    let mut all = Vec::new();
    let found = screen.findings.iter().flat_map(|line| {
        let mut text = finding(line, style);
        let last = text.last().map_or(0, |line| line.chars().count());
        let rule = paint(&line.rule, Tone::Dim, style);
        match text.last_mut() {
            Some(end) if last + 2 + line.rule.chars().count() <= style.width => *end += &format!("  {rule}"),
            _ => text.push(format!("{}{rule}", " ".repeat(4 + TOPIC))),
        }
        text
    });
    all.extend(found);
    let passed = &screen.passed;
    let text = passed.iter().map(|check| check.text.chars().count()).max().unwrap_or(0);
    let looked = passed.iter().map(|check| check.looked_at.chars().count()).max().unwrap_or(0);
    let rule = passed.iter().map(|check| check.rule.chars().count()).max().unwrap_or(0);
    let with_looked = 4 + text + 2 + looked + 2 + rule <= style.width;
    for check in passed {
        let sign = paint(&shown("✓", style), Tone::Good, style);
        let middle = match with_looked {
            true => paint(&left(&shown(&check.looked_at, style), looked + 2), Tone::Dim, style),
            false => String::new(),
        };
        let line = format!(
            "  {sign} {}{middle}{}",
            left(&shown(&check.text, style), text + 2),
            paint(&check.rule, Tone::Dim, style)
        );
        all.push(line.trim_end().to_string());
    }
    if !screen.not_applicable.is_empty() {
        let text = format!("do not apply: {}", screen.not_applicable.join(", "));
        all.push(String::new());
        all.extend(
            lines(&text, style.width.saturating_sub(2))
                .iter()
                .map(|line| paint(&format!("  {line}"), Tone::Dim, style)),
        );
    }
    all
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

//! The first screen of a comparison: who A and B are, the answer in at most three sentences, a line
//! for each key figure with its place on a forest plot, and what else there is to see.

use super::forest::{RowPoint, columns, end, end_words, said_word, sign, word};
use super::{forest, hosts, left_out, letter, names};
use crate::plain::{ascii, lines, plain};
use crate::text::{Style, Tone, paint, wrapped};
use compare::{Answer, Comparison, GroupAnswer, MAX_ROWS, Outcome, Relation, Row, RowOutcome, ranking};
use diagnose::words::counted;

/// What of a comparison is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    First,
    /// Every figure.
    All,
    /// What is left out, with the reasons.
    LeftOut,
    /// The sentences alone.
    Quiet,
}

/// The exit code of a comparison in which something could not be compared.
pub const NOT_COMPARABLE: u8 = 4;

/// Lines that the first screen has at most.
const MAX_LINES: usize = 40;

/// Warnings shown one by one.
const MAX_WARNINGS: usize = 3;

/// The screen; `exit` is the code that the verb ends with.
pub fn render(found: &[Comparison], shown: Shown, exit: u8, style: Style) -> String {
    // There are fewer rows where sentences take many lines.
    let fits = |rows: &usize| written(found, shown, *rows, exit, style).lines().count() <= MAX_LINES;
    let rows = match shown {
        Shown::First => (4..=MAX_ROWS).rev().find(fits).unwrap_or(4),
        _ => MAX_ROWS,
    };
    let text = written(found, shown, rows, exit, style);
    if style.unicode { text } else { ascii(&text) }
}

fn written(found: &[Comparison], shown: Shown, rows: usize, exit: u8, style: Style) -> String {
    let letters: Vec<String> = (1..=found.len()).map(letter).collect();
    let answers = found.iter().zip(&letters).map(|(one, letter)| match shown {
        Shown::All => one.whole_answer(letter),
        _ => one.answer(letter, rows),
    });
    let answers: Vec<Answer> = answers.collect();
    let mut out = String::new();
    if shown != Shown::Quiet {
        out.push_str(&hosts::heading(found, style));
        out.push('\n');
    }
    out.push_str(&sentences(found, &letters, &answers, style));
    out.push_str(&warnings(found, &letters, shown, style));
    match shown {
        Shown::Quiet => return out,
        Shown::LeftOut => out.push_str(&left_out::text(found, &letters, style)),
        Shown::First | Shown::All => {
            let table = match (found, answers.as_slice()) {
                // A head without rows says nothing.
                (_, all) if all.iter().all(|answer| answer.groups.is_empty()) => String::new(),
                ([one], [answer]) if is_silent(one, answer, shown) => String::new(),
                ([_], [answer]) => one_table(answer, &letters[0], style),
                _ => many_table(found, &answers, &letters, style),
            };
            if !table.is_empty() {
                out.push_str(&format!("\n{table}\n"));
                out.push_str(&hosts::differences(found, &letters, style));
                out.push_str(&legend(&answers, style));
            } else {
                out.push('\n');
            }
        }
    }
    out.push_str(&closing(found, &answers, shown, exit, style));
    out
}

/// Of a conclusion that conditions forbid, what remains is no answer.
fn is_silent(one: &Comparison, answer: &Answer, shown: Shown) -> bool {
    answer.outcome == Outcome::NoConclusion && !one.imported && shown == Shown::First
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Slower | Outcome::NoConclusion => Tone::Care,
        Outcome::Faster => Tone::Good,
        Outcome::Same | Outcome::CannotTell => Tone::Strong,
    }
}

fn sentences(found: &[Comparison], letters: &[String], answers: &[Answer], style: Style) -> String {
    if let [answer] = answers {
        let said = answer.sentences.iter().enumerate();
        let tone = |at: usize| if at == 0 { tone(answer.outcome) } else { Tone::Plain };
        return said.map(|(at, text)| wrapped(&plain(text, 400), 2, tone(at), style)).collect();
    }
    let named = letters.iter().zip(found).zip(answers);
    let named: Vec<(&str, &Comparison, &Answer)> =
        named.map(|((letter, one), answer)| (letter.as_str(), one, answer)).collect();
    let mut out = ranking(&named).map_or(String::new(), |text| wrapped(&text, 2, Tone::Strong, style));
    for (letter, one, answer) in named {
        let few = answers.len() <= MAX_REASONS;
        let said = match answer.outcome {
            // Beside what is nearest, what each holds is no news.
            Outcome::NoConclusion if one.is_apart() && few => {
                let second = if one.nearest.is_some() { 2 } else { 1 };
                let said = [answer.sentences.first(), answer.sentences.get(second)];
                said.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
            }
            Outcome::NoConclusion => answer.sentences.first().cloned().unwrap_or_default(),
            _ => answer.sentences.get(1).filter(|_| few).cloned().unwrap_or_default(),
        };
        // The sentence where nothing is concluded begins with that.
        let text = match said.strip_prefix(&format!("{}: ", answer.word)) {
            _ if said.is_empty() => continue,
            Some(rest) => format!("{} on {letter}: {rest}", answer.word),
            None => format!("{}. {said}", answer.word),
        };
        out.push_str(&wrapped(&plain(&text, 400), 2, Tone::Plain, style));
    }
    out
}

/// Of more results than this only the ranking is shown.
const MAX_REASONS: usize = 3;

/// What is to be known before anything is read.
fn warnings(found: &[Comparison], letters: &[String], shown: Shown, style: Style) -> String {
    let mut all: Vec<String> = Vec::new();
    for (one, letter) in found.iter().zip(letters) {
        let is_said = |text: &&String| one.twins.as_ref() != Some(*text) || found.len() > 1;
        let own = one.warnings.iter().filter(is_said).map(|text| match found.len() {
            1 => text.clone(),
            _ => text.replace("A and B", &format!("A and {letter}")),
        });
        all.extend(own.chain(one.findings.iter().map(|found| found.headline.clone())));
        all.extend(one.curves.iter().map(|curve| {
            format!("{}, {}: {}", curve.title, curve.placements.join(" and "), curve.words(letter))
        }));
    }
    let most = if shown == Shown::First { MAX_WARNINGS } else { usize::MAX };
    let shown: Vec<&String> = all.iter().take(most).collect();
    let mut out = String::new();
    for text in &shown {
        for (at, line) in lines(&plain(text, 400), style.width.saturating_sub(4).max(20)).iter().enumerate() {
            let mark = if at == 0 { paint("!", Tone::Care, style) } else { " ".to_string() };
            out.push_str(&format!("  {mark} {line}\n"));
        }
    }
    if all.len() > shown.len() {
        out.push_str(&format!("    {} more warnings: --all\n", all.len() - shown.len()));
    }
    out
}

/// Columns of the table of one result against A, for a width.
struct Widths {
    label: usize,
    values: [usize; 2],
    unit: usize,
    ratio: usize,
    plot: usize,
    word: usize,
}

impl Widths {
    fn of(width: usize, unit: usize) -> Widths {
        let odd = |columns: usize| columns - (columns + 1) % 2;
        match width {
            100.. => Widths {
                label: 30,
                values: [7, 8],
                unit: unit + 2,
                ratio: 5,
                plot: odd((width - 72 - unit).min(41)),
                word: 16,
            },
            80..100 => Widths {
                label: 29,
                values: [7, 8],
                unit: unit + 1,
                ratio: 5,
                plot: odd(width - 63 - unit),
                word: 11,
            },
            60..80 => Widths { label: 28, values: [7, 8], unit: unit + 1, ratio: 5, plot: 0, word: 0 },
            _ => Widths { label: 27, values: [0, 0], unit: 0, ratio: 6, plot: 0, word: 0 },
        }
    }
}

/// What a row's cells hold.
struct Cells<'a> {
    label: &'a str,
    values: [String; 2],
    unit: &'a str,
    ratio: String,
    plot: String,
    word: String,
    tone: Tone,
    strong: bool,
}

fn one_table(answer: &Answer, letter: &str, style: Style) -> String {
    let rows = || answer.groups.iter().flat_map(|group| &group.rows);
    let unit = rows().map(|row| row.unit.chars().count()).max().unwrap_or(0).clamp(6, 10);
    let widths = Widths::of(style.width, unit);
    let end = end(&answer.groups);
    let mut out = line(&widths, &heading(&widths, letter, end), style);
    for group in &answer.groups {
        out.push_str(&line(&widths, &of_group(&widths, group, end, style), style));
        for row in &group.rows {
            out.push_str(&of_row(&widths, row, end, style));
        }
    }
    out
}

fn heading<'a>(widths: &Widths, letter: &'a str, end: f64) -> Cells<'a> {
    let [low, high] = end_words(end);
    let middle = widths.plot / 2;
    // An end's number stands over its edge, as far as it fits.
    let mut plot: Vec<char> = vec![' '; widths.plot];
    if widths.plot > 0 {
        let right = widths.plot - high.chars().count();
        for (at, text) in [(0, low.as_str()), (middle, "1"), (right, high.as_str())] {
            text.chars().enumerate().for_each(|(place, sign)| plot[at + place] = sign);
        }
    }
    Cells {
        label: "",
        values: ["A".to_string(), letter.to_string()],
        unit: "unit",
        ratio: format!("{letter} ÷ A"),
        plot: plot.into_iter().collect(),
        word: if widths.word > 0 { format!("{letter} is") } else { String::new() },
        tone: Tone::Dim,
        strong: false,
    }
}

fn of_group<'a>(widths: &Widths, group: &'a GroupAnswer, end: f64, style: Style) -> Cells<'a> {
    let said = group.said.as_ref();
    Cells {
        label: group.group.word(),
        values: [String::new(), String::new()],
        unit: "",
        ratio: group.pooled.as_ref().map_or("–".to_string(), |pooled| format!("{:.2}", pooled.ratio)),
        plot: columns(&RowPoint::of_group(group), widths.plot, end, style.unicode),
        word: match (widths.word, said) {
            (0, None) if group.rows.iter().any(|row| row.word().is_some()) => "?".to_string(),
            (0, said) => sign(said.map(|said| said.0), style.unicode).to_string(),
            (_, None) => forest::uncounted(group).to_string(),
            (room, Some((word, words))) => said_word(*word, words, room < 16),
        },
        tone: tone_of(said.map(|said| said.0)),
        strong: true,
    }
}

fn tone_of(word: Option<Relation>) -> Tone {
    match word {
        Some(Relation::Slower) => Tone::Care,
        Some(Relation::Faster) => Tone::Good,
        Some(Relation::Higher | Relation::Lower) => Tone::Plain,
        _ => Tone::Dim,
    }
}

/// A figure's line; a long name takes lines of its own above.
fn of_row(widths: &Widths, row: &Row, end: f64, style: Style) -> String {
    let indent = if style.width >= 100 { 4 } else { 3 };
    let label = match row.figure {
        Some(figure) => figure.label.to_string(),
        None => names::short(&row.title, &row.key),
    };
    let mut parts = lines(&plain(&label, 200), widths.label - indent);
    let last = parts.pop().unwrap_or_default();
    let mark = match &row.said {
        RowOutcome::Left(..) => RowPoint::left_out(row),
        RowOutcome::Counted(..) => RowPoint::of(row),
    };
    let is_inside = mark.ratio.is_some_and(|ratio| ratio.max(1.0 / ratio) <= end);
    let mark = match row.said {
        // A point would be read as a result.
        RowOutcome::Left(..) if is_inside => RowPoint { ratio: None, ..mark },
        _ => mark,
    };
    let ratio = match row.ratio.filter(|_| !row.wide) {
        Some(ratio) => ratio_words(ratio),
        None => "–".to_string(),
    };
    let cells = Cells {
        label: &format!("{:1$}{last}", "", indent - 2),
        values: values(row.values),
        unit: &row.unit,
        ratio,
        plot: columns(&mark, widths.plot, end, style.unicode),
        word: match widths.word {
            0 => sign(row.word(), style.unicode).to_string(),
            room => word(&row.said, room < 16),
        },
        tone: tone_of(row.word()),
        strong: false,
    };
    let above: String = parts.iter().map(|part| format!("{:indent$}{part}\n", "")).collect();
    above + &line(widths, &cells, style)
}

/// A ratio in at most five columns.
fn ratio_words(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 10.0 => format!("{ratio:.2}"),
        ratio if ratio < 100.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

fn line(widths: &Widths, cells: &Cells, style: Style) -> String {
    let tone = if cells.strong { Tone::Strong } else { Tone::Plain };
    let label = format!("  {:1$}", cells.label, widths.label - 2);
    let mut out = paint(&label, tone, style);
    if widths.values[0] > 0 {
        let [a, b] = &cells.values;
        out.push_str(&format!("{a:>0$}{b:>1$}", widths.values[0], widths.values[1]));
        let gap =
            widths.unit - widths.unit.min(if style.width >= 100 { widths.unit - 2 } else { widths.unit - 1 });
        let unit = format!("{:gap$}{:2$}", "", cells.unit, widths.unit - gap);
        out.push_str(&paint(&unit, Tone::Dim, style));
    }
    out.push_str(&format!("{:>1$}", cells.ratio, widths.ratio));
    let gap = if style.width >= 100 { "  " } else { " " };
    if widths.plot > 0 {
        out.push_str(&format!("{gap}{}", paint(&cells.plot, Tone::Plain, style)));
    }
    out.push_str(&format!("{gap}{}", paint(&cells.word, cells.tone, style)));
    out.trim_end().to_string() + "\n"
}

/// Both values with the digits of the larger, three of them significant.
pub fn values(values: [f64; 2]) -> [String; 2] {
    let largest = values.iter().filter(|value| value.is_finite()).fold(0.0_f64, |a, b| a.max(b.abs()));
    let digits = if largest > 0.0 { (2 - largest.log10().floor() as i32).clamp(0, 6) as usize } else { 0 };
    values.map(|value| match value {
        value if !value.is_finite() => "–".to_string(),
        _ if !(1e-4..1e5).contains(&largest) => model::figure(value, ""),
        value => format!("{value:.digits$}"),
    })
}

/// The answer whose rows are shown of all: the first that has some.
fn leading(answers: &[Answer]) -> Option<&Answer> {
    answers.iter().find(|answer| !answer.groups.is_empty())
}

/// Several results against A: a ratio and a sign for each.
fn many_table(found: &[Comparison], answers: &[Answer], letters: &[String], style: Style) -> String {
    // Each has rows of its own; those of one are shown of all.
    let wholes = found.iter().zip(letters).map(|(one, letter)| one.whole_answer(letter));
    let wholes: Vec<Answer> = wholes.collect();
    const LABEL: usize = 28;
    const VALUE: usize = 8;
    const UNIT: usize = 7;
    const EACH: usize = 9;
    let with_value = style.width >= LABEL + VALUE + UNIT + 2 * EACH;
    let taken = if with_value { LABEL + VALUE + UNIT } else { LABEL };
    let fit = (style.width.saturating_sub(taken) / EACH).max(1).min(answers.len());
    let Some(first) = leading(answers) else { return String::new() };
    let cell = |ratio: Option<f64>, said: Option<Relation>| {
        let ratio = ratio.map_or("–".to_string(), ratio_words);
        let sign = paint(&sign(said, style.unicode).to_string(), tone_of(said), style);
        format!("{ratio:>7} {sign}")
    };
    let value = |a: &str, unit: &str| {
        if with_value { format!("{a:>VALUE$} {unit:<0$}", UNIT - 1) } else { String::new() }
    };
    let heads = letters[..fit].iter().map(|letter| format!("{:>7}  ", format!("{letter} ÷ A")));
    let head = format!("{:LABEL$}{}{}", "", value("A", "unit"), heads.collect::<String>());
    let mut out = paint(head.trim_end(), Tone::Dim, style) + "\n";
    for group in &first.groups {
        let of = |answer: &Answer| {
            let own = answer.groups.iter().find(|own| own.group == group.group);
            let ratio = own.and_then(|own| own.pooled.as_ref()).map(|pooled| pooled.ratio);
            cell(ratio, own.and_then(|own| own.said.as_ref()).map(|said| said.0))
        };
        let label = paint(&format!("  {:1$}", group.group.word(), LABEL - 2), Tone::Strong, style);
        let cells: String = wholes[..fit].iter().map(of).collect();
        out.push_str(&format!("{label}{}{cells}\n", value("", "")));
        for row in &group.rows {
            let of = |answer: &Answer| {
                let mut rows = answer.groups.iter().flat_map(|group| &group.rows);
                let own = rows.find(|own| {
                    own.key == row.key
                        || own
                            .figure
                            .is_some_and(|figure| row.figure.is_some_and(|other| other.name == figure.name))
                });
                cell(own.and_then(|own| own.ratio.filter(|_| !own.wide)), own.and_then(Row::word))
            };
            let label = match row.figure {
                Some(figure) => figure.label.to_string(),
                None => names::short(&row.title, &row.key),
            };
            let mut parts = lines(&plain(&label, 200), LABEL - 4);
            let last = parts.pop().unwrap_or_default();
            parts.iter().for_each(|part| out.push_str(&format!("    {part}\n")));
            let cells: String = wholes[..fit].iter().map(of).collect();
            let [a, _] = values(row.values);
            out.push_str(&format!("    {last:0$}{1}{cells}\n", LABEL - 4, value(&a, &row.unit)));
        }
    }
    if fit < answers.len() {
        let rest =
            format!("{}: use a wider terminal, --json or --out compare.html", letters[fit..].join(", "));
        out.push_str(&wrapped(&rest, 2, Tone::Dim, style));
    }
    out
}

fn legend(answers: &[Answer], style: Style) -> String {
    let ratio = if let [_] = answers { "B ÷ A" } else { "Each ratio" };
    let drawn = match (answers.len(), style.width, style.unicode) {
        (1, 80.., true) => "├●┤: 95 % interval.",
        (1, 80.., false) => "|o|: 95 % interval.",
        (_, _, true) => "▲ faster, ▼ slower, ● same, ? cannot tell, – not counted.",
        (_, _, false) => "^ faster, v slower, = same, ? cannot tell, - not counted.",
    };
    let mut rows = answers.iter().flat_map(|answer| &answer.groups).flat_map(|group| &group.rows);
    let unsure = match rows.any(|row| row.word() == Some(Relation::Inconclusive)) {
        true => " cannot tell: interval too wide.",
        false => "",
    };
    wrapped(&format!("{ratio}: above 1 is better. {drawn}{unsure}"), 2, Tone::Dim, style)
}

/// The last lines: what else there is, and the exit code where it is not 0.
fn closing(found: &[Comparison], answers: &[Answer], shown: Shown, exit: u8, style: Style) -> String {
    // Of several results that with most figures; rows are those of the first.
    let all = |one: &Comparison| one.metrics.len() + one.refused.len();
    let total = found.iter().map(all).max().unwrap_or(0);
    let here: usize = match (found, answers) {
        ([one], [answer]) if is_silent(one, answer, shown) => 0,
        _ => leading(answers).map_or(0, |one| one.groups.iter().map(|own| own.rows.len()).sum()),
    };
    let refused = found.iter().map(|one| one.refused.len()).max().unwrap_or(0);
    let mut parts = Vec::new();
    if shown != Shown::All && total > here {
        let figures = counted(answers.iter().map(|answer| answer.both).max().unwrap_or(0), "figure");
        let values = format!("{} of {figures}", counted(total, "value"));
        parts.push(match (shown, here) {
            (Shown::First, 1..) => format!("{values}, {here} shown: --all"),
            _ => format!("{values}: --all"),
        });
    }
    if shown != Shown::LeftOut && refused > 0 {
        parts.push(format!("{refused} of {total} values left out, with reasons: --left-out"));
    }
    if shown != Shown::LeftOut && refused == 0 && found.iter().any(Comparison::is_apart) {
        parts.push("figures that only one has: --left-out".to_string());
    }
    parts.push("page: --out compare.html".to_string());
    // What has nothing to be compared stays so.
    let can_be_allowed = found.iter().all(|one| !one.metrics.is_empty());
    match exit {
        0 => {}
        NOT_COMPARABLE if can_be_allowed => parts.push("exit 4 (0 with --allow-refused)".to_string()),
        other => parts.push(format!("exit {other}")),
    }
    let mut out: Vec<String> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(line) if line.chars().count() + 6 + part.chars().count() + 2 <= style.width => {
                line.push_str("      ");
                line.push_str(&part);
            }
            _ => out.push(part),
        }
    }
    out.iter().map(|line| format!("  {}\n", paint(line, Tone::Dim, style))).collect()
}

//! The page of SPEC's formatter, and of its site: a table of components whose cells say by their
//! classes what they are (`basecol secs`, `peakcol ratio selected`), below a bar with the
//! headlines, with tables of the host. The digits are those of the text.
//!
//! Written after programs that read such pages: no page was available.

use super::lines::half_of_third_digit;
use super::suites::{Year, printed, title};
use super::{Cell, MAX_BANNER, MAX_ROWS, Row, Sheet, Tune, is_component, number};
use crate::kit::Expression;

/// Whether a page is a report: by its table of results, and the classes of its cells.
pub(crate) fn is_one(text: &str) -> bool {
    static CELL: Expression = Expression::new(r"(?i)<t[dh]\b[^<>]*\bbasecol\b");
    text.contains("resultstable") && CELL.is_match(text)
}

/// Cells of a row that are read: three iterations of two tunings have fifteen.
const MAX_CELLS: usize = 64;

/// The text of a piece of a page.
fn plain(piece: &str) -> String {
    static TAG: Expression = Expression::new(r"<[^<>]*>");
    let text = TAG.replace_all(piece, "");
    let text = text.replace("&reg;", "(R)").replace("&#174;", "(R)").replace("&nbsp;", " ");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A cell of a table: whether it is a heading, the words of its class and name, and what is in it.
struct Shown<'t> {
    heading: bool,
    marks: Vec<&'t str>,
    inner: &'t str,
}

/// The rows of all tables of a page.
fn rows(text: &str) -> impl Iterator<Item = Vec<Shown<'_>>> {
    static ROW: Expression = Expression::new(r"(?is)<tr\b[^>]*>(.*?)</tr\s*>");
    static CELL: Expression = Expression::new(r"(?is)<t([dh])\b([^>]*)>(.*?)</t[dh]\s*>");
    let cells = |row: regex::Captures<'_>| {
        let row = row.get(1).map_or("", |row| &text[row.range()]);
        let shown = CELL.captures_iter(row).take(MAX_CELLS).map(|cell| {
            let part = |at: usize| cell.get(at).map_or("", |part| &row[part.range()]);
            Shown { heading: part(1).eq_ignore_ascii_case("h"), marks: marks(part(2)), inner: part(3) }
        });
        shown.collect()
    };
    ROW.captures_iter(text).map(cells)
}

/// The words of the class and the name in a tag.
fn marks(attributes: &str) -> Vec<&str> {
    static MARK: Expression = Expression::new(r#"(?i)\b(?:class|id)\s*=\s*["']([^"'<>]*)["']"#);
    let all = MARK.captures_iter(attributes).filter_map(|found| found.get(1));
    all.flat_map(|found| attributes[found.range()].split_whitespace()).collect()
}

pub(super) fn read(text: &str) -> Sheet {
    static HEADING: Expression = Expression::new(r"(?is)<h1\b[^>]*>(.*?)</h1\s*>");
    let mut sheet = Sheet { documented: true, ..Sheet::default() };
    for found in HEADING.captures_iter(text).take(MAX_BANNER) {
        if let Some(found) = title(&plain(&found[1])) {
            sheet.titled(found);
        }
    }
    for row in rows(text) {
        match row.iter().find(|cell| cell.marks.contains(&"bm")).map(|cell| plain(cell.inner)) {
            Some(name) if is_component(&name) => component(&mut sheet, &name, &row),
            _ => other(&mut sheet, &row),
        }
    }
    if sheet.year == Year::Cpu2006 {
        sheet.speed = !sheet.printed.iter().any(|one| one.title.contains("_rate"));
    }
    let whole = plain(text);
    whole.split_inclusive(". ").for_each(|sentence| sheet.judged(sentence));
    if let Some(at) = whole.find("INVALID RUN") {
        sheet.valid = Some(false);
        sheet.banner.push(whole[at..].chars().take(160).collect());
    }
    sheet
}

/// A row of the table of results: copies or threads, then seconds and ratio of each iteration.
fn component(sheet: &mut Sheet, name: &str, row: &[Shown]) {
    if sheet.rows.len() >= MAX_ROWS {
        sheet.left_out += 1;
        return;
    }
    let (mut chosen, mut ran) = ([Cell::default(), Cell::default()], [false; 2]);
    for (tune, column) in Tune::BOTH.into_iter().zip(["basecol", "peakcol"]) {
        let own = |mark: &'static str| {
            row.iter().filter(move |cell| cell.marks.contains(&column) && cell.marks.contains(&mark))
        };
        // CPU2006 marks them as it does the names.
        let count = own("copies").chain(own("threads")).chain(own("bm")).next();
        let copies = count.and_then(|cell| plain(cell.inner).parse().ok());
        for (seconds, ratio) in own("secs").zip(own("ratio")) {
            let (time, rate) = (number(&plain(seconds.inner)), number(&plain(ratio.inner)));
            let unread = [&time, &rate].into_iter().find_map(|one| one.as_ref().err().cloned());
            let (time, rate) = (time.ok().flatten(), rate.ok().flatten());
            let is_selected = ratio.marks.contains(&"selected")
                || ratio.inner.contains("\"selected\"")
                || ratio.inner.contains("'selected'");
            let rounding = rate.map_or(0.0, half_of_third_digit);
            let status = String::new();
            let cell = Cell { copies, time, rate, rounding, selected: is_selected, status, unread };
            if cell.is_empty() {
                continue;
            }
            ran[tune as usize] = true;
            let mut cells = [Cell::default(), Cell::default()];
            cells[tune as usize] = cell.clone();
            sheet.rows.push(Row { name: name.to_string(), selected_table: false, cells });
            if is_selected {
                chosen[tune as usize] = cell;
            }
        }
    }
    for (cell, ran) in chosen.iter_mut().zip(ran) {
        cell.status = if ran { "" } else { "NR" }.to_string();
    }
    sheet.rows.push(Row { name: name.to_string(), selected_table: true, cells: chosen });
}

/// A row of another table: a headline, or fields of the host.
fn other(sheet: &mut Sheet, row: &[Shown]) {
    static VALUE: Expression =
        Expression::new(r#"(?is)<(?:span|div|p)\b[^>]*class\s*=\s*["'](?:value|metric)["'][^>]*>(.*?)</"#);
    static BREAK: Expression = Expression::new(r"(?i)<br\b[^<>]*>");
    static PARAGRAPH: Expression = Expression::new(r"(?is)<p\b[^>]*>(.*?)</p\s*>");
    for cell in row {
        if cell.marks.contains(&"systembar") {
            let labels = ["Hardware Vendor", "Hardware Model"].into_iter();
            labels.zip(PARAGRAPH.captures_iter(cell.inner)).for_each(|(label, found)| {
                sheet.field(label, &[plain(&found[1])]);
            });
        }
        let words = plain(cell.inner);
        let (name, value) = words.split_once('=').unwrap_or((&words, ""));
        let shown = VALUE.captures(cell.inner).map_or(value.to_string(), |found| plain(&found[1]));
        if let Some((_, printed)) = printed(name.trim_end_matches(&shown).trim(), &shown)
            && !sheet.printed.iter().any(|known| known.tune == printed.tune)
        {
            sheet.estimated |= name.trim_start().starts_with("Est. ");
            sheet.printed.push(printed);
        }
    }
    for pair in row.windows(2).filter(|pair| pair[0].heading && !pair[1].heading) {
        let lines: Vec<String> =
            BREAK.split(pair[1].inner).map(plain).filter(|line| !line.is_empty()).collect();
        sheet.field(&plain(pair[0].inner), &lines);
    }
}

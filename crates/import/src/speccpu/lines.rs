//! The text of SPEC's formatter: a head, a table of iterations, below a line of `=` the selected
//! ones, the headlines, then the host. The ruler of dashes above the table marks the columns.

use super::suites::{Year, printed, title};
use super::{Cell, MAX_BANNER, MAX_ROWS, Row, Sheet, is_component, number};

/// The column (from 0) of the colon behind a field's name.
const COLON: usize = 20;

/// The banner of an invalid run.
const BANNER: &str = "INVALID RUN";

/// Whether a line is the last of a table's heading, `Benchmarks      Ref.   Run Time     Ratio`.
pub(super) fn heads_table(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("Benchmarks")
        && matches!(words.next(), Some("Ref." | "Copies" | "Threads"))
        && words.next() == Some("Run")
}

/// Whether a line stands above that.
pub(super) fn is_above_table(line: &str) -> bool {
    !line.is_empty() && line.split_whitespace().all(|word| ["Estimated", "Base", "Peak"].contains(&word))
}

/// Where the columns of one tuning begin and end, in characters.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ruler {
    ends: Vec<usize>,
    starts: Vec<usize>,
    /// The first column of a tuning has the reference's times, not copies.
    reference: bool,
}

impl Ruler {
    fn read(line: &str) -> Option<Ruler> {
        let mut ruler = Ruler::default();
        for (start, word) in words(line) {
            if !word.chars().all(|c| c == '-') || word.len() < 4 {
                return None;
            }
            ruler.starts.push(start);
            ruler.ends.push(start + word.len());
        }
        // The name, and three columns for one tuning or for both.
        matches!(ruler.starts.len(), 4 | 7).then_some(ruler)
    }

    /// The cell of a row for one tuning: numbers belong to the column that they end in.
    fn cell(&self, tune: usize, line: &str) -> Cell {
        let first = 1 + 3 * tune;
        let Some(&begin) = self.starts.get(first) else { return Cell::default() };
        let end = self.starts.get(first + 3).copied().unwrap_or(usize::MAX);
        let mut cell = Cell::default();
        for (start, word) in words(line).into_iter().filter(|(start, _)| *start + 2 >= begin && *start < end)
        {
            let stop = start + word.chars().count();
            let which = (0..3).find(|which| stop <= self.ends[first + which] + 1);
            match (which, number(word)) {
                (_, Err(text)) if is_status(&text) => {
                    cell.selected = text == "*";
                    cell.status = text;
                }
                (Some(0), Ok(_)) => cell.copies = word.parse().ok().filter(|_| !self.reference),
                (Some(1), Ok(value)) => cell.time = value,
                (Some(2), Ok(Some(value))) => {
                    cell.rate = Some(value);
                    cell.rounding = half_of_third_digit(value);
                }
                (_, Ok(None)) => {}
                (_, Ok(Some(_))) => cell.unread = Some(word.chars().take(40).collect()),
                (_, Err(text)) => cell.unread = Some(text),
            }
        }
        cell
    }
}

/// Status codes are one or two capitals; a star is a success that was selected.
fn is_status(text: &str) -> bool {
    text == "*" || (text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// SPEC prints three digits: half of the third as a share.
pub(super) fn half_of_third_digit(value: f64) -> f64 {
    if value > 0.0 { 0.5 * 10f64.powi(value.log10().floor() as i32 - 2) / value } else { 0.0 }
}

/// Words with the column (in characters) where each begins.
fn words(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut column, mut begin): (usize, Option<(usize, usize)>) = (0, None);
    for (at, c) in line.char_indices() {
        match (c.is_whitespace(), begin) {
            (true, Some((from, start))) => {
                found.push((start, &line[from..at]));
                begin = None;
            }
            (false, None) => begin = Some((at, column)),
            _ => {}
        }
        column += 1;
    }
    if let Some((from, start)) = begin {
        found.push((start, &line[from..]));
    }
    // A row has nine.
    found.truncate(40);
    found
}

/// What part of the file a line stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Full,
    Selected,
    Fields,
    Notes,
}

pub(super) fn read(text: &str) -> Sheet {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.sheet.ran_on(line);
        reader.sheet.judged(line);
        let trimmed = line.trim();
        if trimmed.contains(BANNER) {
            reader.sheet.valid = Some(false);
        }
        match reader.part {
            Part::Head => reader.head(line, trimmed),
            Part::Full | Part::Selected => reader.table(line, trimmed),
            Part::Fields => reader.field(line, trimmed),
            Part::Notes => {}
        }
    }
    reader.finish()
}

/// A report so far.
#[derive(Default)]
struct Reader {
    sheet: Sheet,
    part: Part,
    ruler: Option<Ruler>,
    /// The table has a column of the reference's times.
    reference: bool,
    /// Maker and product of the host.
    names: Vec<String>,
    /// The field at hand, and its lines.
    label: String,
    lines: Vec<String>,
}

impl Reader {
    fn head(&mut self, line: &str, trimmed: &str) {
        let sheet = &mut self.sheet;
        if let Some(found) = title(trimmed) {
            sheet.titled(found);
        } else if heads_table(trimmed) {
            self.reference = trimmed.contains("Ref.");
            sheet.speed |= trimmed.contains("Ratio");
        } else if trimmed.starts_with('#') && sheet.suite.is_empty() {
            let said = trimmed.trim_matches(|c: char| c == '#' || c.is_whitespace());
            if !said.is_empty() && !said.contains(BANNER) && sheet.banner.len() < MAX_BANNER {
                sheet.banner.push(said.chars().take(160).collect());
            }
        } else if let Some((_, date)) = trimmed.split_once("Test date:") {
            sheet.note("tested", date.split("Test date:").next().unwrap_or_default());
        } else if is_above_table(trimmed) {
            sheet.estimated |= trimmed.starts_with("Estimated");
        } else if let Some(found) = Ruler::read(line) {
            (self.ruler, self.part) = (Some(Ruler { reference: self.reference, ..found }), Part::Full);
        } else if !trimmed.contains(':')
            && !trimmed.is_empty()
            && !sheet.suite.is_empty()
            && self.names.len() < 5
        {
            self.names.push(trimmed.to_string());
        }
    }

    fn table(&mut self, line: &str, trimmed: &str) {
        let sheet = &mut self.sheet;
        if trimmed.starts_with("====") {
            self.part = Part::Selected;
        } else if let Some((year, printed)) = headline(trimmed) {
            // It names its generation even where no title does.
            sheet.year = year;
            sheet.estimated |= year == Year::Cpu2006 && trimmed.starts_with("Est. ");
            sheet.printed.push(printed);
        } else if let Some(name) = trimmed.split_whitespace().next().filter(|name| is_component(name)) {
            if sheet.rows.len() >= MAX_ROWS {
                sheet.left_out += 1;
            } else if let Some(ruler) = &self.ruler {
                let cells = [0, 1].map(|tune| ruler.cell(tune, line));
                let selected_table = self.part == Part::Selected;
                sheet.rows.push(Row { name: name.to_string(), selected_table, cells });
            }
        } else if trimmed == "HARDWARE" {
            self.part = Part::Fields;
        }
    }

    fn field(&mut self, line: &str, trimmed: &str) {
        if trimmed.ends_with(" Notes") {
            self.sheet.field(&self.label, &self.lines);
            self.part = Part::Notes;
            return;
        }
        let colon = line.char_indices().nth(COLON).filter(|(_, c)| *c == ':').map(|(at, _)| at);
        let is_more = !trimmed.is_empty() && line.starts_with(&" ".repeat(COLON)) && self.lines.len() < 20;
        match colon {
            Some(at) => {
                self.sheet.field(&self.label, &self.lines);
                self.label = line[..at].trim().to_string();
                self.lines = vec![line[at + 1..].trim().to_string()];
            }
            None if is_more => {
                let titles = trimmed == "SOFTWARE" || trimmed.chars().all(|c| c == '-');
                self.lines.extend((!titles).then(|| trimmed.to_string()));
            }
            None => {}
        }
    }

    fn finish(self) -> Sheet {
        let Reader { mut sheet, part, names, label, lines, .. } = self;
        if part == Part::Fields {
            sheet.field(&label, &lines);
        }
        // Between the title and the licence: who made it, then what it is. The table's own heading
        // has its words, too.
        let is_own = |name: &&String| !name.contains("Base ") && !name.starts_with("Benchmarks");
        let mut own = names.iter().filter(is_own);
        // CPU2006 has both in one line.
        if let Some(vendor) = own.next() {
            sheet.note(if sheet.year == Year::Cpu2006 { "product" } else { "vendor" }, vendor);
        }
        let model: Vec<&str> = own.map(String::as_str).collect();
        sheet.note("product", &model.join(" "));
        sheet
    }
}

/// ` Est. SPECrate(R)2017_int_base             --`.
fn headline(line: &str) -> Option<(Year, super::Printed)> {
    let line = line.trim_start_matches("Est. ");
    let (title, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    printed(title, &words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_their_columns() {
        let ruler = "--------------- -------  ---------  ---------    -------  ---------  ---------";
        let ruler = Ruler::read(ruler).expect("a ruler");
        let line = "505.mcf_r           256        472        877  S     256        421        982  *";
        let (base, peak) = (ruler.cell(0, line), ruler.cell(1, line));
        assert_eq!(
            (base.copies, base.time, base.rate, base.selected),
            (Some(256), Some(472.0), Some(877.0), false)
        );
        assert_eq!((peak.time, peak.rate, peak.selected), (Some(421.0), Some(982.0), true));
        let failed = ruler.cell(0, "500.perlbench_r       1         --            CE");
        assert_eq!((failed.copies, failed.rate, failed.status.as_str()), (Some(1), None, "CE"));
        let none = ruler.cell(0, "500.perlbench_r                               NR");
        assert_eq!((none.copies, none.status.as_str()), (None, "NR"));
        assert!(ruler.cell(1, "500.perlbench_r                               NR").is_empty());
        let comma = ruler.cell(0, "505.mcf_r            64       1043       99,1  *");
        assert_eq!((comma.rate, comma.unread.as_deref()), (None, Some("99,1")));
        assert_eq!(Ruler::read("----- what"), None);
        let ruler = "-------------- ------  ---------  ---------    ------  ---------  ---------";
        let ruler = Ruler { reference: true, ..Ruler::read(ruler).expect("a ruler") };
        let cell = ruler.cell(0, "401.bzip2        9650        466       20.7 *");
        assert_eq!((cell.copies, cell.time, cell.rate, cell.selected), (None, Some(466.0), Some(20.7), true));
        let small = ruler.cell(0, "401.bzip2          --       4.87         -- S");
        assert_eq!((small.time, small.rate, small.status.as_str()), (Some(4.87), None, "S"));
    }
}

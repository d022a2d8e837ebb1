//! The CSV of SPEC's formatter: sections below each other, each with columns of its own, so that
//! lines are read one by one.

use super::suites::{Year, printed, title};
use super::{Cell, MAX_ROWS, QUOTED, Row, Sheet, is_component, number};

/// Cells of a line that are read: SPEC's tables have twelve.
const MAX_CELLS: usize = 64;

/// Where a table's columns stand, for each tuning.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    /// Copies, time, rate, selected, status.
    of: [[Option<usize>; 5]; 2],
    count: usize,
    /// The results are ratios, not rates.
    speed: bool,
}

const NAMES: [&[&str]; 5] =
    [&["# Copies", "# Threads"], &["Run Time"], &["Rate", "Ratio"], &["Selected"], &["Status"]];

impl Columns {
    fn read(cells: &[String]) -> Columns {
        let place = |tune: &str, names: &[&str]| {
            cells.iter().position(|cell| {
                let cell = cell.trim().trim_start_matches("Est. ");
                let cell = cell.strip_prefix(tune).map(str::trim);
                cell.is_some_and(|cell| names.contains(&cell))
            })
        };
        let of = ["Base", "Peak"].map(|tune| NAMES.map(|names| place(tune, names)));
        let speed = cells.iter().any(|cell| cell.ends_with(" Ratio"));
        Columns { of, count: cells.len(), speed }
    }

    fn cell(&self, tune: usize, cells: &[String]) -> Cell {
        let text = |which: usize| {
            self.of[tune][which].and_then(|place| cells.get(place)).map_or("", |cell| cell.trim())
        };
        let mut unread = None;
        let mut value = |which: usize| match number(text(which)) {
            Ok(value) => value,
            Err(text) => {
                unread = Some(text);
                None
            }
        };
        let (time, rate) = (value(1), value(2));
        Cell {
            copies: text(0).parse().ok(),
            time,
            rate,
            // Six decimals.
            rounding: rate.filter(|rate| *rate > 0.0).map_or(0.0, |rate| 0.5e-6 / rate),
            selected: text(3) == "1",
            status: text(4).chars().take(10).collect(),
            unread,
        }
    }
}

pub(super) fn read(text: &str) -> Sheet {
    let mut sheet = Sheet::default();
    let delimiter = delimiter(text);
    let (mut columns, mut selected_table): (Option<Columns>, bool) = (None, false);
    let (mut fields, mut label, mut lines) = (true, String::new(), Vec::new());
    for line in text.lines() {
        sheet.ran_on(line);
        sheet.judged(line);
        let cells = split(line, delimiter);
        let first = cells.first().map_or("", |cell| cell.trim());
        if let Some(found) = title(first) {
            sheet.titled(found);
            continue;
        }
        match first {
            "valid" => {
                sheet.valid = cells.get(1).map(|cell| cell.trim() == "1");
                continue;
            }
            "Full Results Table" => (selected_table, columns) = (false, None),
            "Selected Results Table" => (selected_table, columns) = (true, None),
            "Benchmark" => {
                sheet.estimated |= cells.iter().any(|cell| cell.starts_with("Est. "));
                let found = Columns::read(&cells);
                sheet.speed |= found.speed;
                columns = Some(found);
                continue;
            }
            _ => {}
        }
        if let Some(columns) = columns.as_ref().filter(|_| is_component(first)) {
            row(&mut sheet, columns, selected_table, first, &cells);
            continue;
        }
        if let Some((_, printed)) = printed(first, cells.get(1).map_or("", String::as_str)) {
            sheet.printed.push(printed);
            columns = None;
            continue;
        }
        // Notes may have any text, and no field of the host follows them.
        fields &= !(first.ends_with("Notes") && cells.len() == 1);
        if !fields {
            continue;
        }
        match first {
            "" if cells.len() > 1 && lines.len() < 20 => lines.push(cells[1].clone()),
            "" => {}
            _ => {
                sheet.field(&label, &lines);
                label = first.to_string();
                lines = cells.get(1).cloned().into_iter().collect();
            }
        }
    }
    sheet.field(&label, &lines);
    sheet.documented = sheet.year == Year::Cpu2006
        || sheet.rows.iter().any(|row| Year::of_component(&row.name) == Year::Cpu2006);
    if delimiter == ';' {
        sheet.remarks.push(
            "semicolons separate its cells: a spreadsheet with decimal commas wrote the file".to_string(),
        );
    }
    sheet
}

fn row(sheet: &mut Sheet, columns: &Columns, selected_table: bool, name: &str, cells: &[String]) {
    if sheet.rows.len() >= MAX_ROWS {
        sheet.left_out += 1;
        return;
    }
    let mut read = [0, 1].map(|tune| columns.cell(tune, cells));
    // Decimal commas without quotes are cells more: every column behind the first of them is
    // another one's.
    if cells.len() > columns.count && cells[columns.count..].iter().any(|cell| !cell.trim().is_empty()) {
        let why = format!("a row of {} cells below {} columns", cells.len(), columns.count);
        if sheet.remarks.len() < QUOTED {
            sheet.remarks.push(format!("{name} was not read: {why}, perhaps decimal commas without quotes"));
        }
        let known = |tune: usize| columns.of[tune].iter().any(Option::is_some);
        read = [0, 1].map(|tune| Cell { unread: known(tune).then(|| why.clone()), ..Cell::default() });
        read[1].unread = None;
    }
    sheet.rows.push(Row { name: name.to_string(), selected_table, cells: read });
}

/// Spreadsheets of languages with decimal commas part cells by semicolons.
fn delimiter(text: &str) -> char {
    let header = text.lines().take(400).find(|line| line.trim_start_matches('"').starts_with("Benchmark"));
    if header.is_some_and(|line| line.matches(';').count() > line.matches(',').count()) { ';' } else { ',' }
}

/// The cells of a line; a quoted one may hold the delimiter, and `""` for a quote. A quote that is
/// not closed ends with the line.
fn split(line: &str, delimiter: char) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = characters.next() {
        let count = cells.len();
        let Some(cell) = cells.last_mut() else { break };
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            c if c == delimiter && !quoted && count < MAX_CELLS => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_apart() {
        assert_eq!(split("a,\"b, \"\"c\"\"\",,d\r", ','), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(split("\"open, ended", ','), ["open, ended"]);
        assert_eq!(split(&"x,".repeat(5000), ',').len(), MAX_CELLS);
    }
}

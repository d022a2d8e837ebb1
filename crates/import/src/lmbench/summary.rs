//! The summary: tables of right-aligned columns under dashes, a row a result.

use std::collections::BTreeSet;

use super::figures::find;
use super::numbers;
use super::tables::{CellContent, TABLES, Table};
use crate::Imported;
use crate::builder::Builder;

/// Why a cell has no value.
const EMPTY: &str = "the cell is empty: lmbench had no value (its benchmark failed or was left out, or lmbench subtracted more than it measured)";

/// Lines in which a table's dashes must follow its title.
const HEADING: usize = 10;

/// Hosts in one file; a summary of more is not readable.
const MAX_HOSTS: usize = 500;

/// Whether a text has a table of the summary.
pub fn is_one(text: &str) -> bool {
    text.contains("L M B E N C H")
        || (text.contains("\n--------- ---") && text.lines().any(|line| titled(line).is_some()))
}

fn titled(line: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.is_titled(line))
}

fn is_dashes(line: &str) -> bool {
    line.starts_with("--------- ---") && line.chars().all(|c| c == '-' || c == ' ')
}

/// Summaries in one file; more are not readable.
const MAX_SUMMARIES: usize = 200;

/// One summary: what stands there until a table comes once more.
#[derive(Default)]
struct Round<'a> {
    /// What stands above it and is none of lmbench's: `After:`.
    heading: String,
    titles: BTreeSet<&'static str>,
    columns: Vec<Columns>,
    rows: Vec<Row<'a>>,
    remarks: Vec<String>,
}

/// A row as it stands there, with its table and the place of that table's columns.
struct Row<'a> {
    table: &'static Table,
    columns: usize,
    text: &'a str,
    /// The file ends in it.
    is_cut: bool,
}

impl Round<'_> {
    fn has(&self, row: &Row) -> bool {
        self.rows.iter().any(|own| own.table.title == row.table.title && own.text == row.text)
    }
}

/// The results of all hosts, in the order in which they first appear. Rows of equal host and system
/// in one summary are repeated runs of one host, or look like them; those of another summary are
/// another result.
pub fn read(text: &str) -> Vec<Imported> {
    let mut rounds = rounds(text);
    let mut at = 1;
    while at < rounds.len() {
        let (before, own) = rounds.split_at(at);
        let copy = before.iter().position(|round| own[0].rows.iter().all(|row| round.has(row)));
        match copy {
            Some(copy) => {
                rounds[copy].remarks.push("the file has a summary twice: counted once".to_string());
                rounds.remove(at);
            }
            None => at += 1,
        }
    }
    let several = rounds.len() > 1;
    let result = |round: Round| {
        let mut results = Results { remarks: round.remarks, ..Results::default() };
        for row in &round.rows {
            results.row(row.table, &round.columns[row.columns], row.text, row.is_cut);
        }
        let absent: Vec<&str> =
            TABLES.iter().map(|table| table.title).filter(|title| !round.titles.contains(title)).collect();
        if !absent.is_empty() {
            results.remarks.push(format!("the file has no table of these: {}", absent.join(", ")));
        }
        if several {
            results.builders.iter_mut().for_each(|builder| builder.fact(super::HEADING, &round.heading));
        }
        results.finish()
    };
    rounds.into_iter().flat_map(result).collect()
}

fn rounds(text: &str) -> Vec<Round<'_>> {
    let mut rounds = vec![Round::default()];
    let mut above = String::new();
    let unfinished = (!text.ends_with('\n')).then(|| text.lines().count());
    let mut lines = text.lines().enumerate().peekable();
    while let Some((_, line)) = lines.next() {
        let Some(table) = titled(line.trim_end()) else {
            if is_heading(line) {
                above = line
                    .trim()
                    .trim_start_matches('#')
                    .trim_end_matches(':')
                    .trim()
                    .chars()
                    .take(100)
                    .collect();
            }
            continue;
        };
        let mut dashes = None;
        for _ in 0..HEADING {
            match lines.peek() {
                Some((_, next)) if is_dashes(next.trim_end()) => {
                    dashes = Some(next.trim_end());
                    lines.next();
                    break;
                }
                Some((_, next)) if titled(next).is_none() => lines.next(),
                _ => break,
            };
        }
        let again = rounds.last().is_none_or(|round| round.titles.contains(table.title));
        if again && rounds.len() < MAX_SUMMARIES {
            rounds.push(Round::default());
        }
        let Some(round) = rounds.last_mut() else { break };
        if round.titles.is_empty() {
            round.heading = std::mem::take(&mut above);
        }
        let Some(columns) = dashes.and_then(|dashes| Columns::of(table, dashes)) else {
            round
                .remarks
                .push(format!("the table {:?} has an unknown heading and was left out", table.title));
            continue;
        };
        round.titles.insert(table.title);
        round.columns.push(columns);
        while let Some((number, row)) = lines.next_if(|(_, line)| is_row(line)) {
            let is_cut = unfinished == Some(number + 1);
            let row = Row { table, columns: round.columns.len() - 1, text: row.trim_end(), is_cut };
            if round.has(&row) {
                round
                    .remarks
                    .push(format!("the table {:?} has the same row twice: counted once", table.title))
            } else {
                round.rows.push(row)
            }
        }
    }
    rounds
}

/// Whether a line may say what the summary below it is of.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let own = ["make", "cd ", "(", "Host ", "L M B E N C H", "$"].iter().any(|begin| line.starts_with(begin));
    !own && (line.contains(char::is_alphabetic) || line.starts_with('#'))
}

/// Where a table's columns end, and where else they may.
struct Columns {
    ends: Vec<[usize; 2]>,
    /// Where host and system end.
    host: usize,
    system: usize,
    /// The column of the clock, which shows whether a row is where it should be.
    mhz: Option<usize>,
}

impl Columns {
    /// By lmbench 3.0's own layout; by the dashes where another version has as many columns
    /// elsewhere, or wider names.
    fn of(table: &Table, dashes: &str) -> Option<Columns> {
        let mhz = table.columns.iter().position(|column| column.holds == CellContent::Fact("mhz"));
        let is_end =
            |at: &usize| dashes.as_bytes()[*at] == b'-' && dashes.as_bytes().get(at + 1) != Some(&b'-');
        let all: Vec<usize> = (0..dashes.len()).filter(is_end).map(|at| at + 1).collect();
        let [host, system, ends @ ..] = all.as_slice() else { return None };
        let ends: Vec<[usize; 2]> = if dashes == table.dashes() {
            let own = table.ends().into_iter().zip(table.columns);
            own.map(|(end, column)| [end, column.limit.unwrap_or(end)]).collect()
        } else {
            ends.iter().map(|end| [*end, *end]).collect()
        };
        (ends.len() == table.columns.len()).then_some(Columns { ends, host: *host, system: *system, mhz })
    }

    /// The words of a row that stand behind its system, moved to where they belong: names that are
    /// longer than the format allows, or were replaced by others, shift all that is behind them.
    /// `None` where they stand nowhere that makes sense.
    fn cells(&self, row: &str) -> Option<Cells> {
        let all = words(row);
        let as_printed = all.iter().position(|word| word.end > self.system).unwrap_or(all.len());
        // A word across the border belongs to neither side.
        let is_apart = all.get(as_printed).is_none_or(|word| word.start >= self.system);
        // Host and system have a word or two each, and the system ends where its column does.
        let shifted = [3, 2].into_iter().filter_map(|first| {
            let end = all.get(first - 1).filter(|_| all.len() > first)?.end;
            Some((first, end as isize - self.system as isize))
        });
        let tries = [(as_printed, 0)].into_iter().filter(|_| is_apart).chain(shifted);
        let moved = |(first, shift): (usize, isize)| -> Vec<CellWord> {
            let back = |at: usize| at.saturating_add_signed(-shift);
            let own = all[first..].iter();
            own.map(|word| CellWord { text: word.text.clone(), start: back(word.start), end: back(word.end) })
                .collect()
        };
        let named = tries.filter(|(first, shift)| match shift {
            0 => self.has_names(row),
            _ => is_system(all[1..*first].iter().map(|word| word.text.as_str())),
        });
        let mut sensible = named.map(|one| (one, moved(one))).filter(|(_, words)| self.has_clock(words));
        let aligned = sensible.clone().find(|(_, words)| self.are_aligned(words));
        // Builds differ in where words stand in their columns.
        let ((first, shift), words) =
            aligned.or_else(|| sensible.next().filter(|((_, shift), _)| *shift == 0))?;
        let names = all[..first].iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
        let (host, system) = match shift {
            0 => {
                let part =
                    |from: usize, to: usize| row.chars().skip(from).take(to - from).collect::<String>();
                (part(0, self.host), part(self.host + 1, self.system))
            }
            _ => (names[0].to_string(), names[1..].join(" ")),
        };
        let system = system.trim().to_string();
        let is_cut = system.chars().count() + self.host + 1 >= self.system;
        Some(Cells { host: host.trim().to_string(), system, is_cut, words })
    }

    /// Whether a row that was not moved has names where the host and the system belong: a blank
    /// between them, one word for the host, and no figure among the system's words.
    fn has_names(&self, row: &str) -> bool {
        let part = |from: usize, to: usize| row.chars().skip(from).take(to - from).collect::<String>();
        let (host, between) = (part(0, self.host), part(self.host, self.host + 1));
        let system = part(self.host + 1, self.system);
        between.trim().is_empty()
            && host.split_whitespace().count() <= 1
            && is_system(system.split_whitespace())
    }

    /// Whether the clock is one, where the table has it.
    fn has_clock(&self, words: &[CellWord]) -> bool {
        const FASTEST_MHZ: u32 = 20_000;
        let Some(mhz) = self.mhz else { return true };
        let place = |word: &CellWord| self.ends.iter().position(|[_, limit]| word.end <= *limit);
        match words.iter().find(|word| place(word) == Some(mhz)) {
            Some(word) => word.text.parse::<u32>().is_ok_and(|mhz| (1..FASTEST_MHZ).contains(&mhz)),
            None => true,
        }
    }

    /// Whether nearly all words end where a column does.
    fn are_aligned(&self, words: &[CellWord]) -> bool {
        let last = self.ends.last().map_or(0, |[_, limit]| *limit);
        let own = || words.iter().filter(|word| word.end <= last);
        let aligned = own().filter(|word| self.ends.iter().any(|ends| ends.contains(&word.end))).count();
        aligned > 0 && 10 * aligned >= 9 * own().count()
    }
}

/// Whether words are a system's name and its release, as `Linux 4.18.0-`: a figure would be taken
/// for one of them in a row that stands elsewhere.
fn is_system<'a>(mut words: impl Iterator<Item = &'a str>) -> bool {
    let begins_with_digit = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let Some(name) = words.next() else { return true };
    let release = |word: &str| {
        let dot = word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('.');
        name != "Linux" || !begins_with_digit(word) || (dot && !word.starts_with("0."))
    };
    !begins_with_digit(name) && words.all(release)
}

/// A row, taken apart.
struct Cells {
    host: String,
    system: String,
    /// The system fills its column, so that more of it may have been cut off.
    is_cut: bool,
    words: Vec<CellWord>,
}

impl Columns {
    /// Whether the last word of a row that may be cut off fills its column. Where words may end in
    /// two places, those of the column before show in which.
    fn is_whole(&self, column: usize, ends: &[usize]) -> bool {
        let [end, limit] = self.ends[column];
        let before = column.checked_sub(1).map_or([0, 0], |before| self.ends[before]);
        let aligned = match (end == limit, before[0] == before[1]) {
            (true, _) => end,
            (false, true) => return false,
            (false, false) if ends.contains(&before[1]) => limit,
            (false, false) => end,
        };
        ends.last() == Some(&aligned)
    }
}

/// Whether a line looks like a row: a host, a system, and what belongs to neither make nor a title.
fn is_row(line: &str) -> bool {
    let begins = line.starts_with(|c: char| !c.is_whitespace() && c != '-');
    begins && !line.starts_with("make") && line.split_whitespace().count() > 2 && titled(line).is_none()
}

/// A word of a row, and the columns that it takes.
#[derive(Clone)]
struct CellWord {
    text: String,
    start: usize,
    end: usize,
}

fn words(row: &str) -> Vec<CellWord> {
    let mut words: Vec<CellWord> = Vec::new();
    let mut inside = false;
    for (at, c) in row.chars().enumerate() {
        match (c.is_whitespace(), inside) {
            (true, _) => inside = false,
            (false, true) => {
                if let Some(word) = words.last_mut() {
                    word.text.push(c);
                    word.end = at + 1;
                }
            }
            (false, false) => {
                words.push(CellWord { text: c.to_string(), start: at, end: at + 1 });
                inside = true;
            }
        }
    }
    words
}

/// The remark where rows of one name have different clocks: lmbench measures the clock anew each
/// time, but on one host always within `FAR`.
fn contradiction(make_up: &[(String, String)], label: &str, text: &str, host: &str) -> Option<String> {
    const FAR: f64 = 0.05;
    let (_, known) = make_up.iter().find(|(known, _)| known == label).filter(|_| label == "mhz")?;
    let (before, now) = (known.parse::<f64>().ok()?, text.parse::<f64>().ok()?);
    let far = (now / before - 1.0).abs() > FAR;
    far.then(|| {
        format!(
            "rows of {host:?} have clocks of {known} and {text} MHz: one series may have figures of two hosts"
        )
    })
}

#[derive(Default)]
struct Results {
    /// Host and system of each, as the rows have them.
    names: Vec<(String, String)>,
    builders: Vec<Builder>,
    remarks: Vec<String>,
    hosts_left_out: usize,
}

impl Results {
    fn of(&mut self, host: &str, system: &str, is_cut: bool) -> Option<&mut Builder> {
        let name = (host.to_string(), system.to_string());
        let place = match self.names.iter().position(|known| *known == name) {
            Some(place) => place,
            None if self.names.len() >= MAX_HOSTS => {
                self.hosts_left_out += 1;
                return None;
            }
            None => {
                let mut builder = Builder::new(super::SUMMARY, host);
                if let Some((_, release)) = system.split_once(' ') {
                    let cut = if is_cut { "…" } else { "" };
                    builder.fact("kernel", &format!("{}{cut}", release.trim()));
                }
                self.names.push(name);
                self.builders.push(builder);
                self.builders.len() - 1
            }
        };
        self.builders.get_mut(place)
    }

    /// Takes a row apart. In the file's last line, if it is `cut`, a cell counts only where it
    /// fills its column.
    fn row(&mut self, table: &Table, columns: &Columns, row: &str, cut: bool) {
        let Some(Cells { host, system, is_cut, words }) = columns.cells(row) else {
            let named: String = row.split_whitespace().next().unwrap_or_default().chars().take(40).collect();
            self.remarks.push(format!(
                "the row of {named:?} in the table {:?} fits none of its columns and was left out: names in it were changed, or cells are missing",
                table.title
            ));
            return;
        };
        let Some(builder) = self.of(&host, &system, is_cut) else { return };
        let mut cells: Vec<Option<CellWord>> = columns.ends.iter().map(|_| None).collect();
        let last = words.len();
        let ends: Vec<usize> = words.iter().map(|word| word.end).collect();
        for (number, word) in words.into_iter().enumerate() {
            let place = columns.ends.iter().position(|[_, limit]| word.end <= *limit);
            match place.and_then(|place| cells.get_mut(place)) {
                Some(cell @ None) if !cut || number + 1 < last => *cell = Some(word),
                Some(cell @ None) if place.is_some_and(|place| columns.is_whole(place, &ends)) => {
                    *cell = Some(word);
                }
                // Cut off; or one of the guesses about the caches, which stand behind the last
                // column.
                Some(None) | None => {}
                Some(Some(_)) => {
                    builder
                        .remarks
                        .push(format!("{:?} in the table {:?} is in no column", word.text, table.title));
                }
            }
        }
        for (column, cell) in table.columns.iter().zip(cells) {
            let text = cell.map(|word| word.text).unwrap_or_default();
            match column.holds {
                CellContent::Fact("2p/0K again") => {}
                CellContent::Fact(label) => {
                    if let Some(remark) = contradiction(&builder.make_up, label, &text, &host) {
                        builder.remarks.push(remark);
                    }
                    builder.fact(label, &text);
                }
                CellContent::Figure(name) => {
                    let Some((figure, meaning)) =
                        find(name).and_then(|figure| Some((figure, figure.meaning()?)))
                    else {
                        continue;
                    };
                    let value = numbers::read(&text).and_then(|value| figure.unit.ours(value));
                    match value {
                        Some(value) => builder.value(meaning, value),
                        None if cut => {
                            builder.missing(meaning, "the file ends in the middle of the row".to_string())
                        }
                        None if text.is_empty() || text == "-" => builder.missing(meaning, EMPTY.to_string()),
                        None => {
                            builder.missing(meaning, format!("the cell has {text:?}, which is not a number"))
                        }
                    }
                }
            }
        }
    }

    fn finish(mut self) -> Vec<Imported> {
        self.remarks.dedup();
        self.remarks.truncate(100);
        if self.hosts_left_out > 0 {
            self.remarks.push(format!("rows of more than {MAX_HOSTS} hosts were left out"));
        }
        let with_remarks = |mut builder: Builder| {
            builder.remarks.truncate(100);
            builder.remarks.extend(self.remarks.iter().cloned());
            builder.finish()
        };
        self.builders.into_iter().filter(|builder| !builder.is_empty()).map(with_remarks).collect()
    }
}

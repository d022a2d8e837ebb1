//! The tables of docs/results: a program that measures a table writes it there, with the commit and
//! the day. A table stands between `<!-- PLACE -->` and `<!-- /PROGRAM -->`, where the place is
//! called `PROGRAM:NAME` (`prove:icc`, `bench:disk`).

use std::process::Command;

/// The folder of the tables.
const FOLDER: &str = "docs/results";

/// Writes a whole table, which took `seconds`.
///
/// # Errors
/// Fails if no file of docs/results has this place, or the file cannot be written.
pub fn write_table(place: &str, table: &str, commit: &str, seconds: f64) -> Result<(), String> {
    let stamp = format!("Measured at commit {commit} on {} in {seconds:.0} s.", today());
    change(place, |_| format!("{}\n\n{stamp}", table.trim_end()))
}

/// Writes one row, `| name | ... |`, in place of the row with the same first cell, or below all
/// others. The commit and the day become its last cell.
///
/// # Errors
/// As [`write_table`].
pub fn write_row(place: &str, row: &str, commit: &str) -> Result<(), String> {
    let row = format!("{} {commit}, {} |", row.trim_end(), today());
    change(place, |table| with_row(table, &row))
}

fn with_row(table: &str, row: &str) -> String {
    let first_cell = |row: &str| row.split('|').nth(1).map(str::trim).map(str::to_string);
    let mut rows: Vec<&str> = table.trim().lines().collect();
    match rows.iter().position(|other| first_cell(other) == first_cell(row)) {
        Some(number) => rows[number] = row,
        None => rows.push(row),
    }
    rows.join("\n")
}

/// Gives what stands at a place another text.
fn change(place: &str, text_of: impl Fn(&str) -> String) -> Result<(), String> {
    let program = place.split(':').next().unwrap_or_default();
    let (begin, end) = (format!("<!-- {place} -->"), format!("<!-- /{program} -->"));
    let files = std::fs::read_dir(testkit::root().join(FOLDER)).into_iter().flatten().flatten();
    for path in files.map(|file| file.path()) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some((before, rest)) = text.split_once(&begin) else { continue };
        let Some((old, after)) = rest.split_once(&end) else { continue };
        let text = format!("{before}{begin}\n{}\n{end}{after}", text_of(old));
        return std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    Err(format!("no file of {FOLDER} has a place for {place}: add `{begin}` and `{end}`"))
}

/// The commit that is checked out, marked where the sources differ from it.
#[must_use]
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(testkit::root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let head = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_string());
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.lock"]);
    if changed.is_some_and(|changed| !changed.is_empty()) { format!("{head} (with changes)") } else { head }
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::with_row;

    #[test]
    fn a_row_replaces_that_of_its_name() {
        let table = "| what | value |\n| --- | --- |\n| read | 1 |\n| write | 2 |\n";
        let read = with_row(table, "| read | 3 |");
        assert_eq!(read, "| what | value |\n| --- | --- |\n| read | 3 |\n| write | 2 |");
        assert_eq!(with_row(&read, "| trim | 4 |"), format!("{read}\n| trim | 4 |"));
    }
}

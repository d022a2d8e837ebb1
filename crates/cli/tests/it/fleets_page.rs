//! docs/book/fleets.md does what it says: its shell lines and its SQL run, in their order, on a
//! fleet of run files, and what DuckDB finds is what `assay peers` finds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::host::fleet_tool;

use crate::peers::Made;

/// Runs all statements of standard input, and prints the rows of each as a line of JSON.
const RUNNER: &str = "
import duckdb, json, sys
database = duckdb.connect()
database.execute('SET enable_progress_bar = false')
for statement in database.extract_statements(sys.stdin.read()):
    print(json.dumps([statement.query, database.execute(statement).fetchall()], default=str))
";

/// The code blocks of a page in one language, in their order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}");
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.trim_end() {
            "```" => inside = false,
            line if *line == begin => {
                inside = true;
                found.push(String::new());
            }
            line => {
                if let Some(block) = found.last_mut().filter(|_| inside) {
                    block.push_str(line);
                    block.push('\n');
                }
            }
        }
    }
    found
}

fn shell(script: &str, folder: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_assay"));
    let beside = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
    let output =
        command.env("PATH", format!("{beside}:{path}")).env("TZ", "UTC").output().expect("bash runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{told}");
}

/// Each statement of the page with the rows that it gives.
fn asked(sql: &str, folder: &Path) -> Option<Vec<(String, Vec<Value>)>> {
    let mut command = fleet_tool("the_page_on_fleets_does_what_it_says", "python3")?;
    let input = folder.join("page.sql");
    fs::write(&input, sql).expect("written");
    command.args(["-c", RUNNER]).current_dir(folder).env("TZ", "UTC");
    let input = fs::File::open(input).expect("it was written");
    let output = command.stdin(Stdio::from(input)).output().expect("python3 runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let answer = |line: &str| {
        let (statement, rows): (String, Vec<Value>) = serde_json::from_str(line).expect("JSON");
        (statement.trim().to_string(), rows)
    };
    Some(String::from_utf8_lossy(&output.stdout).lines().map(answer).collect())
}

#[test]
fn the_page_on_fleets_does_what_it_says() {
    let page = fs::read_to_string(testkit::root().join("docs/book/fleets.md")).expect("the page");
    assert!(page.lines().count() <= 120, "a page that is read in a few minutes");
    let mut made = Made::new();
    let now = jiff::Timestamp::now();
    for number in 0..12 {
        let days = if number == 5 { 12 } else { 1 };
        let started =
            now - jiff::SignedDuration::from_hours(24 * days) + jiff::SignedDuration::from_secs(number);
        let memory = if number == 7 { 0.5563 } else { 1.0 };
        let host = made.host(&format!("db{number:02}"), &started.to_string(), memory);
        made.put(&format!("runs/db{number:02}.assay.jsonl"), &made.bytes(&host));
    }
    let folder = made.folder.path();
    let scripts = blocks(&page, "sh");
    assert!(scripts.len() >= 3, "{scripts:?}");
    scripts.iter().for_each(|script| shell(script, folder));
    let day = fs::read(folder.join("day.json")).expect("the page writes it");
    let day: Value = serde_json::from_slice(&day).expect("JSON");
    let hosts = day["hosts"].as_array().expect("hosts");
    let flagged: BTreeSet<&str> = hosts
        .iter()
        .filter(|host| host["flagged"] == true)
        .filter_map(|host| host["host"].as_str())
        .collect();
    assert_eq!((hosts.len(), &flagged), (12, &BTreeSet::from(["db07"])));

    let Some(answers) = asked(&blocks(&page, "sql").concat(), folder) else { return };
    let selects: Vec<&(String, Vec<Value>)> =
        answers.iter().filter(|(statement, _)| statement.starts_with("SELECT")).collect();
    assert!(selects.len() >= 4, "{answers:?}");
    for (statement, rows) in &selects {
        assert!(!rows.is_empty(), "nothing comes of {statement}");
    }
    let rows_of = |begin: &str| {
        let found = selects.iter().find(|(statement, _)| statement.starts_with(begin));
        found.map(|(_, rows)| rows).expect("the page asks it")
    };
    // Host, figures behind, ratio.
    let worst = rows_of("SELECT host, count(*) AS figures");
    let names: BTreeSet<&str> = worst.iter().filter_map(|row| row[0].as_str()).collect();
    assert_eq!(names, flagged, "{worst:?}");
    let ratio = worst[0][2].as_f64().expect("a ratio");
    assert!((ratio / 0.5563 - 1.0).abs() < 0.05, "{ratio}");
    let late = rows_of("SELECT host, max(started)");
    assert!(late.len() == 1 && late[0][0] == "db05", "{late:?}");
    assert_eq!(rows_of("SELECT summary.host").len(), 12);
}

//! Which lines of iperf3's text are of one test, where the line that begins it was not copied,
//! where two tests wrote at once, where a client shows its server's lines, and where a mail wrapped
//! its lines.

use crate::kit::{Hit, LinesAbove, Run, Table};

/// Lines that are searched for the start or the sum of a test: each has a line for each stream.
const NEAR: usize = 600;

/// Whether a line begins a test of which no line says so: sums that the test has already, a head or
/// an interval from 0 on behind them, or anything under a heading of its own. The head right above
/// an interval is of it.
pub fn again(runs: &[Run], hit: &Hit, above: LinesAbove) -> Option<usize> {
    let run = runs.last().filter(|_| ["connected", "header", "row"].contains(&hit.name))?;
    run.hit("row")?;
    if is_mixed(runs) {
        return None;
    }
    let head = usize::from(run.hits.last().is_some_and(|last| last.name == "header"));
    let late = || run.hits.iter().rev().take(NEAR).filter(|other| other.name == "row");
    let summed = || late().any(is_sum);
    let begins = match hit.name {
        _ if above.is_marked => return Some(0),
        "connected" => run.all("connected").take(NEAR).any(|other| is_like(other, hit)),
        // That of the sums stands before them, and one that was stopped has one more.
        "header" => summed(),
        _ if is_sum(hit) => late().any(|other| is_like(other, hit) && end(other) == end(hit)),
        _ if hit.text("from") != Some("0.00") => false,
        _ => {
            let time = |one: &Hit| one.number("to").map_or(0.0, |time| time.value);
            let mut own = late().filter(|other| is_like(other, hit));
            // What was omitted comes first, and then time begins anew. A sum without a word ends
            // where the last interval does.
            let is_shorter =
                |last: &Hit| end(last).is_empty() && time(hit) < 0.75 * time(last) || is_sum(last);
            own.next().is_some_and(is_shorter)
        }
    };
    begins.then_some(head)
}

fn end<'t>(row: &Hit<'t>) -> &'t str {
    row.text("end").unwrap_or_default()
}

fn is_sum(row: &Hit) -> bool {
    ["sender", "receiver"].contains(&end(row))
}

/// Whether two lines are of one stream.
fn is_like(one: &Hit, other: &Hit) -> bool {
    ["id", "role"].iter().all(|field| one.text(field) == other.text(field))
}

/// Whether what follows the last of these runs' first line is of it and of the one before: both
/// wrote at once, and no line names its process.
pub fn is_mixed(runs: &[Run]) -> bool {
    let [others @ .., run] = runs else { return false };
    let heads = || run.hits.iter().take(NEAR).take_while(|hit| hit.name != "row");
    let named = |name: &'static str| heads().filter(move |hit| hit.name == name);
    let mut ids = std::collections::BTreeSet::new();
    if !named("connected").all(|hit| ids.insert(hit.text("id"))) {
        return true;
    }
    let first = run.hits.iter().take(NEAR).find(|hit| hit.name == "row");
    let late = first.is_some_and(|row| end(row).is_empty() && row.text("from") != Some("0.00"));
    others.last().is_some_and(is_open) && begins(run) && (named("header").count() > 1 || late)
}

/// Whether it begins with its first line, and has no end.
fn is_open(run: &Run) -> bool {
    let ended = run.hits.iter().rev().take(NEAR).any(|hit| hit.name == "row" && is_sum(hit));
    begins(run) && !ended && ["done", "listens", "error"].iter().all(|name| run.hit(name).is_none())
}

fn begins(run: &Run) -> bool {
    run.hit("to").or(run.hit("from")).is_some()
}

/// Which of the runs wrote at the same time as another.
pub fn mixed(runs: &[Run]) -> Vec<bool> {
    let mut all: Vec<bool> = (1..=runs.len()).map(|end| is_mixed(&runs[..end])).collect();
    for at in (1..all.len()).rev() {
        all[at - 1] |= all[at] && is_open(&runs[at - 1]);
    }
    all
}

/// Ends of rows that would be complete without them, and of heads.
const ROW_ENDS: [&str; 5] = ["sender", "receiver", "(omitted)", "Bytes", ")"];
const COLUMNS: [&str; 6] = ["Retr", "Cwnd", "Jitter", "Lost/Total", "Total", "Datagrams"];

/// A text in which rows that a mail wrapped are whole.
pub fn rejoined(text: &str, table: &Table) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        whole.push_str(line);
        let next = lines.peek().map_or("", |next| next.trim());
        let may_be = line.trim_start().starts_with('[') && !next.is_empty() && !next.starts_with('[');
        if may_be && table.hit(next).is_none() {
            let both = format!("{} {next}", line.trim_end());
            let is_whole = table.hit(line).is_some();
            let goes_on =
                |words: &[&str], with: fn(&str, &str) -> bool| words.iter().any(|word| with(next, word));
            let is_one = table.hit(&both).is_some_and(|hit| match hit.name {
                "row" => !is_whole || goes_on(&ROW_ENDS, |next, word| next.ends_with(word)),
                "header" => goes_on(&COLUMNS, |next, word| next.starts_with(word)),
                "connected" => !is_whole,
                _ => false,
            });
            if is_one {
                whole.push(' ');
                whole.push_str(next);
                lines.next();
            }
        }
        whole.push('\n');
    }
    whole
}

/// A text without what servers said of the same tests (`--get-server-output`), and whether there
/// was any: a client shows it behind its own sums.
pub fn without_servers(text: &str) -> (String, bool) {
    let mut plain = String::with_capacity(text.len());
    let (mut inside, mut any) = (false, false);
    for line in text.lines() {
        match line.trim() {
            "Server output:" => (inside, any) = (true, true),
            "iperf Done." => inside = false,
            own => inside &= !own.starts_with("Connecting to host "),
        }
        if !inside {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    (plain, any)
}

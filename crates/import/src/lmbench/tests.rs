//! Rows that were moved, and runs that one raw file has behind each other.

use super::{TABLES, read};
use crate::Imported;

fn values(imported: &Imported, key: &str) -> Vec<f64> {
    let found = imported.figures.iter().find(|figure| figure.judged.series.key == key);
    found.map_or(Vec::new(), |figure| figure.judged.series.values().concat())
}

fn made_up<'a>(imported: &'a Imported, label: &str) -> &'a str {
    imported.make_up.iter().find(|(known, _)| known == label).map_or("", |(_, value)| value.as_str())
}

/// A summary of one table with one row.
fn summary(title: &str, row: &str) -> Vec<Imported> {
    let table = TABLES.iter().find(|table| table.title == title).expect("a table");
    read(&format!("L M B E N C H  3 . 0   S U M M A R Y\n\n{}\n{row}\n", table.heading))
}

#[test]
fn a_row_that_moved_by_the_width_of_a_column_is_read_where_it_belongs() {
    let figures = "0.3900 0.2000 1.2100   10.8   11.3";
    let keys = ["bit", "add", "mul", "div", "mod"];
    for (host, names) in [
        ("old-serve", "old-serve Linux 4.18.0-"),
        ("db", "db Linux 4.18.0-"),
        ("A", "A Linux 4.18.0-"),
        ("web", "web Linux 4.18.0-"),
        ("web1", "web1 Linux 4.18.0-"),
        ("myserver1.domain", "myserver1.domain Linux 4.18.0-"),
        ("myserver1.example", "myserver1.example Linux 4.18.0-"),
    ] {
        let found = summary("Basic integer operations", &format!("{names} {figures}"));
        assert_eq!(found.len(), 1, "{names}");
        let kernel = made_up(&found[0], "kernel");
        assert!(found[0].host == host && kernel.starts_with("4.18.0-"), "{names}: {kernel}");
        let median = |figure: &crate::Figure| figure.judged.series.values().concat();
        let all: Vec<f64> = found[0].figures.iter().flat_map(median).collect();
        assert_eq!((all.len(), keys.len()), (5, 5));
        assert_eq!(all, [0.39, 0.2, 1.21, 10.8, 11.3], "{names}");
    }
    // Without a host the columns are ambiguous.
    let found = summary("Basic integer operations", &format!("Linux 4.18.0- {figures}"));
    assert!(found.iter().all(|one| one.figures.is_empty()), "{found:#?}");
    let row = "db Linux 4.18.0- 8.7900 8.9400 8.6400 9.2300 9.6900 8.93000    10.1";
    let found = summary("Context switching", row);
    let key = "sched.context-switch@free?processes=2/kb=0#switch";
    assert_eq!(values(&found[0], key), [8.79]);
}

#[test]
fn a_run_that_begins_with_another_figure_is_another_run() {
    let getpid = "syscall.getpid@one-cpu#latency";
    let values = |text: &str| -> Vec<(String, Vec<f64>, usize)> {
        let each = |one: &Imported| {
            let has = |figure: &&crate::Figure| !figure.judged.series.values().concat().is_empty();
            (made_up(one, "heading").to_string(), values(one, getpid), one.figures.iter().filter(has).count())
        };
        read(text).iter().map(each).collect()
    };
    let [call, pipe, other] = ["Simple syscall: 0.2365", "Pipe latency: 9.2", "Simple syscall: 0.4365"]
        .map(|line| format!("{line} microseconds\n"));
    for (before, after) in [("Before:", "After:"), ("# 6.1", "# 6.6"), ("## a", "b:")] {
        let found = values(&format!("{before}\n{call}{after}\n{pipe}{other}"));
        let plain = |text: &str| text.trim_end_matches(':').to_string();
        assert_eq!(found[0], (plain(before), vec![0.2365], 1), "{found:?}");
        assert_eq!(found[1], (plain(after), vec![0.4365], 2), "{found:?}");
        assert_eq!(found.len(), 2);
    }
    // Parts of one run under headings of their own are one.
    let found = values(&format!("Calls:\n{call}Pipes:\n{pipe}"));
    assert_eq!((found.len(), found[0].2), (1, 2), "{found:?}");
    let found = values(&format!("Calls:\n{call}Pipes:\n{pipe}Again:\n{other}"));
    assert_eq!(found.iter().map(|one| one.2).collect::<Vec<_>>(), [2, 1], "{found:?}");
}

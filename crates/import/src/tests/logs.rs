//! Results in logs that name hosts, pods and pages: what each of them printed is a result of it,
//! and what one lacks is missing there alone.

use super::recorded;
use crate::{Imported, read};

fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:#}: {text}"))
}

fn source(one: &Imported) -> &str {
    one.make_up.iter().find(|(label, _)| label == "source").map_or("", |(_, value)| value.as_str())
}

/// Lines that a result can lack and is read without.
fn without(text: &str, begins: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| line.trim_start().starts_with(begins)).expect("a line");
    let kept = lines.iter().enumerate().filter(|(place, _)| *place != at);
    kept.map(|(_, line)| format!("{line}\n")).collect()
}

#[test]
fn hosts_of_a_parallel_shell_are_results_even_where_one_lacks_a_line() {
    let each = |host: &str, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("{host}: {line}\n")).collect()
    };
    for (name, lacks) in [
        ("hackbench-debian-modes.txt", "Each sender"),
        ("sysbench-debian-threads.txt", "sum:"),
        ("iperf3-debian-bytes.txt", "iperf Done."),
        ("fio-debian-group.txt", "lat (msec)"),
        ("sockperf.txt", "sockperf: ---> percentile 25"),
    ] {
        let text = recorded(name);
        let text = text.lines().filter(|line| !line.starts_with('$')).map(|line| format!("{line}\n"));
        let text: String = text.collect();
        let other = without(&text, lacks);
        let figures = |text: &str| all(text).into_iter().map(|one| one.figures).collect::<Vec<_>>();
        let expected = [figures(&text), figures(&other)].concat();
        let (one, two) = (each("node1", &text), each("node2", &other));
        let behind = [one.concat(), two.concat()].concat();
        // As they came: lines of both alternate.
        let longest = one.len().max(two.len());
        let turns = (0..longest).flat_map(|at| [one.get(at), two.get(at)]).flatten().cloned();
        let in_turn: String = turns.collect();
        for wrapped in [&behind, &in_turn, &format!("$ pdsh -w node[1-2] run\n{in_turn}")] {
            let found = all(wrapped);
            let sources: std::collections::BTreeSet<&str> = found.iter().map(source).collect();
            assert_eq!(sources.into_iter().collect::<Vec<_>>(), ["node1", "node2"], "{name}: {wrapped}");
            let found: Vec<_> = found.into_iter().map(|one| one.figures).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn pages_of_unixbench_are_found_behind_mails_and_logs() {
    let page: String = {
        let mail = recorded("unixbench-page-in-mail.txt");
        let quoted = mail.lines().filter_map(|line| line.strip_prefix('>'));
        quoted.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    };
    let plain = all(&page);
    assert_eq!((plain.len(), plain[0].host.as_str()), (1, "box"));
    let each =
        |wrap: &dyn Fn(&str) -> String| -> String { page.lines().map(|line| wrap(line) + "\n").collect() };
    let wraps: [&dyn Fn(&str) -> String; 7] = [
        &|line| format!("> {line}"),
        &|line| format!("> > {line}"),
        &|line| format!(">> {line}"),
        &|line| format!("2026-11-02T03:04:05.678Z {line}"),
        &|line| format!("[2026-11-02T03:04:05.678Z] {line}"),
        &|line| format!("Nov  2 03:04:05 box unixbench[7]: {line}"),
        &|line| format!("unixbench-1  | {line}"),
    ];
    for wrap in wraps {
        let text = each(wrap);
        let found = all(&text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((&found[0].figures, &found[0].host), (&plain[0].figures, &plain[0].host), "{text}");
    }
    // In a mail in a log.
    let both = each(&|line| format!("Nov  2 03:04:05 box mail[7]: > {line}"));
    assert_eq!(all(&both)[0].figures, plain[0].figures);
}

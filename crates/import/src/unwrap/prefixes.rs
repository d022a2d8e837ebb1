//! Logs: what put a prefix before each line of what a program printed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::{MIN_LINES, MOSTLY, Plain, hosts};
use crate::above::prompt;
use crate::kit::Expression;

/// What logs put before each line: `source` names who printed it, `text` is the line, and `part`
/// says that it goes on in the next.
const PREFIXES: [&str; 18] = [
    // kubectl logs --prefix
    r"^\[(?P<source>pod/[^\]\s]+)\](?: (?P<text>.*))?$",
    // docker compose logs
    r"^(?P<source>[A-Za-z0-9][A-Za-z0-9_.-]*)\s*\|(?: (?P<text>.*))?$",
    // GitLab
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \d\d[OE](?: (?P<text>.*))?$",
    // A file of containerd or CRI-O.
    r"^\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d) (?:stdout|stderr) (?:F|(?P<part>P))(?: (?P<text>.*))?$",
    // journalctl -o short-iso
    r"^\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d) (?P<source>[A-Za-z0-9_.-]+ [^\s:\[]+)(?:\[(?P<process>\d+)\])?:(?: (?P<text>.*))?$",
    // journalctl -o short-full
    r"^[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z0-9+:-]{1,9} (?P<source>[\w.:-]+ [^\s:\[]+)(?:\[(?P<process>\d+)\])?:(?: (?P<text>.*))?$",
    // journalctl -o short-monotonic and short-unix
    r"^(?:\[ *\d+\.\d{6}\]|\d{10}\.\d{6}) (?P<source>[\w.:-]+ [^\s:\[]+)\[(?P<process>\d+)\]:(?: (?P<text>.*))?$",
    // Timestamps of kubectl, docker and others.
    r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?(?:\s(?P<text>.*))?$",
    // syslog by RFC 5424
    r"^(?:<\d{1,3}>)?1 \d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d) (?P<source>\S+ \S+) (?:-|(?P<process>\d+)) \S+ (?:-|\[.*?\])(?: (?P<text>.*))?$",
    // journalctl, syslog; an hour is no host.
    r#"^(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? (?P<source>(?:[\w.-]+|[\w.:-]*::[\w.:-]*[\w.-]|(?:\w+:){7}\w+) [^\s:\[{"]+)(?:\[(?P<process>\d+)\])?:(?: (?P<text>.*))?$"#,
    // iperf3 --timestamps, and moreutils' ts
    r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?: (?P<text>.*))?$",
    r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: (?P<text>.*))?$",
    // iperf3 --title
    r"^(?P<source>[^\s:\[]+):(?:  (?P<text>(?:\[|- -|iperf|[A-Z]).*)?)?$",
    // dmesg, and dmesg -T
    r"^\[ *\d+\.\d{6}\](?: (?P<text>.*))?$",
    r"^\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\](?: (?P<text>.*))?$",
    // Jenkins
    r"^\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\](?: (?P<text>.*))?$",
    // TeamCity
    r"^\[\d\d:\d\d:\d\d\][ A-Za-z]:\t *(?:\[[^\]]*\](?: |$))?(?P<text>.*)$",
    // The hour alone, as ts and others print it.
    r"^(?:\d\d:\d\d:\d\d(?:[.,]\d+)?|\[\d\d:\d\d:\d\d(?:[.,]\d+)?\])(?: (?P<text>.*))?$",
];
/// Processes of one log that are searched for those that wrote at once.
const MAX_PROCESSES: usize = 100;

/// The texts of a log's sources; the text itself where it is no log.
pub fn unprefixed(plain: Plain) -> Vec<Plain> {
    static KINDS: LazyLock<Vec<Expression>> =
        LazyLock::new(|| PREFIXES.iter().map(|kind| Expression::new(kind)).collect());
    let lines: Vec<&str> = plain.text.lines().collect();
    let filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let is_most = |count: usize| {
        let least = if count == filled { 1 } else { MIN_LINES };
        count >= least && count as f64 >= MOSTLY * filled as f64
    };
    if let Some(text) = of_json_log(&lines).filter(|text| is_most(text.lines().count())) {
        return vec![Plain { text, ..plain }];
    }
    let has_text = |kind: &Regex| {
        let mut found = lines.iter().filter_map(|line| kind.captures(line)?.name("text"));
        found.any(|text| !text.as_str().trim().is_empty())
    };
    let mut kinds = KINDS.iter().filter(|kind| {
        is_most(lines.iter().filter(|line| kind.is_match(line)).count())
            && has_text(kind)
            && !is_clipped(kind, &lines)
    });
    let numbered = numbered(&lines);
    let Some(kind) = kinds.next().filter(|_| numbered.is_none()) else {
        let inner = numbered.or_else(|| framed(&lines));
        let inner = inner.map(|text| vec![Plain { source: String::new(), text }]);
        let Some(inner) = inner.or_else(|| hosts::of_pods(&lines)).or_else(|| hosts::of_hosts(&lines)) else {
            return vec![plain];
        };
        return inner.into_iter().map(|one| one.of(&plain.source)).collect();
    };
    let apart = at_once(kind, &lines);
    // What was called is said of all that it printed.
    let begin = lines.iter().position(|line| kind.is_match(line)).unwrap_or(0);
    let is_call = |line: &&&str| prompt(line).is_some();
    let calls = hosts::calls(lines[..begin].iter().copied());
    let before = lines[..begin].iter().filter(|line| !is_call(line) && !line.trim().is_empty());
    let lines: Vec<&str> = before.chain(&lines[begin..]).copied().collect();
    let mut all: Vec<Plain> = Vec::new();
    let mut last = 0;
    for line in lines {
        let found = kind.captures(line);
        let named = |name: &str| found.as_ref().and_then(|found| found.name(name)).map(|one| one.as_str());
        // What has no prefix goes on where the last line stood.
        if found.is_some() || all.is_empty() {
            let own = named("source").unwrap_or_default();
            let own = match named("process").filter(|process| apart.contains(&(own, *process))) {
                Some(process) => format!("{own}[{process}]"),
                None => own.to_string(),
            };
            let own = Plain { source: own, text: calls.clone() }.of(&plain.source);
            last = all.iter().position(|one| one.source == own.source).unwrap_or(all.len());
            if last == all.len() {
                all.push(own);
            }
        }
        // Jenkins says so what it does itself.
        if named("text").is_some_and(|text| text.starts_with("[Pipeline] ")) {
            continue;
        }
        let own = &mut all[last].text;
        // syslog writes so what steers a terminal.
        let inner = named("text").unwrap_or_default().replace("#011", "\t");
        own.push_str(if found.is_some() { &inner } else { line });
        if named("part").is_none() {
            own.push('\n');
        }
    }
    all
}

/// Whether blanks that a kind takes for its own are those of indented lines: other lines of the
/// same source, as `grep -H` writes them, have none behind the colon.
fn is_clipped(kind: &Regex, lines: &[&str]) -> bool {
    let source = |line: &&str| Some(kind.captures(line)?.name("source")?.as_str().to_string());
    let sources: BTreeSet<String> = lines.iter().filter_map(source).collect();
    let others = lines.iter().filter(|line| !kind.is_match(line)).filter_map(|line| line.split_once(':'));
    others.into_iter().any(|(source, rest)| {
        sources.contains(source) && rest.starts_with(|first: char| !first.is_whitespace())
    })
}

/// Processes of one program that alternated with another of it, by source and number: what they
/// printed stands line by line in each other. Those that followed each other, or started each
/// other, are one source.
fn at_once<'t>(kind: &Regex, lines: &[&'t str]) -> BTreeSet<(&'t str, &'t str)> {
    let mut places: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = kind.captures(line) else { continue };
        let (Some(source), Some(process)) = (found.name("source"), found.name("process")) else { continue };
        let own = (source.as_str(), process.as_str());
        if places.len() < MAX_PROCESSES || places.contains_key(&own) {
            places.entry(own).or_default().push(at);
        }
    }
    // One has a line between the other's first and last.
    let is_inside = |one: &[usize], other: &[usize]| {
        let (first, last) = (other.first().copied(), other.last().copied());
        one.get(one.partition_point(|at| Some(*at) < first)).is_some_and(|at| Some(*at) < last)
    };
    let pairs = |own: &(&str, &str), at: &[usize]| {
        let others = places.iter().filter(|(other, _)| other.0 == own.0 && *other != own);
        others.into_iter().any(|(_, other)| is_inside(at, other) && is_inside(other, at))
    };
    places.iter().filter(|(own, at)| pairs(own, at)).map(|(own, _)| *own).collect()
}

/// What `cat -n`, `nl` and `grep -n` numbered: each line by one more than the one before.
fn numbered(lines: &[&str]) -> Option<String> {
    static LINE: Expression = Expression::new(r"^ *(\d+)(?:(?:\t|  |[:|])(.*))?$");
    let (mut text, mut next, mut worded, mut count) = (String::new(), None, false, 0);
    for line in lines {
        if line.trim().is_empty() {
            text.push('\n');
            continue;
        }
        let Some(found) = LINE.captures(line) else {
            // What stands above the first.
            next.is_none().then_some(())?;
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let number: u64 = found[1].parse().ok()?;
        if next.is_some_and(|next| next != number) {
            return None;
        }
        next = Some(number + 1);
        count += 1;
        let inner = found.get(2).map_or("", |one| one.as_str());
        worded |= inner.contains(char::is_alphabetic);
        text.push_str(inner);
        text.push('\n');
    }
    (count >= MIN_LINES && worded).then_some(text)
}

/// What stands in a comment of a program, a list, or a box, every line of it.
fn framed(lines: &[&str]) -> Option<String> {
    const MARKS: [&str; 7] = ["#", "//", "*", ";", "--", "\u{2502}", "\u{2551}"];
    let filled = || lines.iter().filter(|line| !line.trim().is_empty());
    let inner = |line: &str, mark: &str| -> Option<String> {
        let rest = line.trim_start().strip_prefix(mark)?;
        let rest = rest.strip_prefix(' ').or(Some(rest).filter(|rest| rest.is_empty()))?;
        let is_box = !mark.is_ascii();
        Some(if is_box { rest.trim_end_matches(mark).trim_end() } else { rest }.to_string())
    };
    let mark = MARKS.iter().find(|mark| filled().all(|line| inner(line, mark).is_some()))?;
    let enough = filled().count() >= MIN_LINES;
    enough.then(|| lines.iter().map(|line| inner(line, mark).unwrap_or_default() + "\n").collect())
}

/// The lines in a file of Docker's `json-file`, if all that are not empty are such.
fn of_json_log(lines: &[&str]) -> Option<String> {
    lines.first().filter(|first| first.starts_with("{\"log\":"))?;
    let text = |line: &&str| -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(value["log"].as_str()?.to_string())
    };
    lines.iter().filter(|line| !line.trim().is_empty()).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Vec<(String, String)> {
        let plain = Plain { source: String::new(), text: text.to_string() };
        unprefixed(plain).into_iter().map(|one| (one.source, one.text)).collect()
    }

    #[test]
    fn an_hour_behind_a_time_is_no_host() {
        let of = |rest: &str| sources(&format!("Nov  2 03:04:05 {rest}\n").repeat(3))[0].clone();
        let text = |line: &str| format!("{line}\n").repeat(3);
        let line = "17:33:48 INFO: 5 connections created";
        assert_eq!(of(line), (String::new(), text(line)));
        for host in ["box", "10.0.0.1", "fe80::1", "2001:db8:0:1:2:3:4:5"] {
            let expected = (format!("{host} tool"), text("5 of 7"));
            assert_eq!(of(&format!("{host} tool[71]: 5 of 7")), expected, "{host}");
        }
    }

    #[test]
    fn processes_that_wrote_at_once_are_sources() {
        let line = |process: u32, text: &str| format!("Nov 02 03:04:05 box tool[{process}]: {text}\n");
        let iso =
            |process: u32, text: &str| format!("2026-11-02T03:04:05+0100 box tool[{process}]: {text}\n");
        let of = |line: &dyn Fn(u32, &str) -> String, processes: &[u32]| {
            let text: String =
                processes.iter().map(|process| line(*process, &format!("of {process}"))).collect();
            sources(&text).into_iter().map(|(source, _)| source).collect::<Vec<_>>()
        };
        for line in [&line as &dyn Fn(u32, &str) -> String, &iso] {
            assert_eq!(of(line, &[71, 72, 71, 72]), ["box tool[71]", "box tool[72]"]);
            assert_eq!(of(line, &[71, 72, 71, 72, 73, 72]), ["box tool[71]", "box tool[72]", "box tool"]);
            // One behind the other, and one that started others.
            for processes in [&[71, 71, 72, 72][..], &[70, 71, 71, 70, 72, 72, 70], &[71; 4]] {
                assert_eq!(of(line, processes), ["box tool"], "{processes:?}");
            }
        }
        let text = [line(71, "a"), line(72, "b"), line(71, "c"), line(72, "d")].concat();
        assert_eq!(sources(&text)[0].1, "a\nc\n");
    }
}

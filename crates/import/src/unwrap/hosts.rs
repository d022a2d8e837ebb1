//! Logs that name who wrote a line by words alone: `pdsh`, `clush` and `dsh -M` a host before a
//! colon, `stern` a pod and its container.

use regex::Regex;
use std::collections::BTreeSet;

use super::sides::skeleton;
use super::{MAX_SOURCES, MIN_LINES, MOSTLY, Plain};
use crate::above::prompt;
use crate::kit::Expression;

/// What begins lines of results: programs, and directions of fio.
const OWN: [&str; 25] = [
    "INFO",
    "DBG",
    "netperf",
    "nuttcp-t",
    "nuttcp-r",
    "stress-ng",
    "openssl",
    "sockperf",
    "iperf3",
    "iperf",
    "fio",
    "sysbench",
    "hackbench",
    "perf",
    "make",
    "bash",
    "sh",
    "read",
    "write",
    "trim",
    "mixed",
    "READ",
    "WRITE",
    "TRIM",
    "MIXED",
];
/// Lines of each source that are compared with others.
const MAX_TRIED: usize = 500;
/// A line of a result that begins with a name has fewer numbers behind it.
const MAX_VALUES: usize = 20;

/// The last calls above a log, which are of each of its sources.
pub fn calls<'t>(above: impl DoubleEndedIterator<Item = &'t str>) -> String {
    const MAX_CALLS: usize = 5;
    const MAX_CALL_BYTES: usize = 1000;
    let is_call = |line: &&str| line.len() <= MAX_CALL_BYTES && prompt(line).is_some();
    let last: Vec<&str> = above.rev().filter(is_call).take(MAX_CALLS).collect();
    last.into_iter().rev().map(|line| format!("{line}\n")).collect()
}

/// The texts of all that a line's start names: those are the first two groups of the pattern, and
/// what stands there. A call above is of each, and what else stands there of none.
fn by(kind: &Regex, lines: &[&str]) -> Option<Vec<Plain>> {
    let (mut all, mut count): (Vec<Plain>, usize) = (Vec::new(), 0);
    let mut last = 0;
    let filled: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    let says = |line: &str| kind.captures(line).and_then(|found| found.get(2)).is_some();
    let begin = filled.iter().position(|line| says(line))?;
    let is_call = |line: &&&&str| prompt(line).is_some();
    let calls = calls(filled[..begin].iter().map(|line| **line));
    let above = filled[..begin].iter().filter(|line| !is_call(line)).map(|line| (*line, None));
    let named = filled[begin..].iter().map(|line| (*line, kind.captures(line)));
    for (line, found) in above.chain(named) {
        let group = |at: usize| found.as_ref().map(|found| found.get(at).map_or("", |one| one.as_str()));
        let source = group(1).unwrap_or_default();
        if found.is_some() || all.is_empty() {
            last = all.iter().position(|one| one.source == source).unwrap_or(all.len());
            if last == all.len() {
                all.push(Plain { source: source.to_string(), text: String::new() });
            }
        }
        count += usize::from(found.is_some());
        all[last].text.push_str(group(2).unwrap_or(line));
        all[last].text.push('\n');
        if all.len() > MAX_SOURCES {
            return None;
        }
    }
    all.iter_mut().for_each(|one| one.text.insert_str(0, &calls));
    (count >= MIN_LINES && count as f64 >= MOSTLY * filled.len() as f64).then_some(all)
}

fn is_named(one: &&Plain) -> bool {
    !one.source.is_empty()
}

/// What a text's first lines are without their numbers, each once.
fn skeletons(one: &Plain) -> BTreeSet<String> {
    one.text.lines().take(MAX_TRIED).map(skeleton).filter(|line| !line.is_empty()).collect()
}

/// `HOST: LINE`, `FILE:LINE` of `grep -H`, and what `mpirun --tag-output` writes. Each of several
/// hosts printed what another one did, as far as it got; one alone stands before every line.
pub fn of_hosts(lines: &[&str]) -> Option<Vec<Plain>> {
    static HOST: Expression = Expression::new(r"^([A-Za-z0-9][\w.-]*):(?: (.*))?$");
    static FILE: Expression =
        Expression::new(r"^(\[\d+,\d+\]<std(?:out|err)>|[A-Za-z0-9_~./-]*[./][A-Za-z0-9_./-]*):(.*)$");
    [&HOST, &FILE].into_iter().find_map(|kind| of_names(kind, lines))
}

/// The same by a pattern.
fn of_names(kind: &Regex, lines: &[&str]) -> Option<Vec<Plain>> {
    let all = by(kind, lines)?;
    if all.iter().any(|one| OWN.contains(&one.source.as_str())) {
        return None;
    }
    let own: Vec<BTreeSet<String>> = all.iter().filter(is_named).map(skeletons).collect();
    let figure = |line: &String| line.contains('0') && line.contains(char::is_alphabetic);
    // A name with its value is what a line of a result is, too.
    let is_log = |own: &BTreeSet<String>| own.len() >= 2 && own.iter().any(figure);
    let is_alike = |at: usize| {
        let shared = |line: &&String| (0..own.len()).any(|other| other != at && own[other].contains(*line));
        2 * own[at].iter().filter(shared).count() >= own[at].len()
    };
    let several = own.len() > 1 && own.iter().all(is_log) && (0..own.len()).all(is_alike);
    // No name has this many values.
    let is_row = |line: &String| line.matches('0').count() >= MAX_VALUES;
    let alone = own.len() == 1 && (own[0].len() >= MIN_LINES && is_log(&own[0]) || own[0].iter().any(is_row));
    (several || alone).then_some(all)
}

/// `POD CONTAINER LINE`, with the lines by which `stern` says what comes and goes.
pub fn of_pods(lines: &[&str]) -> Option<Vec<Plain>> {
    static POD: Expression =
        Expression::new(r"^((?:[a-z0-9]+[.-])+[a-z0-9]+ [a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(?: (.*))?$");
    static COMES: Expression =
        Expression::new("^[+-] (?:\\S+ )?([a-z0-9][a-z0-9.-]*) \u{203a} ([a-z0-9-]+)$");
    let own: Vec<&str> = lines.iter().filter(|line| !COMES.is_match(line)).copied().collect();
    let all = by(&POD, &own)?;
    // Two words begin every line of a source, and every source has several.
    let is_log = |one: &Plain| one.text.lines().count() >= 2 && skeletons(one).len() >= 2;
    (all.iter().filter(is_named).all(is_log)).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(found: Option<Vec<Plain>>) -> Vec<(String, String)> {
        let all = found.unwrap_or_default().into_iter();
        all.map(|one| (one.source, one.text)).collect()
    }

    const LINES: [&str; 3] = ["Running in process mode", "Each sender will pass 5 messages", "Time: 0.5"];

    #[test]
    fn hosts_before_a_colon_are_sources_even_where_one_lacks_a_line() {
        let text = |host: &str, lines: &[&str]| -> String {
            lines.iter().map(|line| format!("{host}: {line}\n")).collect()
        };
        for [one, other] in [["node1", "node2"], ["db-1.lan", "db-2.lan"], ["10.0.0.1", "10.0.0.2"]] {
            let whole = LINES.join("\n") + "\n";
            for missing in 0..LINES.len() {
                let mut lines = LINES.to_vec();
                lines.remove(missing);
                let both = text(one, &LINES) + &text(other, &lines);
                let found = each(of_hosts(&both.lines().collect::<Vec<_>>()));
                let expected = [(one, whole.clone()), (other, lines.join("\n") + "\n")];
                assert_eq!(found, expected.map(|(host, text)| (host.to_string(), text)), "{both}");
            }
            let alone = text(one, &LINES);
            assert_eq!(each(of_hosts(&alone.lines().collect::<Vec<_>>())), [(one.to_string(), whole)]);
            let row = ["5"; MAX_VALUES].join(";");
            let rows = text(one, &[row.as_str(); 3]);
            let expected = [(one.to_string(), format!("{row}\n").repeat(3))];
            assert_eq!(each(of_hosts(&rows.lines().collect::<Vec<_>>())), expected);
        }
    }

    #[test]
    fn names_of_values_are_no_hosts() {
        for text in [
            "Time: 4.905\nTime: 4.871\nTime: 4.434\n",
            "Time: 4.905\nMemory: 4.871\nTime: 4.434\n",
            "sockperf: Total 5 of 7\nsockperf: Summary 3\nsockperf: ---> percentile 50 = 1\n",
            "read: 1 MB/s of 5\nwrite: 2 MB/s of 5\nread: 3 IOPS x\nwrite: 4 times y\n",
            "a: one\nb: two\n",
            &format!("speeds: {}\n", ["5"; MAX_VALUES - 1].join(" ")).repeat(3),
        ] {
            assert_eq!(of_hosts(&text.lines().collect::<Vec<_>>()), None, "{text}");
        }
    }

    #[test]
    fn pods_and_their_containers_are_sources() {
        let line = |pod: &str, line: &str| format!("{pod} main {line}\n");
        let text = |pod: &str| LINES.map(|own| line(pod, own)).concat();
        let comes = "+ lab bench-7d9f-x2 \u{203a} main\n+ bench-7d9f-y4 \u{203a} main\n";
        let goes = "- lab bench-7d9f-x2 \u{203a} main\n";
        let whole = LINES.join("\n") + "\n";
        for text in [
            text("bench-7d9f-x2"),
            comes.to_string() + &text("bench-7d9f-x2"),
            comes.to_string() + &text("bench-7d9f-x2") + goes,
        ] {
            let expected = [("bench-7d9f-x2 main".to_string(), whole.clone())];
            assert_eq!(each(of_pods(&text.lines().collect::<Vec<_>>())), expected);
        }
        let both = text("bench-7d9f-x2") + &text("bench-7d9f-y4");
        assert_eq!(of_pods(&both.lines().collect::<Vec<_>>()).map(|all| all.len()), Some(2));
        for text in ["no-op here 1\nno-op here 1\nno-op here 1\n", "one two 3\nfour five 6\nseven 8\n"] {
            assert_eq!(of_pods(&text.lines().collect::<Vec<_>>()), None, "{text}");
        }
    }
}

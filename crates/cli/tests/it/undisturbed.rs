//! What looks at memory leave of a machine: they keep to their plan and to a group's limit, go
//! nowhere near swap, and end at once with all memory given back.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::{Group, skipped};
use crate::runs::{end, read, run_file, start, visits_so_far};

const MIB: u64 = 1 << 20;

/// The verbs that look at memory, each with as much work as a test can wait for many times over.
const LOOKS: [&str; 3] = [
    "memmap --max 1G --rounds 200",
    "run --quick --only memory.regions --budget 1h",
    "host --quick --budget 1h",
];

/// A verb with its words, into a folder.
fn look(words: &str, dir: &Path) -> Command {
    let mut command = crate::assay();
    command.args(words.split_whitespace()).arg("--force").arg("--out").arg(dir);
    command
}

/// Memory without a file behind it that all processes of a group have now, bytes.
fn anonymous(group: &Group) -> u64 {
    let of = |pid: &str| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    group.get("cgroup.procs").lines().filter_map(of).sum()
}

/// What the largest case of a plan in this group wants, bytes.
fn planned(group: &Group, words: &str) -> u64 {
    let dir = tempfile::tempdir().expect("a folder");
    let words = format!("{words} --dry-run --json");
    let ended = end(&mut group.inside(&look(&words, dir.path())));
    let plan: Value = serde_json::from_str(&ended.expect(0).out).expect("JSON");
    let cases = plan["plan"].as_array().expect("a list").iter().filter(|case| case["unmet"].is_null());
    cases.filter_map(|case| case["memory_bytes"].as_u64()).max().expect("a case")
}

#[test]
fn looks_at_memory_keep_to_their_plan_in_a_group_of_300_mb() {
    const LIMIT: u64 = 300 * MIB;
    // What the session itself and its children hold.
    const BESIDE: u64 = 56 * MIB;
    let test = "looks_at_memory_keep_to_their_plan_in_a_group_of_300_mb";
    for words in LOOKS {
        let group = match Group::new("memory", &[("memory.limit_in_bytes", &LIMIT)]) {
            Ok(group) => group,
            Err(why) => return skipped(test, why),
        };
        let planned = planned(&group, words);
        assert!((16 * MIB..LIMIT).contains(&planned), "{words}: {planned} bytes planned");
        if words.starts_with("host") {
            // Its looks are those of the run.
            continue;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let fewer = words.replace("--rounds 200", "--rounds 2");
        let mut running = start(&mut group.inside(&look(&fewer, dir.path())));
        let mut most = 0;
        running.until("a visit", |_| {
            most = anonymous(&group).max(most);
            visits_so_far(dir.path()) > 0
        });
        running.signal(rustix::process::Signal::TERM);
        let ended = running.end();
        assert!([0, 3, 130].contains(&ended.sane().code), "{words}: {ended:?}");
        let run = read(&run_file(dir.path()));
        let visit = &run.visits[0];
        assert!(visit.reason.is_none(), "{words}: {:?}", visit.reason);
        let touched = visit.process.memory_bytes.expect("what it took");
        assert!(touched <= planned && touched >= MIB, "{words}: {touched} of {planned} bytes");
        assert!(most <= planned + BESIDE, "{words}: {most} bytes, {planned} planned");
        let peak: u64 = group.get("memory.max_usage_in_bytes").trim().parse().expect("a number");
        assert!((touched..=LIMIT).contains(&peak), "{words}: at most {peak} bytes, {touched} touched");
        assert!(visit.conditions.swapped_pages.unwrap_or(0.0) == 0.0, "{words}: {:?}", visit.conditions);
        let killed = group.get("memory.oom_control");
        assert!(!killed.contains("oom_kill ") || killed.contains("oom_kill 0"), "{words}: {killed}");
    }
}

/// By Ctrl-C in the middle of a look.
#[test]
fn looks_at_memory_end_at_once_and_give_it_back() {
    // A host may be busy with others; alone here it is a fifth of a second.
    const PATIENCE: Duration = Duration::from_secs(10);
    let test = "looks_at_memory_end_at_once_and_give_it_back";
    for words in LOOKS {
        let group = match Group::new("memory", &[]) {
            Ok(group) => group,
            Err(why) => return skipped(test, why),
        };
        let dir = tempfile::tempdir().expect("a folder");
        let mut running = start(&mut group.inside(&look(words, dir.path())));
        running.until("memory that is taken", |_| anonymous(&group) > 112 * MIB);
        let begin = Instant::now();
        running.signal(rustix::process::Signal::INT);
        let ended = running.end();
        let took = begin.elapsed();
        eprintln!("{test}: {words}: {took:?}");
        ended.expect(130);
        assert!(took < PATIENCE, "{words}: {took:?} to end");
        let run = read(&run_file(dir.path()));
        assert!(run.damage.is_empty(), "{words}: {:?}", run.damage);
        assert_eq!(group.get("cgroup.procs"), "", "{words}: nobody is left who has memory");
    }
}

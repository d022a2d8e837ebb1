//! Sweeps of what belongs to our own tasks: by a user without privileges, and felt by the tasks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::sweep;
use crate::host::{processes_marked, skipped, unique};
use crate::runs::{
    end, folder_of_nobody, is_tidy, page_is_whole, read, results, run_file, start, unprivileged,
};

/// Each visit works for some tenths of a second, so that its tasks can be looked at on a loaded
/// host, too.
const WORDS: &str = "hackbench --quick --force --param groups=1 --param fds=2 --param loops=20000 --response none --effect 1000 \
                     --knob slice_ns=0.2ms,20ms --knob policy=other,batch";

/// With a home and a journal of its own.
fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("HOME", home).env("ASSAY_STATE", home.join("state")).current_dir(home);
    command.env_remove("XDG_STATE_HOME");
    command
}

/// The scheduler's view of a process that runs: its slice and its policy.
fn scheduled(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/sched")).ok()?;
    let number = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
        line.split_whitespace().last()?.parse().ok()
    };
    Some((number("se.slice")?, number("policy")?))
}

#[test]
fn slice_and_policy_without_root_reach_every_task() {
    let test = "slice_and_policy_without_root_reach_every_task";
    let Some(home) = folder_of_nobody(test) else { return };
    let knobs = end(&mut unprivileged(crate::assay().args(["knobs", "slice_ns", "policy", "--json"])));
    if knobs.code == 3 {
        return skipped(test, "kernels before 6.12 know no slice of a task's own");
    }
    assert_eq!(knobs.expect(0).out.matches("\"writable\": true").count(), 2, "{}", knobs.out);
    let tells = scheduled(std::process::id()).is_some();
    if !tells {
        skipped(&format!("{test}: what the tasks have"), "this kernel does not tell it in /proc/PID/sched");
    }
    let (mark, out) = (unique(), home.path().join("out"));
    let mut command = sweep(WORDS);
    command.arg("--out").arg(&out).env("ASSAY_TEST", &mark);
    let mut running = start(&mut unprivileged(&at_home(command, home.path())));
    // How many tasks were seen with which slice and policy.
    let mut seen: BTreeMap<(u64, u64), std::collections::BTreeSet<u32>> = BTreeMap::new();
    let wanted = [(200_000, 0), (200_000, 3), (20_000_000, 0), (20_000_000, 3)];
    running.until("tasks of all four settings", |_| {
        for (pid, _) in processes_marked(&mark) {
            if let Some(has) = scheduled(pid) {
                seen.entry(has).or_default().insert(pid);
            }
        }
        !tells || wanted.iter().all(|has| seen.get(has).is_some_and(|tasks| tasks.len() > 2))
    });
    let ended = running.end();
    ended.sane();
    let run = read(&run_file(&out));
    assert!(run.visits.iter().all(|visit| visit.reason.is_none()), "{:?}", run.visits);
    let sweep = run.header.sweep.as_ref().expect("a layout");
    assert_eq!((sweep.shape(), sweep.response.is_none()), ([2, 2], true));
    assert_eq!(sweep.axes[1].before.as_deref(), Some("other"));
    // The slice that was there is none of the two: it is measured beside them.
    assert_eq!((run.header.plan.len(), sweep.control.len()), (5, 1));
    assert!(!run.events.iter().any(|event| event.kind == "knob"), "nothing of the system was turned");
    assert!(!home.path().join("state").exists(), "nothing is noted where nothing is turned");
    let cells = results(&out)["series"]
        .as_array()
        .expect("series")
        .iter()
        .filter(|one| one["key"].as_str().is_some_and(|key| key.ends_with("#time")))
        .count();
    assert_eq!(cells, 5);
    page_is_whole(&out);
    is_tidy(&out);
}

#[test]
fn a_user_is_told_which_knob_only_root_may_turn() {
    let test = "a_user_is_told_which_knob_only_root_may_turn";
    let Some(home) = folder_of_nobody(test) else { return };
    let file = "/proc/sys/kernel/sched_autogroup_enabled";
    let Ok(before) = fs::read_to_string(file) else {
        return skipped(test, format!("there is no {file}"));
    };
    if end(&mut unprivileged(Command::new("sh").args(["-c", &format!("exec 3<>{file}")]))).code == 0 {
        return skipped(test, format!("whoever runs this may write {file}"));
    }
    let out = home.path().join("out");
    let run = |words: &str| {
        let mut command = sweep(&format!("selftest.steady --quick --force {words}"));
        command.arg("--out").arg(&out);
        end(&mut unprivileged(&at_home(command, home.path())))
    };
    run("--knob autogroup=0,1").expect(3).says(&["needs root", file]);
    run("--knob autogroup=0,1 --knob policy=other,batch").expect(3).says(&["needs root", file]);
    assert!(!out.exists() && !home.path().join("state").exists(), "nothing was begun");
    assert_eq!(fs::read_to_string(file).expect("it is there"), before);
    let mut knobs = crate::assay();
    knobs.args(["knobs", "autogroup"]).env("COLUMNS", "300");
    let list = end(&mut unprivileged(&at_home(knobs, home.path())));
    assert!(list.expect(0).out.contains(&format!("writing {file} needs root")), "{}", list.out);
}

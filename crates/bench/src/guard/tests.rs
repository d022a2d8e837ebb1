//! Commands that behave and commands that don't.

use super::super::rehearsal::{this_machine, visit};
use super::*;
use model::vocabulary::guard as ids;
use model::{Reason, Samples};

/// The free case of a command.
fn case(words: &[&str], wanted: Option<&str>, timeout: &str) -> Case {
    let floor = Floor::of(&this_machine());
    let mut case = Candidate::new(ids::COMMAND, floor.free(&["command"]).expect("CPUs"), 1, 0.1).case;
    let wanted = wanted.map(|text| Wanted::parse(text, None).expect("a metric"));
    case.inputs.insert(WORDS.into(), serde_json::to_string(words).expect("text"));
    case.inputs.insert(TIMEOUT.into(), timeout.into());
    case.inputs.insert(FLOOR.into(), floor.chart());
    if let Some(wanted) = wanted {
        case.inputs.insert(WANTED.into(), serde_json::to_string(&wanted).expect("text"));
    }
    case
}

fn shell(script: &str, wanted: Option<&str>) -> (Vec<Samples>, Option<Reason>) {
    visit(&case(&["/bin/sh", "-c", script], wanted, "20"))
}

fn value(samples: &[Samples], metric: &str) -> Option<f64> {
    let found = samples.iter().find(|one| one.metrics == [metric])?;
    found.values(Form::Value).first().copied()
}

fn why(reason: Option<Reason>) -> String {
    reason.map(|reason| reason.text().to_string()).unwrap_or_default()
}

#[test]
fn a_run_is_one_value_with_all_that_goes_with_it() {
    let (samples, reason) =
        shell("echo rate 5; echo rate 12.5; sleep 0.05; exit 0", Some("r=rate ([0-9.]+)"));
    assert_eq!(reason, None);
    assert_eq!(value(&samples, &ids::metric::RESULT), Some(12.5));
    assert!(value(&samples, &ids::metric::WALL).is_some_and(|wall| (0.05..20.0).contains(&wall)));
    assert!(value(&samples, &ids::metric::FAULTS).is_some_and(|faults| faults > 10.0));
    assert_eq!(value(&samples, &ids::metric::LEFT), Some(0.0));
    let result = samples.iter().find(|one| one.metrics == [ids::metric::RESULT]).expect("a result");
    assert!(result.beside.clock_ghz.is_some() && result.len() == 1);
    // Without a metric the wall time is the result.
    let (samples, _) = shell("sleep 0.05", None);
    assert_eq!(value(&samples, &ids::metric::RESULT), value(&samples, &ids::metric::WALL));
}

#[test]
fn what_goes_wrong_is_said_with_the_last_lines() {
    let said = why(shell("echo fine; echo broken >&2; exit 7", None).1);
    assert!(said.contains("ended with exit code 7") && said.contains("Its last lines: broken"), "{said}");
    assert!(why(shell("kill -SEGV $$", None).1).contains("was ended by signal 11"));
    let said = why(shell("echo one; echo two", Some("x=three")).1);
    assert!(said.contains("the metric x did not appear in its output; its last lines: one / two"), "{said}");
    let said = why(visit(&case(&["/nowhere/at/all"], None, "5")).1);
    assert!(said.contains("cannot start \"/nowhere/at/all\""), "{said}");
    // It ignores being asked.
    let stubborn = case(&["/bin/sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.05; done"], None, "2");
    let said = why(visit(&stubborn).1);
    assert!(said.contains("no end after 2 s (--timeout); killed. Its last lines: on"), "{said}");
}

#[test]
fn what_it_leaves_is_counted_and_killed() {
    let mark = format!("{}.5", 300_000 + std::process::id());
    let folder = tempfile::tempdir().expect("a folder");
    // It ends when the shell that it leaves and that one's first child are there.
    let there = folder.path().join("there");
    let (there, left) = (there.display(), format!("sleep {mark} & : >\"$0\"; sleep {mark}"));
    let script = format!(
        "setsid sh -c '{left}' '{there}' >/dev/null 2>&1 & while [ ! -e '{there}' ]; do sleep 0.01; done"
    );
    let (samples, reason) = shell(&script, None);
    assert_eq!(reason, None);
    assert!(value(&samples, &ids::metric::LEFT).is_some_and(|left| left >= 2.0));
    let running = Command::new("ps").args(["-eo", "args"]).output().expect("ps");
    let running = String::from_utf8_lossy(&running.stdout).into_owned();
    assert!(!running.lines().any(|line| line.contains(&mark)), "{running}");
}

#[test]
fn long_outputs_are_taken_and_streams_may_close_early() {
    let (samples, reason) = shell("head -c 60000000 /dev/zero; echo; echo end 3", Some("end=end (.*)"));
    assert_eq!((value(&samples, &ids::metric::RESULT), reason), (Some(3.0), None));
    let (samples, reason) = shell("exec >&- 2>&-; sleep 0.05", None);
    assert!(reason.is_none() && value(&samples, &ids::metric::RESULT).is_some_and(|wall| wall >= 0.05));
    assert_eq!(why(shell("read x && exit 1; exit 0", None).1), "", "standard input is empty");
}

//! Commands that behave and commands that don't.

use super::super::rehearsal::{this_machine, visit};
use super::*;
use model::vocabulary::guard as ids;
use model::{Reason, Samples, Seat};

/// The free case of a command.
fn case(words: &[&str], wanted: Option<&str>, timeout: &str) -> Case {
    let placements = Placements::of(&this_machine());
    let mut case = Candidate::new(ids::COMMAND, placements.free(&["command"]).expect("CPUs"), 1, 0.1).case;
    let wanted = wanted.map(|text| Wanted::parse(text, None).expect("a metric"));
    case.inputs.insert(WORDS.into(), serde_json::to_string(words).expect("text"));
    case.inputs.insert(TIMEOUT.into(), timeout.into());
    case.inputs.insert(FLOOR.into(), placements.chart());
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
    assert!(said.contains("killed after 2 s (--timeout). Its last lines: on"), "{said}");
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

/// The first round of two scripts at once; none where there is one CPU.
fn duet(a: &str, b: &str, wanted: Option<&str>) -> Option<(Vec<Samples>, Option<Reason>)> {
    let mut case = case(&["/bin/sh", "-c", a], wanted, "20");
    let cpus: Vec<u32> = case.placement.cpus().iter().take(2).collect();
    let [first, second] = cpus.try_into().ok()?;
    let seat = case.placement.seats[0].clone();
    case.placement.seats =
        [first, second].map(|cpu| Seat { cpus: CpuSet::one(cpu), ..seat.clone() }).to_vec();
    let words = serde_json::to_string(&["/bin/sh", "-c", b]).expect("text");
    case.inputs.insert(RIVAL.into(), words);
    case.inputs.insert(NAMES.into(), "A-sh,B-sh".into());
    Some(visit(&case))
}

fn of_arm(samples: &[Samples], name: &str, metric: &str) -> Option<f64> {
    let own = |one: &&Samples| one.point.get(ids::param::COMMAND).is_some_and(|own| own.text() == Some(name));
    let found: Vec<Samples> = samples.iter().filter(own).cloned().collect();
    value(&found, metric)
}

#[test]
fn two_at_once_meet_and_each_has_its_own_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let meet = folder.path().join("meet");
    let made = Command::new("mkfifo").arg(&meet).status().expect("mkfifo");
    assert!(made.success());
    // Each end of the pipe waits until the other is opened.
    let a = format!("echo x >'{}'; echo n 1", meet.display());
    let b = format!("read x <'{}'; (sleep 300 &) >/dev/null 2>&1; echo n 2", meet.display());
    let Some((samples, reason)) = duet(&a, &b, Some("n=n (.*)")) else { return };
    assert_eq!(reason, None);
    let result = |name: &str| of_arm(&samples, name, &ids::metric::RESULT);
    assert_eq!((result("A-sh"), result("B-sh")), (Some(1.0), Some(2.0)));
    let left = |name: &str| of_arm(&samples, name, &ids::metric::LEFT);
    assert_eq!((left("A-sh"), left("B-sh")), (Some(0.0), Some(1.0)));
    assert!(value(&samples, &ids::metric::OVERLAP).is_some_and(|share| (0.0..=1.0).contains(&share)));
}

#[test]
fn one_that_fails_ends_both_and_is_named() {
    let mark = format!("{}.25", 300_000 + std::process::id());
    let Some((samples, reason)) = duet(&format!("sleep {mark}"), "echo broken; exit 7", None) else { return };
    let said = why(reason);
    assert!(said.contains("B: /bin/sh ended with exit code 7. Its last lines: broken"), "{said}");
    assert_eq!(samples.len(), 0);
    let running = Command::new("ps").args(["-eo", "args"]).output().expect("ps");
    assert!(!String::from_utf8_lossy(&running.stdout).contains(&mark));
    let said = why(duet("exit 1", "sleep 0.01", Some("n=n")).expect("two CPUs").1);
    assert!(said.starts_with("A: ") || said.starts_with("B: the metric n did not appear"), "{said}");
}

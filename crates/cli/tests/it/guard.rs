//! `assay guard` around programs that behave, and around ones that do all they can not to.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::host::{nothing_left_running, processes_marked, unique};
use crate::runs::{Ended, end, is_tidy, page_is_whole, read, results, run_file, series, start};

/// `assay guard` into a folder with these words, around a command.
fn guard(dir: &Path, words: &str, command: &[&str]) -> Command {
    let mut guard = crate::assay();
    guard.arg("guard").args(["--force", "--new", "--out"]).arg(dir);
    guard.args(words.split_whitespace()).arg("--").args(command);
    guard
}

/// Its end around a shell's script; the environment marks all that it starts.
fn shell(words: &str, script: &str) -> (Ended, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let mark = unique();
    let ended = end(guard(dir.path(), words, &["/bin/sh", "-c", script]).env("ASSAY_TEST", &mark));
    ended.sane();
    nothing_left_running(&mark);
    (ended, dir)
}

#[test]
fn a_command_that_cannot_be_run_is_a_mistake_of_usage() {
    let dir = tempfile::tempdir().expect("a folder");
    let fails = |words: &str, command: &[&str], says: &str| {
        end(&mut guard(dir.path(), words, command)).expect(2).says(&[says]);
    };
    fails("", &["no-such-program-anywhere"], "no program is called");
    fails("", &["/no/such/program"], "\"/no/such/program\" does not exist");
    fails("", &["/"], "is not a file");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "text").expect("written");
    fails("", &[plain.to_str().expect("text")], "may not be executed");
    fails("--metric x=(", &["/bin/sh"], "this regular expression is not one");
    fails("--metric x", &["/bin/sh"], "NAME=REGEX");
    fails("--better lower", &["/bin/sh"], "--better belongs to");
    fails("--format nothing", &["/bin/sh"], "nothing");
    fails("--vs no-such-program-anywhere", &["/bin/sh"], "no program is called");
    fails("--vs 'sh", &["/bin/sh"], "a quote is not closed");
    fails("--vs /bin/sh", &["/bin/sh"], "both commands are the same");
    fails("--vs /bin/true --placements free,spread", &["/bin/sh"], "takes one placement");
    fails("--duet", &["/bin/sh"], "--vs");
    fails("--duet --vs /bin/true --placements free", &["/bin/sh"], "--placements");
    assert!(!dir.path().join("report.html").exists(), "nothing was measured");
}

#[test]
fn nobody_knows_how_long_a_program_takes() {
    let (ended, _dir) = shell("--runs 2", "sleep 0.1");
    ended.measured();
    assert!(!ended.err.contains("at most") && !ended.err.contains("0 s left"), "{}", ended.err);
    ended.says(&["measuring 1 case on", "(pass 1 of about 2)"]);
}

#[test]
fn figures_are_taken_and_stored_with_their_meaning() {
    let (ended, dir) = shell("--all --runs 3 --metric rate[1/s]=rate:(.*)", "echo rate: 1; echo rate: 250");
    ended.measured();
    let results = results(dir.path());
    let rate = series(&results, "guard.command@free?command=sh-");
    assert_eq!((rate["median"].as_f64(), rate["n"].as_u64()), (Some(250.0), Some(3)), "{rate}");
    assert_eq!((&rate["unit"], &rate["better"]), (&"1/s".into(), &"higher".into()), "{rate}");
    assert!(ended.out.contains("Guarded command") && ended.out.contains("echo rate: 1"), "{}", ended.out);
    page_is_whole(dir.path());
    is_tidy(dir.path());
    // A tool that ran twice in one run has two results, and that is said.
    let (ended, dir) = shell("--runs 2 --format hackbench", "echo 'Time: 1.5'; echo 'Time: 2.5'");
    let says = "the output holds 2 results; the last one counts";
    let run = read(&run_file(dir.path()));
    let notes = |visit: &model::Visit| serde_json::to_string(visit).expect("JSON").contains(says);
    assert!(run.visits.iter().all(notes), "{run:?}");
    // Where others work here nothing is valid, and of what is not nothing is noted.
    let said: Vec<&str> = ended.measured().out.split_whitespace().collect();
    assert!(ended.code != 0 || said.join(" ").to_lowercase().contains(says), "{}", ended.out);
}

#[test]
fn commands_that_fail_end_the_guard_with_their_last_words() {
    let (ended, dir) = shell("--runs 10", "echo this is why >&2; exit 9");
    ended.expect(3).says(&["ended with exit code 9. Its last lines: this is why"]);
    let run = crate::runs::read(&run_file(dir.path()));
    assert_eq!(run.visits.len(), 3, "three failures are enough");
    let (ended, _dir) = shell("--runs 2 --metric x=never", "echo something else");
    ended.expect(3).says(&["the metric x did not appear in its output; its last lines: something else"]);
}

#[test]
fn whatever_a_command_does_nothing_is_left_running() {
    let succeeds = |words: &str, script: &str| {
        let (ended, dir) = shell(words, script);
        let run = read(&run_file(dir.path()));
        assert!(
            ended.measured().code == 0 || run.visits.iter().all(|visit| visit.reason.is_none()),
            "{run:?}"
        );
    };
    // Forks away and goes on in sessions of its own.
    succeeds("--runs 2", "setsid sh -c '(setsid sleep 600 &); sleep 600' & exit 0");
    // Is asked to end and does not.
    let stubborn = "trap '' TERM; setsid sleep 600 & while :; do sleep 0.05; done";
    shell("--runs 1 --timeout 1s", stubborn).0.expect(3).says(&["killed after 1 s (--timeout)"]);
    // Kills whatever it takes for its own.
    shell("--runs 1", "sleep 600 & kill -9 0").0.expect(3).says(&["was ended by signal 9"]);
    // Wants input, or has closed its output.
    succeeds("--runs 1", "cat; exec >&- 2>&-; sleep 0.05");
}

#[test]
fn a_gigabyte_of_output_is_read_and_forgotten() {
    let (ended, dir) = shell("--runs 1 --metric n=^([0-9]+)$", "head -c 1G /dev/zero; echo; echo 42");
    // Whether its number can be used depends on what others do here.
    ended.sane();
    let run = crate::runs::read(&run_file(dir.path()));
    assert_eq!(run.visits[0].reason, None);
    let size = std::fs::metadata(run_file(dir.path())).expect("a file").len();
    assert!(size < 8 << 20, "{size} bytes were stored");
}

#[test]
fn an_interrupted_guard_keeps_its_runs_and_kills_its_command() {
    for signal in [Signal::INT, Signal::KILL] {
        let dir = tempfile::tempdir().expect("a folder");
        let mark = unique();
        let flag = dir.path().join("second");
        let script = format!(
            "if test -e {0}; then setsid sleep 600 & sleep 600; else touch {0}; fi",
            flag.to_str().expect("text")
        );
        let out = dir.path().join("out");
        let mut command = guard(&out, "--runs 5", &["/bin/sh", "-c", &script]);
        let mut running = start(command.env("ASSAY_TEST", &mark));
        running.until("its second run", |_| {
            processes_marked(&mark).iter().filter(|(_, command)| command.trim() == "sleep 600").count() >= 2
        });
        running.signal(signal);
        let ended = running.end();
        nothing_left_running(&mark);
        if signal == Signal::INT {
            ended.expect(130).says(&["interrupted"]);
            assert_eq!(crate::runs::read(&run_file(&out)).visits.len(), 1);
            page_is_whole(&out);
        }
    }
}

#[test]
fn placements_put_two_tasks_together_and_apart() {
    if crate::host::allowed_cpus().len() < 2 {
        println!("skipped placements_put_two_tasks_together_and_apart: one CPU");
        return;
    }
    // Two tasks that hand lines to each other.
    let script = "d=$(mktemp -d); mkfifo $d/a $d/b; \
                  (exec <$d/a >$d/b; while read x; do echo $x; done) & \
                  exec >$d/a <$d/b; rm -r $d; \
                  i=0; while test $i -lt 8000; do echo $i; read x; i=$((i+1)); done";
    let (ended, dir) = shell("--runs 6 --placements free,same-cpu,spread", script);
    ended.sane();
    let results = results(dir.path());
    let share = |place: &str| {
        let all = results["series"].as_array().expect("a list");
        let found = all.iter().find(|series| {
            let key = series["key"].as_str().unwrap_or_default();
            key.starts_with(&format!("guard.command@{place}?")) && key.ends_with("/class=same-cpu#occupancy")
        });
        found.and_then(|series| series["median"].as_f64()).unwrap_or(f64::NAN)
    };
    assert_eq!(share("same-cpu"), 1.0);
    // On a busy host 0.57 was seen; tasks that are put together give 1.
    assert!(share("spread") < 0.9, "{}", share("spread"));
    assert!((0.0..=1.0).contains(&share("free")));
}

#[test]
fn what_a_resting_task_starts_is_not_held_where_that_one_was() {
    let all = crate::host::allowed_cpus().len();
    if all < 2 {
        println!("skipped what_a_resting_task_starts_is_not_held_where_that_one_was: one CPU");
        return;
    }
    // `nproc` counts the CPUs that it may use itself.
    let (ended, dir) = shell("--runs 3 --placements spread --metric cpus=^([0-9]+)$", "sleep 2; nproc");
    ended.sane();
    let results = results(dir.path());
    let cpus = series(&results, "guard.command@spread?command=sh-");
    assert_eq!(cpus["median"].as_f64(), Some(all as f64), "{cpus}");
}

#[test]
fn two_commands_in_turn_are_told_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let told = |time: &str| ["/bin/sh".to_string(), "-c".into(), format!("echo time: {time}")];
    let mut command = crate::assay();
    command.arg("guard").args(["--force", "--new", "--quick", "--all", "--metric", "time[s]=time: (.*)"]);
    command
        .args(["--vs", "/bin/sh -c 'echo time: 1.1'", "--out"])
        .arg(dir.path())
        .arg("--")
        .args(told("1.0"));
    let ended = end(&mut command);
    ended.measured();
    assert!(ended.out.contains("B is 10 % slower"), "{}", ended.out);
    let results = results(dir.path());
    let versus = &results["versus"];
    assert_eq!(
        (&versus["differs"], &versus["quads"], &versus["by"]),
        (&true.into(), &6.into(), &"time".into()),
        "{versus}"
    );
    assert!(versus["ratio"].as_f64().is_some_and(|ratio| (ratio - 1.1).abs() < 1e-9), "{versus}");
    // In every quad A B B A or B A A B.
    let visits = read(&run_file(dir.path())).visits;
    for quad in visits.chunks(4) {
        let order: Vec<u32> = quad.iter().map(|visit| visit.case).collect();
        assert!(order == [0, 1, 1, 0] || order == [1, 0, 0, 1], "{order:?}");
    }
    page_is_whole(dir.path());
}

/// Two scripts at once, which print their figures as `n: FIGURE`; none where there are no two like
/// CPUs.
fn duet(dir: &Path, a: &str, b: &str) -> Option<Ended> {
    let (mut command, mark) = (crate::assay(), unique());
    command.arg("guard").args([
        "--force",
        "--new",
        "--quick",
        "--all",
        "--duet",
        "--metric",
        "time[s]=n: (.*)",
    ]);
    command.args(["--vs", &shlex::try_join(["/bin/sh", "-c", b]).expect("words"), "--out"]).arg(dir);
    let ended = end(command.args(["--", "/bin/sh", "-c", a]).env("ASSAY_TEST", &mark));
    ended.sane();
    nothing_left_running(&mark);
    if ended.code == 2 {
        ended.says(&["--duet needs two CPUs"]);
        crate::host::skipped("a duet", &ended.err);
        return None;
    }
    Some(ended)
}

/// What it printed, as one line.
fn in_line(ended: &Ended) -> String {
    ended.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn two_commands_at_once_need_two_like_cpus() {
    const TEST: &str = "two_commands_at_once_need_two_like_cpus";
    let cpu = crate::host::allowed_cpus().first().expect("a CPU").to_string();
    if !crate::host::works("taskset", &["-c", &cpu, "true"]) {
        return crate::host::skipped(TEST, "taskset is not here");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let command = guard(dir.path(), "--duet --vs /bin/true", &["/bin/sh"]);
    let ended = end(&mut crate::host::wrapped(&["taskset", "-c", &cpu], &command));
    ended.expect(2).says(&["--duet needs two CPUs", "Without --duet the two alternate on one CPU"]);
    assert!(!dir.path().join("report.html").exists(), "nothing was measured");
}

#[test]
fn two_commands_at_once_meet_and_swap_their_cpus() {
    let dir = tempfile::tempdir().expect("a folder");
    let meet = dir.path().join("meet");
    assert!(Command::new("mkfifo").arg(&meet).status().expect("mkfifo").success());
    // Each end of the pipe waits for the other, then prints the number of its only CPU, from 1.
    let cpu = "c=$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status); echo n: $((c+1))";
    let meet = meet.display();
    let (a, b) = (format!("echo x >'{meet}'; {cpu}"), format!("read x <'{meet}'; {cpu}"));
    let out = dir.path().join("out");
    let Some(ended) = duet(&out, &a, &b) else { return };
    ended.expect(0);
    let told = in_line(&ended);
    assert!(told.contains("The same within 1.0 %, measured at once on CPUs "), "{told}");
    assert!(told.contains("over 6 swapped pairs."), "{told}");
    let results = results(&out);
    let versus = &results["versus"];
    assert_eq!((&versus["at_once"], &versus["quads"]), (&true.into(), &6.into()), "{versus}");
    let run = read(&run_file(&out));
    assert_eq!(run.visits.len(), 12, "both in each visit");
    let mut seen = Vec::new();
    for visit in &run.visits {
        let results = visit.samples.iter().filter(|one| one.metrics == ["result"]);
        let cpus: Vec<f64> = results.flat_map(|one| one.values(model::Form::Value)).collect();
        assert_eq!(cpus.len(), 2, "{visit:?}");
        seen.push(cpus);
    }
    assert!(seen[0][0] != seen[0][1], "each has its own: {seen:?}");
    for (round, cpus) in seen.iter().enumerate() {
        let expected: Vec<f64> =
            if round % 2 == 0 { seen[0].clone() } else { seen[0].iter().rev().copied().collect() };
        assert_eq!(*cpus, expected, "round {round}");
    }
    page_is_whole(&out);
}

#[test]
fn two_commands_at_once_are_told_apart_and_fail_together() {
    let dir = tempfile::tempdir().expect("a folder");
    // The names of the two sort the other way round.
    let Some(ended) = duet(dir.path(), "echo n: 1.1", "echo n: 1.0") else { return };
    ended.expect(0);
    let told = in_line(&ended);
    assert!(told.contains("B is 10 % faster") && told.contains(", measured at once on CPUs "), "{told}");
    assert!(told.contains("not with other runs"), "{told}");
    let dir = tempfile::tempdir().expect("a folder");
    let ended = duet(dir.path(), "sleep 600", "echo this is why; exit 9").expect("like CPUs");
    ended.expect(3).says(&["B: /bin/sh ended with exit code 9. Its last lines: this is why"]);
    assert_eq!(read(&run_file(dir.path())).visits.len(), 3, "three failures are enough");
}

/// The help names the figure of each tool, as the registry has it.
#[test]
fn the_help_names_what_each_format_takes() {
    let output = crate::assay().args(["guard", "--help"]).output().expect("assay runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(bench::FORMATS.len() > 20);
    for format in bench::FORMATS {
        let unit = if format.unit.is_empty() { "" } else { " in " };
        let said = format!("{} {}{unit}{}", format.name, format.title, format.unit.replace("us", "µs"));
        assert!(words.contains(&said), "{said}:\n{text}");
    }
}

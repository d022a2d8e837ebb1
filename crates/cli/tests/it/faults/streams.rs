//! Closed streams, full pipes, terminals that can do little.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::host::{skipped, works, wrapped};
use crate::runs::{end, pretended, read, run_file, run_into};

/// A run file with invented samples, and its folder.
fn finished() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &pretended("selftest.steady,memory.latency,ipc.pipe"))).expect(0);
    let file = run_file(dir.path());
    (dir, file)
}

/// Runs a line of shell with `$0` as the program and the folder of a run as `$1`.
fn shell(line: &str, more: &[&str]) -> i32 {
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", line]).arg(testkit::program()).args(more);
    command.env("LANG", "C.UTF-8").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("bash runs").code().unwrap_or(-1)
}

#[test]
fn readers_that_leave_early_do_not_end_a_run() {
    if !works("bash", &["-c", "true"]) {
        return skipped("readers_that_leave_early_do_not_end_a_run", "bash is not here");
    }
    let words = pretended("selftest.steady,memory.latency");
    for ending in ["| head -1", "2>&1 | head -1", "2>&1 | true", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"] {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().to_str().expect("a path");
        let code = shell(&format!("$0 run {words} --out $1 {ending}"), &[out]);
        assert_eq!(code, 0, "{ending}");
        assert!(read(&run_file(dir.path())).summary.is_some(), "{ending}");
    }
    let (_dir, file) = finished();
    let file = file.to_str().expect("a path");
    for verb in
        ["diagnose $1", "report $1 --format csv", "report $1 --json", "machine", "list", "explain", "man"]
    {
        assert_eq!(shell(&format!("$0 {verb} | head -c 1"), &[file]), 0, "{verb}");
        assert_eq!(shell(&format!("$0 {verb} >&-"), &[file]), 0, "{verb}");
    }
    // A result that could not be written is no success.
    for verb in ["diagnose $1", "diagnose $1 --json", "machine --json", "list"] {
        assert_eq!(shell(&format!("$0 {verb} >/dev/full"), &[file]), 3, "{verb}");
    }
}

#[test]
fn a_case_without_an_order_says_what_it_wants() {
    let null = || File::open("/dev/null").expect("/dev/null");
    let ended = end(crate::assay().arg("case").stdin(null()));
    ended.expect(3).says(&["no order on standard input"]);
    for order in ["{}", "nonsense", "{\"case\": 1}", "\0"] {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("order");
        std::fs::write(&path, order).expect("written");
        let line = "exec \"$0\" case < \"$1\"";
        let mut command = Command::new("sh");
        command.args(["-c", line]).arg(testkit::program()).arg(&path);
        end(&mut command).expect(3).says(&["order"]);
    }
}

/// Everything that is written for people, in one text.
fn all_text(change: &dyn Fn(&mut Command)) -> String {
    let ids =
        bench::all().map(|bench| bench.id.as_str()).chain(diagnose::rules().map(|rule| rule.id.as_str()));
    text_of(ids, change)
}

/// The same of every kind of text, without what each benchmark and each rule is explained by.
fn text_of_each_kind(change: &dyn Fn(&mut Command)) -> String {
    text_of(bench::all().map(|bench| bench.id.as_str()).take(1), change)
}

fn text_of(ids: impl Iterator<Item = &'static str>, change: &dyn Fn(&mut Command)) -> String {
    let (dir, file) = finished();
    let file = file.to_str().expect("a path").to_string();
    let mut lines: Vec<Vec<String>> = vec![vec!["diagnose".into(), file]];
    let words = |line: String| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let fresh = dir.path().join("fresh").display().to_string();
    lines.push(words(format!("run {} --out {fresh}", pretended("selftest.steady,memory.latency,ipc.pipe"))));
    for line in
        ["list", "explain", "machine", "run --dry-run --quick", "--help", "run --help", "explain nothing"]
    {
        lines.push(words(line.to_string()));
    }
    lines.extend(ids.chain(["imprecise"]).map(|id| words(format!("explain {id}"))));
    lines.push(words(format!("machine --from {}", crate::runs::recorded())));
    let mut text = String::new();
    for line in lines {
        let mut command = crate::assay();
        change(command.args(&line));
        let ended = end(&mut command);
        ended.sane();
        text.push_str(&format!("{}{}\n", ended.out, ended.err));
    }
    text
}

#[test]
fn a_locale_without_utf_8_gets_ascii() {
    // A locale is read in one place: what one of them makes of every text, each makes of it.
    type Text = fn(&dyn Fn(&mut Command)) -> String;
    let locales: [(&str, &str, Text); 3] = [
        ("LANG", "C", all_text),
        ("LC_ALL", "POSIX", text_of_each_kind),
        ("LC_ALL", "de_DE.ISO-8859-1", text_of_each_kind),
    ];
    for (name, value, text) in locales {
        let text = text(&|command| {
            command.env(name, value);
        });
        let foreign: Vec<&str> = text.lines().filter(|line| !line.is_ascii()).collect();
        assert!(foreign.is_empty(), "{name}={value}: {foreign:#?}");
    }
    let text = text_of_each_kind(&|_| {});
    assert!(text.contains('±') && text.contains('×') && text.contains('µ'), "UTF-8 is used where it can be");
}

#[test]
fn nothing_is_coloured_or_redrawn_without_a_terminal() {
    let text = all_text(&|command| {
        command.env("TERM", "xterm-256color");
    });
    assert!(!text.contains('\x1b') && !text.contains('\r'), "{text:?}");
}

#[test]
fn terminals_and_their_wishes() {
    let test = "terminals_and_their_wishes";
    if !works("script", &["-qec", "true", "/dev/null"]) {
        return skipped(test, "script is not here, so there is no terminal to be had");
    }
    let (dir, file) = finished();
    let on_a_terminal = |verb: &str, environment: &[(&str, &str)]| {
        let program = testkit::program();
        let line = format!("{} {verb}", program.display());
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_remove("NO_COLOR").env_remove("COLUMNS");
        command.env("LANG", "C.UTF-8").env("TERM", "xterm").envs(environment.iter().copied());
        let ended = end(&mut wrapped(&["env"], &command));
        ended.sane();
        ended.out
    };
    let diagnose = format!("diagnose {}", file.display());
    assert!(on_a_terminal(&diagnose, &[]).contains("\x1b["), "colours where they are welcome");
    for wish in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let text = on_a_terminal(&diagnose, &[wish]);
        assert!(!text.contains('\x1b') && text.contains("figure"), "{wish:?}: {text:?}");
    }
    let run = |name: &str| {
        let out = dir.path().join(name).display().to_string();
        format!("run {} --out {out}", pretended("selftest.steady"))
    };
    let text = on_a_terminal(&run("dumb"), &[("TERM", "dumb")]);
    assert!(!text.contains('\x1b') && text.contains("measuring selftest.steady"), "{text:?}");
    let text = on_a_terminal(&run("ascii"), &[("LANG", "C"), ("NO_COLOR", "1")]);
    assert!(text.is_ascii(), "{text:?}");
    // An empty NO_COLOR is none, by its own specification.
    assert!(on_a_terminal(&diagnose, &[("NO_COLOR", "")]).contains("\x1b["));
}

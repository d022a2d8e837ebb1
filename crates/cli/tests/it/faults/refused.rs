//! What a host may refuse: threads, processes, memory, stack, waiting, files, the standard streams.
//! Each ends in words and a documented exit code, or is done without.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use sys::start::STACK;

use crate::host::{is_root, skipped, works, wrapped};
use crate::refuse::{self, Filter};
use crate::runs::{
    Ended, end, folder_of_nobody, is_tidy, pretended, read, run_file, run_into, start, visits_so_far,
};

/// A finished run, with enough in it for a comparison.
struct Finished {
    dir: tempfile::TempDir,
    file: PathBuf,
}

fn finished() -> Finished {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(&dir.path().join("run"), &pretended("selftest.steady,memory.latency,ipc.pipe")))
        .expect(0);
    let file = run_file(&dir.path().join("run"));
    Finished { dir, file }
}

impl Finished {
    /// A command of every kind: what only prints, what reads the host, what reads files, what
    /// measures. `@FILE` is the run, `@OUT` a folder.
    fn verbs(&self) -> Vec<Command> {
        const VERBS: [&str; 18] = [
            "--version",
            "run --help",
            "list",
            "explain memory.latency",
            "machine --json",
            "knobs",
            "restore",
            "schema run-file",
            "completions bash",
            "man",
            "diagnose @FILE",
            "report @FILE --out @OUT",
            "compare @FILE @FILE",
            "peers @FILE @FILE @FILE",
            "import @IMPORT",
            "smt table --dry-run --quick",
            "hackbench -T -g 1 -l 5",
            "run --quick --only selftest.steady,selftest.crash --force --budget 5s --new --out @OUT",
        ];
        let import = testkit::root().join("tests/foreign/fio-jobs.json");
        let command = |(number, line): (usize, &str)| {
            let out = self.dir.path().join(format!("out-{number}"));
            let words = line.split(' ').map(|word| match word {
                "@FILE" => self.file.clone(),
                "@OUT" => out.clone(),
                "@IMPORT" => import.clone(),
                word => PathBuf::from(word),
            });
            let mut command = crate::assay();
            command.args(words).env("ASSAY_STATE", self.dir.path().join("state"));
            command
        };
        VERBS.into_iter().enumerate().map(command).collect()
    }
}

/// A documented exit code and no word of an abort; where something is wrong a sentence that says
/// so.
#[track_caller]
fn told(ended: &Ended, what: &str) {
    assert!([0, 1, 2, 3, 4, 130].contains(&ended.code), "{what}: {ended:?}");
    for word in ["panicked", "memory allocation of", "fatal runtime error", "a bug in Assay"] {
        assert!(!ended.err.contains(word), "{what}: {ended:?}");
    }
    let words = format!("{}{}", ended.err, ended.out);
    assert!(ended.code == 0 || !words.trim().is_empty(), "{what} ends with {} and no word", ended.code);
}

#[track_caller]
fn all_told(commands: Vec<Command>, change: impl Fn(Command) -> Command) -> Vec<Ended> {
    let ended = commands.into_iter().map(|command| {
        let mut changed = change(command);
        let ended = end(&mut changed);
        // Where the dynamic linker found no room it says so itself.
        if !(ended.code == 127 && ended.err.contains("error while loading shared libraries")) {
            told(&ended, &format!("{changed:?}"));
        }
        ended
    });
    ended.collect()
}

/// The command under a limit that `prlimit` sets.
fn limited(limit: &str, command: &Command) -> Command {
    wrapped(&["prlimit", limit], command)
}

fn can_limit(test: &str) -> bool {
    let can = works("prlimit", &["--stack=65536", "true"]);
    if !can {
        skipped(test, "prlimit is not here");
    }
    can
}

fn can_filter(test: &str) -> bool {
    let can = refuse::works();
    if !can {
        skipped(test, "no filter of system calls can be set here");
    }
    can
}

#[test]
fn without_threads() {
    if !can_filter("without_threads") {
        return;
    }
    let finished = finished();
    let ended = all_told(finished.verbs(), |command| Filter::default().refusing_threads().on(command));
    let run = ended.last().expect("a run");
    run.says(&["no thread can wait for signals", "Ctrl-C still ends"]);
    // All but what measures threads do their work as ever.
    assert!(ended.iter().filter(|ended| ended.code == 3).count() <= 2, "{ended:#?}");
}

#[test]
fn a_run_without_a_second_thread_is_interrupted_in_order() {
    if !can_filter("a_run_without_a_second_thread_is_interrupted_in_order") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let command =
        run_into(dir.path(), "--quick --only selftest.steady,selftest.hang --visit-limit 100s --force");
    // A shell's background jobs ignore Ctrl-C; what the test was started by must not matter.
    let command = wrapped(&["env", "--default-signal=INT"], &command);
    let mut running = start(&mut Filter::default().refusing_threads().on(command));
    running.until("the visit that hangs", |running| running.text("err").contains("measuring selftest.hang"));
    let before = visits_so_far(dir.path());
    running.signal(Signal::INT);
    running
        .end()
        .expect(130)
        .says(&["no thread can wait for signals", "interrupted; the same command resumes"]);
    assert_eq!(read(&run_file(dir.path())).visits.len(), before);
    is_tidy(dir.path());
}

#[test]
fn without_processes() {
    let test = "without_processes";
    // A user of its own: no other processes count.
    let user = (1_100_000_000 + std::process::id()).to_string();
    let lone = ["prlimit", "--nproc=1", "setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let Some(dir) = folder_of_nobody(test) else { return };
    if !is_root() || !works(lone[0], &[&lone[1..], &["true"]].concat()) {
        return skipped(test, "another user's limits need root, prlimit and setpriv");
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), mode).expect("allowed");
    let mut command =
        run_into(&dir.path().join("out"), "--quick --only selftest.steady,cpu.clock --force --budget 5s");
    command.env("HOME", dir.path());
    let ended = end(&mut wrapped(&lone, &command));
    told(&ended, "a run");
    ended.expect(3).says(&["no thread can wait for signals", "cannot start a process for this pass"]);
    let run = read(&run_file(&dir.path().join("out")));
    assert!(
        !run.visits.is_empty() && run.visits.iter().all(|visit| visit.reason.is_some()),
        "{:?}",
        run.visits
    );
    let finished = finished();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(finished.dir.path(), readable).expect("allowed");
    let file = finished.file.as_path();
    let ended = end(&mut wrapped(&lone, crate::assay().arg("peers").args([file, file])));
    told(&ended, "peers");
    assert!(ended.code != 3, "{ended:?}");
}

#[test]
fn where_waiting_is_refused() {
    if !can_filter("where_waiting_is_refused") {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    const OLDER: &[libc::c_long] = &[libc::SYS_poll];
    #[cfg(not(target_arch = "x86_64"))]
    const OLDER: &[libc::c_long] = &[];
    let finished = finished();
    for error in [libc::EPERM, libc::ENOSYS] {
        let both = || Filter::default().refusing(OLDER, error).refusing(&[libc::SYS_ppoll], error);
        let ended = all_told(finished.verbs(), |command| both().on(command));
        let (run, rest) = ended.split_last().expect("verbs");
        run.expect(3).says(&["cannot wait for the process of a pass"]);
        assert!(rest.iter().filter(|ended| ended.code == 3).count() <= 1, "only hackbench waits: {rest:#?}");
        // The call that we make is another than the one that the C library's programs know.
        let older = Filter::default().refusing(OLDER, error);
        let mut dir =
            run_into(&finished.dir.path().join(format!("older-{error}")), "--quick --only cpu.clock --force");
        dir.args(["--budget", "3s"]);
        assert!(!end(&mut older.on(dir)).sane().err.contains("cannot wait"));
    }
}

#[test]
fn a_small_stack() {
    if !can_limit("a_small_stack") {
        return;
    }
    let finished = finished();
    for limit in [64, 256, STACK / 1024 - 4] {
        for command in finished.verbs() {
            let ended = end(&mut limited(&format!("--stack={}", limit * 1024), &command));
            ended.expect(3).says(&["the stack is limited to", "ulimit -s 8192"]);
        }
    }
    // What is asked for is enough.
    let ended = all_told(finished.verbs(), |command| limited(&format!("--stack={STACK}"), &command));
    let (run, rest) = ended.split_last().expect("verbs");
    assert!(!run.err.contains("the stack") && rest.iter().all(|ended| ended.code != 3), "{ended:#?}");
}

#[test]
fn a_small_address_space() {
    let test = "a_small_address_space";
    if !can_limit(test) {
        return;
    }
    let finished = finished();
    let limit = |mib: u64| format!("--as={}", mib << 20);
    // Below this the kernel and the dynamic linker end it before it is there.
    let begins = |mib: &u64| {
        let ended = end(&mut limited(&limit(*mib), crate::assay().arg("--version")));
        ended.code == 0 || ended.err.contains("assay:")
    };
    let Some(least) = (8..512).step_by(4).find(begins) else {
        return skipped(test, "the program does not begin in 512 MiB");
    };
    let mut refused = 0;
    for more in [0, 1, 2, 4, 8, 16, 48] {
        // What is small is done in any space; what is large shows where memory ends.
        let verbs = finished.verbs().into_iter().skip(10);
        let ended = all_told(verbs.collect(), |command| limited(&limit(least + more), &command));
        refused += ended.iter().filter(|ended| ended.err.contains("out of memory")).count();
    }
    assert!(refused > 0, "nothing asked for more than there was");
}

#[test]
fn few_files() {
    if !can_limit("few_files") {
        return;
    }
    let finished = finished();
    for files in [4, 5, 6, 7, 9, 12] {
        let run = finished.verbs().split_off(10);
        all_told(run, |command| limited(&format!("--nofile={files}"), &command));
    }
}

#[test]
fn closed_streams_without_a_null_device() {
    let test = "closed_streams_without_a_null_device";
    let hide = "mount -t tmpfs none /dev || exit 99; exec \"$0\" \"$@\"";
    if !is_root() || !works("unshare", &["-m", "sh", "-c", hide, "true"]) {
        return skipped(test, "mount namespaces need root");
    }
    let finished = finished();
    for closing in ["", " >&-", " <&- >&- 2>&-"] {
        for command in finished.verbs() {
            // On a host that is not quiet a run may have no trusted figure.
            let measures = command.get_args().next().is_some_and(|verb| verb == "run");
            let mut hidden = wrapped(&["unshare", "-m", "sh", "-c", &format!("{hide}{closing}")], &command);
            let ended = end(&mut hidden);
            assert!(
                [0, 1, 4].contains(&ended.sane().code) || measures && ended.code == 3,
                "{hidden:?}: {ended:?}"
            );
        }
    }
}

#[test]
fn a_run_whose_cpu_time_ends_says_so() {
    let test = "a_run_whose_cpu_time_ends_says_so";
    if !can_limit(test) {
        return;
    }
    // A limit that warns, one that kills with a warning before, and one that kills outright.
    for (limit, case) in [("--cpu=1:60", "spin"), ("--cpu=1", "spin"), ("--cpu=600", "killed")] {
        let dir = tempfile::tempdir().expect("a folder");
        let words = format!("--quick --only selftest.{case} --visit-limit 20s --force");
        let ended = end(&mut limited(limit, &run_into(dir.path(), &words)));
        told(&ended, "a run");
        ended.says(&["CPU time", "ulimit -t"]);
        is_tidy(dir.path());
    }
}

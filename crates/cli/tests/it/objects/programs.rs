//! Guarded programs that do all they can to stay, and sessions that are killed around them.

use std::fs;

use super::*;
use crate::host::{is_root, processes_marked, skipped, unique, works, wrapped};
use crate::runs::{folder_of_nobody, unprivileged};

/// Forks twice into sessions of its own, ignores requests to end, has many children; `$0` is how
/// long they sleep, a time that no other process uses. One of them has lost the environment.
const STUBBORN: &str = "trap '' TERM INT HUP; \
    (setsid sh -c 'trap \"\" TERM; (setsid sleep $0 &); sleep $0; sleep $0' $0 &); \
    i=0; while test $i -lt 20; do sleep $0 & i=$((i+1)); done; \
    env -i sleep $0 & while :; do sleep $0; done";
const MEMBERS: usize = 27;

/// Processes with this word in their command line.
fn alive(word: &str) -> usize {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let commands = all.filter_map(|entry| {
        let _: u32 = entry.file_name().to_str()?.parse().ok()?;
        fs::read(entry.path().join("cmdline")).ok()
    });
    commands.filter(|line| line.split(|byte| *byte == 0).any(|own| own == word.as_bytes())).count()
}

/// How long its processes sleep: a word of its own.
fn seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{}.{:04}", 600_000 + std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn guard(out: &Path, state: &Path, words: &str, command: &[&str]) -> Command {
    let mut guard = crate::assay();
    guard.arg("guard").args(["--force", "--new", "--out"]).arg(out).args(words.split_whitespace());
    guard.arg("--").args(command).env("ASSAY_STATE", state);
    guard
}

/// A guard around the stubborn program, all of whose processes are there.
fn stubborn(state: &State, out: &Path, wrap: &dyn Fn(&Command) -> Command) -> (Running, String) {
    let word = seconds();
    let command = guard(out, state.path(), "--runs 1", &["/bin/sh", "-c", STUBBORN, &word]);
    let mut session = start(&mut wrap(&command));
    // The words of the guard itself hold it, too.
    session.until("the program", |_| alive(&word) >= MEMBERS);
    (session, word)
}

/// As in a system that has this over the mount point of some of its control groups.
fn covered(point: &str) -> impl Fn(&Command) -> Command {
    let mount = format!("mount -t tmpfs none {point} && exec \"$0\" \"$@\"");
    move |command| wrapped(&["unshare", "-m", "sh", "-c", &mount], command)
}

/// Only those of the program are counted once the session is gone.
fn gone(state: &State, word: &str, group: Option<&Value>) {
    until("nothing of the program, no journal", || alive(word) == 0 && state.journals().is_empty());
    if let Some(folder) = group.and_then(|group| group["folder"].as_str()) {
        until("no control group", || !Path::new(folder).exists());
    }
}

#[test]
fn a_program_goes_with_its_session_and_visit() {
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let mut random = fastrand::Rng::with_seed(28);
    for round in 0..4 {
        let (session, word) = stubborn(&state, out.path(), &|command| wrapped(&["env"], command));
        let group = state.objects("control_group").pop();
        if is_root() && round == 0 && group.is_none() {
            skipped("a_program_goes_with_its_session_and_visit: in a control group", "none can be made here");
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..200)));
        // A signal that asks all of our processes to end does not end the watchdog.
        let watchdogs = watchdogs(&session);
        assert_eq!(watchdogs.len(), 1);
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            kill(watchdogs[0], signal);
        }
        if round % 2 == 0 { Victims::Both } else { Victims::Session }.kill(&session);
        session.end();
        gone(&state, &word, group.as_ref());
    }
}

#[test]
fn a_program_goes_with_any_process_of_its_visit() {
    const TEST: &str = "a_program_goes_with_any_process_of_its_visit";
    let covered = covered("/sys/fs/cgroup");
    let plain = |command: &Command| wrapped(&["env"], command);
    let bare = is_root() && works("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"]);
    if !bare {
        skipped(TEST, "without control groups: no file system can be mounted over them");
    }
    // Processes that have lost the mark can only be found through their parents.
    let wraps = [(true, &plain as &dyn Fn(&Command) -> Command), (bare, &covered)];
    for (_, wrap) in wraps.into_iter().filter(|(possible, _)| *possible) {
        for victims in [Victims::Visit, Victims::Kept, Victims::Keeper] {
            let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
            let (session, word) = stubborn(&state, out.path(), wrap);
            victims.kill(&session);
            let ended = session.end();
            ended.expect(3).sane();
            assert_eq!((alive(&word), state.journals().len()), (0, 0), "{victims:?}: {}", ended.err);
        }
    }
}

#[test]
fn two_programs_at_once_go_with_any_process_of_their_visit() {
    const TEST: &str = "two_programs_at_once_go_with_any_process_of_their_visit";
    // Of those that run the two, the first.
    let one = |session: &Running| {
        let kept = kept(session).first().map(|kept| kept.as_raw_pid() as u32);
        children_of(kept.expect("a visit"), "case").first().copied().expect("one of two")
    };
    let victims = [Victims::Visit, Victims::Kept, Victims::Keeper, Victims::Session, Victims::Both];
    for victims in victims.into_iter().map(Some).chain([None]) {
        let (state, out, word) = (State::new(), tempfile::tempdir().expect("a folder"), seconds());
        let words = ["/bin/sh", "-c", STUBBORN, &word];
        let rival = shlex::try_join(words.into_iter().chain(["rival"])).expect("words");
        let mut command = crate::assay();
        command.arg("guard").args(["--force", "--new", "--duet", "--vs", &rival, "--out"]).arg(out.path());
        let mut session = start(command.arg("--").args(words).env("ASSAY_STATE", state.path()));
        let mut refused = false;
        session.until("both programs", |session| {
            refused = session.text("err").contains("--duet needs two CPUs");
            // The words of the guard itself are in one.
            refused || alive(&word) > 2 * (MEMBERS - 1)
        });
        if refused {
            return skipped(TEST, session.text("err"));
        }
        match victims {
            Some(victims) => victims.kill(&session),
            None => kill(one(&session), Signal::KILL),
        }
        if matches!(victims, Some(Victims::Session | Victims::Both)) {
            session.end();
        } else {
            // The next round would begin.
            session.until("the end of the round", |session| {
                session.text("err").contains("! guard.command@duet")
            });
            session.signal(Signal::INT);
            session.end().sane();
        }
        gone(&state, &word, None);
    }
}

/// Kinship is no proof: a shell that becomes assay has started others before.
#[test]
fn what_was_there_before_the_session_goes_on() {
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let word = seconds();
    let before = format!("sleep {word} & (sleep {word} &); exec \"$0\" \"$@\"");
    let command = guard(out.path(), state.path(), "--runs 2", &["/bin/sh", "-c", "sleep 0.1; (sleep 600 &)"]);
    end(&mut wrapped(&["sh", "-c", &before], &command)).measured();
    let count = alive(&word);
    let strangers = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        line.ends_with(format!("{word}\0").as_bytes()).then_some(pid)
    });
    strangers.collect::<Vec<Pid>>().into_iter().for_each(|pid| kill(pid, Signal::KILL));
    assert_eq!(count, 2, "both are there until this test ends them");
}

#[test]
fn a_program_goes_although_somebody_removed_the_journals() {
    const TEST: &str = "a_program_goes_although_somebody_removed_the_journals";
    if !(is_root() && works("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"])) {
        return skipped(TEST, "no file system can be mounted over the control groups");
    }
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let (session, word) = stubborn(&state, out.path(), &covered("/sys/fs/cgroup"));
    fs::remove_dir_all(state.path()).expect("removed");
    Victims::Both.kill(&session);
    session.end();
    until("nothing of the program", || alive(&word) == 0);
}

#[test]
fn a_program_goes_at_whatever_moment_both_are_killed() {
    let (state, out, mark) = (State::new(), tempfile::tempdir().expect("a folder"), unique());
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..12 {
        let script = "(setsid sleep 600 &); sleep 600";
        let mut command = guard(out.path(), state.path(), "--runs 1", &["/bin/sh", "-c", script]);
        let mut session = start(command.env("ASSAY_TEST", &mark));
        session.until("a visit", |session| !visits(session).is_empty());
        std::thread::sleep(Duration::from_micros(random.u64(0..30_000)));
        Victims::Both.kill(&session);
        session.end();
        until("nothing", || processes_marked(&mark).is_empty() && state.journals().is_empty());
    }
}

#[test]
fn where_no_control_group_can_be_made_the_mark_tells() {
    const TEST: &str = "where_no_control_group_can_be_made_the_mark_tells";
    if is_root() && works("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"]) {
        let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
        let (session, word) = stubborn(&state, out.path(), &covered("/sys/fs/cgroup"));
        assert_eq!(state.objects("control_group"), [] as [Value; 0]);
        assert_eq!(state.objects("processes").len(), 1);
        Victims::Both.kill(&session);
        session.end();
        gone(&state, &word, None);
    } else {
        skipped(TEST, "no file system can be mounted over the control groups");
    }
    let Some(folder) = folder_of_nobody(TEST) else { return };
    let out = folder.path().join("out");
    let state = State(folder);
    let (session, word) = stubborn(&state, &out, &unprivileged);
    Victims::Both.kill(&session);
    session.end();
    gone(&state, &word, None);
}

#[test]
fn the_freezer_of_version_1_will_do() {
    const TEST: &str = "the_freezer_of_version_1_will_do";
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
    let is_freezer =
        |words: &Vec<&str>| words[2] == "cgroup" && words[3].split(',').any(|one| one == "freezer");
    let unified = mounts.iter().find(|words| words[2] == "cgroup2").map(|words| words[1]);
    let Some(unified) = unified.filter(|_| is_root() && mounts.iter().any(is_freezer)) else {
        return skipped(TEST, "not both versions are mounted here");
    };
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let (session, word) = stubborn(&state, out.path(), &covered(unified));
    let group = state.objects("control_group").pop();
    let Some(group) = group.filter(|group| group["version"] == 1) else {
        return skipped(TEST, "no group can be made in the freezer");
    };
    Victims::Both.kill(&session);
    session.end();
    gone(&state, &word, Some(&group));
}

#[test]
fn what_all_have_left_is_ended_later() {
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    for later in [State::restore, State::next_start] {
        let (session, word) = stubborn(&state, out.path(), &|command| wrapped(&["env"], command));
        let group = state.objects("control_group").pop();
        Victims::All.kill(&session);
        session.end();
        assert!(alive(&word) > 0 && state.journals().len() == 1, "nobody has cleared up");
        let ended = later(&state);
        ended.sane();
        assert!(format!("{}{}", ended.out, ended.err).contains(": killed"), "{ended:?}");
        assert_eq!((alive(&word), state.journals().len()), (0, 0));
        gone(&state, &word, group.as_ref());
    }
}

#[test]
fn a_watchdog_that_is_killed_has_a_successor() {
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let command = ["/bin/sh", "-c", "sleep 0.2"];
    let mut session = start(&mut guard(out.path(), state.path(), "--runs 10", &command));
    let mut first = None;
    session.until("a watchdog", |session| {
        first = watchdogs(session).pop();
        first.is_some()
    });
    let first = first.expect("a watchdog");
    kill(first, Signal::KILL);
    session.until("another one", |session| watchdogs(session).iter().any(|other| *other != first));
    let ended = session.end();
    ended.sane();
    assert_eq!(crate::runs::read(&crate::runs::run_file(out.path())).visits.len(), 10);
    assert!(state.journals().is_empty());
}

#[test]
fn without_a_journal_the_watchdog_is_told() {
    let (file, out) =
        (tempfile::NamedTempFile::new().expect("a file"), tempfile::tempdir().expect("a folder"));
    let word = seconds();
    let state = file.path().join("no-folder");
    let command = guard(out.path(), &state, "--runs 1", &["/bin/sh", "-c", STUBBORN, &word]);
    let mut session = start(&mut wrapped(&["env"], &command));
    session.until("the program", |_| alive(&word) >= MEMBERS);
    assert!(session.text("err").contains("cannot write a journal of kernel objects"));
    Victims::Both.kill(&session);
    session.end();
    until("nothing of the program", || alive(&word) == 0);
}

/// What `assay setup` starts to fetch something does not go on without it.
#[test]
fn a_package_manager_goes_with_what_started_it() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, mark) = (tempfile::tempdir().expect("a folder"), unique());
    let python = folder.path().join("python3");
    let text = "#!/bin/sh\ncase \"$*\" in *--version*) exit 0;; esac\nexec sleep 600\n";
    fs::write(&python, text).expect("written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = crate::assay();
    command.args(["setup", "flink", "--to"]).arg(folder.path().join("to"));
    let mut session = start(command.env("PATH", path).env("ASSAY_TEST", &mark));
    let sleeps = |(_, command): &(u32, String)| command.trim() == "sleep 600";
    session.until("it fetches", |_| processes_marked(&mark).iter().any(sleeps));
    session.signal(Signal::KILL);
    session.end();
    until("nobody fetches", || processes_marked(&mark).is_empty());
}

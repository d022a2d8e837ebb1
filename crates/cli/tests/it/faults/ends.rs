//! Ends before the end: Ctrl-C, a terminal that closes, kill -9 at any moment.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::host::{nothing_left_running, processes_marked, unique, wrapped};
use crate::runs::{
    Running, end, is_tidy, page_is_whole, quiet_tree, read, results, run_file, run_into, start, visits_so_far,
};

/// A run in the middle of a visit that takes as long as it is let.
fn in_the_middle(dir: &Path, mark: &str, prepare: impl FnOnce(&mut Command)) -> Running {
    let words = "--quick --only selftest.steady,selftest.hang --visit-limit 100s --force";
    let mut command = run_into(dir, words);
    // A shell's background jobs ignore Ctrl-C; what the test was started by must not matter.
    let usual = ["env", "--default-signal=INT,TERM,HUP"];
    command.env("ASSAY_TEST", mark);
    let mut command = wrapped(&usual, &command);
    prepare(&mut command);
    let mut running = start(&mut command);
    running.until("the visit that hangs", |running| running.text("err").contains("measuring selftest.hang"));
    running.until("its process", |_| {
        processes_marked(mark).iter().any(|(_, command)| command.contains(" case"))
    });
    running
}

#[test]
fn an_interrupted_run_is_kept_said_and_gone_on_with() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let dir = tempfile::tempdir().expect("a folder");
        let mark = unique();
        let running = in_the_middle(dir.path(), &mark, |_| {});
        let before = visits_so_far(dir.path());
        running.signal(signal);
        let ended = running.end();
        ended.expect(130).says(&["interrupted; the same command resumes", "saved"]);
        nothing_left_running(&mark);
        let file = run_file(dir.path());
        let run = read(&file);
        assert!(run.summary.is_none() && run.damage.is_empty());
        assert_eq!(run.visits.len(), before, "nothing is invented for the visit that was cut short");
        assert!(run.events.iter().any(|event| event.kind == "interrupted"));
        let kept = results(dir.path());
        assert_eq!(kept["complete"], false);
        page_is_whole(dir.path());
        is_tidy(dir.path());

        let words = "--quick --only selftest.steady,selftest.hang --visit-limit 1s --force";
        end(&mut run_into(dir.path(), words)).says(&["resuming "]);
        let finished = read(&file);
        assert_eq!(finished.visits[..before], run.visits);
        assert!(finished.summary.is_some() && finished.visits.len() > before);
        assert_eq!(results(dir.path())["complete"], true);
        // That it was interrupted once is history, not its state.
        let page = on_page(dir.path());
        assert!(page.contains("resumed after"), "the event is in the page");
        assert!(!page.contains(", interrupted<"), "the finished run is still called interrupted");
    }
}

fn on_page(dir: &Path) -> String {
    page_is_whole(dir);
    fs::read_to_string(dir.join("report.html")).expect("a page")
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let mark = unique();
    // Its output goes into a full pipe that is never read: the orderly end takes for ever.
    let (_reader, writer) = rustix::pipe::pipe().expect("a pipe");
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).expect("non-blocking");
    while rustix::io::write(&writer, &[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::empty()).expect("blocking");
    let words = "--quick --only selftest.hang --visit-limit 100s --force";
    let mut command = run_into(dir.path(), words);
    command.env("ASSAY_TEST", &mark);
    let mut command = wrapped(&["env", "--default-signal=INT"], &command);
    let texts = tempfile::tempdir().expect("a folder");
    let errors = texts.path().join("err");
    let mut child = command
        .stdout(writer)
        .stderr(fs::File::create(&errors).expect("a file"))
        .spawn()
        .expect("the program starts");
    let signal = |child: &std::process::Child| {
        let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, Signal::INT).expect("it is there");
    };
    let wait = |what: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        while !what() {
            assert!(Instant::now() < end, "{:?}", fs::read_to_string(&errors));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(&|| processes_marked(&mark).iter().any(|(_, command)| command.contains(" case")));
    signal(&child);
    wait(&|| read(&run_file(dir.path())).events.iter().any(|event| event.kind == "interrupted"));
    // Signals that come together are one wish; this one is a second.
    std::thread::sleep(Duration::from_millis(800));
    assert!(child.try_wait().expect("a child").is_none(), "the full pipe holds it up");
    signal(&child);
    // The pipe is never emptied: it can only end at once.
    nothing_left_running(&mark);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "{:?}", fs::read_to_string(&errors));
    assert!(read(&run_file(dir.path())).damage.is_empty());
}

#[test]
fn two_signals_at_once_are_one_wish() {
    let dir = tempfile::tempdir().expect("a folder");
    // As `timeout` does: the process, and right after that its group.
    let mut running =
        start(&mut run_into(dir.path(), "--quick --only selftest.hang --visit-limit 100s --force"));
    running.until("the visit that hangs", |running| running.text("err").contains("measuring selftest.hang"));
    running.signal(Signal::TERM);
    running.signal(Signal::TERM);
    running.end().expect(130).says(&["interrupted", "exit 130"]);
    page_is_whole(dir.path());
    assert!(read(&run_file(dir.path())).events.iter().any(|event| event.kind == "interrupted"));
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only selftest.steady,selftest.hang --visit-limit 2s --force";
    let ignoring = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let mut running = start(&mut wrapped(&ignoring, &run_into(dir.path(), words)));
    running.until("the visit that hangs", |running| running.text("err").contains("measuring selftest.hang"));
    running.signal(Signal::HUP);
    let ended = running.end();
    assert!(ended.code != 130 && !ended.err.contains("interrupted"), "{}", ended.err);
    assert!(read(&run_file(dir.path())).summary.is_some());
}

#[test]
fn killed_at_random_moments_a_run_loses_one_visit_at_most_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().expect("a folder");
    let tree = quiet_tree();
    let words = format!(
        "--quick --only selftest.steady,ipc.pipe,memory.bandwidth --force --budget 8s --root {}",
        tree.root().display()
    );
    let mut random = fastrand::Rng::with_seed(2048);
    let mut kept = Vec::new();
    for trial in 0..6 {
        let mark = unique();
        let running = start(run_into(dir.path(), &words).env("ASSAY_TEST", &mark));
        // The first second goes to the gate: some trials end in it, most behind it.
        std::thread::sleep(Duration::from_millis(random.u64(30..2600)));
        let before = visits_so_far(dir.path());
        running.signal(Signal::KILL);
        let ended = running.end();
        if ended.code == 0 {
            // It was quicker than the signal; that is no trial.
            break;
        }
        assert_eq!(ended.code, 128 + 9, "{}", ended.err);
        nothing_left_running(&mark);
        if crate::runs::run_files(dir.path()).is_empty() {
            continue;
        }
        let run = read(&run_file(dir.path()));
        // Each visit is in the file as soon as it has ended: only the one that ran is lost.
        assert!(run.visits.len() >= before, "{} of {before} visits are left", run.visits.len());
        assert_eq!(run.visits[..kept.len()], kept, "trial {trial} changed earlier visits");
        assert!(run.damage.is_empty(), "{:?}", run.damage);
        kept = run.visits;
    }
    let ended = end(&mut run_into(dir.path(), &words));
    ended.measured();
    let run = read(&run_file(dir.path()));
    assert_eq!(run.visits[..kept.len()], kept);
    let orders: Vec<u32> = run.visits.iter().map(|visit| visit.order).collect();
    assert_eq!(orders, (0..orders.len() as u32).collect::<Vec<_>>());
    let made = run.visits.iter().filter(|visit| visit.reason.is_none());
    let mut done: Vec<(u32, u32)> = made.map(|visit| (visit.case, visit.pass)).collect();
    done.sort_unstable();
    let visits = done.len();
    done.dedup();
    assert_eq!(done.len(), visits, "a visit was made twice");
    // On a busy host there is no time for some.
    let fine =
        |reason: &model::Reason| matches!(reason, model::Reason::Skipped(why) if why.starts_with("budget"));
    assert!(run.visits.iter().all(|visit| visit.reason.as_ref().is_none_or(fine)), "{:?}", run.visits);
    assert!(run.summary.is_some());
    page_is_whole(dir.path());
}

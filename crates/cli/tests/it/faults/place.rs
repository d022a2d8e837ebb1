//! A run file that loses its place while it is written, and files that are not safe to go on with:
//! nothing that was measured is lost, and nothing of others' is written to.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, chown, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::host::{is_root, skipped, works, wrapped};
use crate::runs::{
    Ended, end, page_is_whole, pretended, quiet_tree, read, results, run_file, run_files, run_into, start,
    visits_so_far,
};

/// What others have, and we leave alone.
const THEIRS: &str = "precious\n";

struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["above", "elsewhere"] {
            fs::create_dir(dir.path().join(folder)).expect("a folder");
        }
        fs::write(dir.path().join("elsewhere/theirs"), THEIRS).expect("written");
        Stage { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn out(&self) -> PathBuf {
        self.path("above/out")
    }

    /// A run into `above/out`, to which something happens once it has measured something.
    fn during(&self, happens: impl FnOnce(&Path), signal: Option<rustix::process::Signal>) -> Ended {
        self.until_told("is no longer in its place", 1, happens, signal)
    }

    /// The same once it has this number of visits, until its messages contain `told`.
    fn until_told(
        &self,
        told: &str,
        visits: usize,
        happens: impl FnOnce(&Path),
        signal: Option<rustix::process::Signal>,
    ) -> Ended {
        let tree = quiet_tree();
        let root = tree.root().display().to_string();
        // A run that a signal ends must still measure when the signal comes, even on a busy host.
        let only = if signal.is_some() { "selftest.steady,syscall" } else { "selftest.steady" };
        let words = format!("--quick --only {only} --force --root {root}");
        let mut run = start(&mut run_into(&self.out(), &words));
        run.until("its visits", |_| visits_so_far(&self.out()) >= visits);
        happens(&run_file(&self.out()));
        run.until("a word about it", |run| run.text("err").contains(told));
        if let Some(signal) = signal {
            run.signal(signal);
        }
        run.end()
    }

    /// The run is whole and reported in this folder, under this name, and nothing else has changed.
    #[track_caller]
    fn is_saved(&self, ended: &Ended, why: &str, file: &Path) {
        ended.says(&[why, "measuring continues", &format!("saved as {}", file.display())]);
        assert!(ended.code == 0 || ended.code == 130, "{ended:?}");
        let run = read(file);
        assert!(run.damage.is_empty() && !run.visits.is_empty(), "{:?}", run.damage);
        assert_eq!(run.summary.is_some(), ended.code == 0);
        let folder = file.parent().expect("a folder");
        page_is_whole(folder);
        assert_eq!(results(folder)["complete"], ended.code == 0);
        let theirs: Vec<PathBuf> = fs::read_dir(self.path("elsewhere"))
            .expect("there")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert_eq!(theirs, [self.path("elsewhere/theirs")]);
        assert_eq!(fs::read_to_string(&theirs[0]).expect("readable"), THEIRS);
    }
}

fn name(file: &Path) -> String {
    file.file_name().expect("a name").to_string_lossy().to_string()
}

#[test]
fn a_run_whose_folder_is_removed_is_saved_there_again() {
    let (stage, mut own) = (Stage::new(), String::new());
    let ended = stage.during(
        |file| {
            own = name(file);
            fs::remove_dir_all(stage.out()).expect("removed");
        },
        None,
    );
    stage.is_saved(&ended, "is no longer in its place (removed", &stage.out().join(own));
}

#[test]
fn a_run_whose_file_became_a_link_is_saved_beside_it() {
    let (stage, mut own) = (Stage::new(), PathBuf::new());
    let ended = stage.during(
        |file| {
            own = file.to_path_buf();
            fs::remove_file(file).expect("removed");
            symlink(stage.path("elsewhere/theirs"), file).expect("a link");
        },
        None,
    );
    let saved = own.with_file_name(name(&own).replace(".assay.jsonl", "-2.assay.jsonl"));
    stage.is_saved(&ended, "is no longer in its place (replaced by a link", &saved);
    assert!(own.is_symlink());
}

#[test]
fn a_run_whose_folder_became_a_link_is_saved_above_it() {
    let (stage, mut own) = (Stage::new(), String::new());
    let ended = stage.during(
        |file| {
            own = name(file);
            fs::rename(stage.out(), stage.path("moved")).expect("moved");
            symlink(stage.path("elsewhere"), stage.out()).expect("a link");
        },
        None,
    );
    stage.is_saved(
        &ended,
        "is no longer in its place (it or its folder was moved",
        &stage.path("above").join(&own),
    );
    assert!(stage.out().is_symlink());
    let moved: Vec<PathBuf> =
        fs::read_dir(stage.path("moved")).expect("there").flatten().map(|entry| entry.path()).collect();
    assert_eq!(moved, [stage.path("moved").join(&own)], "a report followed the folder");
}

#[test]
fn an_interrupted_run_whose_file_is_replaced_is_gone_on_with_where_it_was_saved() {
    let (stage, mut own) = (Stage::new(), PathBuf::new());
    let ended = stage.during(
        |file| {
            own = file.to_path_buf();
            fs::remove_file(file).expect("removed");
            fs::write(file, THEIRS).expect("written");
        },
        Some(rustix::process::Signal::INT),
    );
    let saved = own.with_file_name(name(&own).replace(".assay.jsonl", "-2.assay.jsonl"));
    stage.is_saved(&ended, "is no longer in its place (replaced by something else", &saved);
    assert_eq!(fs::read_to_string(&own).expect("readable"), THEIRS);
    // A run may have come to its end before it heard of the signal.
    if ended.code == 130 {
        ended.says(&["the same command resumes", &name(&saved)]);
    }
}

/// Another writer of a run file.
fn cut(file: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(length)).expect("cut");
}

#[test]
fn a_run_whose_file_is_cut_is_saved_whole_beside_it() {
    for (lines, signal) in [
        (0, None),
        (3, None),
        (3, Some(rustix::process::Signal::INT)),
        (2, Some(rustix::process::Signal::KILL)),
    ] {
        let (stage, mut own, mut visits) = (Stage::new(), PathBuf::new(), 0);
        let ended = stage.until_told(
            "was truncated by another program",
            // The header, and as many visits that there is something to cut.
            lines.max(1),
            |file| {
                (own, visits) = (file.to_path_buf(), read(file).visits.len());
                let text = fs::read_to_string(file).expect("readable");
                let length: usize = text.split_inclusive('\n').take(lines).map(str::len).sum();
                cut(file, length as u64);
            },
            signal,
        );
        let saved = own.with_file_name(name(&own).replace(".assay.jsonl", "-2.assay.jsonl"));
        let run = read(&saved);
        assert!(visits > 0 && run.visits.len() >= visits, "{} of {visits} visits", run.visits.len());
        assert!(run.visits.iter().map(|visit| visit.order).eq(0..run.visits.len() as u32), "with gaps");
        match signal {
            Some(rustix::process::Signal::KILL) => {
                assert!(ended.err.contains(&format!("saved as {}", saved.display())), "{}", ended.err);
            }
            _ => stage.is_saved(&ended, "was truncated by another program", &saved),
        }
    }
}

#[test]
fn a_run_into_whose_file_somebody_writes_is_saved_beside_it() {
    let (stage, mut own) = (Stage::new(), PathBuf::new());
    let ended = stage.until_told(
        "was changed by another program",
        1,
        |file| {
            own = file.to_path_buf();
            let mut file = fs::OpenOptions::new().append(true).open(file).expect("open");
            file.write_all(THEIRS.as_bytes()).expect("written");
        },
        None,
    );
    let saved = own.with_file_name(name(&own).replace(".assay.jsonl", "-2.assay.jsonl"));
    stage.is_saved(&ended, "was changed by another program", &saved);
    assert!(fs::read_to_string(&own).expect("readable").contains(THEIRS));
}

#[test]
fn a_run_whose_file_is_changed_is_saved_beside_it() {
    let (stage, mut own) = (Stage::new(), PathBuf::new());
    let tree = quiet_tree();
    let words = format!("--quick --only selftest.steady --force --root {}", tree.root().display());
    let mut run = start(&mut run_into(&stage.out(), &words));
    run.until("a visit", |_| visits_so_far(&stage.out()) > 0);
    let file = run_file(&stage.out());
    own.clone_from(&file);
    let open = fs::OpenOptions::new().write(true).open(&file).expect("open");
    open.write_all_at(b"X", 20).expect("changed");
    let ended = run.end();
    ended.expect(0).says(&["was changed by another program"]);
    let saved = own.with_file_name(name(&own).replace(".assay.jsonl", "-2.assay.jsonl"));
    ended.says(&[&format!("saved as {}", saved.display())]);
    let run = read(&saved);
    assert!(run.damage.is_empty() && run.summary.is_some());
    page_is_whole(&stage.out());
}

/// The reader may be slow, and the folder may be removed meanwhile.
#[test]
fn a_run_whose_folder_is_removed_while_it_is_shown_is_saved_there_again() {
    let stage = Stage::new();
    let mut command = run_into(&stage.out(), &format!("{} --json", pretended("selftest.steady")));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).expect("a small one");
    let mut child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().expect("assay");
    // What holds the pipe open beside the child.
    drop(command);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(300);
    let is_closed = || {
        let file = stage.out().is_dir().then(|| run_files(&stage.out()).pop()).flatten();
        file.is_some_and(|file| model::run_file::read(&file).is_ok_and(|run| run.summary.is_some()))
    };
    while !is_closed() {
        assert!(std::time::Instant::now() < end && child.try_wait().expect("a child").is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let own = name(&run_file(&stage.out()));
    fs::remove_dir_all(stage.out()).expect("removed");
    let shown = std::io::read_to_string(reader).expect("read");
    let ended = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{told}");
    assert!(shown.starts_with('{') && told.contains("is no longer in its place (removed"), "{told}");
    assert!(read(&stage.out().join(own)).summary.is_some());
    page_is_whole(&stage.out());
}

#[test]
fn a_run_is_shown_where_its_end_cannot_be_written() {
    let test = "a_run_is_shown_where_its_end_cannot_be_written";
    if !works("prlimit", &["--fsize=30000", "true"]) {
        return skipped(test, "prlimit is not here");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let words = pretended("selftest.steady");
    end(&mut run_into(dir.path(), &words)).expect(0);
    let file = run_file(dir.path());
    let text = fs::read_to_string(&file).expect("readable");
    let whole = read(&file);
    let room = text.rfind("{\"summary\"").expect("a summary") + 10;
    for (json, begin, shown) in
        [("", "vm · ", "A clean case"), ("--json", "{", "selftest.steady@one-cpu#speed")]
    {
        fs::remove_file(run_file(dir.path())).expect("removed");
        let run = run_into(dir.path(), &format!("{words} {json}"));
        let ended = end(&mut wrapped(&["prlimit", &format!("--fsize={room}")], &run));
        ended.expect(3).says(&["File too large", "free space and run the same command again"]);
        assert!(ended.out.starts_with(begin) && ended.out.contains(shown), "{}", ended.out);
        let left = read(&run_file(dir.path()));
        assert!(left.summary.is_none() && left.visits == whole.visits);
    }
    end(&mut run_into(dir.path(), &words)).expect(0).says(&["resuming "]);
    assert_eq!(read(&run_file(dir.path())).summary, whole.summary);
}

/// An interrupted run in a folder of its own.
fn interrupted(dir: &Path) -> PathBuf {
    end(&mut run_into(dir, &pretended("selftest.steady"))).expect(0);
    let file = run_file(dir);
    let text = fs::read_to_string(&file).expect("readable");
    let cut: String = text.split_inclusive('\n').take(5).collect();
    fs::write(&file, cut).expect("written");
    for report in ["report.html", "report.json"] {
        fs::remove_file(dir.join(report)).expect("removed");
    }
    file
}

/// The same command leaves this interrupted run of the folder alone, and says why.
#[track_caller]
fn is_left_alone(out: &Path, file: &Path, why: &str) {
    let (before, files) = (fs::read(file).expect("readable"), run_files(out).len());
    let ended = end(&mut run_into(out, &pretended("selftest.steady")));
    ended.expect(0).says(&["is not resumed", why, "--new"]);
    assert!(!ended.err.contains("resuming "), "{}", ended.err);
    assert_eq!(fs::read(file).expect("readable"), before, "it was written to");
    assert_eq!(run_files(out).len(), files + 1);
    // With `--new` there is no message on why the run could not be resumed.
    let ended = end(&mut run_into(out, &format!("{} --new", pretended("selftest.steady"))));
    assert!(!ended.expect(0).err.contains("is not resumed"), "{}", ended.err);
}

#[test]
fn what_others_may_have_put_there_is_not_gone_on_with() {
    let stage = Stage::new();
    let file = interrupted(&stage.path("elsewhere"));
    for (kind, why) in [("symbolic", "it is a symbolic link"), ("hard", "it has 2 names")] {
        let out = stage.path(kind);
        fs::create_dir(&out).expect("a folder");
        let link = out.join(name(&file));
        match kind {
            "hard" => fs::hard_link(&file, &link).expect("a link"),
            _ => symlink(&file, &link).expect("a link"),
        }
        is_left_alone(&out, &file, why);
    }
    // A folder that the user made a link is the user's.
    let (out, link) = (stage.path("own"), stage.path("link"));
    fs::create_dir(&out).expect("a folder");
    interrupted(&out);
    symlink(&out, &link).expect("a link");
    end(&mut run_into(&link, &pretended("selftest.steady"))).expect(0).says(&["resuming "]);
    assert!(read(&run_file(&out)).summary.is_some());
    page_is_whole(&out);
}

#[test]
fn a_run_of_another_user_is_not_gone_on_with() {
    if !is_root() {
        return skipped("a_run_of_another_user_is_not_gone_on_with", "only root can give files away");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let file = interrupted(dir.path());
    chown(&file, Some(65534), Some(65534)).expect("given away");
    is_left_alone(dir.path(), &file, "it belongs to user 65534");
}

#[test]
fn what_is_no_file_does_not_hold_a_run_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let words = pretended("selftest.steady");
    end(&mut run_into(dir.path(), &words)).expect(0);
    let own = name(&run_file(dir.path()));
    for kind in ["pipe", "folder", "device"] {
        let out = dir.path().join(kind);
        fs::create_dir(&out).expect("a folder");
        let place = out.join(&own);
        let made = match kind {
            "pipe" => works("mkfifo", &[place.to_str().expect("a path")]),
            "folder" => fs::create_dir(&place).is_ok(),
            _ => symlink("/dev/zero", &place).is_ok(),
        };
        assert!(made, "{kind}");
        end(&mut run_into(&out, &words)).expect(0).sane();
        // Its name is taken: the run has another one.
        let written = own.replace(".assay.jsonl", "-2.assay.jsonl");
        assert!(read(&out.join(written)).summary.is_some(), "{kind}");
    }
}

//! Journals that no session of ours would leave: made up, torn by a power cut, of another boot or
//! version.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::State;
use crate::host::{skipped, works, wrapped};
use crate::runs::end;

const NAME: &str = "objects-0123456789abcdef.json";

/// Ends with the test.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn this_boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable").trim().to_string()
}

fn journal(schema: u32, boot: &str, objects: Value) -> String {
    // No process has this number.
    json!({"schema": schema, "boot_id": boot, "pid": u32::MAX, "start_ticks": 1, "objects": objects})
        .to_string()
}

impl State {
    fn with(journal: &[u8]) -> State {
        let state = State::new();
        fs::write(state.path().join(NAME), journal).expect("written");
        state
    }

    /// All is done, and the next time there is nothing to say.
    #[track_caller]
    fn is_clear(&self) {
        assert!(self.journals().is_empty());
        let again = self.restore();
        again.expect(0);
        assert!(!again.err.contains("journal"), "{}", again.err);
    }
}

#[test]
fn a_folder_that_is_no_control_group_of_ours_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sleeper = Sleeper(Command::new("sleep").arg("300").spawn().expect("sleep is here"));
    let names = ["assay-0123456789abcdef0123456789abcdef", "of-somebody"];
    for (name, version) in names.into_iter().flat_map(|name| [(name, 1), (name, 2)]) {
        let theirs = folder.path().join(name);
        fs::create_dir_all(&theirs).expect("a folder");
        let kept = [("cgroup.procs", sleeper.0.id().to_string()), ("freezer.state", "kept".into())];
        kept.iter().for_each(|(file, text)| fs::write(theirs.join(file), text).expect("written"));
        let inode = fs::metadata(&theirs).expect("a folder").ino();
        let group = |folder: &Path, inode: Option<u64>| {
            let object = json!([{"control_group": {"folder": folder, "version": version, "inode": inode}}]);
            State::with(journal(1, &this_boot(), object).as_bytes())
        };
        let link = folder.path().join("assay-ffffffffffffffffffffffffffffffff");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&theirs, &link).expect("a link");
        let linked = fs::symlink_metadata(&link).expect("a link").ino();
        for (path, inode) in [(&theirs, Some(inode)), (&link, Some(inode)), (&link, Some(linked))] {
            let state = group(path, inode);
            let ended = state.restore();
            assert!(sleeper.0.try_wait().expect("a child").is_none(), "a process was killed: {}", ended.err);
            for (file, text) in &kept {
                assert_eq!(fs::read_to_string(theirs.join(file)).expect("it is there"), *text);
            }
            assert_eq!(fs::read_dir(&theirs).expect("a folder").count(), kept.len());
            ended.expect(0);
            let told = format!("{}{}", ended.out, ended.err);
            assert!(told.contains("stays") && told.contains(path.to_str().expect("text")), "{told}");
            state.is_clear();
        }
        // Nor is an empty one removed.
        kept.iter().for_each(|(file, _)| fs::remove_file(theirs.join(file)).expect("removed"));
        let state = group(&theirs, None);
        state.restore().expect(0);
        assert!(theirs.is_dir());
        state.is_clear();
    }
}

#[test]
fn what_a_power_cut_leaves_of_a_journal_is_cleared() {
    let whole = journal(1, &this_boot(), json!([]));
    for torn in ["\0".repeat(300), " \n".into(), String::new(), format!("{whole}\n\0\0\0")] {
        let state = State::with(torn.as_bytes());
        state.restore().expect(0);
        state.is_clear();
    }
}

#[test]
fn what_another_boot_has_left_is_gone_whoever_noted_it() {
    let unknown = json!({"black_hole": {"mass": 1}});
    for schema in [1, 2] {
        let state = State::with(journal(schema, "of another boot", json!([unknown])).as_bytes());
        state.restore().expect(0);
        state.is_clear();
        // Of this boot it may be there.
        let state = State::with(journal(schema, &this_boot(), json!([unknown])).as_bytes());
        state.restore().expect(3).says(&["cannot parse", NAME]);
        assert_eq!(state.journals().len(), 1);
    }
    // A job is on another host, which may run on; this one hangs up.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let job = json!({"job": {"address": address, "job": "0123456789abcdef0123456789abcdef"}});
    let state = State::with(journal(1, "of another boot", json!([unknown, job])).as_bytes());
    state.restore().expect(3).says(&["the job 0123456789abcdef0123456789abcdef"]);
    assert_eq!(state.objects("job"), [job["job"].clone()]);
    for damaged in [&b"{\"schema\": \xff"[..], b"[1]", b"{\"boot_id\": \"x\", \"objects\": 1}"] {
        State::with(damaged).restore().expect(3).says(&["cannot parse"]);
    }
}

/// From where it cannot be seen whether they are there, nothing is said to be gone.
#[test]
fn what_is_in_another_pid_namespace_stays_noted() {
    const TEST: &str = "what_is_in_another_pid_namespace_stays_noted";
    if !works("unshare", &["-pf", "--mount-proc", "true"]) {
        return skipped(TEST, "no PID namespace can be made here");
    }
    let own = fs::metadata("/proc/self/ns/pid").expect("a namespace").ino();
    let objects = json!([{"visit": {"pid": u32::MAX, "start_ticks": 1}}, {"processes": {"mark": "m"}}]);
    let of = |namespace: Option<u64>| {
        let mut journal: Value =
            serde_json::from_str(&journal(1, &this_boot(), objects.clone())).expect("JSON");
        journal["namespace"] = json!(namespace);
        State::with(journal.to_string().as_bytes())
    };
    let elsewhere = |state: &State| {
        let mut restore = crate::assay();
        restore.arg("restore").env("ASSAY_STATE", state.path());
        end(&mut wrapped(&["unshare", "-pf", "--mount-proc"], &restore))
    };
    let state = of(Some(own));
    elsewhere(&state).expect(3).says(&["another PID namespace", "assay restore", NAME]);
    assert_eq!(state.objects("processes"), [json!({"mark": "m"})]);
    state.restore().expect(0);
    state.is_clear();
    // A journal of an older version, which records no namespace.
    let state = of(None);
    elsewhere(&state).expect(0);
    state.is_clear();
}

//! Values and files of this host's real kernel that do not take what is asked of them.

use std::path::Path;

use super::sweep;
use crate::host::{is_root, skipped, works, wrapped};
use crate::runs::{end, page_is_whole, read, run_file};
use testkit::killing::RestoredFiles;

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

#[test]
fn a_value_that_the_kernel_makes_another_of_fails_its_cells_with_words() {
    let test = "a_value_that_the_kernel_makes_another_of_fails_its_cells_with_words";
    if !is_root() {
        return skipped(test, "only root may turn vm.swappiness");
    }
    let guarded = match RestoredFiles::files(&[SWAPPINESS]) {
        Ok(guarded) => guarded,
        Err(why) => return skipped(test, why),
    };
    let (state, out) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    // 017 is read as another number, 1000 as none that it takes.
    let mut command = sweep("selftest.steady --quick --force --budget 5m --knob vm.swappiness=17,017,1000");
    command.arg("--out").arg(out.path()).env("ASSAY_STATE", state.path());
    let ended = end(&mut command);
    ended.sane();
    assert!(guarded.changed().is_empty() && !state.path().join("knobs.json").exists(), "{}", ended.err);
    let run = read(&run_file(out.path()));
    let reasons = |value: &str| -> Vec<String> {
        let of =
            |visit: &&model::Visit| run.header.plan[visit.case as usize].case.knobs["vm.swappiness"] == value;
        run.visits.iter().filter(of).map(|visit| format!("{:?}", visit.reason)).collect()
    };
    assert!(
        reasons("17").len() >= 4 && reasons("17").iter().all(|reason| reason == "None"),
        "{:?} {}",
        reasons("17"),
        ended.err
    );
    let (rounded, refused) = (reasons("017"), reasons("1000"));
    // Three failures are enough.
    assert_eq!((rounded.len(), refused.len()), (3, 3));
    assert!(rounded.iter().all(|why| why.contains("vm.swappiness was set to 017 and is ")), "{rounded:?}");
    assert!(
        refused.iter().all(|why| why.contains("cannot write 1000 to /proc/sys/vm/swappiness")),
        "{refused:?}"
    );
    page_is_whole(out.path());
}

#[test]
fn where_proc_sys_is_read_only_nothing_begins() {
    let test = "where_proc_sys_is_read_only_nothing_begins";
    let autogroup = "/proc/sys/kernel/sched_autogroup_enabled";
    if !is_root() || !works("unshare", &["-m", "mount", "--bind", "/proc/sys", "/proc/sys"]) {
        return skipped(test, "mount namespaces need root");
    }
    if !Path::new(autogroup).exists() {
        return skipped(test, format!("there is no {autogroup}"));
    }
    let (state, out) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    // As in a container.
    let closed =
        "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$0\" \"$@\"";
    let mut command = sweep("selftest.steady --quick --force --knob autogroup=0,1");
    command.arg("--out").arg(out.path()).env("ASSAY_STATE", state.path());
    let ended = end(&mut wrapped(&["unshare", "-m", "sh", "-c", closed], &command));
    ended.expect(3).says(&[autogroup, "is read-only here"]);
    assert_eq!(std::fs::read_dir(out.path()).expect("a folder").count(), 0);
    let mut knobs = crate::assay();
    knobs.args(["knobs", "autogroup"]).env("COLUMNS", "200");
    let listed = end(&mut wrapped(&["unshare", "-m", "sh", "-c", closed], &knobs));
    assert!(listed.expect(0).out.contains("is read-only here"), "{}", listed.out);
}

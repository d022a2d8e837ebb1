//! An experiment over a profile of more knobs than are paired at once, two of which are felt, in a
//! made tree.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{interruptible, journal_is_there, kernel, text};
use crate::runs::{end, page_is_whole, read, run_files, start, visits_so_far};
use crate::synthetic::Tree;

/// Each with its value before and after.
const KNOBS: [(&str, &str, &str); 5] = [
    ("vm.swappiness", "60", "10"),
    ("vm.dirty_ratio", "20", "40"),
    ("vm.dirty_background_ratio", "10", "5"),
    ("vm.vfs_cache_pressure", "100", "50"),
    ("vm.stat_interval", "1", "10"),
];
/// The knobs that `selftest.knobs` feels.
const FELT: [usize; 2] = [0, 1];

fn file(knob: &str) -> String {
    format!("/proc/sys/{}", knob.replace('.', "/"))
}

fn machine() -> Tree {
    let tree = kernel("6.1.0-test");
    for (name, before, _) in KNOBS {
        tree.file(&file(name), before);
    }
    tree
}

fn experiment(tree: &Tree, lists: &Path, out: &Path) -> Command {
    let list = |name: &str, value: fn(&(&str, &str, &str)) -> String| {
        let lines: Vec<String> = KNOBS.iter().map(|knob| format!("{} = {}\n", knob.0, value(knob))).collect();
        let path = lists.join(name);
        fs::write(&path, lines.concat()).expect("a list");
        path
    };
    let mut command = crate::assay();
    command.args("explain-profile --bench selftest.knobs --quick --force --seed 3 --budget 5m".split(' '));
    command.arg("--before").arg(list("before.conf", |knob| knob.1.into()));
    command.arg("--after").arg(list("after.conf", |knob| knob.2.into()));
    command.arg("--root").arg(tree.root()).arg("--out").arg(out);
    command
}

#[test]
fn interrupted_while_it_measures_pairs_it_goes_on_with_them() {
    let (tree, out) = (machine(), tempfile::tempdir().expect("a folder"));
    let lists = tempfile::tempdir().expect("a folder");
    let before = || KNOBS.iter().all(|(name, before, _)| text(&tree, &file(name)) == *before);

    let mut running = start(&mut interruptible(experiment(&tree, lists.path(), out.path())));
    running.until("a second run", |_| run_files(out.path()).len() == 2);
    running.until("some of its visits", |_| visits_so_far(out.path()) >= 5);
    running.signal(Signal::INT);
    running
        .end()
        .expect(130)
        .says(&["a second run measures their pairs", "interrupted; the same command resumes"]);
    assert!(before() && !journal_is_there(&tree));
    let files = run_files(out.path());
    let (first, kept) = (read(&files[0]), read(&files[1]));
    assert!(first.summary.is_some() && kept.summary.is_none() && kept.visits.len() >= 5);

    end(&mut experiment(&tree, lists.path(), out.path()))
        .sane()
        .says(&["resuming the pairs of the strong settings", "resuming "]);
    assert!(before() && !journal_is_there(&tree));
    assert_eq!(run_files(out.path()), files, "no third run");
    assert_eq!(read(&files[0]).visits, first.visits, "the first is as it was");
    let whole = read(&files[1]);
    assert_eq!(whole.visits[..kept.visits.len()], kept.visits);
    assert!(whole.summary.is_some());
    let failed: Vec<_> = whole.visits.iter().filter_map(|visit| visit.reason.as_ref()).collect();
    assert!(failed.is_empty(), "{failed:?}, of {} visits before the interrupt", kept.visits.len());
    assert_eq!(whole.visits.len(), whole.header.plan.len() * 6, "each setting once a pass");
    page_is_whole(out.path());

    // The pair of those that are felt is among the pairs.
    let diagnosis = diagnose::diagnose(whole);
    let shares = &diagnosis.profile_effects().expect("shared out").shares;
    assert!(shares.pairs.iter().any(|pair| pair.factors == FELT), "{shares:?}");
    for main in shares.mains.iter().filter(|main| FELT.contains(&main.factor)) {
        assert!(main.effect.interval.high < 0.0, "{shares:?}");
    }
}

//! Profiles with invented samples: one knob that does it all, and noise that hides whatever there
//! is.

use super::edited::{Edit, server};
use super::sweep::slower;
use super::{Case, case};
use crate::runs::findings;

/// An experiment with three knobs of two lists, on a server of which nothing is turned.
fn experiment(bench: &str) -> Edit {
    let tree = server();
    let folder = tempfile::tempdir().expect("a folder");
    let list = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        file.display().to_string()
    };
    let before = list("off.conf", "vm.swappiness = 60\nthp = madvise\nkernel.sched_autogroup_enabled = 1\n");
    let after = list("on.conf", "vm.swappiness = 10\nthp = always\nkernel.sched_autogroup_enabled = 0\n");
    let words = format!(
        "--before {before} --after {after} --bench {bench} --quick --pretend 7 --root {}",
        tree.root().display()
    );
    Edit::of_verb(&["explain-profile"], &words)
}

pub fn profiles_that_one_knob_explains() -> Vec<Case> {
    let mut run = experiment("syscall.getpid");
    slower(&mut run, "syscall.getpid", "autogroup", "0", 0.8);
    let results = run.diagnosed();
    let finding = findings(&results, "profile-shares")[0];
    let headline = finding["headline"].as_str().expect("a text");
    assert!(headline.contains("Responsible: autogroup") && !headline.contains("swappiness"), "{headline}");
    let nothing = experiment("syscall.getpid").diagnosed();
    let headline = findings(&nothing, "profile-shares")[0]["headline"].as_str().expect("a text").to_string();
    assert!(headline.contains("which may be nothing"), "{headline}");
    vec![case("one knob of three", results), case("three knobs that do nothing", nothing)]
}

/// Free tasks hop between two levels in invented samples: a noise of tens of per cent.
pub fn profiles_below_a_loud_noise() -> Vec<Case> {
    vec![case("a free pair", experiment("ipc.pipe-pingpong").diagnosed())]
}

//! `make lab`: profiles shared out by real CFS kernels: one whose knobs are known to differ in what
//! they do, and tuned's throughput-performance.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use diagnose::shares::EvaluatedProfile;
use stats::factorial::{Effect, Main};

use super::in_guest_with;
use super::kernels::{INSTRUCTIONS, LIMIT_S, static_build, write_results};
use crate::runs;

/// Sysctl lists as a server of an older kernel has them: what 6.1 keeps in debugfs is found by the
/// same names. Granularity and preemption are turned against each other, and two knobs that a
/// benchmark of pipes and sockets cannot feel.
const SCRIPT: &str = "
cat >before.conf <<'END'
kernel.sched_min_granularity_ns = 2250000
kernel.sched_wakeup_granularity_ns = 3000000
vm.swappiness = 60
vm.dirty_ratio = 20
END
cat >after.conf <<'END'
kernel.sched_min_granularity_ns = 100000
kernel.sched_wakeup_granularity_ns = 0
vm.swappiness = 10
vm.dirty_ratio = 40
END
knobs() {
    cat /sys/kernel/debug/sched/*_granularity_ns /proc/sys/vm/swappiness /proc/sys/vm/dirty_ratio
}
knobs >knobs-before
assay explain-profile --before before.conf --after after.conf --bench hackbench --quick --force --seed 5 --budget 2h \
    --param groups=2 --param fds=10 --param loops=40 --out out >said 2>&1
knobs >knobs-after
cat said >&2
";

/// What tuned's throughput-performance sets of what differs from the kernels' own and what a guest
/// has: granularity and preemption as published (10 and 15 ms, as its `[sysctl]` had them while
/// they were there), dirty_ratio and swappiness as in its version 2.20.
const TUNED: &str = "
mkdir -p throughput-performance
cat >throughput-performance/tuned.conf <<'END'
[main]
summary=as the profile of this name
[sysctl]
kernel.sched_min_granularity_ns = 10000000
kernel.sched_wakeup_granularity_ns = 15000000
vm.dirty_ratio = 40
vm.swappiness = 10
END
assay explain-profile --after throughput-performance --bench hackbench --profile standard --force --seed 5 --budget 2h \
    --param groups=2 --param fds=10 --param loops=40 --out out >said 2>&1
cat said >&2
";

/// The knobs of the experiment that a guest left, and what each does to hackbench's time, as rows
/// of a table.
fn rows(folder: &Path, measured: impl FnOnce(&[String], &EvaluatedProfile)) -> String {
    let run = runs::read(&runs::run_file(&folder.join("out")));
    assert!(run.summary.is_some() && run.visits.iter().all(|visit| visit.reason.is_none()));
    let factors = run.header.factors.as_ref().expect("an experiment");
    let names: Vec<String> = factors.factors.iter().map(|factor| factor.name.clone()).collect();
    let report = diagnose::diagnose(run);
    let shared = report.profile_effects().expect("shared out");
    let mut table = String::new();
    let change = |ln: f64| format!("{:+.1} %", (ln.exp() - 1.0) * 100.0);
    let mut row = |what: &str, effect: &Effect| {
        let [low, high] = [effect.interval.low, effect.interval.high].map(change);
        writeln!(table, "| {what} | {} | {low} to {high} |", change(effect.ln)).expect("memory");
    };
    row("all four", &shared.shares.total);
    names
        .iter()
        .zip(&shared.shares.mains)
        .for_each(|(name, main)| row(&format!("{name} alone"), &main.effect));
    for pair in &shared.shares.pairs {
        let [one, other] = pair.factors.map(|index| &names[index]);
        row(&format!("{one} with {other}, beyond the sum of both"), &pair.effect);
    }
    row("what is left: three or four together", &shared.shares.remainder);
    println!("{table}");
    measured(&names, &shared);
    table
}

const HEADER: &str = "| turned | hackbench's time | 95 % |\n|---|---|---|\n";

#[test]
#[ignore = "a whole experiment in a guest, two minutes: make lab"]
fn profile_by_kernel() {
    let assay = static_build();
    let options = ["--qemu", "qemu10", "--kernel", "6.1-cloud-amd64", "--limit", LIMIT_S, "--assay", &assay];
    let Some(folder) = in_guest_with("profile_by_kernel", &options, "shared-l3", &INSTRUCTIONS, SCRIPT)
    else {
        return;
    };
    let text = |file: &str| fs::read_to_string(folder.path().join(file)).expect("the guest wrote it");
    assert_eq!(text("knobs-before"), text("knobs-after"), "all is put back");
    let table = rows(folder.path(), |names, shared| {
        assert_eq!(names, ["min_granularity_ns", "wakeup_granularity_ns", "vm.swappiness", "vm.dirty_ratio"]);
        // The whole costs time, what preempts is responsible, and what has nothing to do with it is
        // not.
        let said = format!("{:?}", shared.shares);
        assert!(shared.shares.total.interval.low > 0.0, "{said}");
        let strong = shared.shares.strong();
        assert!(!strong.is_empty() && strong.iter().all(|index| *index < 2), "{said}");
        for main in &shared.shares.mains[2..] {
            assert!(main.effect.interval.low < 0.0 && main.effect.interval.high > 0.0, "{said}");
        }
    });
    write_results("profile", &format!("{HEADER}{table}"));
}

/// That the profile gains is asserted, and that neither other knob does half of what its scheduler
/// knobs do; how these share the gain is written to the results only.
#[test]
#[ignore = "an experiment under each of two kernels, ten minutes: make lab"]
fn tuned_by_kernel() {
    let assay = static_build();
    let mut table = String::from("| kernel | turned | hackbench's time | 95 % |\n|---|---|---|---|\n");
    for kernel in ["5.10", "6.1"] {
        let image = format!("{kernel}-cloud-amd64");
        let options = ["--qemu", "qemu10", "--kernel", &image, "--limit", "7200", "--assay", &assay];
        let Some(folder) = in_guest_with("tuned_by_kernel", &options, "shared-l3", &INSTRUCTIONS, TUNED)
        else {
            return;
        };
        let rows = rows(folder.path(), |names, shared| {
            let said = format!("{kernel}: {names:?} {:?}", shared.shares);
            assert!(shared.shares.total.interval.high < 0.0, "{said}");
            let mains = names.iter().zip(&shared.shares.mains);
            let (scheduler, rest): (Vec<_>, Vec<_>) =
                mains.partition(|(name, _)| name.ends_with("_granularity_ns"));
            let most = |of: &[(&String, &Main)]| {
                of.iter().map(|(_, main)| main.effect.ln).fold(f64::INFINITY, f64::min)
            };
            assert!(most(&rest) > most(&scheduler) / 2.0, "{said}");
        });
        rows.lines().for_each(|row| writeln!(table, "| {kernel} {row}").expect("memory"));
    }
    write_results("tuned", &table);
}

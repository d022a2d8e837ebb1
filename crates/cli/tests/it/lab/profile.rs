//! `make lab`: a profile whose knobs are known to differ in what they do, shared out by a real CFS kernel.

use std::fs;

use stats::factorial::Effect;

use super::in_guest_with;
use super::kernels::{INSTRUCTIONS, LIMIT_S, static_build, write_results};
use crate::runs;

/// Sysctl lists as a server of an older kernel has them: what 6.1 keeps in debugfs is found by the same names. Granularity
/// and preemption are turned against each other, and two knobs that a benchmark of pipes and sockets cannot feel.
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
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    assert!(run.summary.is_some() && run.visits.iter().all(|visit| visit.reason.is_none()));
    let factors = run.header.factors.as_ref().expect("an experiment");
    let names: Vec<String> = factors.factors.iter().map(|factor| factor.name.clone()).collect();
    assert_eq!(names, ["min_granularity_ns", "wakeup_granularity_ns", "vm.swappiness", "vm.dirty_ratio"]);

    let report = diagnose::diagnose(run);
    let shared = report.shared_out().expect("shared out");
    let mains = &shared.shares.mains;
    let said = format!("{:?}", shared.shares);
    let mut table = String::from("| turned | hackbench's time | 95 % |\n|---|---|---|\n");
    let change = |ln: f64| format!("{:+.1} %", (ln.exp() - 1.0) * 100.0);
    let mut row = |what: &str, effect: &Effect| {
        let [low, high] = [effect.interval.low, effect.interval.high].map(change);
        table.push_str(&format!("| {what} | {} | {low} to {high} |\n", change(effect.ln)));
    };
    row("all four", &shared.shares.total);
    names.iter().zip(mains).for_each(|(name, main)| row(&format!("{name} alone"), &main.effect));
    for pair in &shared.shares.pairs {
        let [one, other] = pair.factors.map(|index| &names[index]);
        row(&format!("{one} with {other}, beyond both alone"), &pair.effect);
    }
    row("what is left: three or four together", &shared.shares.remainder);
    let total = &shared.shares.total;
    println!("{table}");
    write_results("profile", &table);

    // The whole costs time, what preempts is responsible, and what has nothing to do with it is not.
    assert!(total.interval.low > 0.0, "{said}");
    let strong = shared.shares.strong();
    assert!(!strong.is_empty() && strong.iter().all(|index| *index < 2), "{said}");
    for main in &mains[2..] {
        assert!(main.effect.interval.low < 0.0 && main.effect.interval.high > 0.0, "{said}");
    }
}

//! Cores below their claimed clock; the invented core clock is 3 GHz.

use serde_json::{Value, json};

use super::edited::{Edit, changed, policy, server};
use super::{Case, case};
use crate::runs::{findings, series};
use crate::synthetic::Tree;

/// A policy that claims this base clock, beside what `policy` makes.
fn claimed(tree: &Tree, base_khz: u32, max_khz: u32) {
    for cpu in 0..16 {
        policy(tree, cpu, "intel_pstate", "performance", max_khz);
        let folder = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
        tree.file(&format!("{folder}/base_frequency"), &base_khz.to_string());
    }
}

fn of_base(base_khz: u32) -> Case {
    changed(&format!("3 GHz of {base_khz} kHz"), "cpu.clock", |tree| claimed(tree, base_khz, 4_500_000))
}

/// All CPUs limited to `max_khz` of 4 GHz.
fn capped(max_khz: u32) -> Case {
    changed(&format!("{max_khz} of 4000000 kHz allowed"), "cpu.clock", |tree| {
        claimed(tree, 2_000_000, 4_000_000);
        for cpu in 0..16 {
            let folder = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
            tree.file(&format!("{folder}/scaling_max_freq"), &max_khz.to_string());
        }
    })
}

/// The laptop of the published readings, whose clock beside the windows alternates between these
/// two, under this governor.
fn laptop(clocks: [f64; 2], governor: &str) -> Case {
    let tree = server();
    for cpu in 0..16 {
        policy(&tree, cpu, "intel_pstate", governor, 3_200_000);
    }
    tree.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i5-2520M CPU @ 2.50GHz\n");
    let mut run = Edit::of(&format!("--quick --only cpu.clock --pretend 7 --root {}", tree.root().display()));
    run.samples(|visit, samples| samples["beside"]["clock_ghz"] = json!(clocks[visit % 2]));
    case(format!("a laptop at {clocks:?} GHz under {governor}"), run.diagnosed())
}

fn finding(case: &Case) -> &Value {
    findings(&case.results, "slow-clock")[0]
}

#[track_caller]
fn says(case: &Case, words: &[&str]) {
    let text = finding(case).to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is missing: {text}");
    }
}

pub fn cores_that_are_held_back() -> Vec<Case> {
    let below = of_base(3_600_000);
    says(&below, &["3.00 GHz", "17 % below its base clock of 3.60 GHz", "power limit"]);
    assert_eq!(series(&below.results, "cpu.clock")["verdict"], "trusted_with_cause");
    let cap = capped(3_000_000);
    says(&cap, &["25 % below its highest clock of 4.00 GHz", "A cap limits"]);
    let idle = laptop([1.36696, 1.38101], "powersave");
    says(&idle, &["1.37 GHz", "45 % below its base clock of 2.50 GHz", "powersave on CPUs 0-15"]);
    let guest = changed("a guest without cpufreq", "cpu.clock", |tree| {
        std::fs::remove_dir_all(tree.root().join("sys/devices/system/cpu/cpufreq")).expect("removed");
        tree.file(
            "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU @ 3.80GHz\nflags\t\t: fpu hypervisor\n",
        );
    });
    assert_eq!(finding(&guest)["severity"], "note", "{}", finding(&guest));
    says(&guest, &["A guest cannot see"]);
    vec![below, cap, idle, guest]
}

pub fn cores_at_their_clock() -> Vec<Case> {
    vec![
        of_base(3_000_000),
        of_base(2_000_000),
        // Three percent are less than a reading may err by.
        of_base(3_090_000),
        laptop([2.98917, 3.05032], "powersave"),
        capped(4_000_000),
    ]
}

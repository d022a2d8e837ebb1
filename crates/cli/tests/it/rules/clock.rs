//! Clocks, on hosts made for it; the invented core clock is 3 GHz.

use serde_json::json;

use super::crafted::{crafted, cycles};
use super::edited::{Edit, changed, clocksource, policy, server};
use super::live::{Live, first_seat};
use super::{Case, case};
use crate::runs::{findings, series};

const STEADY: &str = "selftest.steady";

fn kept_by(current: &str, available: &str) -> Case {
    changed(&format!("time kept by {current}"), STEADY, |tree| clocksource(tree, current, available))
}

pub fn a_clock_that_the_kernel_fell_back_to() -> Vec<Case> {
    let (lost, chosen) = (kept_by("hpet", "hpet acpi_pm"), kept_by("acpi_pm", "tsc hpet acpi_pm"));
    let cause = |case: &Case| findings(&case.results, "unstable-clocksource")[0]["cause"].to_string();
    assert!(cause(&lost).contains("found the time-stamp counter unstable"), "{}", cause(&lost));
    assert!(cause(&chosen).contains("set to a slow clock"), "{}", cause(&chosen));
    let live =
        Live::of(&format!("--only {STEADY}")).with(|tree| clocksource(tree, "hpet", "hpet acpi_pm")).run();
    vec![lost, chosen, kept_by("jiffies", "jiffies"), case("a real run of such a machine", live)]
}

pub fn clocks_that_are_read_without_a_call() -> Vec<Case> {
    let clocks = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter"];
    clocks.map(|clock| kept_by(clock, clock)).into_iter().collect()
}

/// All CPUs under this governor, with this highest clock; 3 GHz are measured.
fn governed(driver: &str, governor: &str, max_khz: u32) -> Case {
    changed(&format!("{governor} under {driver} up to {max_khz} kHz"), "cpu.clock", |tree| {
        for cpu in 0..16 {
            policy(tree, cpu, driver, governor, max_khz);
        }
    })
}

pub fn governors_that_keep_cores_slow() -> Vec<Case> {
    let literal = governed("acpi-cpufreq", "powersave", 3_000_000);
    let cause = |case: &Case| findings(&case.results, "slow-governor")[0]["cause"].to_string();
    assert!(cause(&literal).contains("at their lowest clock"));
    let late = governed("acpi-cpufreq", "ondemand", 4_000_000);
    assert!(cause(&late).contains("raises the clock late"));
    assert_eq!(series(&late.results, "cpu.clock")["verdict"], "trusted_with_cause");
    let turbo_off = changed("powersave with turbo off", "cpu.clock", |tree| {
        tree.file("/sys/devices/system/cpu/cpufreq/boost", "0");
        (0..16).for_each(|cpu| policy(tree, cpu, "acpi-cpufreq", "powersave", 3_000_000));
    });
    let facts = &findings(&turbo_off.results, "slow-governor")[0]["facts"];
    assert!(
        facts
            .as_array()
            .is_some_and(|facts| facts.iter().any(|fact| fact["label"] == "turbo" && fact["value"] == "off"))
    );
    let one_in_sixteen = changed("userspace on one CPU that is measured", "memory.bandwidth", |tree| {
        policy(tree, 5, "acpi-cpufreq", "userspace", 3_000_000);
    });
    vec![literal, late, governed("intel_pstate", "powersave", 4_000_000), turbo_off, one_in_sixteen]
}

pub fn governors_at_full_speed() -> Vec<Case> {
    vec![
        governed("acpi-cpufreq", "performance", 3_000_000),
        // Below its highest clock, but not by the governor's doing.
        governed("acpi-cpufreq", "performance", 4_000_000),
        governed("acpi-cpufreq", "schedutil", 3_000_000),
        governed("intel_pstate", "powersave", 3_000_000),
        governed("amd-pstate-epp", "powersave", 3_000_000),
        // One that keeps a CPU slow on which nothing was measured.
        changed("powersave elsewhere", "cpu.clock", |tree| {
            let measured = first_seat(&format!("cpu.clock --root {}", tree.root().display()));
            policy(tree, (measured + 1) % 16, "acpi-cpufreq", "powersave", 3_000_000);
        }),
    ]
}

fn turbo(file: &str, value: &str) -> Case {
    changed(&format!("{file} is {value}"), "cpu.clock", |tree| {
        tree.file(&format!("/sys/devices/system/cpu/{file}"), value);
    })
}

pub fn turbo_switched_off() -> Vec<Case> {
    vec![turbo("cpufreq/boost", "0"), turbo("intel_pstate/no_turbo", "1")]
}

pub fn turbo_allowed() -> Vec<Case> {
    vec![turbo("cpufreq/boost", "1"), turbo("intel_pstate/no_turbo", "0")]
}

/// Three benchmarks whose clock falls to this on every second visit, with values that follow it or
/// do not.
fn falling_to(ghz: f64, values_follow: bool) -> Case {
    let mut run = Edit::invented("memory.latency");
    run.repeated(40, 0.001, |visit| if values_follow && visit % 2 == 1 { 3.0 / ghz } else { 1.0 });
    run.samples(|visit, samples| {
        samples["beside"]["clock_ghz"] = json!(if visit % 2 == 1 { ghz } else { 3.0 });
    });
    case(format!("every second visit at {ghz} GHz"), run.diagnosed())
}

/// The last of 40 visits at this clock, and perhaps a change of the governor before it.
fn stepped_to(ghz: f64, governor_changed: bool) -> Case {
    let mut run = Edit::invented("memory.latency");
    run.repeated(40, 0.001, |_| 1.0);
    run.samples(|visit, samples| {
        samples["beside"]["clock_ghz"] = json!(if visit == 39 { ghz } else { 3.0 });
    });
    if governor_changed {
        let text = "the governor of CPU 0 changed from performance to powersave";
        run.add(json!({"event": {"at_ms": 3850.0, "kind": "governor", "text": text}}));
    }
    case(format!("the last visit at {ghz} GHz, governor changed: {governor_changed}"), run.diagnosed())
}

pub fn a_clock_that_moved() -> Vec<Case> {
    let (followed, alone) = (falling_to(2.5, true), falling_to(2.5, false));
    let named =
        |case: &Case| findings(&case.results, "moving-clock")[0]["series"].as_array().map_or(0, Vec::len);
    assert!(named(&followed) > 0, "values that go with the clock carry it as their cause");
    assert_eq!(named(&alone), 0, "values that do not go with the clock are not explained by it");
    let changed = stepped_to(2.0, true);
    let finding = findings(&changed.results, "moving-clock")[0].to_string();
    for words in ["moved by 50 %", "The governor changed", "3.00 to 2.00 GHz at 3.9 s"] {
        assert!(finding.contains(words), "{words:?} is missing: {finding}");
    }
    vec![followed, alone, changed]
}

pub fn a_clock_that_stood_nearly_still() -> Vec<Case> {
    // A single visit that was slow is an outlier, and a governor that changed nothing is no matter.
    vec![falling_to(3.0, false), falling_to(2.9, false), stepped_to(2.0, false), stepped_to(2.95, true)]
}

/// The clean server's clock, by multiplications this many times as fast as by additions.
fn multiplied(by: f64) -> Case {
    let tree = server();
    let mut run = Edit::of(&format!(
        "--profile standard --only cpu.clock --pretend 7 --root {}",
        tree.root().display()
    ));
    run.samples(|_, samples| {
        if samples["metrics"] == json!(["clock_by_multiply"]) {
            let works = samples["work"].as_array_mut().expect("a column");
            works.iter_mut().for_each(|work| *work = json!(work.as_f64().expect("a number") * by));
        }
    });
    case(format!("multiplications at {by} of the clock"), run.diagnosed())
}

/// A hit in L1 that takes `value` cycles.
fn hit(value: f64, spread: f64) -> Case {
    let run = crafted("memory.data-source", json!({"source": "l1"}), cycles(), &[(json!({}), value)], spread);
    case(format!("{value} cycles, spread {spread}"), run.diagnosed())
}

pub fn a_clock_that_contradicts_itself() -> Vec<Case> {
    vec![multiplied(1.05), multiplied(0.94), hit(5.4, 0.003), hit(4.85, 0.001)]
}

pub fn a_clock_that_agrees_with_itself() -> Vec<Case> {
    vec![multiplied(1.0), multiplied(1.01), hit(5.0, 0.003), hit(4.95, 0.003), hit(5.4, 0.2)]
}

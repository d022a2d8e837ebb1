//! Pauses that are given to CPUs of the recorded guest: by its tasks, by its host, in turn, as one.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::{findings, recorded};

const MS: f64 = 1e6;

/// Begin and length of a pause, and the time that the process waited for its CPU, ms.
type Pauses = Vec<[f64; 3]>;

/// Every `every` ms from `from` on a pause in a visit of 2 s.
fn each(from: f64, every: f64, length: f64, waited: f64) -> Pauses {
    let count = ((1999.0 - from - length) / every) as usize;
    (0..=count).map(|at| [from + every * at as f64, length, waited]).collect()
}

/// Windows that each end with a pause.
fn time_line(cpu: usize, pauses: &Pauses) -> Value {
    let mut at = 0.0;
    let mut ns = Vec::new();
    for [begin, length, _] in pauses {
        ns.push((begin + length - at) * MS);
        at = begin + length;
    }
    let work: Vec<f64> = pauses.iter().map(|[_, length, _]| length * 1e3).collect();
    let waited: Vec<f64> = pauses.iter().map(|[_, _, waited]| waited * MS).collect();
    json!({"point": {"cpu": cpu}, "metrics": ["pause"], "work": work, "ns": ns, "beside": {"wait_ns": waited}})
}

fn run_with(machine: &str, cpus: &[Pauses; 2]) -> Edit {
    let mut run = Edit::of(&format!("--quick --only host.pauses --pretend 7 {machine}"));
    run.each(|_, visit| {
        let mut samples = Vec::new();
        for (cpu, pauses) in cpus.iter().enumerate() {
            let withheld: f64 = pauses.iter().filter(|pause| pause[2] == 0.0).map(|pause| pause[1]).sum();
            for (metric, value) in [("watched", 2.0), ("withheld", withheld / 20.0)] {
                samples.push(json!({"point": {"cpu": cpu}, "metrics": [metric], "work": value, "ns": [2e9]}));
            }
            samples.extend((!pauses.is_empty()).then(|| time_line(cpu, pauses)));
        }
        visit["samples"] = json!(samples);
    });
    run
}

fn paused(what: &str, cpus: [Pauses; 2]) -> Case {
    case(what, run_with(&format!("--from {}", recorded()), &cpus).diagnosed())
}

/// What the first screen says of it.
fn words(cpus: [Pauses; 2]) -> String {
    let run = run_with(&format!("--from {}", recorded()), &cpus);
    run.diagnosed();
    run.shown()
}

pub fn cpus_that_a_host_takes() -> Vec<Case> {
    for (words, verdict) in [
        (words([each(3.0, 20.0, 4.0, 0.0), each(9.0, 31.0, 3.0, 0.0)]), "THE HOST TAKES 20 % OF CPU 0"),
        (words([each(1.0, 20.0, 10.0, 0.0), each(11.0, 20.0, 10.0, 0.0)]), "CPUS SHARE ONE OF THE HOST'S"),
        (words([each(1.0, 100.0, 20.0, 0.0), each(1.01, 100.0, 20.0, 0.0)]), "STOPPED AS A GUEST"),
        (words([each(1.0, 10.0, 2.0, 1.99), Vec::new()]), "WHOLE CPUS"),
    ] {
        assert!(words.contains(verdict), "{verdict}: {words}");
    }
    let cases = vec![
        paused("other guests, each CPU by itself", [each(3.0, 20.0, 4.0, 0.0), each(9.0, 31.0, 3.0, 0.0)]),
        paused("two CPUs on one", [each(1.0, 20.0, 10.0, 0.0), each(11.0, 20.0, 10.0, 0.0)]),
        paused("stopped as a guest", [each(1.0, 100.0, 20.0, 0.0), each(1.01, 100.0, 20.0, 0.0)]),
    ];
    let text = |at: usize| findings(&cases[at].results, "preempted-cpus")[0].to_string();
    assert!(
        text(0).contains("The host withholds 20 % of the time from CPU 0, and from 1 other CPU"),
        "{}",
        text(0)
    );
    assert!(text(1).contains("CPUs 0 and 1 take turns on one CPU of the host"), "{}", text(1));
    assert!(text(2).contains("CPUs 0 and 1 stop together"), "{}", text(2));
    let gets = &cases[2].results["guest_share"];
    assert!(gets["stops"]["count"].as_u64() >= Some(20), "{gets}");
    assert_eq!(gets["stops"]["count"], gets["cpus"][0]["pauses"], "{gets}");
    assert_eq!(gets["cpus"][0]["answer"], "withheld", "{gets}");
    cases
}

pub fn cpus_that_a_host_leaves() -> Vec<Case> {
    let task = paused("a task that takes a fifth", [each(1.0, 10.0, 2.0, 1.99), Vec::new()]);
    let by_tasks = task.results["guest_share"]["cpus"][0]["by_tasks"].as_f64().expect("a share");
    assert!((by_tasks - 0.2).abs() < 0.01, "{by_tasks}");
    // Firmware or interrupts: metal has no host.
    let tree = server();
    let metal =
        run_with(&format!("--root {}", tree.root().display()), &[each(1.0, 20.0, 4.0, 0.0), Vec::new()]);
    let results = metal.diagnosed();
    let silent = results["rules_not_applicable"].as_array().expect("rules");
    assert!(silent.iter().any(|rule| rule == "preempted-cpus"), "{silent:?}");
    assert_ne!(results["guest_share"]["guest"], json!(true));
    vec![
        task,
        paused("no pause", [Vec::new(), Vec::new()]),
        paused("ticks", [each(1.0, 4.0, 0.03, 0.0), each(2.0, 4.0, 0.03, 0.0)]),
        paused("a host's housekeeping", [each(500.0, 900.0, 2.0, 0.0), Vec::new()]),
    ]
}

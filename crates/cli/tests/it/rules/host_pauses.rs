//! Pauses that are given to CPUs of the recorded guest: by its tasks, by its host, alternately, at
//! once.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::structure::real_root;
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
    paused_in(&format!("--quick --only host.pauses --pretend 7 {machine}"), cpus)
}

/// The run of these words, whose visits of `host.pauses` are changed.
fn paused_in(words: &str, cpus: &[Pauses; 2]) -> Edit {
    let mut run = Edit::of(words);
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let case = visit["case"].as_u64().expect("a case") as usize;
        if plan[case]["case"]["bench"] != "host.pauses" {
            return;
        }
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

/// What the first screen shows of it.
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
    assert!(text(1).contains("CPUs 0 and 1 alternate on one CPU of the host"), "{}", text(1));
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

/// Real hosts on bare metal: no row is about a hypervisor's host, and firmware's choices have rows.
#[test]
fn metal_has_rows_of_its_own_and_none_of_a_host() {
    for (name, nodes, caches) in [
        ("x86_64-epyc_7451", "4 per socket", "8 last-level caches per socket: consistent with NPS4"),
        ("memorysidecaches", "2 per socket", "1 last-level cache per socket: consistent with SNC2"),
        ("32intel64-2p8co2t+8ve", "off", "one node and 1 last-level cache per socket"),
    ] {
        let Some((_kept, root)) = real_root(name) else { return };
        let machine = format!("--root {}", root.display());
        let run = run_with(&machine, &[each(1.0, 20.0, 4.0, 0.0), Vec::new()]);
        let results = run.diagnosed();
        let gets = &results["guest_share"];
        assert_eq!(gets["guest"], json!(false), "{name}: {gets}");
        let rows = gets["rows"].as_array().expect("rows");
        let row = |what: &str| {
            rows.iter().find(|row| row["what"] == what).unwrap_or_else(|| panic!("{what}: {gets}"))
        };
        assert_eq!(row("interleave")["word"], "off", "{name}");
        assert_eq!(row("sub-NUMA")["word"], nodes, "{name}");
        assert!(row("sub-NUMA")["reading"].as_str().expect("a text").ends_with(caches), "{name}: {gets}");
        assert_eq!(row("prefetchers")["word"], "not measured", "{name}: {gets}");
        assert_eq!(row("CPUs")["word"], "interrupted", "{name}");
        assert!(rows.iter().all(|row| row["what"] != "node"), "{name}: {gets}");
        let text = gets["rows"].to_string();
        for word in ["exit", "steal", "the host", "preempted", "APIC"] {
            assert!(!text.contains(word), "{name}: {word}: {text}");
        }
        let screen = run.shown();
        assert!(screen.contains("BARE METAL") && screen.contains("This is bare metal"), "{name}: {screen}");
    }
}

/// Metal whose firmware interleaves its sockets, and a guest, which has none of these rows.
#[test]
fn interleaving_is_seen_by_one_node_and_not_in_a_guest() {
    let tree = crate::golden::three_one();
    tree.file("/sys/devices/system/node/node0/cpumap", "0000ffff");
    tree.file("/sys/devices/system/node/node1/cpumap", "00000000");
    for (machine, has_rows) in
        [(format!("--root {}", tree.root().display()), true), (format!("--from {}", recorded()), false)]
    {
        let words = format!("--only host.pauses,memory.regions --pretend 7 {machine}");
        let results = paused_in(&words, &[Vec::new(), Vec::new()]).diagnosed();
        let rows = results["guest_share"]["rows"].as_array().expect("rows").clone();
        let found = |what: &str| rows.iter().find(|row| row["what"] == what);
        let prefetched = found("prefetchers").map(|row| row["word"].clone());
        assert_eq!(prefetched, has_rows.then(|| json!("across pages")), "{rows:?}");
        let row = found("interleave");
        assert_eq!(row.is_some(), has_rows, "{rows:?}");
        assert!(row.is_none_or(|row| row["word"] == "on" && row["grade"] == "poor"), "{rows:?}");
        assert_eq!(rows.iter().any(|row| row["what"] == "node"), !has_rows, "{rows:?}");
    }
}

//! Measured topology beside reported topology: distances and slowdowns given to hosts made for it.

use serde_json::{Value, json};

use super::crafted::{crafted_in, metric};
use super::edited::{Edit, server};
use super::structure::real;
use super::{Case, case};
use crate::runs::findings;
use crate::synthetic::{Shape, Tree, mask};

/// A guest of this shape with `cpus` CPUs; what its processor is called is known.
fn guest(shape: Shape, cpus: u32) -> Tree {
    let tree = Tree::new();
    tree.build(shape, 1);
    tree.file("/sys/devices/system/cpu/online", &format!("0-{}", cpus - 1));
    let processor = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel Xeon Processor (Icelake)\n\
             flags\t\t: fpu avx avx2 hypervisor\n"
        )
    };
    tree.file("/proc/cpuinfo", &(0..cpus).map(processor).collect::<Vec<_>>().join("\n"));
    tree
}

/// Eight cores in one package, one cache, no threads: siblings are numbered first threads first
/// where there are some.
fn plain(threads: u32) -> Tree {
    let cores = 8 / threads;
    guest(Shape { packages: 1, cores, cores_per_l3: cores, threads, first: 0, step: 1, lists: true }, 8)
}

/// The same with its last-level cache hidden.
fn without_l3() -> Tree {
    let tree = plain(1);
    for cpu in 0..8 {
        for file in ["level", "type", "size", "shared_cpu_map", "shared_cpu_list"] {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/{file}");
            std::fs::remove_file(tree.root().join(path)).expect("removed");
        }
    }
    tree
}

/// Every ordered pair of eight CPUs with a value.
fn pairs(value: impl Fn(u32, u32) -> f64) -> Vec<(Value, f64)> {
    let all = (0..8u32).flat_map(|from| (0..8).filter(move |to| *to != from).map(move |to| (from, to)));
    all.map(|(from, to)| (json!({"from": from, "to": to}), value(from, to))).collect()
}

fn steady(tree: &Tree) -> Edit {
    Edit::of(&format!("--quick --only selftest.steady --pretend 7 --root {}", tree.root().display()))
}

/// Transfers of a line that take `ns` nanoseconds, by visit and pair.
fn transfers(what: &str, tree: &Tree, ns: impl Fn(usize, u32, u32) -> f64) -> Case {
    let latency = metric("latency", "ns", json!({"time-per-work": {"scale": 1.0}}));
    let points = |visit: usize| pairs(|from, to| ns(visit, from, to));
    case(what, crafted_in(steady(tree), "memory.core-to-core", json!({}), latency, points, 0.01).diagnosed())
}

/// Pairs of CPUs that slow each other by the factor `times`.
fn slowdowns(what: &str, tree: &Tree, times: impl Fn(u32, u32) -> f64) -> Case {
    let slowdown = metric("slowdown", "", json!({"time-per-work": {"scale": 1.0}}));
    let points = |_| pairs(&times);
    case(what, crafted_in(steady(tree), "cpu.pair-slowdown", json!({}), slowdown, points, 0.01).diagnosed())
}

/// Loads from a block after no CPU, the other CPU and the CPU itself has read as much, of CPUs 0
/// and 1.
fn contention(what: &str, tree: &Tree, ns: [f64; 3]) -> Case {
    let latency = metric("latency", "ns", json!({"time-per-work": {"scale": 1.0}}));
    let after = ["nothing", "other", "itself"].into_iter().zip(ns);
    let points: Vec<(Value, f64)> =
        after.map(|(after, ns)| (json!({"bytes": 20 << 20, "after": after}), ns)).collect();
    let points = |_| points.clone();
    let mut run = crafted_in(steady(tree), "memory.llc-sharing", json!({}), latency, points, 0.01);
    let seat = |role: &str, cpu: &str| json!({"role": role, "cpus": cpu});
    run.header()["plan"][0]["case"]["placement"]["seats"] = json!([seat("task", "0"), seat("other", "1")]);
    case(what, run.diagnosed())
}

fn halves(one: u32, other: u32) -> bool {
    one / 4 == other / 4
}

fn siblings(one: u32, other: u32) -> bool {
    one % 4 == other % 4
}

pub fn caches_that_are_not_told() -> Vec<Case> {
    // A guest of a Skylake, which lists caches and no L3.
    let mut cases = real(&["2pa-pcidomain32bits"]);
    cases.push(transfers("45 ns without an L3", &without_l3(), |_, _, _| 45.0));
    let found = findings(&cases[cases.len() - 1].results, "hidden-llc");
    assert!(
        found[0]["headline"].as_str().is_some_and(|text| text.contains("lines pass between cores in")),
        "{found:?}"
    );
    cases
}

pub fn caches_that_are_told() -> Vec<Case> {
    // No guest, and no L3 by design; a guest that reports one; a guest of old.
    let mut cases =
        real(&["64intel64-fakeKNL-SNC4-hybrid", "8em64t-2s4c-asymcaches", "32intel64-2p8co2t+8ve"]);
    cases.push(transfers("45 ns and an L3", &plain(1), |_, _, _| 45.0));
    cases.push(contention("driven out of an L3 that is told", &plain(1), [30.0, 90.0, 95.0]));
    cases
}

pub fn caches_claimed_for_too_many() -> Vec<Case> {
    let parted =
        transfers(
            "two halves of one claimed cache",
            &plain(1),
            |_, from, to| {
                if halves(from, to) { 45.0 } else { 130.0 }
            },
        );
    let found = findings(&parted.results, "llc-not-shared");
    assert!(found[0]["facts"].to_string().contains("0-3 | 4-7"), "{found:?}");
    let over = server();
    let all = mask(&(0..16).collect::<Vec<u32>>(), 1);
    for cpu in 0..16 {
        over.cpu(cpu, "cache/index3/shared_cpu_map", &all);
        over.cpu(cpu, "cache/index3/shared_cpu_list", "0-15");
    }
    let alone = contention("no trace of the other", &plain(1), [30.0, 30.5, 95.0]);
    vec![parted, alone, case("one L3 over two packages", steady(&over).diagnosed())]
}

pub fn caches_that_are_shared() -> Vec<Case> {
    let mut cases =
        real(&["memorysidecaches", "x86_64-epyc_7451", "linux-amd64-accel", "4-socket-server-nosnc"]);
    cases.push(transfers("all alike", &plain(1), |_, _, _| 45.0));
    cases.push(transfers(
        "threads of cores",
        &plain(2),
        |_, from, to| if siblings(from, to) { 8.0 } else { 45.0 },
    ));
    cases.push(contention("driven out", &plain(1), [30.0, 90.0, 95.0]));
    cases.push(contention("in between", &plain(1), [30.0, 50.0, 95.0]));
    cases.push(contention("never in the cache", &plain(1), [95.0, 95.0, 96.0]));
    // A mesh whose ends are farther apart is one cache.
    cases.push(transfers("a mesh", &plain(1), |_, from, to| 45.0 + 5.0 * f64::from(from.abs_diff(to))));
    cases
}

pub fn threads_that_look_like_cores() -> Vec<Case> {
    let hidden = slowdowns("four cores of two threads, told as eight", &plain(1), |from, to| {
        if siblings(from, to) { 1.8 } else { 1.02 }
    });
    let found = findings(&hidden.results, "hidden-smt");
    assert!(found[0]["headline"].as_str().is_some_and(|text| text.contains("4 pairs of CPUs")), "{found:?}");
    assert!(found[0]["facts"].to_string().contains("0 and 4, 1 and 5"), "{found:?}");
    vec![hidden]
}

pub fn threads_that_are_told() -> Vec<Case> {
    vec![
        slowdowns(
            "four cores of two threads",
            &plain(2),
            |from, to| if siblings(from, to) { 1.8 } else { 1.02 },
        ),
        slowdowns("eight cores", &plain(1), |_, _| 1.03),
        slowdowns("a clock that falls", &plain(1), |_, _| 1.12),
    ]
}

pub fn siblings_that_are_none() -> Vec<Case> {
    let shifted = slowdowns("other pairs", &plain(2), |from, to| if from / 2 == to / 2 { 1.8 } else { 1.02 });
    let found = findings(&shifted.results, "wrong-siblings");
    assert_eq!(found[0]["severity"], "warning");
    assert!(found[0]["facts"].to_string().contains("0 and 1, 2 and 3"), "{found:?}");
    let none = slowdowns("threads that are cores", &plain(2), |_, _| 1.02);
    assert_eq!(findings(&none.results, "wrong-siblings")[0]["severity"], "note");
    let mut cases = real(&["28em64t-2s2n7c-buggycoresiblings"]);
    cases.extend([shifted, none]);
    cases
}

pub fn siblings_as_told() -> Vec<Case> {
    let mut cases = real(&["32intel64-2p8co2t+8ve", "20em64t-hybrid-1p6c2t+2ca4co1t"]);
    cases.push(slowdowns("as told", &plain(2), |from, to| if siblings(from, to) { 1.8 } else { 1.02 }));
    // A quota slows every pair: that is not the cores.
    cases.push(slowdowns("a quota", &plain(2), |_, _| 1.95));
    cases
}

pub fn cpus_that_change_places() -> Vec<Case> {
    let floating = transfers("two hosts' halves, then others", &plain(1), |visit, from, to| {
        let near = if visit < 5 { halves(from, to) } else { from % 2 == to % 2 };
        if near { 45.0 } else { 130.0 }
    });
    let found = findings(&floating.results, "floating-vcpus");
    assert!(found[0]["facts"].to_string().contains("0,2,4,6 | 1,3,5,7"), "{found:?}");
    vec![floating]
}

pub fn cpus_that_stay() -> Vec<Case> {
    vec![
        transfers("two halves", &plain(1), |_, from, to| if halves(from, to) { 45.0 } else { 130.0 }),
        // Other work takes CPU 3 in one visit: it is far from all, and near to no new one.
        transfers("a stolen CPU", &plain(1), |visit, from, to| {
            let stolen = if visit == 4 && (from == 3 || to == 3) { 4.0 } else { 1.0 };
            stolen * if halves(from, to) { 45.0 } else { 130.0 }
        }),
    ]
}

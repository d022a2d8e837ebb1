//! Guests of the machine lab (`lab/README.md`): Assay describes hosts that are not at hand as they
//! are, and measures on the CPUs that were meant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use model::vocabulary::{ParamId, memory::param as ids};
use model::{CpuSet, Planned, Visit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{processes_marked, skipped, unique};
use crate::runs;

mod arm;
mod dimms;
mod disk;
mod host;
mod kernels;
mod memmap;
mod network;
mod pauses;
mod placement;
mod profile;
mod quota;
mod rate;
mod settings;
mod shared;
mod sweep;

pub use kernels::static_build;

/// No boot takes longer than this, however busy the host: emulation is slow.
const LIMIT_S: u32 = 1200;
/// What `lab/boot` ends with where there is no QEMU, kernel or busybox.
const NOTHING_TO_BOOT: i32 = 77;
/// And with this where the machine ended before the command did.
const MACHINE_ENDED: i32 = 125;

/// `every_case_once BENCHMARKS` for scripts in guests: a run that ends when each case has been
/// visited.
const EVERY_CASE_ONCE: &str = include_str!("lab/every-case-once.sh");

/// The two that measure nodes against each other, by the beginning of their names.
const BETWEEN_NODES: [(&str, &str, &str); 2] =
    [("memory.node-latency", "one-cpu", "latency"), ("memory.node-bandwidth", "per-node", "bandwidth")];

/// Runs a shell script in a guest, in an empty folder, and brings that folder back. `None`, said
/// aloud, where nothing can be booted.
fn in_guest(test: &str, machine: &str, script: &str) -> Option<TempDir> {
    in_guest_told(test, "", machine, script)
}

/// The same, with words on the kernel's command line.
fn in_guest_told(test: &str, kernel_words: &str, machine: &str, script: &str) -> Option<TempDir> {
    in_guest_with(test, &["--cmdline", kernel_words], machine, &[], script)
}

/// The same, with options of `lab/boot` and of QEMU.
fn in_guest_with(
    test: &str,
    options: &[&str],
    machine: &str,
    qemu: &[&str],
    script: &str,
) -> Option<TempDir> {
    match brought(options, machine, qemu, script) {
        Ok(archive) => Some(unpacked(&archive, None)),
        Err(why) => {
            skipped(test, why);
            None
        }
    }
}

/// The folder of a guest in which a script ran, as an archive; or why nothing can be booted.
fn brought(options: &[&str], machine: &str, qemu: &[&str], script: &str) -> Result<Vec<u8>, String> {
    // A guest's serial port would take longer for the pages than all its runs.
    let script = format!(
        "set -e\n{EVERY_CASE_ONCE}\n{script}
        find . -name '*report.html' -o -name '*report.json' | xargs -r rm
        tar -c -f - ."
    );
    let output = boot(options, machine, qemu, &script);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOTHING_TO_BOOT) {
        return Err(said.trim().to_string());
    }
    assert!(output.status.success(), "{machine}: {}: {said}", output.status);
    Ok(output.stdout)
}

/// What such an archive holds, or one folder of it.
fn unpacked(archive: &[u8], part: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("brought.tar");
    fs::write(&file, archive).expect("room for what came back");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&file).arg("-C").arg(folder.path());
    if let Some(part) = part {
        tar.arg("--strip-components=2").arg(format!("./{part}"));
    }
    assert!(tar.status().expect("tar runs").success(), "what came back is no archive");
    folder
}

/// Of options that are given twice the last one holds.
fn boot(options: &[&str], machine: &str, qemu: &[&str], script: &str) -> Output {
    booting(options, machine, qemu, script).output().expect("lab/boot runs")
}

fn booting(options: &[&str], machine: &str, qemu: &[&str], script: &str) -> Command {
    let mut command = Command::new(testkit::root().join("lab/boot"));
    command
        .args(["--limit", &LIMIT_S.to_string()])
        .arg("--assay")
        .arg(testkit::program())
        .args(options)
        .arg(machine)
        .args(qemu)
        .args(["--", "sh", "-c", script]);
    command
}

fn read_json(folder: &TempDir, file: &str) -> Value {
    let text = fs::read(folder.path().join(file)).expect("the guest wrote it");
    serde_json::from_slice(&text).expect("JSON")
}

/// CPUs and distances of each node.
fn nodes(machine: &Value) -> Value {
    let nodes = machine["nodes"].as_array().expect("a list");
    nodes.iter().map(|node| json!([node["cpus"], node["distances"]])).collect()
}

/// CPUs of each core.
fn cores(machine: &Value) -> Value {
    let cores = machine["cpus"]["cores"].as_array().expect("a list");
    cores.iter().map(|core| core["cpus"].clone()).collect()
}

/// An emulator may abort by an assertion of its own before the command runs.
#[test]
fn a_guest_whose_emulator_aborts_is_booted_again() {
    let mark = unique();
    let mut command = booting(&[], "uma", &[], "echo measured");
    command.env("ASSAY_TEST", &mark).stdout(Stdio::piped()).stderr(Stdio::piped());
    let lab = command.spawn().expect("lab/boot runs");
    let ended = thread::spawn(|| lab.wait_with_output().expect("lab/boot runs"));
    let emulator = || {
        let mut all = processes_marked(&mark).into_iter();
        all.find(|(_, words)| words.split(' ').next().is_some_and(|program| program.contains("qemu-system")))
    };
    let mut first = None;
    while first.is_none() && !ended.is_finished() {
        first = emulator();
        thread::sleep(Duration::from_millis(5));
    }
    let pid = first.and_then(|(pid, _)| Pid::from_raw(pid as i32));
    _ = pid.map(|pid| kill_process(pid, Signal::ABORT));
    let output = ended.join().expect("a thread that waits");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOTHING_TO_BOOT) {
        return skipped("a_guest_whose_emulator_aborts_is_booted_again", said.trim());
    }
    assert!(output.status.success() && output.stdout == b"measured\n", "{}: {said}", output.status);
    assert!(said.contains("the emulator aborted at attempt 1"), "{said}");
}

#[test]
#[ignore = "a minute of one guest: make lab"]
fn siblings_that_are_switched_off_and_come_back() {
    let test = "siblings_that_are_switched_off_and_come_back";
    let Some(folder) = in_guest(test, "smt", include_str!("lab/smt-table.sh")) else { return };
    let machine = read_json(&folder, "machine.json");
    assert_eq!(cores(&machine), json!(["0-1", "2-3"]));
    assert_eq!(machine["summary"]["threads_per_core"], json!([2]));
    assert_eq!(machine["summary"]["l3"], json!([{"cpus": "0-3", "size_bytes": 16 << 20}]));
    assert_eq!(nodes(&machine), json!([["0-3", [10]]]));
    let text = |file: &str| fs::read_to_string(folder.path().join(file)).expect("the guest wrote it");
    // Killed while SMT was off: so it stayed, and was put back.
    assert_eq!((text("killed").trim(), text("online-killed").trim()), ("off", "0,2"));
    assert_eq!(text("restored").trim(), "smt is on again (was off)");
    assert_eq!((text("after-restore").trim(), text("online-after-restore").trim()), ("on", "0-3"));
    // A run that ended by itself, or by us.
    assert_eq!((text("after").trim(), text("online-after").trim()), ("on", "0-3"));
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    let of = |visit: &Visit| run.header.plan[visit.case as usize].case.clone();
    let plan = |key: &str| {
        let found = run.header.plan.iter().find(|planned| planned.case.key() == key);
        found.unwrap_or_else(|| panic!("no {key} in the plan")).clone()
    };
    for beside in ["same-work", "spinner"] {
        let planned = plan(&format!("syscall.getpid@one-cpu+beside-{beside}"));
        assert_eq!((planned.unmet, planned.case.placement.cpus()), (None, CpuSet::one(2)));
        assert_eq!(planned.case.placement.neighbours, [CpuSet::one(3)], "the sibling");
    }
    let gone = plan("ipc.pipe-pingpong@smt-sibling!smt=off").unmet;
    assert!(gone.as_ref().is_some_and(|why| why.contains("goes offline with SMT")), "{gone:?}");
    let (mut off, mut on) = (0, 0);
    for visit in run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0) {
        let case = of(visit);
        assert_eq!(visit.reason, None, "{}", case.key());
        let switched = case.knobs.get("smt").is_some_and(|value| value == "off");
        assert_eq!(visit.conditions.cpus, if switched { 2 } else { 4 }, "CPUs online in {}", case.key());
        if switched { off += 1 } else { on += 1 }
    }
    assert!(off > 0 && on > 0, "{off} visits with SMT off, {on} with it on");
    assert!(run.events.iter().any(|event| event.kind == "knob" && event.text == "smt from on to off"));
}

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn a_study_of_siblings_without_a_pmu() {
    let test = "a_study_of_siblings_without_a_pmu";
    let Some(folder) = in_guest(test, "smt", include_str!("lab/smt-load.sh")) else { return };
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    let seats = |key: &str| {
        let found = run.header.plan.iter().find(|planned| planned.case.key() == key);
        let found = found.unwrap_or_else(|| panic!("no {key} in the plan"));
        (found.unmet.clone(), found.case.placement.cpus().to_string())
    };
    assert_eq!(seats("smt.load@one-cpu?kind=loop&levels=7"), (None, "2".to_string()));
    assert_eq!(seats("smt.load@smt-sibling?kind=loop&levels=7"), (None, "2-3".to_string()));
    assert_eq!(seats("smt.load@same-llc?kind=loop&levels=7"), (None, "0,2".to_string()));
    assert_eq!(
        seats("smt.load@one-per-core?kind=loop&levels=7").0.as_deref(),
        Some("the same CPUs as a pair above")
    );
    assert_eq!(seats("smt.load@all?kind=loop&levels=7"), (None, "0-3".to_string()));
    let worked: Vec<&Visit> = run.visits.iter().filter(|visit| visit.conditions.wall_ms > 0.0).collect();
    assert!(worked.iter().any(|visit| visit.case == 0) && worked.len() >= 4, "{} visits", worked.len());
    for visit in worked {
        assert_eq!(visit.reason, None, "{}", run.header.plan[visit.case as usize].case.key());
        let of = |metric: &str| visit.samples.iter().filter(|one| one.metrics == [metric]).count();
        assert_eq!((of("performance"), of("cpu"), of("per_busy")), (7, 7, 7));
        // This emulated CPU counts nothing: no number is called IPC.
        assert_eq!(of("ipc"), 0);
    }
    let why = &run.header.plan[0].case.inputs["no_ipc"];
    assert!(why.contains("PMU"), "{why}");
    let said = fs::read_to_string(folder.path().join("report.md")).expect("the guest wrote it");
    assert!(said.contains("No IPC (") && said.contains("siblings"), "{said}");
}

#[test]
#[ignore = "a boot of its own: make lab"]
fn smt_that_is_off_from_the_boot_is_said() {
    let test = "smt_that_is_off_from_the_boot_is_said";
    let script = "assay smt table --dry-run --quick --only syscall.getpid --json >plan.json";
    let Some(folder) = in_guest_told(test, "nosmt", "smt", script) else { return };
    let plan = planned(&read_json(&folder, "plan.json"));
    let of = |end: &str| plan.iter().find(|planned| planned.case.key().ends_with(end)).expect("a variant");
    let why = &of("!smt=off").unmet;
    assert!(why.as_ref().is_some_and(|why| why.contains("off already")), "{why:?}");
    assert_eq!(of("+beside-spinner").case.placement.neighbours, [CpuSet::one(0)], "the neighbour core");
}

const ONE_NODE: &str =
    "assay run --dry-run --quick --only memory --json >plan.json; every_case_once selftest.counters";

#[test]
fn one_node_has_nothing_to_compare() {
    let Some(folder) = shared::SHARED_L3.part("one_node_has_nothing_to_compare", "node") else { return };
    // Nor has an emulated x86 CPU any counters of its own.
    arm::refused(&folder, "no PMU");
    let plan = planned(&read_json(&folder, "plan.json"));
    for (bench, ..) in BETWEEN_NODES {
        let cases: Vec<&Planned> = plan.iter().filter(|planned| planned.case.bench == bench).collect();
        assert_eq!(cases.len(), 1, "{cases:?}");
        assert!(cases[0].unmet.as_ref().is_some_and(|why| why.contains("node")), "{cases:?}");
    }
    let remote: Vec<&Planned> = plan.iter().filter(|planned| is_remote_memory(planned)).collect();
    let one_node =
        |planned: &&Planned| planned.unmet.as_ref().is_some_and(|why| why.contains("second NUMA node"));
    assert!(!remote.is_empty() && remote.iter().all(one_node), "{remote:?}");
}

#[test]
#[ignore = "two minutes of one guest: make lab"]
fn two_nodes() {
    let Some(folder) = shared::TWO_NODES.part("two_nodes", "nodes") else { return };
    let machine = read_json(&folder, "machine.json");
    assert_eq!(nodes(&machine), json!([["0-1", [10, 21]], ["2-3", [21, 10]]]));
    assert_eq!(machine["summary"]["packages"], 2);
    assert_eq!(cores(&machine), json!(["0", "1", "2", "3"]));
    let run = measured(&folder);
    check_nodes(&run, &["0-1", "2-3"], 2);
    let mut remote = run.iter().filter(|(planned, _)| is_remote_memory(planned));
    let (planned, visit) = remote.next().expect("the other package's memory");
    assert_eq!(planned.case.placement.name, "other-package");
    assert_eq!((&visit.reason, visit.process.remote_share), (&None, Some(0.0)));
    assert!(!visit.samples.is_empty());
}

#[test]
#[ignore = "a minute of one guest: make lab"]
fn memory_without_cpus() {
    let script = format!("{} memory.node", shared::DESCRIBED);
    let Some(folder) = in_guest("memory_without_cpus", "memory-only", &script) else { return };
    let machine = read_json(&folder, "machine.json");
    let expected = json!([["0-1", [10, 21, 17]], ["2-3", [21, 10, 28]], ["", [17, 28, 10]]]);
    assert_eq!(nodes(&machine), expected);
    for node in machine["nodes"].as_array().expect("a list") {
        let bytes = node["total_bytes"].as_u64().expect("a size");
        assert!((400 << 20..=512 << 20).contains(&bytes), "node {} has {bytes} bytes", node["id"]);
    }
    check_nodes(&measured(&folder), &["0-1", "2-3"], 3);
}

#[test]
fn a_recorded_machine_plans_its_nodes() {
    let recording = testkit::root().join("tests/machines/memory-only.json");
    let output = crate::assay()
        .args(["run", "--dry-run", "--quick", "--only", "memory.node", "--json", "--pretend", "1", "--from"])
        .arg(recording)
        .output()
        .expect("assay runs");
    let plan = planned(&serde_json::from_slice(&output.stdout).expect("JSON"));
    for (bench, placement, _) in BETWEEN_NODES {
        check_plan(plan.iter().filter(|planned| planned.case.bench == bench), placement, &["0-1", "2-3"], 3);
    }
}

fn planned(dry_run: &Value) -> Vec<Planned> {
    serde_json::from_value(dry_run["plan"].clone()).expect("a plan")
}

/// Whether a case measures what a load from another node's memory costs.
fn is_remote_memory(planned: &Planned) -> bool {
    planned.case.params.get(ids::SOURCE).and_then(|source| source.text()) == Some("dram-remote")
}

/// The visits of a guest's run with their cases; every case was visited.
fn measured(folder: &TempDir) -> Vec<(Planned, Visit)> {
    let run = runs::read(&runs::run_file(&folder.path().join("out")));
    check_bound_memory(folder, &run.header.plan);
    let visited: BTreeSet<u32> = run.visits.iter().map(|visit| visit.case).collect();
    for (index, planned) in run.header.plan.iter().enumerate() {
        let was = visited.contains(&(index as u32));
        assert_eq!(was, planned.unmet.is_none(), "{}: {:?}", planned.case.key(), planned.unmet);
    }
    run.visits.into_iter().map(|visit| (run.header.plan[visit.case as usize].clone(), visit)).collect()
}

/// What the kernel reported while the run's memory was bound: all nodes that the plan names were,
/// and no page lay elsewhere.
fn check_bound_memory(folder: &TempDir, plan: &[Planned]) {
    let text = fs::read_to_string(folder.path().join("numa_maps")).expect("the guest wrote it");
    let mut seen = CpuSet::default();
    for line in text.lines() {
        let mut bound = CpuSet::default();
        for word in line.split_whitespace() {
            if let Some(nodes) = word.strip_prefix("bind:") {
                bound = CpuSet::parse_list(nodes).expect("nodes");
            }
            let pages = word.strip_prefix('N').and_then(|word| word.split_once('='));
            if let Some((Ok(node), _)) = pages.map(|(node, pages)| (node.parse(), pages)) {
                assert!(bound.contains(node), "{line}");
                seen.insert(node);
            }
        }
    }
    let meant = plan.iter().flat_map(|planned| &planned.case.placement.seats);
    assert_eq!(seen, meant.flat_map(|seat| seat.mem_nodes.iter()).collect());
}

/// Cases of one benchmark are the whole matrix: for each node with CPUs (these), each of `memories`
/// memories.
fn check_plan<'a>(
    plan: impl Iterator<Item = &'a Planned>,
    placement: &str,
    node_cpus: &[&str],
    memories: usize,
) {
    let mut pairs = BTreeSet::new();
    for Planned { case, unmet, .. } in plan {
        let number = |name: ParamId| case.params[name].int().expect("a number") as usize;
        let (node, memory) = (number(ids::NODE), number(ids::MEMORY));
        assert_eq!((case.placement.name.as_ref(), unmet), (placement, &None));
        let cpus = CpuSet::parse_list(node_cpus[node]).expect("a list");
        assert!(case.placement.cpus().is_subset(&cpus) && !case.placement.cpus().is_empty(), "{case:?}");
        for seat in &case.placement.seats {
            assert_eq!(seat.mem_nodes, CpuSet::one(memory as u32), "{case:?}");
        }
        assert!(pairs.insert((node, memory)), "twice {}", case.key());
    }
    let all = (0..node_cpus.len()).flat_map(|node| (0..memories).map(move |memory| (node, memory)));
    assert_eq!(pairs, all.collect(), "{placement}");
}

/// Every pair of nodes was measured with its memory where it was meant to be.
fn check_nodes(run: &[(Planned, Visit)], node_cpus: &[&str], memories: usize) {
    for (bench, placement, metric) in BETWEEN_NODES {
        let visits: BTreeMap<u32, &(Planned, Visit)> =
            run.iter().filter(|(planned, _)| planned.case.bench == bench).map(|of| (of.1.case, of)).collect();
        check_plan(visits.values().map(|(planned, _)| planned), placement, node_cpus, memories);
        for (planned, visit) in visits.values() {
            let key = planned.case.key();
            assert_eq!((&visit.reason, visit.process.remote_share), (&None, Some(0.0)), "{key}");
            assert!(
                visit.samples.iter().any(|samples| samples.metrics.contains(&metric.to_string())),
                "{key}"
            );
        }
    }
}

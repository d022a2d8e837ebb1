//! Little memory, one CPU, no privileges: less is measured, and what is not says why.

use std::fs;
use std::path::Path;
use std::process::Command;

use model::CpuSet;
use serde_json::Value;

use crate::host::{Group, allowed_cpus, is_root, skipped, works, wrapped};
use crate::runs::{
    Ended, end, every_case_once, folder_of_nobody, is_tidy, page_is_whole, read, results, run_file, run_into,
    series, unprivileged,
};

fn plan(ended: &Ended) -> Vec<Value> {
    let dry: Value = serde_json::from_str(&ended.expect(0).sane().out).expect("JSON");
    dry["plan"].as_array().expect("a list").clone()
}

fn most_memory(plan: &[Value]) -> u64 {
    let runnable = plan.iter().filter(|case| case["unmet"].is_null());
    runnable.filter_map(|case| case["memory_bytes"].as_u64()).max().unwrap_or(0)
}

/// Nothing in a group was killed, and it never reached its limit, page cache included.
fn stayed_below(group: &Group, limit: u64) {
    let killed = group.get("memory.oom_control");
    assert!(!killed.contains("oom_kill ") || killed.contains("oom_kill 0"), "{killed}");
    let peak: u64 = group.get("memory.max_usage_in_bytes").parse().expect("a number");
    assert!(peak < limit, "{peak} of {limit} bytes");
}

#[test]
fn a_memory_limit_of_64_mb_is_kept() {
    const LIMIT: u64 = 64 << 20;
    let test = "a_memory_limit_of_64_mb_is_kept";
    let group = match Group::new("memory", &[("memory.limit_in_bytes", &LIMIT)]) {
        Ok(group) => group,
        Err(why) => return skipped(test, why),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dry = run_into(dir.path(), "--quick --dry-run --json");
    let free = plan(&end(&mut run_into(dir.path(), "--quick --dry-run --json")));
    let bound = plan(&end(&mut group.inside(&dry)));
    let (free, bound) = (most_memory(&free), most_memory(&bound));
    assert!(bound > 1 << 20 && bound < LIMIT, "{bound} bytes planned within {LIMIT}");
    assert!(free <= LIMIT || bound < free, "the plan did not shrink: {free}, {bound}");

    let ended = end(&mut group.inside(&run_into(dir.path(), "--quick --force --budget 12s")));
    // Other load may make all numbers unusable (3); nothing else may go wrong.
    assert!(ended.sane().code == 0 || ended.code == 3, "{ended:?}");
    let run = read(&run_file(dir.path()));
    assert!(run.summary.is_some() && run.damage.is_empty());
    assert_eq!(run.header.plan.len(), free_cases(&run.header.plan), "a case fell to the memory limit");
    for reason in run.visits.iter().filter_map(|visit| visit.reason.as_ref()) {
        // What there was no time for may be left out.
        assert!(matches!(reason, model::Reason::Skipped(why) if why.starts_with("budget")), "{reason:?}");
    }
    let all = results(dir.path());
    assert!(all["series"].as_array().expect("series").iter().any(|series| series["n"].as_u64() > Some(0)));
    page_is_whole(dir.path());
    is_tidy(dir.path());
    stayed_below(&group, LIMIT);
}

#[test]
fn memory_benchmarks_never_touch_more_than_planned() {
    const LIMIT: u64 = 160 << 20;
    let test = "memory_benchmarks_never_touch_more_than_planned";
    let group = match Group::new("memory", &[("memory.limit_in_bytes", &LIMIT)]) {
        Ok(group) => group,
        Err(why) => return skipped(test, why),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let only = "memory,memory.loaded-latency,memory.parallelism,memory.tlb,memory.line";
    let run = run_into(dir.path(), &format!("--quick --only {only} --force"));
    every_case_once(&mut group.inside(&run), dir.path());
    let run = read(&run_file(dir.path()));
    let mut measured = std::collections::BTreeSet::new();
    for visit in &run.visits {
        let planned = &run.header.plan[visit.case as usize];
        if matches!(visit.reason, Some(model::Reason::Skipped(_))) {
            continue;
        }
        assert!(visit.reason.is_none(), "{}: {:?}", planned.case.key(), visit.reason);
        let touched = visit.process.memory_bytes.unwrap_or(0);
        assert!(touched <= planned.memory_bytes, "{}: {touched} bytes touched", planned.case.key());
        measured.insert(planned.case.bench.to_string());
    }
    for bench in only.split(',').skip(1).chain(["memory.bandwidth", "memory.latency"]) {
        let runs_here = |planned: &&model::Planned| planned.case.bench == bench && planned.unmet.is_none();
        let any = run.header.plan.iter().any(|planned| runs_here(&planned));
        assert!(measured.contains(bench) || !any, "{bench} was not measured");
    }
    stayed_below(&group, LIMIT);
}

/// Cases that memory does not forbid.
fn free_cases(plan: &[model::Planned]) -> usize {
    // hackbench is its 400 tasks: they cannot be made smaller.
    let forbidden = |planned: &&model::Planned| {
        let by_memory = planned.unmet.as_ref().is_some_and(|why| why.starts_with("memory:"));
        by_memory && planned.case.bench != "sched.hackbench"
    };
    plan.len() - plan.iter().filter(forbidden).count()
}

#[test]
fn a_memory_limit_of_version_2_is_kept() {
    let test = "a_memory_limit_of_version_2_is_kept";
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let point = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (*words.get(2)? == "cgroup2").then(|| words[1].to_string())
    });
    let Some(point) = point else { return skipped(test, "no version 2 hierarchy is mounted here") };
    let controllers = fs::read_to_string(Path::new(&point).join("cgroup.controllers")).unwrap_or_default();
    if !controllers.contains("memory") || !is_root() {
        return skipped(test, format!("version 2 controls only {:?} here", controllers.trim()));
    }
    let folder = Path::new(&point).join(crate::host::unique());
    if let Err(error) = fs::create_dir(&folder) {
        return skipped(test, error);
    }
    let bound = fs::write(folder.join("memory.max"), (64u64 << 20).to_string());
    let dir = tempfile::tempdir().expect("a folder");
    let join = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
    let folder_name = folder.to_str().expect("a plain path");
    let run = run_into(dir.path(), "--quick --force --budget 12s");
    let ended = end(&mut wrapped(&["sh", "-c", join, folder_name], &run));
    let events = fs::read_to_string(folder.join("memory.events")).unwrap_or_default();
    let _ = fs::remove_dir(&folder);
    if let Err(error) = bound {
        return skipped(test, error);
    }
    assert!(ended.sane().code == 0 || ended.code == 3, "{ended:?}");
    assert!(events.contains("oom_kill 0"), "{events}");
    page_is_whole(dir.path());
}

/// With one CPU of several: what needs two says why it is not there, the rest is measured.
fn with_one_cpu(test: &str, cpu: u32, confine: &dyn Fn(&Command) -> Command) {
    let dir = tempfile::tempdir().expect("a folder");
    let plan = plan(&end(&mut confine(&run_into(dir.path(), "--quick --dry-run --json"))));
    let named = |case: &Value| {
        let placement = case["case"]["placement"]["name"].as_str().expect("a name").to_string();
        (placement, case["unmet"].as_str().unwrap_or("").to_string())
    };
    // Two spinners never share a CPU, on any host.
    let spins = |case: &&Value| case["case"]["bench"] == "ipc.shared-memory";
    let cause = format!("only CPU {cpu} may be used here (affinity or cpuset)");
    let mut skipped_pairs = 0;
    for (placement, unmet) in plan.iter().filter(|case| !spins(case)).map(named) {
        match placement.as_str() {
            "one-cpu" | "same-cpu" | "free" => assert_eq!(unmet, "", "{test}: {placement}"),
            "smt-sibling" | "same-llc" | "other-llc" => {
                assert_eq!(unmet, cause, "{test}: {placement}");
                skipped_pairs += 1;
            }
            // Groups of CPUs and nodes: a group of one, or a reason.
            _ => {}
        }
    }
    assert!(skipped_pairs > 0, "{test}: no placement of two CPUs in the plan");
    let list = cpu.to_string();
    for case in plan.iter().filter(|case| case["unmet"].is_null()) {
        let seats = case["case"]["placement"]["seats"].as_array().expect("a list");
        assert!(seats.iter().all(|seat| seat["cpus"] == *list), "{test}: {case}");
    }
    let words = "--quick --only cpu.clock,ipc.pipe,memory.bandwidth --force";
    every_case_once(&mut confine(&run_into(dir.path(), words)), dir.path());
    let results = results(dir.path());
    for key in ["cpu.clock@one-cpu", "ipc.pipe-pingpong@same-cpu", "memory.bandwidth@one-cpu"] {
        assert!(series(&results, key)["median"].as_f64() > Some(0.0), "{test}: {key}");
    }
    for series in results["series"].as_array().expect("a list") {
        let measured = !series["median"].is_null();
        let placement = series["placement"].as_str().expect("a name");
        let possible = ["one-cpu", "same-cpu", "free"].contains(&placement);
        assert_eq!(measured, possible, "{test}: {series}");
        assert!(measured || series["verdict"] == "skipped", "{test}: {series}");
        assert!(measured || series["reason"].as_str().is_some_and(|why| !why.is_empty()), "{test}: {series}");
    }
    page_is_whole(dir.path());
}

#[test]
fn an_affinity_of_one_cpu() {
    let test = "an_affinity_of_one_cpu";
    let cpus = allowed_cpus();
    let (Some(cpu), true) = (cpus.last(), cpus.len() > 1) else {
        return skipped(test, "this machine gives us one CPU anyway");
    };
    let list = cpu.to_string();
    if !works("taskset", &["-c", &list, "true"]) {
        return skipped(test, "taskset is not here");
    }
    with_one_cpu(test, cpu, &|command| wrapped(&["taskset", "-c", &list], command));
}

#[test]
fn a_cpuset_of_one_cpu() {
    let test = "a_cpuset_of_one_cpu";
    let cpus = allowed_cpus();
    let (Some(cpu), true) = (cpus.first(), cpus.len() > 1) else {
        return skipped(test, "this machine gives us one CPU anyway");
    };
    match Group::new("cpuset", &[("cpuset.mems", &memory_nodes()), ("cpuset.cpus", &cpu)]) {
        Ok(group) => with_one_cpu(test, cpu, &|command| group.inside(command)),
        Err(why) => skipped(test, why),
    }
}

fn memory_nodes() -> CpuSet {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let nodes = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    nodes.and_then(|list| CpuSet::parse_list(list.trim())).unwrap_or_else(|| CpuSet::one(0))
}

#[test]
fn an_interrupted_run_of_other_cpus_is_not_gone_on_with() {
    let test = "an_interrupted_run_of_other_cpus_is_not_gone_on_with";
    let cpus = allowed_cpus();
    let (Some(cpu), true) = (cpus.last(), cpus.len() > 1) else {
        return skipped(test, "this machine gives us one CPU anyway");
    };
    let list = cpu.to_string();
    if !works("taskset", &["-c", &list, "true"]) {
        return skipped(test, "taskset is not here");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let words = "--quick --only ipc.pipe --force --budget 5s";
    end(&mut run_into(dir.path(), words)).sane();
    let file = run_file(dir.path());
    let text = fs::read_to_string(&file).expect("readable");
    let cut: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    fs::write(&file, &cut).expect("written");
    let elsewhere = end(&mut wrapped(&["taskset", "-c", &list], &run_into(dir.path(), words)));
    assert!(!elsewhere.sane().err.contains("resuming "), "{}", elsewhere.err);
    assert_eq!(fs::read_to_string(&file).expect("readable"), cut);
}

#[test]
fn without_privileges() {
    let Some(dir) = folder_of_nobody("without_privileges") else { return };
    let dry = end(&mut unprivileged(&run_into(dir.path(), "--quick --dry-run")));
    assert!(dry.expect(0).sane().out.contains("needs root: nothing"), "{}", dry.out);
    let words = "--quick --only cpu.clock,ipc.pipe,memory.bandwidth --force";
    every_case_once(&mut unprivileged(&run_into(dir.path(), words)), dir.path());
    let results = results(dir.path());
    for key in ["cpu.clock@one-cpu", "ipc.pipe-pingpong@same-cpu", "memory.bandwidth@one-cpu"] {
        assert!(series(&results, key)["median"].as_f64() > Some(0.0), "{key}");
        assert_eq!(series(&results, key)["failures"], serde_json::json!([]));
    }
    page_is_whole(dir.path());
    is_tidy(dir.path());
    let machine = end(&mut unprivileged(crate::assay().arg("machine")));
    machine.expect(0).sane();
}

#[test]
fn without_privileges_in_somebody_elses_folder() {
    let test = "without_privileges_in_somebody_elses_folder";
    if !is_root() {
        return skipped(test, "only root can own a folder that we may not write");
    }
    let Some(_) = folder_of_nobody(test) else { return };
    // Readable, with a finished and an interrupted run in it, but not writable.
    let dir = tempfile::tempdir().expect("a folder");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(dir.path(), mode).expect("allowed");
    let words = crate::runs::pretended("selftest.steady");
    end(&mut run_into(dir.path(), &words)).expect(0);
    let file = run_file(dir.path());
    let refused = end(&mut unprivileged(&run_into(dir.path(), &words)));
    refused.expect(3).says(&["Permission denied", "--out"]);
    let new = end(&mut unprivileged(&run_into(&dir.path().join("new"), &words)));
    new.expect(3).says(&["cannot create the folder", "Permission denied", "--out"]);
    let text = fs::read_to_string(&file).expect("readable");
    fs::write(&file, &text[..text.rfind("{\"summary\"").expect("a summary")]).expect("written");
    end(&mut unprivileged(&run_into(dir.path(), &words))).expect(3).says(&["Permission denied"]);
    let report = end(&mut unprivileged(crate::assay().arg("report").arg(&file)));
    report.expect(3).says(&["report.html", "Permission denied"]);
    let secret = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&file, secret).expect("allowed");
    let diagnose = end(&mut unprivileged(crate::assay().arg("diagnose").arg(&file)));
    diagnose.expect(3).says(&["cannot open", "Permission denied"]);
}

#[test]
fn what_may_not_be_read_is_unknown() {
    let test = "what_may_not_be_read_is_unknown";
    let Some(dir) = folder_of_nobody(test) else { return };
    let tree = crate::runs::quiet_tree();
    tree.file("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB");
    tree.file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB");
    tree.file("/proc/version", "Linux version 6.1.0-9 (x@y) #1 SMP");
    let open = |path: &str, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(tree.root().join(path), mode).expect("allowed");
    };
    open("", 0o755);
    for path in ["proc/meminfo", "proc/version", "proc/vmstat", "proc/pressure", "sys/devices/system/node"] {
        open(path, 0);
    }
    let root = tree.root().to_str().expect("a path");
    let machine = end(&mut unprivileged(crate::assay().args(["machine", "--json", "--root", root])));
    let machine: Value = serde_json::from_str(&machine.expect(0).sane().out).expect("JSON");
    assert_eq!(machine["memory"]["total_bytes"], Value::Null);
    assert_eq!(machine["kernel"]["release"], Value::Null);
    assert_eq!(machine["summary"]["numa_nodes"], Value::Null);
    assert_eq!(machine["summary"]["cpus"], allowed_cpus().len());
    let words = format!("--quick --only selftest.steady --force --root {root}");
    end(&mut unprivileged(&run_into(dir.path(), &words))).measured();
    let results = results(dir.path());
    assert!(series(&results, "selftest.steady")["n"].as_u64() >= Some(5));
    // Rules that need what could not be read do not apply: they neither fire nor call it clean.
    let not_applicable = results["rules_not_applicable"].as_array().expect("a list");
    assert!(not_applicable.contains(&"swapping".into()), "{not_applicable:?}");
    open("proc/pressure", 0o755);
    open("sys/devices/system/node", 0o755);
}

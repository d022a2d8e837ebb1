//! What a namespace, a sandbox or a masked file system hides, for real: the report is the true
//! answer or that it is unknown, and never an all-clear from a source that is dead.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::host::{Group, allowed_cpus, inside, is_root, skipped, works, wrapped};
use crate::runs::{end, findings, results, run_into};

/// The command with a mount namespace of its own, in which these words of a shell come first.
fn behind_mounts(words: &str, command: &Command) -> Command {
    wrapped(&["unshare", "-m", "sh", "-c", &format!("({words}) || exit 99; exec \"$0\" \"$@\"")], command)
}

fn can_mount(test: &str) -> bool {
    let can = is_root() && works("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/sys"]);
    if !can {
        skipped(test, "mount namespaces need root");
    }
    can
}

fn not_applicable(results: &Value) -> Vec<&str> {
    let list = results["rules_not_applicable"].as_array().expect("a list");
    list.iter().filter_map(Value::as_str).collect()
}

/// Copies of /proc/stat that do not move: zeros, as gVisor served them, a real one of some moment,
/// and one of which only the line of all CPUs is alive at first sight.
fn dead_counters(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let real = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let zeros: Vec<String> = real
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            format!("{name}{}", words.map(|_| " 0").collect::<String>())
        })
        .collect();
    let only_all: Vec<&str> = real.lines().filter(|line| line.starts_with("cpu ")).collect();
    let texts =
        [("zeros", zeros.join("\n")), ("a copy", real.clone()), ("no CPU's line", only_all.join("\n"))];
    let file = |(name, text): (&'static str, String)| {
        let path = folder.join(name.replace([' ', '\''], "-"));
        std::fs::write(&path, format!("{text}\n")).expect("written");
        (name, path)
    };
    texts.into_iter().map(file).collect()
}

#[test]
fn counters_that_stand_still_give_no_all_clear() {
    if !can_mount("counters_that_stand_still_give_no_all_clear") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (what, stat) in dead_counters(folder.path()) {
        let mount =
            format!("mount --bind {} /proc/stat && mount -t tmpfs none /proc/pressure", stat.display());
        let mut looking = crate::assay();
        looking.args(["utilization", "--seconds", "0.5"]);
        let ended = end(&mut behind_mounts(&mount, &looking));
        ended.expect(3).says(&["cannot measure CPU use"]);
        assert!(!ended.out.contains("nothing runs"), "{what}: {ended:?}");

        let dir = tempfile::tempdir().expect("a folder");
        let run = run_into(dir.path(), "--quick --only selftest.steady --force");
        let ended = end(&mut behind_mounts(&mount, &run));
        assert!(ended.code == 0 || ended.code == 3, "{what}: {ended:?}");
        for word in ["no other work", "other work: none", "no steal", "steal: at most"] {
            assert!(!ended.out.contains(word), "{what}: {word}: {}", ended.out);
        }
        let results = results(dir.path());
        for rule in ["background-load", "steal"] {
            assert!(not_applicable(&results).contains(&rule), "{what}: {rule}");
        }
        if what == "zeros" {
            let mut machine = crate::assay();
            let ended = end(&mut behind_mounts(&mount, machine.arg("machine")));
            let first = &ended.expect(0).out;
            assert!(!first.contains("o other work") && first.contains("stand still"), "{first}");
        }
    }
}

/// Builds the program that lets chosen system calls return a number without doing anything; an
/// error says why it cannot be built.
fn seccomp_stub(folder: &Path) -> Result<PathBuf, String> {
    let source = testkit::root().join("../shared/fixtures/faults/seccomp_stub.c");
    if !cfg!(target_arch = "x86_64") {
        return Err("its numbers of system calls are those of x86_64".to_string());
    }
    if !source.exists() {
        return Err(format!("{} is not here", source.display()));
    }
    let stub = folder.join("stub");
    let (from, to) = (source.to_string_lossy().into_owned(), stub.to_string_lossy().into_owned());
    if !works("cc", &["-O1", "-o", &to, &from]) || !works(&to, &["999:38", "--", "true"]) {
        return Err("cc is not here, or seccomp is refused".to_string());
    }
    Ok(stub)
}

/// sched_setaffinity that claims success and does nothing: 203 on x86_64. 204 is sched_getaffinity.
#[test]
fn affinity_that_is_pretended_gives_no_pinned_figure() {
    let test = "affinity_that_is_pretended_gives_no_pinned_figure";
    if allowed_cpus().len() < 2 {
        return skipped(test, "one CPU is where every task is");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let stub = match seccomp_stub(folder.path()) {
        Ok(stub) => stub,
        Err(why) => return skipped(test, why),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let run = run_into(dir.path(), "--quick --only ipc.pipe-pingpong --force --budget 20s");
    let stub = stub.to_string_lossy().into_owned();
    let ended = end(&mut wrapped(&[&stub, "203:0", "--"], &run));
    assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
    let results = results(dir.path());
    let measured = |series: &&Value| series["median"].is_number();
    for series in results["series"].as_array().expect("a list").iter().filter(measured) {
        let key = series["key"].as_str().expect("a key");
        assert!(key.contains("@free"), "{key} was measured without its placement: {series}");
    }
    let failed = findings(&results, "failed-case");
    let told = failed.iter().map(|finding| finding.to_string()).collect::<String>();
    assert!(told.contains("reports success but did not move the task"), "{told}");
}

/// A quota of a fifth of a CPU on a group that the command's namespace hides.
#[test]
fn a_quota_above_the_namespace_is_seen_by_its_pauses() {
    let test = "a_quota_above_the_namespace_is_seen_by_its_pauses";
    let quota: [(&str, &dyn Display); 2] = [("cpu.cfs_period_us", &100_000), ("cpu.cfs_quota_us", &20_000)];
    let group = match Group::new("cpu", &quota) {
        Ok(group) if works("unshare", &["-C", "true"]) => group,
        Ok(_) => return skipped(test, "unshare -C is refused"),
        Err(why) => return skipped(test, why),
    };
    let leaf = group.folder().join("leaf");
    std::fs::create_dir(&leaf).expect("a group");
    for place in [leaf.as_path(), group.folder()] {
        let dir = tempfile::tempdir().expect("a folder");
        let run = run_into(dir.path(), "--quick --only cpu.arithmetic --force --budget 15s");
        let ended = end(&mut inside(place, &wrapped(&["unshare", "-C"], &run)));
        assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
        let results = results(dir.path());
        assert!(!ended.out.contains("no CPU quota"), "{}", ended.out);
        let found = findings(&results, "cpu-quota");
        // Where others leave us less than the quota, it never holds us.
        match found.first() {
            Some(finding) => assert_eq!(finding["effect"], "rejects", "{finding}"),
            None => assert!(!findings(&results, "background-load").is_empty(), "{}", ended.out),
        }
    }
    let _ = std::fs::remove_dir(&leaf);
}

/// Where /sys contains nothing, each CPU is asked for its caches, wherever the program was started.
#[test]
fn caches_without_sys_are_those_of_every_cpu() {
    let test = "caches_without_sys_are_those_of_every_cpu";
    if !can_mount(test) {
        return;
    }
    let cpus: Vec<u32> = allowed_cpus().iter().take(2).collect();
    let l3 = |around: &[&str]| {
        let mut machine = crate::assay();
        machine.args(["machine", "--json"]);
        let ended = end(&mut behind_mounts("mount -t tmpfs none /sys", &wrapped(around, &machine)));
        let machine: Value = serde_json::from_str(&ended.expect(0).out).expect("JSON");
        machine["summary"]["l3"].clone()
    };
    let whole = l3(&["env"]);
    if whole.as_array().is_none_or(Vec::is_empty) || !works("taskset", &["-c", "0", "true"]) {
        return skipped(test, "these CPUs tell nothing of an L3, or taskset is not here");
    }
    for cpu in &cpus {
        assert_eq!(l3(&["taskset", "-c", &cpu.to_string()]), whole, "started on CPU {cpu}");
    }
    let told: usize = whole
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cache| model::CpuSet::parse_list(cache["cpus"].as_str()?))
        .map(|cpus| cpus.len())
        .sum();
    assert_eq!(told, allowed_cpus().len(), "{whole}");
}

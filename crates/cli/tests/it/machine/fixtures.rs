//! Snapshots of real hosts with their derived and cross-checked truth (not part of this project:
//! see their README).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{check_consistency, json as machine_of, lines, set, text};

/// The folder with the snapshots; `None`, with a message, in a clone without it.
fn folder(inner: &str, test: &str) -> Option<PathBuf> {
    let folder = testkit::root().join("../shared/fixtures/topology").join(inner);
    if !folder.is_dir() {
        eprintln!("SKIPPED {test}: the fixtures are not here ({} is missing)", folder.display());
        return None;
    }
    Some(folder)
}

fn truths(folder: &Path) -> Vec<Value> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".truth.json"));
    paths.sort();
    let read =
        |path: &PathBuf| serde_json::from_str(&fs::read_to_string(path).expect("readable")).expect("JSON");
    paths.iter().map(read).collect()
}

fn unpack(folder: &Path, truth: &Value) -> tempfile::TempDir {
    let target = crate::synthetic::folder();
    let archive = folder.join(truth["file"].as_str().expect("a file name"));
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(target.path()).status();
    assert!(unpacked.expect("tar runs").success(), "{}", archive.display());
    target
}

/// `11264K` of a truth file in bytes.
fn bytes(size: &Value) -> Value {
    match size.as_str().and_then(|text| text.strip_suffix('K')?.parse::<u64>().ok()) {
        Some(kibibytes) => json!(kibibytes * 1024),
        None => Value::Null,
    }
}

/// The truth, with the best answer where plain sysfs is known to be wrong.
fn truth_of(snapshot: &Value, key: &str) -> Value {
    snapshot["best_answer"].get(key).unwrap_or(&snapshot["truth"][key]).clone()
}

#[test]
fn sysfs_snapshots_agree_with_their_truth() {
    let Some(folder) = folder("", "sysfs_snapshots_agree_with_their_truth") else { return };
    let truths = truths(&folder);
    assert!(truths.len() >= 21, "{} snapshots", truths.len());
    let mut differences = Vec::new();
    for snapshot in &truths {
        let name = snapshot["name"].as_str().expect("a name");
        let unpacked = unpack(&folder, snapshot);
        let root = unpacked.path().join(snapshot["root_in_archive"].as_str().expect("a root"));
        let saved = unpacked.path().join("saved.json.gz");
        let path = |path: &Path| path.to_str().expect("a plain path").to_string();
        let output = super::run(&["--root", &path(&root), "--save", &path(&saved), "--json"]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let machine: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        check_consistency(name, &machine);
        let mut check = |what: &str, found: Value, truth: Value| {
            if found != truth {
                differences.push(format!("{name}: {what}: found {found}, truth {truth}"));
            }
        };
        compare(snapshot, &machine, &mut check);
        check("read back from --save", machine_of("--from", &saved), machine);
        let size = fs::metadata(&saved).expect("a file").len();
        assert!(size < 200_000, "{name}: {size} bytes saved");
        // What people see first needs no more than a screen, even of 256 CPUs, and all of it three.
        let (first, all) = (lines("--from", &saved), text("--from", &saved).lines().count());
        assert!(first <= 40 && all < 100, "{name}: {first} and {all} lines");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

fn compare(snapshot: &Value, machine: &Value, check: &mut impl FnMut(&str, Value, Value)) {
    let truth = &snapshot["truth"];
    let summary = &machine["summary"];
    for key in ["packages", "numa_nodes", "cores"] {
        check(key, summary[key].clone(), truth_of(snapshot, key));
    }
    check("cpus", summary["cpus"].clone(), truth["pus"].clone());
    let threads = match truth["cores"].is_null() {
        true => Value::Null,
        false => truth["threads_per_core"].clone(),
    };
    check("threads_per_core", summary["threads_per_core"].clone(), threads);
    let told = !truth["caches"].as_array().expect("a list").is_empty();
    let l3 = truth["l3"].as_array().expect("a list").iter();
    let l3: Vec<Value> = l3.map(|l3| json!({"cpus": l3["cpus"], "size_bytes": bytes(&l3["size"])})).collect();
    check("l3", summary["l3"].clone(), if told { json!(l3) } else { Value::Null });

    check("offline", machine["cpus"]["offline"].clone(), json!(truth["pus_offline"].as_str().unwrap_or("")));
    check("model", machine["cpus"]["model"].clone(), truth["cpu_model"].clone());
    if !truth["clusters"].is_null() {
        check(
            "clusters",
            json!(machine["cpus"]["clusters"].as_array().map(Vec::len)),
            truth["clusters"].clone(),
        );
    }
    check("smt", machine["cpus"]["smt_control"].clone(), truth["smt_files"]["control"].clone());
    let dmi = [
        ("sys_vendor", "vendor"),
        ("product_name", "product"),
        ("board_name", "board"),
        ("chassis_type", "chassis_type"),
    ];
    for (key, mine) in dmi {
        check(key, machine["dmi"][mine].clone(), truth["dmi"][key].clone());
    }
    compare_caches(truth, machine, check);
    compare_nodes(truth, machine, check);
    compare_guest(snapshot, machine, check);
    let restriction = &truth["cpuset_restriction"];
    check("cpuset", machine["limits"]["cpuset"].clone(), restriction["cpus"].clone());
    check("mems", machine["limits"]["mems"].clone(), restriction["mems"].clone());
    if let Some(usable) = restriction["usable_online_cpus"].as_str() {
        check("allowed", machine["cpus"]["allowed"].clone(), json!(usable));
    }
}

/// Caches by level and kind: how many, of which sizes, shared by how many CPUs.
fn compare_caches(truth: &Value, machine: &Value, check: &mut impl FnMut(&str, Value, Value)) {
    type Found = (usize, Vec<u64>, Vec<usize>);
    let mut found: BTreeMap<(u64, String), Found> = BTreeMap::new();
    for cache in machine["caches"].as_array().expect("a list") {
        let key =
            (cache["level"].as_u64().expect("a level"), cache["kind"].as_str().expect("a kind").to_string());
        let of = found.entry(key).or_default();
        of.0 += 1;
        of.1.extend(cache["size_bytes"].as_u64());
        of.2.push(set(&cache["cpus"]).len());
    }
    let found: Vec<Value> = found
        .into_iter()
        .map(|((level, kind), (count, mut sizes, mut sharers))| {
            sizes.sort_unstable();
            sizes.dedup();
            sharers.sort_unstable();
            sharers.dedup();
            json!([level, kind, count, sizes, sharers])
        })
        .collect();
    let expected: Vec<Value> = truth["caches"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|cache| {
            let sizes: Vec<Value> = cache["sizes"].as_array().expect("a list").iter().map(bytes).collect();
            let kind = cache["type"].as_str().expect("a kind").to_lowercase();
            json!([cache["level"], kind, cache["count"], sizes, cache["cpus_per_instance"]])
        })
        .collect();
    check("caches", json!(found), json!(expected));
}

fn compare_nodes(truth: &Value, machine: &Value, check: &mut impl FnMut(&str, Value, Value)) {
    let nodes = machine["nodes"].as_array().expect("a list");
    let of = |node: &Value| json!([node["id"], node["cpus"], node["total_bytes"]]);
    let found: Vec<Value> = nodes.iter().map(of).collect();
    let expected: Vec<Value> = truth["numa"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|node| json!([node["os_index"], node["cpus"], node["mem_kib"].as_u64().map(|kib| kib * 1024)]))
        .collect();
    check("nodes", json!(found), json!(expected));
    let distances: Vec<&Value> = nodes.iter().map(|node| &node["distances"]).collect();
    let none = distances.iter().all(|row| row.as_array().is_none_or(Vec::is_empty));
    check("distances", if none { Value::Null } else { json!(distances) }, truth["numa_distances"].clone());
    let memory_only =
        nodes.iter().filter(|node| node["cpus"] == "" && node["offline"] == "" && node["total_bytes"] != 0);
    let memory_only: Vec<&Value> = memory_only.map(|node| &node["id"]).collect();
    check("memory-only nodes", json!(memory_only), truth["numa_nodes_memory_only"].clone());
    for (node, expected) in nodes.iter().zip(truth["numa"].as_array().expect("a list")) {
        let side = expected["memory_side_cache"].as_object();
        let sizes = side.map(|levels| {
            let size = |level: &Value| level["size"].as_str().and_then(|size| size.parse::<u64>().ok());
            levels.values().filter_map(size).collect::<Vec<_>>()
        });
        check("memory-side caches", node["memory_side_caches"].clone(), json!(sizes.unwrap_or_default()));
    }
}

fn compare_guest(snapshot: &Value, machine: &Value, check: &mut impl FnMut(&str, Value, Value)) {
    let found = machine["summary"]["hypervisor"].as_str();
    let hidden = snapshot["tags"].as_array().expect("a list").contains(&json!("hypervisor-flag-absent"));
    match (snapshot["truth"]["hypervisor_flag"].as_bool(), hidden) {
        (_, true) => check("hidden guest", json!(found.is_some_and(|name| name != "none")), json!(true)),
        (Some(true), _) => check("guest", json!(found.is_some_and(|name| name != "none")), json!(true)),
        (Some(false), _) => check("bare metal", json!(found), json!("none")),
        (None, _) => check("unknown", json!(found), Value::Null),
    }
    let expected = match snapshot["cross_check"]["lscpu_expected"]["Hypervisor vendor"].as_str() {
        Some("Oracle") => "virtualbox",
        Some("VMware") => "vmware",
        Some("KVM") => "kvm",
        _ => return,
    };
    check("hypervisor", json!(found), json!(expected));
}

#[test]
fn cpuid_dumps_agree_with_their_truth() {
    let Some(folder) = folder("x86-cpuid", "cpuid_dumps_agree_with_their_truth") else { return };
    let truths = truths(&folder);
    assert!(truths.len() >= 8, "{} dumps", truths.len());
    let mut differences = Vec::new();
    for dump in &truths {
        let name = dump["name"].as_str().expect("a name");
        let unpacked = unpack(&folder, dump);
        let machine = machine_of("--cpuid", &unpacked.path().join(name));
        check_consistency(name, &machine);
        let mut check = |what: &str, found: Value, truth: Value| {
            if found != truth {
                differences.push(format!("{name}: {what}: found {found}, truth {truth}"));
            }
        };
        compare_dump(&dump["truth"], &machine, &mut check);
        assert!(lines("--cpuid", &unpacked.path().join(name)) <= 40, "{name}");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

fn compare_dump(truth: &Value, machine: &Value, check: &mut impl FnMut(&str, Value, Value)) {
    let summary = &machine["summary"];
    check("packages", summary["packages"].clone(), truth["packages"].clone());
    check("cores", summary["cores"].clone(), truth["cores"].clone());
    check("cpus", summary["cpus"].clone(), truth["pus"].clone());
    check("numa_nodes", summary["numa_nodes"].clone(), Value::Null);
    let threads = truth["threads_per_core_histogram"].as_object().expect("an object").keys();
    let mut threads: Vec<u64> = threads.map(|count| count.parse().expect("a number")).collect();
    threads.sort_unstable();
    check("threads_per_core", summary["threads_per_core"].clone(), json!(threads));
    if let Some(dies) = truth["dies_from_0x1f"].as_u64() {
        check("dies", json!(machine["cpus"]["dies"].as_array().map(Vec::len)), json!(dies));
    }
    let guest = truth["hypervisor_bit"][0].as_bool().expect("a bit");
    check("hypervisor", json!(summary["hypervisor"] != "none"), json!(guest));
    check("vendor", machine["cpus"]["vendor"].clone(), truth["vendor"][0].clone());
    check("model", machine["cpus"]["model"].clone(), truth["model"][0].clone());

    type Found = (usize, BTreeMap<String, usize>, Vec<u64>);
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    for cache in machine["caches"].as_array().expect("a list") {
        let kind =
            cache["kind"].as_str().and_then(|kind| kind.chars().next()).expect("a kind").to_ascii_uppercase();
        let of = found.entry(format!("L{}{kind}", cache["level"])).or_default();
        of.0 += 1;
        *of.1.entry(set(&cache["cpus"]).len().to_string()).or_default() += 1;
        of.2.extend(cache["size_bytes"].as_u64().map(|bytes| bytes >> 10));
    }
    let found: BTreeMap<String, Value> = found
        .into_iter()
        .map(|(name, (count, sharers, mut sizes))| {
            sizes.sort_unstable();
            sizes.dedup();
            (name, json!({"count": count, "cpus_per_instance": sharers, "sizes_kib": sizes}))
        })
        .collect();
    check("caches", json!(found), truth["caches"].clone());
    let third = summary["l3"].as_array().map_or(0, Vec::len);
    check("l3", json!(third), json!(truth["caches"]["L3U"]["count"].as_u64().unwrap_or(0)));
}

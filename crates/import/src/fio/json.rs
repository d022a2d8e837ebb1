//! fio's JSON to jobs. Version 3 has `io_kbytes`, `bw_bytes` and latencies in ns (`clat_ns`);
//! version 2 has KiB in `io_bytes` and us in `clat`. The suffix of a name is its unit.

use serde_json::Value;

use super::disks::Disks;
use super::{Direction, DirectionStats, Job, Spread, Steady, numbers};

/// Names of the latency members by unit, ns.
const UNITS: [(&str, f64); 4] = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("", 1e3)];

type Read = (Vec<Job>, Vec<(String, String)>, Vec<String>);

/// The jobs of a document that is whole or cut, its other facts, and remarks.
pub fn jobs(document: &Value, is_cut: bool) -> Read {
    let mut remarks = Vec::new();
    let version = document["fio version"].as_str().unwrap_or_default();
    let global = options(&document["global options"]);
    let mut facts = vec![("fio".to_string(), version.trim_start_matches("fio-").to_string())];
    let text = |name: &str| document[name].as_str().map(str::to_string);
    facts.extend(text("time").map(|time| ("ran".to_string(), time)));
    let disks = Disks::of_json(&document["disk_util"], is_cut);
    facts.extend((!disks.is_empty()).then(|| ("device".to_string(), disks.names().join(", "))));
    remarks.extend(disks.remarks());
    let lists = [&document["jobs"], &document["client_stats"]];
    let all: Vec<&Value> = lists.into_iter().filter_map(Value::as_array).flatten().collect();
    // A client's list ends with the sum of all.
    let (sums, own): (Vec<&Value>, Vec<&Value>) =
        all.into_iter().partition(|one| one["jobname"] == "All clients");
    if !sums.is_empty() {
        remarks.push("the sum over all clients was left out: each client has its own result".to_string());
    }
    if own.iter().any(|job| Direction::ALL.iter().any(|way| job[way.word()]["clat_ns"].get("bins").is_some()))
    {
        remarks.push("the histograms of json+ were not read: the file has their percentiles".to_string());
    }
    let mut jobs: Vec<Job> = own.into_iter().map(|one| job(one, &global, version)).collect();
    disks.tell(&mut jobs);
    (jobs, facts, remarks)
}

fn options(value: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let list = value.as_object().into_iter().flatten();
    list.map(|(name, value)| (name.clone(), text(value))).collect()
}

fn job(value: &Value, global: &[(String, String)], version: &str) -> Job {
    let mut own = options(&value["job options"]);
    own.extend_from_slice(global);
    let is_untold = value.get("job options").is_none() && own.is_empty();
    let number = |name: &str| value[name].as_f64().filter(|number| *number >= 0.0);
    let job_runtime_ms = number("job_runtime");
    let cpu = number("usr_cpu").zip(number("sys_cpu")).map(|(user, system)| user + system);
    // Some versions count them in one place only.
    let sync = latency(&value["sync"], "lat");
    let counted = sync.n.or(value["sync"]["total_ios"].as_f64()).filter(|count| *count > 0.0);
    let sync = Spread { n: counted, ..sync };
    let sides = Direction::ALL.map(|way| side(&value[way.word()], version));
    // With `continue_on_error` a job's own error is 0.
    let passed_over = number("total_err").filter(|count| *count > 0.0).map(|count| {
        let first = &value["first_error"];
        format!("fio went on after {count:.0} errors, the first error {first}")
    });
    Job {
        name: value["jobname"].as_str().unwrap_or_default().to_string(),
        host: value["hostname"].as_str().unwrap_or_default().to_string(),
        options: own,
        group: value["groupid"].as_i64(),
        error: value["error"].as_i64().unwrap_or(0),
        sync,
        job_runtime_ms,
        cpu,
        sides,
        // Version 2 prints no options.
        untold: is_untold,
        unified: value["mixed"].is_object().then(|| side(&value["mixed"], version)),
        passed_over: passed_over.unwrap_or_default(),
        steady: steady(&value["steadystate"]),
        ..Job::default()
    }
}

fn side(value: &Value, version: &str) -> DirectionStats {
    let number = |name: &str| value[name].as_f64().filter(|number| *number >= 0.0);
    // Newer ones say both, and those before 3.0 KiB only.
    let old = version.trim_start_matches("fio-").starts_with(['1', '2']);
    let bytes = match number("io_kbytes") {
        Some(_) => number("io_bytes"),
        None => number("io_bytes").map(|amount| if old { amount * 1024.0 } else { amount }),
    };
    DirectionStats {
        ios: number("total_ios"),
        bytes,
        runtime_ms: number("runtime"),
        iops: number("iops"),
        bandwidth: number("bw_bytes").or(number("bw").map(|kib| kib * 1024.0)),
        slat: latency(value, "slat"),
        clat: latency(value, "clat"),
        lat: latency(value, "lat"),
        ..DirectionStats::default()
    }
}

/// What is said of a steady state that was asked for.
fn steady(value: &Value) -> Option<Steady> {
    let mean = |name: &str| value["data"][name].as_f64().filter(|mean| *mean > 0.0);
    Some(Steady {
        attained: value["attained"].as_i64()? != 0,
        iops: mean("iops_mean"),
        bandwidth: mean("bw_mean"),
    })
}

fn latency(value: &Value, name: &str) -> Spread {
    let member = |(suffix, scale): (&str, f64)| {
        let found = value.get(format!("{name}{suffix}"))?;
        found.is_object().then_some((found, scale))
    };
    let Some((found, scale)) = UNITS.into_iter().find_map(member) else { return Spread::default() };
    let number = |name: &str| found[name].as_f64().filter(|number| *number >= 0.0);
    let percentiles = found["percentile"].as_object().into_iter().flatten();
    let percentile = |(percent, value): (&String, &Value)| {
        // Old versions fill their table with zeros.
        let own = numbers::plain(percent).is_some_and(|percent| percent > 0.0);
        own.then(|| (percent.clone(), value.as_f64().map(|value| value * scale)))
    };
    Spread {
        mean: number("mean").map(|mean| mean * scale),
        max: number("max").map(|max| max * scale),
        n: number("N"),
        percentiles: percentiles.filter_map(percentile).collect(),
    }
}

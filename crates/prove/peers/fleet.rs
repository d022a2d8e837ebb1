//! `fleet`: how long `assay peers` takes with 10,000 run files of a 256-CPU machine at their real
//! size, and how much memory.
//!
//! One run is invented (`--pretend`) for the 256-CPU machine of the topology fixtures; each host's
//! file is that run with its own name, boot, start and values in the last line. 10,000 copies of 12
//! MB do not fit on most disks, so that beyond the first 200 files the middle of each is a hole:
//! length, beginning and the last 256 KiB are there, and no more is read of any. One host of a
//! hundred is slow in memory bandwidth; they must be found, and no others.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use model::run_file;
use model::{Record, Summary};
use serde_json::Value;
use stats::noise::normal;

use super::put_row;

pub const NAME: &str = "fleet";

/// Hosts, and how many of their files have no hole.
const HOSTS: usize = 10_000;
const WHOLE: usize = 200;

/// Bytes that stand at the beginning and at the end of a file with a hole.
const BEGIN: usize = 64 << 10;
const END: usize = 256 << 10;

/// One host in this many is slow, to this share.
const SLOW_EVERY: usize = 100;
const SLOW: f64 = 0.5563;

/// What was asked for.
const LIMIT: (f64, f64) = (60.0, 1024.0);

pub fn table() {
    println!(
        "\n| hosts | files | all as long as | on disk | time | memory at most | slow hosts found | others flagged | verdict |"
    );
    println!("|---:|---|---:|---:|---:|---:|---:|---:|---|");
    match measure() {
        Ok(line) => put_row("peers-fleet", &line),
        Err(why) => println!("| {HOSTS} | not measured: {why} | – | – | – | – | – | – | – |"),
    }
}

fn measure() -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let run = invented(folder.path())?;
    let bytes = std::fs::read(&run).map_err(|error| error.to_string())?;
    let runs = folder.path().join("runs");
    let summary = run_file::open(&run).and_then(|mut file| run_file::summary(&mut file));
    let summary = summary.map_err(|error| format!("{error:#}"))?;
    let on_disk = write_fleet(&bytes, &summary, &runs)?;
    let (seconds, mebibytes, json) = timed(&runs)?;
    let flagged: Vec<usize> = json["hosts"]
        .as_array()
        .ok_or("no hosts")?
        .iter()
        .filter(|host| host["flagged"] == true)
        .filter_map(|host| host["host"].as_str()?.strip_prefix("host-")?.parse().ok())
        .collect();
    let hosts = json["hosts"].as_array().map_or(0, Vec::len);
    let slow = flagged.iter().filter(|number| **number % SLOW_EVERY == 0).count();
    let good = seconds <= LIMIT.0 && mebibytes <= LIMIT.1 && hosts == HOSTS;
    Ok(format!(
        "| {hosts} | {WHOLE} whole, the others with a hole in the middle | {:.1} MB | {:.1} GB | {seconds:.1} s | {mebibytes:.0} MiB | {slow} of {} | {} | {} |",
        bytes.len() as f64 / 1e6,
        on_disk as f64 / 1e9,
        HOSTS.div_ceil(SLOW_EVERY),
        flagged.len() - slow,
        if good { "within 60 s and 1 GiB" } else { "beyond 60 s or 1 GiB" }
    ))
}

fn assay(arguments: &[&str]) -> Result<(), String> {
    let status =
        Command::new(testkit::program()).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("assay {} ended with {status}", arguments.join(" "))),
        Err(error) => Err(error.to_string()),
    }
}

/// A run of the 256-CPU machine with invented samples.
fn invented(folder: &Path) -> Result<PathBuf, String> {
    let archive = testkit::root().join("../shared/fixtures/topology/256ppc-8n8s4t.tar.bz2");
    let text = |path: &Path| path.display().to_string();
    let unpacked = Command::new("tar").arg("-xjf").arg(&archive).arg("-C").arg(folder).status();
    if !unpacked.is_ok_and(|status| status.success()) {
        return Err(format!("{} cannot be unpacked", archive.display()));
    }
    let (root, saved, out) =
        (folder.join("256ppc-8n8s4t"), folder.join("machine.json.gz"), folder.join("out"));
    assay(&["machine", "--root", &text(&root), "--save", &text(&saved)])?;
    assay(&["run", "--new", "--pretend", "1", "--from", &text(&saved), "--out", &text(&out)])?;
    let files =
        std::fs::read_dir(&out).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
    let mut runs = files.filter(|path| path.to_string_lossy().ends_with(".assay.jsonl"));
    runs.next().ok_or_else(|| "no run file was written".to_string())
}

/// The files, and how many bytes of them are on the disk.
fn write_fleet(bytes: &[u8], summary: &Summary, runs: &Path) -> Result<u64, String> {
    let last =
        bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').ok_or("a run of one line")? + 1;
    let mut on_disk = 0;
    let mut rng = Rng::with_seed(1);
    for number in 0..HOSTS {
        let mut own = summary.clone();
        own.host = format!("host-{number}");
        own.started = format!("2026-11-01T{:02}:{:02}:{:02}Z", number / 3600, number / 60 % 60, number % 60);
        own.boot_id = Some(format!("{number:032x}"));
        let level = 0.005 * normal(&mut rng);
        for series in &mut own.series {
            let slow =
                number % SLOW_EVERY == 0 && series.key.starts_with("memory.") && series.unit.ends_with("B/s");
            let factor = (level + 0.01 * normal(&mut rng)).exp() * if slow { SLOW } else { 1.0 };
            let scaled = |value: f64| format!("{:.6e}", value * factor).parse().unwrap_or(value);
            series.median = series.median.map(scaled);
            series.ci95 = series.ci95.map(|ends| ends.map(scaled));
        }
        let line = run_file::sealed(&Record::Summary(Box::new(own))).map_err(|error| error.to_string())?;
        // Hundred to a folder, as a collection by rack might lie.
        let folder = runs.join(format!("rack-{:03}", number / 100));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        on_disk += write_one(
            &folder.join(format!("host-{number}.assay.jsonl")),
            &bytes[..last],
            &line,
            number < WHOLE,
        )
        .map_err(|error| error.to_string())?;
    }
    Ok(on_disk)
}

fn write_one(path: &Path, before: &[u8], line: &[u8], whole: bool) -> std::io::Result<u64> {
    let mut file = File::create(path)?;
    if whole {
        file.write_all(before)?;
    } else {
        file.write_all(&before[..BEGIN])?;
        let from = before.len() - (END - line.len().min(END));
        file.seek(SeekFrom::Start(from as u64))?;
        file.write_all(&before[from..])?;
    }
    file.write_all(line)?;
    Ok(if whole { (before.len() + line.len()) as u64 } else { (BEGIN + END) as u64 })
}

/// Seconds, most resident memory in MiB, and what was said.
fn timed(runs: &Path) -> Result<(f64, f64, Value), String> {
    let mut output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let mut child = Command::new(testkit::program());
    child.arg("peers").arg(runs).arg("--json");
    child.stdout(output.try_clone().map_err(|error| error.to_string())?);
    let mut child = child.spawn().map_err(|error| error.to_string())?;
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0_f64;
    let ended = loop {
        // The kernel keeps the highest mark itself; what is missed is the last 20 ms of it.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<f64>().ok());
        most = most.max(mark.unwrap_or(0.0) / 1024.0);
        if let Some(ended) = child.try_wait().map_err(|error| error.to_string())? {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let seconds = begin.elapsed().as_secs_f64();
    if !ended.success() {
        return Err(format!("assay peers ended with {ended}"));
    }
    output.rewind().map_err(|error| error.to_string())?;
    let json = serde_json::from_reader(std::io::BufReader::new(output)).map_err(|error| error.to_string())?;
    Ok((seconds, most, json))
}

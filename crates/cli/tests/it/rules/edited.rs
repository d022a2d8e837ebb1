//! Runs with invented samples, on hosts made for the purpose, changed line by line and judged
//! again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Case, case};
use crate::runs::{diagnosed, end, on_file, pretended, recorded, run_file, unsealed};
use crate::synthetic::{Shape, Tree};

/// The name and the text of a run file that a measuring verb leaves with these words.
///
/// Invented samples are the same in every run on the same machine: such a run is made once.
fn run_text(verb: &[&str], words: &str) -> (OsString, String) {
    static MADE: Mutex<BTreeMap<String, (OsString, String)>> = Mutex::new(BTreeMap::new());
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = what_decides(words).map(|decides| format!("{} {decides}", verb.join(" ")));
    if let Some(known) = key.as_ref().and_then(|key| made().get(key).cloned()) {
        return known;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = crate::assay();
    command.args(verb).arg("--out").arg(dir.path()).args(words.split_whitespace());
    end(&mut command).expect(0).sane();
    let file = run_file(dir.path());
    let name = file.file_name().expect("a name").to_os_string();
    let found = (name, unsealed(&file));
    key.map(|key| made().insert(key, found.clone()));
    found
}

/// What decides a run with invented samples: its words, where the words name a tree what is in that
/// tree. `None` where something else decides, too.
fn what_decides(words: &str) -> Option<String> {
    words.contains("--pretend ").then_some(())?;
    if words.contains(&format!("--from {}", recorded())) {
        return Some(words.to_string());
    }
    let (before, after) = words.split_once("--root ")?;
    let root = after.split_whitespace().next()?;
    let mut hasher = DefaultHasher::new();
    hash_folder(Path::new(root), &mut hasher);
    Some(format!("{before}--root {:016x}{}", hasher.finish(), &after[root.len()..]))
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry")).collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        entry.file_name().hash(hasher);
        let (kind, path) = (entry.file_type().expect("its type"), entry.path());
        match (kind.is_dir(), kind.is_symlink()) {
            (true, _) => hash_folder(&path, hasher),
            (_, true) => fs::read_link(&path).expect("a link").hash(hasher),
            _ => fs::read(&path).expect("readable").hash(hasher),
        }
    }
    // So that what follows is not taken for its content.
    0xff_u8.hash(hasher);
}

/// A run file as lines of JSON.
pub struct Edit {
    _dir: TempDir,
    file: PathBuf,
    lines: Vec<Value>,
}

impl Edit {
    /// The file of `assay run` with these words.
    pub fn of(words: &str) -> Edit {
        Edit::of_verb(&["run"], words)
    }

    /// The file of another measuring verb with these words.
    pub fn of_verb(verb: &[&str], words: &str) -> Edit {
        let (name, text) = run_text(verb, words);
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(name);
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        Edit { _dir: dir, file, lines }
    }

    /// Invented samples of these benchmarks on the recorded host.
    pub fn invented(only: &str) -> Edit {
        Edit::of(&pretended(only))
    }

    pub fn header(&mut self) -> &mut Value {
        &mut self.lines[0]["header"]
    }

    /// One more line at the file's end.
    pub fn add(&mut self, line: Value) {
        self.lines.push(line);
    }

    fn visits(&mut self) -> impl Iterator<Item = &mut Value> {
        self.lines.iter_mut().filter_map(|line| line.get_mut("visit"))
    }

    /// Changes every visit; `change` gets its number.
    pub fn each(&mut self, mut change: impl FnMut(usize, &mut Value)) {
        for (number, visit) in self.visits().enumerate() {
            change(number, visit);
        }
    }

    /// Leaves out the other visits, and the summary, which counts them.
    pub fn keep_visits(&mut self, wanted: impl Fn(&Value) -> bool) {
        self.lines.retain(|line| line.get("visit").is_none_or(&wanted) && line.get("summary").is_none());
    }

    pub fn conditions(&mut self, mut change: impl FnMut(usize, &mut Value)) {
        self.each(|number, visit| change(number, &mut visit["conditions"]));
    }

    /// Changes the samples of every point and metric of every visit.
    pub fn samples(&mut self, mut change: impl FnMut(usize, &mut Value)) {
        self.each(|number, visit| {
            for samples in visit["samples"].as_array_mut().into_iter().flatten() {
                change(number, samples);
            }
        });
    }

    /// Changes each point's work of one benchmark; `change` gets the metrics, the value of the
    /// point's parameter `x`, the work and the time.
    fn works(&mut self, bench: &str, x: &str, change: impl Fn(&Value, f64, f64, f64) -> Option<f64>) {
        let plan = self.header()["plan"].clone();
        self.each(|_, visit| {
            let case = visit["case"].as_u64().expect("a case") as usize;
            if plan[case]["case"]["bench"] != bench {
                return;
            }
            for samples in visit["samples"].as_array_mut().into_iter().flatten() {
                let Some(at) = samples["point"][x].as_f64() else { continue };
                let ns: Vec<f64> = serde_json::from_value(samples["ns"].clone()).expect("a column");
                let work = |index: usize| match &samples["work"] {
                    Value::Array(works) => works[index].as_f64().expect("a number"),
                    same => same.as_f64().expect("a number"),
                };
                let changed: Option<Vec<f64>> = (0..ns.len())
                    .map(|index| change(&samples["metrics"], at, work(index), ns[index]))
                    .collect();
                if let Some(changed) = changed {
                    samples["work"] = json!(changed);
                }
            }
        });
    }

    /// Multiplies the work of one benchmark's points by a factor of theirs.
    pub fn scaled(&mut self, bench: &str, x: &str, factor: impl Fn(f64) -> f64) {
        self.works(bench, x, |_, at, work, _| Some(work * factor(at)));
    }

    /// Gives one benchmark's points these latencies, ns.
    pub fn latencies(&mut self, bench: &str, x: &str, latency: impl Fn(f64) -> f64) {
        let wanted = json!(["latency"]);
        self.works(bench, x, |metrics, at, _, ns| (*metrics == wanted).then(|| ns / latency(at)));
    }

    /// The first visit as often as this, one after the other, with windows that scatter by `spread`
    /// around a level.
    pub fn repeated(&mut self, times: usize, spread: f64, level: impl Fn(usize) -> f64) {
        let at = self.lines.iter().position(|line| line["visit"].is_object()).expect("a visit");
        let first = self.lines[at].clone();
        self.lines.retain(|line| !line["visit"].is_object());
        let mut random = fastrand::Rng::with_seed(42);
        // Near enough to a normal number: the sum of twelve.
        let mut scatter = move || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        for number in 0..times {
            let mut line = first.clone();
            let visit = &mut line["visit"];
            (visit["order"], visit["pass"]) = (number.into(), number.into());
            visit["at_ms"] = (number * 100).into();
            let process = level(number) * (1.0 + spread * scatter());
            for samples in visit["samples"].as_array_mut().expect("samples") {
                let windows = samples["ns"].as_array().expect("a column").len();
                let work: Vec<f64> =
                    (0..windows).map(|_| 1e6 * process * (1.0 + spread * scatter())).collect();
                samples["work"] = json!(work);
                samples["ns"] = json!(vec![2e6; windows]);
            }
            self.lines.insert(at + number, line);
        }
    }

    /// The results of `assay diagnose` for the changed file.
    pub fn diagnosed(&self) -> Value {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&self.file, text).expect("written");
        let results = diagnosed(&self.file);
        assert_eq!(results["damage"], json!([]), "the change made a line that cannot be read");
        results
    }

    /// What a terminal shows of the file that was diagnosed last.
    pub fn shown(&self) -> String {
        on_file("diagnose", &self.file, "--all").expect(0).sane().out.clone()
    }

    /// Its checks, passed or not.
    pub fn checks(&self) -> String {
        on_file("diagnose", &self.file, "--checks").expect(0).sane().out.clone()
    }
}

/// Invented samples of these benchmarks on a host made for it.
pub fn on(tree: &Tree, only: &str) -> Value {
    Edit::of(&format!("--quick --only {only} --pretend 7 --root {}", tree.root().display())).diagnosed()
}

/// The clean server with one change to its files.
pub fn changed(what: &str, only: &str, change: impl Fn(&Tree)) -> Case {
    let tree = server();
    change(&tree);
    case(what, on(&tree, only))
}

/// Two packages, sixteen CPUs, two nodes, a memory module on each channel, all as it should be, and
/// all of it reported.
pub fn server() -> Tree {
    server_of(2)
}

/// The same with this number of packages, eight CPUs each.
pub fn server_of(packages: u32) -> Tree {
    let tree = Tree::new();
    let shape = Shape { packages, cores: 4, cores_per_l3: 4, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, 1);
    let cpus = "/sys/devices/system/cpu";
    tree.file(&format!("{cpus}/online"), &format!("0-{}", packages * 8 - 1));
    for cpu in 0..packages * 8 {
        policy(&tree, cpu, "acpi-cpufreq", "performance", 3_000_000);
    }
    tree.file(&format!("{cpus}/cpufreq/boost"), "1");
    clocksource(&tree, "tsc", "tsc hpet acpi_pm");
    tree.file("/proc/meminfo", "MemTotal: 131072000 kB\nMemAvailable: 120000000 kB\nSwapTotal: 0 kB");
    tree.file("/proc/sys/kernel/osrelease", "6.12.9-amd64");
    tree.file("/proc/sys/kernel/numa_balancing", "1");
    tree.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    quota(&tree, "max 100000");
    crate::smbios::Board::even(packages).write(&tree);
    tree
}

/// A frequency policy of one CPU, with which the invented clock of 3 GHz is compared.
pub fn policy(tree: &Tree, cpu: u32, driver: &str, governor: &str, max_khz: u32) {
    let policy = format!("/sys/devices/system/cpu/cpufreq/policy{cpu}");
    for (file, text) in [
        ("affected_cpus", cpu.to_string()),
        ("scaling_driver", driver.to_string()),
        ("scaling_governor", governor.to_string()),
        ("scaling_min_freq", "800000".to_string()),
        ("scaling_max_freq", max_khz.to_string()),
        ("cpuinfo_max_freq", max_khz.to_string()),
    ] {
        tree.file(&format!("{policy}/{file}"), &text);
    }
}

pub fn clocksource(tree: &Tree, current: &str, available: &str) {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    tree.file(&format!("{folder}/current_clocksource"), current);
    tree.file(&format!("{folder}/available_clocksource"), available);
}

/// A control group (version 2) with this `cpu.max`, never throttled so far.
pub fn quota(tree: &Tree, max: &str) {
    tree.file("/proc/self/cgroup", "0::/job");
    tree.file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0");
    tree.file("/sys/fs/cgroup/job/cpu.max", max);
    tree.file("/sys/fs/cgroup/job/cpu.stat", "nr_throttled 0\nthrottled_usec 0000000000");
}

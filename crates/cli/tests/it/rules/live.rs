//! Real runs for the rules: below a tree that shows a quiet host, or one whose counters move.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::edited::quota;
use crate::host::{Group, allowed_cpus, wrapped};
use crate::runs::{end, quiet_tree, results, run_into, stat, vmstat};
use crate::synthetic::Tree;

/// A real run, with the quick profile where no other is named, that does not wait for a quiet
/// host unless its words demand it.
pub struct Live<'a> {
    words: String,
    /// What stands for this host's /proc and /sys; `None`: they themselves.
    tree: Option<Tree>,
    code: Option<i32>,
    around: Box<dyn Fn(&Command) -> Command + 'a>,
}

impl<'a> Live<'a> {
    pub fn of(words: &str) -> Live<'a> {
        let tree = quiet_tree();
        quota(&tree, "max 100000");
        let profile = if words.contains("--profile") { "" } else { "--quick" };
        let force = if words.contains("--wait-idle") { "" } else { "--force" };
        Live {
            words: format!("{profile} {force} {words}"),
            tree: Some(tree),
            code: Some(0),
            around: Box::new(|command| wrapped(&["env"], command)),
        }
    }

    /// The results of a clean run in quiet, made once.
    pub fn steady() -> Value {
        static RESULTS: OnceLock<Value> = OnceLock::new();
        let quiet = |ms: u64| vec![("proc/stat", stat(ms / 10, 1)), ("proc/vmstat", vmstat(0, ms))];
        RESULTS.get_or_init(|| Live::of("--only selftest.steady").run_while(quiet)).clone()
    }

    /// With what this host really does in sight.
    pub fn seen(mut self) -> Live<'a> {
        self.tree = None;
        self
    }

    pub fn with(self, change: impl Fn(&Tree)) -> Live<'a> {
        self.tree.iter().for_each(change);
        self
    }

    /// It ends with this code: 3, where no number can be used.
    pub fn ending(mut self, code: i32) -> Live<'a> {
        self.code = Some(code);
        self
    }

    /// Whether a number can be used depends on what others do here.
    pub fn any_end(mut self) -> Live<'a> {
        self.code = None;
        self
    }

    pub fn inside(mut self, group: &'a Group) -> Live<'a> {
        self.around = Box::new(|command| group.inside(command));
        self
    }

    pub fn wrapped(mut self, wrapper: &'a [&'a str]) -> Live<'a> {
        self.around = Box::new(|command| wrapped(wrapper, command));
        self
    }

    /// While files of its tree, which are there, say what `texts` gives for the ms since it began.
    pub fn run_while(self, texts: impl Fn(u64) -> Vec<(&'static str, String)> + Sync) -> Value {
        let tree = self.tree.as_ref().expect("a tree");
        let open = |(path, _): (&str, String)| {
            File::options().write(true).open(tree.root().join(path)).expect("a counter")
        };
        let files: Vec<File> = texts(0).into_iter().map(open).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                while !over.load(Ordering::Relaxed) {
                    for (file, (_, text)) in files.iter().zip(texts(begin.elapsed().as_millis() as u64)) {
                        // In place and always of one length: the run keeps these files open.
                        file.write_all_at(format!("{text}\n").as_bytes(), 0).expect("written");
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            // Also where it fails: the thread would go on for ever.
            let end = Flag(&over);
            let results = self.run();
            drop(end);
            results
        })
    }

    pub fn run(self) -> Value {
        let dir = tempfile::tempdir().expect("a folder");
        let mut command = run_into(dir.path(), &self.words);
        if let Some(tree) = &self.tree {
            command.arg("--root").arg(tree.root());
        }
        let ended = end(&mut (self.around)(&command));
        match self.code {
            Some(code) => ended.expect(code).sane(),
            None => ended.sane(),
        };
        assert!(ended.code == 0 || ended.code == 3, "{ended:?}");
        results(dir.path())
    }
}

/// The first CPU on which a benchmark of one task is placed here.
pub fn first_seat(only: &str) -> u32 {
    let dir = tempfile::tempdir().expect("a folder");
    let dry = end(&mut run_into(dir.path(), &format!("--quick --dry-run --json --only {only}")));
    let dry: Value = serde_json::from_str(&dry.expect(0).out).expect("JSON");
    let cpus = dry["plan"][0]["case"]["placement"]["seats"][0]["cpus"].as_str().expect("a set of CPUs");
    cpus.parse().expect("one CPU")
}

/// Counters that report stolen time, throttling, swapping and moved pages while a run goes on.
pub struct Moving;

impl Moving {
    /// The results of such a run, made once.
    pub fn run() -> &'static Value {
        static RESULTS: OnceLock<Value> = OnceLock::new();
        RESULTS.get_or_init(|| {
            let mut live = Live::of("--only selftest.steady --profile standard").any_end();
            // The standard profile: cases below 0.3 s in all are not judged alone.
            let tree = live.tree.take().expect("a tree");
            let node = "/sys/devices/system/node/node";
            tree.file(&format!("{node}0/cpulist"), &allowed_cpus().to_string());
            tree.file(
                &format!("{node}0/cpumap"),
                &crate::synthetic::mask(&allowed_cpus().iter().collect::<Vec<_>>(), 32),
            );
            tree.file(&format!("{node}1/cpumap"), &crate::synthetic::mask(&[], 32));
            for number in [0, 1] {
                tree.file(&format!("{node}{number}/meminfo"), &format!("Node {number} MemTotal: 8388608 kB"));
            }
            tree.file("/proc/sys/kernel/numa_balancing", "1");
            live.tree = Some(tree);
            // A third of all CPUs' time in ticks of 10 ms, a page each ms, a fifth of the time.
            live.run_while(|ms| {
                let stolen = ms * allowed_cpus().len() as u64 / 30;
                let throttled = format!("nr_throttled 0\nthrottled_usec {:010}", ms * 200);
                vec![
                    ("proc/stat", stat(ms / 10, stolen)),
                    ("proc/vmstat", vmstat(ms, ms)),
                    ("sys/fs/cgroup/job/cpu.stat", throttled),
                ]
            })
        })
    }
}

/// Says that it is over when it goes.
struct Flag<'a>(&'a AtomicBool);

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

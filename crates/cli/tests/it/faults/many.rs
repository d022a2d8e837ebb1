//! 2048 CPUs: the whole pipeline in bounded time, memory and size.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::runs::{end, is_tidy, on_file, page_is_whole, read, results, run_file, run_into};
use crate::synthetic::{Shape, Tree};

fn tree_of(packages: u32, cores: u32) -> Tree {
    let tree = Tree::new();
    let shape = Shape { packages, cores, cores_per_l3: 16, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, 64);
    let count = packages * cores * 2;
    let cpus: String = (0..count).map(|cpu| format!("cpu{cpu} 1 0 1 9 0 0 0 0 0 0\n")).collect();
    tree.file("/proc/stat", &format!("cpu  {count} 0 {count} {} 0 0 0 0 0 0\n{cpus}ctxt 1", 9 * count));
    tree.file("/proc/meminfo", "MemTotal: 4294967296 kB\nMemAvailable: 4000000000 kB");
    tree.file("/sys/devices/system/cpu/online", &format!("0-{}", count - 1));
    tree
}

/// Saves what can be known of the tree's host.
fn save(tree: &Tree, file: &Path) {
    let mut command = crate::assay();
    command.args(["machine", "--json", "--root"]).arg(tree.root()).arg("--save").arg(file);
    end(&mut command).expect(0);
}

#[test]
fn the_whole_pipeline_of_2048_cpus() {
    let tree = tree_of(8, 128);
    let root = tree.root().to_str().expect("a path");
    let dir = tempfile::tempdir().expect("a folder");
    let soon = |what: &str, cpu: Duration| {
        eprintln!("2048 CPUs: {what} took {cpu:.1?} of CPU time");
        assert!(cpu < Duration::from_secs(60), "{what} took {cpu:?}");
    };

    let words = format!("--quick --dry-run --root {root}");
    let dry = end(&mut run_into(dir.path(), &words));
    soon("the plan", dry.expect(0).sane().cpu);
    assert!(dry.out.contains("CPUs 0-2047") && dry.out.len() < 20_000, "{}", dry.out);
    for placement in ["smt-sibling", "same-llc", "other-llc", "other-package", "all", "free"] {
        assert!(dry.out.contains(&format!("@{placement}")), "{placement}: {}", dry.out);
    }
    let machine = end(crate::assay().args(["machine", "--root", root]));
    soon("the machine", machine.expect(0).sane().cpu);
    assert!(machine.out.lines().count() < 60);

    let (saved, out) = (dir.path().join("saved.json.gz"), dir.path().join("out"));
    save(&tree, &saved);
    let ended = end(&mut run_into(&out, &format!("--quick --pretend 1 --from {}", saved.display())));
    soon("an invented run", ended.expect(0).sane().cpu);
    let file = run_file(&out);
    let run = read(&file);
    assert!(run.damage.is_empty() && run.header.allowed_cpus.len() == 2048);
    let text = std::fs::read_to_string(&file).expect("readable");
    let summary = text.lines().last().expect("lines");
    // Every figure that a benchmark is about, of however many CPUs.
    assert!(summary.starts_with("{\"summary\"") && summary.len() <= 1 << 20, "{} bytes", summary.len());
    assert_eq!(run.summary.map(|summary| summary.headlines_left_out), Some(0));
    assert!(text.len() < 16 << 20, "{} bytes", text.len());
    page_is_whole(&out);
    let page = std::fs::metadata(out.join("report.html")).expect("a page").len();
    assert!(page < 12 << 20, "{page} bytes of report");
    is_tidy(&out);
    let diagnosed = on_file("diagnose", &file, "");
    soon("the diagnosis", diagnosed.expect(0).sane().cpu);
    assert!(diagnosed.out.len() < 40_000, "{} bytes of text", diagnosed.out.len());
}

#[test]
fn a_tree_and_what_was_saved_of_it_give_one_result() {
    let tree = tree_of(2, 32);
    let dir = tempfile::tempdir().expect("a folder");
    let saved = dir.path().join("saved.json.gz");
    save(&tree, &saved);
    let series = |source: &str, name: &Path| -> Value {
        let out = dir.path().join(source);
        let words = format!("--quick --only memory,ipc.pipe --pretend 1 {source} {}", name.display());
        end(&mut run_into(&out, &words)).expect(0);
        results(&out)["series"].clone()
    };
    assert_eq!(series("--root", tree.root()), series("--from", &saved));
}

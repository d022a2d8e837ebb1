//! 2048 CPUs: the whole pipeline in bounded time, memory and size.

use std::time::Duration;

use serde_json::Value;

use crate::runs::{end, is_tidy, on_file, page_is_whole, read, results, run_file, run_into};
use crate::synthetic::{Shape, Tree};

fn big() -> Tree {
    let tree = Tree::new();
    let shape =
        Shape { packages: 8, cores: 128, cores_per_l3: 16, threads: 2, first: 0, step: 1, lists: true };
    tree.build(shape, 64);
    let cpus: String = (0..2048).map(|cpu| format!("cpu{cpu} 1 0 1 9 0 0 0 0 0 0\n")).collect();
    tree.file("/proc/stat", &format!("cpu  2048 0 2048 18432 0 0 0 0 0 0\n{cpus}ctxt 1"));
    tree.file("/proc/meminfo", "MemTotal: 4294967296 kB\nMemAvailable: 4000000000 kB");
    tree.file("/sys/devices/system/cpu/online", "0-2047");
    tree
}

#[test]
fn the_whole_pipeline_of_2048_cpus() {
    let tree = big();
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

    let saved = dir.path().join("saved.json.gz");
    let save = ["machine", "--json", "--root", root, "--save", saved.to_str().expect("a path")];
    end(crate::assay().args(save)).expect(0);
    for (source, name) in [("--root", root), ("--from", saved.to_str().expect("a path"))] {
        let out = dir.path().join(source);
        let ended = end(&mut run_into(&out, &format!("--quick --pretend 1 {source} {name}")));
        soon("an invented run", ended.expect(0).sane().cpu);
        let file = run_file(&out);
        let run = read(&file);
        assert!(run.damage.is_empty() && run.header.allowed_cpus.len() == 2048);
        let text = std::fs::read_to_string(&file).expect("readable");
        let summary = text.lines().last().expect("lines");
        assert!(summary.starts_with("{\"summary\"") && summary.len() <= 64 << 10, "{} bytes", summary.len());
        assert!(text.len() < 16 << 20, "{} bytes", text.len());
        page_is_whole(&out);
        let page = std::fs::metadata(out.join("report.html")).expect("a page").len();
        assert!(page < 12 << 20, "{page} bytes of report");
        is_tidy(&out);
    }
    let diagnosed = on_file("diagnose", &run_file(&dir.path().join("--root")), "");
    soon("the diagnosis", diagnosed.expect(0).sane().cpu);
    assert!(diagnosed.out.len() < 30_000, "{} bytes of text", diagnosed.out.len());
    // One tree, read directly or saved and read again, gives one result.
    let of = |source: &str| -> Value { results(&dir.path().join(source))["series"].clone() };
    assert_eq!(of("--root"), of("--from"));
}

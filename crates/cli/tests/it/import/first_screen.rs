//! What `assay import` prints first: what was read, what was left out and why, key figures, how to
//! compare it.

use std::path::{Path, PathBuf};

use crate::assay;
use crate::studies::is_a_first_screen;

/// Files of this project: a name, and the verdict.
const OURS: [(&str, &str); 6] = [
    ("lmbench-summary.txt", "READ IN PART"),
    ("unixbench-report.txt", "READ IN PART"),
    ("hackbench.log", "READ"),
    ("fio-jobs.json", "READ IN PART"),
    ("fio-full.txt", "FAULTY RESULT"),
    ("iperf3-tcp.json", "READ"),
];

/// Collected ones, which not every clone has.
const COLLECTED: [(&str, &str); 6] = [
    ("lmbench/lmbench_example_results_2.txt", "READ IN PART"),
    ("lmbench/raw_hygon_regular_cpu0_iter1.txt", "READ IN PART"),
    ("unixbench/amd64-xeon_e5_2696_v3-6.6.13-gentoo-musl-homebuilt-sophia.txt", "READ"),
    ("speccpu2017/SpecCpuFpRateExample.csv", "READ"),
    ("hackbench/local_rt-tests-2.4_four_modes.log", "READ"),
    ("fio/vc_fiotest_fio-3.13.json", "FAULTY RESULT"),
];

fn screen(file: &Path, columns: usize, locale: &str, more: &[&str]) -> String {
    let mut command = assay();
    command.arg("import").arg(file.file_name().expect("a name")).args(more);
    command.current_dir(file.parent().expect("a folder"));
    command.env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
    let output = command.output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn begins(file: &Path, name: &str, verdict: &str) {
    let at = |columns: usize, locale: &str| screen(file, columns, locale, &[]);
    for columns in [80, 100] {
        insta::assert_snapshot!(format!("{name}_{columns}"), at(columns, "C.UTF-8"));
    }
    is_a_first_screen(name, at);
    let first = at(100, "C.UTF-8");
    assert!(first.contains(&format!("  {verdict}  ")), "{name}: {verdict}:\n{first}");
    assert!(first.contains("assay compare ") && first.contains("--all"), "{first}");
    let quiet = screen(file, 100, "C.UTF-8", &["--quiet"]);
    assert!(quiet.contains(verdict) && !quiet.contains("assay compare "), "{quiet}");
}

#[test]
fn an_import_begins_with_what_was_read() {
    let folder = testkit::root().join("tests/foreign");
    for (file, verdict) in OURS {
        let name = file.split('.').next().expect("a name");
        begins(&folder.join(file), &format!("ours_{name}"), verdict);
    }
}

#[test]
fn collected_results_begin_with_what_was_read() {
    let folder: PathBuf = testkit::root().join("../shared/fixtures/results");
    if !folder.is_dir() {
        return eprintln!("SKIPPED collected_results_begin_with_what_was_read: no {}", folder.display());
    }
    for (file, verdict) in COLLECTED {
        let name = file.split(['/', '.']).nth(1).expect("a name");
        let short: String = name.chars().take(24).collect();
        begins(&folder.join(file), &format!("collected_{short}"), verdict);
    }
}

/// A file of which nothing has a value is not called read, and the exit code says so.
#[test]
fn what_has_no_figure_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("host.0");
    let text = "[lmbench3.0 results for Linux host 3.10.0 #1 SMP x86_64 GNU/Linux]\n\nlat_rpc: built with NO_RPC (musl); skipping\n";
    std::fs::write(&file, text).expect("written");
    let output = assay().arg("import").arg(&file).output().expect("assay runs");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("NO RESULT") && shown.contains("exit 3"), "{shown}");
}

/// Several results appear on one screen, a line each.
#[test]
fn several_results_share_a_screen() {
    let folder = testkit::root().join("tests/foreign");
    let files = ["lmbench-summary.txt", "iperf3-tcp.json", "sockperf.txt", "fio-jobs.txt"];
    let several = |columns: usize, locale: &str| {
        let mut command = assay();
        command.arg("import").args(files).current_dir(&folder);
        command.env("COLUMNS", columns.to_string()).env("LC_ALL", locale);
        String::from_utf8(command.output().expect("assay runs").stdout).expect("UTF-8")
    };
    for columns in [80, 100] {
        insta::assert_snapshot!(format!("several_{columns}"), several(columns, "C.UTF-8"));
    }
    is_a_first_screen("several", several);
}

/// A text of CoreMark's results, one after the other.
fn coremark(rates: &[f64]) -> String {
    let one = |rate: &f64| {
        format!(
            "2K performance run parameters for coremark.\nCoreMark Size    : 666\nTotal ticks      : 13482\n\
             Total time (secs): {}\nIterations/Sec   : {rate}\nIterations       : 400000\n\
             Compiler version : GCC12.2.0\nCompiler flags   : -O2\nMemory location  : Heap\nseedcrc          : 0xe9f5\n\
             [0]crclist       : 0xe714\n[0]crcmatrix     : 0x1fd7\n[0]crcstate      : 0x8e3a\n\
             [0]crcfinal      : 0x65c5\nCorrect operation validated. See README.md for run and reporting rules.\n\
             CoreMark 1.0 : {rate} / GCC12.2.0 -O2 / Heap\n\n",
            400_000.0 / rate
        )
    };
    rates.iter().map(one).collect()
}

/// Repetitions have n and a spread, whether one text holds them or several files.
#[test]
fn repetitions_have_n_and_their_spread() {
    let folder = tempfile::tempdir().expect("a folder");
    let rates: Vec<f64> = (0..6).map(|at| 29_000.0 + 100.0 * f64::from(at)).collect();
    let write = |name: &str, rates: &[f64]| {
        let file = folder.path().join(name);
        std::fs::write(&file, coremark(rates)).expect("written");
        file
    };
    let of_one = |rates: &[f64]| screen(&write("one.txt", rates), 80, "C.UTF-8", &[]);
    let row =
        |text: &str| text.lines().find(|line| line.starts_with("  CoreMark ")).expect("a row").to_string();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let single = of_one(&rates[..1]);
    assert!(!single.contains('±') && !row(&single).contains(" n "), "{single}");
    let few = of_one(&rates[..3]);
    assert!(
        words(&few).contains("the median of 3 values, ± their range") && row(&few).contains("n 3"),
        "{few}"
    );
    assert!(row(&few).contains("0.3 %"), "29,000 to 29,200 around 29,100:\n{few}");
    let many = of_one(&rates);
    assert!(words(&many).contains("the median of 6 values.") && row(&many).contains("n 6"), "{many}");
    assert!(row(&many).contains(" % "), "an interval:\n{many}");
    let of_files = |names: &[&str]| {
        for (name, rate) in names.iter().zip(&rates) {
            write(name, &[*rate]);
        }
        let mut command = assay();
        command.arg("import").args(names).current_dir(folder.path());
        command.env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
        String::from_utf8(command.output().expect("assay runs").stdout).expect("UTF-8")
    };
    // What is called otherwise may be another host's.
    for names in [
        ["alpha.txt", "beta.txt", "gamma.txt"],
        ["node1.txt", "node2.txt", "node3.txt"],
        ["kernel-5.15.txt", "kernel-6.1.txt", "kernel-6.6.txt"],
        ["192.168.0.11.txt", "192.168.0.12.txt", "192.168.0.13.txt"],
    ] {
        let apart = of_files(&names);
        assert!(!words(&apart).contains("repetitions"), "{names:?}:\n{apart}");
    }
    let several = of_files(&["run0.txt", "run1.txt", "run2.txt", "run3.txt", "run4.txt", "run5.txt"]);
    assert!(words(&several).contains("look like repetitions of one test"), "{several}");
    let row = row(&several);
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[..3], ["CoreMark", "6", "29,250 1/s"], "{several}");
    assert!(row.ends_with("29,000–29,500"), "{several}");
}

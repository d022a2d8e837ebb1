//! Real runs below trees of files that stand for a host which reports its clocks, idle states,
//! temperatures and voltages, and whose files change while the run goes on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::Run;

use crate::host::allowed_cpus;
use crate::runs::{end, on_file, quiet_tree, read, run_file, run_into};
use crate::synthetic::Tree;

/// A laptop that idles at first: CPUs at 1.37 GHz, in C6 most of the time, 62 degrees, 1.1008 V.
fn laptop() -> Tree {
    let tree = quiet_tree();
    for cpu in allowed_cpus().iter() {
        tree.cpu(cpu, "cpufreq/scaling_cur_freq", "1366960").cpu(cpu, "cpufreq/scaling_max_freq", "3200000");
        tree.cpu(cpu, "cpufreq/scaling_governor", "powersave");
        for (state, name) in ["POLL", "C1", "C6"].iter().enumerate() {
            tree.cpu(cpu, &format!("cpuidle/state{state}/name"), name);
            tree.cpu(cpu, &format!("cpuidle/state{state}/time"), "000000000000");
        }
        let mut registers = vec![0; 0x1a0];
        registers[0x198..].copy_from_slice(&(9018u64 << 32 | 13 << 8).to_le_bytes());
        tree.bytes(&format!("/dev/cpu/{cpu}/msr"), &registers);
    }
    let chip = "/sys/class/hwmon/hwmon2";
    tree.file(&format!("{chip}/name"), "coretemp").file(&format!("{chip}/temp1_label"), "Package id 0");
    tree.file(&format!("{chip}/temp1_input"), "62000").file(&format!("{chip}/temp1_crit"), "100000");
    tree.file("/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "1000");
    tree
}

/// The same under load: the published readings of its second core.
fn loaded(root: &Path, since: Duration) {
    let write = |path: String, content: &[u8]| {
        // In place and never shorter: a run keeps these files open.
        let file = fs::File::options().write(true).open(root.join(path)).expect("a file of the tree");
        std::os::unix::fs::FileExt::write_all_at(&file, content, 0).expect("written");
    };
    for cpu in allowed_cpus().iter() {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        write(format!("{folder}/cpufreq/scaling_cur_freq"), b"3050320\n");
        write(format!("{folder}/cpufreq/scaling_governor"), b"performance\n");
        // A quarter of the time in C1.
        write(format!("{folder}/cpuidle/state1/time"), format!("{:012}\n", since.as_micros() / 4).as_bytes());
        write(format!("dev/cpu/{cpu}/msr"), &{
            let mut registers = vec![0; 0x1a0];
            registers[0x198..].copy_from_slice(&(9346u64 << 32 | 30 << 8).to_le_bytes());
            registers
        });
    }
    write("sys/class/hwmon/hwmon2/temp1_input".into(), b"73000\n");
}

/// A run of some seconds below the tree; half a second after its begin the host is under load.
fn run_below(tree: &Tree, dir: &Path) -> Run {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !over.load(Ordering::Relaxed) {
                if begin.elapsed() > Duration::from_millis(1500) {
                    loaded(tree.root(), begin.elapsed());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let mut command: Command =
            run_into(dir, "--profile standard --force --only cpu.clock,selftest.steady");
        let ended = end(command.arg("--root").arg(tree.root()));
        over.store(true, Ordering::Relaxed);
        ended.sane();
    });
    read(&run_file(dir))
}

fn values(run: &Run, subject: &str, name: &str) -> Vec<f64> {
    let lines = run.time_lines.iter().filter(|line| line.subject == subject && line.name.starts_with(name));
    lines.flat_map(|line| line.value.clone()).collect()
}

#[test]
fn a_machine_that_tells_is_observed_while_it_is_measured() {
    let (tree, dir) = (laptop(), tempfile::tempdir().expect("a folder"));
    let run = run_below(&tree, dir.path());
    let text = on_file("diagnose", &run_file(dir.path()), "--all").sane().out.clone();
    assert!(text.contains("Clock, idle and temperature"), "{text}");
    assert!(text.contains("idle, C6, all CPUs"), "{text}");
    for line in run.time_lines.iter().filter(|line| !line.subject.is_empty()) {
        assert_eq!(line.at_ms.len(), line.value.len(), "{line:?}");
        assert!(line.at_ms.is_sorted() && line.missing.is_none(), "{line:?}");
    }
    let points: usize = run.time_lines.iter().map(|line| line.value.len()).sum();
    assert!(points < 2000, "{points} points");
    let all = values(&run, "idle", "C1, all CPUs");
    assert!(all.len() > 1 && all.iter().all(|share| (0.0..=1.0).contains(share)), "{all:?}");
    if allowed_cpus().len() < 2 {
        println!("skipped the clocks: there is no CPU beside the measured one to look from");
        return;
    }
    let limits = values(&run, "clock", "highest allowed");
    assert!(!limits.is_empty() && limits.iter().all(|ghz| *ghz == 3.2), "{limits:?}");
    let turn = |subject: &str, name: &str, idle: f64, load: f64| {
        let seen = values(&run, subject, name);
        let near = |value: f64, wanted: f64| (value - wanted).abs() < 1e-3;
        assert!(seen.iter().all(|value| near(*value, idle) || near(*value, load)), "{subject}: {seen:?}");
        seen.into_iter().filter(|value| near(*value, load)).count()
    };
    let under_load = [
        turn("clock", "by cpufreq", 1.36696, 3.05032),
        turn("temperature", "coretemp Package id 0", 62.0, 73.0),
        turn("multiplier", "by IA32", 13.0, 30.0),
        turn("core voltage", "by IA32", 1.1008, 1.1409),
    ];
    // Each look reads one of those that interrupt a CPU; a run of few looks may not have come to
    // all of them.
    if cfg!(target_arch = "x86_64") {
        assert!(under_load.iter().sum::<usize>() > 0, "{:#?}", run.time_lines);
    }
    assert!(run.events.iter().any(|event| event.kind == "governor"), "{:?}", run.events);
}

#[test]
fn a_machine_that_does_not_tell_says_why() {
    let (tree, dir) = (quiet_tree(), tempfile::tempdir().expect("a folder"));
    let words = "--quick --force --only selftest.steady";
    end(run_into(dir.path(), words).arg("--root").arg(tree.root())).measured();
    let text = on_file("diagnose", &run_file(dir.path()), "--all").sane().out.clone();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for why in ["no cpufreq", "no cpuidle states", "no processor's sensor"] {
        assert!(text.contains(&format!("({why}")), "{why}: {text}");
    }
    assert!(text.contains("clock, measured with the samples"), "{text}");
}

#[test]
fn a_tree_of_nonsense_is_measured_on_all_the_same() {
    let (tree, dir) = (quiet_tree(), tempfile::tempdir().expect("a folder"));
    let cpus = "/sys/devices/system/cpu";
    for cpu in allowed_cpus().iter() {
        for file in ["scaling_cur_freq", "scaling_max_freq", "scaling_governor"] {
            tree.bytes(&format!("{cpus}/cpu{cpu}/cpufreq/{file}"), &[0xff; 5000]);
        }
        tree.file(&format!("{cpus}/cpu{cpu}/cpuidle/state0/name"), "\u{1b}[31mred");
        tree.file(&format!("{cpus}/cpu{cpu}/cpuidle/state0/time"), "-1e300");
        tree.file(&format!("{cpus}/cpu{cpu}/cpuidle/stateX/name"), "C1");
        tree.bytes(&format!("/dev/cpu/{cpu}/msr"), &[0xff; 3]);
    }
    tree.file("/sys/class/hwmon/hwmon0/name", "coretemp");
    tree.file("/sys/class/hwmon/hwmon0/temp1_input", "NaN");
    tree.file("/sys/class/hwmon/hwmon99999999999/name", "coretemp");
    let words = "--quick --force --only selftest.steady";
    end(run_into(dir.path(), words).arg("--root").arg(tree.root())).measured();
    let text = on_file("diagnose", &run_file(dir.path()), "--all").sane().out.clone();
    assert!(!text.contains('\u{1b}') && text.contains("temperature, processor ("), "{text}");
}

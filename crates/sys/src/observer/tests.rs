//! The observer on hosts made of files.

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, path: &str, text: &str) -> &Tree {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        // Written in place, as in sysfs: the observer keeps files open.
        std::fs::write(path, format!("{text}\n")).expect("written");
        self
    }

    fn cpu(&self, cpu: u32, file: &str, text: &str) -> &Tree {
        self.file(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"), text)
    }

    fn open(&self, host: HostFacts) -> Observer {
        Observer::open(self.0.path(), &(0..2).collect(), host)
    }
}

fn line<'a>(lines: &'a [TimeLine], subject: &str, name: &str) -> &'a TimeLine {
    let found = lines.iter().find(|line| line.subject == subject && line.name.starts_with(name));
    found.unwrap_or_else(|| panic!("no {subject} {name}: {lines:#?}"))
}

/// Takes a sample as if half a second had passed.
fn sample(observer: &mut Observer, at_ms: f64) {
    observer.last_sample = None;
    observer.sampling_cpu = affinity::allowed().expect("affinity").first();
    observer.sample_if_due(at_ms);
}

#[test]
fn each_missing_source_has_a_reason() {
    let tree = Tree::new();
    let mut observer = tree.open(HostFacts { guest: true, ..HostFacts::default() });
    observer.begin(&CpuSet::one(1), Some(0));
    sample(&mut observer, 1.0);
    observer.end(2.0);
    let (lines, events) = observer.take();
    assert!(events.is_empty() && lines.iter().all(|line| line.value.is_empty()), "{lines:#?}");
    for (subject, word) in [
        (TimeLine::CLOCK, "cpufreq"),
        (TimeLine::IDLE, "cpuidle"),
        (TimeLine::TEMPERATURE, "thermal zone"),
        (TimeLine::MULTIPLIER, if cfg!(target_arch = "x86_64") { "hypervisor" } else { "x86" }),
        (TimeLine::VOLTAGE, "Vcore"),
    ] {
        let missing = line(&lines, subject, "").missing.as_deref().unwrap_or_default();
        assert!(missing.contains(word), "{subject}: {missing}");
    }
}

#[test]
fn every_source_is_sampled() {
    let tree = Tree::new();
    for cpu in 0..2 {
        tree.cpu(cpu, "cpufreq/scaling_cur_freq", "1366960").cpu(cpu, "cpufreq/scaling_max_freq", "2500000");
        tree.cpu(cpu, "cpufreq/scaling_governor", "powersave");
        for (state, name) in ["POLL", "C1", "C6"].iter().enumerate() {
            tree.cpu(cpu, &format!("cpuidle/state{state}/name"), name);
            tree.cpu(cpu, &format!("cpuidle/state{state}/time"), "1000");
        }
    }
    tree.file("sys/class/hwmon/hwmon0/name", "coretemp");
    tree.file("sys/class/hwmon/hwmon0/temp1_label", "Package id 0");
    tree.file("sys/class/hwmon/hwmon0/temp1_input", "62000");
    tree.file("sys/class/hwmon/hwmon0/temp1_crit", "100000");
    let traffic = "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes";
    tree.file(traffic, "1000");
    // As in the device: eight bytes at the register's number.
    let registers = |multiplier: u64| {
        let mut bytes = vec![0; 0x1a0];
        bytes[PERF_STATUS as usize..].copy_from_slice(&(multiplier << 8 | 9346 << 32).to_le_bytes());
        bytes
    };
    let device = tree.0.path().join("dev/cpu/1/msr");
    tree.file("dev/cpu/1/msr", "").file("dev/cpu/0/msr", "");
    std::fs::write(tree.0.path().join("dev/cpu/0/msr"), registers(13)).expect("written");
    std::fs::write(&device, registers(13)).expect("written");

    let mut observer = tree.open(HostFacts { base_ghz: Some(2.5), guest: false });
    observer.begin(&CpuSet::one(1), Some(0));
    for turn in 0..5 {
        sample(&mut observer, f64::from(turn));
    }
    tree.cpu(1, "cpufreq/scaling_cur_freq", "3050320").cpu(1, "cpufreq/scaling_governor", "performance");
    tree.cpu(1, "cpuidle/state2/time", "900000000");
    tree.file("sys/class/hwmon/hwmon0/temp1_input", "73000");
    std::fs::write(&device, registers(30)).expect("written");
    tree.file(traffic, "2000");
    std::thread::sleep(Duration::from_millis(5));
    observer.period = Duration::from_millis(1);
    for turn in 5..10 {
        sample(&mut observer, f64::from(turn));
    }
    observer.end(11.0);
    let (lines, events) = observer.take();
    let of_registers = |subject: &str| [TimeLine::MULTIPLIER, TimeLine::VOLTAGE].contains(&subject);
    let exists_here = |line: &TimeLine| cfg!(target_arch = "x86_64") || !of_registers(&line.subject);
    assert!(!lines.iter().any(|line| exists_here(line) && line.missing.is_some()), "{lines:#?}");
    assert_eq!(line(&lines, TimeLine::CLOCK, "by cpufreq").value, [1.36696, 3.05032]);
    assert_eq!(line(&lines, TimeLine::CLOCK, "highest allowed").value, [2.5; 10]);
    assert_eq!(line(&lines, TimeLine::TEMPERATURE, "coretemp Package").value, [62.0, 73.0]);
    assert_eq!(line(&lines, TimeLine::CRITICAL, "coretemp Package").value, [100.0]);
    // 1000 bytes in some milliseconds.
    let traffic = &line(&lines, TimeLine::TRAFFIC, "by resctrl").value;
    assert!(traffic.len() == 1 && traffic[0] > 0.0 && traffic[0] < 1e-3, "{traffic:?}");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(line(&lines, TimeLine::MULTIPLIER, "by IA32").value, [13.0, 30.0]);
        let volts = &line(&lines, TimeLine::VOLTAGE, "by IA32").value;
        assert!(volts.iter().all(|volts| (volts - 1.1409).abs() < 1e-3), "{volts:?}");
    }
    let deep = line(&lines, TimeLine::IDLE, "C6, measured").value[0];
    assert_eq!(deep, 1.0, "more idle time than wall time counts as all of it");
    assert_eq!(line(&lines, TimeLine::IDLE, "C0, running, measured").value, [0.0]);
    // The other CPU was not in this state.
    assert!(
        line(&lines, TimeLine::IDLE, "C6, all").value.iter().any(|share| (0.4..=0.5).contains(share)),
        "{lines:#?}"
    );
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].text, "the governor of CPU 1 changed from powersave to performance");
    assert!(observer.take().0.is_empty(), "each point is returned once");
}

#[test]
fn samples_are_rare_and_never_taken_by_a_measured_cpu() {
    let tree = Tree::new();
    tree.cpu(0, "cpufreq/scaling_max_freq", "2500000").cpu(0, "cpufreq/scaling_cur_freq", "2500000");
    let before = affinity::allowed().expect("affinity");
    let own = before.first().expect("a CPU");
    let mut observer = tree.open(HostFacts::default());
    observer.begin(&CpuSet::one(0), Some(own));
    (0..100).for_each(|at| observer.sample_if_due(f64::from(at)));
    assert_eq!(affinity::allowed().expect("affinity"), before, "restored");
    let (lines, _) = observer.take();
    assert_eq!(line(&lines, TimeLine::CLOCK, "highest allowed").at_ms, [0.0], "one sample in half a second");
    observer.begin(&CpuSet::one(0), None);
    observer.last_sample = None;
    observer.sample_if_due(1.0);
    observer.end(2.0);
    assert!(observer.take().0.is_empty(), "no sample of a core's clock without another CPU to take it");
}

#[test]
fn a_long_run_is_sampled_less_often() {
    let tree = Tree::new();
    let mut observer = tree.open(HostFacts::default());
    for at in 0..3500 {
        observer.note(TimeLine::CLOCK, "x", "GHz", f64::from(at), Some(1.0));
    }
    assert_eq!(observer.period, PERIOD * 8);
}

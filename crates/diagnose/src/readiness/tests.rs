//! Verdicts of hosts with one thing changed each.

use super::*;
use model::{CpuSet, Snapshot};

fn idle() -> Machine {
    let mut machine = Machine::from(&Snapshot::default());
    machine.remarks.clear();
    machine.cpus.online = CpuSet::parse_list("0-3").expect("a list");
    machine.cpus.allowed = machine.cpus.online.clone();
    machine
}

/// The verdict, and topics with their severities.
fn of(change: impl Fn(&mut Machine)) -> (Readiness, Vec<(Severity, &'static str)>) {
    let mut machine = idle();
    change(&mut machine);
    let lines = lines(&machine);
    let verdict = Readiness::of(&machine, &lines);
    for line in &lines {
        assert!(line.topic.len() <= 12 && line.text.ends_with('.'), "{line:?}");
        assert!(line.rule.is_empty() || crate::rules().any(|rule| rule.id == *line.rule), "{line:?}");
    }
    (verdict, lines.iter().map(|line| (line.severity, line.topic)).collect())
}

#[test]
fn a_machine_of_which_nothing_is_known_is_not_called_ready() {
    let nothing = Machine::from(&Snapshot::default());
    assert_eq!(Readiness::of(&nothing, &lines(&nothing)), Readiness::CannotTell);
    assert_eq!(of(|_| ()), (Readiness::Ready, vec![]));
    // What was not checked is not called clean either.
    assert!(clean(&nothing).is_empty());
    let mut part = idle();
    part.limits.versions = vec![2];
    assert_eq!(clean(&part), ["no CPU quota", "no memory limit"]);
    part.limits.groups_above = Some(true);
    assert!(clean(&part).is_empty());
}

#[test]
fn sources_of_several_machines_let_nothing_be_judged() {
    let with = |in_doubt: &[&str], limit: Option<f64>| {
        let told = |what: &str| format!("the sources differ in {what}: 1 by a, 2 by b");
        of(|machine| {
            machine.limits.cpu_quota = limit;
            machine.archive = Some(machine::Archive {
                contradictions: vec![told("sockets"), told("CPUs")],
                in_doubt: in_doubt.iter().map(|what| what.to_string()).collect(),
                ..machine::Archive::default()
            });
        })
    };
    let (problem, note) = ((Severity::Problem, "sources"), (Severity::Note, "sources"));
    assert_eq!(with(&["CPUs"], None), (Readiness::CannotTell, vec![problem, note]));
    assert_eq!(with(&[], None), (Readiness::Ready, vec![note, note]));
    let quota = (Severity::Problem, "CPU quota");
    assert_eq!(with(&["CPUs"], Some(1.5)), (Readiness::CannotTell, vec![problem, quota, note]));
    assert_eq!(with(&[], Some(1.5)), (Readiness::NotReady, vec![quota, note, note]));
}

/// A known fault counts, whatever else is unknown.
#[test]
fn a_certain_problem_decides_without_cpus() {
    let mut machine = Machine::from(&Snapshot::default());
    let lines = |severity| vec![line(severity, "modules", None, "Uneven.".to_string())];
    let verdict = |machine: &Machine, severity| Readiness::of(machine, &lines(severity));
    assert_eq!(verdict(&machine, Severity::Problem), Readiness::NotReady);
    assert_eq!(verdict(&machine, Severity::Warning), Readiness::WithCare);
    assert_eq!(verdict(&machine, Severity::Note), Readiness::CannotTell);
    machine.cpus.online = CpuSet::one(0);
    assert_eq!(verdict(&machine, Severity::Note), Readiness::Ready);
}

#[test]
fn a_quota_is_a_problem_and_other_work_a_warning() {
    let found = of(|machine| {
        machine.limits.cpu_quota = Some(1.5);
        machine.load.average = Some([3.0, 1.0, 1.0]);
    });
    let topics = vec![(Severity::Problem, "CPU quota"), (Severity::Warning, "other work")];
    assert_eq!(found, (Readiness::NotReady, topics));
    // As much as the CPUs are is no limit, and a load of a tenth of a CPU no other work.
    let none = of(|machine| {
        machine.limits.cpu_quota = Some(4.0);
        machine.load.average = Some([0.1, 3.0, 3.0]);
    });
    assert_eq!(none, (Readiness::Ready, vec![]));
}

#[test]
fn a_quiet_machine_has_counters_that_move_and_nobody_who_waits() {
    let quiet = |keep_time: Option<bool>, psi: Option<f64>| {
        let mut machine = idle();
        machine.load.average = Some([0.0, 0.0, 0.0]);
        machine.load.counters_keep_time = keep_time;
        machine.load.psi_cpu = psi;
        (clean(&machine), lines(&machine).len())
    };
    assert_eq!(quiet(None, None), (vec!["no other work"], 0));
    assert_eq!(quiet(Some(true), Some(0.5)), (vec!["no other work"], 0));
    assert_eq!(quiet(Some(false), None), (vec![], 1));
    assert_eq!(quiet(Some(true), Some(60.0)), (vec![], 0));
    let told = of(|machine| machine.load.counters_keep_time = Some(false));
    assert_eq!(told, (Readiness::WithCare, vec![(Severity::Warning, "other work")]));
}

#[test]
fn governors_are_judged_by_their_driver() {
    let with = |driver: &'static str, governor: &'static str| {
        of(move |machine| {
            machine.frequency.driver = Some(driver.to_string());
            machine.frequency.governors.insert(governor.to_string(), machine.cpus.online.clone());
        })
    };
    let warned = (Readiness::WithCare, vec![(Severity::Warning, "governor")]);
    assert_eq!(with("acpi-cpufreq", "powersave"), warned);
    assert_eq!(with("intel_cpufreq", "schedutil"), warned);
    assert_eq!(with("intel_pstate", "powersave"), (Readiness::Ready, vec![]));
    assert_eq!(with("acpi-cpufreq", "performance"), (Readiness::Ready, vec![]));
}

#[test]
fn what_only_has_to_be_known_leaves_a_machine_ready() {
    let found = of(|machine| {
        machine.hypervisor = Hypervisor::Guest("kvm".to_string());
        machine.frequency.turbo = Some(true);
        machine.kernel.mitigations.insert("mds".to_string(), "Vulnerable".to_string());
    });
    let topics = ["turbo", "guest", "mitigations"].map(|topic| (Severity::Note, topic));
    assert_eq!(found, (Readiness::Ready, topics.to_vec()));
}

#[test]
fn a_sandbox_that_answers_for_the_kernel_is_warned_of_and_a_container_told() {
    let with = |files: &[(&str, &str)]| {
        let entry = |(path, text): &(&str, &str)| (path.to_string(), model::Entry::Text(text.to_string()));
        let snapshot = Snapshot { entries: files.iter().map(entry).collect() };
        let enclosures = Machine::from(&snapshot).enclosures;
        of(|machine| machine.enclosures = enclosures.clone())
    };
    let docker = ("/proc/self/cgroup", "0::/docker/*1*\n");
    let gvisor = ("/proc/sys/kernel/osrelease", "4.19.0-gvisor");
    assert_eq!(with(&[docker]), (Readiness::Ready, vec![(Severity::Note, "sandbox")]));
    assert_eq!(with(&[docker, gvisor]), (Readiness::WithCare, vec![(Severity::Warning, "sandbox")]));
}

#[test]
fn part_of_the_cpus_or_of_the_memory_is_warned_of() {
    let found = of(|machine| {
        machine.cpus.allowed = CpuSet::one(2);
        machine.memory.total_bytes = Some(8 << 30);
        machine.limits.memory_bytes = Some(1 << 30);
        machine.clock.current = Some("hpet".to_string());
    });
    let topics = ["affinity", "memory limit", "clock source"].map(|topic| (Severity::Warning, topic));
    assert_eq!(found, (Readiness::WithCare, topics.to_vec()));
}

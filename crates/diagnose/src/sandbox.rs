//! Sandboxes that answer in the kernel's or the hardware's place, and containers that refuse a part
//! of what figures need.

use super::words::counted;
use super::{Evidence, Rule};
use machine::{ContainerKind, Machine};
use model::vocabulary::host as ids;
use model::{Fact, Finding};

pub const RULES: &[Rule] = &[SANDBOXED, RESTRICTED];

const SANDBOXED: Rule = Rule {
    id: ids::rule::SANDBOXED,
    title: "A sandbox stands between the figures and the machine",
    topic: "sandbox",
    meaning: "gVisor, WSL 1 and User-Mode Linux answer system calls themselves, lxcfs writes files of /proc, and a nested guest \
            has two hypervisors below it. Figures then say what the sandbox costs, not what this kernel or this hardware \
            can do, and what other work does may not be seen at all.",
    action: "",
    when: "Fires where a sign that only such a sandbox leaves was read when the run began: gVisor's fixed /proc/version, the \
             kernel release of WSL, the vendor in /proc/cpuinfo, mounts of fuse.lxcfs below /proc, several control \
             programs in /proc/sysinfo, or Xen above another hypervisor. No verdict changes: the figures are true of the \
             sandbox. Containers, microVMs and WSL 2 are only shown by `assay machine`: they run on the kernel itself.",
    how: "",
    calm: "no sandbox in the kernel's place",
    looked_at: "kernel and mounts",
    source: file!(),
    check: sandboxed,
};

fn sandboxed(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = &evidence.machine;
    machine.kernel.release.as_ref().or(machine.kernel.version.as_ref())?;
    let told = machine.enclosures.iter().filter(|enclosure| enclosure.changes_figures);
    let finding = |enclosure: &machine::Enclosure| {
        let (path, says) = enclosure.sign.split_once(": ").unwrap_or((&enclosure.sign, enclosure.name));
        Finding::warning(SANDBOXED.id, enclosure.reading.clone())
            .cause(format!("The run was made inside of this: {}.", enclosure.name))
            .fact("sign", says, path)
            .facts(enclosure.hides.iter().map(|hidden| Fact::new("not seen", *hidden, enclosure.name)))
            .confirm("assay machine --all")
            .advice("Measure outside of it to judge the machine; compare only with runs in the same sandbox.")
    };
    Some(told.map(finding).collect())
}

const RESTRICTED: Rule = Rule {
    id: ids::rule::RESTRICTED_CONTAINER,
    title: "A container refuses a part of what figures need",
    topic: "container",
    meaning: "A restricted pod has no capabilities, and a seccomp filter refuses system calls. Figures that need io_uring, \
            real-time priorities, memory policies, counters or SMBIOS are then missing or made another way. What is measured \
            is as good as outside. Compare it with runs in containers of the same kind: `container` is a setting of the run.",
    action: "",
    when: "Fires inside of a container (by the signs of `assay machine`) where /proc/self/status shows a seccomp filter, where \
             CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_PERFMON or CAP_DAC_READ_SEARCH is missing from CapEff (a capability that includes \
             it counts), or where the user namespace is not the first one. What a filter refuses cannot be read: the facts \
             name what the default profile of containerd and Docker refuses. No verdict changes.",
    how: "",
    calm: "no container that refuses calls",
    looked_at: "CapEff, Seccomp",
    source: file!(),
    check: restricted,
};

/// What a restricted container takes away, in a sentence.
pub(super) fn restriction(machine: &Machine) -> Option<String> {
    let container = machine.container.as_ref().filter(|own| own.kind == ContainerKind::Restricted)?;
    let what: Vec<&str> = container.limits.iter().map(|limit| limit.in_short).collect();
    Some(format!("The container refuses {}: {}", counted(what.len(), "thing"), what.join(", ")))
}

fn restricted(evidence: &Evidence) -> Option<Vec<Finding>> {
    let container = evidence.machine.container.as_ref()?;
    let Some(headline) = restriction(evidence.machine) else { return Some(Vec::new()) };
    let lost = container.limits.iter().map(|limit| format!("{} ({})", limit.costs, limit.limit));
    let cause = format!("Missing in it: {}.", lost.collect::<Vec<_>>().join("; "));
    let facts = container.limits.iter().map(|limit| {
        let path = limit.sign.split(": ").next().unwrap_or(&limit.sign);
        Fact::new(limit.limit, limit.costs, path)
    });
    Some(vec![
        Finding::note(RESTRICTED.id, headline)
            .cause(cause)
            .facts(facts)
            .confirm("assay machine --all")
            .advice("For figures of the whole node measure in a privileged pod."),
    ])
}

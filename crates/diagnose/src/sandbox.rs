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
    title: "A sandbox stands between figures and hardware",
    topic: "sandbox",
    meaning: "gVisor, WSL 1 and User-Mode Linux answer system calls themselves. lxcfs writes files of /proc, and a nested guest has \
             two hypervisors below it. The figures show the cost of the sandbox, and other work may be invisible.",
    action: "Measure outside of the sandbox to judge the host, and compare only runs in the same sandbox. See it: assay machine \
             --all",
    when: "The run found a sign that only such a sandbox leaves. Containers, microVMs and WSL 2 do not count: they run on the \
             kernel itself. No verdict changes.",
    how: "Signs: gVisor's fixed /proc/version, the kernel release of WSL, the vendor in /proc/cpuinfo, mounts of fuse.lxcfs \
             below /proc, several control programs in /proc/sysinfo, and Xen above another hypervisor. The figures are right for the \
             sandbox, so verdicts stay. assay machine shows containers, microVMs and WSL 2.",
    calm: "no sandbox (gVisor, WSL 1, UML)",
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
            .cause(format!("The run was inside this sandbox: {}.", enclosure.name))
            .fact("sign", says, path)
            .facts(enclosure.hides.iter().map(|hidden| Fact::new("not seen", *hidden, enclosure.name)))
            .confirm("assay machine --all")
            .advice("Measure outside of it to judge the host. Compare only with runs in the same sandbox.")
    };
    Some(told.map(finding).collect())
}

const RESTRICTED: Rule = Rule {
    id: ids::rule::RESTRICTED_CONTAINER,
    title: "A container refuses system calls or capabilities",
    topic: "container",
    meaning: "This container lacks capabilities, or a seccomp filter refuses system calls. Figures that need io_uring, real-time \
             priorities, memory policies, counters or SMBIOS are missing or measured another way. The others are as good as \
             outside.",
    action: "Measure in a privileged pod for all figures. Otherwise compare with runs in containers of the same kind. See it: assay \
             machine --all",
    when: "A container has a seccomp filter or its own user namespace. Or CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_PERFMON or \
             CAP_DAC_READ_SEARCH is missing. No verdict changes.",
    how: "Containers are found by the signs of assay machine. The rest is Seccomp and CapEff of /proc/self/status (a capability \
             that includes a missing one counts), and a user namespace that is not the first one. What a filter refuses cannot be \
             read: the facts name what the default profile of containerd and Docker refuses. `container` is a setting of the run.",
    calm: "no calls refused by a container",
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
    let cause = format!("Missing or measured another way: {}.", lost.collect::<Vec<_>>().join("; "));
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

//! What a container lets this process do: its capabilities, its filter of system calls, its user
//! namespace, as the kernel wrote them in /proc/self/status.

use schemars::JsonSchema;
use serde::Serialize;

use model::Snapshot;

use super::enclosure::{Enclosure, EnclosureKind};

/// What of the container around this process limits it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Container {
    pub kind: ContainerKind,
    /// What takes something away: `a seccomp filter`, `no CAP_PERFMON`.
    pub limits: Vec<ContainerLimit>,
}

/// Whether a run is of the host as its root sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContainerKind {
    /// In no container.
    None,
    /// A container takes away something that figures need.
    Restricted,
    /// In a container, with all that the host's root may do.
    Privileged,
}

/// One thing that a container takes away, and what a measurement loses by it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ContainerLimit {
    pub limit: &'static str,
    /// The same as a word or two: `debugfs`.
    #[serde(skip)]
    pub in_short: &'static str,
    pub costs: &'static str,
    /// The line that says so, and where it stands.
    pub sign: String,
}

impl ContainerKind {
    pub fn word(self) -> &'static str {
        match self {
            ContainerKind::None => "none",
            ContainerKind::Restricted => "restricted",
            ContainerKind::Privileged => "privileged",
        }
    }
}

const STATUS: &str = "/proc/self/status";

/// The kernel gives the first user namespace this number on every machine (`PROC_USER_INIT_INO` in
/// linux/proc_ns.h). Capabilities in another one are not valid outside of it.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// Capabilities that figures need, each with the one that includes it (capabilities(7)).
const NEEDED: &[(&[u32], &str, &str, &str)] = &[
    (&[CAP_SYS_ADMIN], "no CAP_SYS_ADMIN", "debugfs", "debugfs, kernel settings, own namespaces"),
    (&[CAP_SYS_NICE], "no CAP_SYS_NICE", "SCHED_FIFO", "real-time priorities (SCHED_FIFO)"),
    (
        &[CAP_PERFMON, CAP_SYS_ADMIN],
        "no CAP_PERFMON",
        "counters",
        "performance counters, unless kernel.perf_event_paranoid allows them for own tasks",
    ),
    (
        &[CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE],
        "no CAP_DAC_READ_SEARCH",
        "SMBIOS",
        "memory modules and firmware (SMBIOS)",
    ),
];

const CAP_DAC_OVERRIDE: u32 = 1;
const CAP_DAC_READ_SEARCH: u32 = 2;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;

/// `None` if unknown: older runs did not keep the capabilities.
pub(super) fn parse(snapshot: &Snapshot, enclosures: &[Enclosure]) -> Option<Container> {
    let is_container =
        |one: &Enclosure| one.kind <= EnclosureKind::Lxcfs || one.kind == EnclosureKind::Gvisor;
    if !enclosures.iter().any(is_container) {
        let looked = snapshot.text("/proc/self/cgroup").is_some();
        return looked.then(|| Container { kind: ContainerKind::None, limits: Vec::new() });
    }
    let status = snapshot.text(STATUS)?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim())
    };
    let may = u64::from_str_radix(value("CapEff")?, 16).ok()?;
    let mut limits = Vec::new();
    let seccomp = value("Seccomp").filter(|mode| *mode != "0");
    if let Some(mode) = seccomp {
        limits.push(ContainerLimit {
            limit: "a seccomp filter",
            in_short: "some calls",
            costs: "with the runtime's default profile io_uring, mbind and set_mempolicy, perf_event_open",
            sign: format!("{STATUS}: Seccomp {mode}"),
        });
    }
    if let Some(link) = snapshot.text("/proc/self/ns/user").filter(|link| *link != FIRST_USER_NAMESPACE) {
        limits.push(ContainerLimit {
            limit: "a user namespace",
            in_short: "root's rights",
            costs: "everything that capabilities allow outside it",
            sign: format!("/proc/self/ns/user: {link}"),
        });
    }
    for (any, limit, in_short, costs) in NEEDED {
        if any.iter().all(|capability| may >> capability & 1 == 0) {
            let sign = format!("{STATUS}: CapEff {may:016x}");
            limits.push(ContainerLimit { limit, in_short, costs, sign });
        }
    }
    let kind = if limits.is_empty() { ContainerKind::Privileged } else { ContainerKind::Restricted };
    Some(Container { kind, limits })
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    const POD: (&str, &str) = ("/proc/self/cgroup", "0::/kubepods/burstable/pod1/x\n");
    const FIRST: (&str, &str) = ("/proc/self/ns/user", FIRST_USER_NAMESPACE);

    fn of(files: &[(&str, &str)]) -> Option<Container> {
        crate::Machine::from(&tree(files)).container
    }

    fn limits(status: &str, user: (&str, &str)) -> (ContainerKind, Vec<&'static str>) {
        let found = of(&[POD, user, (STATUS, status)]).expect("told");
        (found.kind, found.limits.iter().map(|one| one.limit).collect())
    }

    #[test]
    fn who_may_do_all_is_privileged() {
        let all = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
        assert_eq!(limits(all, FIRST), (ContainerKind::Privileged, vec![]));
        // Kernels before 5.8 have no CAP_PERFMON: CAP_SYS_ADMIN includes it.
        assert_eq!(
            limits("CapEff:\t0000003fffffffff\nSeccomp:\t0\n", FIRST),
            (ContainerKind::Privileged, vec![])
        );
        // Root of a user namespace, with all capabilities in it.
        let own = ("/proc/self/ns/user", "user:[4026532188]");
        assert_eq!(limits(all, own), (ContainerKind::Restricted, vec!["a user namespace"]));
        let filtered = "CapEff:\t000001ffffffffff\nSeccomp:\t2\n";
        assert_eq!(limits(filtered, FIRST), (ContainerKind::Restricted, vec!["a seccomp filter"]));
    }

    #[test]
    fn what_a_runtime_drops_is_named() {
        // Docker's fourteen capabilities.
        let (kind, named) = limits("CapEff:\t00000000a80425fb\nSeccomp:\t2\n", FIRST);
        assert_eq!(kind, ContainerKind::Restricted);
        assert_eq!(named, ["a seccomp filter", "no CAP_SYS_ADMIN", "no CAP_SYS_NICE", "no CAP_PERFMON"]);
        let (_, named) = limits("CapEff:\t0000000000000000\nSeccomp:\t0\n", FIRST);
        assert_eq!(named.len(), NEEDED.len());
    }

    #[test]
    fn outside_of_containers_and_of_old_runs() {
        let user = (STATUS, "CapEff:\t0000000000000000\nSeccomp:\t2\n");
        let none = Some(Container { kind: ContainerKind::None, limits: vec![] });
        assert_eq!(of(&[("/proc/self/cgroup", "0::/user.slice\n"), user]), none);
        assert_eq!(of(&[POD, (STATUS, "Cpus_allowed_list:\t0-7\n")]), None);
        assert_eq!(of(&[POD, (STATUS, "CapEff:\tmany\n")]), None);
        assert_eq!(of(&[POD]), None);
        assert_eq!(of(&[user]), None);
        assert_eq!(of(&[("/proc/self/cgroup", "0::/user.slice\n")]), none);
    }
}

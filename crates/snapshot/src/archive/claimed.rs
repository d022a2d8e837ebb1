//! What an archive's own copies of /proc and /sys say, each with the file that it was read from.

use std::collections::BTreeMap;

use machine::archive::{Claim, Subject};
use machine::{CPUS, Machine};
use model::vocabulary::host as ids;
use model::{CpuSet, Snapshot};

use super::reported::NODES;

/// `members`: the files of the archive that paths were taken from, where these are others.
pub(super) fn own(snapshot: &Snapshot, members: &BTreeMap<String, String>) -> Vec<Claim> {
    let machine = Machine::from(snapshot);
    let summary = machine.summary();
    let count = |count: Option<usize>| count.map(|count| count.to_string());
    let is_told = |path: &str| snapshot.text(path).is_some_and(|text| !text.is_empty());
    // The first of these that is there.
    let of = |paths: &[&'static str]| {
        let found = paths.iter().find(|path| is_told(path) || snapshot.below(path).next().is_some());
        *found.or(paths.last()).unwrap_or(&"")
    };
    // Folders of CPUs that hold no file worth keeping are in a list of their own.
    let has_folders = is_told(ids::probe::FOLDERS_CPU);
    let cpus = if has_folders { CPUS } else { of(&[CPUS, "/proc/cpuinfo"]) };
    let has_topology = snapshot.below(CPUS).any(|(path, _)| path.contains("/topology/"));
    let sockets = if has_topology { CPUS } else { "/proc/cpuinfo" };
    // As many as there are folders: of nodes that claim each other's CPUs the host makes one.
    let folders = snapshot.text(ids::probe::FOLDERS_NODE).and_then(CpuSet::parse_list);
    let nodes = folders.map(|folders| folders.len()).filter(|count| *count > 0).or(summary.numa_nodes);
    let memory = machine.memory.total_bytes.map(|bytes| bytes.to_string());
    let all = [
        (Subject::Cpus, count(summary.cpus), cpus),
        (Subject::Sockets, count(summary.packages), sockets),
        (Subject::Nodes, count(nodes), NODES),
        (Subject::Memory, memory, "/proc/meminfo"),
        (Subject::Host, machine.host.clone(), of(&["/proc/sys/kernel/hostname", "/etc/hostname"])),
        (
            Subject::Kernel,
            machine.kernel.release.clone(),
            of(&["/proc/sys/kernel/osrelease", "/proc/version"]),
        ),
        (Subject::Processor, machine.cpus.model.clone(), "/proc/cpuinfo"),
        (
            Subject::Product,
            machine.dmi.product.clone(),
            of(&["/sys/class/dmi/id", "/sys/devices/virtual/dmi/id"]),
        ),
    ];
    let source = |path: &str| {
        let plain = path.trim_start_matches('/').to_string();
        let of_folder = |(known, _): &(&String, &String)| known.starts_with(path);
        match members.get(path).or_else(|| members.iter().find(of_folder).map(|(_, member)| member)) {
            Some(member) => format!("{plain} ({member})"),
            None => plain,
        }
    };
    let claim = |(subject, value, path): (Subject, Option<String>, &str)| {
        Some(Claim { subject, value: value?, source: source(path) })
    };
    all.into_iter().filter_map(claim).collect()
}

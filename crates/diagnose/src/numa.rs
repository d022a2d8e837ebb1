//! Memory that moves between NUMA nodes, or lies on the wrong one.

use super::words::{bytes, counted, percent};
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Case, CpuSet, Fact, Finding};
use stats::order::median;

pub const RULES: &[Rule] = &[BALANCING, REMOTE];

const BALANCING: Rule = Rule {
    id: ids::rule::NUMA_BALANCING,
    title: "The kernel moved pages between NUMA nodes",
    topic: "NUMA",
    meaning: "Automatic NUMA balancing unmaps pages to see which CPU touches them, and moves them nearer. The faults and copies cost \
             time in bursts. A measured block can change its node in the middle.",
    action: "Switch it off while you measure: sysctl kernel.numa_balancing=0. Set it back afterwards. See it: grep numa_ \
             /proc/vmstat",
    when: "The kernel's host-wide counter of migrated pages rose during passes. Benchmarks that saw more than 256 pages (1 MiB) \
             per second carry the cause.",
    how: "The counter is numa_pages_migrated of /proc/vmstat, in pages of 4 KiB. It counts the whole host, so pages of other \
             processes are in it.",
    calm: "NUMA balancing: 0 pages moved",
    looked_at: "/proc/vmstat",
    source: file!(),
    check: balancing,
};

/// Migrated 4 KiB pages per ms from which a benchmark carries the cause; fewer belong to other
/// processes.
const MIN_PAGES_PER_MS: f64 = 0.256;

fn balancing(evidence: &Evidence) -> Option<Vec<Finding>> {
    if evidence.machine.nodes.len() < 2 {
        return None;
    }
    let all = Evidence::total(evidence.visits(), |c| c.numa_migrated_pages)?;
    if all.value <= 0.0 {
        return Some(Vec::new());
    }
    let moved = |case: u32| Evidence::total(evidence.visits_of(case), |c| c.numa_migrated_pages);
    let touched =
        evidence.cases().filter(|(case, _)| moved(*case).is_some_and(|t| t.rate() > MIN_PAGES_PER_MS));
    let setting = match evidence.machine.memory.numa_balancing {
        Some(true) => "on",
        Some(false) => "off",
        None => "not reported by this kernel",
    };
    Some(vec![Finding::note(BALANCING.id, format!("The kernel moved {:.0} pages between NUMA nodes during the run", all.value))
        .cause("Automatic NUMA balancing moves pages nearer to the CPU that touches them, which costs time meanwhile.")
        .fact("pages moved", format!("{:.0}", all.value), "/proc/vmstat over all passes")
        .fact("NUMA balancing", setting, "/proc/sys/kernel/numa_balancing")
        .confirm("grep numa_ /proc/vmstat; cat /proc/sys/kernel/numa_balancing")
        .advice("For measuring: sysctl kernel.numa_balancing=0, and back afterwards.")
        .explains(touched.flat_map(|(case, _)| evidence.keys_of(case)))])
}

const REMOTE: Rule = Rule {
    id: ids::rule::REMOTE_MEMORY,
    title: "Memory on another NUMA node than intended",
    topic: "NUMA",
    meaning: "Memory of another node is 1.4–2.5 times slower and shares the link between the nodes. The kernel takes it when the \
             near node is full, a cpuset allows only other nodes, or balancing moves pages.",
    action: "Free memory on the intended node, or allow the cpuset its nodes, and measure again. See it: numactl --show; numastat \
             -m",
    when: "More than 5 % of the measured pages lie on another node than the placement asks for. Without such a request the node \
             of the task's CPU counts.",
    how: "The kernel reports the nodes of up to 512 pages of each block (move_pages without moving). The median share over a \
             benchmark's passes counts. Placements that ask for remote memory are compared with what they asked for.",
    calm: "memory on the intended nodes",
    looked_at: "move_pages",
    source: file!(),
    check: remote,
};

/// A larger share of misplaced pages is reported.
const MISPLACED: f64 = 0.05;

fn remote(evidence: &Evidence) -> Option<Vec<Finding>> {
    let (mut looked, mut worst) = (false, None::<(f64, &Case, u64, u32)>);
    let (mut series, mut facts) = (Vec::new(), Vec::new());
    for (case, planned) in evidence.cases() {
        let shares = evidence.visits_of(case).filter_map(|visit| visit.process.remote_share);
        // Values outside 0..=1 are damaged.
        let shares: Vec<f64> = shares.filter(|share| (0.0..=1.0).contains(share)).collect();
        let Some(share) = median(&shares) else { continue };
        looked = true;
        if share <= MISPLACED {
            continue;
        }
        let wanted = evidence.visits_of(case).filter_map(|visit| visit.process.memory_bytes).max();
        if worst.is_none_or(|(most, ..)| share > most) {
            worst = Some((share, &planned.case, wanted.unwrap_or(0), case));
        }
        series.extend(evidence.keys_of(case));
        facts.push(Fact::new("share on other nodes", percent(share), planned.case.key()));
    }
    if !looked {
        return None;
    }
    let Some((share, case, wanted, index)) = worst else { return Some(Vec::new()) };
    let (cause, more, advice) = misplaced_because(evidence, case, wanted, index);
    Some(vec![
        Finding::warning(
            REMOTE.id,
            format!(
                "Up to {} of the measured memory is on the wrong NUMA node, in {}",
                percent(share),
                counted(facts.len(), "benchmark")
            ),
        )
        .cause(cause)
        .facts(facts.into_iter().take(8))
        .facts(more)
        .confirm("numactl --show; numastat -m; grep Mems_allowed_list /proc/self/status")
        .advice(advice)
        .explains(series),
    ])
}

/// Why the memory of a case is not on the intended nodes: cause, facts and advice.
fn misplaced_because(
    evidence: &Evidence,
    case: &Case,
    wanted: u64,
    index: u32,
) -> (String, Vec<Fact>, String) {
    let machine = evidence.machine;
    let asked: CpuSet =
        case.placement.seats.iter().flat_map(|seat| seat.mem_nodes.iter().collect::<Vec<_>>()).collect();
    let near: CpuSet =
        case.placement.cpus().iter().filter_map(|cpu| Some(machine.node_of(cpu)?.id)).collect();
    let meant = if asked.is_empty() { near } else { asked };
    let fact = |label: &str, value: String, source: &str| vec![Fact::new(label, value, source)];
    if let Some(mems) = machine.limits.mems.as_ref().filter(|mems| !meant.is_subset(mems)) {
        return (
            format!(
                "The cpuset allows only memory of nodes {mems}. The tasks run on nodes {meant} or asked for them."
            ),
            fact(
                "memory nodes allowed",
                mems.to_string(),
                machine.limits.cpuset_at.as_deref().unwrap_or("cpuset.mems"),
            ),
            "Allow the cpuset memory of the nodes of its CPUs, or CPUs of the nodes of its memory.".into(),
        );
    }
    let node = |id: u32| machine.nodes.iter().find(|node| node.id == id);
    let free: Option<u64> = meant
        .iter()
        .map(|id| node(id)?.free_bytes)
        .try_fold(0u64, |sum, free| Some(sum.saturating_add(free?)));
    if let Some(free) = free.filter(|free| *free < wanted) {
        return (
            format!("Nodes {meant} had less memory free than was measured: what did not fit went elsewhere."),
            fact(
                "free when the run began",
                format!("{} of {} wanted", bytes(free as f64), bytes(wanted as f64)),
                "/sys/devices/system/node/node*/meminfo",
            ),
            "Free memory on these nodes (drop caches, end what uses it) and measure again.".into(),
        );
    }
    let moved = Evidence::total(evidence.visits_of(index), |c| c.numa_migrated_pages)
        .filter(|total| total.value > 0.0);
    if let Some(moved) = moved {
        return (
            "Automatic NUMA balancing moved pages while the benchmark ran.".into(),
            fact("pages moved", format!("{:.0}", moved.value), "/proc/vmstat over its passes"),
            "For measuring: sysctl kernel.numa_balancing=0, and back afterwards.".into(),
        );
    }
    (
        "No cpuset, full node or balancing explains it. Perhaps numactl set a memory policy (--interleave, --membind), or \
         nodes filled meanwhile."
            .into(),
        fact("nodes meant", meant.to_string(), "plan"),
        "Start it without numactl, and look at numastat while it runs.".into(),
    )
}

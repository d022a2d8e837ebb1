//! Topology that differs from what the kernel reports: hidden or separate caches, hidden or wrong
//! SMT siblings, vCPUs that move.

use super::distances::{
    Contention, Measured, contention, cores_among, groups, reported_llcs, shared_cores, transfers, words,
};
use super::words::{at_most, clipped, figure, percent};
use super::{Evidence, Rule};
use machine::{CacheKind, Hypervisor, Machine};
use model::vocabulary::host as ids;
use model::{CpuSet, Fact, Finding, FindingDraft, Severity};
use stats::clusters::{Answer, Level};
use stats::siblings::Siblings;

pub const RULES: &[Rule] = &[HIDDEN_LLC, NOT_SHARED, HIDDEN_SMT, WRONG_SIBLINGS, FLOATING];

const CACHES: &str = "/sys/devices/system/cpu/cpu*/cache";
const CORES: &str = "/sys/devices/system/cpu/cpu*/topology/core_cpus_list";
const TRANSFERS: &str = "assay run --only memory.core-to-core --profile standard --new";
const SLOWDOWNS: &str = "assay run --only cpu.pair-slowdown --profile standard --new";

/// A line comes from another core in 20–60 ns through a cache that both share (in up to 90 ns
/// through a mesh), in 80–300 ns from another cache, and in 5–15 ns from the other thread of the
/// core.
const SHARED_NS: std::ops::Range<f64> = 20.0..70.0;
const ELSEWHERE_NS: f64 = 80.0;

fn guest(machine: &Machine) -> bool {
    matches!(machine.hypervisor, Hypervisor::Guest(_))
}

const HIDDEN_LLC: Rule = Rule {
    id: ids::rule::HIDDEN_LLC,
    title: "The host hides the last-level cache from this guest",
    topic: "topology",
    meaning: "The kernel looks for an idle CPU among those that share a last-level cache. Without one its search ends at one \
             core. Tasks that wake each other may stay on one CPU: the score is high, and the woken task waits.",
    action: "Compare guests by pinned figures only. Have the host pass its caches (QEMU: -cpu host,l3-cache=on,host-cache-info=on). \
             See it: lscpu -C; assay run --only memory.core-to-core --new",
    when: "A guest reports no cache that two cores share. Yet its processor model has an L3, lines pass between cores in 20–70 \
             ns, or cores evict each other's data.",
    how: "Models: EPYC; Xeon but Phi and Core with AVX, and QEMU's models of them, where sysfs lists caches and none of level 3. \
             Transfers: the median between cores. Lines between different L3s take 80 ns or more, but large meshes reach 90 ns \
             too. Evictions: memory.llc-sharing. Without a reported cache, kernel 3.10 keeps both tasks on one CPU (published \
             one-copy score 589, with a cache 109). Kernels 5.10, 6.1 and 6.12 spread them, and no round ran on one CPU \
             (lab/RESULTS.md). There the hidden cache only costs the search for idle CPUs.",
    calm: "",
    looked_at: "sysfs caches",
    source: file!(),
    check: hidden_llc,
};

/// Whether every processor of this name has an L3. Atoms, Xeon Phi and those before 2008 have none.
fn model_has_l3(machine: &Machine) -> bool {
    let has = |flag: &str| machine.cpus.flags.iter().any(|own| own == flag);
    let Some(model) = machine.cpus.model.as_deref().filter(|_| has("avx")) else {
        // Core i3 to i9 have had one from the first.
        let old = machine.cpus.model.as_deref().unwrap_or("");
        return ["Core(TM) i3", "Core(TM) i5", "Core(TM) i7", "Core(TM) i9"]
            .iter()
            .any(|name| old.contains(name));
    };
    let core = ["Xeon", "Core(TM)", "Core Processor"].iter().any(|name| model.contains(name));
    model.contains("EPYC") || (core && !model.contains("Phi"))
}

fn hidden_llc(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = evidence.machine;
    let measured = transfers(evidence);
    if machine.caches.is_empty() && measured.is_none() {
        return None;
    }
    let one_core = |set: &CpuSet| cores_among(machine, set.iter()) < 2;
    let alone = reported_llcs(machine).iter().all(one_core);
    if !alone || cores_among(machine, machine.cpus.online.iter()) < 2 || !guest(machine) {
        return Some(Vec::new());
    }
    let third = machine.caches.iter().any(|cache| cache.level >= 3 && cache.kind != CacheKind::Instruction);
    let by_model = !machine.caches.is_empty() && !third && model_has_l3(machine);
    let by_transfers = measured.and_then(|measured| Some((shared_pair(machine, &measured)?, measured.key)));
    let by_contention = contention(evidence).into_iter().find(|found| found.shared == Some(true));
    if !by_model && by_transfers.is_none() && by_contention.is_none() {
        return Some(Vec::new());
    }
    let levels: std::collections::BTreeSet<u32> = machine.caches.iter().map(|cache| cache.level).collect();
    let levels: Vec<String> = levels.iter().map(|level| format!("L{level}")).collect();
    let listed = if levels.is_empty() { "none".to_string() } else { levels.join(", ") };
    let by_transfers = by_transfers.as_ref();
    let passed = by_transfers.map(|(((one, other), ns), key)| {
        Fact::new(format!("line transfer between CPU {one} and CPU {other}"), figure(*ns, "ns"), key)
    });
    let processor = clipped(machine.cpus.model.as_deref().unwrap_or(""));
    let headline = match by_transfers {
        Some(((_, ns), _)) => format!(
            "The host hides a shared cache: lines pass between cores in {}. Compare pinned figures only.",
            figure(*ns, "ns")
        ),
        None => format!(
            "The host hides the processor's L3 from all {} CPUs. Compare pinned figures only.",
            machine.cpus.online.len()
        ),
    };
    Some(vec![Finding::warning(HIDDEN_LLC.id, headline)
        .cause("The host does not pass its cache topology on, so the scheduler's search for an idle CPU ends at one core. \
                Kernel 3.10 then keeps tasks that wake each other together; 5.10 to 6.12 spread them.")
        .facts(passed)
        .facts(by_model.then(|| Fact::new("processor", processor, "/proc/cpuinfo")))
        .fact("levels of cache that the kernel reports", listed, CACHES)
        .confirm("lscpu -C; assay run --only memory.core-to-core --profile standard --new")
        .advice("Compare guests by pinned figures only. Have the host pass its caches (QEMU: -cpu \
                 host,l3-cache=on,host-cache-info=on with its sockets, cores and threads).")])
}

/// The loads of one CPU undisturbed, after another CPU filled the cache, and after it did so
/// itself.
fn contention_facts(found: &Contention) -> Vec<Fact> {
    let Contention { cpus: (one, other), bytes, ns, key, .. } = found;
    let labels = [
        format!("CPU {one}: a load from {} in the cache", super::words::bytes(*bytes)),
        format!("after CPU {other} had read as much"),
        "after it had read as much itself".to_string(),
    ];
    labels.into_iter().zip(ns).map(|(label, ns)| Fact::new(label, figure(*ns, "ns"), key)).collect()
}

/// The pair with the median transfer time, of the pairs of different cores that are as near as in
/// one cache.
fn shared_pair(machine: &Machine, measured: &Measured) -> Option<((u32, u32), f64)> {
    let mut near: Vec<((u32, u32), f64)> = measured
        .pairs
        .medians()
        .into_iter()
        .map(|(pair, ln)| (pair, ln.exp()))
        .filter(|((one, other), ns)| cores_among(machine, [*one, *other]) == 2 && SHARED_NS.contains(ns))
        .collect();
    near.sort_by(|one, other| one.1.total_cmp(&other.1));
    near.get(near.len() / 2).copied()
}

const NOT_SHARED: Rule = Rule {
    id: ids::rule::LLC_NOT_SHARED,
    title: "CPUs that do not share their reported last-level cache",
    topic: "topology",
    meaning: "The kernel reports one L3 for CPUs of several dies or sockets. The scheduler then moves tasks between CPUs without a \
             common cache, as if their data were near. Sizes by last-level cache are wrong.",
    action: "Keep tasks that share data inside one measured group. In a guest have the host pass its sockets and caches. See it: \
             assay run --only memory.core-to-core,memory.llc-sharing --profile standard --new",
    when: "One L3 is listed for several sockets. Or lines take 20 ns or more inside groups of its CPUs and 80 ns or more between \
             them. Or a CPU keeps its data while another reads as much.",
    how: "Groups of line transfers split the CPUs of one reported cache, each part with two cores or more; below 20 ns CPUs are \
             threads of a core (docs/method/topology.md has the error rates). A CPU keeps its data if the other CPU's reading does \
             at most 15 % of what its own does, in nine passes of ten.",
    calm: "",
    looked_at: "line transfers",
    source: file!(),
    check: not_shared,
};

fn not_shared(evidence: &Evidence) -> Option<Vec<Finding>> {
    if evidence.machine.caches.is_empty() {
        return None;
    }
    let found = [over_packages(evidence.machine), over_groups(evidence), apart_by_contention(evidence)];
    let finish = |draft: FindingDraft| {
        draft
            .confirm("assay run --only memory.core-to-core,memory.llc-sharing --profile standard --new")
            .advice(
                "Keep tasks that share data inside one measured group. In a guest have the host pass its sockets and caches.",
            )
    };
    Some(found.into_iter().flatten().map(finish).collect())
}

/// An L3 that the kernel lists for CPUs of several packages.
fn over_packages(machine: &Machine) -> Option<FindingDraft> {
    let packages = machine.cpus.packages.as_deref().unwrap_or_default();
    let over = |cpus: &CpuSet| packages.iter().filter(|package| !package.cpus.is_disjoint(cpus)).count();
    let mut third =
        machine.caches.iter().filter(|cache| cache.level >= 3 && cache.kind != CacheKind::Instruction);
    let cache = third.find(|cache| over(&cache.cpus) > 1)?;
    let sockets = over(&cache.cpus);
    let headline =
        format!("The kernel reports one L{} for {sockets} sockets. No cache spans sockets.", cache.level);
    Some(
        Finding::warning(NOT_SHARED.id, headline)
            .cause("No cache spans sockets. Firmware or the host describes one for all of them.")
            .fact("CPUs that share it, as the kernel reports", &cache.cpus, CACHES)
            .fact(
                "sockets of these CPUs",
                sockets,
                "/sys/devices/system/cpu/cpu*/topology/physical_package_id",
            ),
    )
}

/// An L3 whose CPUs fall into several groups by transfers of lines.
fn over_groups(evidence: &Evidence) -> Option<FindingDraft> {
    let (clusters, key) = groups(evidence)?;
    let Answer::Levels(levels) = &clusters.answer else { return None };
    let (cpus, level, parts) = split_cache(evidence.machine, levels)?;
    let (within, beyond) = (figure(level.within, "ns"), figure(level.beyond, "ns"));
    let headline = format!(
        "CPUs {cpus} do not share one L3: lines take {beyond} between {} groups, {within} inside",
        parts.len()
    );
    let cause = if guest(evidence.machine) {
        "The guest's CPUs run on several caches or sockets of the host, which reports one."
    } else {
        "The cache consists of parts (clusters, tiles), or firmware describes it wrongly."
    };
    Some(
        Finding::warning(NOT_SHARED.id, headline)
            .cause(cause)
            .fact("groups by transfers of lines", words(&parts), &key)
            .fact("inside the groups", within, &key)
            .fact("between them", beyond, &key)
            .fact("noise between passes", percent(clusters.noise.unwrap_or(0.0)), &key)
            .fact("CPUs that share it, as the kernel reports", &cpus, CACHES),
    )
}

/// Two CPUs of one reported L3 that do not evict each other's data.
fn apart_by_contention(evidence: &Evidence) -> Option<FindingDraft> {
    let claimed = |one: u32, other: u32| {
        let cache = evidence.machine.last_level_cache(one);
        cache.is_some_and(|cache| cache.level >= 3 && cache.cpus.contains(other))
    };
    let apart = |found: &Contention| found.shared == Some(false) && claimed(found.cpus.0, found.cpus.1);
    let found = contention(evidence).into_iter().find(apart)?;
    let (one, other) = found.cpus;
    Some(
        Finding::warning(
            NOT_SHARED.id,
            format!("CPUs {one} and {other} share no L3, although the kernel reports one for both"),
        )
        .cause(
            "What one CPU reads does not evict the other's data from the cache that both are reported to share.",
        )
        .facts(contention_facts(&found)),
    )
}

/// A reported cache whose CPUs fall into several groups at a level, with the groups of its CPUs.
fn split_cache<'a>(machine: &Machine, levels: &'a [Level]) -> Option<(CpuSet, &'a Level, Vec<Vec<u32>>)> {
    let apart = |level: &&Level| level.within >= SHARED_NS.start && level.beyond >= ELSEWHERE_NS;
    levels.iter().filter(apart).find_map(|level| {
        reported_llcs(machine).into_iter().find_map(|cpus| {
            let own = |group: &Vec<u32>| -> Vec<u32> {
                group.iter().copied().filter(|cpu| cpus.contains(*cpu)).collect()
            };
            let parts: Vec<Vec<u32>> = level.groups.iter().map(own).filter(|part| !part.is_empty()).collect();
            let whole = parts.iter().all(|part| cores_among(machine, part.iter().copied()) > 1);
            (parts.len() > 1 && whole).then_some((cpus, level, parts))
        })
    })
}

const HIDDEN_SMT: Rule = Rule {
    id: ids::rule::HIDDEN_SMT,
    title: "Threads of one core look like cores",
    topic: "SMT",
    meaning: "The host shows threads of one core as cores of their own. Two busy tasks can land on one core while others idle: each \
             runs at half to three quarters of its speed. Scaling by cores looks poor.",
    action: "Pin one busy task per pair, or have the host pass its threads (QEMU: -smp threads=2, pinned CPUs). See it: assay run \
             --only cpu.pair-slowdown --profile standard --new",
    when: "Two CPUs of different reported cores slow each other by 1.25 times or more while both compute in registers. With two \
             CPUs only, lines must also pass in less than 20 ns.",
    how: "The slowdown lies beyond four standard errors of the median of passes, is 1.2 times in four passes of five, and exceeds \
             that of most pairs. Threads of a core must all slow each other. Two CPUs alone may be slowed the same way by a \
             quota, or by a host that has one core's time for both. docs/method/topology.md has the error rates.",
    calm: "no SMT siblings unreported",
    looked_at: "pairwise slowdown",
    source: file!(),
    check: hidden_smt,
};

fn siblings_by_kernel(machine: &Machine, one: u32, other: u32) -> bool {
    machine.core_of(one).is_some_and(|core| core.cpus.contains(other))
}

fn hidden_smt(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = evidence.machine;
    let (found, key) = shared_cores(evidence)?;
    let close = transfers(evidence);
    let pairs: Vec<((u32, u32), f64)> = match found.cannot_tell {
        None => found.siblings.iter().map(|(pair, slowdown)| (*pair, *slowdown)).collect(),
        Some(_) => two_threads(&found, close.as_ref(), evidence)?,
    };
    let hidden: Vec<((u32, u32), f64)> =
        pairs.into_iter().filter(|((one, other), _)| !siblings_by_kernel(machine, *one, *other)).collect();
    let Some(((one, other), slowdown)) = hidden.first().copied() else { return Some(Vec::new()) };
    let line = close.as_ref().and_then(|close| Some((close.pairs.value((one, other))?, &close.key)));
    let cores =
        machine.cpus.cores.as_ref().map_or("not reported".to_string(), |cores| cores.len().to_string());
    let headline = match hidden.len() {
        1 => format!(
            "CPUs {one} and {other} are threads of one core ({slowdown:.2} × slower together). Nothing reports it."
        ),
        count => format!(
            "{count} pairs of CPUs are threads of one core ({slowdown:.2} × slower together). Nothing reports it."
        ),
    };
    Some(vec![Finding::warning(HIDDEN_SMT.id, headline)
        .cause(match guest(machine) {
            true => "The host gives the guest threads of its cores and shows each as a core of its own.",
            false => "Firmware or the kernel does not report which CPUs are threads of one core.",
        })
        .fact("pairs that slow each other", pair_words(hidden.iter().map(|(pair, _)| *pair)), &key)
        .fact(format!("CPU {one} and CPU {other}"), format!("{slowdown:.2} times as long together"), &key)
        .facts(line.map(|(ns, key)| Fact::new("line transfer between them", figure(ns, "ns"), key)))
        .fact("cores that the kernel reports", cores, CORES)
        .confirm(format!("lscpu -e=CPU,CORE; {SLOWDOWNS}"))
        .advice("Pin one busy task per pair, or have the host pass its threads (QEMU: -smp threads=2 with pinned CPUs).")])
}

/// For a run of two CPUs that slow each other: the pair if lines pass between them as fast as
/// inside a core. `None` if that is unknown.
fn two_threads(
    found: &Siblings,
    close: Option<&Measured>,
    evidence: &Evidence,
) -> Option<Vec<((u32, u32), f64)>> {
    let [one, other] = found.cpus[..] else { return None };
    let line = close?.pairs.value((one, other))?;
    let slowdown = super::distances::slowdowns(evidence)?.pairs.value((one, other))?;
    (line < SHARED_NS.start).then(|| vec![((one, other), slowdown)])
}

fn pair_words(pairs: impl Iterator<Item = (u32, u32)>) -> String {
    at_most(8, &pairs.map(|(one, other)| format!("{one} and {other}")).collect::<Vec<_>>())
}

const WRONG_SIBLINGS: Rule = Rule {
    id: ids::rule::WRONG_SIBLINGS,
    title: "SMT siblings are numbered wrongly",
    topic: "SMT",
    meaning: "The scheduler fills cores before threads, and people pin by the list of siblings. If that list is wrong, both do the \
             opposite of what they mean.",
    action: "Pin by the measured pairs. Report the list to the maker of the firmware or the operator of the host. See it: lscpu \
             -e=CPU,CORE,SOCKET; assay run --only cpu.pair-slowdown --new",
    when: "The kernel's files contradict each other about cores or packages. Or reported siblings do not slow each other in \
             registers (below 1.25 times); a warning if other pairs do.",
    how: "Below 1.25 times counts beyond four standard errors. Old kernels contradict themselves about the CPUs of a package.",
    calm: "",
    looked_at: "pairwise slowdown",
    source: file!(),
    check: wrong_siblings,
};

fn wrong_siblings(evidence: &Evidence) -> Option<Vec<Finding>> {
    let machine = evidence.machine;
    machine.cpus.cores.as_ref()?;
    let finish = |draft: FindingDraft| {
        draft
            .confirm(format!("lscpu -e=CPU,CORE,SOCKET; {SLOWDOWNS}"))
            .advice("Pin by the measured pairs. Report the list to the maker of the firmware or the operator of the host.")
    };
    Some([contradiction(machine), not_siblings(evidence)].into_iter().flatten().map(finish).collect())
}

/// Kernel files that contradict each other about cores or packages.
fn contradiction(machine: &Machine) -> Option<FindingDraft> {
    let about = ["sibling masks", "SMT siblings are", "share a core by the masks", "the masks are taken"];
    let remark = machine.remarks.iter().find(|remark| about.iter().any(|words| remark.contains(words)))?;
    let headline = "The kernel's topology files contradict each other, such as `core_cpus_list`";
    Some(
        Finding::note(WRONG_SIBLINGS.id, headline)
            .cause("The kernel's masks and numbers come from different code. One of them is wrong.")
            .fact("contradiction", clipped(remark), "/sys/devices/system/cpu/cpu*/topology"),
    )
}

/// Pairs of reported siblings that do not slow each other.
fn not_siblings(evidence: &Evidence) -> Option<FindingDraft> {
    let machine = evidence.machine;
    let (found, key) = shared_cores(evidence)?;
    let known = |pair: &(u32, u32)| siblings_by_kernel(machine, pair.0, pair.1);
    let wrong: Vec<_> = found.apart.iter().filter(|(pair, _)| known(pair)).collect();
    let others: Vec<_> = found.siblings.keys().copied().filter(|pair| !known(pair)).collect();
    let ((one, other), slowdown) = wrong.first()?;
    let pairs = format!("{} pairs of reported SMT siblings do not share a core", wrong.len());
    let (severity, headline) = match others.len() {
        0 => (Severity::Note, pairs),
        count => (Severity::Warning, format!("{pairs}, {count} others do. Pin by the latter.")),
    };
    let slow = || Fact::new("slow each other", pair_words(others.iter().copied()), &key);
    Some(
        Finding::of(WRONG_SIBLINGS.id, severity, headline)
            .cause(match guest(machine) {
                true => "The guest's threads are not pinned to threads of one core of the host.",
                false => "Firmware numbers threads in another way than it reports.",
            })
            .fact("reported siblings", pair_words(wrong.iter().map(|(pair, _)| **pair)), CORES)
            .fact(format!("CPU {one} and CPU {other}"), format!("{slowdown:.2} times as long together"), &key)
            .facts((!others.is_empty()).then(slow)),
    )
}

const FLOATING: Rule = Rule {
    id: ids::rule::FLOATING_VCPUS,
    title: "The host moves this guest's CPUs",
    topic: "topology",
    meaning: "A host that does not pin a guest's CPUs moves them between its own. Pinning inside the guest has no effect, and \
             figures of two tasks have several values. No reported topology can be true.",
    action: "Have the host pin the guest's CPUs (virsh vcpupin), then measure again. Until then compare many runs. See it: assay \
             run --only memory.core-to-core --profile standard --new",
    when: "A guest has four CPUs or more, and two passes each show clear groups by line transfers. Three CPUs or more changed \
             neighbours between them.",
    how: "Groups are clear if transfers between them take 1.5 times as long at least. A CPU changed neighbours if it lost one and \
             gained another: steal makes pairs slower, never faster. docs/method/topology.md has the error rates.",
    calm: "",
    looked_at: "line transfers",
    source: file!(),
    check: floating,
};

fn floating(evidence: &Evidence) -> Option<Vec<Finding>> {
    let (clusters, key) = groups(evidence)?;
    if clusters.cpus.len() < 4 {
        return None;
    }
    let Answer::Floating([one, other]) = &clusters.answer else { return Some(Vec::new()) };
    if evidence.machine.hypervisor == Hypervisor::None {
        return Some(Vec::new());
    }
    let headline = format!(
        "The host moved this guest's {} CPUs during the run. Pinning inside the guest has no effect.",
        clusters.cpus.len()
    );
    Some(vec![Finding::warning(FLOATING.id, headline)
        .cause("The host's scheduler moves the guest's CPUs between its own cores, caches or sockets.")
        .fact("groups in one pass", words(one), &key)
        .fact("groups in another", words(other), &key)
        .confirm(TRANSFERS)
        .advice("Have the host pin the guest's CPUs (virsh vcpupin, taskset of each vCPU thread), then measure again. Until \
                 then compare many runs.")])
}

//! Whatever a snapshot says, the machine that is made of it does not contradict itself, can be
//! shown, and can be planned for.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ::machine::{Cache, CacheKind, Core, Machine};
use ::report::text_machine::{Style, draw};
use bench::placement::{Distance, Placements};
use bench::{self, Depth, Scope};
use model::run_file;
use model::{BLANKED, CpuSet, Header, Planned, Record, RunClock, SCHEMA, Snapshot};
use serde_json::Value;
use session::plan::{self, PROFILES};

use super::{cpuset, visible};

/// A file of `assay machine --save`.
pub fn snapshot(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(data) else { return };
    check_all(&snapshot);
}

/// The machine of a snapshot, after everything that is done with machines was done with it.
pub fn check_all(snapshot: &Snapshot) -> Machine {
    let mut blanked = snapshot.clone();
    blanked.blank();
    let through_a_file = |snapshot: &Snapshot| {
        let text = serde_json::to_string(snapshot).expect("every snapshot can be written");
        let mut again: Snapshot = serde_json::from_str(&text).expect("and read back");
        again.entries.remove(BLANKED);
        again
    };
    let again = through_a_file(snapshot);
    blanked.entries.remove(BLANKED);
    assert!(again == blanked, "a snapshot changed on its way through a file");
    assert!(through_a_file(&again) == again, "what is blanked is blanked again");
    let machine = Machine::from(snapshot);
    consistent(&machine);
    numbers(&machine);
    let json = serde_json::to_string(&machine).expect("every machine can be written");
    let json: Value = serde_json::from_str(&json).expect("as JSON");
    assert_eq!(json["cpus"]["online"], machine.cpus.online.to_string());
    shown(&machine);
    planned(&machine, &again);
    machine
}

/// Where the text contradicts itself, a remark says so; everywhere else the parts fit together.
pub fn consistent(machine: &Machine) {
    let cpus = &machine.cpus;
    let odd = !machine.remarks.is_empty();
    assert!(cpus.online.is_disjoint(&cpus.offline), "online and offline");
    assert!(cpus.allowed.is_subset(&cpus.online), "allowed but not online");
    [&cpus.online, &cpus.offline, &cpus.isolated, &cpus.nohz_full].into_iter().for_each(cpuset::round_trips);

    let cores: Vec<&Core> = cpus.cores.iter().flatten().collect();
    let parts = |what: &str, sets: Vec<&CpuSet>, whole: bool| {
        let mut seen = CpuSet::default();
        for set in sets {
            assert!(!set.is_empty() && set.is_subset(&cpus.online), "{what} {set}");
            assert!(set.is_disjoint(&seen), "{what} {set} overlaps another");
            set.iter().for_each(|cpu| seen.insert(cpu));
        }
        assert!(!whole || odd || seen == cpus.online, "not every CPU is in a {what}: {seen}");
    };
    parts("core", cores.iter().map(|core| &core.cpus).collect(), cpus.cores.is_some());
    let packages = cpus.packages.iter().flatten();
    parts("package", packages.map(|package| &package.cpus).collect(), cpus.packages.is_some());
    parts("die", cpus.dies.iter().flatten().collect(), false);
    parts("cluster", cpus.clusters.iter().flatten().collect(), false);
    rising("packages", cpus.packages.iter().flatten().map(|package| package.id));
    rising("nodes", machine.nodes.iter().map(|node| node.id));
    assert!(
        cpus.kinds.values().all(|kind| kind.is_subset(&cpus.online)),
        "kinds of CPUs that are not online"
    );

    let mut levels: BTreeMap<(u32, CacheKind), CpuSet> = BTreeMap::new();
    for Cache { level, kind, cpus: sharing, .. } in &machine.caches {
        assert!(!sharing.is_empty() && sharing.is_subset(&cpus.online), "L{level} of {sharing}");
        let seen = levels.entry((*level, *kind)).or_default();
        assert!(odd || seen.is_disjoint(sharing), "CPUs {sharing} are in two L{level}");
        sharing.iter().for_each(|cpu| seen.insert(cpu));
    }
    let mut seen = CpuSet::default();
    for node in &machine.nodes {
        assert!(node.cpus.is_subset(&cpus.online) && node.offline.is_disjoint(&cpus.online));
        assert!(odd || node.cpus.is_disjoint(&seen), "CPUs {} are in two nodes", node.cpus);
        assert!(node.distances.is_empty() || node.distances.len() == machine.nodes.len());
        node.cpus.iter().for_each(|cpu| seen.insert(cpu));
    }
    let summary = machine.summary();
    assert_eq!(summary.cpus.unwrap_or(0), cpus.online.len());
    let threads = summary.threads_per_core.unwrap_or_default();
    assert!(threads.iter().all(|threads| (1..=cpus.online.len()).contains(threads)));
    assert_eq!(machine.is_blank(), machine.is_blank() && cpus.online.is_empty());
}

fn rising<T: PartialOrd + Debug>(what: &str, numbers: impl Iterator<Item = T>) {
    let numbers: Vec<T> = numbers.collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{what} {numbers:?}");
}

/// Numbers that JSON can hold, inside what they can be.
fn numbers(machine: &Machine) {
    let limits = &machine.limits;
    assert!(limits.cpu_quota.is_none_or(|quota| quota.is_finite() && quota > 0.0), "{limits:?}");
    let load = &machine.load;
    assert!(load.uptime_s.is_none_or(f64::is_finite), "{load:?}");
    assert!(load.average.is_none_or(|three| three.into_iter().all(f64::is_finite)), "{load:?}");
    for share in [load.psi_cpu, load.psi_memory, load.psi_io] {
        assert!(share.is_none_or(|share| (0.0..=100.0).contains(&share)), "{load:?}");
    }
}

/// However odd the machine: a picture as wide as the terminal, of visible characters, that a person
/// can still read.
fn shown(machine: &Machine) {
    for (unicode, width) in [(true, 80), (false, 40)] {
        let text = draw(machine, Style { color: false, unicode, width });
        visible::check_width("the picture", &text, width);
        let lines = text.lines().count();
        assert!(lines <= 700, "{lines} lines");
    }
}

/// A plan for the machine, and the head of a run file that holds both.
fn planned(machine: &Machine, snapshot: &Snapshot) {
    let placements = Placements::of(machine);
    let usable = placements.cpus();
    assert!(usable.is_subset(&machine.cpus.online.union(&machine.cpus.allowed)));
    assert_eq!(usable.is_empty(), machine.cpus.online.is_empty());
    for (distance, pair) in placements.pairs(["ping", "pong"]) {
        let Ok(pair) = pair else { continue };
        let ends: Vec<u32> = pair.seats.iter().filter_map(|seat| seat.cpus.first()).collect();
        assert!(ends.len() == 2 && ends.iter().all(|cpu| usable.contains(*cpu)), "{pair:?}");
        assert_eq!(ends[0] == ends[1], distance == Distance::SameCpu);
        assert_eq!(placements.distance(ends[0], ends[1]), distance);
        assert_eq!(placements.distance(ends[1], ends[0]), distance);
    }
    for profile in [&PROFILES[0], &PROFILES[2]] {
        let scope = Scope {
            machine,
            placements: &placements,
            depth: profile.depth,
            memory_bytes: plan::memory_budget(machine, profile.depth),
            windows: profile.windows,
            all: false,
        };
        let benches: Vec<_> = plan::shown().collect();
        let cases = plan::make(&scope, &benches, profile);
        cases.iter().for_each(|case| possible(case, &scope, &usable));
        if profile.depth == Depth::Quick {
            head(machine, snapshot, cases, usable.clone());
        }
    }
}

/// A point for each CPU of the largest machine that Linux knows, with room; pairs of CPUs are
/// sampled.
const POINTS_MOST: usize = 1 << 17;

fn possible(planned: &Planned, scope: &Scope, usable: &CpuSet) {
    assert!(planned.seconds.is_finite() && planned.seconds >= 0.0, "{planned:?}");
    if planned.unmet.is_some() {
        return;
    }
    assert!(!usable.is_empty() && planned.case.placement.cpus().is_subset(usable), "{planned:?}");
    assert!(planned.memory_bytes <= scope.memory_bytes, "{planned:?}");
    let points = bench::find(&planned.case.bench).map(|bench| (bench.points)(&planned.case));
    assert!(points.is_some_and(|points| (1..=POINTS_MOST).contains(&points.len())), "{planned:?}");
}

/// What is written about this machine at the head of a run file can be read again.
fn head(machine: &Machine, snapshot: &Snapshot, plan: Vec<Planned>, allowed_cpus: CpuSet) {
    let header = Header {
        schema: SCHEMA,
        assay: "0".into(),
        host: machine.host.clone().unwrap_or_default(),
        labels: Default::default(),
        started: "1970-01-01T00:00:00Z".into(),
        boot_id: machine.load.boot_id.clone(),
        uptime_s: machine.load.uptime_s,
        seed: 1,
        profile: "quick".into(),
        budget_s: 75.0,
        precision: 0.03,
        allowed_cpus,
        clock: RunClock {
            source: "tsc".into(),
            ticks_per_ns: 1.0,
            resolution_ns: 1.0,
            cost_ns: 1.0,
            why: None,
        },
        pretend: None,
        plan_id: plan::plan_id(&plan, &PROFILES[0]),
        plan,
        sweep: None,
        factors: None,
        catalogue: Vec::new(),
        snapshot: snapshot.clone(),
    };
    let record = Record::Header(Box::new(header));
    let text = serde_json::to_vec(&record).expect("every header can be written");
    let run = run_file::parse(text.as_slice()).expect("and read back");
    assert!(Record::Header(Box::new(run.header)) == record, "a header changed on its way through a file");
}

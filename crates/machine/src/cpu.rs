//! Logical CPUs: which run, which may be used, and how they form cores, dies and packages.

use std::collections::{BTreeMap, BTreeSet};

use model::vocabulary::host as ids;
use model::{CpuSet, Snapshot};

use super::cpuinfo::CpuInfo;
use super::siblings::{BOOK, CLUSTER, CORE, DIE, DRAWER, PACKAGE, contradiction, number, sets};
use super::text::{CPUS, contradict, field, groups, named_set};
use super::topology::{Core, Cpus, Numbers, Package};
use super::{arm, cpuid, kinds, packages};

pub(super) fn parse(snapshot: &Snapshot, info: &CpuInfo, remarks: &mut Vec<String>) -> Cpus {
    let (online, offline) = online(snapshot, info, remarks);
    let list = |path: &str| snapshot.text(path).and_then(CpuSet::parse_list).unwrap_or_default();
    let mut cpus = Cpus {
        allowed: online.clone(),
        isolated: list(&format!("{CPUS}/isolated")),
        nohz_full: list(&format!("{CPUS}/nohz_full")),
        smt_control: snapshot.text(&format!("{CPUS}/smt/control")).map(str::to_string),
        online,
        offline,
        ..Cpus::default()
    };
    identify(&mut cpus, snapshot, info);
    remark_contradictions(snapshot, &cpus.online, remarks);
    (cpus.packages, cpus.clusters) = packages::parse(snapshot, info, &cpus.online, remarks);
    cpus.cores = cores(snapshot, &cpus, remarks).or_else(|| cores_of_cpuinfo(info, &cpus, remarks));
    cpus.dies = dies(snapshot, &cpus);
    if cpus.cores.is_none() && cpus.packages.is_none() {
        cpuid::complete_cpus(&mut cpus, snapshot, remarks);
    }
    cpus.kinds = kinds::parse(snapshot, info, &cpus);
    cpus
}

/// CPUs online and offline. The CPUs' own folders, their `online` files and the kernel's list must
/// all agree to an online CPU: a captured tree may have been cut down in one of them only.
fn online(snapshot: &Snapshot, info: &CpuInfo, remarks: &mut Vec<String>) -> (CpuSet, CpuSet) {
    let mut folders: CpuSet = snapshot.numbered(CPUS, "cpu").into_iter().collect();
    // Folders that hold no file worth keeping are only in the reader's list.
    folders = folders
        .union(&snapshot.text(ids::probe::FOLDERS_CPU).and_then(CpuSet::parse_list).unwrap_or_default());
    let listed = snapshot.text(&format!("{CPUS}/online")).and_then(CpuSet::parse_list);
    if let Some(text) = snapshot.text(&format!("{CPUS}/online")).filter(|_| listed.is_none()) {
        let text: String = text.chars().take(60).collect();
        remarks.push(format!("cannot parse the list of online CPUs: {text:?}"));
    }
    let listed = listed.filter(|set| !set.is_empty());
    if folders.is_empty() {
        let told = listed.or_else(|| Some(info.cpus()).filter(|set| !set.is_empty()));
        return (told.unwrap_or_else(|| cpuid::cpus(snapshot)), CpuSet::default());
    }
    let running = info.cpus();
    let off = |cpu: &u32| match snapshot.text(&format!("{CPUS}/cpu{cpu}/online")) {
        Some(state) => state == "0",
        // No file says so, but a running CPU has a topology folder or at least its block in
        // /proc/cpuinfo.
        None if listed.is_none() && !running.is_empty() && !running.contains(*cpu) => {
            snapshot.below(&format!("{CPUS}/cpu{cpu}/topology")).next().is_none()
        }
        None => false,
    };
    let switched_off: CpuSet = folders.iter().filter(off).collect();
    let mut online = folders.difference(&switched_off);
    if let Some(listed) = listed {
        let missing = listed.difference(&folders);
        if !missing.is_empty() {
            remarks.push(format!("CPUs {missing} are listed as online, but sysfs has no folder for them"));
        }
        let both = online.intersection(&listed);
        if both.is_empty() {
            remarks.push(format!("no CPU folder in sysfs matches the list of online CPUs ({listed})"))
        } else {
            online = both
        }
    }
    let extra = info.cpus().difference(&online);
    if !extra.is_empty() {
        remarks.push(format!("/proc/cpuinfo also lists CPUs {extra}, which are not online"));
    }
    let offline = folders.difference(&online);
    (online, offline)
}

fn identify(cpus: &mut Cpus, snapshot: &Snapshot, info: &CpuInfo) {
    let owned = |value: Option<&str>| value.map(str::to_string);
    cpus.model = owned(info.any(&["model name", "Model Name", "cpu model", "cpu", "uarch"]));
    cpus.vendor = owned(info.any(&["vendor_id", "vendor", "mvendorid"]));
    cpus.microcode = owned(info.any(&["microcode"]));
    let number = |key: &str| info.any(&[key]).and_then(|text| text.parse().ok());
    cpus.numbers = number("cpu family")
        .and_then(|family| Some(Numbers { family, model: number("model")?, stepping: number("stepping")? }));
    let flags = info.any(&["flags", "Features", "features", "isa", "hart isa"]).unwrap_or("");
    cpus.flags = flags.split_whitespace().map(str::to_string).collect();
    let part = info.any(&["CPU implementer"]).zip(info.any(&["CPU part"]));
    cpus.part_name = part.and_then(|(by, part)| arm::name(by, part)).map(str::to_string);
    cpus.part = part.map(|(by, part)| format!("{by} {part}"));
    cpus.architecture = owned(snapshot.text("/proc/sys/kernel/arch"))
        .or_else(|| owned(snapshot.text(ids::probe::ARCHITECTURE)))
        .or_else(|| architecture(cpus, snapshot, info).map(str::to_string));
    cpuid::identify(cpus, snapshot);
}

/// What the shape of /proc/cpuinfo gives away.
fn architecture(cpus: &Cpus, snapshot: &Snapshot, info: &CpuInfo) -> Option<&'static str> {
    let has = |flag: &str| cpus.flags.iter().any(|known| known == flag);
    let vendor = cpus.vendor.as_deref().unwrap_or("");
    let version = snapshot.text("/proc/version").unwrap_or("");
    if info.any(&["arch"]) == Some("IA-64") {
        return Some("ia64");
    }
    if vendor == "IBM/S390" {
        return Some("s390x");
    }
    if info.x86_flags().is_some() {
        return Some(if has("lm") { "x86_64" } else { "i686" });
    }
    if info.any(&["CPU implementer"]).is_some() {
        let wide = matches!(info.any(&["CPU architecture"]), Some("8" | "AArch64"));
        return Some(if wide { "aarch64" } else { "arm" });
    }
    if info.any(&["isa", "hart isa"]).is_some_and(|isa| isa.starts_with("rv64")) {
        return Some("riscv64");
    }
    if info.any(&["platform", "cpu"]).is_some_and(|text| text.contains("POWER") || text.contains("pSeries")) {
        return version.contains("ppc64le").then_some("ppc64le").or(Some("ppc64"));
    }
    cpus.model.as_deref().is_some_and(|model| model.contains("Loongson")).then_some("loongarch64")
}

/// Says where a mask and a list of one set differ, of which the masks are taken, or the newer and
/// the older names, and where CPUs' own sets overlap.
fn remark_contradictions(snapshot: &Snapshot, online: &CpuSet, remarks: &mut Vec<String>) {
    for names in [CORE, PACKAGE, DIE, CLUSTER, BOOK, DRAWER] {
        let (mut differing, mut files) = (CpuSet::default(), None);
        for cpu in online.iter() {
            if let Some(pair) = contradict(snapshot, &format!("{CPUS}/cpu{cpu}/topology"), names) {
                differing.insert(cpu);
                files = Some(pair);
            }
        }
        if let Some((mask, list)) = files {
            remarks.push(format!(
                "CPUs {differing}: {mask} and {list} contradict each other; Assay uses the masks"
            ));
        }
        if let [(newer, _), (older, _)] = names {
            let differing: CpuSet = online.iter().filter(|cpu| is_renamed(snapshot, *cpu, names)).collect();
            if !differing.is_empty() {
                remarks.push(format!(
                    "CPUs {differing}: {newer} and {older}, its older name, contradict each other; {newer} is used"
                ));
            }
        }
        // Who the siblings of threads are is said with the cores.
        if let Some([one, other]) = contradiction(snapshot, online, names).filter(|_| names != CORE) {
            remarks.push(format!(
                "CPUs contradict each other in {}: {one}, {other}",
                file(snapshot, online, names)
            ));
        }
    }
}

/// Whether the first and the second name of a set of this CPU hold different ones.
fn is_renamed(snapshot: &Snapshot, cpu: u32, names: &[(&str, &str)]) -> bool {
    let place = format!("{CPUS}/cpu{cpu}/topology");
    let told = |at: usize| named_set(snapshot, &place, names.get(at..=at)?);
    told(0).zip(told(1)).is_some_and(|(newer, older)| {
        newer != older && newer.parse().zip(older.parse()).is_some_and(|(newer, older)| newer != older)
    })
}

/// The name of the first of these files that is there.
fn file<'a>(snapshot: &Snapshot, online: &CpuSet, names: &[(&'a str, &'a str)]) -> &'a str {
    let first = online.first().unwrap_or(0);
    let is_there = |file: &str| snapshot.text(&format!("{CPUS}/cpu{first}/topology/{file}")).is_some();
    let all = names.iter().flat_map(|(mask, list)| [*mask, *list]);
    all.into_iter().find(|file| is_there(file)).unwrap_or(names[0].0)
}

fn cores(snapshot: &Snapshot, cpus: &Cpus, remarks: &mut Vec<String>) -> Option<Vec<Core>> {
    let groups = groups(&cpus.online, |cpu| named_set(snapshot, &format!("{CPUS}/cpu{cpu}/topology"), CORE));
    if groups.is_empty() {
        return None;
    }
    if groups.iter().any(|(said, members)| said != members) {
        remarks.push("CPUs report contradictory SMT siblings: the SMT siblings are unknown".to_string());
    }
    let core = |members: CpuSet| {
        let of = |file| members.first().and_then(|cpu| number(snapshot, cpu, file)).filter(|id| *id >= 0);
        let package = |one: &&Package| members.first().is_some_and(|cpu| one.cpus.contains(cpu));
        let package = cpus.packages.iter().flatten().find(package).map(|one| one.id);
        Core { package, die: of("die_id"), core_id: of("core_id"), cpus: members }
    };
    let mut cores: Vec<Core> = groups.into_values().map(core).collect();
    cores.sort_by_key(|core| core.cpus.first());
    let parted = |core: &&Core| {
        let holders = cpus.packages.iter().flatten().filter(|one| !one.cpus.is_disjoint(&core.cpus));
        holders.count() > 1
    };
    if let Some(core) = cores.iter().find(parted) {
        remarks.push(format!(
            "CPUs {} share a core by the masks of siblings, but their ids are of different packages",
            core.cpus
        ));
    }
    let unknown = cpus.online.difference(&CpuSet::union_of(cores.iter().map(|core| &core.cpus)));
    if !unknown.is_empty() {
        remarks.push(format!("the SMT siblings of CPUs {unknown} are unknown"));
    }
    Some(cores)
}

/// Cores by (physical id, core id) of /proc/cpuinfo, only where each package then has as many as it
/// says itself: core ids repeat on some machines.
fn cores_of_cpuinfo(info: &CpuInfo, cpus: &Cpus, remarks: &mut Vec<String>) -> Option<Vec<Core>> {
    let mut cores: BTreeMap<(i64, i64), CpuSet> = BTreeMap::new();
    let mut claimed: BTreeMap<i64, usize> = BTreeMap::new();
    for cpu in cpus.online.iter() {
        let package = info.of(cpu, "physical id")?.parse().ok()?;
        let core = info.of(cpu, "core id")?.parse().ok()?;
        cores.entry((package, core)).or_default().insert(cpu);
        claimed.insert(package, info.of(cpu, "cpu cores")?.parse().ok()?);
    }
    let found = |package: &i64| cores.keys().filter(|(of, _)| of == package).count();
    if cores.is_empty() || claimed.iter().any(|(package, count)| found(package) != *count) {
        return None;
    }
    remarks.push("cores come from /proc/cpuinfo: sysfs has no topology folders".to_string());
    let core =
        |((package, core_id), cpus)| Core { cpus, package: Some(package), die: None, core_id: Some(core_id) };
    let mut cores: Vec<Core> = cores.into_iter().map(core).collect();
    cores.sort_by_key(|core| core.cpus.first());
    Some(cores)
}

/// Dies, unless the level is meaningless: some Arm firmware gives every core a die of its own.
fn dies(snapshot: &Snapshot, cpus: &Cpus) -> Option<Vec<CpuSet>> {
    let dies = sets(snapshot, &cpus.online, DIE)?;
    let cores: BTreeSet<&CpuSet> = cpus.cores.iter().flatten().map(|core| &core.cpus).collect();
    let meaningful = dies.iter().any(|die| die.len() > 1 && !cores.contains(die));
    meaningful.then_some(dies)
}

/// What affinity leaves: a probe of the running process, else the status file of the process that
/// read the tree.
pub(super) fn affinity(snapshot: &Snapshot) -> Option<CpuSet> {
    if let Some(set) = snapshot.text(ids::probe::AFFINITY).and_then(CpuSet::parse_list) {
        return Some(set);
    }
    let status = snapshot.text("/proc/self/status")?;
    let list = field(status, "Cpus_allowed_list").and_then(CpuSet::parse_list);
    list.or_else(|| field(status, "Cpus_allowed").and_then(CpuSet::parse_mask)).filter(|set| !set.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn parsed(files: &[(&str, &str)]) -> (Cpus, Vec<String>) {
        let snapshot = tree(files);
        let mut remarks = Vec::new();
        let cpus = parse(&snapshot, &CpuInfo::read(&snapshot), &mut remarks);
        (cpus, remarks)
    }

    fn topology(cpu: u32, file: &str) -> String {
        format!("{CPUS}/cpu{cpu}/topology/{file}")
    }

    #[test]
    fn offline_cpus_and_a_stale_cpuinfo() {
        let cpu2 = format!("{CPUS}/cpu2/online");
        let files: Vec<(String, &str)> = vec![
            (topology(0, "thread_siblings"), "5"),
            (topology(2, "thread_siblings"), "5"),
            (topology(1, "thread_siblings"), "2"),
            (cpu2, "0"),
            ("/proc/cpuinfo".into(), "processor : 0\n\nprocessor : 1\n\nprocessor : 2\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let (cpus, remarks) = parsed(&files);
        assert_eq!(cpus.online.to_string(), "0-1");
        assert_eq!(cpus.offline.to_string(), "2");
        let cores: Vec<String> = cpus.cores.iter().flatten().map(|core| core.cpus.to_string()).collect();
        assert_eq!(cores, ["0", "1"]);
        assert_eq!(cpus.packages, None);
        assert!(remarks.iter().any(|remark| remark.contains("also lists CPUs 2")), "{remarks:?}");
    }

    #[test]
    fn arm_cpus_are_called_by_their_design() {
        let name = |text: &str| parsed(&[("/proc/cpuinfo", text)]).0.name();
        let arm = |part| format!("processor : 0\nCPU implementer : 0x41\nCPU part : {part}\n");
        assert_eq!(name(&arm("0xd0c")).as_deref(), Some("Arm Neoverse N1"));
        assert_eq!(name(&arm("0x1")).as_deref(), Some("part 0x41 0x1"));
        assert_eq!(name("processor : 0\nmodel name : Some Xeon\n").as_deref(), Some("Some Xeon"));
        assert_eq!(name("processor : 0\n"), None);
    }

    #[test]
    fn minus_one_is_unknown() {
        let (a, b) = (topology(0, "physical_package_id"), topology(0, "core_siblings"));
        let (cpus, _) = parsed(&[(&a, "-1"), (&b, "1")]);
        assert_eq!(cpus.packages, None);
    }

    #[test]
    fn masks_lists_and_ids_that_contradict_each_other_give_one_answer() {
        let cpu = |cpu: u32, file: &str| topology(cpu, file);
        let (mask, list) = (cpu(0, "thread_siblings"), cpu(0, "thread_siblings_list"));
        let other = cpu(1, "thread_siblings");
        let (cpus, remarks) = parsed(&[(&mask, "1"), (&list, "0-1"), (&other, "2")]);
        assert_eq!(cpus.cores.map(|cores| cores.len()), Some(2));
        assert!(remarks[0].contains("thread_siblings and thread_siblings_list contradict"), "{remarks:?}");
        // A mask that cannot be read leaves the list.
        let (cpus, remarks) = parsed(&[(&mask, "?"), (&list, "0-1"), (&other, "3")]);
        assert_eq!((cpus.cores.map(|cores| cores.len()), remarks), (Some(1), vec![]));
        // Siblings of one core in two packages.
        let (a, b) = (cpu(0, "physical_package_id"), cpu(1, "physical_package_id"));
        let (cpus, remarks) = parsed(&[(&mask, "3"), (&other, "3"), (&a, "0"), (&b, "1")]);
        assert_eq!(cpus.packages.map(|packages| packages.len()), Some(2));
        assert!(remarks.iter().any(|remark| remark.contains("CPUs 0-1 share a core")), "{remarks:?}");
        let (_, remarks) = parsed(&[(&mask, "3"), (&list, "0-1"), (&other, "3"), (&a, "0"), (&b, "0")]);
        assert_eq!(remarks, [""; 0]);
    }

    #[test]
    fn cpuinfo_alone_gives_cores_only_where_it_is_consistent() {
        let text = |second: u32| {
            format!(
                "processor: 0\nphysical id: 0\ncore id: 0\ncpu cores: 2\n\nprocessor: 1\nphysical id: 0\ncore id: {second}\ncpu cores: 2\n"
            )
        };
        let (cpus, _) = parsed(&[("/proc/cpuinfo", &text(1))]);
        assert_eq!(cpus.cores.map(|cores| cores.len()), Some(2));
        assert_eq!(cpus.packages.map(|packages| packages.len()), Some(1));
        let (cpus, _) = parsed(&[("/proc/cpuinfo", &text(0))]);
        assert_eq!(cpus.cores, None);
    }

    #[test]
    fn dies_of_one_core_say_nothing() {
        let (a, b) = (topology(0, "die_cpus"), topology(1, "die_cpus"));
        let (c, d) = (topology(0, "core_cpus"), topology(1, "core_cpus"));
        let (cpus, _) = parsed(&[(&a, "1"), (&b, "2"), (&c, "1"), (&d, "2")]);
        assert_eq!(cpus.dies, None);
        let (cpus, _) = parsed(&[(&a, "3"), (&b, "3"), (&c, "1"), (&d, "2")]);
        assert_eq!(cpus.dies.map(|dies| dies.len()), Some(1));
    }

    #[test]
    fn nothing_at_all_is_unknown() {
        let (cpus, remarks) = parsed(&[]);
        assert_eq!(cpus, Cpus::default());
        assert_eq!(remarks, Vec::<String>::new());
    }
}

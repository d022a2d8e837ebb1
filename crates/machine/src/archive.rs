//! What an archive of support holds of a machine, whose word was taken, and where its sources
//! contradict each other.

use std::collections::BTreeMap;

use model::Snapshot;
use model::vocabulary::host as ids;
use schemars::JsonSchema;
use serde::Serialize;

use super::Machine;

/// Where a machine that was not read here was read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Archive {
    /// `sosreport`, `supportconfig`, `insights`, or the tool that printed the file.
    pub kind: String,
    /// Printouts that were understood: the tool, and where in the archive it stands.
    pub sources: Vec<String>,
    /// What nothing in the archive reports.
    pub absent: Vec<String>,
    /// What was counted by a tool that does not say which CPUs it means.
    pub counted: Vec<String>,
    /// What two sources report differently, a sentence each.
    pub contradictions: Vec<String>,
    /// What of it sources that cannot differ on one machine report differently: `host name`,
    /// `CPUs`. Where there is any, they are of several machines, or were changed, and nothing is
    /// judged.
    pub in_doubt: Vec<String>,
    /// Bytes of memory by a tool that lists neither modules nor what the kernel has.
    pub installed_bytes: Option<u64>,
}

/// What several sources may report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A source that was understood, whatever it reported.
    Source,
    Host,
    Kernel,
    Processor,
    Cpus,
    Sockets,
    Cores,
    Threads,
    Nodes,
    /// Bytes that the kernel has.
    Memory,
    /// Bytes of the modules.
    Installed,
    /// The machine's make, as its firmware has it.
    Product,
}

const SUBJECTS: [(Subject, &str); 12] = [
    (Subject::Source, "source"),
    (Subject::Host, "host name"),
    (Subject::Kernel, "kernel"),
    (Subject::Processor, "processor"),
    (Subject::Cpus, "CPUs"),
    (Subject::Sockets, "sockets"),
    (Subject::Cores, "cores"),
    (Subject::Threads, "threads per core"),
    (Subject::Nodes, "NUMA nodes"),
    (Subject::Memory, "memory"),
    (Subject::Installed, "installed memory"),
    (Subject::Product, "product"),
];

/// What all sources of one machine report alike: they ask one kernel, and one table of its
/// firmware. Of sockets, cores and modules firmware and kernel may have other ideas.
const DECISIVE: [Subject; 7] = [
    Subject::Host,
    Subject::Kernel,
    Subject::Processor,
    Subject::Cpus,
    Subject::Nodes,
    Subject::Memory,
    Subject::Product,
];

impl Subject {
    fn name(self) -> &'static str {
        SUBJECTS.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }
}

/// One source's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub subject: Subject,
    pub value: String,
    /// Who says so, as people read it.
    pub source: String,
}

/// The text of `probe:archive`: the kind, then a line a claim, its three parts apart by tabs.
pub fn written(kind: &str, claims: &[Claim]) -> String {
    let mut text = format!("{kind}\n");
    let clean = |part: &str| part.split(char::is_control).collect::<Vec<_>>().join(" ");
    for claim in claims {
        let parts = [claim.subject.name(), &clean(&claim.value), &clean(&claim.source)];
        text.push_str(&format!("{}\n", parts.join("\t")));
    }
    text
}

/// Claims that are looked at: an archive has some dozens.
const MAX_CLAIMS: usize = 1000;

fn claims(text: &str) -> Vec<Claim> {
    let claim = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let name = parts.next()?;
        let (subject, _) = SUBJECTS.iter().find(|(_, known)| *known == name)?;
        Some(Claim { subject: *subject, value: parts.next()?.to_string(), source: parts.next()?.to_string() })
    };
    text.lines().skip(1).filter_map(claim).take(MAX_CLAIMS).collect()
}

/// Whose claims `dmidecode`'s tables are.
const TABLES: &str = "the SMBIOS tables";

/// `None` for what was read from no archive. `sockets`: processors that the SMBIOS tables have in
/// sockets; `product`: what these call the machine.
pub(super) fn parse(
    snapshot: &Snapshot,
    machine: &Machine,
    sockets: usize,
    product: Option<&str>,
) -> Option<Archive> {
    let text = snapshot.text(ids::probe::ARCHIVE)?;
    let mut claims = claims(text);
    let mut sources: Vec<String> = Vec::new();
    for claim in claims.iter().filter(|claim| claim.subject == Subject::Source) {
        if !sources.contains(&claim.source) {
            sources.push(claim.source.clone());
        }
    }
    let tables = sources.iter().find(|source| source.starts_with("dmidecode"));
    let tables = tables.map_or(TABLES, String::as_str).to_string();
    let mut claim = |subject, value: Option<String>| {
        let value = value.into_iter();
        claims.extend(value.map(|value| Claim { subject, value, source: tables.clone() }));
    };
    claim(Subject::Sockets, (sockets > 0).then(|| sockets.to_string()));
    claim(Subject::Installed, installed(machine).map(|bytes| bytes.to_string()));
    claim(Subject::Product, product.map(str::to_string));
    let is_alone = machine.dimms.is_empty() && machine.memory.total_bytes.is_none();
    let installed = claims.iter().find(|claim| claim.subject == Subject::Installed);
    let contradictions = contradictions(&claims);
    let in_doubt = contradictions.iter().filter_map(|(subject, _)| *subject);
    let in_doubt = in_doubt.filter(|subject| DECISIVE.contains(subject));
    Some(Archive {
        kind: text.lines().next().unwrap_or("").to_string(),
        sources,
        absent: absent(machine, installed.is_some()),
        counted: counted(machine, &claims),
        in_doubt: in_doubt.map(|subject| subject.name().to_string()).collect(),
        contradictions: contradictions.into_iter().map(|(_, text)| text).collect(),
        installed_bytes: installed.filter(|_| is_alone).and_then(|claim| claim.value.parse().ok()),
    })
}

/// What all modules have together; `None` where that of one is unknown.
fn installed(machine: &Machine) -> Option<u64> {
    let modules: Vec<_> = machine.dimms.iter().filter(|dimm| dimm.is_memory()).collect();
    let sum = modules.iter().try_fold(0u64, |sum, dimm| sum.checked_add(dimm.size_bytes?))?;
    (sum > 0).then_some(sum)
}

fn absent(machine: &Machine, is_memory_told: bool) -> Vec<String> {
    let cpus = &machine.cpus;
    let told = [
        (machine.host.is_some(), "host name"),
        (cpus.name().is_some(), "processor"),
        (!cpus.online.is_empty(), "CPUs"),
        (cpus.cores.is_some(), "cores"),
        (cpus.packages.is_some(), "sockets"),
        (!machine.caches.is_empty(), "caches"),
        (!machine.nodes.is_empty(), "NUMA nodes"),
        (machine.memory.total_bytes.is_some() || is_memory_told, "memory"),
        (!machine.dimms.is_empty(), "memory modules"),
        (machine.kernel.release.is_some(), "kernel"),
    ];
    told.into_iter().filter(|(is_told, _)| !is_told).map(|(_, what)| what.to_string()).collect()
}

/// Counts of what nothing reports the CPUs of.
fn counted(machine: &Machine, claims: &[Claim]) -> Vec<String> {
    let summary = machine.summary();
    let unknown = [
        (Subject::Cpus, summary.cpus.is_none()),
        (Subject::Sockets, summary.packages.is_none()),
        (Subject::Cores, summary.cores.is_none()),
        (Subject::Threads, summary.cores.is_none()),
    ];
    let first = |subject: Subject| claims.iter().find(|claim| claim.subject == subject);
    let unknown = unknown.into_iter().filter(|(_, is_unknown)| *is_unknown);
    unknown
        .filter_map(|(subject, _)| first(subject))
        .map(|claim| {
            let name = claim.subject.name();
            let one = name.replace("s per", " per");
            let name = if claim.value == "1" { one.trim_end_matches('s') } else { name };
            format!("{} {name}", claim.value)
        })
        .collect()
}

/// Sentences about what sources report differently; of what, where it is one thing.
fn contradictions(claims: &[Claim]) -> Vec<(Option<Subject>, String)> {
    let of = |subject: Subject| claims.iter().filter(move |claim| claim.subject == subject);
    let exact = [
        Subject::Host,
        Subject::Kernel,
        Subject::Processor,
        Subject::Cpus,
        Subject::Sockets,
        Subject::Cores,
        Subject::Threads,
        Subject::Nodes,
        Subject::Product,
    ];
    let exact = exact.into_iter().filter_map(|subject| {
        let same = |one: &str, other: &str| compared(subject, one) == compared(subject, other);
        Some((Some(subject), apart(subject, of(subject), same)?))
    });
    let mut found: Vec<(Option<Subject>, String)> = exact.collect();
    for subject in [Subject::Memory, Subject::Installed] {
        let text = apart(subject, of(subject), |one, other| near(one, other, 0.02));
        // Nodes do not count what a kernel keeps for itself, or what a host took back.
        let is_far = apart(subject, of(subject), |one, other| near(one, other, 0.2)).is_some();
        found.extend(text.map(|text| (is_far.then_some(subject), text)));
    }
    let text = against_modules(of(Subject::Memory).next(), of(Subject::Installed));
    found.extend(text.map(|text| (None, text)));
    found
}

/// How a word is compared: a host by its first name.
fn compared(subject: Subject, value: &str) -> String {
    match subject {
        Subject::Host => value.split('.').next().unwrap_or(value).to_ascii_lowercase(),
        // Tools differ in blanks, and in what they make of letters that are none.
        Subject::Processor | Subject::Product => {
            value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
        }
        _ => value.trim().to_string(),
    }
}

fn near(one: &str, other: &str, share: f64) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    number(one).zip(number(other)).is_none_or(|(one, other)| (one - other).abs() <= share * one.max(other))
}

/// Different words on one thing that a sentence reports.
const MAX_WORDS: usize = 4;

/// `sockets: 2 by dmidecode (…), 1 by lscpu (…)`; `None` where all say the same.
fn apart<'a>(
    subject: Subject,
    claims: impl Iterator<Item = &'a Claim>,
    same: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    let mut words: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in claims {
        match words.iter_mut().find(|(known, _)| same(known, &claim.value)) {
            Some((_, sources)) if sources.contains(&claim.source.as_str()) => {}
            Some((_, sources)) => sources.push(&claim.source),
            None => words.push((&claim.value, vec![&claim.source])),
        }
    }
    if words.len() < 2 {
        return None;
    }
    let said = |(value, sources): &(&str, Vec<&str>)| {
        format!("{} by {}", shown(subject, value), sources.join(" and "))
    };
    let mut said: Vec<String> = words.iter().take(MAX_WORDS).map(said).collect();
    said.extend((words.len() > MAX_WORDS).then(|| format!("{} more", words.len() - MAX_WORDS)));
    Some(format!("the sources differ in {}: {}", subject.name(), said.join(", ")))
}

fn shown(subject: Subject, value: &str) -> String {
    match subject {
        Subject::Memory | Subject::Installed => gibibytes(value),
        _ => value.to_string(),
    }
}

fn gibibytes(bytes: &str) -> String {
    bytes.parse::<f64>().map_or(bytes.to_string(), |bytes| format!("{:.1} GiB", bytes / (1u64 << 30) as f64))
}

/// The kernel keeps some percent for itself; with a quarter less, or with more than there is, it is
/// another machine's, or memory is mirrored, hidden or taken away.
const MIN_OF_MODULES: f64 = 0.75;
const MAX_OF: f64 = 1.01;

fn against_modules<'a>(kernel: Option<&Claim>, modules: impl Iterator<Item = &'a Claim>) -> Option<String> {
    let kernel = kernel?;
    let has: f64 = kernel.value.parse().ok()?;
    // One sentence for all who report modules.
    let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for claim in modules {
        let is_far =
            claim.value.parse::<f64>().is_ok_and(|sum| has > MAX_OF * sum || has < MIN_OF_MODULES * sum);
        if is_far {
            by_value.entry(&claim.value).or_default().push(&claim.source);
        }
    }
    let (sum, sources) = by_value.into_iter().next()?;
    Some(format!(
        "the kernel's memory does not fit the modules: {} by {}, {} installed by {}",
        gibibytes(&kernel.value),
        kernel.source,
        gibibytes(sum),
        sources.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn of(claims: &[(Subject, &str, &str)]) -> Archive {
        let claim = |(subject, value, source): &(Subject, &str, &str)| Claim {
            subject: *subject,
            value: value.to_string(),
            source: source.to_string(),
        };
        let claims: Vec<Claim> = claims.iter().map(claim).collect();
        let text = written("sosreport", &claims);
        Machine::from(&tree(&[(ids::probe::ARCHIVE, &text)])).archive.expect("an archive")
    }

    #[test]
    fn each_contradiction_names_both_sources() {
        let gib = |count: u64| (count << 30).to_string();
        let (eight, nine) = (gib(8), gib(9));
        for (subject, one, other, words) in [
            (Subject::Host, "db7.example.org", "db8", "host name: db7.example.org by one, db8 by other"),
            (Subject::Kernel, "6.1", "6.2", "kernel: 6.1 by one, 6.2 by other"),
            (Subject::Processor, "AMD X", "AMD Y", "processor: AMD X by one, AMD Y by other"),
            (Subject::Cpus, "8", "16", "CPUs: 8 by one, 16 by other"),
            (Subject::Sockets, "2", "1", "sockets: 2 by one, 1 by other"),
            (Subject::Nodes, "2", "4", "NUMA nodes: 2 by one, 4 by other"),
            (Subject::Memory, &eight, &nine, "memory: 8.0 GiB by one, 9.0 GiB by other"),
            (Subject::Installed, &eight, &nine, "installed memory: 8.0 GiB by one, 9.0 GiB by other"),
        ] {
            let found = of(&[(subject, one, "one"), (subject, other, "other"), (subject, one, "third")]);
            let told = words.replace("by one", "by one and third");
            assert_eq!(found.contradictions, [format!("the sources differ in {told}")]);
            assert!(of(&[(subject, one, "one"), (subject, one, "other")]).contradictions.is_empty());
        }
    }

    #[test]
    fn what_firmware_and_kernel_count_differently_is_not_in_doubt() {
        let in_doubt = |subject: Subject, values: [&str; 2]| {
            of(&[(subject, values[0], "one"), (subject, values[1], "other")]).in_doubt
        };
        let gib = |count: u64| (count << 30).to_string();
        for subject in [Subject::Host, Subject::Kernel, Subject::Processor, Subject::Cpus, Subject::Nodes] {
            assert_eq!(in_doubt(subject, ["8", "9"]), [subject.name()]);
            assert_eq!(in_doubt(subject, ["8", "8"]), Vec::<String>::new());
        }
        assert_eq!(in_doubt(Subject::Memory, [&gib(8), &gib(16)]), ["memory"]);
        assert_eq!(in_doubt(Subject::Memory, [&gib(22), &gib(24)]), Vec::<String>::new());
        assert_eq!(in_doubt(Subject::Product, ["R640", "DL380"]), ["product"]);
        assert_eq!(in_doubt(Subject::Product, ["Box \u{fffd} 1", "Box . 1"]), Vec::<String>::new());
        for subject in [Subject::Sockets, Subject::Cores, Subject::Threads, Subject::Installed] {
            assert_eq!(in_doubt(subject, [&gib(1), &gib(2)]), Vec::<String>::new(), "{subject:?}");
        }
        let many: Vec<String> = (0..900).map(|at| format!("h{at}")).collect();
        let many: Vec<_> = many.iter().map(|name| (Subject::Host, name.as_str(), "x")).collect();
        let told = &of(&many).contradictions[0];
        assert!(told.ends_with("h3 by x, 896 more"), "{told}");
    }

    #[test]
    fn what_is_the_same_in_other_words_is_none() {
        assert!(
            of(&[(Subject::Host, "DB7", "a"), (Subject::Host, "db7.example.org", "b")])
                .contradictions
                .is_empty()
        );
        assert!(
            of(&[(Subject::Memory, "1000", "a"), (Subject::Memory, "985", "b")]).contradictions.is_empty()
        );
        let spaced = [(Subject::Processor, "Xeon  X", "a"), (Subject::Processor, "Xeon X", "b")];
        assert!(of(&spaced).contradictions.is_empty());
    }

    #[test]
    fn memory_is_held_against_the_modules() {
        let against = |kernel: &str, modules: &str| {
            of(&[(Subject::Memory, kernel, "proc/meminfo"), (Subject::Installed, modules, "lshw")])
                .contradictions
        };
        assert!(against("1000", "1000").is_empty() && against("800", "1000").is_empty());
        let gib = |count: u64| (count << 30).to_string();
        assert_eq!(
            against(&gib(32), &gib(64)),
            [
                "the kernel's memory does not fit the modules: 32.0 GiB by proc/meminfo, 64.0 GiB installed by lshw"
            ]
        );
        assert_eq!(against(&gib(64), &gib(32)).len(), 1);
    }

    #[test]
    fn what_is_told_of_no_cpu_stays_a_count_and_what_is_not_told_is_absent() {
        let found = of(&[(Subject::Sockets, "2", "lscpu"), (Subject::Source, "lscpu", "lscpu")]);
        assert_eq!(
            (found.counted, found.sources),
            (vec!["2 sockets".to_string()], vec!["lscpu".to_string()])
        );
        assert_eq!(found.absent.len(), 10);
        assert_eq!(Machine::from(&tree(&[])).archive, None);
    }

    #[test]
    fn what_the_text_could_hold_breaks_no_line() {
        let odd = "a\tb\nsockets\t2\tme";
        let found = of(&[(Subject::Host, odd, "x"), (Subject::Host, "c", "y\tz")]);
        assert_eq!(
            found.contradictions,
            ["the sources differ in host name: a b sockets 2 me by x, c by y z"]
        );
        assert!(claims("x\nsockets\nnothing\t1\t2\n\t\t").is_empty());
    }
}

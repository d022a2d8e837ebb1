//! What is said of a host that falls behind: how far, in what, how sure, what about it differs from
//! its peers, and the command that shows it again.

use std::cell::OnceCell;
use std::cmp::Reverse;

use super::fleet::{Fleet, Host};
use super::groups::{Difference, Group, differences};
use super::guests::guests;
use super::labels::{self, Followed};
use super::outliers::{EarlierRatio, Flag, HostStanding, Score};
use super::{DRIFT, SLOW};
use diagnose::words::{at_most, capital, counted, shell};
use model::pattern::KeyParts;
use model::{Fact, Finding, Severity, percent};

/// Benchmarks, differences and own findings of a host that are listed.
const SHOWN: usize = 5;

/// A host as slow as this in a whole part is a problem; in a single benchmark, below the second.
const PROBLEM: f64 = 0.9;
const PROBLEM_ALONE: f64 = 0.75;

/// Which differences are known to act on which part of the host, the strongest first.
const SUSPECTS: &[(&str, &[&str])] = &[
    (
        "memory",
        &[
            "dimms_mib",
            "memory_mts",
            "memory",
            "memory_gib",
            "numa_nodes",
            "transparent_huge_pages",
            "huge_page_defrag",
            "numa_balancing",
            "bios",
        ],
    ),
    (
        "cpu",
        &["core_clock", "governor", "turbo", "highest_frequency", "energy_preference", "microcode", "bios"],
    ),
    ("disk", &["disk", "filesystem", "mount_options", "kernel"]),
    ("syscall", &["kernel", "mitigation", "clock_source", "core_clock", "preemption"]),
    ("", &["kernel", "mitigation", "core_clock", "governor", "turbo", "preemption"]),
];

/// What is said of a fleet, and what differs about each host that is behind.
pub(super) fn findings(
    fleet: &Fleet,
    groups: &[Group],
    standings: &[HostStanding],
    followed: &[Followed],
) -> (Vec<Finding>, Vec<Suspected>) {
    let mut found: Vec<(Severity, f64, Finding)> = Vec::new();
    let mut all_suspected = Vec::new();
    let companies: Vec<OnceCell<Vec<&str>>> = vec![OnceCell::new(); groups.len()];
    for (place, standing) in standings.iter().enumerate() {
        let company = || {
            let healthy = || company(fleet, &groups[standing.against], standings);
            companies[standing.against].get_or_init(healthy).join(" and ")
        };
        let (slow, mut suspected) = slow(fleet, place, standing, groups, followed, &company).unzip();
        if let (Some((ratio, finding)), Some(suspected)) = (slow, &mut suspected) {
            suspected.finding = Some(Box::new(finding.clone()));
            found.push((finding.severity, ratio, finding));
        }
        all_suspected.push(suspected.unwrap_or_default());
    }
    for (place, group) in groups.iter().enumerate() {
        if let Some(finding) = drift(fleet, group, groups, place) {
            found.push((finding.severity, 1.0, finding));
        }
    }
    found.extend(guests(fleet).into_iter().map(|finding| (finding.severity, 1.0, finding)));
    found.sort_by(|a, b| {
        (Reverse(a.0).cmp(&Reverse(b.0))).then(a.1.total_cmp(&b.1)).then(a.2.headline.cmp(&b.2.headline))
    });
    (found.into_iter().map(|(_, _, finding)| finding).collect(), all_suspected)
}

/// What differs about a host that is behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suspected {
    /// What is known to act on the part that is slow, the strongest first.
    pub likely: Vec<Difference>,
    /// All else.
    pub other: Vec<Difference>,
    /// What is said of the host; `None` of one that is not behind.
    pub finding: Option<Box<Finding>>,
}

impl Suspected {
    fn of(host: &Host, group: &Group, against: &Group, component: &str, keys: &[String]) -> Suspected {
        let mut found: Vec<Difference> =
            group.near.iter().flat_map(|near| near.differences.clone()).collect();
        for difference in differences(host, &against.usual) {
            if !found.iter().any(|known| known.label == difference.label) {
                found.push(difference);
            }
        }
        found.sort_by_key(|difference| place_of(&difference.label, component).unwrap_or(usize::MAX));
        let (likely, other) = found.into_iter().partition(|one| acts(&one.label, component, keys));
        Suspected { likely, other, finding: None }
    }
}

/// The place of a label among what acts on a part of the host; `None`: no effect is known.
fn place_of(label: &str, component: &str) -> Option<usize> {
    let (_, list) = SUSPECTS.iter().find(|(part, _)| component.starts_with(part))?;
    list.iter().position(|suspect| label.starts_with(suspect))
}

/// Settings of huge pages that the kernel gives by itself: a case that asks for them has them
/// whatever these say.
const HUGE_PAGES: [&str; 2] = ["transparent_huge_pages", "huge_page_defrag"];

/// Whether a difference is known to act on these figures of a part of the host.
fn acts(label: &str, component: &str, keys: &[String]) -> bool {
    let asks = |key: &String| KeyParts::of(key).with.contains(&"huge-pages");
    let is_asked = HUGE_PAGES.contains(&label) && !keys.is_empty() && keys.iter().all(asks);
    place_of(label, component).is_some() && !is_asked
}

/// Two healthy hosts of the group to measure beside it: those nearest to the middle would do as
/// well as any; the first by name are easy to find.
fn company<'a>(fleet: &'a Fleet, against: &Group, standings: &[HostStanding]) -> Vec<&'a str> {
    let healthy = against.hosts.iter().filter(|place| {
        let standing = &standings[**place];
        standing.flags.is_empty() && standing.worst().is_none()
    });
    let mut names: Vec<&str> = healthy.map(|place| fleet.hosts[*place].name.as_str()).collect();
    names.sort_unstable();
    names.truncate(2);
    names.shrink_to_fit();
    names
}

/// The figure by which a host is named: a part of the machine or one benchmark.
struct Behind<'a> {
    what: String,
    component: &'a str,
    ratio: f64,
    z: f64,
    peers: usize,
}

impl<'a> Behind<'a> {
    /// The finding names a part rather than one of its benchmarks, unless the benchmark is far
    /// below its part.
    fn of(fleet: &'a Fleet, standing: &'a HostStanding) -> Option<Behind<'a>> {
        let part = standing.worst();
        let far_below = |flag: &&Flag| part.is_none_or(|part| flag.ratio <= part.ratio - 0.1);
        if let Some(Flag { metric, ratio, z, peers, .. }) = standing.flags.first().filter(far_below) {
            let metric = &fleet.metrics[*metric];
            let what = in_words(&metric.key);
            return Some(Behind { what, component: &metric.component, ratio: *ratio, z: *z, peers: *peers });
        }
        let Score { component, ratio, z, .. } = part?;
        let what = component.to_string();
        Some(Behind { what, component, ratio: *ratio, z: *z, peers: standing.peers })
    }
}

fn severity(is_part: bool, ratio: f64) -> Severity {
    match is_part {
        true if ratio <= PROBLEM => Severity::Problem,
        true => Severity::Warning,
        false if ratio <= PROBLEM_ALONE => Severity::Problem,
        false if ratio <= PROBLEM => Severity::Warning,
        false => Severity::Note,
    }
}

fn slow(
    fleet: &Fleet,
    place: usize,
    standing: &HostStanding,
    groups: &[Group],
    followed: &[Followed],
    company: &dyn Fn() -> String,
) -> Option<((f64, Finding), Suspected)> {
    let host = &fleet.hosts[place];
    let (group, against) = (groups.get(standing.group)?, groups.get(standing.against)?);
    let behind = Behind::of(fleet, standing)?;
    let keys: Vec<String> =
        standing.flags.iter().map(|flag| fleet.metrics[flag.metric].key.clone()).collect();
    let suspected = Suspected::of(host, group, against, behind.component, &keys);
    let shared: Vec<&Followed> = followed.iter().filter(|one| one.has(fleet, place)).collect();
    let no_chance = shared.iter().map(|one| {
        format!(" {}: chance does not explain this.", capital(&one.words("hosts that are behind")))
    });
    let cause = cause(host, group, against, &suspected, standing) + &no_chance.collect::<String>();
    let headline = format!(
        "Host {} is {} behind its {} peers in {}",
        host.name,
        percent(1.0 - behind.ratio),
        behind.peers,
        behind.what
    );
    let company = company();
    let advice = if company.is_empty() {
        String::new()
    } else {
        format!("Measure it alternately with {company}, which show no fault.")
    };
    let finding = Finding::of(SLOW, severity(standing.worst().is_some(), behind.ratio), headline)
        .cause(cause)
        .facts(figures_of(fleet, standing, &behind, &against.name))
        .facts(differences_of(&suspected, &against.name))
        .facts(shared.into_iter().map(label_fact))
        .facts(own_findings(host))
        .facts(older_runs(standing))
        .confirm(confirm(host, standing, fleet, behind.component))
        .advice(advice)
        .concerns(keys);
    Some(((behind.ratio, finding), suspected))
}

fn figures_of(fleet: &Fleet, standing: &HostStanding, behind: &Behind, group: &str) -> Vec<Fact> {
    let whose = format!("group {group}");
    let median = format!("{} of the median of {} hosts", percent(behind.ratio), behind.peers);
    let z = format!("{:.1}, limit −{:.1} for {} hosts", behind.z, standing.limit, behind.peers + 1);
    let mut facts = vec![Fact::new("against its peers", median, &whose), Fact::new("robust z", z, &whose)];
    facts.extend(standing.flags.iter().take(SHOWN).map(|flag| fact(fleet, flag)));
    if let Some(more @ 1..) = standing.flags.len().checked_sub(SHOWN) {
        facts.push(Fact::new("further benchmarks", format!("{more} more are behind"), &whose));
    }
    facts
}

fn differences_of(suspected: &Suspected, group: &str) -> impl Iterator<Item = Fact> {
    suspected.likely.iter().chain(&suspected.other).take(SHOWN).map(move |one| {
        let value = format!("{:?}, its peers {:?}", one.here, one.peers);
        Fact::new(format!("differs: {}", one.label), value, format!("group {group}"))
    })
}

fn own_findings(host: &Host) -> impl Iterator<Item = Fact> {
    let own = host.findings.iter().take(SHOWN);
    own.map(|one| Fact::new(format!("its own {}", one.rule), &one.headline, &host.file))
}

fn older_runs(standing: &HostStanding) -> Option<Fact> {
    let before: Vec<String> = standing.history.iter().take(SHOWN).map(|one| percent(one.ratio)).collect();
    let what = if standing.worst().is_some() { "part" } else { "benchmark" };
    let value = format!("{} in the same {what}", before.join(", "));
    (!before.is_empty()).then(|| Fact::new("its older runs", value, "history"))
}

/// The cause, as far as the host's known facts show it.
fn cause(
    host: &Host,
    group: &Group,
    against: &Group,
    suspected: &Suspected,
    standing: &HostStanding,
) -> String {
    let Suspected { likely, other, .. } = suspected;
    let mut words = String::new();
    if group.near.is_some() {
        words.push_str(&format!(
            "It has {} of its own make, so it is compared with group {}, which differs in the fewest fields. ",
            match group.hosts.len() {
                1 => "no peer".to_string(),
                count => format!("only {} peers", count - 1),
            },
            against.name
        ));
    }
    let first = likely.first().or(other.first());
    match first {
        Some(first) => {
            let rest = match likely.len() + other.len() - 1 {
                0 => String::new(),
                more => format!(", and {}", counted(more, "more difference")),
            };
            let lead = if likely.is_empty() { "Also differs" } else { "Likely cause" };
            words.push_str(&format!(
                "{lead}: {} is {:?}, on its peers {:?}{rest}.",
                first.label.replace('_', " "),
                first.here,
                first.peers
            ));
            if likely.is_empty() {
                words.push_str(" No effect on these figures is known.");
            }
        }
        None if !host.findings.is_empty() => {
            words.push_str("Its known hardware and settings equal those of its peers. Its own findings may show the cause.")
        }
        None => words.push_str(
            "Its known hardware and settings equal those of its peers. Look at what is unknown (memory slots need root), then at \
             the hardware.",
        ),
    }
    match standing.history.as_slice() {
        [] => {}
        before if before.iter().all(EarlierRatio::is_slow) => {
            words.push_str(" Its older runs were slow too.")
        }
        _ => words.push_str(" Not all of its older runs were slow: something changed."),
    }
    words
}

fn label_fact(one: &Followed) -> Fact {
    Fact::new(
        format!("label {}", one.label),
        format!("{}: {} of {}; others: {} of {}", one.value, one.having, one.apart, one.beside, one.others),
        format!("Fisher's exact test, p {:.1e} over all labels", one.p),
    )
}

fn fact(fleet: &Fleet, flag: &Flag) -> Fact {
    let key = fleet.metrics[flag.metric].key.clone();
    Fact::new(short(&key), format!("{} of {} peers, z {:.1}", percent(flag.ratio), flag.peers, flag.z), key)
}

/// A key without the words that all have.
pub(super) fn short(key: &str) -> String {
    let key = key.split('#').next().unwrap_or(key);
    key.replace("@one-cpu", "").replace("@free", "")
}

/// What a key measures, for a sentence: the benchmark with its parameters' values, without signs.
fn in_words(key: &str) -> String {
    let case = key.split('#').next().unwrap_or(key);
    let (bench, params) = case.split_once('?').unwrap_or((case, ""));
    let bench = bench.split('@').next().unwrap_or(bench);
    let values = params.split(['/', '&']).filter_map(|param| param.split_once('=').map(|(_, value)| value));
    std::iter::once(bench).chain(values).collect::<Vec<_>>().join(", ")
}

/// The flagged benchmarks alone, measured again.
fn confirm(host: &Host, standing: &HostStanding, fleet: &Fleet, component: &str) -> String {
    let group = component.split(' ').next().unwrap_or_default();
    if host.imported {
        return format!("assay run --only {}", if group == "speccpu" { "memory,cpu" } else { group });
    }
    let mut benches: Vec<&str> = standing
        .flags
        .iter()
        .map(|flag| fleet.metrics[flag.metric].key.split('@').next().unwrap_or_default())
        .filter(|bench| bench.starts_with(group))
        .collect();
    benches.sort_unstable();
    benches.dedup();
    let only = match benches.as_slice() {
        [] => group.to_string(),
        some => some[..some.len().min(SHOWN)].join(","),
    };
    format!("assay run --only {}", shell(&only))
}

/// A group with too few hosts beside the one that it nearly is.
fn drift(fleet: &Fleet, group: &Group, groups: &[Group], place: usize) -> Option<Finding> {
    let near = group.near.as_ref()?;
    let against = groups.get(near.group)?;
    let names: Vec<&str> = group.hosts.iter().map(|host| fleet.hosts[*host].name.as_str()).collect();
    let who = match names.as_slice() {
        [one] => format!("Host {one} is"),
        [first, rest @ ..] => format!("Hosts {first} and {} more are", rest.len()),
        [] => return None,
    };
    let labels: Vec<String> = near.differences.iter().map(|one| one.label.replace('_', " ")).collect();
    let in_what = match labels.as_slice() {
        [] => "fields that are unknown".to_string(),
        some => at_most(3, some),
    };
    let differing = near.differences.iter().map(|one| {
        let value = format!("{:?}, group {} {:?}", one.here, against.name, one.peers);
        Fact::new(&one.label, value, "make-up")
    });
    let shared = labels::followed(fleet, &group.hosts, &against.hosts);
    let of_hosts = shared.iter().map(|one| format!(" {}.", capital(&one.words("of its hosts"))));
    let file = |group: &Group| fleet.hosts.get(*group.hosts.first()?).map(|host| shell(&host.file));
    let files = format!("{} {}", file(against)?, file(group)?);
    Some(Finding::note(DRIFT, format!(
        "{who} like the {} hosts of group {} except for {in_what}",
        against.hosts.len(),
        against.name
    ))
        .cause(format!(
            "Group {} has too few hosts to be compared on its own. Hosts that should be equal have drifted apart.{}",
            groups[place].name,
            of_hosts.collect::<String>()
        ))
        .facts(differing)
        .fact("hosts", format!("{} and {}", group.hosts.len(), against.hosts.len()), "make-up")
        .facts(shared.iter().map(label_fact))
        .confirm(format!("assay compare {files}")))
}

//! What series are called: in words, and only as long as it takes to distinguish them.

use super::levels::level;
use diagnose::Diagnosis;
use diagnose::words::bytes;
use model::vocabulary::{
    ParamId, cpu::param as cpu, disk::param as disk, ipc::param as ipc, kernel::param as kernel,
    memory::param as memory, network::param as network, sched::param as sched,
};
use model::{Beside, Case, Pages, Params, Title, Value, View, figure};
use stats::analysis::Judged;

/// What a parameter's number stands for, by the parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Cpu,
    Node,
    /// A block of memory, which some cache holds.
    Bytes,
    /// A size that is no block's: messages pass caches by.
    Message,
    Other,
}

impl Subject {
    pub fn of(param: &str) -> Subject {
        match ParamId::named(param) {
            Some(memory::CPU | memory::FROM | memory::TO) => Subject::Cpu,
            Some(memory::NODE | memory::MEMORY) => Subject::Node,
            Some(memory::BYTES) => Subject::Bytes,
            Some(ipc::MESSAGE) => Subject::Message,
            _ => Subject::Other,
        }
    }
}

/// One thing by which cases can differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Trait {
    pub name: String,
    pub words: String,
    /// A number: one of many alike.
    pub number: bool,
}

/// A parameter in words: `copy`, `stride 64`, `CPU 3`, `128 MiB`.
pub fn param(name: &str, value: &Value) -> String {
    let Some(number) = value.number() else {
        // As `sched_setscheduler` has it: `other` alone would be other than what?
        return match ParamId::named(name) {
            Some(kernel::POLICY) => format!("SCHED_{}", value.to_string().to_uppercase()),
            _ => value.to_string(),
        };
    };
    match (ParamId::named(name), Subject::of(name)) {
        (Some(memory::FROM), _) => format!("from CPU {value}"),
        (Some(memory::TO), _) => format!("to CPU {value}"),
        (Some(memory::MEMORY), _) => format!("memory of node {value}"),
        (_, Subject::Cpu) => format!("CPU {value}"),
        (_, Subject::Bytes | Subject::Message) => bytes(number),
        (Some(memory::WITHIN), _) => format!("within {}", bytes(number)),
        (Some(memory::LLC), _) => format!("LLC {value}"),
        (Some(sched::PROCESSES), _) => format!("{value} processes"),
        (Some(cpu::IDLE_MS), _) => format!("{value} ms idle"),
        (Some(cpu::AT_US), _) => format!("at {} ms", number / 1e3),
        (Some(kernel::FDS), _) => format!("{value} descriptors"),
        (Some(sched::KB), _) => format!("{value} KiB each"),
        (Some(ipc::WORK_NS), _) => format!("{} of work", figure(number / 1e3, "us")),
        (Some(disk::BLOCK), _) => format!("{} blocks", bytes(number)),
        (Some(network::STREAMS), _) => {
            format!("{value} {}", if number == 1.0 { "stream" } else { "streams" })
        }
        (Some(ipc::CLASS), _) => format!("at {value}"),
        (Some(kernel::RESIDENT_MB), _) => format!("{value} MiB resident"),
        _ => format!("{name} {value}"),
    }
}

/// A benchmark's entry in the catalogue.
pub fn title_of<'a>(diagnosis: &'a Diagnosis, case: &Case) -> Option<&'a Title> {
    diagnosis.run.header.catalogue.iter().find(|title| title.id == case.bench)
}

/// What a series is called: the benchmark's title, the metric where it is not the first, the case,
/// the point.
pub fn label(diagnosis: &Diagnosis, judged: &Judged) -> String {
    let series = &judged.series;
    let cpu = series.case.placement.cpus().first();
    // Blocks lie in a level of the memory; a mapping or a message does not.
    let in_memory = series.case.bench.starts_with("memory.");
    let point = said(&series.point, |name, value| match (ParamId::named(name), value.number()) {
        (Some(memory::BYTES), Some(size)) if in_memory => {
            format!("{} ({})", bytes(size), level(diagnosis, cpu, size))
        }
        _ => param(name, value),
    });
    let words = [case_label(diagnosis, judged), point];
    words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The parameters of a point in words; both ends of a pair as one.
fn said(point: &Params, words: impl Fn(&str, &Value) -> String) -> String {
    let pair = point.get(memory::FROM).zip(point.get(memory::TO));
    let pair = pair.map(|(from, to)| format!("CPU {from} to CPU {to}"));
    let rest = point
        .iter()
        .filter(|(name, _)| pair.is_none() || ![memory::FROM, memory::TO].iter().any(|end| **name == *end));
    let rest: Vec<String> = rest.map(|(name, value)| words(name, value)).collect();
    pair.into_iter().chain(rest).collect::<Vec<_>>().join(", ")
}

/// The same without the point.
pub fn case_label(diagnosis: &Diagnosis, judged: &Judged) -> String {
    let (case, metric) = (&judged.series.case, &judged.series.metric);
    let title = title_of(diagnosis, case);
    let name = title.map_or(case.bench.as_ref(), |title| title.title.as_ref());
    let first =
        title.is_some_and(|title| title.metrics.first().is_some_and(|first| first.name == metric.name));
    let name = if first { name.to_string() } else { format!("{name}: {}", metric.title) };
    match case_words(diagnosis, case).as_str() {
        "" => name,
        words => format!("{name}, {words}"),
    }
}

/// A case's parameters in words, and its pages and neighbour where they are not those of its
/// benchmark's first case.
pub fn case_words(diagnosis: &Diagnosis, case: &Case) -> String {
    let plan = diagnosis.run.header.plan.iter().map(|planned| &planned.case);
    // Rows of a wide table measure different things: a name mentions the pages only if another row
    // has the same parameters and placement.
    let wide = title_of(diagnosis, case).is_some_and(|title| title.view == View::Wide);
    let alike =
        |other: &Case| !wide || (other.params == case.params && other.placement.name == case.placement.name);
    // Cases that are impossible here have no seats, and say nothing of their pages.
    let mut others =
        plan.filter(|other| other.bench == case.bench && !other.placement.seats.is_empty() && alike(other));
    // The first case stands for what is usual: only what differs from it is said.
    let usual = others.next().map_or(&case.placement, |first| &first.placement);
    let pages = usual.pages != case.placement.pages;
    let beside = usual.beside != case.placement.beside;
    let said = |one: &Trait| match one.name.as_str() {
        "+pages" => pages,
        "+beside" => beside,
        _ => true,
    };
    joined(traits(case).iter().filter(|one| said(one)))
}

fn joined<'a>(traits: impl Iterator<Item = &'a Trait>) -> String {
    traits.map(|one| one.words.as_str()).filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Everything but the placement that makes a case what it is: words first, then numbers, then what
/// they run on.
pub fn traits(case: &Case) -> Vec<Trait> {
    // `order=stride&stride=64` is `stride 64`: one word says both.
    let named = |value: &Value| value.text().is_some_and(|text| case.params.named(text).is_some());
    let params = |number: bool| {
        let own = case.params.iter().filter(move |(_, value)| value.number().is_some() == number);
        own.map(move |(name, value)| {
            let words = if named(value) { String::new() } else { param(name, value) };
            Trait { name: name.clone(), words, number }
        })
    };
    let pages = match case.placement.pages {
        Pages::AsGiven => "",
        Pages::Huge => "huge pages",
        Pages::Base => "base pages",
    };
    let beside = match case.placement.beside {
        Beside::Idle => "",
        Beside::SameWork => "beside same work",
        Beside::Spinner => "beside a spinner",
        Beside::Stream => "beside a stream",
        Beside::Awake => "kept awake",
    };
    let place = |name: &str, words: &str| Trait { name: name.into(), words: words.into(), number: false };
    let knobs = case.knobs.iter().map(|(name, value)| Trait {
        name: format!("!{name}"),
        words: format!("{name} {value}"),
        number: false,
    });
    let mut all: Vec<Trait> = params(false).chain(params(true)).collect();
    all.extend([place("+pages", pages), place("+beside", beside)]);
    all.extend(knobs);
    all
}

/// The short name of a placement, for screens and tables.
pub fn placement_words(name: &str) -> &str {
    match name {
        "one-cpu" | "same-cpu" => "one CPU",
        "smt-sibling" => "siblings",
        "same-cluster" => "one cluster",
        "same-llc" => "two CPUs",
        "other-llc" => "other L3",
        "other-node" => "other node",
        "other-package" => "other socket",
        "all" => "all CPUs",
        "one-per-core" => "every core",
        "per-node" => "every node",
        other => other,
    }
}

/// The short names of placements with what they mean: `siblings: on two threads of one core. ` A
/// name that says it by itself is left out.
pub fn placement_legend<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut legend: Vec<String> = Vec::new();
    for name in names {
        let (short, meaning) = (placement_words(name), diagnose::words::placement(name));
        let entry = format!(" {}: {meaning}.", diagnose::words::capital(short));
        if meaning.strip_prefix("on ").unwrap_or(meaning) != short && !legend.contains(&entry) {
            legend.push(entry);
        }
    }
    legend.concat()
}

/// The trait that is the placement.
pub const PLACE: &str = "@";

/// The same, and the placement.
pub fn traits_with_place(case: &Case) -> Vec<Trait> {
    let words = placement_words(&case.placement.name).to_string();
    let mut all = traits(case);
    all.push(Trait { name: PLACE.into(), words, number: false });
    all
}

/// A short name for each case: only that in which they differ.
pub fn told_apart(cases: &[&Case]) -> Vec<String> {
    let all: Vec<Vec<Trait>> = cases.iter().map(|case| traits_with_place(case)).collect();
    let common = |one: &Trait| all.iter().all(|other| other.contains(one));
    let short = all.iter().zip(cases).map(|(own, case)| {
        let differing = joined(own.iter().filter(|one| !common(one)));
        // The plain one among several that have something more; or the only one.
        let params = || joined(traits(case).iter().filter(|one| case.params.named(&one.name).is_some()));
        let names = [differing, params(), placement_words(&case.placement.name).to_string()];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    });
    short.collect()
}

/// A point in words, as rows of tables name it.
pub fn point_words(point: &Params) -> String {
    said(point, param)
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of};
    use super::*;

    #[test]
    fn names_say_only_what_differs() {
        let strided = |bytes: u64| case("one-cpu", &[("order", "stride".into()), ("stride", bytes.into())]);
        let random = case("one-cpu", &[("order", "random".into())]);
        let mut base = random.clone();
        base.placement.pages = Pages::Base;
        let spaced = case("one-cpu", &[("order", "random".into()), ("pace", "spaced".into())]);
        let four = [strided(64), strided(128), random.clone(), base.clone()];
        assert_eq!(
            told_apart(&four.iter().collect::<Vec<_>>()),
            ["stride 64, huge pages", "stride 128, huge pages", "random, huge pages", "random, base pages"]
        );
        assert_eq!(told_apart(&[&random, &spaced]), ["random", "spaced"]);
        assert_eq!(told_apart(&[&random]), ["random"]);
        let (one, all) = (case("one-cpu", &[("op", "copy".into())]), case("all", &[("op", "copy".into())]));
        assert_eq!(told_apart(&[&one, &all]), ["one CPU", "all CPUs"]);
        assert_eq!(told_apart(&[&case("all", &[])]), ["all CPUs"]);
        assert_eq!(told_apart(&[&case("one-cpu", &[("policy", "other".into())])]), ["SCHED_OTHER"]);
    }

    #[test]
    fn a_legend_explains_each_short_name_once() {
        let names = ["free", "same-cpu", "one-cpu", "same-llc", "free", "all"];
        let legend = " Free: left to the scheduler. Two CPUs: on two CPUs that share an L3.";
        assert_eq!(placement_legend(names), legend);
    }

    #[test]
    fn labels_name_unusual_pages_only() {
        let random = case("one-cpu", &[("order", "random".into())]);
        let mut base = random.clone();
        base.placement.pages = Pages::Base;
        let at = (of(&[("bytes", 4096u64.into())]), &[("latency", 1.5)][..]);
        let view = View::Curve { x: "bytes".into(), log: true };
        let made = Made::new(view, vec![latency()]).case(random, std::slice::from_ref(&at)).case(base, &[at]);
        let mut diagnosis = made.diagnosed(machine(4));
        let labels: Vec<String> = diagnosis.series.iter().map(|judged| label(&diagnosis, judged)).collect();
        assert_eq!(labels, ["Test, random, 4 KiB (L1d)", "Test, random, base pages, 4 KiB (L1d)"]);
        // A mapping lies in no cache level.
        let mut mapped = diagnosis.series.remove(0);
        mapped.series.case.bench = "vm.mmap".into();
        let said = label(&diagnosis, &mapped);
        assert!(said.ends_with(", random, 4 KiB"), "{said}");
    }

    #[test]
    fn parameters_are_said_in_words() {
        let said = |name: &str, value: u64| param(name, &Value::from(value));
        let all = [
            said("cpu", 3),
            said("from", 0),
            said("bytes", 4096),
            said("llc", 2),
            said("memory", 1),
            said("pause", 9),
            said("block", 1 << 20),
            said("streams", 1),
        ];
        assert_eq!(
            all,
            [
                "CPU 3",
                "from CPU 0",
                "4 KiB",
                "LLC 2",
                "memory of node 1",
                "pause 9",
                "1 MiB blocks",
                "1 stream"
            ]
        );
        assert_eq!(param("op", &"copy".into()), "copy");
        let pair = [(memory::FROM, 3u64), (memory::TO, 9)].map(|(name, cpu)| (name, Value::from(cpu)));
        assert_eq!(point_words(&Params::from(pair)), "CPU 3 to CPU 9");
    }
}

//! Several results of SPEC CPU2017 on one host: how far its runs differ. SPEC CPU repeats within
//! 1–2 %, so runs of a component that differ by more than 5 % show that something changed.

use schemars::JsonSchema;
use serde::Serialize;

use super::Imported;
use super::builder::number;
use model::{Fact, Finding};
use stats::order::{mean, median};
use stats::repeat::{self, STILL};

pub const RULE: &str = "runs-apart";

/// What `assay explain runs-apart` says.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Two imported SPEC CPU2017 runs of one host differ by more than 5 % in a component. SPEC CPU repeats within 1–2 %, so something \
         changed. If memory-bound components move and others do not, check memory first.",
    ),
    (
        "When it appears",
        "max / min of SPEC's own results of a component is above 1.05. The files are of one host: same suite, host name, CPU, cores, memory, \
         product, kernel and compiler. CV is the population's coefficient of variation: the deviation with divisor n over the mean. Its \
         interval is that of normal runs. In a published case it was 7.94 % with a module in the wrong slot and 0.23 % after the move.",
    ),
    (
        "When it names memory",
        "Never for one component alone. bwaves, lbm, fotonik3d and roms stream over grids larger than any cache. namd, povray, imagick, \
         nab, exchange2 and leela work on little data. Memory is named if one of the first group moves and none of it stays within 2.5 %. \
         Also, one of the second group must stay within 2.5 %, and none of it may move. The order \"low, low, high, high, mid\" points to \
         memory of two speeds. It is named if noise gives it in at most 2 % of simulated runs. It needs five runs, two of them at each end. If no component \
         shows whether it is memory, the order is only called similar.",
    ),
];

/// Components that sweep over grids of hundreds of MiB a copy.
const STREAMS: [&str; 4] = ["bwaves", "lbm", "fotonik3d", "roms"];
/// Components whose inner work is on data that caches hold.
const SMALL: [&str; 6] = ["namd", "povray", "imagick", "nab", "exchange2", "leela"];

/// Facts that two results share if they are runs of one host.
const SAME: [&str; 9] = [
    "suite",
    "cpu_model",
    "product",
    "packages",
    "cores",
    "threads_per_core",
    "memory_gib",
    "kernel",
    "compiler",
];

/// Facts of a finding that are listed one by one.
const SHOWN: usize = 10;

/// Runs of one host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputRepeats")]
pub struct Repeats {
    /// Places of the results among those that were given.
    pub results: Vec<usize>,
    pub host: String,
    #[serde(rename = "series")]
    pub rows: Vec<Row>,
    /// Results that are one and the same run, and count once; as sentences.
    pub remarks: Vec<String>,
    /// How far the runs differ, a sentence; empty if two of them have no figure in common.
    pub conclusion: String,
    #[serde(skip)]
    pub finding: Option<Finding>,
}

/// One component over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputRepeated")]
pub struct Row {
    pub key: String,
    pub title: String,
    /// A value for each run that has one, in the order given.
    pub values: Vec<f64>,
    pub median: f64,
    pub mean: f64,
    /// Population standard deviation over the mean, a share.
    pub cv: f64,
    /// max / min - 1.
    pub apart: f64,
    /// `low low high high mid`; empty where the runs are alike.
    pub levels: String,
    /// The order in words for a sentence: `falls`, `rises` or the levels.
    #[serde(skip)]
    pub order: String,
    /// `CV 7.8 % (5.2–25)`.
    #[serde(skip)]
    pub cv_words: String,
    /// How often noise gives such an order, where it is that of memory of two speeds and rare
    /// enough to say so, in words.
    #[serde(skip)]
    pub chance: Option<String>,
    /// The share of slow memory of each run, 0..1, that would explain runs in the order of memory
    /// of two speeds, if the slowest had only slow memory and the fastest only fast. Empty unless
    /// components that stream through memory move and others hold still.
    pub slow_shares: Vec<f64>,
}

/// Whether components that move and those that hold still point to memory.
#[derive(Clone, Debug, PartialEq)]
enum Moving {
    /// `moving` stream through memory, `still` work in caches.
    Memory { moving: Vec<String>, still: Vec<String> },
    /// A sentence that says why it is not memory alone.
    NotMemory(String),
    /// No component shows it.
    Open,
}

/// Groups of at least two runs of one host.
pub fn repeats(results: &[&Imported]) -> Vec<Repeats> {
    let mut groups: Vec<Repeats> = Vec::new();
    for (place, one) in results.iter().enumerate().filter(|(_, one)| one.format == crate::speccpu::FORMAT) {
        let first = |group: &Repeats| group.results.first().map(|first| results[*first]);
        match groups.iter_mut().find(|group| first(group).is_some_and(|first| same_machine(first, one))) {
            None => groups.push(Repeats {
                results: vec![place],
                host: one.host.clone(),
                rows: Vec::new(),
                remarks: Vec::new(),
                conclusion: String::new(),
                finding: None,
            }),
            Some(group) => match group.results.iter().find(|known| same_run(results[**known], one)) {
                Some(known) => group.remarks.push(format!(
                    "results {} and {} are one run (both have the same time): it counts once",
                    known + 1,
                    place + 1
                )),
                None => group.results.push(place),
            },
        }
    }
    groups.retain(|group| group.results.len() > 1 || !group.remarks.is_empty());
    for group in &mut groups {
        let members: Vec<&Imported> = group.results.iter().map(|place| results[*place]).collect();
        group.rows = rows(&members);
        let moving = moving(&group.rows);
        if !matches!(moving, Moving::Memory { .. }) {
            group.rows.iter_mut().for_each(|row| row.slow_shares.clear());
        }
        group.conclusion = conclusion(group, &moving);
        group.finding = finding(group, &moving);
    }
    groups
}

fn fact<'a>(one: &'a Imported, label: &str) -> Option<&'a str> {
    one.make_up.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
}

fn same_machine(a: &Imported, b: &Imported) -> bool {
    a.host == b.host && SAME.iter().all(|label| fact(a, label) == fact(b, label))
}

/// Two results are one run if their `ran` (the time to the second) is equal.
fn same_run(a: &Imported, b: &Imported) -> bool {
    fact(a, "ran").is_some() && fact(a, "ran") == fact(b, "ran")
}

fn rows(members: &[&Imported]) -> Vec<Row> {
    let Some(first) = members.first() else { return Vec::new() };
    let scores = first
        .figures
        .iter()
        .map(|figure| &figure.judged.series)
        .filter(|series| series.metric.name == model::vocabulary::unixbench::metric::SCORE);
    let value = |one: &Imported, key: &str| {
        let figure = one.figures.iter().find(|figure| figure.judged.series.key == key)?;
        figure.judged.analysis.estimate.as_ref().map(|estimate| estimate.median)
    };
    let row = |key: &str, title: &str| {
        let values: Vec<f64> =
            members.iter().filter_map(|one| value(one, key)).filter(|value| *value > 0.0).collect();
        let runs = repeat::sequence(&values, 0.0)?;
        let chance = runs.handed_out();
        let streams = kind(key, &STREAMS) && chance.is_some();
        Some(Row {
            key: key.to_string(),
            title: title.to_string(),
            median: median(&values)?,
            mean: mean(&values)?,
            cv: runs.cv,
            apart: Some(runs.apart).filter(|apart| apart.is_finite())?,
            levels: runs.levels_in_words(),
            order: runs.order_in_words(),
            cv_words: runs.cv_in_words(),
            slow_shares: if streams { runs.slow_shares() } else { Vec::new() },
            chance,
            values,
        })
    };
    scores.filter_map(|series| row(&series.key, series.metric.title.as_ref())).collect()
}

/// Rows further apart than SPEC repeats, the furthest first.
fn far(group: &Repeats) -> Vec<&Row> {
    let mut far: Vec<&Row> = group.rows.iter().filter(|row| row.moves()).collect();
    far.sort_by(|a, b| b.apart.total_cmp(&a.apart));
    far
}

/// Whether a figure's key (`speccpu.503.bwaves_r@...`) is that of one of these components.
fn kind(key: &str, names: &[&str]) -> bool {
    let name = key.split('@').next().and_then(|bench| bench.rsplit('.').next()).unwrap_or_default();
    names.contains(&name.trim_end_matches("_r").trim_end_matches("_s"))
}

fn moving(rows: &[Row]) -> Moving {
    let of = |names: &[&str], holds: fn(&Row) -> bool| -> Vec<&Row> {
        rows.iter().filter(|row| kind(&row.key, names) && holds(row)).collect()
    };
    let (streams, still) = (of(&STREAMS, Row::moves), of(&STREAMS, Row::holds_still));
    if let Some(small) = of(&SMALL, Row::moves).first() {
        let (alone, too) = if streams.is_empty() { ("", "") } else { (" alone", " too") };
        return Moving::NotMemory(format!(
            "Not memory{alone}: {} works on little data and moves{too} ({}). Check the clock, temperature and other work",
            small.title,
            model::percent(small.apart)
        ));
    }
    if let (true, Some(still)) = (streams.is_empty(), still.first()) {
        return Moving::NotMemory(format!(
            "Not memory: {} streams through it and does not move ({})",
            still.title,
            model::percent(still.apart)
        ));
    }
    let small = of(&SMALL, Row::holds_still);
    if streams.is_empty() || small.is_empty() || !still.is_empty() {
        return Moving::Open;
    }
    let titles = |rows: Vec<&Row>| rows.iter().map(|row| row.title.clone()).collect();
    Moving::Memory { moving: titles(streams), still: titles(small) }
}

/// `a`, `a and b`, `a, b and 3 more`.
fn list(titles: &[String]) -> String {
    match titles {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, other, more @ ..] => format!("{one}, {other} and {} more", more.len()),
    }
}

impl Row {
    fn moves(&self) -> bool {
        self.apart > repeat::APART
    }

    fn holds_still(&self) -> bool {
        self.apart <= STILL
    }

    /// `CV 7.8 % (5.2–25): low low high high mid`.
    fn words(&self) -> String {
        let cv = &self.cv_words;
        if self.order.is_empty() { cv.clone() } else { format!("{cv}: {}", self.order) }
    }

    /// The shares in percent: `100, 100, 0, 18, 64 %`.
    fn shares(&self) -> Option<String> {
        let shares: Vec<String> =
            self.slow_shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
        (!shares.is_empty()).then(|| format!("{} %", shares.join(", ")))
    }
}

fn conclusion(group: &Repeats, moving: &Moving) -> String {
    let most = group.rows.iter().max_by(|one, other| one.cv.total_cmp(&other.cv));
    let Some(most) = most else { return String::new() };
    let far = far(group);
    let Some(worst) = far.first().copied() else {
        return format!("The runs repeat: the largest is {}, of {}.", most.cv_words, most.title);
    };
    let mut words =
        format!("Runs of {} differ by {}, {}.", worst.title, model::percent(worst.apart), worst.words());
    let ordered = far.iter().find(|row| kind(&row.key, &STREAMS) && row.chance.is_some());
    let runs = worst.values.len();
    match (moving, ordered.copied().or(Some(worst)).and_then(|row| Some((row, row.chance.as_ref()?)))) {
        (Moving::NotMemory(why), _) => words.push_str(&format!(" {why}.")),
        (Moving::Memory { moving, still }, found) => {
            words.push_str(&format!(
                " It looks like memory: {} stream{} over large grids, while {} on little data {} not move.",
                list(moving),
                number(moving.len(), "s", ""),
                list(still),
                number(still.len(), "does", "do")
            ));
            match found.and_then(|(row, chance)| Some((row.shares()?, chance))) {
                Some((shares, chance)) => words.push_str(&format!(
                    " After a boot the kernel hands out memory of two speeds in this order (chance of noise in {runs} runs: {chance}). \
                     Shares of slow memory of {shares} would explain it, if the slowest run had only slow memory and the \
                     fastest only fast. Measure it: `assay memmap`."
                )),
                None => words.push_str(" Measure whether it has two speeds: `assay memmap`."),
            }
        }
        (Moving::Open, Some((_, chance))) => words.push_str(&format!(
            " After a boot the kernel hands out memory of two speeds in a similar order (chance of noise in {runs} runs: {chance}). \
             No component shows whether it is memory; measure it: `assay memmap`."
        )),
        (Moving::Open, None) => {}
    }
    words
}

fn finding(group: &Repeats, moving: &Moving) -> Option<Finding> {
    let far = far(group);
    let worst = far.first()?;
    let fact = |row: &&Row| {
        let values: Vec<String> = row.values.iter().map(|value| model::figure(*value, "")).collect();
        let shares = row.shares().map_or(String::new(), |shares| {
            format!("; shares of slow memory that would explain it: {shares}")
        });
        let words = format!("{} ({}{shares})", values.join(", "), row.words());
        Fact::new(row.title.clone(), words, row.key.clone())
    };
    Some(Finding::warning(RULE.to_string(), format!(
        "{} of {} figures differ by more than 5 % between the runs, {} by {}",
        far.len(),
        group.rows.len(),
        worst.title,
        model::percent(worst.apart)
    ))
        .cause(match moving {
            Moving::NotMemory(why) => format!("SPEC CPU repeats within 1–2 %. {why}."),
            _ => "SPEC CPU repeats within 1–2 %. Where only components bound by memory bandwidth move, physical memory \
                  differs from run to run: channels filled unevenly, huge pages, nodes."
                .to_string(),
        })
        .facts(far.iter().take(SHOWN).map(fact))
        .confirm("assay rate --with-map")
        .advice("Run the component again with more copies or a larger footprint: a swing that comes from the place of the \
                 memory changes its pattern.")
        .concerns(far.iter().map(|row| row.key.clone())))
}

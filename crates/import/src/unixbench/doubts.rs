//! Traps in reports of UnixBench: figures that are not what they seem. The facts are those of its
//! source, versions 5.1.2 to 6.0 (`Run`, `src/whets.c`).

use super::Section;
use crate::faults::finding;
use model::{Fact, Finding, Severity};

pub const NO_CPUS: &str = "unixbench-no-cpus";
pub const CAPPED: &str = "unixbench-capped-copies";
pub const CPU_TIME: &str = "unixbench-cpu-time";
pub const EIGHT: &str = "unixbench-eight-scripts";

pub const NO_CPUS_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "A report of UnixBench counts 0 CPUs: `Run` did not understand /proc/cpuinfo, as on many ARM and RISC-V hosts. By default it \
         then runs only one copy. No figure is of the whole host, and the number of CPUs is unknown.",
    ),
    ("When it appears", "A section says `0 CPUs in system`."),
];

pub const CAPPED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "UnixBench before 6.0 (5.1.2, 5.1.3) runs no test of the index with more than 16 copies. On a larger host the part for all CPUs \
         has no test, or it ran with 16 copies while other CPUs were idle. Its index is then not a figure of the whole host. Many \
         patched 5.1.3 versions have no such limit.",
    ),
    (
        "When it appears",
        "A section of more than 16 copies has neither test nor index, or one of 16 copies is of a host with more CPUs.",
    ),
];

pub const CPU_TIME_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "With more copies than CPUs, Double-Precision Whetstone scores more than the CPUs can do. Each copy divides its work by its own \
         CPU time, not by elapsed time. UnixBench adds up what the copies print, so waiting for a CPU costs nothing. The sum grows with \
         the copies, and the index with it.",
    ),
    (
        "When it appears",
        "There are more copies than CPUs. Their MWIPS exceed those of one copy times the number of CPUs by more than 10 %.",
    ),
];

pub const EIGHT_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Shell Scripts (8 concurrent) runs eight scripts at once, even where UnixBench runs one copy. On a host with idle CPUs, one row of \
         the one-copy index uses up to eight CPUs, the other eleven one. It is then not an index of a single CPU. Two hosts with equal \
         CPUs differ by it if one has more of them.",
    ),
    (
        "When it appears",
        "In a section of one copy, eight times the score of Shell Scripts (8 concurrent) is more than 1.2 times that of Shell Scripts \
         (1 concurrent).",
    ),
];

/// Copies that a test of the index may have before version 6.
const MAX_COPIES: u32 = 16;
/// An excess over what the CPUs can do is scatter up to this factor.
const SCATTER: f64 = 1.1;
/// Above this gain, eight scripts at once ran on several CPUs.
const GAIN: f64 = 1.2;

const WHETSTONE: &str = "Double-Precision Whetstone";
const ONE_SCRIPT: &str = "Shell Scripts (1 concurrent)";
const EIGHT_SCRIPTS: &str = "Shell Scripts (8 concurrent)";

impl Section {
    /// The score of a test, from its line or from the table.
    fn score(&self, title: &str) -> Option<f64> {
        let printed = self.tests.iter().find(|test| test.title == title).and_then(|test| test.value);
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        let score = printed.or_else(|| Some(rows().find(|row| row.title == title)?.result));
        score.filter(|score| score.is_finite() && *score > 0.0)
    }

    fn cpus(&self) -> Option<u32> {
        self.cpus.parse().ok()
    }
}

/// The findings about a report's sections.
pub(super) fn findings(sections: &[Section]) -> Vec<Finding> {
    [no_cpus(sections), capped(sections), cpu_time(sections), eight(sections)].into_iter().flatten().collect()
}

fn no_cpus(sections: &[Section]) -> Option<Finding> {
    let uncounted = sections.iter().filter(|section| section.cpus() == Some(0));
    let facts = uncounted.take(1).map(|section| Fact::new("CPUs in system", "0", section.words()));
    finding(
        NO_CPUS,
        Severity::Warning,
        [
            "UnixBench counted 0 CPUs: without -c, no figure is of the whole host",
            "It did not understand /proc/cpuinfo, and then runs one copy alone.",
            "Run it with as many copies as there are CPUs (-c), or use version 6, which asks the system for their number.",
        ],
        facts.collect(),
    )
}

fn capped(sections: &[Section]) -> Option<Finding> {
    let is_empty = |section: &Section| {
        section.tests.is_empty()
            && section.failed.is_empty()
            && section.tables.iter().all(|table| table.rows.is_empty())
    };
    let fact = |section: &Section| {
        let copies = section.copies?;
        let cpus = section.cpus().filter(|cpus| *cpus > MAX_COPIES);
        if copies > MAX_COPIES && is_empty(section) {
            return Some(Fact::new(format!("{copies} copies"), "no test ran", section.words()));
        }
        let cpus = cpus.filter(|_| copies == MAX_COPIES)?;
        Some(Fact::new(format!("{copies} copies"), format!("of {cpus} CPUs"), section.words()))
    };
    finding(
        CAPPED,
        Severity::Note,
        [
            "At most 16 copies ran on a host with more CPUs: no index is of the whole host",
            "UnixBench before version 6 runs no test of the index with more than 16 copies, or -c 16 was given.",
            "Run version 6, with as many copies as there are CPUs.",
        ],
        sections.iter().filter_map(fact).collect(),
    )
}

fn cpu_time(sections: &[Section]) -> Option<Finding> {
    let alone = sections.iter().find(|section| section.copies == Some(1));
    let one = alone.and_then(|section| section.score(WHETSTONE))?;
    let fact = |section: &Section| {
        let (copies, cpus) = (section.copies?, section.cpus().filter(|cpus| *cpus > 0)?);
        let times = section.score(WHETSTONE)? / one;
        let beyond = copies > cpus && times > SCATTER * f64::from(cpus);
        let label = format!("{WHETSTONE}, {copies} copies against one");
        beyond.then(|| Fact::new(label, format!("{times:.1} × on {cpus} CPUs"), section.words()))
    };
    finding(
        CPU_TIME,
        Severity::Warning,
        [
            "The \"Whetstone\" score is above what the CPUs can do: leave it and this index out of comparisons",
            "Each copy divides by its own CPU time, so the sum grows with the copies even beyond the CPUs.",
            "Compare runs with as many copies as CPUs.",
        ],
        sections.iter().filter_map(fact).collect(),
    )
}

fn eight(sections: &[Section]) -> Option<Finding> {
    let fact = |section: &Section| {
        let gain = 8.0 * section.score(EIGHT_SCRIPTS)? / section.score(ONE_SCRIPT)?;
        let label = "scripts per minute, eight at once against one at a time";
        (section.copies == Some(1) && gain > GAIN)
            .then(|| Fact::new(label, format!("{gain:.1} ×"), section.words()))
    };
    finding(
        EIGHT,
        Severity::Note,
        [
            "The one-copy index includes Shell Scripts (8 concurrent): it is not an index of one CPU",
            "That test runs eight scripts at once for each copy, on CPUs that the one copy leaves idle.",
            "Compare the rows of one task, or leave this row out.",
        ],
        sections.iter().filter_map(fact).collect(),
    )
}

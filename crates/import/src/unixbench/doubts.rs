//! What a report of UnixBench says that is read for something else. The facts are those of its own
//! source, versions 5.1.2 to 6.0 (`Run`, `src/whets.c`).

use super::Section;
use model::{Fact, Finding, Severity};

pub const NO_CPUS: &str = "unixbench-no-cpus";
pub const CAPPED: &str = "unixbench-capped-copies";
pub const CPU_TIME: &str = "unixbench-cpu-time";
pub const EIGHT: &str = "unixbench-eight-scripts";

pub const NO_CPUS_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "A report of UnixBench counts 0 CPUs: `Run` did not understand /proc/cpuinfo, as on many ARM and RISC-V machines. Left to \
         itself it then runs one copy alone, so that nothing in the report is of the whole machine, and how many CPUs that has is \
         not told.",
    ),
    ("When it fires", "A section says `0 CPUs in system`."),
];

pub const CAPPED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "UnixBench before 6.0 (5.1.2, 5.1.3) runs no test of the index with more than 16 copies: on a larger machine the part for all CPUs \
         has no test, or somebody asked for 16 copies, the most there are, and most CPUs were idle. Its index is then no figure of the \
         whole machine. Many copies of 5.1.3 are patched; their reports are as those of 6.0.",
    ),
    (
        "When it fires",
        "A section of more than 16 copies has neither test nor index, or one of 16 copies is of a machine of more CPUs.",
    ),
];

pub const CPU_TIME_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "More copies of Double-Precision Whetstone than there are CPUs seem to do more work than the CPUs can. Each copy divides its \
         work by its own CPU time, not by the time of a clock, and UnixBench adds up what the copies print: copies that wait for each \
         other lose nothing. The sum grows with the copies, and takes the index with it.",
    ),
    (
        "When it fires",
        "There are more copies than CPUs, and their MWIPS are more than 1.1 times as many times that of one copy as there are CPUs.",
    ),
];

pub const EIGHT_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "Shell Scripts (8 concurrent) runs eight scripts at once, also where UnixBench runs one copy. Where CPUs are idle beside it, the \
         one-copy index has a row of up to eight CPUs among eleven of one, and is no index of a single CPU: two machines with equal CPUs \
         and not as many of them differ by it.",
    ),
    (
        "When it fires",
        "In a section of one copy, eight times the score of Shell Scripts (8 concurrent) is more than 1.2 times that of Shell Scripts \
         (1 concurrent), which starts one script at a time.",
    ),
];

/// Copies that a test of the index may have before version 6.
const MOST_COPIES: u32 = 16;
/// Above what CPUs can give by less than this share is scatter.
const SCATTER: f64 = 1.1;
/// Eight scripts at once are on several CPUs from this gain on.
const GAIN: f64 = 1.2;

const WHETSTONE: &str = "Double-Precision Whetstone";
const ONE_SCRIPT: &str = "Shell Scripts (1 concurrent)";
const EIGHT_SCRIPTS: &str = "Shell Scripts (8 concurrent)";

impl Section {
    /// The score of a test, from its line or from the table.
    fn score(&self, title: &str) -> Option<f64> {
        let told = self.tests.iter().find(|test| test.title == title).and_then(|test| test.value);
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        let score = told.or_else(|| Some(rows().find(|row| row.title == title)?.result));
        score.filter(|score| score.is_finite() && *score > 0.0)
    }

    fn cpus(&self) -> Option<u32> {
        self.cpus.parse().ok()
    }
}

/// What is to be said of a report's sections.
pub(super) fn of(sections: &[Section]) -> Vec<Finding> {
    [no_cpus(sections), capped(sections), cpu_time(sections), eight(sections)].into_iter().flatten().collect()
}

fn finding(rule: &str, severity: Severity, words: [&str; 3], facts: Vec<Fact>) -> Option<Finding> {
    let [headline, cause, advice] = words;
    (!facts.is_empty()).then(|| {
        let draft = Finding::of(rule, severity, headline).cause(cause).facts(facts);
        draft.confirm_by_import().advice(advice)
    })
}

fn no_cpus(sections: &[Section]) -> Option<Finding> {
    let of = sections.iter().filter(|section| section.cpus() == Some(0));
    let facts = of.take(1).map(|section| Fact::new("CPUs in system", "0", section.words()));
    finding(
        NO_CPUS,
        Severity::Warning,
        [
            "UnixBench counted 0 CPUs. Nothing in it is of the whole machine, unless copies were asked for.",
            "It did not understand the machine's /proc/cpuinfo, and then runs one copy alone.",
            "Run it with as many copies as there are CPUs (-c), or a version that asks for their number (6).",
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
        let cpus = section.cpus().filter(|cpus| *cpus > MOST_COPIES);
        if copies > MOST_COPIES && is_empty(section) {
            return Some(Fact::new(format!("{copies} copies"), "no test ran", section.words()));
        }
        let cpus = cpus.filter(|_| copies == MOST_COPIES)?;
        Some(Fact::new(format!("{copies} copies"), format!("of {cpus} CPUs"), section.words()))
    };
    finding(
        CAPPED,
        Severity::Note,
        [
            "Tests of at most 16 copies, on a machine of more CPUs. No index in it is of the whole machine.",
            "Before version 6 UnixBench runs no test of the index with more than 16 copies; or so many were asked for.",
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
        let label = format!("{WHETSTONE}, {copies} copies over one");
        beyond.then(|| Fact::new(label, format!("{times:.1} times, on {cpus} CPUs"), section.words()))
    };
    finding(
        CPU_TIME,
        Severity::Warning,
        [
            "Whetstone's copies seem to do more than the CPUs can. Leave it and this index out of comparisons.",
            "Each copy divides by its own CPU time, and the sum of more copies than CPUs grows with the copies.",
            "Compare runs of as many copies as there are CPUs.",
        ],
        sections.iter().filter_map(fact).collect(),
    )
}

fn eight(sections: &[Section]) -> Option<Finding> {
    let fact = |section: &Section| {
        let gain = 8.0 * section.score(EIGHT_SCRIPTS)? / section.score(ONE_SCRIPT)?;
        let label = "scripts a minute, eight at once over one at a time";
        (section.copies == Some(1) && gain > GAIN)
            .then(|| Fact::new(label, format!("{gain:.1} times"), section.words()))
    };
    finding(
        EIGHT,
        Severity::Note,
        [
            "The one-copy index has a row of several CPUs: Shell Scripts (8 concurrent). It is no index of one CPU.",
            "That test runs eight scripts at once whatever the number of copies, on CPUs that are idle beside the one copy.",
            "Compare the rows of one task, or leave this one out.",
        ],
        sections.iter().filter_map(fact).collect(),
    )
}

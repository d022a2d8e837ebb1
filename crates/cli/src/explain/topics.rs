//! What is explained and is no row of a table of its own: each text stands beside the code that
//! does it.

use compare::{peers, rows};
use import::unixbench::doubts;
use import::{faults, repeats, speccpu};

pub const HARNESS: &str = "harness";

/// What is neither measured nor judged by one row; the text stands beside what computes it.
pub struct Topic {
    pub id: &'static str,
    /// Other words that find it.
    pub also: &'static [&'static str],
    pub title: &'static str,
    /// Title and text of each section; numbers in them are those of the code.
    pub sections: fn() -> Sections,
    pub source: &'static str,
}

type Sections = Vec<(&'static str, String)>;

impl Topic {
    pub fn is_called(&self, word: &str) -> bool {
        self.id == word || self.also.contains(&word)
    }
}

fn fixed(sections: &[(&'static str, &'static str)]) -> Sections {
    sections.iter().map(|(title, text)| (*title, text.to_string())).collect()
}

/// The chapters of docs/method, in the order of its index.
const CHAPTERS: [&str; 27] = [
    "Measuring",
    "How long to measure",
    "The core clock",
    "Statistics",
    "Verdicts of figures",
    "Demands and their limits",
    "Faults and the rules that find them",
    "Comparing",
    "Peers and trends",
    "Sweeps",
    "Sweep regions and advice",
    "Beside other tools",
    "Memory",
    "Caches from curves",
    "Memory maps",
    "Why memory is slow",
    "The operating system",
    "Disks",
    "Network",
    "What limits a transfer",
    "Placement",
    "Topology from measurements",
    "UnixBench",
    "SMT capacity",
    "Pauses of CPUs",
    "The rate suite",
    "Parsers under fuzzing",
];

fn methodology() -> Sections {
    vec![
        (
            "What it is",
            "docs/method, in the source, says how each figure is measured, how samples become a figure with an interval and a \
             verdict, and how results are compared. Each statement about a method was tested on noise of known \
             truth: docs/results has the tables, each with its commit and date."
                .to_string(),
        ),
        ("Its chapters", format!("{}.", CHAPTERS.join(", "))),
        (
            "The same from here",
            "`assay explain harness`, `calibration`, `pass`, `placements` and `interval` say how measuring works; `references` how a \
             figure is read; `assay explain` with the name of a benchmark or of a rule how that one works."
                .to_string(),
        ),
    ]
}

pub const TOPICS: &[Topic] = &[
    Topic {
        id: "methodology",
        also: &["method", "methods"],
        title: "how figures are measured, judged and compared",
        sections: methodology,
        source: "docs/method/README.md",
    },
    Topic {
        id: HARNESS,
        also: &[],
        title: "who controls, who measures, and in which order",
        sections: session::explained::harness,
        source: "crates/session/src/measure/session.rs",
    },
    Topic {
        id: "calibration",
        also: &["sample", "samples", "window", "windows"],
        title: "how many iterations a sample has",
        sections: bench::calibration_explained,
        source: "crates/bench/src/sampler/calibration.rs",
    },
    Topic {
        id: "interval",
        also: &["intervals", "95 %"],
        title: "the 95 % interval beside a figure",
        sections: stats::guarded::explained,
        source: "crates/stats/src/guarded.rs",
    },
    Topic {
        id: "placements",
        also: &["placement"],
        title: "which CPUs the tasks of a benchmark run on",
        sections: bench::placement::explained,
        source: "crates/bench/src/placement.rs",
    },
    Topic {
        id: "pass",
        also: &["passes", "states", "visit", "visits"],
        title: "the states of one measuring process, and how it can end",
        sections: session::explained::visit,
        source: "crates/session/src/measure/child.rs",
    },
    Topic {
        id: "redaction",
        also: &["redact", "redacted", "bundle"],
        title: "what leaves a host in a bundle, and what does not",
        sections: || fixed(redact::EXPLAINED),
        source: "crates/redact/src/lib.rs",
    },
    Topic {
        id: "references",
        also: &[
            "reference",
            "reading",
            "readings",
            "typical",
            "fast",
            "normal",
            "slow",
            "bad",
            "too good",
            "normal or fast",
            "slow or normal",
            "bad or slow",
            "wide reference class",
            "wider class of hosts",
            "odd figure",
            "a cache?",
            "large",
            "small",
            "steady",
            "unsteady",
            "unstable",
            "no reference",
        ],
        title: "what is typical of a host, and how a figure compares with it",
        sections: || fixed(diagnose::reference::EXPLAINED),
        source: "crates/diagnose/src/reference.rs",
    },
    Topic {
        id: "utilization",
        also: &[],
        title: "real use of the cores on a host with SMT",
        sections: || fixed(stats::smt::EXPLAINED),
        source: "crates/stats/src/smt.rs",
    },
    Topic {
        id: speccpu::HEADLINE_DIFFERS,
        also: &[],
        title: "a SPEC CPU headline that its own rows do not give",
        sections: || fixed(speccpu::HEADLINE_EXPLAINED),
        source: "crates/import/src/speccpu/score.rs",
    },
    Topic {
        id: speccpu::INVALID_RESULT,
        also: &[],
        title: "a result that its tool calls invalid, failed or wrong",
        sections: || fixed(speccpu::INVALID_EXPLAINED),
        source: "crates/import/src/speccpu/score.rs",
    },
    Topic {
        id: faults::FAILED_IO,
        also: &[],
        title: "an imported result with I/O that failed",
        sections: || fixed(faults::FAILED_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::FIGURES_DISAGREE,
        also: &[],
        title: "an imported result whose figures contradict each other",
        sections: || fixed(faults::DISAGREE_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::INTERRUPTED,
        also: &[],
        title: "an imported result of a run that was stopped",
        sections: || fixed(faults::INTERRUPTED_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::GENERATOR_BOUND,
        also: &[],
        title: "an imported network result that the CPU limited",
        sections: || fixed(faults::BOUND_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::THROTTLED,
        also: &[],
        title: "an imported result of a throttled host",
        sections: || fixed(faults::THROTTLED_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::DOCUMENTED,
        also: &[],
        title: "an imported result of a format known from its documentation only",
        sections: || fixed(faults::DOCUMENTED_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: faults::UNSURE,
        also: &[],
        title: "an imported result whose tool reports passes too far apart",
        sections: || fixed(faults::UNSURE_EXPLAINED),
        source: "crates/import/src/faults.rs",
    },
    Topic {
        id: doubts::NO_CPUS,
        also: &[],
        title: "a report of UnixBench that counts no CPU",
        sections: || fixed(doubts::NO_CPUS_EXPLAINED),
        source: "crates/import/src/unixbench/doubts.rs",
    },
    Topic {
        id: doubts::CAPPED,
        also: &[],
        title: "a report of UnixBench with fewer copies than CPUs",
        sections: || fixed(doubts::CAPPED_EXPLAINED),
        source: "crates/import/src/unixbench/doubts.rs",
    },
    Topic {
        id: doubts::CPU_TIME,
        also: &[],
        title: "Whetstone of UnixBench beyond what the CPUs can do",
        sections: || fixed(doubts::CPU_TIME_EXPLAINED),
        source: "crates/import/src/unixbench/doubts.rs",
    },
    Topic {
        id: doubts::EIGHT,
        also: &[],
        title: "a row of several CPUs in UnixBench's one-copy index",
        sections: || fixed(doubts::EIGHT_EXPLAINED),
        source: "crates/import/src/unixbench/doubts.rs",
    },
    Topic {
        id: rows::ODD,
        also: &[],
        title: "a row of UnixBench that breaks with its relatives",
        sections: || fixed(rows::ODD_EXPLAINED),
        source: "crates/compare/src/rows.rs",
    },
    Topic {
        id: rows::GUEST,
        also: &[],
        title: "a guest that scores higher than a host of its class",
        sections: || fixed(rows::GUEST_EXPLAINED),
        source: "crates/compare/src/rows.rs",
    },
    Topic {
        id: peers::SLOW,
        also: &[],
        title: "a host that is slower than its peers",
        sections: || fixed(peers::SLOW_EXPLAINED),
        source: "crates/compare/src/peers/outliers.rs",
    },
    Topic {
        id: peers::DRIFT,
        also: &[],
        title: "hosts that should be equal and are not",
        sections: || fixed(peers::DRIFT_EXPLAINED),
        source: "crates/compare/src/peers/groups.rs",
    },
    Topic {
        id: repeats::RULE,
        also: &[],
        title: "SPEC CPU2017 runs of one host that lie apart",
        sections: || fixed(repeats::EXPLAINED),
        source: "crates/import/src/repeats.rs",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_have_these_chapters() {
        let file = testkit::root().join("docs/method/README.md");
        let index = std::fs::read_to_string(file).expect("the index of the methods");
        let titles = index.lines().filter_map(|line| line.strip_prefix("- [")?.split_once("]("));
        let chapters: Vec<&str> = titles.map(|(title, _)| title).collect();
        assert_eq!(chapters, CHAPTERS);
    }
}

//! Huge pages: really refused to a real process, and invented shares.

use serde_json::json;

use super::edited::{Edit, server};
use super::live::Live;
use super::{Case, case};
use crate::host::{skipped, works};
use crate::runs::{findings, series};

const LATENCY: &str = "memory.latency";

/// Invented latencies with this share of huge pages, on the clean server with this setting.
fn shares(share: f64, setting: &str) -> Case {
    shared_by(LATENCY, share, setting)
}

/// The same of these benchmarks.
fn shared_by(only: &str, share: f64, setting: &str) -> Case {
    let tree = server();
    tree.file("/sys/kernel/mm/transparent_hugepage/enabled", setting);
    let words = format!("--quick --only {only} --pretend 7 --root {}", tree.root().display());
    let mut run = Edit::of(&words);
    run.each(|_, visit| visit["process"]["huge_share"] = json!(share));
    case(format!("a share of {share}, {setting}"), run.diagnosed())
}

/// Takes huge pages away from the process that it becomes, and from all its children.
const WITHOUT: &str = "import ctypes, os, sys; \
                       ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0 or sys.exit(99); os.execvp(sys.argv[1], sys.argv[1:])";

pub fn huge_pages_that_were_not_given() -> Vec<Case> {
    let (never, fragmented) = (shares(0.0, "always madvise [never]"), shares(0.6, "always [madvise] never"));
    let cause = |case: &Case| findings(&case.results, "no-huge-pages")[0]["cause"].to_string();
    assert!(cause(&never).contains("switched off"));
    assert!(cause(&fragmented).contains("fragmented"));
    assert_eq!(series(&fragmented.results, LATENCY)["verdict"], "trusted_with_cause");
    let many = shared_by("memory.bandwidth,memory.parallelism", 0.5, "always [madvise] never");
    let facts = findings(&many.results, "no-huge-pages")[0]["facts"].to_string();
    for bench in ["memory.bandwidth@all", "memory.bandwidth@one-cpu", "memory.parallelism"] {
        assert!(facts.contains(bench), "{bench} is not named: {facts}");
    }
    let mut cases = vec![never, fragmented, many];
    let test = "huge_pages_that_were_not_given (a real process)";
    match works("python3", &["-c", WITHOUT, "true"]) {
        true => {
            let wrapper = ["python3", "-c", WITHOUT];
            let words = format!("--only {LATENCY} --budget 6s");
            let refused = Live::of(&words).wrapped(&wrapper).any_end().run();
            // On a kernel that does not report what backs a mapping, the rule does not apply.
            match refused["rules_not_applicable"]
                .as_array()
                .is_some_and(|rules| rules.contains(&"no-huge-pages".into()))
            {
                true => skipped(test, "this kernel does not tell what pages back a mapping"),
                false => cases.push(case("huge pages forbidden to a real process", refused)),
            }
        }
        false => skipped(test, "python3 is not here, or the kernel has no PR_SET_THP_DISABLE"),
    }
    cases
}

pub fn huge_pages_that_were_given() -> Vec<Case> {
    vec![shares(1.0, "always [madvise] never"), shares(0.96, "[always] madvise never")]
}

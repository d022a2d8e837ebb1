//! Comparisons of small results.

mod across;
mod answer;
mod words;

use super::arm::AtOneClock;
use super::*;
use model::{Form, Metric, Verdict, VerdictKind};

pub fn member(key: &str, unit: &'static str, better: Better, medians: &[f64]) -> Member {
    let keyed = import::keyed(key).expect("a key");
    let metric =
        Metric::new(model::vocabulary::memory::metric::LATENCY, "latency", unit, better, Form::Value);
    Member {
        key: key.to_string(),
        case: keyed.case,
        point: keyed.point,
        metric: Metric { name: keyed.metric.into(), ..metric },
        title: "Test".into(),
        counts: vec![medians.len()],
        at_clock: None,
        medians: medians.to_vec(),
        clocks: vec![f64::NAN; medians.len()],
        given_interval: None,
        disturbed: Vec::new(),
        rejected_by: None,
        median: stats::order::median(medians).unwrap_or(f64::NAN),
        verdict: Verdict::trusted(),
        note: String::new(),
    }
}

pub fn arm(host: &str, imported: bool, members: Vec<Member>) -> ComparisonSide {
    ComparisonSide {
        host: host.into(),
        file: format!("{host}.file"),
        imported,
        pretended: false,
        runs: 1,
        identities: Default::default(),
        started: Vec::new(),
        flaws: Vec::new(),
        clock_source: None,
        knows_headlines: true,
        environment: Vec::new(),
        members,
        views: None,
        llc_bytes: None,
        rules: None,
    }
}

/// Eight processes around a level.
pub fn around(level: f64) -> Vec<f64> {
    (0..8).map(|at| level * (1.0 + 0.0005 * f64::from(at))).collect()
}

fn words(comparison: &Comparison) -> Vec<(Relation, String)> {
    comparison.metrics.iter().map(|one| (one.word, format!("{:.2}", one.ratio))).collect()
}

#[test]
fn faster_slower_and_the_same() {
    let arm = |host: &str, factor: f64| {
        let one = |key: &str, unit, better, level: f64| member(key, unit, better, &around(level));
        arm(
            host,
            false,
            vec![
                one("a.same@one-cpu#latency", "ns", Better::Lower, 5.0),
                one("a.time@one-cpu#latency", "ns", Better::Lower, 5.0 * factor),
                one("a.rate@one-cpu#rate", "1/s", Better::Higher, 5.0 * factor),
                one("a.fact@one-cpu#share", "", Better::Neither, 5.0 * factor),
            ],
        )
    };
    let slower = compare(&arm("old", 1.0), &arm("new", 1.5), &Options::default());
    let expected = [
        (Relation::Same, "1.00"),
        (Relation::Slower, "1.50"),
        (Relation::Faster, "1.50"),
        (Relation::Higher, "1.50"),
    ];
    assert_eq!(words(&slower), expected.map(|(word, ratio)| (word, ratio.to_string())));
    let [low, high] = slower.metrics[1].ci95.expect("eight processes");
    assert!(low < 1.5 && 1.5 < high && high - low < 0.1);
    assert_eq!(slower.metrics[0].words, "same within 5 %");
    assert!(slower.refused.is_empty() && slower.alone == [0, 0]);
    let back = compare(&arm("new", 1.5), &arm("old", 1.0), &Options::default());
    assert_eq!(back.metrics[1].word, Relation::Faster);
    // One that the other lacks is counted.
    let mut more = arm("new", 1.0);
    more.members.push(member("b.more@one-cpu#latency", "ns", Better::Lower, &[1.0]));
    assert_eq!(compare(&arm("old", 1.0), &more, &Options::default()).alone, [0, 1]);
}

#[test]
fn few_processes_and_imported_values_conclude_nothing() {
    let few = |host, imported, values: &[f64]| {
        arm(host, imported, vec![member("a.time@one-cpu#latency", "us", Better::Lower, values)])
    };
    let found =
        compare(&few("old", false, &[1.0, 1.0]), &few("new", false, &[9.0, 9.0]), &Options::default());
    assert_eq!((found.metrics[0].word, found.metrics[0].ci95), (Relation::Inconclusive, None));
    assert!(found.metrics[0].words.contains("too few"), "{}", found.metrics[0].words);
    // In another unit: 0.5 us are 500 ns.
    let mut new = few("new", false, &around(250.0));
    new.members[0].metric.unit = "ns".into();
    let found = compare(&few("old", true, &[0.5]), &new, &Options::default());
    assert_eq!((found.metrics[0].word, found.metrics[0].a), (Relation::Unverified, 500.0));
    assert!((found.metrics[0].ratio - 0.500875).abs() < 1e-9, "{}", found.metrics[0].ratio);
}

#[test]
fn what_must_not_be_compared_is_refused_with_its_factor() {
    let one = |key: &str, unit, values: &[f64]| member(key, unit, Better::Lower, values);
    let old = arm(
        "old",
        true,
        vec![
            one("ipc.pipe@free#latency", "us", &[5.0]),
            one("memory.latency@one-cpu?order=random/bytes=largest#latency", "ns", &[90.0]),
            one("memory.latency@one-cpu?order=stride&stride=64/bytes=4096#latency", "ns", &[1.0]),
            one("a.unit@one-cpu#latency", "us", &[1.0]),
            one("a.rejected@one-cpu#latency", "us", &[1.0]),
            one("a.base@one-cpu#latency", "us", &[1.0]),
        ],
    );
    let mut new = arm(
        "new",
        false,
        vec![
            one("ipc.pipe@one-cpu#latency", "us", &around(5.0)),
            one("memory.latency@one-cpu+base-pages?order=random/bytes=4096#latency", "ns", &around(90.0)),
            one(
                "memory.latency@one-cpu+huge-pages?order=stride&stride=64/bytes=4096#latency",
                "ns",
                &around(1.0),
            ),
            one("a.unit@one-cpu#latency", "GB/s", &around(1.0)),
            one("a.rejected@one-cpu#latency", "us", &around(1.0)),
            one("a.base@one-cpu+base-pages#latency", "us", &around(1.0)),
        ],
    );
    new.members[4].verdict = Verdict::new(VerdictKind::Rejected, "wrong answer");
    let found = compare(&old, &new, &Options::default());
    let refused: Vec<(&str, &str)> =
        found.refused.iter().map(|one| (one.factor.as_str(), one.reason.as_str())).collect();
    assert_eq!(
        refused,
        [
            ("placement", "free in A, one-cpu in B"),
            ("size", "A does not report at which size it was measured"),
            ("pages", "as given in A, huge in B"),
            ("unit", "\"us\" in A, \"GB/s\" in B"),
            ("verdict", "rejected in B: wrong answer"),
        ]
    );
    let note = found.metrics[0].note.as_str();
    assert_eq!(
        (found.metrics.len(), note),
        (1, "base pages on one side, pages as the system gave them on the other")
    );
    // Invented samples are compared with invented ones only.
    let mut pretended = new.clone();
    pretended.pretended = true;
    let found = compare(&new, &pretended, &Options::default());
    assert!(found.metrics.is_empty() && found.refused.iter().all(|one| one.factor == "samples"));
    assert_eq!(compare(&pretended, &pretended, &Options::default()).metrics.len(), 5);
}

#[test]
fn nothing_is_divided_by_zero() {
    let zero = |host, values: &[f64]| {
        arm(host, false, vec![member("a.time@one-cpu#latency", "us", Better::Lower, values)])
    };
    for (a, b) in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1e-308, 1e308)] {
        let found = compare(&zero("old", &[a; 8]), &zero("new", &[b; 8]), &Options::default());
        assert!(found.metrics.is_empty() && found.refused[0].factor == "value", "{a} {b}: {found:?}");
    }
}

#[test]
fn environments_differ_where_they_say_so() {
    let told = |pairs: &[(&str, &str)]| {
        let mut arm = arm("x", false, Vec::new());
        arm.environment = pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        arm
    };
    let old = told(&[
        ("kernel", "5.15.0-…"),
        ("core_clock", "2998 MHz"),
        ("cpus", "8"),
        ("steal", "0.1 %"),
        ("dimm", "1"),
    ]);
    let new = told(&[
        ("kernel", "5.15.0-91"),
        ("core_clock", "3010 MHz"),
        ("cpus", "2"),
        ("steal", "9 %"),
        ("turbo", "on"),
    ]);
    let (different, untold) = environment::differences(&old, &new);
    let labels: Vec<&str> = different.iter().map(|one| one.label.as_str()).collect();
    assert_eq!((labels, untold), (vec!["cpus", "steal"], vec!["dimm".to_string(), "turbo".to_string()]));
    assert!(environment::differences(&new, &new).0.is_empty());
}

#[test]
fn free_scores_of_other_placements_are_refused() {
    let of = |host: &str, share: f64| {
        let occupancy = |class: &str, share: f64| {
            let key = format!("ipc.pipe@free/class={class}#occupancy");
            member(&key, "", Better::Neither, &around(share))
        };
        let time =
            |place: &str| member(&format!("ipc.pipe@{place}#latency"), "us", Better::Lower, &around(5.0));
        let members = vec![
            time("free"),
            time("same-cpu"),
            time("other-cpu"),
            occupancy("same-cpu", share),
            occupancy("other-cpu", 1.0 - share),
        ];
        arm(host, false, members)
    };
    let found = compare(&of("old", 0.98), &of("new", 0.03), &Options::default());
    assert_eq!((found.metrics.len(), found.refused.len(), found.alone), (2, 1, [0, 0]));
    let refused = &found.refused[0];
    assert!(refused.factor == "placement" && refused.conditions && found.refuses(), "{refused:?}");
    assert!(
        refused.reason.ends_with("compare ipc.pipe@same-cpu#latency and ipc.pipe@other-cpu#latency instead"),
        "{}",
        refused.reason
    );
    let found = compare(&of("old", 0.5), &of("new", 0.45), &Options::default());
    assert_eq!((found.metrics.len(), found.refuses()), (3, false));
}

#[test]
fn an_index_is_as_free_as_its_context_switching() {
    let of = |host: &str, share: f64, factor: f64| {
        let occupancy = |class: &str, share: f64| {
            let key = format!("unixbench.context1@free?copies=1/class={class}#occupancy");
            member(&key, "", Better::Neither, &around(share))
        };
        let score = |case: &str, level: f64| {
            member(&format!("unixbench.{case}#score"), "", Better::Higher, &around(level))
        };
        let members = vec![
            score("context1@free?copies=1", 5.0 * factor),
            score("pipe@free?copies=1", 5.0),
            score("index@free?copies=1", 500.0 * factor.powf(1.0 / 12.0)),
            score("index@same-cpu?copies=1", 570.0),
            score("index@free?copies=2", 900.0),
            occupancy("same-cpu", share),
            occupancy("other-cpu", 1.0 - share),
        ];
        arm(host, false, members)
    };
    let found = compare(&of("old", 0.03, 1.0), &of("new", 0.98, 5.0), &Options::default());
    let refused: Vec<(&str, &str)> =
        found.refused.iter().map(|one| (one.key.as_str(), one.factor.as_str())).collect();
    let expected = ["unixbench.context1@free?copies=1#score", "unixbench.index@free?copies=1#score"];
    assert_eq!(refused, expected.map(|key| (key, "placement")));
    let reason = &found.refused[1].reason;
    assert!(reason.ends_with("; compare unixbench.index@same-cpu?copies=1#score instead"), "{reason}");
    assert!(reason.contains("context switching, which is in it"), "{reason}");
    // Figures that are pinned, or whose placement was not recorded, stay: another number of copies,
    // one task alone.
    assert_eq!(found.metrics.len(), 3);
    let alike = compare(&of("old", 0.95, 1.0), &of("new", 0.98, 1.0), &Options::default());
    assert_eq!((alike.metrics.len(), alike.refused.len()), (5, 0));
}

#[test]
fn advice_names_pinned_figures_of_the_same_only() {
    let of = |host: &str, share: f64| {
        let time = |case: &str| {
            member(&format!("sched.context-switch@{case}#latency"), "us", Better::Lower, &around(5.0))
        };
        let members = vec![
            time("free?processes=8/kb=64"),
            time("same-cpu?processes=2/kb=64"),
            time("same-cpu?processes=8/kb=0"),
            time("same-cpu+awake?processes=8/kb=64"),
            time("same-cpu?processes=8!governor=powersave/kb=64"),
            time("spread?processes=8/kb=64"),
            member(
                "sched.context-switch@free?processes=8/class=same-cpu#occupancy",
                "",
                Better::Neither,
                &around(share),
            ),
        ];
        arm(host, false, members)
    };
    let advice =
        |a: &ComparisonSide, b: &ComparisonSide| compare(a, b, &Options::default()).refused[0].reason.clone();
    let (old, mut new) = (of("old", 0.98), of("new", 0.03));
    let words = advice(&old, &new);
    assert!(
        words.ends_with("; compare sched.context-switch@spread?processes=8/kb=64#latency instead"),
        "{words}"
    );
    // What only one of the two has, is no advice.
    new.members.retain(|member| member.case.placement.name != "spread");
    let words = advice(&old, &new);
    assert!(words.ends_with("; pin the tasks to compare it"), "{words}");
}

/// Runs of one host, the second of which gave nothing for the second metric.
fn three_runs() -> Vec<ComparisonSide> {
    let of = |at: usize| {
        let one = |key: &str, values: &[f64]| member(key, "ns", Better::Lower, values);
        let few = if at == 1 { Vec::new() } else { around(5.0) };
        let members = vec![one("a.always@one-cpu#latency", &around(5.0)), one("a.few@one-cpu#latency", &few)];
        let file = format!("r{at}");
        ComparisonSide { identities: arm::identity("one", &file, &file), file, ..arm("one", false, members) }
    };
    (0..3).map(of).collect()
}

#[test]
fn a_metric_counts_the_runs_that_gave_it() {
    let whole = ComparisonSide::of_runs(three_runs(), "all").expect("three runs");
    let runs: Vec<usize> = whole.members.iter().map(|member| member.runs()).collect();
    assert_eq!((whole.runs, runs), (3, vec![3, 2]));
    // What whole runs differ by averages out over those only.
    let other = ComparisonSide { file: "b".into(), ..three_runs().remove(0) };
    let found =
        compare(&whole, &ComparisonSide { identities: Default::default(), ..other }, &Options::default());
    assert!(
        found.metrics[1].shared_half > found.metrics[0].shared_half,
        "{} {}",
        found.metrics[0].shared_half,
        found.metrics[1].shared_half
    );
}

#[test]
fn a_run_counts_once() {
    let mut twice = three_runs();
    twice[2] = ComparisonSide { file: "copy-of-r1".into(), ..twice[1].clone() };
    assert_eq!(ComparisonSide::of_runs(twice, "all"), Err("copy-of-r1 is the same run as r1".to_string()));
    // On both sides it is no error, but said.
    let whole = ComparisonSide::of_runs(three_runs(), "all").expect("three runs");
    let said = |b: &ComparisonSide| compare(&whole, b, &Options::default()).warnings.join("; ");
    assert!(said(&three_runs()[2]).starts_with("1 run is in A and in B"), "{}", said(&three_runs()[2]));
    assert!(said(&whole).starts_with("A and B are the same runs"), "{}", said(&whole));
    let run = || ComparisonSide { pretended: true, ..three_runs()[0].clone() };
    let on = |cpu: &str| ComparisonSide { environment: vec![("cpu".into(), cpu.into())], ..run() };
    assert_eq!([on("a").shared_runs(&on("a")), on("a").shared_runs(&on("b"))], [1, 0]);
}

#[test]
fn what_runs_of_one_arm_tell_is_looked_at_in_all_its_parts() {
    let told = |values: &[&str]| {
        let run = |value: &&str| {
            let environment =
                ["steal", "core_clock", "kernel"].map(|label| (label.into(), value.to_string()));
            ComparisonSide { environment: environment.to_vec(), ..arm("one", false, Vec::new()) }
        };
        ComparisonSide::of_runs(values.iter().map(run).collect(), "all").expect("runs")
    };
    let differs = |a: &[&str], b: &[&str]| -> Vec<String> {
        let (different, _) = environment::differences(&told(a), &told(b));
        different.into_iter().map(|one| one.label).collect()
    };
    assert_eq!(differs(&["0 %", "40 %"], &["0 %"]), ["steal", "core_clock", "kernel"]);
    assert_eq!(differs(&["0 %"], &["0 %", "40 %"]), ["steal", "core_clock", "kernel"]);
    assert_eq!(differs(&["0 %", "40 %"], &["40 %", "0 %"]), [""; 0]);
    assert_eq!(differs(&["1000 %", "1001 %"], &["1002 %", "1000 %"]), ["kernel"]);
    assert_eq!(told(&["1000 MHz", "3000 MHz"]).clock_ghz(), Some(2.0));
}

#[test]
fn torn_and_damaged_files_are_said() {
    assert_eq!(arm::flaws("r", true, &[]), Vec::<String>::new());
    let (torn, whole) =
        (ComparisonSide { flaws: arm::flaws("r", false, &[]), ..arm("x", false, Vec::new()) }, Vec::new());
    let damaged =
        ComparisonSide { flaws: vec!["one".to_string(); SHOWN_FLAWS + 2], ..arm("x", false, whole) };
    let warnings = compare(&torn, &damaged, &Options::default()).warnings;
    assert!(warnings[0].starts_with("A: the run in r is incomplete"), "{warnings:?}");
    assert_eq!((warnings.len(), warnings[1].as_str()), (SHOWN_FLAWS + 2, "B: one"));
    assert_eq!(warnings[SHOWN_FLAWS + 1], "B: 2 more flaws of its files are not listed");
    let flaws = arm::flaws("r", true, &["line 3: x".to_string(), "line 4: y".to_string()]);
    assert_eq!(flaws, ["r is damaged in 2 places, the first: line 3: x"]);
}

#[test]
fn a_common_clock_takes_the_clock_out_of_what_it_decides() {
    let at = |host: &str, ghz: f64, settings: &str| {
        let one = |key: &str, unit, better, level: f64| Member {
            clocks: vec![ghz; 8],
            ..member(key, unit, better, &around(level))
        };
        let members = vec![
            one("syscall.getpid@one-cpu#latency", "ns", Better::Lower, 300.0 / ghz),
            one("memory.bandwidth@one-cpu#bandwidth", "GB/s", Better::Higher, 10.0),
            one("memory.latency@one-cpu/bytes=4096#latency", "ns", Better::Lower, 5.0 / ghz),
            one("memory.latency@one-cpu/bytes=1000000000#latency", "ns", Better::Lower, 90.0),
        ];
        let mut arm = arm(host, false, members);
        let told = [("cpu_model", "X"), ("cpus", "2"), ("governor", settings)];
        arm.environment = told.map(|(label, value)| (label.to_string(), value.to_string())).to_vec();
        arm
    };
    let (fast, slow) = (at("one", 3.0, "x"), at("one", 2.0, "x"));
    let all = |b: &ComparisonSide, options: &Options| -> Vec<(Relation, bool)> {
        compare(&fast, b, options).metrics.iter().map(|one| (one.word, one.scaled)).collect()
    };
    // One host in another state: nothing of that is a difference, and nothing is the same for
    // sure.
    let found = compare(&fast, &slow, &Options::default());
    assert!(found.metrics.iter().all(|one| one.word == Relation::Inconclusive), "{:?}", words(&found));
    assert!(
        found.metrics[0].words.ends_with(" apart: the core clock differed (3.00 and 2.00 GHz)"),
        "{}",
        found.metrics[0].words
    );
    // What its run brought to a clock is compared at A's.
    let brought = |mut arm: ComparisonSide, ghz: f64| {
        let medians = arm.members[0].medians.clone();
        arm.members[0].at_clock = Some(AtOneClock::new(ghz, medians));
        arm
    };
    let found = compare(&brought(fast.clone(), 3.0), &brought(slow.clone(), 2.0), &Options::default());
    let first = &found.metrics[0];
    assert_eq!(
        (first.word, first.scaled, found.common_clock_ghz),
        (Relation::Same, true, Some(3.0)),
        "{first:?}"
    );
    assert!(found.metrics[1..].iter().all(|one| !one.scaled));
    // A setting explains it, or another host has another clock: then it is a property of what is
    // compared.
    for other in [at("one", 2.0, "y"), at("two", 2.0, "x")] {
        let expected = [Relation::Slower, Relation::Same, Relation::Slower, Relation::Same];
        let expected = expected.map(|word| (word, false));
        assert_eq!(all(&other, &Options::default()), expected);
        let common = Options { common_clock: true, ..Options::default() };
        let expected = [(Relation::Same, true), (Relation::Same, false)].repeat(2);
        assert_eq!(all(&other, &common), expected);
        assert_eq!(compare(&fast, &other, &common).common_clock_ghz, Some(3.0));
    }
}

#[test]
fn a_second_result_of_a_widens_the_margin() {
    let of = |host: &str, level: f64| {
        arm(host, false, vec![member("a.time@one-cpu#latency", "ns", Better::Lower, &around(level))])
    };
    let (a, b) = (of("old", 5.0), of("new", 5.5));
    assert_eq!(words(&compare(&a, &b, &Options::default()))[0].0, Relation::Slower);
    let again = Options { again: Some(of("old", 5.4)), ..Options::default() };
    let found = compare(&a, &b, &again);
    assert_eq!(
        (found.metrics[0].word, found.metrics[0].words.as_str()),
        (Relation::Same, "same within 16 %")
    );
}

#[test]
fn a_disturbed_difference_is_none_of_the_machine() {
    let of = |level: f64| {
        arm("x", false, vec![member("a.time@one-cpu#latency", "ns", Better::Lower, &around(level))])
    };
    let mut hog = of(7.0);
    hog.members[0].disturbed = vec!["background-load".to_string()];
    let found = compare(&of(5.0), &hog, &Options::default());
    assert_eq!(found.metrics[0].words, "cannot tell: background-load disturbed B");
    hog.members[0].rejected_by = Some("background-load".to_string());
    hog.members[0].verdict = Verdict::new(VerdictKind::Rejected, "half of it");
    let found = compare(&of(5.0), &hog, &Options::default());
    assert!(found.metrics.is_empty() && found.refused[0].factor == "background-load" && found.refuses());
}

#[test]
fn findings_that_only_one_side_has_are_named() {
    let with = |rules: Option<&[&str]>| ComparisonSide {
        rules: rules.map(|rules| rules.iter().map(|rule| rule.to_string()).collect()),
        ..arm("x", false, Vec::new())
    };
    let alone = |a, b| compare(&with(a), &with(b), &Options::default()).rules_alone;
    let (a, b): (&[&str], &[&str]) = (&["drift", "steal"], &["drift", "no-huge-pages"]);
    assert_eq!(alone(Some(a), Some(b)), [["steal"], ["no-huge-pages"]]);
    assert_eq!(alone(Some(a), None), [[""; 0]; 2], "a summary has no findings");
}

//! What the answer of a comparison says, and which rows stand below it.

use super::*;

const KEYS: [(&str, &str); 4] = [
    ("memory.data-source@one-cpu+huge-pages?source=dram#latency", "ns"),
    ("syscall.getpid@one-cpu#latency", "ns"),
    ("vm.page-fault@one-cpu#latency", "us"),
    ("process.exec@one-cpu?program=minimal#latency", "us"),
];

/// A host whose four figures take `factors` of the usual time.
fn host(name: &str, factors: [f64; 4]) -> ComparisonSide {
    let members = KEYS.iter().zip(factors).map(|((key, unit), factor)| {
        let mut one = member(key, unit, Better::Lower, &around(100.0 * factor));
        one.metric.headline = true;
        one
    });
    arm(name, false, members.collect())
}

fn answer(a: &ComparisonSide, b: &ComparisonSide) -> Answer {
    compare(a, b, &Options::default()).answer("B", MAX_ROWS)
}

#[test]
fn the_first_sentence_says_who_is_faster_by_how_much_and_from_how_many() {
    let said = answer(&host("a", [1.0; 4]), &host("b", [1.26, 1.2, 1.2, 1.2]));
    assert_eq!((said.outcome, said.word.as_str()), (Outcome::Slower, "B is slower"));
    let first = &said.sentences[0];
    assert!(first.starts_with("B is 1") && first.contains(" % slower than A overall: 0.8"), "{first}");
    assert!(first.ends_with("from all 4 figures."), "{first}");
    let second = &said.sentences[1];
    assert!(second.starts_with("Memory and OS decide it: memory latency +26 %, "), "{second}");
    let faster = answer(&host("a", [1.26; 4]), &host("b", [1.0; 4]));
    assert_eq!(faster.outcome, Outcome::Faster);
}

#[test]
fn every_row_is_turned_one_way() {
    let said = answer(&host("a", [1.0; 4]), &host("b", [1.26, 0.8, 1.0, 1.0]));
    let rows: Vec<&Row> = said.groups.iter().flat_map(|group| &group.rows).collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let ratio = row.ratio.expect("a ratio");
        match row.word() {
            Some(Relation::Faster) => assert!(ratio > 1.0, "{row:?}"),
            Some(Relation::Slower) => assert!(ratio < 1.0, "{row:?}"),
            _ => assert!((ratio - 1.0).abs() < 0.01, "{row:?}"),
        }
    }
    // In the unit of the key figure, and in the order of the screen.
    let groups: Vec<&str> = said.groups.iter().map(|group| group.group.word()).collect();
    assert_eq!(groups, ["memory", "OS"]);
    let call = &said.groups[1].rows[0];
    assert!(call.unit == "µs" && (call.values[0] - 0.1).abs() < 0.01, "{call:?}");
}

#[test]
fn equal_hosts_hear_what_could_not_have_been_seen() {
    let (a, b) = (host("a", [1.0; 4]), host("b", [1.001; 4]));
    let said = answer(&a, &b);
    assert_eq!((said.outcome, said.word.as_str()), (Outcome::Same, "B is as fast as A"));
    assert!(said.sentences.last().is_some_and(|text| text.starts_with("This comparison can detect ")));
    let itself = answer(&a, &a);
    assert!(itself.sentences[0].starts_with("A and B have identical numbers"), "{:?}", itself.sentences);
    assert!(itself.sentences[1].starts_with("Two such runs can detect "), "{:?}", itself.sentences);
}

#[test]
fn where_conditions_forbid_most_there_is_no_conclusion() {
    let (a, mut b) = (host("a", [1.0; 4]), host("b", [1.2; 4]));
    for member in b.members.iter_mut().take(3) {
        member.verdict = Verdict::new(VerdictKind::Rejected, "other processes ran");
        member.rejected_by = Some("background-load".into());
    }
    let said = answer(&a, &b);
    assert_eq!(said.outcome, Outcome::NoConclusion);
    assert_eq!(
        said.sentences[0],
        "No conclusion: B was measured beside other work, so 3 of 4 figures do not count."
    );
    assert_eq!(said.sentences[2], "Measure B again on a quiet host: `assay run --wait-idle`");
    // What does not count keeps its row, with both values.
    let left: Vec<&Row> =
        said.groups.iter().flat_map(|group| &group.rows).filter(|row| row.ratio.is_none()).collect();
    assert!(left.len() == 3 && left.iter().all(|row| row.values.iter().all(|value| value.is_finite())));
}

#[test]
fn several_are_ranked() {
    let a = host("a", [1.0; 4]);
    let found = [host("b", [1.3; 4]), host("c", [0.8; 4])].map(|b| compare(&a, &b, &Options::default()));
    let answers: Vec<Answer> = found.iter().map(|one| one.answer("B", MAX_ROWS)).collect();
    let named = [("B", &found[0], &answers[0]), ("C", &found[1], &answers[1])];
    let said = ranking(&named).expect("a ranking");
    assert!(said.starts_with("C is fastest overall: 1.25 (") && said.contains("; then B 0.77 ("), "{said}");
    assert_eq!(ranking(&named[..1]), None);
}

/// Figures that differ and have no row: with no better side, without a title, or past the last row.
#[test]
fn no_sentence_leaves_out_the_name_of_a_figure() {
    let holes = [" .", " ,", " ;", ": and ", "  ", "()", "all and "];
    for (better, title) in
        [(Better::Neither, "Test"), (Better::Neither, ""), (Better::Higher, ""), (Better::Lower, "Test")]
    {
        for (odd, factor) in [(0, 1.0), (1, 1.5), (1, 0.5), (2, 1.5), (2, 0.5), (14, 1.5)] {
            for (others, most_rows) in [(1.0, MAX_ROWS), (1.26, MAX_ROWS), (0.8, 1), (1.0, 0)] {
                let with = |name: &str, factor: f64, others: f64| {
                    let mut host = host(name, [others; 4]);
                    host.members.extend((0..odd).map(|number| {
                        let key = format!("a.odd{number}@one-cpu#share");
                        let mut one = member(&key, "ns", better, &around(100.0 * factor));
                        one.metric.headline = true;
                        one.title = title.to_string();
                        one
                    }));
                    host
                };
                let found = compare(&with("a", 1.0, 1.0), &with("b", factor, others), &Options::default());
                let said = found.answer("B", most_rows).sentences;
                let hole = said.iter().find(|text| holes.iter().any(|hole| text.contains(hole)));
                assert_eq!(hole, None, "{odd} {better:?} {title:?} times {factor}, others {others}");
                let differing = said.iter().find(|text| text.contains("differ"));
                let names = |text: &&String| {
                    ["Test", "a", "memory", "system call"].iter().any(|name| text.contains(name))
                };
                assert!(differing.is_none_or(|text| names(&text)), "{said:?}");
            }
        }
    }
}

#[test]
fn a_part_counts_a_benchmark_once_and_an_index_a_part_once() {
    let of = |host: &str, factor: f64| {
        let mut members = vec![
            member("cpu.x@one-cpu#time", "ns", Better::Lower, &around(2.0 / factor)),
            member("disk.x@one-cpu#rate", "1/s", Better::Higher, &around(5.0)),
        ];
        for bytes in 0..20 {
            let key = format!("memory.latency@one-cpu/bytes={bytes}#latency");
            members.push(member(&key, "ns", Better::Lower, &around(5.0)));
        }
        arm(host, false, members)
    };
    let found = compare(&of("old", 1.0), &of("new", 8.0), &Options::default());
    let parts: Vec<(&str, String, bool)> = found
        .components
        .iter()
        .map(|one| (one.name.as_str(), format!("{:.3}", one.pooled.ratio), one.moves))
        .collect();
    let same = || "1.000".to_string();
    assert_eq!(
        parts,
        [("cpu", "8.000".to_string(), true), ("disk", same(), false), ("memory latency", same(), false)]
    );
    let index = found.index.expect("an index");
    assert!((index.ratio - 2.0).abs() < 1e-9 && index.metrics == 22 && index.benchmarks == 3, "{index:?}");
    let [low, high] = index.leave_one_out.expect("three benchmarks");
    assert!((low - 1.0).abs() < 1e-9 && (high - 8.0f64.sqrt()).abs() < 1e-9);
    // What all metrics of a run share does not average out over them.
    let memory = &found.components[2].pooled;
    let own = found.metrics[2].ci95.expect("eight processes");
    let [low, high] = memory.ci95;
    assert!((high / low).ln() > 0.7 * (own[1] / own[0]).ln());
}

//! What the answer of a comparison says, and which rows stand below it.

use super::*;

const KEYS: [(&str, &str); 4] = [
    ("memory.data-source@one-cpu+huge-pages?source=dram#latency", "ns"),
    ("syscall.getpid@one-cpu#latency", "ns"),
    ("vm.page-fault@one-cpu#latency", "us"),
    ("process.exec@one-cpu?program=minimal#latency", "us"),
];

/// A host whose four figures take `factors` of the usual time.
fn host(name: &str, factors: [f64; 4]) -> Arm {
    let members = KEYS.iter().zip(factors).map(|((key, unit), factor)| {
        let mut one = member(key, unit, Better::Lower, &around(100.0 * factor));
        one.metric.headline = true;
        one
    });
    arm(name, false, members.collect())
}

fn answer(a: &Arm, b: &Arm) -> Answer {
    compare(a, b, &Options::default()).answer("B", MOST_ROWS)
}

#[test]
fn the_first_sentence_says_who_is_faster_by_how_much_and_from_how_many() {
    let said = answer(&host("a", [1.0; 4]), &host("b", [1.26, 1.2, 1.2, 1.2]));
    assert_eq!((said.outcome, said.word.as_str()), (Outcome::Slower, "B is slower"));
    let first = &said.sentences[0];
    assert!(first.starts_with("B is 1") && first.contains(" % slower than A over all: 0.8"), "{first}");
    assert!(first.ends_with("from all 4 main figures that both have."), "{first}");
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
            Some(Word::Faster) => assert!(ratio > 1.0, "{row:?}"),
            Some(Word::Slower) => assert!(ratio < 1.0, "{row:?}"),
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
    assert!(
        said.sentences
            .last()
            .is_some_and(|text| text.starts_with("This comparison shows differences above "))
    );
    let itself = answer(&a, &a);
    assert!(itself.sentences[0].starts_with("A and B have identical numbers"), "{:?}", itself.sentences);
    assert!(itself.sentences[1].starts_with("Two such runs show "), "{:?}", itself.sentences);
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
        "No conclusion: B was measured beside other work, so 3 of the 4 main figures that both have do not count."
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
    let answers: Vec<Answer> = found.iter().map(|one| one.answer("B", MOST_ROWS)).collect();
    let named = [("B", &found[0], &answers[0]), ("C", &found[1], &answers[1])];
    let said = ranking(&named).expect("a ranking");
    assert!(said.starts_with("C is fastest over all: 1.25 (") && said.contains("; then B 0.77 ("), "{said}");
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
            for (others, most_rows) in [(1.0, MOST_ROWS), (1.26, MOST_ROWS), (0.8, 1), (1.0, 0)] {
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

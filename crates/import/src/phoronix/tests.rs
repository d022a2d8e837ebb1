//! Results of the Phoronix Test Suite: recorded with version 10.8.6 and two profiles of our own
//! (`tests/foreign/phoronix-recorded.xml`: one gives two figures a run, one none; whole results
//! were taken out and a list was shortened), and made by hand in the shape of published ones.

use crate::faults::{FIGURES_DISAGREE, INTERRUPTED};
use crate::{Imported, read};

fn case(name: &str) -> String {
    std::fs::read_to_string(testkit::root().join("tests/foreign").join(name)).expect("a case")
}

fn all(text: &str) -> Vec<Imported> {
    read(text.as_bytes()).expect("results")
}

/// Key, values, and why there are none.
fn figures(one: &Imported) -> Vec<(String, Vec<f64>, String)> {
    let of = |figure: &crate::Figure| {
        let series = &figure.judged.series;
        let values: Vec<f64> = series.processes.iter().flat_map(|one| one.values.clone()).collect();
        let why =
            if values.is_empty() { figure.judged.analysis.verdict.reason.clone() } else { String::new() };
        (series.key.clone(), values, why)
    };
    one.figures.iter().map(of).collect()
}

/// What stands between the tags of a line.
fn inner<'t>(line: &'t str, tag: &str) -> Option<&'t str> {
    line.trim().strip_prefix(&format!("<{tag}>"))?.strip_suffix(&format!("</{tag}>"))
}

#[test]
fn every_repetition_of_the_recorded_file_and_nothing_of_a_sensor() {
    let text = case("phoronix-recorded.xml");
    let found = all(&text);
    assert_eq!(found.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), ["first", "second last"]);
    // Line by line: whose each list of repetitions is, of results that a test gave.
    let (mut of_test, mut system) = (false, "");
    let mut expected: [Vec<Vec<f64>>; 2] = Default::default();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(identifier) = inner(line, "Identifier") {
            match lines[at - 1].trim() {
                "<Result>" => of_test = !identifier.is_empty(),
                _ => system = identifier,
            }
        }
        let raw = inner(line, "RawString").filter(|raw| of_test && !raw.is_empty());
        if let Some(raw) = raw {
            let values = raw.split(':').map(|one| one.parse().expect("a number")).collect();
            expected[usize::from(system == "second last")].push(values);
        }
    }
    for (one, expected) in found.iter().zip(&expected) {
        let values: Vec<Vec<f64>> = figures(one)
            .into_iter()
            .map(|(_, values, _)| values)
            .filter(|values| !values.is_empty())
            .collect();
        assert_eq!(values, *expected, "{}", one.host);
        assert!(one.findings.is_empty(), "{:?}", one.findings);
    }
    assert_eq!(expected.map(|lists| lists.len()), [3, 3]);
    let keys: Vec<String> = figures(&found[0]).into_iter().map(|(key, ..)| key).collect();
    // Same test, same words, other arguments.
    assert!(keys[1].contains("arguments=400000&") && keys[2].contains("arguments=1500000&"), "{keys:?}");
    let failed = figures(&found[0]).into_iter().find(|(key, ..)| key.contains("gives-up")).expect("told");
    assert_eq!(failed.2, "the test failed: The test run did not produce a result.");
    assert!(
        found[0]
            .remarks
            .iter()
            .any(|remark| remark.starts_with("graphs of sensors") && remark.ends_with(": 1"))
    );
}

#[test]
fn kinds_of_results() {
    let found = all(&case("phoronix-kinds.xml"));
    let [old, new] = found.as_slice() else { panic!("{} systems", found.len()) };
    assert_eq!((old.host.as_str(), new.host.as_str()), ("Old kernel", "New kernel"));
    let fact =
        |label: &str| old.make_up.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str());
    let told =
        ["cpu_model", "packages", "cores", "cpus", "memory_gib", "storage", "kernel", "ran", "environment"];
    let expected = [
        "Invented CPU 1000 @ 2.60GHz",
        "2",
        "12",
        "24",
        "32",
        "2000GB Disk A + 256GB Disk B",
        "6.1.0-18-amd64",
        "2025-03-01T09:00:00",
        "CFLAGS=\"-O3\"",
    ];
    assert_eq!(told.map(|label| fact(label).unwrap_or("none")), expected);
    let json = &old.figures[0];
    assert_eq!(
        json.judged.series.key,
        "phoronix.simdjson@free?app=2.0&arguments=kostya&profile=2.0.1&test=Throughput%20Test:%20Kostya#gb_s"
    );
    assert_eq!(json.note, "compiled with g++ -O3 -march=native");
    assert_eq!(json.judged.analysis.estimate.as_ref().map(|one| (one.median, one.n)), Some((1.08, 3)));
    let why = |one: &Imported, name: &str| {
        figures(one).into_iter().find(|(key, ..)| key.contains(name)).map(|(_, _, why)| why).expect("told")
    };
    assert_eq!(why(old, "frames"), "it is a curve of 3 values, not one figure");
    assert_eq!(why(new, "check"), "\"PASS\" is not a number");
    assert!(why(new, "stream").starts_with("it prints 0.000"));
    assert!(old.figures.iter().all(|figure| !figure.judged.series.key.contains("install")));
}

#[test]
fn a_mean_outside_of_its_repetitions_is_found_and_an_end_that_is_missing() {
    let text = case("phoronix-kinds.xml");
    let rules = |text: &str| -> Vec<String> {
        all(text).iter().flat_map(|one| &one.findings).map(|finding| finding.rule.clone()).collect()
    };
    assert!(rules(&text).is_empty());
    assert_eq!(rules(&text.replace("<Value>1.08<", "<Value>1.18<")), [FIGURES_DISAGREE]);
    let cut = &text[..text.find("<Identifier>pts/stream").expect("stream")];
    assert_eq!(rules(cut), [INTERRUPTED, INTERRUPTED]);
    for end in (0..text.len()).step_by(53).filter(|end| text.is_char_boundary(*end)) {
        if let Ok(found) = read(&text.as_bytes()[..end]) {
            assert!(found.iter().all(|one| one.findings.iter().any(|finding| finding.rule == INTERRUPTED)));
        }
    }
    // Lines of another result inside of one.
    let mixed =
        text.replace("    <AppVersion>2013-01-17", "    <Title>Other</Title>\n    <AppVersion>2013-01-17");
    let found = all(&mixed);
    assert!(found.iter().all(|one| figures(one).iter().all(|(key, ..)| !key.contains("stream"))));
    assert!(found[0].remarks.iter().any(|remark| remark.starts_with("results that have an element twice")));
}

#[test]
fn nothing_is_expanded_followed_or_endless() {
    let text = case("phoronix-kinds.xml");
    let laughs: String =
        (1..20).map(|at| format!("<!ENTITY a{at} \"{}\">", format!("&a{};", at - 1).repeat(10))).collect();
    let bomb = text
        .replace("<PhoronixTestSuite>", &format!("<!DOCTYPE x [<!ENTITY a0 \"ha\">{laughs}<!ENTITY f SYSTEM \"file:///etc/passwd\">]>\n<PhoronixTestSuite>"))
        .replace("<Title>Stream</Title>", "<Title>&a19;&f; &lt;&#65;&#x42;&gt;</Title>");
    let found = all(&bomb);
    let stream = found[0].figures.iter().find(|one| one.wording.contains("Triad")).expect("told");
    assert_eq!(stream.wording, "&a19;&f; <AB>, Type: Triad");
    assert_eq!(figures(&found[0]), figures(&all(&text)[0]));
    // Of what is too deep the rest is not read.
    let deep = text.replace("<Title>Stream</Title>", &"<Title>".repeat(20_000));
    let found = all(&deep);
    assert!(figures(&found[0]).iter().all(|(key, ..)| !key.contains("stream")));
    assert_eq!(found[0].findings[0].rule, INTERRUPTED);
    let entry = "<Entry><Identifier>Old kernel</Identifier><Value>1</Value></Entry>";
    let many = text.replace(
        "<Entry>\n        <Identifier>New kernel</Identifier>\n        <Value>1.21",
        &format!("{}<Entry>\n<Identifier>New kernel</Identifier>\n<Value>1.21", entry.repeat(20_500)),
    );
    let found = all(&many);
    assert!(
        found[0].remarks.iter().any(|remark| remark.starts_with("entries that were left out")),
        "{:?}",
        found[0].remarks
    );
    let systems: String =
        (0..1000).map(|at| format!("<System><Identifier>s{at}</Identifier></System>")).collect();
    assert_eq!(all(&text.replace("  <System>", &format!("{systems}  <System>"))).len(), 2);
    let entries: String = (0..1000)
        .map(|at| format!("<Entry><Identifier>s{at}</Identifier><Value>1</Value></Entry>"))
        .collect();
    let found = all(&text.replacen("<Data>", &format!("<Data>{entries}"), 1));
    assert!(found.len() == 200 && found[0].remarks.iter().any(|remark| remark.contains("802 systems")));
}

#[test]
fn files_without_a_result_are_refused() {
    for text in [
        "<PhoronixTestSuite>\n<System><Identifier>a</Identifier></System>\n</PhoronixTestSuite>\n",
        "<PhoronixTestSuite>\n<Result><Identifier>pts/x-1.0.0</Identifier><Data></Data></Result>\n</PhoronixTestSuite>\n",
    ] {
        let error = read(text.as_bytes()).expect_err("nothing");
        assert!(format!("{error:#}").contains("without an entry"), "{error:#}");
    }
    let profile =
        "<PhoronixTestSuite>\n<TestInformation><Title>x</Title></TestInformation>\n</PhoronixTestSuite>\n";
    assert!(
        format!("{:#}", read(profile.as_bytes()).expect_err("no result"))
            .contains("lists the formats that Assay reads")
    );
}

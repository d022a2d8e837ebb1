//! `assay check --junit`: the XML has the form that Jenkins' xunit plugin and GitLab take, and says
//! of each demand what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::XmlVersion::Implicit1_0;
use quick_xml::events::{BytesStart, Event};
use testkit::host;

use crate::assay;
use crate::check_fleet::Hosts;
use crate::golden::pretended;

/// What an element may have: our own list of the rules that the plugin's schema sets.
struct Rule {
    element: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    inside: &'static [&'static str],
    has_text: bool,
}

const RULES: [Rule; 6] = [
    Rule {
        element: "testsuites",
        required: &[],
        optional: &["name", "time", "tests", "failures", "errors"],
        inside: &["testsuite"],
        has_text: false,
    },
    Rule {
        element: "testsuite",
        required: &["name", "tests", "failures", "errors"],
        optional: &["time", "skipped", "timestamp", "hostname"],
        inside: &["testcase"],
        has_text: false,
    },
    Rule {
        element: "testcase",
        required: &["name"],
        optional: &["classname", "time"],
        inside: &["skipped", "error", "failure"],
        has_text: false,
    },
    Rule { element: "failure", required: &[], optional: &["type"], inside: &[], has_text: true },
    Rule { element: "error", required: &[], optional: &["type"], inside: &[], has_text: true },
    Rule { element: "skipped", required: &[], optional: &["type"], inside: &[], has_text: false },
];

/// An element with its attributes, its text and the elements inside.
#[derive(Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
    inside: Vec<Element>,
}

impl Element {
    fn of(tag: &BytesStart) -> Element {
        let mut attributes = BTreeMap::new();
        for attribute in tag.attributes() {
            let attribute = attribute.expect("an attribute");
            let value = attribute.normalized_value(Implicit1_0).expect("a value").into_owned();
            let name = attribute.key.as_ref().to_string();
            assert!(attributes.insert(name, value).is_none(), "twice: {tag:?}");
        }
        Element { name: tag.name().as_ref().to_string(), attributes, ..Element::default() }
    }

    fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map(String::as_str).unwrap_or_default()
    }

    fn count(&self, name: &str) -> usize {
        self.attribute(name).parse().unwrap_or_else(|_| panic!("{name} of {}", self.name))
    }

    /// How many elements of a name there are below it.
    fn below(&self, name: &str) -> usize {
        self.inside.iter().map(|own| usize::from(own.name == name) + own.below(name)).sum()
    }

    /// What of it breaks the rules, in words.
    fn faults(&self) -> Vec<String> {
        let Some(rule) = RULES.iter().find(|rule| rule.element == self.name) else {
            return vec![format!("no rule knows the element {}", self.name)];
        };
        let mut faults = Vec::new();
        for name in rule.required.iter().filter(|name| !self.attributes.contains_key(**name)) {
            faults.push(format!("{} has no {name}", self.name));
        }
        let known = |name: &String| rule.required.iter().chain(rule.optional).any(|own| own == name);
        faults.extend(
            self.attributes
                .keys()
                .filter(|name| !known(name))
                .map(|name| format!("{} has a {name}", self.name)),
        );
        // Digits, and at most three behind the point.
        let is_time = |text: &str| {
            let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
            let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
            !whole.is_empty() && digits(whole) && digits(rest) && rest.len() <= 3
        };
        if let Some(time) = self.attributes.get("time").filter(|time| !is_time(time)) {
            faults.push(format!("the time {time:?} of {}", self.name));
        }
        if rule.has_text == self.text.trim().is_empty() {
            faults.push(format!("the text {:?} of {}", self.text.trim(), self.name));
        }
        for own in &self.inside {
            if !rule.inside.contains(&own.name.as_str()) {
                faults.push(format!("{} stands inside {}", own.name, self.name));
            }
            faults.extend(own.faults());
        }
        faults
    }
}

/// The one element of a document, which begins with its declaration.
fn document(text: &str) -> Element {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    let close = |open: &mut Vec<Element>| {
        let done = open.pop().expect("an open element");
        open.last_mut().expect("an outer one").inside.push(done);
    };
    let mut declared = false;
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Eof => break,
            Event::Decl(_) => declared = true,
            Event::Start(tag) => open.push(Element::of(&tag)),
            Event::Empty(tag) => {
                open.push(Element::of(&tag));
                close(&mut open);
            }
            Event::Text(text) => open.last_mut().expect("an element").text += text.as_ref(),
            Event::GeneralRef(name) => open.last_mut().expect("an element").text += name.as_ref(),
            Event::End(_) => close(&mut open),
            other => panic!("{other:?}"),
        }
    }
    assert!(declared && open.len() == 1, "{text}");
    let mut all = open.remove(0).inside;
    assert_eq!(all.len(), 1, "one element stands outermost: {text}");
    all.remove(0)
}

/// A demand of each outcome.
const SPEC: &str = "\
[machine]
cpus = { min = 2 }
cpu_model = \"AMD*\"
governor = \"performance\"
[limits]
core-clock = { min = \"1 GHz\" }
tcp = { min = \"9 Gbit/s\", optional = true }
[[limit]]
series = \"memory.latency@*\"
max = \"1 s\"
";

fn written(runs: &[&Path], spec: &str, folder: &Path) -> (i32, Element) {
    let (file, xml) = (folder.join("spec.toml"), folder.join("assay.xml"));
    fs::write(&file, spec).expect("a file");
    let mut command = assay();
    command.arg("check").args(runs).arg("--spec").arg(file).arg("--brief").arg("--junit").arg(&xml);
    let code = command.output().expect("assay runs").status.code().unwrap_or(-1);
    (code, document(&fs::read_to_string(xml).expect("the file")))
}

#[test]
fn the_xml_keeps_the_rules_of_its_readers() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let one = pretended(1, &folder.path().join("one"), &[]);
    let other = pretended(2, &folder.path().join("other"), &["--host", "a<b>&\"c\""]);
    let gone = folder.path().join("gone.assay.jsonl");
    let (code, suites) = written(&[&one, &other, &gone], SPEC, folder.path());
    assert_eq!(code, 1);
    assert_eq!(suites.name, "testsuites");
    assert_eq!(suites.faults(), Vec::<String>::new());
    assert_eq!(suites.inside.len(), 3, "a suite a host");
    assert_eq!(suites.inside[1].attribute("name"), "a<b>&\"c\" (invented samples)");
    // Each suite's counts are what stands in it, and the whole is their sum.
    for (name, element) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")] {
        for suite in &suites.inside {
            assert_eq!(suite.count(name), suite.below(element), "{name} of {}", suite.attribute("name"));
        }
        assert_eq!(suites.count(name), suites.below(element), "{name}");
        assert!(suites.below(element) > 0, "{name}");
    }
    assert!(suites.inside.iter().all(|suite| suite.count("skipped") == suite.below("skipped")));
    assert!(suites.below("skipped") > 0);
    // Later ones of a name would be dropped.
    let cases = suites.inside.iter().flat_map(|suite| &suite.inside);
    let names: BTreeSet<_> =
        cases.map(|case| (case.attribute("classname"), case.attribute("name"))).collect();
    assert_eq!(names.len(), suites.below("testcase"));
    let (code, suites) = written(&[&gone], SPEC, folder.path());
    assert_eq!((code, suites.faults()), (3, Vec::new()), "a run that cannot be read is a suite, too");
    assert_eq!((suites.count("tests"), suites.count("errors")), (1, 1));
}

/// A series that is limited twice, and runs of one host.
#[test]
fn no_case_of_many_runs_has_the_name_of_another() {
    let hosts = Hosts::new();
    let twice = "[[limit]]\nseries = \"memory.latency@*\"\nmax = \"1 s\"\n".repeat(2);
    hosts.run("runs/1.assay.jsonl", "db1", "2026-11-03T00:00:00Z");
    hosts.run("runs/2.assay.jsonl", "db1", "2026-11-02T00:00:00Z");
    let lines = hosts.put("fleet.ndjson", &["db2", "db3"].map(|host| hosts.line(host, "", 1.0)).concat());
    let (code, suites) =
        written(&[&hosts.place("runs"), &lines], &format!("{SPEC}{twice}"), &hosts.place(""));
    assert_eq!((code, suites.faults()), (1, Vec::new()));
    let names: Vec<&str> = suites.inside.iter().map(|suite| suite.attribute("name")).collect();
    assert!(
        names.len() == 4 && names[0].ends_with("1.assay.jsonl") && names[2..] == ["db2", "db3"],
        "{names:?}"
    );
    let cases = suites.inside.iter().flat_map(|suite| &suite.inside);
    let names: BTreeSet<_> =
        cases.map(|case| (case.attribute("classname"), case.attribute("name"))).collect();
    assert_eq!(names.len(), suites.below("testcase"));
    assert!(names.iter().any(|(_, name)| name.ends_with(" (2)")), "{names:?}");
    // The library by which others read it finds the same.
    let Some(mut python) = host::fleet_tool("no_case_of_many_runs", "python3") else { return };
    let script = "import sys, junitparser\n\
        suites = list(junitparser.JUnitXml.fromfile(sys.argv[1]))\n\
        cases = [case for suite in suites for case in suite]\n\
        kinds = [kind for case in cases for kind in case.result]\n\
        count = lambda kind: sum(isinstance(own, kind) for own in kinds)\n\
        assert all(own.text for own in kinds if not isinstance(own, junitparser.Skipped))\n\
        print(len(suites), len(cases), count(junitparser.Failure), count(junitparser.Error))";
    let read = python.args(["-c", script]).arg(hosts.place("assay.xml")).output().expect("python runs");
    let counts = [4, suites.below("testcase"), suites.below("failure"), suites.below("error")];
    let told = counts.map(|count| count.to_string()).join(" ");
    assert_eq!(
        String::from_utf8_lossy(&read.stdout).trim(),
        told,
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
}

#[test]
fn the_rules_find_what_is_wrong() {
    for (text, told) in [
        ("<testsuites skipped='0'/>", "testsuites has a skipped"),
        ("<testsuite name='a' tests='0' failures='0'/>", "testsuite has no errors"),
        ("<testsuites><testcase name='a'/></testsuites>", "testcase stands inside testsuites"),
        ("<testcase name='a' time='1e-5'/>", "the time \"1e-5\""),
        ("<testcase name='a' time='0.1234'/>", "the time"),
        ("<testcase name='a'><failure type='missed'/></testcase>", "the text \"\" of failure"),
        ("<testcase name='a'><failure message='missed'>x</failure></testcase>", "failure has a message"),
        ("<testcase name='a'><properties/></testcase>", "no rule knows the element properties"),
    ] {
        let faults = document(&format!("<?xml version=\"1.0\"?>{text}")).faults();
        assert!(faults.iter().any(|fault| fault.contains(told)), "{text}: {faults:?}");
    }
}

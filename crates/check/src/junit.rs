//! JUnit's XML of checked runs: a suite for each host, a case for each demand. Jenkins' schema and
//! GitLab's reader decide its form: the text stands inside `failure`, the host in `classname`,
//! nothing is skipped in `testsuites`.

use super::demand::Demand;
use super::judge::{Outcome, Verdict};
use super::limit::DemandStatus;
use quick_xml::Writer;
use quick_xml::events::BytesText;
use std::collections::HashMap;
use std::io::Write;

/// The XML. An error is one of writing, which memory does not give.
pub fn junit(outcomes: &[Outcome]) -> anyhow::Result<String> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    let total = |standing| outcomes.iter().map(|one| one.count(standing)).sum::<usize>();
    let tests = outcomes.iter().map(tests).sum::<usize>();
    let unusable = outcomes.iter().filter(|one| one.verdict == Verdict::NotUsable).count();
    writer
        .create_element("testsuites")
        .with_attributes([
            ("name", "assay check"),
            ("tests", tests.to_string().as_str()),
            ("failures", total(DemandStatus::Missed).to_string().as_str()),
            ("errors", (total(DemandStatus::Undecided) + unusable).to_string().as_str()),
        ])
        .write_inner_content(|writer| {
            let mut hosts: HashMap<&str, usize> = HashMap::new();
            outcomes.iter().for_each(|one| *hosts.entry(&one.host).or_default() += 1);
            // Readers keep the first of several cases of one name, so that runs of one host have
            // their files in it.
            outcomes.iter().try_for_each(|one| match hosts[one.host.as_str()] {
                1 => suite(writer, one, &one.named(), &one.host),
                _ => suite(
                    writer,
                    one,
                    &format!("{}, {}", one.named(), one.file),
                    &format!("{}, {}", one.host, one.file),
                ),
            })
        })?;
    let text = String::from_utf8(writer.into_inner())?;
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}\n"))
}

/// A text without the characters that XML and YAML have no place for, however they are written.
pub(super) fn allowed(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')).collect()
}

/// The demands, and a case for a run that cannot be judged.
fn tests(outcome: &Outcome) -> usize {
    outcome.demands.len() + usize::from(outcome.verdict == Verdict::NotUsable)
}

fn suite<W: Write>(
    writer: &mut Writer<W>,
    outcome: &Outcome,
    name: &str,
    class: &str,
) -> std::io::Result<()> {
    let unusable = usize::from(outcome.verdict == Verdict::NotUsable);
    writer
        .create_element("testsuite")
        .with_attributes([
            ("name", allowed(name).as_str()),
            // When the run began, to the second.
            ("timestamp", outcome.started.get(..19).unwrap_or("1970-01-01T00:00:00")),
            ("tests", tests(outcome).to_string().as_str()),
            ("failures", outcome.count(DemandStatus::Missed).to_string().as_str()),
            ("errors", (outcome.count(DemandStatus::Undecided) + unusable).to_string().as_str()),
            ("skipped", outcome.count(DemandStatus::NotAsked).to_string().as_str()),
        ])
        .write_inner_content(|writer| {
            if unusable > 0 {
                let text = outcome.sentences.join(" ");
                case(writer, class, "run", "run", Some(("error", "not usable", &text)))?;
            }
            let mut keys: HashMap<(&str, &str), usize> = HashMap::new();
            outcome.demands.iter().try_for_each(|demand| {
                // A spec may limit one series twice.
                let before = keys.entry((&demand.group, &demand.key)).or_default();
                *before += 1;
                let name =
                    if *before > 1 { format!("{} ({before})", demand.key) } else { demand.key.clone() };
                of_demand(writer, class, &name, demand)
            })
        })?;
    Ok(())
}

fn of_demand<W: Write>(
    writer: &mut Writer<W>,
    class: &str,
    name: &str,
    demand: &Demand,
) -> std::io::Result<()> {
    let interval = demand.low_high.map_or(String::new(), |[low, high]| format!(" ({low}–{high})"));
    let value =
        demand.value.map_or(demand.measured.clone(), |value| format!("{value}{interval} {}", demand.unit));
    let told = [
        demand.alone(),
        &format!("asked {}", demand.asked),
        &format!("measured {value}"),
        &demand.why,
        &demand.confirm,
    ];
    let text = told.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("; ");
    let inside = match demand.standing {
        DemandStatus::Met => None,
        DemandStatus::Missed => Some(("failure", "missed", text.as_str())),
        DemandStatus::Undecided => Some(("error", "undecided", text.as_str())),
        DemandStatus::NotAsked => Some(("skipped", "", "")),
    };
    case(writer, class, &demand.group, name, inside)
}

fn case<W: Write>(
    writer: &mut Writer<W>,
    class: &str,
    group: &str,
    name: &str,
    inside: Option<(&str, &str, &str)>,
) -> std::io::Result<()> {
    let (class, name) = (allowed(&format!("{class}.{group}")), allowed(name));
    let element = writer.create_element("testcase").with_attributes([
        ("classname", class.as_str()),
        ("name", name.as_str()),
        ("time", "0"),
    ]);
    match inside {
        None => element.write_empty()?,
        Some((kind, "", _)) => {
            element.write_inner_content(|writer| writer.create_element(kind).write_empty().map(|_| ()))?
        }
        Some((kind, sort, text)) => element.write_inner_content(|writer| {
            let inner = writer.create_element(kind).with_attribute(("type", sort));
            inner.write_text_content(BytesText::new(&allowed(text))).map(|_| ())
        })?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, Subject, check};

    #[test]
    fn only_a_run_that_cannot_be_judged_has_a_case_of_its_own() {
        let spec = Spec::read("[machine]\ncpus = 2").expect("a spec");
        let of = |nothing_valid: bool| {
            let facts = vec![("cpus".to_string(), "2".to_string())];
            let subject = Subject { facts, nothing_valid, ..Subject::default() };
            junit(&[check(&spec, &subject, 0.0).expect("an outcome")]).expect("XML")
        };
        let (judged, unusable) = (of(false), of(true));
        assert!(judged.contains(r#"tests="1" failures="0" errors="0""#), "{judged}");
        assert!(!judged.contains("not usable"), "{judged}");
        assert!(unusable.contains(r#"tests="2" failures="0" errors="1""#), "{unusable}");
        assert_eq!(unusable.matches(r#"type="not usable""#).count(), 1, "{unusable}");
    }
}

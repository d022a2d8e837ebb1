//! One result in each form that SPEC's tools write, and the forms of CPU2006. All numbers here and
//! in `tests/foreign/speccpu*` are invented, in the shape of published files: a raw file of CPU2017
//! with its CSV and text, and tables of CPU2006 in logs. No page and no raw file or CSV of CPU2006
//! was there.

use std::fmt::Write;
use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// The same result as [`csv`] gives, as a raw file; `note` is the system's own description.
fn raw(spread: f64, headline: f64, note: &str) -> String {
    let mut text = String::from("spec.cpu2017.hw_cpu_name: Some CPU\nspec.cpu2017.hw_model: Server 1\n");
    let packed = STANDARD.encode(zlib(note.as_bytes()));
    let (first, rest) = packed.split_at(packed.len() / 2);
    writeln!(text, "spec.cpu2017.basemean: {headline:.6}\nspec.cpu2017.peakmean: Not Run").expect("text");
    writeln!(text, "spec.cpu2017.invalid: 0\nspec.cpu2017.name: intrate").expect("text");
    writeln!(text, "spec.cpu2017.compnotes_sysinfo000: @{first}").expect("text");
    writeln!(text, "spec.cpu2017.compnotes_sysinfo001: {rest}").expect("text");
    for name in COMPONENTS {
        for (at, rate) in [10.0 - spread, 10.0, 10.0 + spread].into_iter().enumerate() {
            let own = format!("spec.cpu2017.results.{}.base.{at:03}.", name.replacen('.', "_", 1));
            let chosen = u8::from(at == 1);
            for (field, value) in [
                ("benchmark", name.to_string()),
                ("copies", "64".to_string()),
                ("ratio", format!("{rate:.6}")),
                ("reported_time", format!("{:.6}", 1000.0 / rate)),
                ("selected", chosen.to_string()),
                ("valid", "S".to_string()),
            ] {
                writeln!(text, "{own}{field}: {value}").expect("text");
            }
        }
    }
    text
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

/// Key and values of each figure.
fn figures(one: &Imported) -> Vec<(String, Vec<f64>)> {
    let of = |figure: &crate::Figure| {
        let series = &figure.judged.series;
        (series.key.clone(), series.processes.iter().flat_map(|one| one.values.clone()).collect())
    };
    let mut all: Vec<_> = one.figures.iter().map(of).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn a_raw_file_says_what_its_csv_says() {
    let note = format!("notes_plat_sysinfo_015:  running on db7 {WHEN}\n");
    let (from_raw, from_csv) = (one(&raw(0.3, 10.0, &note)), one(&csv(0.3, WHEN, 10.0)));
    assert_eq!(figures(&from_raw), figures(&from_csv));
    assert_eq!(from_raw.host, "db7");
    assert_eq!(fact(&from_raw, "ran"), fact(&from_csv, "ran"));
    assert_eq!(from_raw.index, from_csv.index);
    assert!(from_raw.findings.is_empty(), "{:?}", from_raw.findings);
    let plain = format!("spec.cpu2017.notes_plat_sysinfo_015:  running on db8 {WHEN}\nspec.cpu2017.name");
    assert_eq!(one(&raw(0.3, 10.0, "x").replace("spec.cpu2017.name", &plain)).host, "db8");
    let wrong = one(&raw(0.3, 10.2, &note));
    assert_eq!(wrong.findings[0].rule, HEADLINE_DIFFERS);
    let invalid = one(&raw(0.3, 10.0, &note).replace("invalid: 0", "invalid: 1"));
    assert_eq!(invalid.findings[0].rule, INVALID_RESULT);
    let packed = read(&gzip(raw(0.3, 10.0, &note).as_bytes())).expect("a packed file");
    assert_eq!(figures(&packed[0]), figures(&from_raw));
}

#[test]
fn raw_files_behind_each_other_are_results_of_their_own() {
    let (first, second) = (raw(0.3, 10.0, "x"), raw(0.2, 10.0, "x").replace("Server 1", "Server 2"));
    let found = read(format!("{first}{second}").as_bytes()).expect("two");
    assert_eq!(found.len(), 2);
    assert_eq!(fact(&found[1], "product"), Some("Server 2"));
    assert_eq!(figures(&found[1]), figures(&one(&second)));
    assert_eq!(read(format!("{first}{second}{first}").as_bytes()).expect("two").len(), 2);
    assert_eq!(read(format!("before:\n{first}after:\n{second}").as_bytes()).expect("two").len(), 2);
}

#[test]
fn a_raw_file_that_lost_its_begin_is_refused_and_no_field_is_endless() {
    let text = raw(0.3, 10.0, "x");
    let rest = &text[text.find("spec.cpu2017.results").expect("results")..];
    let error = read(rest.as_bytes()).expect_err("no suite");
    assert!(format!("{error:#}").contains("its beginning was cut off"), "{error:#}");
    // Megabytes in a note of a few lines: no more than its start is unpacked.
    let bomb = raw(0.3, 10.0, &"x".repeat(8 << 20));
    assert!(bomb.len() < 1 << 16);
    assert_eq!(one(&bomb).host, "unknown");
    let mut many = text.clone();
    for at in 0..3_000 {
        writeln!(many, "spec.cpu2017.results.505_mcf_r.base.{at:05}.ratio: 10.0").expect("text");
    }
    let found = one(&many);
    assert!(found.remarks.iter().any(|remark| remark.contains("rows were left out")), "{:?}", found.remarks);
    let open = format!("resultstable basecol {}", "<tr><td class=\"basecol bm\">".repeat(5_000));
    read(open.as_bytes()).expect_err("no row ends");
}

/// A page and a text of one result, with the digits that both have.
fn page_and_text(rates: &[[f64; 3]; 10], headline: &str) -> (String, String) {
    let mut page = String::from("<html><body><h1>SPEC CPU<sup>&reg;</sup>2017 Integer Rate Result</h1>\n");
    write!(page, "<table><tr><td class=\"metricbar base\"><span class=\"item\"><a href=\"x\">SPECrate<sup>&reg;</sup>2017_int_base</a> = </span><span class=\"value\">{headline}</span></td></tr></table>\n<table class=\"resultstable\"><tbody>\n").expect("text");
    let ruler = TEXT.find("500.perlbench_r").expect("a table");
    let (mut text, mut chosen) = (TEXT[..ruler].to_string(), String::new());
    for (name, rates) in COMPONENTS.iter().zip(rates) {
        write!(
            page,
            "<tr><td class=\"bm\"><a href=\"y\">{name}</a></td><td class=\"basecol copies\">64</td>"
        )
        .expect("text");
        for (at, rate) in rates.iter().enumerate() {
            let (time, mark) = (format!("{:.0}", 6000.0 / rate), if at == 1 { "*" } else { "S" });
            let class = if at == 1 { " selected" } else { "" };
            let show = |text: &str| match at {
                1 => format!("<span class=\"selected\">{text}</span>"),
                _ => text.to_string(),
            };
            let (seconds, ratio) = (show(&time), show(&format!("{rate:.1}")));
            writeln!(page, "<td class=\"basecol secs{class}\">{seconds}</td>\n<td class=\"basecol ratio{class}\">{ratio}</td>").expect("text");
            let row = format!("{name:<15}      64 {time:>10} {rate:>10.1}    {mark}\n");
            text += &row;
            chosen += if at == 1 { &row } else { "" };
        }
        page += "</tr>\n";
    }
    page += "</tbody></table></body></html>\n";
    text += &"=".repeat(80);
    write!(text, "\n{chosen} SPECrate(R)2017_int_base            {headline}\n").expect("text");
    (page, text)
}

#[test]
fn a_page_says_what_its_text_says_and_is_not_concluded_from() {
    let rates: [[f64; 3]; 10] = std::array::from_fn(|at| [11.1, 11.3, 11.4].map(|rate| rate + at as f64));
    let all: f64 = rates.iter().map(|rates| rates[1].ln()).sum();
    let (page, text) = page_and_text(&rates, &format!("{:.1}", (all / 10.0).exp()));
    let (from_page, from_text) = (one(&page), one(&text));
    let with = |one: &Imported| -> Vec<_> {
        figures(one).into_iter().filter(|(_, values)| !values.is_empty()).collect()
    };
    assert_eq!(with(&from_page), with(&from_text));
    assert_eq!(with(&from_page).len(), 31);
    assert!(from_page.index[0].agrees(), "{:?}", from_page.index);
    let kinds = from_page.figures.iter().map(|figure| figure.judged.analysis.verdict.kind);
    assert!(kinds.into_iter().all(|kind| kind == VerdictKind::Rejected));
    let other = page.replace("\"value\">", "\"value\">1").replace("64</td>", "32</td>");
    assert_eq!(read(format!("{page}{other}").as_bytes()).expect("two").len(), 2);
    let unmarked = page.replace("selected", "other");
    assert!(reason(&one(&unmarked), "speccpu.505.mcf_r@free?tune=base#score").starts_with("no row of it"));
    let wrong = page_and_text(&rates, "17.9").0;
    assert!(one(&wrong).findings.iter().any(|finding| finding.rule == HEADLINE_DIFFERS));
}

/// Every number of a table of CPU2006 by its place in the line, and no other.
#[test]
fn tables_of_cpu2006_word_by_word() {
    let path = testkit::root().join("tests/foreign/speccpu2006-rate.txt");
    let text = std::fs::read_to_string(path).expect("a case");
    let found = one(&text);
    let table = text.split("====").next().expect("a table");
    let mut of: std::collections::BTreeMap<String, Vec<f64>> = Default::default();
    for line in table.lines().filter(|line| line.starts_with('4')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for (tune, first) in [("base", 1), ("peak", 5)] {
            assert_eq!(words[first], "16", "{line}");
            for (metric, place) in [("time", first + 1), ("rate", first + 2)] {
                let key = format!("speccpu.{}@free?suite=rate&tune={tune}#{metric}", words[0]);
                of.entry(key).or_default().push(words[place].parse().expect("a number"));
            }
            if words[first + 3] == "*" {
                let key = format!("speccpu.{}@free?suite=rate&tune={tune}#score", words[0]);
                of.entry(key).or_default().push(words[first + 2].parse().expect("a number"));
            }
        }
    }
    assert_eq!(of.len(), 12 * 2 * 3);
    let mut rest = figures(&found);
    rest.retain(|(key, values)| of.get(key) != Some(values));
    let keys: Vec<&str> = rest.iter().map(|(key, _)| key.as_str()).collect();
    let headlines = ["base", "peak"].map(|tune| format!("speccpu.SPECint_rate2006@free?tune={tune}#score"));
    assert_eq!(keys, headlines);
    assert!(found.index.iter().all(crate::Index::agrees), "{:?}", found.index);
    let edited = text
        .replace("SPECint(R)_rate_base2006               281", "SPECint(R)_rate_base2006               291");
    assert_ne!(edited, text);
    assert_eq!(one(&edited).findings[0].rule, HEADLINE_DIFFERS);
}

#[test]
fn what_spec_took_back_is_said_in_every_form() {
    const SAID: &str =
        "SPEC has determined that this result is not in compliance with the run and reporting rules.";
    let rates: [[f64; 3]; 10] = [[11.1, 11.3, 11.4]; 10];
    let (page, text) = page_and_text(&rates, "11.3");
    let forms = [
        csv(0.3, WHEN, 10.0).replace("\"Platform Notes\"", &format!("\"{SAID}\"\n\"Platform Notes\"")),
        raw(0.3, 10.0, "x")
            .replace("spec.cpu2017.name", &format!("spec.cpu2017.nc000: {SAID}\nspec.cpu2017.name")),
        page.replace("</h1>", &format!("</h1><p>{SAID}</p>")),
        format!("# {SAID}\n{text}"),
    ];
    for form in forms {
        let found = one(&form);
        let finding =
            found.findings.iter().find(|finding| finding.rule == INVALID_RESULT).expect("a finding");
        assert!(finding.headline.contains("withdrew the result"), "{}", finding.headline);
        assert!(finding.facts.iter().any(|fact| fact.value.to_string().contains("not in compliance")));
    }
}

#[test]
fn a_log_of_cpu2006_has_a_result_each_suite_and_work_of_another_size_is_no_result() {
    let path = testkit::root().join("tests/foreign/speccpu2006-log.txt");
    let found = read(&std::fs::read(path).expect("a case")).expect("results");
    assert_eq!(found.len(), 2);
    assert_eq!(value(&found[0], "speccpu.401.bzip2@free?suite=speed&tune=base#score").0, Some(20.7));
    assert!(reason(&found[1], "speccpu.410.bwaves@free?suite=speed&tune=base#score").contains("reference"));
    assert_eq!(figures(&found[1]).iter().filter(|(_, values)| !values.is_empty()).count(), 0);
    assert!(found.iter().all(|one| one.findings[0].rule == INVALID_RESULT));
}

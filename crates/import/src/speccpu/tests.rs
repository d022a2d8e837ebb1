//! Results of SPEC CPU2017: made by hand in both forms, and the collected ones where they are.

use std::fmt::Write;

use super::{HEADLINE_DIFFERS, INVALID_RESULT};
use crate::repeats::repeats;
use crate::{Imported, read};
use model::VerdictKind;

const COMPONENTS: [&str; 10] = [
    "500.perlbench_r",
    "502.gcc_r",
    "505.mcf_r",
    "520.omnetpp_r",
    "523.xalancbmk_r",
    "525.x264_r",
    "531.deepsjeng_r",
    "541.leela_r",
    "548.exchange2_r",
    "557.xz_r",
];

/// A result of three iterations a component, 10.0 +- `spread`, `when` of the clock; its headline is
/// `headline`.
fn csv(spread: f64, when: &str, headline: f64) -> String {
    let mut text =
        String::from("valid,1\n\n\"SPEC CPU2017 Integer Rate Result\"\n\n\"Full Results Table\"\n\n");
    let header = "Benchmark,\"Base # Copies\",\"Base Run Time\",\"Base Rate\",\"Base Selected\",\"Base Status\",\"Peak # \
                  Copies\",\"Peak Run Time\",\"Peak Rate\",\"Peak Selected\",\"Peak Status\",Description\n";
    text.push_str(header);
    for name in COMPONENTS {
        for (at, rate) in [10.0 - spread, 10.0, 10.0 + spread].into_iter().enumerate() {
            let (time, chosen) = (1000.0 / rate, u8::from(at == 1));
            writeln!(
                text,
                "{name},64,{time:.6},{rate:.6},{chosen},S,,,,,,\"refrate(ref) iteration #{}\"",
                at + 1
            )
            .expect("text");
        }
    }
    text.push_str("\n\"Selected Results Table\"\n\n");
    text.push_str(header);
    for name in COMPONENTS {
        writeln!(text, "{name},64,100.000000,10.000000,1,S,,,,,NR,\"SelectedIteration (base #2; peak NR)\"")
            .expect("text");
    }
    write!(text, "\nSPECrate2017_int_base,{headline:.6},,{headline:.6}\nSPECrate2017_int_peak,\"Not Run\",,,,,,,\"Not Run\"\n").expect("text");
    text.push_str("\n\"Hardware Vendor:\",Acme\n\"Hardware Model:\",\"Server 1\"\n\nHARDWARE\n\n\"CPU Name\",\"Some CPU\"\n");
    text.push_str("Enabled,\"64 cores, 2 chips, 2 threads/core\"\nMemory,\"1 TB (16 x 64 GB 2Rx4 PC4-3200AA-R)\"\n\nSOFTWARE\n\n");
    text.push_str(
        "OS,\"SUSE Linux\"\n,\"Kernel 5.3.18\"\n\n\"Platform Notes\"\n\nMemory,\"of somebody else\"\n",
    );
    writeln!(text, "\" running on db7 {when}\"").expect("text");
    text
}

const WHEN: &str = "Sun Mar  7 17:00:35 2021";

fn one(text: &str) -> Imported {
    let mut all = read(text.as_bytes()).expect("a result");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn value(one: &Imported, key: &str) -> (Option<f64>, usize, Option<f64>) {
    let figure = one.figures.iter().find(|figure| figure.judged.series.key == key);
    let figure = figure.unwrap_or_else(|| panic!("no {key}"));
    let estimate = figure.judged.analysis.estimate.as_ref();
    (estimate.map(|one| one.median), estimate.map_or(0, |one| one.n), estimate.and_then(|one| one.cv))
}

fn reason(one: &Imported, key: &str) -> String {
    let figure = one.figures.iter().find(|figure| figure.judged.series.key == key).expect(key);
    assert_eq!(figure.judged.analysis.verdict.kind, VerdictKind::Skipped);
    figure.judged.analysis.verdict.reason.clone()
}

fn fact<'a>(one: &'a Imported, label: &str) -> Option<&'a str> {
    one.make_up.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
}

#[test]
fn a_csv_in_all_its_parts() {
    let found = one(&csv(0.3, WHEN, 10.0));
    assert_eq!((found.format, found.host.as_str()), (super::FORMAT, "db7"));
    assert_eq!(value(&found, "speccpu.505.mcf_r@free?tune=base#score"), (Some(10.0), 1, Some(0.0)));
    let (median, n, cv) = value(&found, "speccpu.505.mcf_r@free?tune=base#rate");
    // The population's: sqrt(2/3) of 3 %.
    assert_eq!((median, n), (Some(10.0), 3));
    assert!((cv.expect("a spread") - 0.03 * (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
    assert_eq!(value(&found, "speccpu.SPECrate2017_int@free?tune=base#score").0, Some(10.0));
    assert_eq!(found.index.len(), 1);
    assert!(found.index[0].agrees() && found.index[0].copies == Some(64) && !found.index[0].partial);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!(fact(&found, "ran"), Some("2021-03-07T17:00:35"));
    let told = ["cpu_model", "cpus", "packages", "memory_gib", "kernel", "product", "base_copies"];
    let values = told.map(|label| fact(&found, label).unwrap_or("none"));
    assert_eq!(values, ["Some CPU", "128", "2", "1024", "5.3.18", "Server 1", "64"]);
    assert!(
        found.figures.iter().all(|figure| figure.judged.analysis.verdict.kind == VerdictKind::Unverified)
    );
}

#[test]
fn a_headline_that_its_rows_do_not_give_is_found_and_one_that_they_do_is_not() {
    let wrong = one(&csv(0.1, WHEN, 10.2));
    assert_eq!(wrong.findings.len(), 1);
    assert_eq!(wrong.findings[0].rule, HEADLINE_DIFFERS);
    assert!(
        wrong.findings[0].headline.contains("prints 10.2, but its own rows give 10.0"),
        "{}",
        wrong.findings[0].headline
    );
    assert!(
        reason(&wrong, "speccpu.SPECrate2017_int@free?tune=base#score").contains("its own 10 rows give 10.0")
    );
    assert!(one(&csv(0.1, WHEN, 10.000001)).findings.is_empty());
}

#[test]
fn marks_line_ends_and_invalid_runs() {
    let text =
        format!("\u{feff}{}", csv(0.1, WHEN, 10.0).replace('\n', "\r\n").replace("valid,1", "valid,0"));
    let found = one(&text);
    assert_eq!(found.figures.len(), one(&csv(0.1, WHEN, 10.0)).figures.len());
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].rule, INVALID_RESULT);
    let failed = csv(0.1, WHEN, 10.0)
        .replace("505.mcf_r,64,100.000000,10.000000,1,S", "505.mcf_r,64,,,0,RE")
        .replace("502.gcc_r,64,100.000000,10.000000,1,S", "502.gcc_r,64,,,0,NR");
    let failed = one(&failed);
    assert_eq!(
        reason(&failed, "speccpu.505.mcf_r@free?tune=base#score"),
        "status RE: it failed while it ran"
    );
    assert!(!failed.index[0].agrees() && failed.index[0].recomputed.is_none());
    assert!(failed.findings.is_empty(), "what cannot be computed contradicts nothing");
}

#[test]
fn decimal_commas_are_said_and_never_misread() {
    let mut text = csv(0.1, WHEN, 10.0);
    text = text.lines().map(|line| line.to_string() + "\n").collect();
    // As a spreadsheet of another language saves it.
    let german: String =
        text.replace(',', ";").replace('.', ",").replace("500,", "500.").replace(",perl", ".perl");
    let german = COMPONENTS.iter().fold(german, |text, name| text.replace(&name.replace('.', ","), name));
    let found = one(&german);
    assert!(found.remarks.iter().any(|remark| remark.contains("semicolons")), "{:?}", found.remarks);
    assert!(reason(&found, "speccpu.505.mcf_r@free?tune=base#score").contains("comma"));
    assert!(found.figures.iter().all(|figure| figure.judged.analysis.estimate.is_none()));
    // Without quotes a comma is a cell more.
    let torn = text.replace("10.000000,1,S", "10,000000,1,S");
    let found = one(&torn);
    assert!(value_is_missing(&found, "speccpu.505.mcf_r@free?tune=base#score"));
    assert!(
        found.remarks.iter().any(|remark| remark.contains("13 cells below 12 columns")),
        "{:?}",
        found.remarks
    );
}

fn value_is_missing(one: &Imported, key: &str) -> bool {
    !reason(one, key).is_empty()
}

#[test]
fn cut_files_give_what_they_have_or_say_why_not() {
    let text = csv(0.1, WHEN, 10.0);
    let mut read_some = 0;
    for length in (0..text.len()).step_by(37) {
        match read(&text.as_bytes()[..length]) {
            Ok(found) => {
                read_some += 1;
                assert!(found[0].findings.is_empty(), "{length}: {:?}", found[0].findings);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(read_some > 20, "{read_some}");
    let cut = format!("{}\n", &text[..text.find("557.xz_r").expect("the last")]);
    let found = one(&cut);
    // Nine of ten, from the rows that are marked as selected.
    assert_eq!((found.index[0].tests.len(), found.index[0].partial, found.index[0].score), (9, true, None));
    let wide = text.replace("64,100.000000", &format!("64{}", ",7".repeat(5000)));
    assert!(read(wide.as_bytes()).is_ok());
    let title_only = "SPEC CPU(R)2017 Integer Rate Result\n\nnothing\n";
    assert!(format!("{:#}", read(title_only.as_bytes()).expect_err("nothing")).contains("without a row"));
}

const TEXT: &str = "\
                          SPEC CPU(R)2017 Integer Rate Result
                                   Acme
                                  Server 1

                 Base     Base        Base        Peak     Peak        Peak
Benchmarks       Copies  Run Time     Rate        Copies  Run Time     Rate
--------------- -------  ---------  ---------    -------  ---------  ---------
500.perlbench_r      64        572      178    *      64        570      179    S
500.perlbench_r      64        569      179    S      64        571      178    *
502.gcc_r            64         --            CE
=================================================================================
500.perlbench_r      64        572      178    *      64        571      178    *
502.gcc_r                                     NR
 SPECrate(R)2017_int_base                 190
 SPECrate(R)2017_int_peak                                              Not Run

                                                             HARDWARE
                                                             --------
            CPU Name: Some CPU
             Enabled:  cores, could not determine chips,  threads/core
              Memory: 123.549 GB fixme: If using DDR4, the format is:
                      'N GB (N x N GB nRxn PC4-nnnnX-X)'

                                                             SOFTWARE
                                                             --------
                  OS: Ubuntu 20.04.4 LTS
                      5.13.0-1022-aws
            Compiler: GCC
";

#[test]
fn text_is_read_by_its_columns() {
    let found = one(TEXT);
    assert_eq!(value(&found, "speccpu.500.perlbench_r@free?tune=base#score").0, Some(178.0));
    assert_eq!(value(&found, "speccpu.500.perlbench_r@free?tune=base#time").1, 2);
    assert_eq!(value(&found, "speccpu.500.perlbench_r@free?tune=peak#score").0, Some(178.0));
    assert_eq!(reason(&found, "speccpu.502.gcc_r@free?tune=base#score"), "status CE: it could not be built");
    let told = ["cpu_model", "kernel", "memory", "vendor", "product", "os", "cores"]
        .map(|label| fact(&found, label));
    let expected = [
        Some("Some CPU"),
        Some("5.13.0-1022-aws"),
        Some("123.549 GB"),
        Some("Acme"),
        Some("Server 1"),
        Some("Ubuntu 20.04.4 LTS"),
        None,
    ];
    assert_eq!(told, expected);
    // One of two has no result: nothing to hold against the headline.
    assert!(found.index[0].recomputed.is_none() && found.findings.is_empty());
}

#[test]
fn runs_of_one_machine_lie_beside_each_other() {
    let at = |minute: u32| format!("Sun Mar  7 17:{minute:02}:35 2021");
    let faster =
        |text: String| text.replace("505.mcf_r,64,100.000000,10.000000", "505.mcf_r,64,80.000000,12.500000");
    let runs = [
        csv(0.1, &at(1), 10.0),
        faster(csv(0.1, &at(2), 10.0)),
        csv(0.1, &at(3), 10.0),
        csv(0.2, &at(1), 10.0),
    ];
    let runs = runs.map(|text| one(&text));
    let groups = repeats(&runs.iter().collect::<Vec<_>>());
    assert_eq!(groups.len(), 1);
    // The fourth is the first once more.
    assert_eq!((groups[0].results.as_slice(), groups[0].remarks.len()), (&[0, 1, 2][..], 1));
    let row = groups[0].rows.iter().find(|row| row.key.starts_with("speccpu.505")).expect("a row");
    assert_eq!((row.values.as_slice(), row.median), (&[10.0, 12.5, 10.0][..], 10.0));
    // The population's, of 10, 12.5, 10: deviation 1.1785 over 10.8333.
    assert!((row.cv - 0.108_786).abs() < 1e-5 && (row.apart - 0.25).abs() < 1e-12, "{row:?}");
    let finding = groups[0].finding.as_ref().expect("a finding");
    assert!(finding.headline.contains("505.mcf_r base by 25 %"), "{}", finding.headline);
    // Others hold still; runs that agree are no finding, and another host is left out.
    assert!(groups[0].rows.iter().filter(|row| row.apart < 1e-9).count() >= 9);
    let other = one(&csv(0.1, &at(5), 10.0).replace("Some CPU", "Other CPU"));
    assert!(repeats(&[&runs[0], &other]).is_empty());
    assert!(repeats(&[&runs[0], &runs[2]])[0].finding.is_none());
}

#[test]
fn the_collected_results_say_what_is_known_of_them() {
    let folder = testkit::root().join("../shared/fixtures/results/speccpu2017");
    if !folder.is_dir() {
        eprintln!("SKIPPED the_collected_results_say_what_is_known_of_them: {} is missing", folder.display());
        return;
    }
    // File, components, printed headlines, those of its rows, rules that fire.
    type Expected = (&'static str, usize, [Option<f64>; 2], [Option<f64>; 2], &'static [&'static str]);
    let expected: [Expected; 9] = [
        (
            "SpecCpuIntRateExample.csv",
            10,
            [Some(770.361774), Some(812.169896)],
            [Some(770.36177), Some(812.1699)],
            &[],
        ),
        (
            "SpecCpuIntRateExample.txt",
            10,
            [Some(777.0), Some(812.0)],
            [Some(770.19), Some(811.92)],
            &[HEADLINE_DIFFERS],
        ),
        (
            "SpecCpuFpRateExample.csv",
            13,
            [Some(609.928969), Some(653.91811)],
            [Some(609.92897), Some(653.91811)],
            &[],
        ),
        (
            "SpecCpuFpRateExample.txt",
            13,
            [Some(622.0), Some(666.0)],
            [Some(609.88), Some(654.06)],
            &[HEADLINE_DIFFERS, HEADLINE_DIFFERS],
        ),
        (
            "SpecCpuFpSpeedExample.csv",
            10,
            [Some(246.792776), Some(252.731489)],
            [Some(246.79278), Some(252.73149)],
            &[],
        ),
        (
            "SpecCpuIntSpeedExample.csv",
            10,
            [Some(12.279658), Some(12.293316)],
            [Some(12.279658), Some(12.293316)],
            &[],
        ),
        (
            "SpecCpuFpRateBaseExample.csv",
            13,
            [Some(26.914269), None],
            [Some(26.914269), None],
            &[INVALID_RESULT],
        ),
        (
            "SpecCpuIntRateBaseOnlyExample.txt",
            10,
            [Some(152.0), None],
            [Some(146.88691), None],
            &[HEADLINE_DIFFERS],
        ),
        ("intrate-base-win-arm64-1.txt", 10, [None, None], [None, None], &[INVALID_RESULT]),
    ];
    for (file, components, printed, own, rules) in expected {
        let bytes = std::fs::read(folder.join(file)).expect("readable");
        let found = read(&bytes).unwrap_or_else(|error| panic!("{file}: {error:#}"));
        let one = &found[0];
        let of = |tune: &str| one.index.iter().find(|index| index.title.ends_with(tune));
        for (at, tune) in ["base", "peak"].into_iter().enumerate() {
            assert_eq!(of(tune).and_then(|index| index.score), printed[at], "{file} {tune}");
            let recomputed = of(tune).and_then(|index| index.recomputed);
            assert_eq!(recomputed.is_some(), own[at].is_some(), "{file} {tune}");
            if let (Some(found), Some(known)) = (recomputed, own[at]) {
                assert!((found / known - 1.0).abs() < 2e-5, "{file} {tune}: {found} is not {known}");
            }
        }
        let fired: Vec<&str> = one.findings.iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(fired, rules, "{file}");
        let scores = one.figures.iter().filter(|figure| {
            let key = &figure.judged.series.key;
            key.ends_with("?tune=base#score") && !key.contains("SPEC")
        });
        assert_eq!(scores.count(), components, "{file}");
    }
    let bytes = std::fs::read(folder.join("intrate-base-win-arm64-1.txt")).expect("readable");
    let failed = &read(&bytes).expect("a result")[0];
    assert_eq!(
        reason(failed, "speccpu.500.perlbench_r@free?tune=base#score"),
        "status CE: it could not be built"
    );
    assert_eq!(value(failed, "speccpu.541.leela_r@free?tune=base#score").0, Some(2.57));
    let bytes = std::fs::read(folder.join("SpecCpuFpRateExample.csv")).expect("readable");
    let (median, n, cv) =
        value(&read(&bytes).expect("a result")[0], "speccpu.503.bwaves_r@free?tune=base#rate");
    assert_eq!((median, n), (Some(778.384), 3));
    assert!((cv.expect("a spread") - 1.0538e-4).abs() < 1e-7);
}

mod forms;

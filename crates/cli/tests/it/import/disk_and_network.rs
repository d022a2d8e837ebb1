//! Results of fio, iperf3 and sockperf through the program.

use std::path::PathBuf;

use super::{json, text, verb};

#[test]
fn results_of_fio_iperf3_and_sockperf_come_through_the_program() {
    let folder = testkit::root().join("tests/foreign");
    let files = [
        "fio-jobs.json",
        "fio-jobs.txt",
        "fio-full.txt",
        "iperf3-tcp.json",
        "iperf3-udp.json",
        "sockperf.txt",
    ];
    let files = files.map(|name| folder.join(name));
    let paths = files.each_ref().map(PathBuf::as_path);
    let found = json(&verb(&["import", "--json"], &paths));
    let problems: Vec<String> =
        crate::validator("import").iter_errors(&found).map(|problem| problem.to_string()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    let formats: Vec<&str> = found["results"]
        .as_array()
        .expect("results")
        .iter()
        .filter_map(|one| one["format"].as_str())
        .collect();
    let fio = "fio result";
    assert_eq!(formats, [fio, fio, fio, "iperf3 result", "iperf3 result", "sockperf result"]);
    let rules: Vec<&str> = found["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    assert_eq!(rules, ["failed-io", "imported-generator-bound"]);
    for rule in rules {
        assert!(text(&verb(&["explain", rule], &[])).contains("When it appears"), "{rule}");
    }
    // Where a row of ours measures the same, its units and parameters are ours.
    for one in found["series"].as_array().expect("series") {
        let Some(bench) = bench::find(one["bench"].as_str().expect("a name")) else { continue };
        let Some(metric) = bench.metrics.iter().find(|metric| one["metric"] == *metric.name) else {
            continue;
        };
        assert!(compare::unit_scale(one["unit"].as_str().expect("a unit"), &metric.unit).is_some(), "{one}");
    }
    // Two imports of one file agree; another engine is another case.
    let same = json(&verb(&["compare", "--json"], &[paths[0], paths[0]]));
    let metrics = same["metrics"].as_array().expect("metrics");
    assert!(metrics.len() > 20 && metrics.iter().all(|one| one["ratio"] == 1.0), "{same}");
    let other = verb(&["compare", "--json"], &[paths[0], paths[3]]);
    assert_eq!(other.status.code(), Some(4), "{}", String::from_utf8_lossy(&other.stderr));
    let shown = text(&verb(&["import", "--all"], &[paths[3]]));
    assert!(shown.contains("used up a CPU") && shown.contains("over loopback"), "{shown}");
}

#[test]
fn what_a_file_has_against_itself_is_shown_with_what_it_rests_on() {
    let file = testkit::root().join("tests/foreign/fio-full.txt");
    let shown = text(&verb(&["import", "--all"], &[&file]));
    assert!(shown.contains("assay explain failed-io"), "{shown}");
    assert!(shown.contains("No space left on device: write offset=1048576"), "{shown}");
    assert!(shown.contains("error 28"), "{shown}");
}

#[test]
fn a_foreign_result_is_no_run_and_what_can_be_done_with_it_is_said() {
    let file = testkit::root().join("tests/foreign/fio-jobs.json");
    for name in ["report", "diagnose"] {
        let output = verb(&[name], &[&file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("assay import ") && said.contains("--beside"),
            "{said}"
        );
    }
}

//! The verbs: help, exit codes, what they print and where.

use crate::assay;

fn output(args: &[&str]) -> (i32, String, String) {
    let output = assay().args(args).output().expect("assay runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn help_names_every_verb_and_version_is_ours() {
    let (code, help, _) = output(&["--help"]);
    assert_eq!(code, 0);
    for verb in [
        "run",
        "list",
        "machine",
        "explain",
        "diagnose",
        "report",
        "import",
        "compare",
        "peers",
        "reference",
        "smt",
        "unixbench",
        "bundle",
        "utilization",
        "restore",
        "schema",
        "completions",
        "man",
    ] {
        assert!(help.contains(verb), "{verb}");
        let (code, own, _) = output(&[verb, "--help"]);
        assert!(code == 0 && own.contains("Usage"), "{verb}: {own}");
    }
    assert!(!help.contains("case  "), "the hidden verb is shown");
    assert!(output(&["--version"]).1.contains(env!("CARGO_PKG_VERSION")));
}

/// The options below a heading of a help text.
fn below<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let own = help.lines().skip_while(|line| *line != format!("{heading}:")).skip(1);
    let own = own.take_while(|line| !line.is_empty()).map(str::trim_start);
    own.filter(|line| line.starts_with('-')).filter_map(|line| line.split([' ', ',']).next()).collect()
}

#[test]
fn options_stand_under_their_subject() {
    let (_, help, _) = output(&["run", "--help"]);
    assert_eq!(below(&help, "Options"), ["-h", "-V"], "{help}");
    for (heading, holds) in [
        ("Measuring", "--all-pairs"),
        ("Output", "--label"),
        ("Disk", "--dir"),
        ("Disk", "--device-write"),
        ("Disk", "--io-time"),
        ("Network", "--to"),
        ("Flink (nexmark)", "--margin"),
    ] {
        assert!(below(&help, heading).contains(&holds), "{heading}: {help}");
    }
    let flink = below(&help, "Flink (nexmark)");
    assert!(flink.iter().all(|option| !option.contains("device") && *option != "--to"), "{flink:?}");
    for verb in
        ["smt", "rate", "memmap", "host", "guard", "sweep", "hackbench", "unixbench", "explain-profile"]
    {
        let (_, help, _) = output(&[verb, "--help"]);
        let (measuring, out) = (below(&help, "Measuring"), below(&help, "Output"));
        assert!(measuring.contains(&"--profile") && out.contains(&"--out"), "{verb}: {help}");
        assert!(!below(&help, "Options").contains(&"--seed"), "{verb}: {help}");
    }
    let (_, page, _) = output(&["man", "run"]);
    let of = |heading: &str| page.find(heading).unwrap_or_else(|| panic!("{heading}: {page}"));
    assert!(of("device\\-write") < of("flink\\-home"), "{page}");
}

#[test]
fn all_pairs_may_be_measured() {
    let (code, _, error) = output(&["run", "--quick", "--dry-run", "--only", "cpu.clock", "--all-pairs"]);
    assert_eq!(code, 0, "{error}");
}

#[test]
fn unknown_names_are_told_the_nearest() {
    for (args, meant) in [
        (&["run", "--only", "memory.latancy"][..], "did you mean memory.latency?"),
        (&["run", "--only", "memroy"], "did you mean memory?"),
        (&["smt", "table", "--only", "syscll"], "did you mean syscall?"),
        (&["unixbench", "dhry2regs"], "did you mean dhry2reg?"),
        (&["sweep", "hackbnch", "--knob", "slice_ns=1ms,2ms"], "did you mean hackbench?"),
        (&["sweep", "hackbench", "--knob", "slise_ns=1ms,2ms"], "did you mean slice_ns?"),
        (&["knobs", "slise_ns"], "did you mean slice_ns?"),
        (&["explain", "background-laod"], "did you mean background-load?"),
        (&["explain", "latency-by-sauce"], "nothing is called"),
        (&["explain", "smt-siblin"], "did you mean smt-sibling?"),
    ] {
        let (code, _, error) = output(args);
        assert!(code == 2 && error.contains(meant), "{args:?}: {code} {error}");
    }
    assert!(!output(&["explain", "nonsense"]).2.contains("did you mean"));
}

#[test]
fn mistakes_of_usage_exit_with_2_and_say_what_there_is() {
    for args in [
        &["run", "--only", "nonsense"][..],
        &["run", "--profile", "nonsense"],
        &["run", "--budget", "soon"],
        &["run", "--force", "--wait-idle"],
        &["run", "--fail-on", "everything"],
        &["explain", "nonsense"],
        &["nonsense"],
        &["report"],
        &["man", "nonsense"],
    ] {
        let (code, _, error) = output(args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(!error.is_empty(), "{args:?}");
    }
    assert!(output(&["run", "--only", "nonsense"]).2.contains("memory"));
    assert!(output(&["explain", "background-lode"]).2.contains("background-load"));
}

#[test]
fn files_that_are_no_runs_are_told_apart() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let cases = [
        (file("empty", ""), "empty"),
        (file("text", "hello\n"), "not the header"),
        (file("other", "{\"a\":1}\n"), "not the header"),
        (file("newer", "{\"header\":{\"schema\":99}}\n"), "newer Assay"),
        (file("partial", "{\"header\":{\"schema\":1}}\n"), "its header has unknown content"),
        (dir.path().join("missing").to_string_lossy().into_owned(), "cannot open"),
    ];
    for (path, words) in cases {
        for verb in ["diagnose", "report"] {
            let (code, _, error) = output(&[verb, &path]);
            assert_eq!(code, 3, "{verb} {path}");
            assert!(error.contains(words) && error.contains(&path), "{verb} {path}: {error}");
        }
    }
}

#[test]
fn everything_listed_is_explained() {
    let (code, listed, _) = output(&["list", "--json"]);
    assert_eq!(code, 0);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert!(crate::validator("list").is_valid(&listed));
    let ids: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|row| row["id"].as_str()).collect();
    assert!(!ids.iter().any(|id| id.starts_with("selftest")), "hidden rows are listed");
    for id in ids.iter().chain(&[
        "utilization",
        "background-load",
        "free-placement",
        "trusted",
        "imprecise",
        "B",
        "rough",
        "trusted at a clock",
        "memory.latency@x#y",
    ]) {
        let (code, text, _) = output(&["explain", id]);
        assert_eq!(code, 0, "{id}");
        assert!(text.lines().count() > 2, "{id}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 130), "{id}: {text}");
    }
    for id in ids {
        let (_, text, _) = output(&["explain", id]);
        let source = text.lines().find_map(|line| line.strip_prefix("Source: ")).expect("a source");
        assert!(testkit::root().join(source).exists(), "{source}");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_program() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, text, _) = output(&["completions", shell]);
        assert!(code == 0 && text.contains("wait-idle"), "{shell}");
    }
    let (code, page, _) = output(&["man"]);
    assert!(code == 0 && page.contains(".TH") && page.contains("machine"), "{page}");
    assert!(output(&["man", "run"]).1.contains("wait"), "the page of one verb has its options");
}

#[test]
fn a_dry_run_does_nothing_and_says_all() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("out");
    let out_text = out.to_string_lossy();
    let (code, text, _) = output(&["run", "--quick", "--dry-run", "--out", &out_text]);
    assert_eq!(code, 0);
    for words in ["needs root", "would change", "s a pass", "cpu.clock@one-cpu"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!out.exists(), "a dry run made {}", out.display());
    let (code, json, _) = output(&["run", "--quick", "--dry-run", "--json", "--out", &out_text]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(crate::validator("dry-run").is_valid(&json));
    assert!(json["plan"].as_array().is_some_and(|plan| plan.len() > 3));
}

#[test]
fn one_case_can_be_run_by_hand() {
    let (_, json, _) = output(&["run", "--quick", "--dry-run", "--json", "--only", "cpu.clock"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let order = serde_json::json!({
        "case": json["plan"][0]["case"],
        "windows": {"window_ns": 1e6, "count": 3, "warm_up": 1, "limit_s": 1.0},
        "clock": {"source": "monotonic-raw", "ticks_per_ns": 1.0, "resolution_ns": 20.0, "cost_ns": 20.0},
        "seed": 1,
    });
    let mut case = assay();
    case.arg("case").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = case.spawn().expect("assay runs");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, order.to_string().as_bytes()).expect("written");
    drop(stdin);
    let said = child.wait_with_output().expect("ends");
    let text = String::from_utf8(said.stdout).expect("UTF-8");
    let last = text.lines().last().expect("lines");
    assert_eq!(last, "{\"done\":null}", "{text}");
    assert!(text.contains("\"clock\""), "{text}");
}

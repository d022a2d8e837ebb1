//! What stress-ng counts: "bogo" operations of its stressors, in text and YAML.

use crate::Format;
use crate::builder::number;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, param, tool};
use crate::kit::lines::{adds, begins, ignored, once, within};

pub(crate) const FORM: Form = Form {
    format: Format("stress-ng result"),
    program: "stress-ng",
    remark: "stress-ng's bogo operations compare only within one version and compiler; it does not report where its stressors ran",
    documented: false,
    signs: &["stress-ng", "bogo ops"],
    marks: &["head", "row", "yaml"],
    lines: &[
        // lkp and --log-brief leave out who prints.
        begins("begin", r"(?:stress-ng: info: +\[\d+\] )?(?:setting to|defaulting to) .*(?:stressor|run).*"),
        begins("yaml", r"stress-ng-version: (?<value>\S+)"),
        once("stressors", r"(?:stress-ng: info: +\[\d+\] )?dispatching hogs: (?<value>.*)"),
        once(
            "head",
            r"(?:stress-ng: (?:info|metrc): +\[\d+\] )?stressor +bogo ops +real time +usr time +sys time .*",
        ),
        adds(
            "row",
            r"stress-ng: (?:info|metrc): +\[\d+\] (?<name>[a-z][\w-]*) +(?<ops>\d+) +(?<time>[\d.]+) +(?<user>[\d.]+) +(?<system>[\d.]+) +(?<value>[\d.]+) +(?<cpu>[\d.]+)(?: +.*)?",
        ),
        within(
            "bare",
            r"(?<name>[a-z][\w-]*) +(?<ops>\d+) +(?<time>\d+\.\d\d) +(?<user>\d+\.\d\d) +(?<system>\d+\.\d\d) +(?<value>\d+\.\d\d) +(?<cpu>\d+\.\d\d)(?: +.*)?",
        ),
        adds("more", r"stress-ng: metrc: \[\d+\] (?<name>[a-z][\w-]*) +[\d.]+ (?<value>\w.*)"),
        adds("failed", r"stress-ng: (?<value>(?:fail|error): .*|\w+: +\[\d+\] failed: [1-9].*)"),
        within("failed", r"(?<value>failed: [1-9]\d*: .*)"),
        adds(
            "skipped",
            r"stress-ng: \w+: +\[\d+\] (?<value>(?:skipped|metrics untrustworthy): [1-9].*|unsuccessful run .*|.*, skipping stressor.*)",
        ),
        within(
            "skipped",
            r"(?<value>(?:skipped|metrics untrustworthy): [1-9]\d*: .*|unsuccessful run completed in .*)",
        ),
        // Up to version 0.13 it stands above the table.
        once("end", r"(?:stress-ng: info: +\[\d+\] )?successful run completed in .*"),
        ignored(r"stress-ng: \w+: +\[\d+\] .*"),
        ignored(
            r"\(secs\) +\(secs\) +\(secs\) .*|for a [\d.]+s run time:|[\d.]+s (?:available CPU|user|system|total) time.*|(?:passed|failed|skipped|metrics untrustworthy): \d+.*|load average: [\d. ]+",
        ),
        once("host", r"nodename: (?<value>\S+)"),
        once("kernel", r"release: (?<value>\S+)"),
        once("cpus", r"cpus-online: (?<value>\d+)"),
        once("architecture", r"machine: (?<value>\S+)"),
        adds("stressor", r"- stressor: (?<value>[\w-]+)"),
        adds("real", r"bogo-ops-per-second-real-time: (?<value>[\d.]+)"),
        adds("used", r"bogo-ops-per-second-usr-sys-time: (?<value>[\d.]+)"),
        ignored(r"---|\.\.\.|(?:system-info|metrics|times):|[\w-]+: .*"),
    ],
    facts: &[
        ("host", "host"),
        ("kernel", "kernel"),
        ("architecture", "architecture"),
        ("cpus", "cpus"),
        ("stress-ng", "yaml"),
        ("?stressors", "stressors"),
    ],
    printed: &["-t", "--timeout", "-Y", "--yaml"],
    flags: &["--metrics", "--metrics-brief", "--times", "--perf", "--verify", "-v"],
    settings: &[param("stressors", "stressors")],
    figures: &[
        Row { wording: "{name} bogo operations", ..Row::rate("row", "stress-ng.{name}", "operations") },
        Row {
            wording: "{name} bogo operations per CPU second",
            ..Row::rate("row.cpu", "stress-ng.{name}", "operations_per_cpu_second")
        },
        Row {
            wording: "{name} bogo operations",
            behind: "head",
            ..Row::rate("bare", "stress-ng.{name}", "operations")
        },
        Row {
            wording: "{name} bogo operations per CPU second",
            behind: "head",
            ..Row::rate("bare.cpu", "stress-ng.{name}", "operations_per_cpu_second")
        },
        Row {
            wording: "{stressor} bogo operations",
            ..Row::rate("real", "stress-ng.{stressor}", "operations")
        },
        Row {
            wording: "{stressor} bogo operations per CPU second",
            ..Row::rate("used", "stress-ng.{stressor}", "operations_per_cpu_second")
        },
    ],
    headlines: &["operations"],
    check,
};

tool!(FORM, "stress-ng (text and YAML)");

fn check(run: &Run, notes: &mut Notes) {
    run.texts("failed").for_each(|text| notes.faults.invalid(text));
    run.texts("skipped").for_each(|text| notes.remark(text));
    for hit in run.all("row").chain(run.all("bare")) {
        notes.rate(
            hit.text("name").unwrap_or_default(),
            hit.number("value"),
            hit.number("ops"),
            hit.number("time"),
        );
    }
    let more = run.all("more").count();
    if more > 0 {
        notes.remark(&format!("{more} of its miscellaneous metrics {} left out", number(more, "is", "are")));
    }
    if run.hit("begin").is_some() && run.hit("end").is_none() && run.hit("skipped").is_none() {
        notes.faults.interrupted("it does not say that its run was completed");
    }
}

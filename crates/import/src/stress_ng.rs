//! What stress-ng counts: "bogo" operations of its stressors, in text and YAML.

use crate::Format;
use crate::kit::form::{Form, Row, Said, param, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("stress-ng result"),
    program: "stress-ng",
    remark: "bogo operations compare with those of the same version and compiler of stress-ng only, and it does not tell where its stressors ran",
    documented: false,
    signs: &["stress-ng"],
    marks: &["begin", "row", "yaml"],
    lines: &[
        line("begin", Does::Begins, r"stress-ng: info: +\[\d+\] (?:setting to|defaulting to) .*"),
        line("yaml", Does::Begins, r"stress-ng-version: (?<value>\S+)"),
        line("stressors", Does::Once, r"stress-ng: info: +\[\d+\] dispatching hogs: (?<value>.*)"),
        line(
            "row",
            Does::Adds,
            r"stress-ng: (?:info|metrc): +\[\d+\] (?<name>[a-z][\w-]*) +(?<ops>\d+) +(?<time>[\d.]+) +(?<user>[\d.]+) +(?<system>[\d.]+) +(?<value>[\d.]+) +(?<cpu>[\d.]+)(?: +.*)?",
        ),
        line("more", Does::Adds, r"stress-ng: metrc: \[\d+\] (?<name>[a-z][\w-]*) +[\d.]+ (?<value>\w.*)"),
        line("failed", Does::Adds, r"stress-ng: (?<value>(?:fail|error): .*|\w+: +\[\d+\] failed: [1-9].*)"),
        line(
            "skipped",
            Does::Adds,
            r"stress-ng: \w+: +\[\d+\] (?<value>(?:skipped|metrics untrustworthy): [1-9].*|unsuccessful run .*|.*, skipping stressor.*)",
        ),
        line("end", Does::Ends, r"stress-ng: info: +\[\d+\] successful run completed .*"),
        line("rest", Does::Nothing, r"stress-ng: \w+: +\[\d+\] .*"),
        line("host", Does::Once, r"nodename: (?<value>\S+)"),
        line("kernel", Does::Once, r"release: (?<value>\S+)"),
        line("cpus", Does::Once, r"cpus-online: (?<value>\d+)"),
        line("architecture", Does::Once, r"machine: (?<value>\S+)"),
        line("stressor", Does::Adds, r"- stressor: (?<value>[\w-]+)"),
        line("real", Does::Adds, r"bogo-ops-per-second-real-time: (?<value>[\d.]+)"),
        line("used", Does::Adds, r"bogo-ops-per-second-usr-sys-time: (?<value>[\d.]+)"),
        line("rest", Does::Nothing, r"---|\.\.\.|(?:system-info|metrics|times):|[\w-]+: .*"),
    ],
    facts: &[
        ("host", "host"),
        ("kernel", "kernel"),
        ("architecture", "architecture"),
        ("cpus", "cpus"),
        ("stress-ng", "yaml"),
        ("?stressors", "stressors"),
    ],
    told: &["-t", "--timeout", "-Y", "--yaml"],
    flags: &["--metrics", "--metrics-brief", "--times", "--perf", "--verify", "-v"],
    settings: &[param("stressors", "stressors")],
    figures: &[
        Row { wording: "{name} bogo operations", ..Row::rate("row", "stress-ng.{name}", "operations") },
        Row {
            wording: "{name} bogo operations per CPU second",
            ..Row::rate("row.cpu", "stress-ng.{name}", "operations_per_cpu_second")
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

tool!(FORM, "results of stress-ng (text and YAML)");

fn check(run: &Run, said: &mut Said) {
    run.all("failed").filter_map(|hit| hit.text("value")).for_each(|text| said.invalid(text));
    run.all("skipped").filter_map(|hit| hit.text("value")).for_each(|text| said.remark(text));
    for hit in run.all("row") {
        said.rate(
            hit.text("name").unwrap_or_default(),
            hit.number("value"),
            hit.number("ops"),
            hit.number("time"),
        );
    }
    let more = run.all("more").count();
    if more > 0 {
        said.remark(&format!("{more} of its miscellaneous metrics are not read"));
    }
    if run.hit("begin").is_some() && run.hit("end").is_none() && run.hit("skipped").is_none() {
        said.interrupted("it does not say that its run was completed");
    }
}

//! wrk and wrk2: requests of HTTP, as one program sent them and waited for their answers.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, param, point, tool};
use crate::kit::lines::{adds, begins, ends, ignored, once};
use model::units;

pub(crate) const FORM: Form = Form {
    format: Format("wrk result"),
    program: "wrk",
    remark: "wrk does not report where its threads and the server ran; a busy load generator does not reach the server's limit",
    documented: false,
    signs: &[" test @ ", "Requests/sec:"],
    marks: &["begin", "rate"],
    lines: &[
        begins("begin", r"Running (?<value>[\d.]+)(?<value_unit>[smh]) test @ (?<url>\S+)"),
        once("threads", r"(?<value>\d+) threads? and (?<connections>\d+) connections?"),
        once(
            "latency",
            r"Latency +(?<mean>[\d.]+)(?<mean_unit>[um]?s|[mh]) +(?<deviation>[\d.]+)(?:[um]?s|[mh]) +(?<most>[\d.]+)(?<most_unit>[um]?s|[mh]) +[\d.]+%",
        ),
        adds("percentile", r"(?<percent>\d+(?:\.\d+)?)% +(?<value>[\d.]+)(?<value_unit>[um]?s|[mh])"),
        once("uncorrected", r"Latency Distribution \(HdrHistogram - Uncorrected Latency .*"),
        once(
            "requests",
            r"(?<value>\d+) requests in (?<time>[\d.]+)(?<time_unit>[um]?s|[mh]), [\d.]+[KMGT]?B read",
        ),
        once(
            "errors",
            r"(?<value>Socket errors: connect (?<connect>\d+), read (?<read>\d+), write (?<write>\d+), timeout (?<timeout>\d+))",
        ),
        once("refused", r"(?<value>Non-2xx or 3xx responses: \d+)"),
        once("rate", r"Requests/sec: +(?<value>[\d.]+)"),
        ends("moved", r"Transfer/sec: +(?<value>[\d.]+)(?<value_unit>[KMGT]?)B"),
        adds("died", r"(?<value>unable to .*)"),
        ignored(r"Thread Stats +Avg .*|Req/Sec +.*|Thread calibration: .*|Latency Distribution.*"),
        ignored(r"Initialised \d+ threads.*|Detailed Percentile spectrum:|Value +Percentile .*"),
        ignored(r"[\d.]+ +[\d.]+ +\d+ +(?:[\d.]+|inf)|#\[.*\]|-{10,}"),
    ],
    facts: &[("url", "begin.url")],
    printed: &["-t", "--threads", "-c", "--connections", "-d", "--duration"],
    flags: &["--latency", "-L", "-U", "--u_latency"],
    settings: &[
        param("rate", "-R"),
        point("threads", "threads"),
        point("connections", "threads.connections"),
    ],
    figures: &[
        Row { wording: "wrk requests", ..Row::rate("rate", "network.wrk", "requests") },
        Row {
            wording: "wrk bandwidth",
            unit: "GB/s",
            scale: Scale::Letter(1024.0, 1e-9),
            ..Row::rate("moved", "network.wrk", "bandwidth")
        },
        Row::time("latency.mean", "network.wrk", "latency_mean"),
        Row {
            observations: "requests",
            until: "uncorrected",
            ..Row::time("percentile", "network.wrk", "latency_p{percent}")
        },
        Row::time("latency.most", "network.wrk", "latency_max"),
    ],
    headlines: &["requests", "latency_p50", "latency_p99"],
    check,
};

tool!(FORM, "wrk and wrk2");

fn check(run: &Run, notes: &mut Notes) {
    if run.hit("latency").is_some() && run.hit("rate").is_none() {
        notes.faults.interrupted("it has latencies but no line with its requests per second");
    }
    if run.hit("uncorrected").is_some() {
        notes.remark(
            "its latencies count from when a request was due; those from when it was sent are left out",
        );
    }
    let counts = ["connect", "read", "write", "timeout"].map(|kind| run.number(&format!("errors.{kind}")));
    if counts.into_iter().flatten().any(|count| count.value > 0.0) {
        notes.faults.invalid(run.at("errors").unwrap_or_default());
    }
    run.texts("refused").for_each(|text| notes.faults.invalid(text));
    let seconds = run.at("requests.time_unit").and_then(units::nanoseconds).map_or(1.0, |ns| ns / 1e9);
    let time = run.number("requests.time").map(|time| time.times(seconds));
    notes.rate("Requests/sec", run.number("rate"), run.number("requests"), time);
}

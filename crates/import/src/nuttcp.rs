//! nuttcp: the line of a test, as words and as `-fparse`, and the blocks of both ends (`-v`). Its
//! MB are 2^20 bytes and its Mbps 10^6 bits a second; the result of a test is what arrived.

use super::builder::Builder;
use super::faults::Faults;
use super::kit::{
    Expression, Figures, Hit, LinesAbove, Log, Metric, Pattern, Results, Run, Table, log, metric,
};
use super::{Format, Imported, Tool};
use crate::kit::lines::{adds, ahead, ignored, once, within};
use model::vocabulary::network as ids;
use model::{Better, Value, units};

pub(crate) const TOOL: Tool = Tool::of("nuttcp (words and -fparse)", is_one, |text| Ok(read(text)));

const FORMAT: Format = Format("nuttcp result");
const REMARK: &str =
    "nuttcp does not report where its two ends ran; it reports the direction only with -v or in its command";
const VALUED: [&str; 9] = ["-P", "-p", "-T", "-i", "-n", "-N", "-l", "-R", "-I"];
const FLAGS: [&str; 8] = ["-t", "-r", "-u", "-v", "-4", "-fparse", "-frunningtotal", "-F"];

pub(crate) const LINES: &[Pattern] = &[
    // The interval lines come before the one of the whole test, which alone has the CPU.
    within(
        "interval",
        r"[\d.]+ MB / +(?<time>\d+\.\d+) sec = +(?<rate>\d+\.\d+) Mbps(?: +\d+ retrans(?: .*)?| +-?\d+ / +\d+ ~drop/pkt .*)?",
    ),
    within("interval", r"megabytes=[\d.]+ real_sec=(?<time>\d+\.\d+) rate_Mbps=(?<rate>\d+\.\d+).*"),
    once(
        "whole",
        r"(?<amount>\d+\.\d+) MB / +(?<time>\d+\.\d+) sec = +(?<rate>\d+\.\d+) Mbps (?<tx>\d+) %TX (?<rx>\d+) %RX(?: (?<retrans>\d+) retrans)?(?: (?<rtt>\d+\.\d+) msRTT)?(?: (?<drop>-?\d+) / (?<packets>\d+) drop/pkt [-\d.]+ %loss)?(?: .*)?",
    ),
    once(
        "whole",
        r"megabytes=(?<amount>\d+\.\d+) real_seconds=(?<time>\d+\.\d+) rate_Mbps=(?<rate>\d+\.\d+) tx_cpu=(?<tx>\d+) rx_cpu=(?<rx>\d+)(?: retrans=(?<retrans>\d+))?(?: rtt_ms=(?<rtt>\d+\.\d+))?(?: drop=(?<drop>-?\d+) pkt=(?<packets>\d+) data_loss=[-\d.]+)?(?: .*)?",
    ),
    // Each end says so of itself: the client first.
    adds(
        "setup",
        r"nuttcp-(?<end>[tr])(?:-\S+)?: buflen=(?<bytes>\d+),? nstream=(?<streams>\d+),? port=\d+ (?:mode=)?(?<protocol>tcp|udp)(?: .*)?",
    ),
    adds(
        "end",
        r"nuttcp-(?<end>[tr])(?:-\S+)?: (?:megabytes=)?(?<amount>\d+\.\d+) (?:MB in )?(?:real_seconds=)?(?<time>\d+\.\d+) (?:real seconds = )?(?:rate_KBps=)?[\d.]+ (?:KB/sec = )?(?:rate_Mbps=)?(?<rate>\d+\.\d+)(?: Mbps)?",
    ),
    within("retrans", r"nuttcp-t(?:-\S+)?: retrans ?= ?(?<value>\d+)"),
    within("rtt", r"nuttcp-t(?:-\S+)?: connect.* (?:RTT=|rtt_ms=)(?<value>\d+\.\d+)(?: ms.*)?"),
    within(
        "loss",
        r"nuttcp-r(?:-\S+)?: (?:drop=)?(?<drop>-?\d+) (?:/ )?(?:pkt=)?(?<packets>\d+) (?:drop/pkt|data_loss=).*",
    ),
    adds("died", r"(?<value>nuttcp-[tr](?:-\S+)?: v[\d.]+: Error: .*|invalid ctlport = .*)"),
    ahead("version", r"nuttcp-[tr](?:-\S+)?: v(?<value>\d[\d.]*): socket|nuttcp-(?<only>\d[\d.]*)"),
    ignored(r"nuttcp-[tr](?:-\S+)?: .*|errno=\d+"),
];

static TABLE: Table = Table::new(LINES);

fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(
        r"(?m)^\s*(?:\d+\.\d+ MB / +\d+\.\d+ sec = +\d+\.\d+ Mbps|megabytes=[\d.]+ real_sec(?:onds)?=|nuttcp-[tr](?:-\S+)?: |invalid ctlport = )",
    );
    const SIGNS: [&str; 4] = [" MB / ", "megabytes=", "nuttcp-", "invalid ctlport"];
    SIGNS.iter().any(|sign| text.contains(sign)) && MARK.is_match(text)
}

/// What follows the line of a whole test belongs to another test, and so does a second description
/// of an end.
fn again(runs: &[Run], hit: &Hit, _: LinesAbove) -> Option<usize> {
    let last = runs.last()?;
    let is_next = match hit.name {
        "interval" | "version" => last.hit("whole").is_some(),
        "setup" => {
            let mut all = last.all("setup");
            last.hit("whole").is_some() || all.any(|other| other.text("end") == hit.text("end"))
        }
        _ => false,
    };
    is_next.then_some(0)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let log: Log = log(text, "nuttcp", &TABLE, again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in &log.runs {
        let command = run.command.clone().unwrap_or_default();
        let options = command.without(&VALUED, &FLAGS);
        // The last word is the other end.
        let (options, to) = options.rsplit_once(' ').unwrap_or(("", &options));
        let facts = vec![
            ("nuttcp", run.text("version").unwrap_or_default().to_string()),
            ("options", options.to_string()),
            ("to", to.to_string()),
        ];
        if let Some((builder, faults)) = results.of(run, facts, false) {
            figures(run, builder, faults);
        }
    }
    results.finish_with(&log, &["bandwidth"])
}

/// A rate as an option has it, Mbit/s: `100m`, `1g`, `500k` and, without a letter, Kbit/s.
fn mbits(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(['i', 'u']).split('/').next().unwrap_or_default();
    const WORDS: &units::Words = &[("", 1e3), ("k", 1e3), ("m", 1e6), ("g", 1e9)];
    Some(units::amount(&text.to_ascii_lowercase(), WORDS)? / 1e6)
}

const METRICS: &[Metric] = &[
    metric("bandwidth", "Gbit/s", Better::Higher),
    metric("sent", "Gbit/s", Better::Neither),
    metric("interval_bandwidth", "Gbit/s", Better::Higher),
    metric("retransmits", "1/s", Better::Lower),
    metric("rtt_at_start", "us", Better::Lower).noted("when it connected"),
    metric("loss", "", Better::Lower),
    metric("tx_busy", "", Better::Neither).noted("of nuttcp itself, of one CPU"),
    metric("rx_busy", "", Better::Neither).noted("of nuttcp itself, of one CPU"),
];

/// The keys of a run's figures: from what its ends report about themselves, else from its command.
fn keys<'b>(run: &Run, builder: &'b mut Builder) -> Figures<'b> {
    let (whole, setup, command) = (run.hit("whole"), run.hit("setup"), run.command.as_ref());
    // For datagrams it always prints how many were lost.
    let is_udp = match setup.and_then(|hit| hit.text("protocol")) {
        Some(protocol) => protocol == "udp",
        None => match whole {
            Some(whole) => whole.text("packets").is_some(),
            None => command.is_some_and(|command| command.has(&["-u"])),
        },
    };
    // The client's own end stands first.
    let direction = match (setup.and_then(|hit| hit.text("end")), command) {
        (Some("t"), _) => "send",
        (Some(_), _) => "receive",
        (None, Some(command)) if command.has(&["-r"]) => "receive",
        (None, Some(_)) => "send",
        (None, None) => "untold",
    };
    let streams = match (setup, command) {
        (Some(setup), _) => setup.text("streams").and_then(|streams| streams.parse().ok()),
        (None, Some(command)) => command.value(&["-N"]).map_or(Some(1), |streams| streams.parse().ok()),
        (None, None) => None,
    };
    let bytes = setup.and_then(|setup| setup.text("bytes")?.parse().ok());
    let bytes = bytes.or(command.and_then(|command| Some(units::bytes(command.value(&["-l"])?)? as i64)));
    let mut figures = Figures::new(builder, METRICS, "nuttcp", &*if is_udp { ids::UDP } else { ids::TCP });
    figures.params.set("direction", direction.into());
    if let Some(rate) = command.and_then(|command| mbits(command.value(&["-R"])?)) {
        let is_whole = rate.fract() == 0.0;
        figures.params.set("rate", if is_whole { Value::Int(rate as i64) } else { Value::Float(rate) });
    }
    figures.point("streams", streams);
    figures.point("bytes", bytes);
    if bytes.is_none() {
        figures.note = "its write size is unknown".to_string();
    }
    figures
}

fn figures(run: &Run, builder: &mut Builder, faults: &mut Faults) {
    let mut figures = keys(run, builder);
    let number = |hit: Option<&Hit>, name: &str| hit?.number(name).map(|number| number.value);
    let whole = run.hit("whole");
    let mut main = whole;
    for end in run.all("end") {
        match number(Some(end), "rate") {
            Some(rate) if end.text("end") == Some("t") => figures.put("sent", Ok(rate / 1e3)),
            _ => main = main.or(Some(end)),
        }
    }
    match number(main, "rate") {
        Some(rate) => figures.moved("bandwidth", rate / 1e3),
        None => figures.unfinished("bandwidth", run.text("died")),
    }
    let time = number(main, "time").filter(|time| *time > 0.0);
    let retrans = number(whole, "retrans").or_else(|| number(run.hit("retrans"), "value"));
    figures.some("retransmits", retrans.zip(time).map(|(count, time)| count / time));
    let rtt = number(whole, "rtt").or_else(|| number(run.hit("rtt"), "value"));
    figures.some("rtt_at_start", rtt.map(|ms| ms * 1e3));
    let lost = whole.filter(|hit| hit.text("packets").is_some()).or(run.hit("loss"));
    if let Some((drop, packets)) = number(lost, "drop").zip(number(lost, "packets")) {
        let is_share = packets > 0.0 && (0.0..=packets).contains(&drop);
        figures.put(
            "loss",
            if is_share { Ok(drop / packets) } else { Err(format!("it says {drop} of {packets}")) },
        );
    }
    for (name, metric) in [("tx", "tx_busy"), ("rx", "rx_busy")] {
        figures.some(metric, number(whole, name).map(|percent| percent / 100.0));
    }
    let intervals = run.all("interval").filter_map(|hit| number(Some(hit), "rate")).map(|rate| rate / 1e3);
    figures.each("interval_bandwidth", &intervals.collect::<Vec<_>>());
    check(run, faults);
    if let Some(died) = run.text("died").filter(|_| main.is_some()) {
        faults.interrupted(died);
    }
}

/// Checks whether its rates are its amounts over its times.
fn check(run: &Run, faults: &mut Faults) {
    const MEGABITS: f64 = 8.0 * 1_048_576.0 / 1e6;
    for hit in run.hits.iter().filter(|hit| ["whole", "end"].contains(&hit.name)) {
        let amount = hit.number("amount").map(|amount| amount.times(MEGABITS));
        faults.rate("Mbps", [hit.number("rate"), amount, hit.number("time")], |rate, amount, time| {
            format!("it says {rate} Mbps; {} MB in {time} s is another rate", amount / MEGABITS)
        });
    }
}

//! nuttcp: the line of a test, as words and as `-fparse`, and the blocks of both ends (`-v`). Its
//! MB are 2^20 bytes and its Mbps 10^6 bits a second; what it says of a test is what arrived.

use std::sync::LazyLock;

use regex::Regex;

use super::builder::{Builder, Meaning};
use super::kit::{Above, Does, Hit, Log, Results, Run, Table, headlines, line, log};
use super::own::{Against, short};
use super::{Format, Imported, Tool, keyed};
use crate::kit::Pattern;
use model::vocabulary::network as ids;
use model::{Better, Value, units};

pub(crate) const TOOL: Tool = Tool {
    files: "results of nuttcp (words and -fparse)",
    json: &[],
    documented: false,
    is_one,
    read: |text| Ok(read(text)),
};

const FORMAT: Format = Format("nuttcp result");
const REMARK: &str =
    "nuttcp does not tell where its two ends ran, and which way a test went only with -v or in its command";
const VALUED: [&str; 9] = ["-P", "-p", "-T", "-i", "-n", "-N", "-l", "-R", "-I"];
const FLAGS: [&str; 8] = ["-t", "-r", "-u", "-v", "-4", "-fparse", "-frunningtotal", "-F"];

pub(crate) const LINES: &[Pattern] = &[
    // The interval lines come before the one of the whole test, which alone tells the CPU.
    line(
        "interval",
        Does::Within,
        r"[\d.]+ MB / +(?<time>\d+\.\d+) sec = +(?<rate>\d+\.\d+) Mbps(?: +\d+ retrans(?: .*)?| +-?\d+ / +\d+ ~drop/pkt .*)?",
    ),
    line(
        "interval",
        Does::Within,
        r"megabytes=[\d.]+ real_sec=(?<time>\d+\.\d+) rate_Mbps=(?<rate>\d+\.\d+).*",
    ),
    line(
        "whole",
        Does::Once,
        r"(?<amount>\d+\.\d+) MB / +(?<time>\d+\.\d+) sec = +(?<rate>\d+\.\d+) Mbps (?<tx>\d+) %TX (?<rx>\d+) %RX(?: (?<retrans>\d+) retrans)?(?: (?<rtt>\d+\.\d+) msRTT)?(?: (?<drop>-?\d+) / (?<packets>\d+) drop/pkt [-\d.]+ %loss)?(?: .*)?",
    ),
    line(
        "whole",
        Does::Once,
        r"megabytes=(?<amount>\d+\.\d+) real_seconds=(?<time>\d+\.\d+) rate_Mbps=(?<rate>\d+\.\d+) tx_cpu=(?<tx>\d+) rx_cpu=(?<rx>\d+)(?: retrans=(?<retrans>\d+))?(?: rtt_ms=(?<rtt>\d+\.\d+))?(?: drop=(?<drop>-?\d+) pkt=(?<packets>\d+) data_loss=[-\d.]+)?(?: .*)?",
    ),
    // Each end says so of itself: the client first.
    line(
        "setup",
        Does::Adds,
        r"nuttcp-(?<end>[tr])(?:-\S+)?: buflen=(?<bytes>\d+),? nstream=(?<streams>\d+),? port=\d+ (?:mode=)?(?<protocol>tcp|udp)(?: .*)?",
    ),
    line(
        "end",
        Does::Adds,
        r"nuttcp-(?<end>[tr])(?:-\S+)?: (?:megabytes=)?(?<amount>\d+\.\d+) (?:MB in )?(?:real_seconds=)?(?<time>\d+\.\d+) (?:real seconds = )?(?:rate_KBps=)?[\d.]+ (?:KB/sec = )?(?:rate_Mbps=)?(?<rate>\d+\.\d+)(?: Mbps)?",
    ),
    line("retrans", Does::Within, r"nuttcp-t(?:-\S+)?: retrans ?= ?(?<value>\d+)"),
    line("rtt", Does::Within, r"nuttcp-t(?:-\S+)?: connect.* (?:RTT=|rtt_ms=)(?<value>\d+\.\d+)(?: ms.*)?"),
    line(
        "loss",
        Does::Within,
        r"nuttcp-r(?:-\S+)?: (?:drop=)?(?<drop>-?\d+) (?:/ )?(?:pkt=)?(?<packets>\d+) (?:drop/pkt|data_loss=).*",
    ),
    line("died", Does::Adds, r"(?<value>nuttcp-[tr](?:-\S+)?: v[\d.]+: Error: .*|invalid ctlport = .*)"),
    line(
        "version",
        Does::Ahead,
        r"nuttcp-[tr](?:-\S+)?: v(?<value>\d[\d.]*): socket|nuttcp-(?<only>\d[\d.]*)",
    ),
    line("rest", Does::Nothing, r"nuttcp-[tr](?:-\S+)?: .*|errno=\d+"),
];

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(LINES));

fn is_one(text: &str) -> bool {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?m)^\s*(?:\d+\.\d+ MB / +\d+\.\d+ sec = +\d+\.\d+ Mbps|megabytes=[\d.]+ real_sec(?:onds)?=|nuttcp-[tr](?:-\S+)?: |invalid ctlport = )",
        )
        .expect("a pattern that a test tries")
    });
    const SIGNS: [&str; 4] = [" MB / ", "megabytes=", "nuttcp-", "invalid ctlport"];
    SIGNS.iter().any(|sign| text.contains(sign)) && MARK.is_match(text)
}

/// What comes behind the line of a whole test is another one's, and so is what an end says of
/// itself a second time.
fn again(runs: &[Run], hit: &Hit, _: Above) -> Option<usize> {
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
        let asked = run.asked.clone().unwrap_or_default();
        let options = asked.without(&VALUED, &FLAGS);
        // The last word is the other end.
        let (options, to) = options.rsplit_once(' ').unwrap_or(("", &options));
        let facts = vec![
            ("nuttcp", run.text("version").unwrap_or_default().to_string()),
            ("options", options.to_string()),
            ("to", to.to_string()),
        ];
        if let Some((builder, against)) = results.of(run, facts, false) {
            figures(run, builder, against);
        }
    }
    let mut results = results.finish(&log);
    results.iter_mut().for_each(|one| headlines(one, &["bandwidth"]));
    results
}

/// A rate as an option has it, Mbit/s: `100m`, `1g`, `500k` and, without a letter, Kbit/s.
fn mbits(text: &str) -> Option<f64> {
    let text = text.trim_start_matches(['i', 'u']).split('/').next().unwrap_or_default();
    const WORDS: &units::Words = &[("", 1e3), ("k", 1e3), ("m", 1e6), ("g", 1e9)];
    Some(units::amount(&text.to_ascii_lowercase(), WORDS)? / 1e6)
}

fn figures(run: &Run, builder: &mut Builder, against: &mut Against) {
    let whole = run.hit("whole");
    let ends: Vec<&Hit> = run.all("end").collect();
    let asked = run.asked.as_ref();
    let setup = run.hit("setup");
    let told = |name: &str| whole.and_then(|hit| hit.text(name));
    // Of datagrams it always tells how many were lost.
    let is_udp = match setup.and_then(|hit| hit.text("protocol")) {
        Some(protocol) => protocol == "udp",
        None if whole.is_some() => told("packets").is_some(),
        None => asked.is_some_and(|asked| asked.has(&["-u"])),
    };
    let bench = if is_udp { ids::UDP } else { ids::TCP };
    // The client's own end stands first.
    let direction = match (setup.and_then(|hit| hit.text("end")), asked) {
        (Some("t"), _) => "send",
        (Some(_), _) => "receive",
        (None, Some(asked)) if asked.has(&["-r"]) => "receive",
        (None, Some(_)) => "send",
        (None, None) => "untold",
    };
    let streams = match (setup, asked) {
        (Some(setup), _) => setup.text("streams").and_then(|streams| streams.parse::<i64>().ok()),
        (None, Some(asked)) => asked.value(&["-N"]).map_or(Some(1), |streams| streams.parse().ok()),
        (None, None) => None,
    };
    let rate = asked.and_then(|asked| mbits(asked.value(&["-R"])?));
    let bytes = setup.and_then(|setup| setup.text("bytes")?.parse::<i64>().ok());
    let bytes = bytes.or(asked.and_then(|asked| Some(units::bytes(asked.value(&["-l"])?)? as i64)));
    let mut put = |metric: &str, unit: &'static str, better: Better, value: Result<f64, String>| {
        let Some(mut keyed) = keyed(&format!("{bench}@free#{metric}")) else { return };
        keyed.case.params.set("direction", Value::Text(direction.into()));
        if let Some(rate) = rate {
            let whole = rate.fract() == 0.0;
            keyed.case.params.set("rate", if whole { Value::Int(rate as i64) } else { Value::Float(rate) });
        }
        if let Some(streams) = streams {
            keyed.point.set("streams", Value::Int(streams));
        }
        if let Some(bytes) = bytes {
            keyed.point.set("bytes", Value::Int(bytes));
        }
        let note = match (metric, bytes) {
            ("tx_busy" | "rx_busy", _) => "of nuttcp itself, of one CPU",
            ("rtt_at_start", _) => "when it connected",
            (_, None) => "how much it wrote at once is not told",
            _ => "",
        };
        let wording = format!("nuttcp {}", metric.replace('_', " "));
        let meaning = Meaning { keyed, wording, unit: unit.into(), better, note: note.to_string() };
        match value {
            Ok(value) => builder.value(meaning, value),
            Err(why) => builder.missing(meaning, why),
        }
    };
    let number = |hit: &Hit, name: &str| hit.number(name).map(|number| number.value);
    let mut main = whole;
    for end in &ends {
        let is_sender = end.text("end") == Some("t");
        match number(end, "rate") {
            Some(rate) if is_sender => put("sent", "Gbit/s", Better::Neither, Ok(rate / 1e3)),
            _ => main = main.or(Some(end)),
        }
    }
    match main.and_then(|hit| number(hit, "rate")) {
        Some(rate) if rate > 0.0 => put("bandwidth", "Gbit/s", Better::Higher, Ok(rate / 1e3)),
        Some(_) => put("bandwidth", "Gbit/s", Better::Higher, Err("it prints 0: nothing went over".into())),
        None => {
            let why = run.text("died").unwrap_or("the run, or the text, ended before a result");
            let why = format!("started, no test finished: {}", short(why));
            put("bandwidth", "Gbit/s", Better::Higher, Err(why));
        }
    }
    let time = main.and_then(|hit| number(hit, "time")).filter(|time| *time > 0.0);
    let retrans = whole.and_then(|hit| number(hit, "retrans"));
    let retrans = retrans.or(run.hit("retrans").and_then(|hit| number(hit, "value")));
    if let (Some(count), Some(time)) = (retrans, time) {
        put("retransmits", "1/s", Better::Lower, Ok(count / time));
    }
    let rtt =
        whole.and_then(|hit| number(hit, "rtt")).or(run.hit("rtt").and_then(|hit| number(hit, "value")));
    if let Some(ms) = rtt {
        put("rtt_at_start", "us", Better::Lower, Ok(ms * 1e3));
    }
    let lost = whole.filter(|hit| hit.text("packets").is_some()).or(run.hit("loss"));
    if let Some((drop, packets)) = lost.and_then(|hit| Some((number(hit, "drop")?, number(hit, "packets")?)))
    {
        match packets > 0.0 && (0.0..=packets).contains(&drop) {
            true => put("loss", "", Better::Lower, Ok(drop / packets)),
            false => put("loss", "", Better::Lower, Err(format!("it says {drop} of {packets}"))),
        }
    }
    for (name, metric) in [("tx", "tx_busy"), ("rx", "rx_busy")] {
        if let Some(percent) = whole.and_then(|hit| number(hit, name)) {
            put(metric, "", Better::Neither, Ok(percent / 100.0));
        }
    }
    let intervals: Vec<f64> = run.all("interval").filter_map(|hit| number(hit, "rate")).collect();
    for rate in intervals.iter().take(200).filter(|_| intervals.len() > 1) {
        put("interval_bandwidth", "Gbit/s", Better::Higher, Ok(rate / 1e3));
    }
    for hit in run.hits.iter().filter(|hit| ["whole", "end"].contains(&hit.name)) {
        const MEGABITS: f64 = 8.0 * 1_048_576.0 / 1e6;
        let amount = hit.number("amount").map(|amount| amount.times(MEGABITS));
        against.rate("Mbps", [hit.number("rate"), amount, hit.number("time")], |rate, amount, time| {
            format!("it says {rate} Mbps; {} MB in {time} s is another rate", amount / MEGABITS)
        });
    }
    if let Some(died) = run.text("died").filter(|_| main.is_some()) {
        against.interrupted(died);
    }
}

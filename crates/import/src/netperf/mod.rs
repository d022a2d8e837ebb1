//! netperf: its classic tables, and what its omni tests print as KEY=VALUE (`-k`), CSV (`-o`) and
//! columns (`-O`). All come to values by the names of the omni tests.
//!
//! What it calls the throughput of a stream is what arrived, also over UDP.

mod figures;
mod test;
#[cfg(test)]
mod tests;

use super::kit::{Hit, LinesAbove, Log, Results, Run, Table, log, said_again};
use super::{Format, Imported, Tool};
use crate::kit::Expression;
use crate::kit::Pattern;
use crate::kit::lines::{adds, begins, ignored, once, within};
use std::borrow::Cow;
use std::collections::BTreeMap;
use test::Test;

pub(crate) const TOOL: Tool =
    Tool::of("netperf: classic tables; omni tests as KEY=VALUE, CSV and columns", is_one, |text| {
        Ok(read(text))
    });

const FORMAT: Format = Format("netperf result");
const REMARK: &str =
    "netperf does not report where its two ends ran, nor whether other instances ran at the same time";
/// Options that say how long and how to print, or that the text prints.
const VALUED: [&str; 13] = ["-H", "-p", "-l", "-t", "-P", "-v", "-f", "-D", "-B", "-m", "-r", "-b", "-d"];
const FLAGS: [&str; 8] = ["-c", "-C", "-j", "-4", "-k", "-o", "-O", "--"];

/// Values by the names of the omni tests, and their titles in CSV and columns.
const NAMES: [(&str, &str); 31] = [
    ("protocol", "Protocol"),
    ("direction", "Direction"),
    ("elapsed_time", "Elapsed Time (sec)"),
    ("throughput", "Throughput"),
    ("throughput_units", "Throughput Units"),
    ("local_send_size", "Local Send Size"),
    ("remote_send_size", "Remote Send Size"),
    ("request_size", "Request Size Bytes"),
    ("response_size", "Response Size Bytes"),
    ("burst_size", "Initial Burst Requests"),
    ("local_cpu_util", "Local CPU Util %"),
    ("remote_cpu_util", "Remote CPU Util %"),
    ("local_sd", "Local Service Demand"),
    ("remote_sd", "Remote Service Demand"),
    ("sd_units", "Service Demand Units"),
    ("confidence_level", "Confidence Level Percent"),
    ("confidence_interval", "Confidence Width Target"),
    ("throughput_confid", "Throughput Confidence Width (%)"),
    ("rt_latency", "Round Trip Latency usec/tran"),
    ("local_transport_retrans", "Local Transport Retransmissions"),
    ("local_send_throughput", "Local Send Throughput"),
    ("local_bytes_sent", "Local Bytes Sent"),
    ("local_bytes_recvd", "Local Bytes Received"),
    ("remote_bytes_recvd", "Remote Bytes Received"),
    ("min_latency", "Minimum Latency Microseconds"),
    ("mean_latency", "Mean Latency Microseconds"),
    ("p50_latency", "50th Percentile Latency Microseconds"),
    ("p90_latency", "90th Percentile Latency Microseconds"),
    ("p99_latency", "99th Percentile Latency Microseconds"),
    ("max_latency", "Maximum Latency Microseconds"),
    ("stddev_latency", "Stddev Latency Microseconds"),
];

/// Values of one test by their names.
type Values<'t> = BTreeMap<&'static str, &'t str>;

pub(crate) const LINES: &[Pattern] = &[
    begins(
        "begin",
        r"(?:MIGRATED )?(?<test>[A-Z][\w/| -]*?) TEST (?:from (?<from>\S+) \(.*?\) port \d+ AF_\w+ )?to (?<to>\S+)(?: \(.*?\) port \d+ AF_\w+)?(?: *: (?<more>.*))?",
    ),
    // The tables end with the unit of the throughput.
    once(
        "unit",
        r"bytes +[bB]ytes +(?:bytes +)?(?:bytes +)?secs\.? +(?:# +# +)?(?<value>10\^\dbits/s|[KMG]Bytes/s|per sec)(?:ec)?(?: .*)?",
    ),
    once(
        "row",
        r"\d+ +\d+ +(?<local_send_size>\d+) +(?<elapsed_time>\d+\.\d+) +(?<throughput>\d+\.\d+)(?: +(?<local_cpu_util>-?\d+\.\d+) +(?<remote_cpu_util>-?\d+\.\d+) +(?<local_sd>-?\d+\.\d+) +(?<remote_sd>-?\d+\.\d+))?",
    ),
    once(
        "row",
        r"\d+ +\d+ +(?<request_size>\d+) +(?<response_size>\d+) +(?<elapsed_time>\d+\.\d+) +(?<throughput>\d+\.\d+)(?: +(?<local_cpu_util>-?\d+\.\d+) +(?<remote_cpu_util>-?\d+\.\d+) +(?<local_sd>-?\d+\.\d+) +(?<remote_sd>-?\d+\.\d+))?",
    ),
    once(
        "row",
        r"\d+ +(?<local_send_size>\d+) +(?<elapsed_time>\d+\.\d+) +(?<okay>\d+) +\d+ +(?<local_send_throughput>\d+\.\d+)(?: +(?<local_cpu_util>-?\d+\.\d+) +(?<local_sd>-?\d+\.\d+))?",
    ),
    once(
        "arrived",
        r"\d+ +\d+\.\d+ +(?<arrived>\d+) +(?<throughput>\d+\.\d+)(?: +(?<remote_cpu_util>-?\d+\.\d+) +(?<remote_sd>-?\d+\.\d+))?",
    ),
    within("alone", r"(?<value>\d+\.\d+)"),
    within("trips", r"\d+ +\d+ +\d+ +\d+ +(?<rt_latency>\d+\.\d+) +\d+\.\d+ +\d+\.\d+ +\d+\.\d+"),
    within("interim", r"Interim result: +(?<value>\d+\.\d+) (?<unit>\S+) over (?<time>\d+\.\d+) seconds.*"),
    within("interim", r"(?<value>\d+\.\d+),(?<unit>[^,]+/s),(?<time>\d+\.\d+),\d+\.\d+"),
    within("interim", r"NETPERF_INTERIM_RESULT\[\d+\]=(?<value>\d+\.\d+)"),
    within("interim_unit", r"NETPERF_UNITS\[\d+\]=(?<value>\S+)"),
    within("interim_time", r"NETPERF_INTERVAL\[\d+\]=(?<value>\d+\.\d+)"),
    within("unsure", r"!!! (?<value>Desired confidence was not achieved.*)"),
    within("width", r"!!! Confidence intervals: Throughput +: +(?<value>[\d.]+%)"),
    // Of what `-v 2` adds.
    within("moved", r"\d+ +\d+ +\d+ +\d+ (?<moved>\d+) +\d+\.\d+ +\d+ +\d+\.\d+ +\d+"),
    adds("key", KEYS),
    once(
        "titles",
        r"(?:[A-Z0-9][\w()%/ .-]*,)+Throughput(?: Units)?(?:,[A-Z0-9][\w()%/ .-]*)*|Throughput(?: Units)?(?:,[A-Z0-9][\w()%/ .-]*)+",
    ),
    within("csv", r#"[^,\s]+(?:,[^,\s]*)+(?:,".*")?"#),
    within("columns", r"(?:\S+ +)*-?\d+\.\d+ +(?:10\^\dbits|[KMG]Bytes|Trans)/s(?: +\S+)*"),
    ignored(r"Alignment +Offset.*|Local +Remote +Local +Remote.*|Send +Recv +Send +Recv.*"),
    ignored(r"Maximum|Segment|Size \(bytes\)|\d+|\d+ +\d+"),
    ignored(r"Recv +Send +Send.*|Socket Socket +Message +Elapsed.*|Size +Size +Size +Time.*"),
    ignored(r"Socket +Message +Elapsed +Messages.*|Size +Size +Time +Okay Errors.*"),
    ignored(r"Local /Remote|Socket Size +Request +Resp\..*|Send +Recv +Size +Size +Time.*"),
    within("heads", HEADS),
    ignored(r"!!! .*|NETPERF_\w+\[\d+\]=.*|[A-Z][A-Z0-9]*_[A-Z0-9_]+=.*|UUID=.*"),
    adds(
        "died",
        r"(?<value>establish.control: .*|The test you requested .* is unknown to this netperf\.|Netperf could not resolve .*|Only 95% and 99% .*|netperf: .*|(?:send|recv|connect|shutdown|netlib)_\w+: .*)",
    ),
    ignored(
        r"establish_control could not .*|Please verify that you .*|and that test family .*|resolve_host: .*|getaddrinfo returned .*",
    ),
];

/// What is read of `-k`.
const KEYS: &str = r"(?<key>PROTOCOL|DIRECTION|ELAPSED_TIME|THROUGHPUT(?:_UNITS|_CONFID)?|(?:LOCAL|REMOTE)_(?:SEND_SIZE|CPU_UTIL|SD)|RE(?:QUEST|SPONSE)_SIZE|BURST_SIZE|SD_UNITS|CONFIDENCE_(?:LEVEL|INTERVAL)|RT_LATENCY|LOCAL_TRANSPORT_RETRANS|LOCAL_SEND_THROUGHPUT|LOCAL_BYTES_(?:SENT|RECVD)|REMOTE_BYTES_RECVD|(?:MIN|MEAN|P[59]0|P99|MAX|STDDEV)_LATENCY)=(?<value>.*)";

/// Words of the heads of columns.
const HEADS: &str = r"(?:(?:Local|Remote|Send|Recv|Socket|Size|Final|Initial|Requested|Elapsed|Time|Throughput|Units|\(sec\)|Request|Response|Bytes|CPU|Util|User|System|I/O|IRQ|swintr|Method|%|Service|Demand|Protocol|Direction|Type|Minimum|Mean|Maximum|\d\dth|Stddev|Percentile|Latency|Microseconds|Transport|Retransmissions)(?: +|$))+";

static TABLE: Table = Table::new(LINES);

/// Whether a text has a banner, heads or keys of netperf, or a command that runs it.
fn is_one(text: &str) -> bool {
    static MARK: Expression = Expression::new(concat!(
        r"(?m)^\s*(?:(?:MIGRATED )?[A-Z][\w/| -]*? TEST (?:from \S+ \(.*?\)\s+port \d+\s+AF_\w+ )?to\s+\S+",
        r"|THROUGHPUT=\d|(?:.*,)?Throughput Units(?:,.*)?\s*$|\W*netperf(?: |$)|.*[\s/]netperf -)"
    ));
    const SIGNS: [&str; 4] = [" TEST ", "THROUGHPUT=", "Throughput Units", "netperf"];
    SIGNS.iter().any(|sign| text.contains(sign)) && MARK.is_match(text)
}

/// A key that a run has said is another run's.
fn again(runs: &[Run], hit: &Hit, above: LinesAbove) -> Option<usize> {
    let Some(key) = hit.text("key") else { return said_again(runs, hit, above) };
    runs.last()?.all("key").any(|other| other.text("key") == Some(key)).then_some(0)
}

/// A text with its banners in one line each: where mails end their lines at the 75th letter, most
/// are in two.
fn unbroken(text: &str) -> Cow<'_, str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_begun = |at: usize| lines[at].contains(" TEST ") && TABLE.hit(lines[at]).is_none();
    // How many lines a banner that begins in this one goes on.
    let more = |at: usize| -> Option<usize> {
        let joined = |more: &usize| lines.get(at..=at + more).map(|lines| lines.join(" "));
        (1..=2).filter(|_| is_begun(at)).find(|more| {
            joined(more).is_some_and(|line| TABLE.hit(&line).is_some_and(|hit| hit.name == "begin"))
        })
    };
    if !(0..lines.len()).any(|at| more(at).is_some()) {
        return Cow::Borrowed(text);
    }
    let (mut whole, mut at) = (String::new(), 0);
    while at < lines.len() {
        let end = at + more(at).unwrap_or(0);
        whole.push_str(&lines[at..=end].join(" "));
        whole.push('\n');
        at = end + 1;
    }
    Cow::Owned(whole)
}

/// The results in a text.
fn read(text: &str) -> Vec<Imported> {
    let text = unbroken(text);
    let log: Log = log(&text, "netperf", &TABLE, again);
    let mut results = Results::new(FORMAT, REMARK);
    for run in &log.runs {
        let command = run.command.clone().unwrap_or_default();
        let begin = |name: &str| run.hit("begin").and_then(|hit| hit.text(name)).unwrap_or_default();
        // Which of its values it is to print.
        let is_output =
            |word: &&str| *word == "all" || word.starts_with(|one: char| one.is_ascii_uppercase());
        let all = values(run);
        // Sizes that the text does not print are those of the command.
        let sizes = ["local_send_size", "remote_send_size", "request_size"];
        let is_told = all.iter().any(|values| sizes.iter().any(|size| values.contains_key(size)));
        let is_own = |option: &&str| is_told || !["-m", "-r"].contains(option);
        let valued: Vec<&str> = VALUED.into_iter().filter(is_own).collect();
        let options = command.without(&valued, &FLAGS);
        let options = options.split(' ').filter(|word| !is_output(word)).collect::<Vec<_>>().join(" ");
        let from = Some(begin("from")).filter(|from| *from != "0.0.0.0").unwrap_or_default();
        let confidence = test::confidence(run, all.last().unwrap_or(&Values::new())).unwrap_or_default();
        let facts = vec![
            ("options", options),
            ("?from", from.to_string()),
            ("to", begin("to").to_string()),
            ("confidence", confidence),
        ];
        let Some((builder, faults)) = results.of(run, facts, false) else { continue };
        for values in &all {
            let test = Test::of(run, values);
            figures::figures(&test, values, builder, faults);
        }
        let test = Test::of(run, all.last().unwrap_or(&Values::new()));
        figures::beside(run, &test, all.is_empty(), builder, faults);
    }
    results.finish_with(&log, &figures::HEADLINES)
}

/// The values of each test of a run: of CSV several may stand below the same titles.
fn values<'t>(run: &Run<'t>) -> Vec<Values<'t>> {
    let (mut table, mut all) = (Values::new(), Vec::new());
    let mut titles: Vec<&str> = Vec::new();
    let mut heads: Vec<&'t str> = Vec::new();
    for hit in &run.hits {
        match hit.name {
            "row" | "arrived" | "trips" | "moved" => {
                let own = NAMES.iter().map(|(name, _)| *name).chain(["okay", "arrived", "moved"]);
                table.extend(own.filter_map(|name| Some((name, hit.text(name)?))));
            }
            "key" => {
                let key = hit.text("key").unwrap_or_default().to_lowercase();
                let name = NAMES.iter().find(|(name, _)| *name == key);
                table.extend(name.and_then(|(name, _)| Some((*name, hit.text("value")?))));
            }
            "titles" => titles = hit.line().trim().split(',').collect(),
            "csv" => {
                let cells: Vec<&str> = hit.line().trim().splitn(titles.len().max(1), ',').collect();
                if cells.len() == titles.len() {
                    all.push(named(titles.iter().copied().zip(cells)));
                }
            }
            "heads" => heads.push(hit.line()),
            "columns" => all.push(of_columns(&std::mem::take(&mut heads), hit.line())),
            _ => {}
        }
    }
    if ["throughput", "local_send_throughput"].iter().any(|name| table.contains_key(name)) {
        all.push(table);
    }
    all.retain(|one| ["throughput", "local_send_throughput"].iter().any(|name| one.contains_key(name)));
    all
}

fn named<'a, 't>(cells: impl Iterator<Item = (&'a str, &'t str)>) -> Values<'t> {
    let known = |(title, cell): (&str, &'t str)| {
        let (name, _) = NAMES.iter().find(|(_, own)| *own == title.trim())?;
        Some((*name, cell.trim()))
    };
    cells.filter_map(known).collect()
}

/// A row of columns, by the heads that stand in several lines above each.
fn of_columns<'t>(heads: &[&str], row: &'t str) -> Values<'t> {
    let starts: Vec<usize> = (0..row.len())
        .filter(|at| {
            let is_word = |at: usize| row.as_bytes().get(at).is_some_and(|byte| *byte != b' ');
            is_word(*at) && (*at == 0 || !is_word(*at - 1))
        })
        .collect();
    let title = |at: usize| {
        let part = |line: &&str| {
            let end = starts.get(at + 1).copied().unwrap_or(line.len()).min(line.len());
            line.get(starts[at]..end).map(|part| part.trim().to_string())
        };
        heads.iter().filter_map(part).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let titles: Vec<String> = (0..starts.len()).map(title).collect();
    named(titles.iter().map(String::as_str).zip(row.split_whitespace()))
}

//! The lines of iperf3, of either end and of all its versions, and its options.

use crate::kit::Pattern;
use crate::kit::lines::{adds, ahead, begins, ends, ignored, once};

/// Options whose meaning is read, or that change nothing.
pub const VALUED: &str = "-c --client -p --port -t --time -i --interval -P --parallel -b --bitrate --bandwidth -l \
    --length -O --omit -f --format --logfile -n --bytes";
pub const FLAGS: &str =
    "-u --udp -R --reverse --bidir -V --verbose -s --server -1 --one-off --forceflush -4 -D";

pub const LINES: &[Pattern] = &[
    ahead("version", r"iperf (?<value>3\.\S+)(?: \(.*\))?"),
    ahead("system", r"(?<value>(?:Linux|[A-Za-z]+BSD|Darwin|SunOS|CYGWIN\S*) \S+ \d\S* .*)"),
    ahead("time", r"Time: (?<value>.*)"),
    ahead("block", r"Setting UDP block size to (?<value>\d+)"),
    begins("to", r"Connecting to host (?<value>\S+), port \d+"),
    begins("from", r"Accepted connection from (?<value>\S+), port \d+"),
    once("reverse", r"Reverse mode, remote host \S+ is sending"),
    once("mss", r"TCP MSS: (?<value>\d+)(?: \(default\))?"),
    once("target", r"Target Bitrate: (?<value>\d+)"),
    adds(
        "connected",
        r"\[ *(?<id>\d+)\](?:\[[RT]X-[CS]\])? local (?<local>\S+) port \d+ connected to (?<remote>\S+) port \d+",
    ),
    once(
        "starting",
        r"Starting Test: protocol: (?<protocol>\w+), (?<streams>\d+) streams, (?<block>\d+) byte blocks, omitting (?<omit>\d+) seconds, (?:(?<seconds>\d+) second test|\d+ (?:bytes|blocks) to send)(?:, tos (?<tos>\d+))?",
    ),
    adds("header", r"\[ ID\](?:\[Role\])? Interval +Transfer +(?:Bandwidth|Bitrate) *(?<value>.*)"),
    adds(
        "row",
        r"\[ *(?<id>\d+|SUM)\](?:\[(?<role>[RT]X)-[CS]\])? +(?<from>\d+\.\d\d)-(?<to>\d+\.\d\d) +sec +(?<bytes>[\d.]+) (?<bytes_unit>[KMGTP]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGTP]?)(?<rate_of>bits|Bytes)/sec(?: +(?<count>-?\d+)(?: +(?<window>[\d.]+) (?<window_unit>[KMGT]?)Bytes)?| +(?<jitter>[\d.]+) ms +(?<lost>-?\d+)/(?<packets>-?\d+) +\([^()]*\))? *(?<end>sender|receiver|\(omitted\))?",
    ),
    adds(
        "reordered",
        r"\[ *(?:\d+|SUM)\](?:\[[RT]X-[CS]\])? +[\d.]+-[\d.]+ +sec +(?<value>\d+) datagrams received out-of-order",
    ),
    adds("cpu", r"CPU Utilization: local/\w+ (?<local>[\d.]+)% \(.*\), remote/\w+ (?<remote>[\d.]+)% \(.*\)"),
    adds("congestion", r"snd_tcp_congestion (?<value>\S+)"),
    ignored(
        r"iperf3: OUT OF ORDER .*|warning: .*|rcv_tcp_congestion .*|Cookie: .*|Control connection MSS \d+|[- ]+",
    ),
    once("error", r"(?:\^C)?iperf3: (?:error - )?(?<value>.*)"),
    ends("done", r"iperf Done\."),
    ends("listens", r"Server listening on \d+.*"),
    ignored(r"Test Complete\. Summary Results:|Finished omit period.*|\[ *(?:\d+|SUM)\] Sent \d+ datagrams"),
    ignored(r"\[ *\S+\] \((?:sender|receiver) statistics not available\)|\^C"),
];

//! The lines of iperf3, of either end and of all its versions, and its options.

use crate::kit::Does::{Adds, Ahead, Begins, Ends, Nothing, Once};
use crate::kit::{Pattern, line};

/// Options whose meaning is read, or that change nothing.
pub const VALUED: [&str; 22] = [
    "-c",
    "--client",
    "-p",
    "--port",
    "-t",
    "--time",
    "-i",
    "--interval",
    "-P",
    "--parallel",
    "-b",
    "--bitrate",
    "--bandwidth",
    "-l",
    "--length",
    "-O",
    "--omit",
    "-f",
    "--format",
    "--logfile",
    "-n",
    "--bytes",
];
pub const FLAGS: [&str; 14] = [
    "-u",
    "--udp",
    "-R",
    "--reverse",
    "--bidir",
    "-V",
    "--verbose",
    "-s",
    "--server",
    "-1",
    "--one-off",
    "--forceflush",
    "-4",
    "-D",
];

pub const LINES: &[Pattern] = &[
    line("version", Ahead, r"iperf (?<value>3\.\S+)(?: \(.*\))?"),
    line("system", Ahead, r"(?<value>(?:Linux|[A-Za-z]+BSD|Darwin|SunOS|CYGWIN\S*) \S+ \d\S* .*)"),
    line("time", Ahead, r"Time: (?<value>.*)"),
    line("block", Ahead, r"Setting UDP block size to (?<value>\d+)"),
    line("to", Begins, r"Connecting to host (?<value>\S+), port \d+"),
    line("from", Begins, r"Accepted connection from (?<value>\S+), port \d+"),
    line("reverse", Once, r"Reverse mode, remote host \S+ is sending"),
    line("mss", Once, r"TCP MSS: (?<value>\d+)(?: \(default\))?"),
    line("target", Once, r"Target Bitrate: (?<value>\d+)"),
    line(
        "connected",
        Adds,
        r"\[ *(?<id>\d+)\](?:\[[RT]X-[CS]\])? local (?<local>\S+) port \d+ connected to (?<remote>\S+) port \d+",
    ),
    line(
        "starting",
        Once,
        r"Starting Test: protocol: (?<protocol>\w+), (?<streams>\d+) streams, (?<block>\d+) byte blocks, omitting (?<omit>\d+) seconds, (?:(?<seconds>\d+) second test|\d+ (?:bytes|blocks) to send)(?:, tos (?<tos>\d+))?",
    ),
    line("header", Adds, r"\[ ID\](?:\[Role\])? Interval +Transfer +(?:Bandwidth|Bitrate) *(?<value>.*)"),
    line(
        "row",
        Adds,
        r"\[ *(?<id>\d+|SUM)\](?:\[(?<role>[RT]X)-[CS]\])? +(?<from>\d+\.\d\d)-(?<to>\d+\.\d\d) +sec +(?<bytes>[\d.]+) (?<bytes_unit>[KMGTP]?)Bytes +(?<rate>[\d.]+) (?<rate_unit>[KMGTP]?)(?<rate_of>bits|Bytes)/sec(?: +(?<count>-?\d+)(?: +(?<window>[\d.]+) (?<window_unit>[KMGT]?)Bytes)?| +(?<jitter>[\d.]+) ms +(?<lost>-?\d+)/(?<packets>-?\d+) +\([^()]*\))? *(?<end>sender|receiver|\(omitted\))?",
    ),
    line(
        "reordered",
        Adds,
        r"\[ *(?:\d+|SUM)\](?:\[[RT]X-[CS]\])? +[\d.]+-[\d.]+ +sec +(?<value>\d+) datagrams received out-of-order",
    ),
    line(
        "cpu",
        Adds,
        r"CPU Utilization: local/\w+ (?<local>[\d.]+)% \(.*\), remote/\w+ (?<remote>[\d.]+)% \(.*\)",
    ),
    line("congestion", Adds, r"snd_tcp_congestion (?<value>\S+)"),
    line(
        "rest",
        Nothing,
        r"iperf3: OUT OF ORDER .*|warning: .*|rcv_tcp_congestion .*|Cookie: .*|Control connection MSS \d+|[- ]+",
    ),
    line("error", Once, r"(?:\^C)?iperf3: (?:error - )?(?<value>.*)"),
    line("done", Ends, r"iperf Done\."),
    line("listens", Ends, r"Server listening on \d+.*"),
    line(
        "rest",
        Nothing,
        r"Test Complete\. Summary Results:|Finished omit period.*|\[ *(?:\d+|SUM)\] Sent \d+ datagrams",
    ),
    line("rest", Nothing, r"\[ *\S+\] \((?:sender|receiver) statistics not available\)|\^C"),
];

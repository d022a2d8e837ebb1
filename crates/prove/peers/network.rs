//! The network, against iperf3 and sockperf: over loopback, and between two network namespaces that
//! a pair of virtual cards connects (root). Sender on one CPU, receiver on the other, for both
//! sides.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench::{self, Depth, NetworkOverrides, Scope, Windows, network_cases};
use model::{Case, CpuSet};

use super::system::on_path;
use super::{Bench, Ours, Peer, ROW_LIMIT, Row, Rows, WINDOWS, Wanted};

const PAIRS: usize = 20;
/// Over loopback a window is four times as long: one second counts, as with the peers and between
/// namespaces.
const LOOPBACK: Windows = Windows { window_ns: 25e6, count: 10, ..WINDOWS };
const ADDRESSES: [&str; 2] = ["10.249.37.1", "10.249.37.2"];
const TOKEN: &str = "a token of the bench's own namespaces";
const PORT: u16 = 4711;

/// Two namespaces with a server of Assay's in the first; gone with this.
pub struct Namespaces {
    names: [String; 2],
    server: Option<Child>,
    /// Starts our program in the second one.
    program: PathBuf,
    _folder: tempfile::TempDir,
}

fn ip(words: &str) -> Result<(), String> {
    let done = Command::new("ip").args(words.split_whitespace()).stderr(Stdio::null()).status();
    if done.map_err(|error| format!("ip cannot be run ({error})"))?.success() {
        Ok(())
    } else {
        Err(format!("`ip {words}` failed"))
    }
}

impl Namespaces {
    /// On the first and the last usable CPU; why not, where that cannot be.
    pub fn make(bench: &Bench) -> Result<Namespaces, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let names = ["a", "b"].map(|end| format!("assay-bench-{}-{end}", std::process::id()));
        let program = folder.path().join("assay-there");
        let mut made = Namespaces { names, server: None, program, _folder: folder };
        let [a, b] = made.names.clone();
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add veth0 netns {a} type veth peer name veth0 netns {b}"))?;
        for (name, address) in [(&a, ADDRESSES[0]), (&b, ADDRESSES[1])] {
            ip(&format!("-n {name} addr add {address}/24 dev veth0"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set veth0 up"))?;
        }
        let assay = testkit::program().display().to_string();
        let text = format!("#!/bin/sh\nexec ip netns exec {b} {assay} \"$@\"\n");
        let written = std::fs::write(&made.program, text)
            .and_then(|()| std::fs::set_permissions(&made.program, std::fs::Permissions::from_mode(0o755)));
        written.map_err(|error| format!("cannot write a script ({error})"))?;
        let mut server = Command::new("ip");
        server.args(["netns", "exec", &a, "taskset", "-c", &cpus(bench).1.to_string(), &assay, "serve"]);
        server.args(["--bind", ADDRESSES[0], "--port", &PORT.to_string()]).env("ASSAY_TOKEN", TOKEN);
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        made.server = Some(server.spawn().map_err(|error| format!("no server ({error})"))?);
        std::thread::sleep(Duration::from_millis(500));
        Ok(made)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        // Its end of the virtual cards goes with the namespace.
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// Of the sender and of the receiver.
fn cpus(bench: &Bench) -> (u32, u32) {
    let all = bench.placements.cpus();
    (all.last().unwrap_or(0), all.first().unwrap_or(0))
}

/// A server, then a client, as one program: in the two namespaces, or both here.
fn two(bench: &Bench, spaces: Option<&Namespaces>, server: &str, client: &str) -> Words {
    let (sender, receiver) = cpus(bench);
    let within = |end: usize| match spaces {
        Some(spaces) => format!("ip netns exec {} ", spaces.names[end]),
        None => String::new(),
    };
    let script = format!(
        "{}taskset -c {receiver} {server} >/dev/null 2>&1 & server=$!; sleep 0.2; {}taskset -c {sender} {client}; \
         kill $server 2>/dev/null; wait $server 2>/dev/null; true",
        within(0),
        within(1)
    );
    ["sh", "-c", &script].map(str::to_string).to_vec()
}

/// A command line.
type Words = Vec<String>;

/// Of iperf3's last line about the receiver.
fn received(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.contains("receiver"))?;
    line.split(" Gbits/sec").next()?.split_whitespace().next_back()?.parse().ok()
}

/// sockperf's median.
fn percentile_50(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"))?;
    line.split('=').next_back()?.trim().parse().ok()
}

pub fn rows(bench: &Bench, spaces: &Result<Namespaces, String>) -> Rows {
    let mut rows = of_place(bench, None);
    match spaces {
        Ok(spaces) => rows.extend(of_place(bench, Some(spaces))),
        Err(why) => rows.push(Err(format!("network between two namespaces ({why})"))),
    }
    rows
}

fn of_place(bench: &Bench, spaces: Option<&Namespaces>) -> Rows {
    let (place, to) = match spaces {
        Some(_) => ("veth", ADDRESSES[0]),
        None => ("loopback", "127.0.0.1"),
    };
    let mut rows = Rows::new();
    for streams in [1, 4] {
        let name = format!("network, TCP bandwidth, {place}, {streams} streams (iperf3)");
        let command = two(
            bench,
            spaces,
            "iperf3 -s -1 -p 5299",
            &format!("iperf3 -c {to} -p 5299 -O 1 -t 1 -f g -P {streams}"),
        );
        let ours = ours(bench, spaces, "network.tcp", streams, "");
        let wanted = Wanted::AtLeast(1.0);
        rows.push(row(
            name,
            "iperf3",
            "Gbit/s",
            ours.map(|case| Ours::new(case, "bandwidth")),
            command,
            received,
            wanted,
        ));
    }
    for (protocol, word) in [("tcp", "--tcp"), ("udp", "")] {
        let name = format!("network, {protocol} round trip, {place} (sockperf)");
        let command = two(
            bench,
            spaces,
            &format!("sockperf sr {word} -i {to} -p 5298"),
            &format!("sockperf pp {word} -i {to} -p 5298 -t 1 -m 64 --full-rtt"),
        );
        let ours = ours(bench, spaces, "network.round-trip", 1, protocol);
        let ours = ours.map(|case| Ours::new(case, "latency_p50"));
        rows.push(row(name, "sockperf", "us", ours, command, percentile_50, Wanted::Within(0.05)));
    }
    let here = |mut row: Row| {
        row.ours.windows = LOOPBACK;
        row
    };
    let there = |mut row: Row, spaces: &Namespaces| {
        row.ours.program = Some(spaces.program.clone());
        row.ours.secret = Some(TOKEN.to_string());
        row
    };
    match spaces {
        Some(spaces) => rows.into_iter().map(|row| row.map(|row| there(row, spaces))).collect(),
        None => rows.into_iter().map(|row| row.map(here)).collect(),
    }
}

fn row(
    name: String,
    tool: &str,
    unit: &'static str,
    ours: Option<Ours>,
    command: Words,
    value: fn(&str) -> Option<f64>,
    wanted: Wanted,
) -> Result<Row, String> {
    if !on_path(tool) {
        return Err(format!("{name}: not installed"));
    }
    Ok(Row {
        ours: ours.ok_or(name.clone())?,
        name,
        unit,
        scale: 1.0,
        peer: Peer::Program(command, value),
        wanted,
        pairs: PAIRS,
        limit: 3 * ROW_LIMIT,
        note: "runs differ by where the kernel wakes the softirq: more pairs would narrow it",
    })
}

/// Our case on the two CPUs.
fn ours(bench: &Bench, spaces: Option<&Namespaces>, id: &str, streams: u64, protocol: &str) -> Option<Case> {
    let scope =
        Scope { windows: WINDOWS, ..Scope::new(&bench.machine, &bench.placements, Depth::Full, 1 << 30) };
    let row = bench::find(id)?;
    let wish = NetworkOverrides {
        to: spaces.map(|_| format!("{}:{PORT}", ADDRESSES[0])),
        streams: Some(streams),
        ..NetworkOverrides::default()
    };
    let (sender, receiver) = cpus(bench);
    let fits = |case: &Case| {
        let is =
            |name: &str, value: &str| case.params.named(name).is_none_or(|own| own.text() == Some(value));
        is("direction", "send")
            && is("protocol", protocol)
            && (sender == receiver || case.placement.name != "same-cpu")
    };
    let candidates = network_cases((row.cases)(row, &scope), &scope, &wish);
    let possible = candidates.into_iter().filter(|candidate| candidate.unmet.is_none());
    let mut case = possible.map(|candidate| candidate.case).find(fits)?;
    // One CPU at each end, as the peers have.
    if spaces.is_some() {
        let first = case.placement.seats.first().cloned();
        case.placement.seats.retain(|seat| seat.host.is_some() || Some(seat) == first.as_ref());
    }
    for (seat, cpu) in case.placement.seats.iter_mut().zip([sender, receiver]) {
        if seat.host.is_none() {
            seat.cpus = CpuSet::one(cpu);
        }
    }
    Some(case)
}

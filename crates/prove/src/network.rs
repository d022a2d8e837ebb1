//! The tables on what limits a transfer: the decision on simulated experiments, and limits planted
//! between namespaces of this host, each to be named.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fastrand::Rng;
use prove::proof::{
    BOTTLENECK_FOUND_LEAST, BOTTLENECK_PLANTED_LEAST, BOTTLENECK_WRONG_MOST, PLANTED, Rate, paths,
};
use serde_json::Value;
use stats::network::Limit;

use super::statistics::{at_least, at_most};
use super::{Section, measured, table};
use testkit::host::{self, Group, Hog};

pub const SECTIONS: &[Section] = &[
    Section { name: "network-simulated", title: "Limits of simulated transfers", run: simulated },
    Section { name: "network", title: "Limits planted between namespaces", run: planted },
];

/// Experiments of each kind.
const EXPERIMENTS: usize = 2000;
/// Rounds and noise of a bandwidth.
const CELLS: [(usize, f64); 6] = [(6, 0.01), (6, 0.03), (9, 0.01), (9, 0.03), (9, 0.1), (15, 0.1)];
/// The cells that the bounds are stated of.
const STATED: [(usize, f64); 2] = [(9, 0.01), (9, 0.03)];

fn simulated() -> String {
    let kinds: Vec<(usize, Limit)> = PLANTED.into_iter().enumerate().collect();
    let found = measured(&kinds, |(seed, limit)| {
        CELLS.map(|(rounds, noise)| paths(*limit, rounds, noise, EXPERIMENTS, *seed as u64))
    });
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(&found)
        .map(|((_, limit), cells)| {
            let cell = |found: &prove::proof::Found| {
                format!("{:.1} / {:.1} %", 100.0 * found.right.share(), 100.0 * found.wrong.share())
            };
            [limit.words().to_string()].into_iter().chain(cells.iter().map(cell)).collect()
        })
        .collect();
    let header: Vec<String> = ["planted (named / another named)".to_string()]
        .into_iter()
        .chain(CELLS.map(|(rounds, noise)| format!("{rounds} rounds, noise {} %", 100.0 * noise)))
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let stated = || {
        found.iter().flat_map(|cells| {
            CELLS.iter().zip(cells).filter(|(cell, _)| STATED.contains(cell)).map(|(_, found)| found)
        })
    };
    let right: Vec<Rate> = stated().map(|found| found.right).collect();
    let wrong: Vec<Rate> = stated().map(|found| found.wrong).collect();
    [
        table(&header, &rows),
        at_least(
            "The planted limit is named, of nine rounds with up to 3 % of noise",
            &right,
            BOTTLENECK_FOUND_LEAST,
        ),
        at_most("Another one is", &wrong, BOTTLENECK_WRONG_MOST),
    ]
    .concat()
}

/// Trials of each planted limit; `ASSAY_TRIALS` asks for fewer.
const TRIALS: usize = 20;
const SEED: u64 = 21;
/// Five passes of the experiment, and what goes before them.
const BUDGET: &str = "35s";
const PORT: u16 = 4811;
const TOKEN: &str = "a-token-of-the-proof-and-of-nothing-else";

/// The sender's CPU, and the receiver's.
const CPUS: [u32; 2] = [0, 1];

/// What is planted.
#[derive(Clone, Copy, Debug)]
enum Plant {
    Nothing,
    /// A token bucket of this many Mbit/s in the middle.
    Shaper(u32),
    /// A CPU quota of this many percent for one end, from and to.
    Quota(End, [u32; 2]),
    /// Other work on one end's CPU.
    Hogged(End),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Sender,
    Receiver,
}

struct Planted {
    name: &'static str,
    /// Used alternately, one per trial.
    plants: &'static [Plant],
    /// The words of `network-bottleneck` that are true of it.
    named: &'static [&'static str],
}

const PLANTS: [Planted; 4] = [
    Planted {
        name: "tbf in the middle, 100, 200 or 500 Mbit/s, 1 or 2 Gbit/s",
        plants: &[
            Plant::Shaper(100),
            Plant::Shaper(200),
            Plant::Shaper(500),
            Plant::Shaper(1000),
            Plant::Shaper(2000),
        ],
        named: &["shaper"],
    },
    Planted {
        // Without a quota it uses 30 to 50 % of a CPU: the sender's has more to do.
        name: "receiver with a CPU quota of 10 to 20 %, or beside a hog on its CPU",
        plants: &[Plant::Quota(End::Receiver, [10, 20]), Plant::Hogged(End::Receiver)],
        named: &["receiver-starved"],
    },
    Planted {
        name: "sender with a CPU quota of 20 to 40 %, or beside a hog on its CPU",
        plants: &[Plant::Quota(End::Sender, [20, 40]), Plant::Hogged(End::Sender)],
        named: &["sender-starved"],
    },
    Planted {
        // Nothing planted: only what cannot be is known.
        name: "nothing: CPUs, or what one connection takes",
        plants: &[Plant::Nothing],
        named: &["sender-cpu", "receiver-cpu", "both-cpus", "one-stream"],
    },
];

fn planted() -> String {
    if let Some(why) = impossible() {
        return format!("Not measured here: {why}.\n");
    }
    let asked = std::env::var("ASSAY_TRIALS").ok().and_then(|trials| trials.parse().ok());
    let (trials, mut rng) = (asked.unwrap_or(TRIALS), Rng::with_seed(SEED));
    let mut seen: Vec<BTreeMap<String, usize>> = PLANTS.iter().map(|_| BTreeMap::new()).collect();
    for round in 0..trials {
        let mut order: Vec<usize> = (0..PLANTS.len()).collect();
        rng.shuffle(&mut order);
        for index in order {
            let plants = PLANTS[index].plants;
            let plant = plants[round % plants.len()];
            let concluded = trial(plant, &mut rng).unwrap_or_else(|why| {
                eprintln!("{plant:?}: {why}");
                "no conclusion".to_string()
            });
            eprintln!("round {} of {trials}, {plant:?}: {concluded}", round + 1);
            *seen[index].entry(concluded).or_default() += 1;
        }
    }
    confusion(&seen, trials)
}

fn confusion(seen: &[BTreeMap<String, usize>], trials: usize) -> String {
    let mut words: Vec<&String> = seen.iter().flat_map(|concluded| concluded.keys()).collect();
    words.sort();
    words.dedup();
    let mut rates = Vec::new();
    let mut rows = Vec::new();
    for (planted, concluded) in PLANTS.iter().zip(seen) {
        let hits = planted.named.iter().map(|word| concluded.get(*word).copied().unwrap_or(0)).sum();
        rates.push(Rate { hits, of: trials });
        let cell = |word: &&String| concluded.get(*word).map_or("–".to_string(), usize::to_string);
        let head = [planted.name.to_string(), format!("{hits} of {trials}")];
        rows.push(head.into_iter().chain(words.iter().map(cell)).collect());
    }
    let header: Vec<&str> =
        ["planted", "named"].into_iter().chain(words.iter().map(|word| word.as_str())).collect();
    table(&header, &rows) + &at_least("The planted limit is named", &rates, BOTTLENECK_PLANTED_LEAST)
}

/// Why nothing can be planted here.
fn impossible() -> Option<&'static str> {
    let both = CPUS.iter().all(|cpu| host::allowed_cpus().contains(*cpu));
    match () {
        () if !host::is_root() => Some("namespaces need root"),
        () if !both => Some("it needs two CPUs, 0 and 1"),
        () if !["ip", "tc", "taskset", "timeout"].iter().all(|tool| host::works("which", &[tool])) => {
            Some("it needs ip, tc, taskset and timeout")
        }
        () => None,
    }
}

/// One experiment with this planted: what was concluded.
fn trial(plant: Plant, rng: &mut Rng) -> Result<String, String> {
    let chain = Chain::new()?;
    if let Plant::Shaper(mbits) = plant {
        chain.shape(mbits)?;
    }
    let quota = match plant {
        Plant::Quota(end, [from, to]) => {
            let quota_us = rng.u32(from..=to) * 1000;
            let group =
                Group::new("cpu", &[("cpu.cfs_period_us", &100_000), ("cpu.cfs_quota_us", &quota_us)])?;
            Some((end, group))
        }
        _ => None,
    };
    let inside = |end: End, command: Command| match &quota {
        Some((own, group)) if *own == end => group.inside(&command),
        _ => command,
    };
    let _hog = match plant {
        Plant::Hogged(end) => Some(Hog::on(CPUS[usize::from(end == End::Receiver)])),
        _ => None,
    };
    let mut serve = chain.inside(END, CPUS[1], &["serve", "--bind", SERVER, "--port", &PORT.to_string()]);
    serve.env("ASSAY_TOKEN", TOKEN);
    let _server = Server::begin(inside(End::Receiver, serve))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let to = format!("{SERVER}:{PORT}");
    let words = [
        "run",
        "--quick",
        "--json",
        "--force",
        "--only",
        "network.bottleneck",
        "--to",
        &to,
        "--direction",
        "send",
        "--budget",
        BUDGET,
        "--out",
    ];
    let mut run = chain.inside(BEGIN, CPUS[0], &words);
    run.arg(folder.path()).env("ASSAY_TOKEN", TOKEN);
    let output = inside(End::Sender, run).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let results: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    conclusion(&results)
}

/// What the finding says the limit is; a link that is filled is no finding.
fn conclusion(results: &Value) -> Result<String, String> {
    let rule = "network-bottleneck";
    let of = |list: &str| results[list].as_array().cloned().unwrap_or_default();
    if of("rules_clean").contains(&rule.into()) {
        return Ok("link".to_string());
    }
    let findings = of("findings");
    let finding = findings.iter().find(|finding| finding["rule"] == rule);
    let finding = finding.ok_or_else(|| format!("nothing was concluded: {}", results["series"]))?;
    if std::env::var_os("ASSAY_SHOW").is_some() {
        eprintln!("{finding:#}");
    }
    let facts = finding["facts"].as_array().cloned().unwrap_or_default();
    let limit = facts.iter().find(|fact| fact["label"] == "limit").and_then(|fact| fact["value"].as_str());
    limit.map(str::to_string).ok_or_else(|| "the finding names no limit".to_string())
}

/// `assay serve`, which ends with this.
struct Server {
    child: Child,
}

impl Server {
    fn begin(mut command: Command) -> Result<Server, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let out = child.stdout.take().ok_or("no output")?;
        let server = Server { child };
        // Its first line says where it listens.
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
        if line.is_empty() { Err("assay serve did not begin".to_string()) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three network namespaces in a row: the client's, a router's, the server's.
struct Chain {
    names: [String; 3],
}

const BEGIN: usize = 0;
const MIDDLE: usize = 1;
const END: usize = 2;
/// Addresses that are set aside for measurements between devices (RFC 2544).
const SERVER: &str = "198.18.1.2";

impl Chain {
    fn new() -> Result<Chain, String> {
        let mark = host::unique();
        // Names of interfaces have 15 characters at most, and Assay's live in their own namespaces.
        let chain = Chain { names: ["a", "b", "c"].map(|end| format!("{mark}{end}")) };
        for name in &chain.names {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        let [begin, middle, end] = chain.names.each_ref().map(String::as_str);
        ip(&[
            "link", "add", "left", "netns", begin, "type", "veth", "peer", "name", "west", "netns", middle,
        ])?;
        ip(&["link", "add", "right", "netns", end, "type", "veth", "peer", "name", "east", "netns", middle])?;
        for (name, interface, address) in [
            (begin, "left", "198.18.0.2/24"),
            (middle, "west", "198.18.0.1/24"),
            (middle, "east", "198.18.1.1/24"),
            (end, "right", "198.18.1.2/24"),
        ] {
            ip(&["-n", name, "addr", "add", address, "dev", interface])?;
            ip(&["-n", name, "link", "set", interface, "up"])?;
        }
        ip(&["-n", begin, "route", "add", "default", "via", "198.18.0.1"])?;
        ip(&["-n", end, "route", "add", "default", "via", "198.18.1.1"])?;
        ip(&["netns", "exec", middle, "sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
        Ok(chain)
    }

    /// A token bucket on the way to the server: two milliseconds of its rate, a queue of twenty.
    fn shape(&self, mbits: u32) -> Result<(), String> {
        let burst = (mbits * 1000 / 8 * 2).max(64 << 10);
        let words =
            ["netns", "exec", &self.names[MIDDLE], "tc", "qdisc", "add", "dev", "east", "root", "tbf"];
        let (rate, burst) = (format!("{mbits}mbit"), burst.to_string());
        ip(&[&words[..], &["rate", &rate, "burst", &burst, "latency", "20ms"]].concat())
    }

    /// Our program inside one of them, on one CPU.
    fn inside(&self, place: usize, cpu: u32, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[place], "taskset", "-c", &cpu.to_string()]);
        command.arg(testkit::program()).args(words);
        command
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

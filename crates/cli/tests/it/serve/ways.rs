//! `assay serve` over ways that are not plain: sockets of both versions, link-local addresses,
//! datagrams that get lost, a host without a process to spare. Namespaces are made for a test
//! and taken away again.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bench::network_wire::Verdict;
use serde_json::Value;

use super::Server;
use crate::host::{is_root, skipped, unique, works, wrapped};
use crate::runs::{Ended, every_case_once, run_file, run_into};

/// A run against a server, by its run file.
struct Run {
    ended: Ended,
    lines: Vec<Value>,
}

impl Run {
    fn to(to: &str, token: &str, wrapper: &[&str], only: &str, more: &[&str]) -> Run {
        let out = tempfile::tempdir().expect("a folder");
        let mut command = run_into(out.path(), &format!("--quick --force --json --only {only}"));
        command.args(["--to", to]).args(more).env("ASSAY_TOKEN", token);
        let ended = every_case_once(&mut wrapped(wrapper, &command), out.path());
        let text = fs::read_to_string(run_file(out.path())).expect("a run");
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Run { ended, lines }
    }

    /// All texts under a name, wherever they stand.
    fn texts(&self, name: &str) -> Vec<String> {
        fn look(value: &Value, name: &str, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => fields.iter().for_each(|(own, value)| {
                    if own == name {
                        found.extend(text(value));
                    }
                    look(value, name, found);
                }),
                Value::Array(items) => items.iter().for_each(|item| look(item, name, found)),
                _ => {}
            }
        }
        /// A text, or several, or one in an object.
        fn text(value: &Value) -> Vec<String> {
            match value {
                Value::String(text) => vec![text.clone()],
                Value::Array(items) => items.iter().flat_map(text).collect(),
                Value::Object(fields) => fields.values().flat_map(text).collect(),
                _ => Vec::new(),
            }
        }
        let mut found = Vec::new();
        self.lines.iter().for_each(|line| look(line, name, &mut found));
        found
    }

    /// What an end reported about itself, by its probe.
    fn end(&self, probe: &str) -> String {
        self.texts(probe).into_iter().next().unwrap_or_default()
    }

    fn bandwidths(&self) -> usize {
        let json: Value = serde_json::from_str(&self.ended.out).expect("a report");
        let series = json["series"].as_array().expect("series");
        let carries = |one: &&Value| one["metric"] == "bandwidth" && one["median"].as_f64() > Some(0.0);
        series.iter().filter(carries).count()
    }
}

#[test]
fn a_client_of_version_4_is_one_for_a_server_on_all_addresses() {
    if TcpListener::bind("[::1]:0").is_err() {
        return skipped("a_client_of_version_4_is_one_for_a_server_on_all_addresses", "no IPv6 here");
    }
    let server = Server::start(&["--bind", "::"]);
    let to = format!("127.0.0.1:{}", server.port);
    let run = Run::to(&to, &server.token, &["env"], "network.round-trip,network.udp", &["--rate", "50"]);
    let told = run.end("probe:network-remote");
    assert!(told.contains("to 127.0.0.1\n") && told.contains("\ninterface lo\n"), "{told}");
    assert!(told.contains("\nseats "), "where its tasks sit: {told}");
    assert!(run.bandwidths() > 0);
    let notes = run.texts("notes");
    assert!(notes.iter().any(|note| note.contains("ran on its CPUs ")), "{notes:?}");
}

#[test]
fn rows_of_latency_keep_the_congestion_control() {
    let server = Server::start(&[]);
    let to = format!("127.0.0.1:{}", server.port);
    let rows = ["network.round-trip", "network.request", "network.loaded"];
    let run = Run::to(&to, &server.token, &["env"], &rows.join(","), &[]);
    let kept = run.texts("variant");
    let kept = kept.iter().filter(|name| name.starts_with("congestion control "));
    // One row in one direction at least, and every visit of it.
    assert!(kept.count() >= rows.len(), "{:?}", run.texts("variant"));
    for visit in run.lines.iter().filter(|line| line.to_string().contains("\"migrations\"")) {
        assert!(visit.to_string().contains("congestion control "), "{visit}");
    }
}

/// Between a client and a server: passes on what comes, but loses the first datagrams of each flow.
struct Relay {
    port: u16,
    ends: Arc<AtomicBool>,
}

/// Datagrams of a flow that are lost to begin with, on each way.
const LOST: [usize; 2] = [1, 3];

impl Relay {
    fn before(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.2:0").expect("all of 127.0.0.0/8 is this machine's");
        let port = listener.local_addr().expect("a port").port();
        let ends = Arc::new(AtomicBool::new(false));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(there) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let pairs = [(&client, &there), (&there, &client)]
                    .map(|(from, to)| (from.try_clone().expect("a copy"), to.try_clone().expect("a copy")));
                for (mut from, mut to) in pairs {
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        let socket = UdpSocket::bind(("127.0.0.2", server + 1)).expect("the port of data");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
        let over = ends.clone();
        thread::spawn(move || {
            let mut flows: BTreeMap<SocketAddr, (UdpSocket, usize)> = BTreeMap::new();
            let mut datagram = [0u8; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                let Ok((count, from)) = socket.recv_from(&mut datagram) else { continue };
                let (there, seen) = flows.entry(from).or_insert_with(|| (flow(&socket, from, server + 1), 0));
                *seen += 1;
                // What a network may do as well: the next one comes twice.
                let copies = if *seen <= LOST[0] { 0 } else { 1 + usize::from(*seen == LOST[0] + 1) };
                (0..copies).for_each(|_| drop(there.send(&datagram[..count])));
            }
        });
        Relay { port, ends }
    }
}

/// A socket of the relay's to the server, whose answers go back to this client.
fn flow(back: &UdpSocket, client: SocketAddr, server: u16) -> UdpSocket {
    let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
    there.connect(("127.0.0.1", server)).expect("connected");
    let (answers, back) = (there.try_clone().expect("a copy"), back.try_clone().expect("a copy"));
    thread::spawn(move || {
        answers.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let (mut datagram, mut seen) = ([0u8; 1 << 16], 0);
        loop {
            match answers.recv(&mut datagram) {
                Ok(count) => {
                    seen += 1;
                    if seen > LOST[1] {
                        let _ = back.send_to(&datagram[..count], client);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    });
    there
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

#[test]
fn datagrams_that_are_lost_to_begin_with_end_no_visit() {
    let server = Server::start(&[]);
    let relay = Relay::before(server.port);
    let to = format!("127.0.0.2:{}", relay.port);
    let more = ["--streams", "5", "--rate", "50"];
    let run = Run::to(&to, &server.token, &["env"], "network.udp", &more);
    assert_eq!(run.bandwidths(), 2, "both directions: {}", run.ended.err);
}

#[test]
fn a_port_that_is_taken_is_told_with_what_helps() {
    let server = Server::start(&[]);
    let output =
        crate::assay().args(["serve", "--port", &server.port.to_string()]).output().expect("assay runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("perhaps `assay serve`"), "{said}");
    assert!(said.contains(&server.port.to_string()) && said.contains("--port"), "{said}");
}

#[test]
fn a_server_without_a_process_to_spare_goes_on() {
    let test = "a_server_without_a_process_to_spare_goes_on";
    // A user of its own: no other processes count.
    let user = (1_000_000_000 + std::process::id()).to_string();
    let lone = ["prlimit", "--nproc=1:1000", "setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    let program = testkit::program().to_string_lossy().into_owned();
    if !is_root() || !works(lone[0], &[&lone[1..], &[&program, "--version"]].concat()) {
        return skipped(test, "another user's limits need root, prlimit and setpriv");
    }
    let mut server = Server::start_by(&lone, &[]);
    let (mut stream, answer) = server.prove(&server.token);
    assert!(matches!(answer, Some((Verdict::Welcome, _))));
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("cannot start a process for a session"), "{told:?}");
    assert!(server.child.try_wait().expect("a child").is_none(), "it ended");
    let pid = server.child.id().to_string();
    // Its own user may raise it.
    let raise = ["prlimit", "--pid", &pid, "--nproc=1000:1000"];
    assert!(works(lone[2], &[&lone[3..], &raise[..]].concat()), "the limit can be raised");
    server.serves();
}

/// Two network namespaces, near and far, with two pairs of interfaces between them: `decoy`, and
/// `way` with addresses.
struct Namespaces {
    near: String,
    far: String,
}

impl Namespaces {
    fn new(test: &str) -> Option<Namespaces> {
        let both = Namespaces { near: format!("{}n", unique()), far: format!("{}f", unique()) };
        let made = is_root() && both.make();
        if !made {
            skipped(test, "network namespaces need root and `ip`");
        }
        made.then_some(both)
    }

    fn make(&self) -> bool {
        let ip = |words: &str| works("ip", &words.split(' ').collect::<Vec<_>>());
        let (near, far) = (&self.near, &self.far);
        let mut made = ip(&format!("netns add {near}")) && ip(&format!("netns add {far}"));
        for name in ["decoy", "way"] {
            made &= ip(&format!("link add {name} netns {near} type veth peer name {name} netns {far}"));
        }
        for (end, number) in [(near, 1), (far, 2)] {
            made &= ip(&format!("-n {end} link set lo up"));
            for (name, net) in [("decoy", 8), ("way", 7)] {
                // No address but ours, and ours at once.
                made &= ip(&format!("-n {end} link set {name} addrgenmode none"));
                made &= ip(&format!("-n {end} link set {name} up"));
                made &= ip(&format!("-n {end} addr add 10.9.{net}.{number}/24 dev {name}"));
                made &= ip(&format!("-n {end} addr add fe80::{net}:{number}/64 dev {name} nodad"));
            }
        }
        made
    }

    fn near(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.near]
    }

    fn far(&self) -> [&str; 4] {
        ["ip", "netns", "exec", &self.far]
    }

    /// Datagrams that the near end has sent so far.
    fn datagrams(&self) -> u64 {
        let mut cat = Command::new("cat");
        let output = wrapped(&self.near(), cat.arg("/proc/net/snmp")).output().expect("cat runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().filter(|line| line.starts_with("Udp:")).map(str::split_whitespace);
        let names = lines.next().expect("names of counters");
        let mut counters = names.zip(lines.next().expect("counters"));
        let sent = counters.find(|(name, _)| *name == "OutDatagrams").expect("what was sent").1;
        sent.parse().expect("a number")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            if Path::new("/run/netns").join(name).exists() {
                works("ip", &["netns", "del", name]);
            }
        }
    }
}

#[test]
fn link_local_addresses_are_a_way_as_well() {
    let Some(spaces) = Namespaces::new("link_local_addresses_are_a_way_as_well") else { return };
    let server = Server::start_by(&spaces.far(), &["--bind", "fe80::7:2%way"]);
    let to = format!("[fe80::7:2%way]:{}", server.port);
    let rows = "network.tcp,network.round-trip,network.connect,network.udp";
    let run = Run::to(&to, &server.token, &spaces.near(), rows, &["--rate", "50"]);
    assert!(run.bandwidths() >= 4, "{}", run.ended.err);
    for (probe, other) in [("probe:network", 2), ("probe:network-remote", 1)] {
        let told = run.end(probe);
        assert!(told.contains(&format!("to fe80::7:{other}\n")), "{told}");
        assert!(told.contains("\ninterface way\n"), "{told}");
    }
}

#[test]
fn a_dry_run_sends_nothing() {
    let Some(spaces) = Namespaces::new("a_dry_run_sends_nothing") else { return };
    let before = spaces.datagrams();
    let mut dry = crate::assay();
    dry.args(["run", "--only", "network", "--dry-run", "--to", "10.9.7.2"]);
    let output = wrapped(&spaces.near(), &dry).stdout(Stdio::null()).output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(spaces.datagrams(), before, "datagrams left the machine");
    // The counter is the right one.
    let mut one = Command::new("sh");
    one.args(["-c", "exec 2>/dev/null; bash -c 'echo > /dev/udp/10.9.7.2/9'"]);
    let _ = wrapped(&spaces.near(), &one).stdout(Stdio::null()).status();
    assert!(spaces.datagrams() > before);
}

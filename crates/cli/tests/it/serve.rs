//! `assay serve` from the outside: who knows the token is served, and whatever else comes changes
//! nothing about that.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bench::network_wire::{HELLO_BYTES, Hello, Keys, VERDICT_BYTES, VERSION, Verdict};
use rustix::process::{Pid, Signal, kill_process};

use super::assay;
use crate::host::wrapped;
use crate::runs;

mod strangers;
mod ways;

/// A server that ends with the test.
struct Server {
    child: Child,
    port: u16,
    token: String,
    _said: BufReader<ChildStdout>,
    /// Its messages, as they come.
    told: tempfile::NamedTempFile,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        Server::start_by(&["env"], options)
    }

    /// By another program that becomes it.
    fn start_by(wrapper: &[&str], options: &[&str]) -> Server {
        let mut command = assay();
        command.args(["serve", "--port", "0"]).args(options).env_remove("ASSAY_TOKEN");
        let mut command = wrapped(wrapper, &command);
        let told = tempfile::NamedTempFile::new().expect("a file");
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(told.reopen().expect("a file"))
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let (mut port, mut token) = (None, None);
        while port.is_none() || token.is_none() {
            let mut line = String::new();
            assert!(
                said.read_line(&mut line).expect("readable") > 0,
                "it ended before it had said its token"
            );
            if let Some(rest) = line.strip_prefix("assay serves network tests on ") {
                let address = rest.split([',', ' ']).next().expect("an address");
                port = Some(address.rsplit(':').next().expect("a port").parse().expect("a port"));
            }
            token = token.or(line.strip_prefix("token ").map(|token| token.trim().to_string()));
        }
        Server { child, port: port.expect("a port"), token: token.expect("a token"), _said: said, told }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        stream
    }

    /// Says hello and proves to know a token; what the server answered, if it did.
    fn prove(&self, token: &str) -> (TcpStream, Option<(Verdict, Keys)>) {
        let mut stream = self.connect();
        let nonce = [7; 32];
        stream.write_all(&Hello { version: VERSION, nonce }.bytes()).expect("said");
        let mut bytes = [0u8; HELLO_BYTES];
        stream.read_exact(&mut bytes).expect("a hello");
        let hello = Hello::parse(&bytes).expect("a hello").expect("a whole one");
        let keys = Keys::of(token, &nonce, &hello.nonce);
        stream.write_all(&keys.client).expect("proved");
        let mut bytes = [0u8; VERDICT_BYTES];
        let answer =
            stream.read_exact(&mut bytes).ok().map(|()| Verdict::parse(&bytes, &keys).expect("an answer"));
        (stream, answer.map(|verdict| (verdict, keys)))
    }

    /// The next rightful client is served, and soon: begun within two seconds, with room for slow
    /// hosts.
    fn serves(&self) {
        let begin = Instant::now();
        let verdict = loop {
            let (_stream, answer) = self.prove(&self.token);
            match answer {
                Some((Verdict::Busy, _)) | None if begin.elapsed() < Duration::from_secs(20) => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                answer => break answer.map(|(verdict, _)| verdict),
            }
        };
        assert_eq!(verdict, Some(Verdict::Welcome), "after {:?}", begin.elapsed());
    }

    /// Memory of the listening process that is in use, KiB.
    fn memory(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("told");
        line.trim().trim_end_matches("kB").trim().parse().expect("a number")
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it lives").count()
    }

    /// A client that measures some rows.
    fn client(&self, only: &str, token: &str, out: &Path) -> Command {
        let mut command = runs::run_into(out, &format!("--quick --force --json --only {only}"));
        command.args(["--to", &format!("127.0.0.1:{}", self.port)]).env("ASSAY_TOKEN", token);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_with_the_token_measures_and_one_without_is_told() {
    let server = Server::start(&[]);
    let out = tempfile::tempdir().expect("a folder");
    let mut client = server.client("network.tcp,network.round-trip", &server.token, out.path());
    let ended = runs::every_case_once(&mut client, out.path());
    let text = &ended.out;
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{}", ended.err));
    let series = json["series"].as_array().expect("series");
    let has = |bench: &str, metric: &str| {
        series
            .iter()
            .any(|one| one["bench"] == bench && one["metric"] == metric && one["median"].as_f64() > Some(0.0))
    };
    assert!(has("network.tcp", "bandwidth") && has("network.round-trip", "latency_p50"), "{text}");
    assert!(has("network.tcp", "remote_busy"), "the other end's account came over");

    let (refused, other) = (tempfile::tempdir().expect("a folder"), "not the token of this server at all");
    let ended = runs::end(&mut server.client("network.tcp", other, refused.path()));
    assert_ne!(ended.says(&["refuses this token"]).code, 0);
    for (folder, token) in [(&out, server.token.as_str()), (&refused, other)] {
        for path in fs::read_dir(folder.path()).expect("readable").flatten().map(|entry| entry.path()) {
            let text = fs::read(&path).expect("readable");
            let holds = text.windows(token.len()).any(|window| window == token.as_bytes());
            assert!(!holds, "the token stands in {}", path.display());
        }
    }
    server.serves();
}

#[test]
fn options_that_need_network_rows_are_refused_elsewhere() {
    let output = assay().args(["run", "--only", "ipc", "--to", "127.0.0.1"]).output().expect("assay runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn another_version_is_told_so() {
    let server = Server::start(&[]);
    let mut stream = server.connect();
    stream.write_all(&Hello { version: VERSION + 1, nonce: [0; 32] }.bytes()).expect("said");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an end");
    let hello = Hello::parse(&bytes).expect("a hello").expect("a whole one");
    assert_eq!(hello.version, VERSION, "its own version, from which the other end makes words");
    server.serves();
}

#[test]
fn one_session_at_a_time_and_the_next_one_after_a_client_that_vanishes() {
    let server = Server::start(&[]);
    let (first, answer) = server.prove(&server.token);
    assert!(matches!(answer, Some((Verdict::Welcome, _))));
    let (_second, answer) = server.prove(&server.token);
    assert!(matches!(answer, Some((Verdict::Busy, _))), "others are told");
    drop(first);
    server.serves();
}

#[test]
fn a_client_killed_in_the_middle_of_a_transfer_costs_nobody_else_anything() {
    let server = Server::start(&[]);
    let out = tempfile::tempdir().expect("a folder");
    let mut command = assay();
    command.args(["run", "--quick", "--force", "--only", "network.tcp", "--to"]);
    command.arg(format!("127.0.0.1:{}", server.port)).arg("--out").arg(out.path());
    command.env("ASSAY_TOKEN", &server.token).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = command.spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(1500));
    client.kill().expect("killed");
    client.wait().expect("waited");
    server.serves();
    // Tasks of that session are gone with it.
    std::thread::sleep(Duration::from_millis(300));
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.child.id())).unwrap_or_default();
    assert!(children.split_whitespace().count() <= 1, "{children}");
}

#[test]
fn wrong_tokens_garbage_and_halves_are_survived() {
    let server = Server::start(&[]);
    for round in 0..50 {
        let (_stream, answer) = server.prove(&format!("wrong {round}"));
        assert!(answer.is_none_or(|(verdict, _)| verdict == Verdict::WrongToken));
        let mut garbage = server.connect();
        let _ = garbage.write_all(&vec![round as u8; 10_000]);
        let hello = Hello { version: VERSION, nonce: [1; 32] }.bytes();
        let mut half = server.connect();
        half.write_all(&hello[..round % HELLO_BYTES]).expect("a part");
    }
    server.serves();
}

#[test]
fn a_session_fed_with_garbage_ends_and_the_next_begins() {
    let server = Server::start(&[]);
    for length in [1, 19, 20, 21, 5000] {
        let begin = Instant::now();
        let (mut stream, answer) = loop {
            let (stream, answer) = server.prove(&server.token);
            match answer {
                Some((Verdict::Busy, _)) if begin.elapsed() < Duration::from_secs(20) => {}
                answer => break (stream, answer),
            }
        };
        assert!(matches!(answer, Some((Verdict::Welcome, _))));
        let _ = stream.write_all(&vec![0xff; length]);
    }
    server.serves();
}

#[test]
fn connections_that_say_nothing_do_not_keep_others_out() {
    let server = Server::start(&[]);
    let silent: Vec<TcpStream> = (0..200).map(|_| server.connect()).collect();
    server.serves();
    assert!(server.descriptors() < 120, "{} are open", server.descriptors());
    // Those that stayed are sent away after two seconds, or were to make room.
    std::thread::sleep(Duration::from_secs(4));
    assert!(server.descriptors() < 20, "{} are open", server.descriptors());
    drop(silent);
}

#[test]
fn ten_thousand_connections_leave_no_trace() {
    let server = Server::start(&[]);
    server.serves();
    let before = server.memory();
    for connection in 0..10_000 {
        let mut stream = server.connect();
        if connection % 3 == 0 {
            let _ = stream.write_all(b"assaynet and so on");
        }
    }
    server.serves();
    let after = server.memory();
    assert!(after < before + 4096, "{before} KiB became {after} KiB");
    assert!(server.descriptors() < 120, "{} are open", server.descriptors());
}

#[test]
fn slow_readers_and_writers_hold_nothing_up() {
    let server = Server::start(&[]);
    let hello = Hello { version: VERSION, nonce: [3; 32] }.bytes();
    let mut slow: Vec<TcpStream> = (0..10).map(|_| server.connect()).collect();
    for byte in &hello[..10] {
        for stream in &mut slow {
            let _ = stream.write_all(&[*byte]);
        }
        server.serves();
    }
}

#[test]
fn strangers_get_no_datagram() {
    let server = Server::start(&[]);
    let (_stream, answer) = server.prove(&server.token);
    assert!(matches!(answer, Some((Verdict::Welcome, _))));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a limit");
    for port in [server.port, server.port.wrapping_add(1)] {
        for bytes in [&b"assaydat"[..], &[0; 32], &[0; 1400]] {
            let _ = socket.send_to(bytes, ("127.0.0.1", port));
        }
    }
    assert!(socket.recv_from(&mut [0; 2000]).is_err(), "it answered somebody who proved nothing");
}

#[test]
fn it_ends_by_itself_and_by_a_signal() {
    let mut server = Server::start(&["--for", "1s"]);
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = server.child.try_wait().expect("a child") {
            break status;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "it goes on and on");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success(), "{status}");
    let mut server = Server::start(&[]);
    // Who starts tests in the background of a shell has SIGINT ignored, and so have they.
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).expect("a mask");
    let signal = if ignored & 1 << (Signal::INT.as_raw() - 1) != 0 { Signal::TERM } else { Signal::INT };
    kill_process(Pid::from_child(&server.child), signal).expect("sent");
    assert!(!server.child.wait().expect("it ends").success());
}

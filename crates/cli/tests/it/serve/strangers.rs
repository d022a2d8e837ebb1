//! Who is near without knowing the token: on the same host, on the client's own address, with all
//! descriptors taken, with a recorded handshake.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bench::network_wire::{FrameDirection, Framer, Keys, Unframer, Verdict};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};

use super::Server;

/// A client's side of a session, as the protocol has it.
struct Session {
    stream: TcpStream,
    keys: Keys,
    framer: Framer,
    unframer: Unframer,
}

impl Session {
    fn with(server: &Server) -> Session {
        let (stream, answer) = server.prove(&server.token);
        let Some((Verdict::Welcome, keys)) = answer else { panic!("not let in") };
        let (framer, unframer) =
            (Framer::new(&keys, FrameDirection::ToServer), Unframer::new(&keys, FrameDirection::ToClient));
        Session { stream, keys, framer, unframer }
    }

    fn ask(&mut self, request: &Value) {
        self.stream.write_all(&self.framer.frame(request.to_string().as_bytes())).expect("sent");
    }

    fn answer(&mut self) -> Value {
        loop {
            let mut bytes = vec![0; self.unframer.wants()];
            self.stream.read_exact(&mut bytes).expect("an answer");
            if let Some(text) = self.unframer.take(&bytes).expect("a frame") {
                return serde_json::from_slice(&text).expect("JSON");
            }
        }
    }

    /// Asks for a short transfer, and where its data are to go.
    fn transfer(&mut self, protocol: &str, streams: u32) -> SocketAddr {
        let beat = json!({"window_ms": 2, "warm_up": 1, "count": 2});
        let spec = json!({
            "test": 1, "protocol": protocol, "direction": "send", "streams": streams, "bytes": 1000, "beat": beat,
            "rate": null, "congestion": null, "buffers": null, "burn": [0.0, 0.0], "cpus": [], "echo": false,
        });
        self.ask(&json!({ "transfer": spec }));
        let port = self.answer()["port"].as_u64().expect("a port");
        ([127, 0, 0, 1], port as u16).into()
    }
}

/// What a process has used so far.
fn cpu_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, fields) = text.rsplit_once(") ").expect("a name");
    let ticks: Vec<u64> =
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse().expect("ticks")).collect();
    Duration::from_secs_f64(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Limits a process to `more` descriptors from its first free one on.
fn leave_descriptors(server: &Server, more: u64) {
    let pid = Pid::from_child(&server.child);
    let folder = format!("/proc/{}/fd", server.child.id());
    let used =
        (0..).take_while(|number| Path::new(&folder).join(number.to_string()).is_symlink()).count() as u64;
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit { current: Some(used + more), maximum };
    prlimit(Some(pid), Resource::Nofile, limit).expect("a limit of our own child");
}

#[test]
fn a_server_without_a_descriptor_waits_for_one() {
    let server = Server::start(&[]);
    leave_descriptors(&server, 0);
    let waiting: Vec<TcpStream> = (0..5).map(|_| server.connect()).collect();
    let (begin, before) = (Instant::now(), cpu_time(server.child.id()));
    std::thread::sleep(Duration::from_secs(2));
    let (passed, used) = (begin.elapsed(), cpu_time(server.child.id()) - before);
    assert!(used < passed / 5, "it used {used:?} of {passed:?}");
    let told = fs::read_to_string(server.told.path()).expect("readable");
    assert_eq!(told.matches("cannot accept a client").count(), 1, "{told}");
    assert!(told.contains("ulimit -n"), "{told}");
    leave_descriptors(&server, 100);
    server.serves();
    drop(waiting);
}

#[test]
fn with_few_descriptors_who_says_nothing_makes_room() {
    let server = Server::start(&[]);
    // One for a guest; a session's own connection takes its place.
    leave_descriptors(&server, 1);
    let silent: Vec<TcpStream> = (0..20).map(|_| server.connect()).collect();
    server.serves();
    drop(silent);
}

#[test]
fn strangers_at_the_door_for_data_keep_nobody_waiting() {
    let server = Server::start(&[]);
    let mut session = Session::with(&server);
    let to = session.transfer("tcp", 2);
    // From the client's own address, before it and between its connections.
    let strangers =
        || -> Vec<TcpStream> { (0..15).map(|_| TcpStream::connect(to).expect("it listens")).collect() };
    let (mut all, mut data) = (Vec::new(), Vec::new());
    // In whatever order they come; after the last one the door is closed.
    for stream in [1, 0] {
        all.extend(strangers());
        let mut connection = TcpStream::connect(to).expect("it listens");
        connection.write_all(&session.keys.cookie(1, stream)).expect("sent");
        data.push(connection);
    }
    assert_eq!(session.answer(), "ready");
}

#[test]
fn nobody_else_binds_the_port_for_datagrams() {
    let server = Server::start(&[]);
    let mut session = Session::with(&server);
    let to = session.transfer("udp", 2);
    let socket: OwnedFd =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .expect("a socket");
    sockopt::set_socket_reuseaddr(&socket, true).expect("set");
    let anywhere = SocketAddr::from(([0, 0, 0, 0], to.port()));
    for at in [to, anywhere] {
        assert!(rustix::net::bind(&socket, &at).is_err(), "{at} is shared");
    }
}

#[test]
fn a_token_that_can_be_guessed_is_refused_unless_that_is_meant() {
    for words in [&["serve", "--port", "0"][..], &["run", "--only", "network.tcp", "--to", "127.0.0.1:9"]] {
        let short = "twenty-one-characters";
        for given in ["argument", "environment"] {
            let mut command = crate::assay();
            command.args(words).env_remove("ASSAY_TOKEN");
            match given {
                "argument" => command.args(["--token", short]),
                _ => command.env("ASSAY_TOKEN", short),
            };
            let output = command.output().expect("assay runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{words:?}, {given}: {said}");
            assert!(said.contains("can be guessed") && said.contains("--weak-token"), "{said}");
        }
    }
    let server = Server::start(&["--token", "weak", "--weak-token"]);
    let mut command = crate::assay();
    let out = tempfile::tempdir().expect("a folder");
    command.args([
        "run",
        "--quick",
        "--force",
        "--only",
        "network.round-trip",
        "--budget",
        "10s",
        "--weak-token",
    ]);
    command.args(["--token", "weak", "--to", &format!("127.0.0.1:{}", server.port), "--out"]).arg(out.path());
    let output = command.output().expect("assay runs");
    // 3: no figure to be believed, on a busy host.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        fs::read_dir(out.path()).expect("readable").count() > 0,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn help_says_what_is_protected_and_what_is_not() {
    let output = crate::assay().args(["serve", "--help"]).output().expect("assay runs");
    let help = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["Protected:", "Not protected:", "encrypted", "denial of service", "--weak-token"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

//! How a cluster is started and what is made of its logs, without one.

use super::memory::{FRAMEWORK_HEAP, MAX_HEAP, SLOT_HEAP};
use super::*;

fn plan(cpus: &str) -> Plan {
    Plan {
        java: "java".into(),
        flink: "/flink".into(),
        dir: "/dir".into(),
        seats: CpuSet::parse_list(cpus).expect("a list"),
        elsewhere: CpuSet::one(0),
        port: None,
        windows: false,
    }
}

#[test]
fn collector_and_memory_are_fixed_whatever_the_cpus() {
    for cpus in ["1", "0-1", "0-255"] {
        let plan = plan(cpus);
        let folder = Path::new("/folder");
        for words in [plan.taskmanager_words(folder), plan.jobmanager_words(folder)] {
            let of = |begin: &str| -> Vec<&String> {
                words.iter().filter(|word| word.starts_with(begin)).collect()
            };
            assert_eq!(of("-XX:+Use"), [COLLECTOR], "one collector, named");
            let (least, most) = (of("-Xms"), of("-Xmx"));
            assert_eq!(least[0].replace("-Xms", "-Xmx"), *most[0]);
            assert!(words.contains(&"--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED".into()));
            assert!(words.iter().any(|word| word == "/flink/lib/*"));
        }
    }
    assert_eq!(Sizes::of(1, false).heap, FRAMEWORK_HEAP + SLOT_HEAP);
    assert!(Sizes::of(4096, false).heap == MAX_HEAP && memory(1, false) < memory(2, false));
    let configuration = plan("0-1").configuration(Ports { rest: 8081, rpc: 6123 }, Path::new("/folder"));
    assert!(configuration.contains("numberOfTaskSlots: 2\n") && configuration.contains("rest.port: 8081\n"));
    let hosts = configuration.lines().filter(|line| line.contains("host:") || line.contains("address:"));
    assert!(hosts.map(|line| assert!(line.ends_with(LOOPBACK), "{line}")).count() >= 5);
}

#[test]
fn a_port_that_is_taken_is_said_so() {
    let taken = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let error = rest_port(Some(port)).expect_err("it is taken").to_string();
    assert!(error.contains(&format!("port {port}")) && error.contains("--flink-port"), "{error}");
    drop(taken);
    assert_eq!(rest_port(Some(port)).expect("it is free"), port);
    assert_ne!(rest_port(None).expect("a port"), 0);
}

#[test]
fn logs_are_told_by_what_they_say() {
    let log = b"one\n\n\tat a.b(C.java:1)\nCaused by: x\n\tat d\n\t... 3 more\nlast\x1b[0m\n";
    assert_eq!(last_lines(log), "Its last lines: one / Caused by: x / last[0m");
    assert_eq!(last_lines(b"\n"), "It printed nothing");
}

#[test]
fn windows_get_memory_and_every_slot_a_buffer_for_every_other() {
    let plain = |slots| Sizes::of(slots, false);
    assert_eq!((plain(64).managed, plain(64).network, plain(64).segment_kib), (0, 32, 32), "as it ever was");
    for slots in [1, 2, 8, 64, 65, 256, 1024] {
        let sizes = Sizes::of(slots, true);
        let buffers = (sizes.network << 10) / sizes.segment_kib;
        // What Flink cannot do without: one for each pair in each of Q5's exchanges, and one more a
        // slot at both ends.
        assert!(buffers >= 4 * slots * (slots + 2), "{slots} slots: {buffers} buffers");
        assert!(sizes.segment_kib.is_power_of_two() && (4..=32).contains(&sizes.segment_kib));
        assert!(sizes.managed / slots >= 32 && sizes.heap > plain(slots).heap);
        assert!(memory(slots, true) > memory(slots, false));
    }
    assert!(Sizes::of(256, true).network < Sizes::of(256, true).heap);
    let plan = Plan { windows: true, ..plan("0-255") };
    let words = plan.taskmanager_words(Path::new("/folder"));
    for word in ["taskmanager.memory.managed.size=8192m", "taskmanager.memory.segment-size=8k"] {
        assert!(words.iter().any(|other| other == word), "{word} is missing in {words:?}");
    }
}

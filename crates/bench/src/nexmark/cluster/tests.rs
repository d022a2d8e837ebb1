//! How a cluster is started and what is made of its logs, without one.

use super::*;

fn plan(cpus: &str) -> Plan {
    Plan {
        java: "java".into(),
        flink: "/flink".into(),
        dir: "/dir".into(),
        seats: CpuSet::parse_list(cpus).expect("a list"),
        elsewhere: CpuSet::one(0),
        port: None,
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
    assert_eq!(heap(1), FRAMEWORK_HEAP + SLOT_HEAP);
    assert!(heap(4096) == MOST_HEAP && memory(1) < memory(2));
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
    assert_eq!(last_lines(b"\n"), "It said nothing");
}

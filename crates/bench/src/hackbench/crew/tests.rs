//! Every message arrives, over every transport, from processes and threads.

use super::*;
use crate::hackbench::TRANSPORTS;
use testkit::alone;

fn small(tasks: Tasks, transport: &'static str, stamped: bool) -> Setup {
    Setup { groups: 2, fds: 3, loops: 20, bytes: 100, tasks, transport, stamped, kept: false }
}

fn holds(setup: Setup) {
    let ran = run(&setup, Clock::Raw, None).expect("a run").0;
    assert_eq!((ran.messages, ran.intact), (2 * 3 * 3 * 20, true));
    assert!(ran.wall_ns > 0.0 && ran.user_ms >= 0.0 && ran.system_ms >= 0.0);
    let counted = ran.voluntary + ran.involuntary;
    assert!(ran.switches.is_none_or(|all| all >= counted * 0.99 - 50.0), "{:?}, {counted}", ran.switches);
    assert!(ran.wait_ns.is_none_or(|ns| ns >= 0.0) && ran.migrations.is_none_or(|count| count >= 0.0));
    let latencies = ran.latencies.map(|histogram| histogram.total());
    assert_eq!(latencies, setup.stamped.then_some(360));
}

#[test]
fn every_message_arrives_by_every_way() {
    alone(|| {
        for transport in TRANSPORTS {
            for stamped in [false, true] {
                holds(small(Tasks::Processes, transport, stamped));
            }
        }
    });
    alone(|| {
        for transport in TRANSPORTS {
            for kept in [false, true] {
                holds(Setup { kept, ..small(Tasks::Threads, transport, true) });
            }
        }
    });
}

#[test]
fn more_files_than_may_be_open_are_refused_in_words() {
    let setup = Setup { groups: 1 << 20, fds: 1 << 10, ..small(Tasks::Threads, "pipe", false) };
    let limited = getrlimit(Resource::Nofile).maximum.is_some();
    assert!(!limited || allow_files(&setup).is_err_and(|why| why.to_string().contains("ulimit -Hn")));
}

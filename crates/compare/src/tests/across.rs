//! One thing measured by several tools.

use super::*;
use crate::tests::{arm, member};
use model::{CpuSet, Seat};

const MIB: u64 = 1 << 20;

fn of(key: &str, value: f64) -> Member {
    member(key, "GB/s", Better::Higher, &[value])
}

/// Ours, by two pinned tasks.
fn ours(op: &str, mib: u64, value: f64) -> Member {
    let key = format!("memory.bandwidth@all+huge-pages?op={op}/bytes={}#bandwidth", mib * MIB);
    let mut member = member(&key, "GB/s", Better::Higher, &around(value));
    let seat =
        Seat { role: "task".into(), host: None, cpus: CpuSet::default(), mem_nodes: CpuSet::default() };
    member.case.placement.seats = vec![seat; 2];
    member
}

fn run(members: Vec<Member>) -> ComparisonSide {
    ComparisonSide { llc_bytes: Some(32 * MIB), ..arm("run", false, members) }
}

fn foreign(members: Vec<Member>) -> ComparisonSide {
    arm("tool", true, members)
}

fn stream(op: &str, elements: u64, threads: u64) -> Member {
    of(&format!("memory.stream@free?op={op}/elements={elements}&threads={threads}#bandwidth"), 31.0)
}

fn likwid(test: &str, mib: u64) -> Member {
    of(&format!("memory.likwid-bench@free?test={test}/bytes={}&threads=2#bandwidth", mib * MIB), 29.0)
}

fn sysbench(rest: &str) -> Member {
    of(&format!("sysbench.memory@free?{rest}&threads=2#bandwidth"), 20.0)
}

/// What is compared, and what is not with the factor.
fn outcome(a: &ComparisonSide, b: &ComparisonSide) -> (Vec<[String; 2]>, Vec<String>) {
    let found = compare(a, b, &Options::default());
    let pairs = found.metrics.iter().map(|one| [one.key_a.clone(), one.key.clone()]).collect();
    (pairs, found.refused.iter().map(|one| format!("{}: {}", one.factor, one.reason)).collect())
}

#[test]
fn ours_stands_beside_each_tool_that_does_the_same() {
    let run = run(vec![
        ours("triad", 1, 200.0),
        ours("triad", 64, 30.0),
        ours("copy", 64, 28.0),
        ours("write", 64, 20.0),
    ]);
    let same = [
        stream("triad", 40_000_000, 2),
        stream("copy", 40_000_000, 2),
        likwid("stream_avx", 512),
        likwid("copy_sse", 512),
        sysbench("operation=write&scope=global/block=536870912"),
        sysbench("operation=write&scope=local/block=268435456"),
    ];
    for theirs in same {
        let key = theirs.key.clone();
        let found = compare(&run, &foreign(vec![theirs]), &Options::default());
        assert_eq!(found.metrics.len(), 1, "{key}: {:?}", found.refused);
        let metric = &found.metrics[0];
        assert!(
            metric.key_a.contains(&format!("bytes={}#", 64 * MIB)),
            "the largest block: {}",
            metric.key_a
        );
        // However far apart, nothing says that a host is better.
        assert_eq!(metric.word, Relation::Unverified, "{key}: {}", metric.words);
        assert!(
            (metric.note.contains("reports") || metric.note.contains("pins"))
                && metric.note.contains("128 MiB at once in A"),
            "{key}: {}",
            metric.note
        );
        assert_eq!(found.alone, [3, 0], "{key}");
        let said = format!("measured in another way: {}", metric.note);
        assert!(found.warnings.contains(&said), "{key}: {:?}", found.warnings);
    }
    // As A, too, and between two tools, where no cache is known.
    let tool = foreign(vec![stream("triad", 40_000_000, 2)]);
    assert_eq!(outcome(&tool, &run).0.len(), 1);
    let other = foreign(vec![likwid("stream", 900)]);
    let found = compare(&tool, &other, &Options::default());
    assert!(found.metrics[0].note.contains("size of the caches unknown"), "{}", found.metrics[0].note);
}

#[test]
fn other_work_other_tasks_and_caches_are_no_counterparts() {
    let run = run(vec![ours("triad", 64, 30.0), ours("copy", 64, 28.0), ours("read", 64, 28.0)]);
    let none = [
        stream("add", 40_000_000, 2),
        stream("triad", 40_000_000, 4),
        of("memory.stream@free?element=4&op=triad/elements=40000000&threads=2#bandwidth", 31.0),
        likwid("triad", 512),
        likwid("clcopy", 512),
        likwid("stream_mem_avx", 512),
        likwid("load_mem", 512),
        sysbench("access=rnd&operation=read&scope=global/block=536870912"),
        of("memory.likwid-bench@free?test=copy/bytes=536870912&threads=2#cycles_per_update", 2.0),
    ];
    for theirs in none {
        let key = theirs.key.clone();
        assert_eq!(outcome(&run, &foreign(vec![theirs])), (Vec::new(), Vec::new()), "{key}");
    }
    let small = [
        stream("triad", 1_000_000, 2),
        likwid("copy_sse", 100),
        sysbench("operation=read&scope=global/block=1024"),
    ];
    for theirs in small {
        let key = theirs.key.clone();
        let (pairs, refused) = outcome(&run, &foreign(vec![theirs]));
        assert!(pairs.is_empty() && refused.len() == 1, "{key}: {refused:?}");
        assert!(refused[0].starts_with("size: B worked on") && refused[0].contains("measured a cache"));
    }
    // A rejected figure is compared with nothing.
    let mut rejected = stream("triad", 40_000_000, 2);
    rejected.verdict = Verdict::new(VerdictKind::Rejected, "known from documentation alone");
    let (pairs, refused) = outcome(&run, &foreign(vec![rejected]));
    assert!(pairs.is_empty() && refused[0].contains("rejected in B"), "{refused:?}");
}

#[test]
fn tcp_of_several_tools_stands_on_one_line_with_what_differs() {
    let tcp = |key: &str| member(key, "Gbit/s", Better::Higher, &[30.0]);
    let ours = |place: &str| {
        let key = format!("network.tcp@{place}?direction=send/bytes=131072&streams=1#bandwidth");
        member(&key, "Gbit/s", Better::Higher, &around(28.0))
    };
    // Ours of small messages is farther from theirs.
    let small = member(
        "network.tcp@other-cpu?direction=send/bytes=4096&streams=1#bandwidth",
        "Gbit/s",
        Better::Higher,
        &around(11.0),
    );
    let run = run(vec![small, ours("other-cpu"), ours("same-cpu")]);
    // iperf3 reports its write size, iperf 2 does not, and its client counts what it sent.
    let iperf3 = [
        tcp("network.tcp@free?direction=send/bytes=131072&streams=1#bandwidth"),
        tcp("network.tcp@free?direction=send/bytes=131072&streams=1#sent"),
    ];
    let iperf2 = [tcp("network.tcp@free?direction=send/streams=1#sent")];
    let note = |found: &Comparison| -> Vec<String> {
        assert!(found.refused.is_empty(), "{:?}", found.refused);
        assert!(found.metrics.iter().all(|one| one.word == Relation::Unverified), "{:?}", words(found));
        found.metrics.iter().map(|one| one.note.clone()).collect()
    };
    let found = compare(&run, &foreign(iperf3.to_vec()), &Options::default());
    assert_eq!(
        note(&found),
        ["other-cpu", "same-cpu"].map(|place| format!("B is Test; {place} in A, free in B"))
    );
    let found = compare(&run, &foreign(iperf2.to_vec()), &Options::default());
    assert_eq!(note(&found).len(), 2, "of the largest messages: {:?}", words(&found));
    let found = compare(&foreign(iperf3.to_vec()), &foreign(iperf2.to_vec()), &Options::default());
    let wanted = "B is Test; sent, not received; B does not report how much it sent at once";
    assert_eq!(note(&found), [wanted]);
    // Other directions, numbers of connections and what else is asked for make other measurements.
    for other in
        ["direction=receive/streams=1", "direction=send/streams=2", "congestion=bbr&direction=send/streams=1"]
    {
        let theirs = foreign(vec![tcp(&format!("network.tcp@free?{other}#bandwidth"))]);
        assert_eq!(outcome(&run, &theirs), (Vec::new(), Vec::new()), "{other}");
    }
    // Two runs of ours are never paired like that.
    let other = ComparisonSide { ..self::run(vec![ours("other-llc")]) };
    let (pairs, refused) = outcome(&run, &other);
    assert!(pairs.is_empty() && refused.iter().all(|one| one.starts_with("placement")), "{refused:?}");
}

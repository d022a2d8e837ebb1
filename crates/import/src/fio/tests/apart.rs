//! What a text distinguishes is never one series: hosts, commands, headings of all kinds, days; and
//! lines that were broken or cut give no other figure.

use super::kinds::{SUMS, announced, keys, result};
use super::told::{RANDOM, all, iops_of, reads, run, told};
use super::{near, note, one, value};
use crate::Imported;
use crate::faults::FAILED_IO;
use crate::fio::tests::{rules, skipped, values};

/// The rates of the reads of each result.
fn rates(found: &[Imported], key: &str) -> Vec<Vec<f64>> {
    found.iter().map(|one| values(one, &format!("{key}iops"))).collect()
}

/// The two runs, each with what stands around it.
fn two(before: [&str; 2], after: [&str; 2]) -> String {
    let [a, b] = [run("3.33", "a", 1, 10_000), run("3.33", "a", 2, 20_000)];
    format!("{}{a}{}{}{b}{}", before[0], after[0], before[1], after[1])
}

#[test]
fn a_result_without_its_announcement_is_of_the_run_it_stands_in() {
    let key = "fio.job@one-cpu?cache=untold&engine=untold&job=a&op=read&rw=untold/block=untold&depth=untold#";
    let of = |pid: u32, ios: u32| reads("a", pid, ios);
    // Sums, a heading or a command stand between.
    for (one, between) in
        [(SUMS, "After:\n"), ("", "After:\n"), ("", "\n## with the patch\n\n"), ("", "$ fio a.fio\n")]
    {
        let found = all(&format!("Before:\n{}{one}{between}{}{one}", of(1, 10_000), of(2, 20_000)));
        let expected: &[&[f64]] =
            if between.starts_with('$') { &[&[10_000.0, 20_000.0]] } else { &[&[10_000.0], &[20_000.0]] };
        assert_eq!(rates(&found, key), expected, "{between}");
    }
    // Nothing but sums: the run again.
    let again = of(1, 10_000) + SUMS + &of(2, 20_000) + SUMS;
    assert_eq!(rates(&all(&again), key), [[10_000.0, 20_000.0]]);
    // Jobs of one run ran at once; later reports of it are it.
    let jobs = key.replace("one-cpu", "free").replace("&op", "&jobs=2&op");
    let at_once = of(1, 10_000) + "\n" + &of(2, 20_000) + SUMS;
    assert_eq!(rates(&all(&at_once), &jobs), [[30_000.0]]);
    let before_after = format!("Before:\n{at_once}After:\n{}", at_once.replace("pid=", "pid=9"));
    assert_eq!(rates(&all(&before_after), &jobs), [[30_000.0], [30_000.0]]);
    assert_eq!(rates(&all(&(of(1, 9000) + SUMS + &of(1, 10_000) + SUMS)), key), [[10_000.0]]);
    // Comments between the jobs of an announced run part nothing.
    let both =
        announced("a", 0, "randread", "4096B") + &announced("b", 0, "randread", "4096B") + "fio-3.33\n";
    let found =
        all(&(both + "the first:\n" + &of(1, 10_000) + "the second:\n" + &reads("b", 2, 20_000) + SUMS));
    assert_eq!(iops_of(&found).len(), 2, "{:?}", found.iter().map(keys).collect::<Vec<_>>());
    assert_eq!(found.len(), 1);
}

#[test]
fn runs_whose_announcements_are_gone_are_no_jobs_that_ran_at_once() {
    let head = announced("a", 0, "randread", "4096B");
    let of = |pid: u32, ios: u32| reads("a", pid, ios);
    let untold =
        "fio.job@one-cpu?cache=untold&engine=untold&job=a&op=read&rw=untold/block=untold&depth=untold#";
    const STARTS: &str = "Starting 1 process\n";
    // Only a part of what stands between two runs is left.
    for (above, between) in [
        (STARTS, STARTS),
        (STARTS, "\n"),
        ("", "\n"),
        ("fio-3.33\nStarting 1 thread\n", "Starting 1 thread\n"),
    ] {
        let text = head.clone() + above + &of(1, 10_000) + between + &of(2, 20_000) + SUMS;
        let found = all(&text);
        let rates = [rates(&found, RANDOM), rates(&found, untold)].concat().concat();
        assert_eq!(rates, [10_000.0, 20_000.0], "{above}{between}: {:?}", iops_of(&found));
    }
    // Nor is one without any announcement.
    let found = all(&(of(1, 10_000) + STARTS + &of(2, 20_000) + SUMS));
    assert_eq!(rates(&found, untold).concat(), [10_000.0, 20_000.0]);
    // Jobs that are announced as several ran at once, and so did those of two announcements.
    let jobs = RANDOM.replace("one-cpu", "free").replace("&op", "&jobs=2&op");
    for heads in [head.clone() + "...\n", head.clone() + &head] {
        let text = heads + "fio-3.33\nStarting 2 processes\n\n" + &of(1, 10_000) + &of(2, 20_000) + SUMS;
        assert_eq!(rates(&all(&text), &jobs), [[30_000.0]]);
    }
}

#[test]
fn hosts_commands_and_headings_of_all_kinds_part_runs() {
    const COMMAND: &str = "fio --name=a --rw=randread";
    let called = |before: &str| format!("{before}{COMMAND}\n");
    for (before, after, label, words) in [
        ("root@a:~# ", "root@b:~# ", "", ""),
        ("[me@a ~]$ ", "[me@b ~]$ ", "", ""),
        ("me@a ~ % sudo ", "me@b ~ % sudo ", "", ""),
        ("root@a:/mnt/ssd# ", "root@a:/mnt/hdd# ", "started in", "/mnt/hdd"),
        ("# taskset -c 0 ", "# taskset -c 8 ", "started by", "taskset -c 8"),
        ("$ sudo numactl -N 0 ", "$ sudo numactl -N 1 ", "started by", "sudo numactl -N 1"),
        ("# ", "# nice -n 19 ", "started by", "nice -n 19"),
        ("# echo none > /x; ", "# echo bfq > /x; ", "started by", "echo bfq > /x;"),
        (
            "# cpupower frequency-set -g powersave && ",
            "# cpupower frequency-set -g performance && ",
            "started by",
            "cpupower frequency-set -g performance &&",
        ),
    ] {
        let found = all(&two([&called(before), &called(after)], ["", ""]));
        assert_eq!(rates(&found, RANDOM), [[10_000.0], [20_000.0]], "{after}");
        assert_eq!(told(&found[1], label), words, "{:?}", found[1].make_up);
        let hosts = [found[0].host.as_str(), found[1].host.as_str()];
        assert_eq!(hosts == ["a", "b"], label.is_empty(), "{hosts:?}");
    }
    for ([before, after], heading) in [
        (
            [
                "### Before\n\n<details>\n<summary>fio</summary>\n\n```\n",
                "```\n</details>\n\n### After\n<details>\n<summary>fio</summary>\n```\n",
            ],
            "After",
        ),
        (
            ["<details><summary>Before</summary>\n", "</details>\n<details><summary>After</summary>\n"],
            "After",
        ),
        (["Kernel 5.4:\n\nResult:\n", "\nKernel 5.10:\n\nResult:\n"], "Kernel 5.10"),
        (["h2. Before\n{noformat}\n", "{noformat}\nh2. After\n{noformat}\n"], "After"),
        (["[b]Before[/b]\n[code]\n", "[/code]\n[b]After[/b]\n[code]\n"], "After"),
        (
            ["Before\n======\n\n.. code-block:: none\n\n", "\nAfter\n=====\n\n.. code-block:: none\n\n"],
            "After",
        ),
        (["  Before\n", "\n  After patch\n"], "After patch"),
        (["{code:title=Before|x=y}\n", "{code}\n{code:title=After|x=y}\n"], "After"),
        (["note: before\n", "note: after\n"], "note: after"),
        (
            ["root@a:~# echo none > /x\nroot@a:~# sync\n", "root@a:~# echo bfq > /x\nroot@a:~# sync\n"],
            "root@a:~# echo bfq > /x",
        ),
    ] {
        let found = all(&two([before, after], ["", ""]));
        assert_eq!(rates(&found, RANDOM), [[10_000.0], [20_000.0]], "{after}");
        assert_eq!(told(&found[1], "heading"), heading);
    }
    // A sentence that is too long for a heading.
    let [before, after] = ["first", "then"].map(|word| format!("{word} {}\n", "and so on ".repeat(15)));
    assert_eq!(all(&two([&before, &after], ["", ""])).len(), 2);
    // Levels: what stands below another heading is another one's.
    let write = |pid: u32| run("3.33", "a", pid, 500).replace("rw=randread", "rw=read");
    let nested = format!(
        "## sda\n### random\n{}### sequential\n{}## sdb\n### random\n{}### sequential\n{}",
        run("3.33", "a", 1, 10_000),
        write(2),
        run("3.33", "a", 3, 20_000),
        write(4)
    );
    let found = all(&nested);
    assert_eq!(rates(&found, RANDOM), [[10_000.0], [20_000.0]]);
    assert_eq!(found.iter().map(|one| told(one, "heading")).collect::<Vec<_>>(), ["sda", "sdb"]);
}

#[test]
fn days_and_servers_part_runs_and_repetitions_do_not() {
    let text = two(["", ""], ["", ""]);
    let at = text.rfind("Tue Nov 24").expect("its day");
    for day in ["Wed Nov 25", "Tue Dec 24", "Mon Nov  2"] {
        let other = format!("{}{day}{}", &text[..at], &text[at + day.len()..]);
        assert_eq!(rates(&all(&other), RANDOM), [[10_000.0], [20_000.0]], "{day}");
    }
    // Other work under the heading of another host; under one of its own.
    let works = |headings: [&str; 2]| {
        let other = run("3.33", "a", 2, 500).replace("rw=randread", "rw=read");
        all(&format!("{}\n{}{}\n{other}", headings[0], run("3.33", "a", 1, 10_000), headings[1])).len()
    };
    for headings in [
        ["### server A (NVMe)", "### server B (HDD)"],
        ["node1:", "node2:"],
        ["Kernel 5.4:", "Kernel 5.10:"],
        ["root@a:~# fio a.fio", "root@b:~# fio b.fio"],
    ] {
        assert_eq!(works(headings), 2, "{headings:?}");
    }
    for headings in [
        ["### Random reads, 4k, QD32", "### Sequential reads, 1M"],
        ["Disk random read:", "Disk sequential read:"],
        ["## 1. randread", "## 2. read"],
        ["root@a:~# fio a.fio", "root@a:~# fio b.fio"],
        ["", ""],
    ] {
        assert_eq!(works(headings), 1, "{headings:?}");
    }
    // The same again, with nothing new between.
    for (before, between) in [
        ("", ""),
        ("# fio a.fio\n", "# fio a.fio\n"),
        ("root@a:~# fio a.fio\n", "root@a:~# \nroot@a:~# sudo fio a.fio\n"),
        ("hello\n# sync\n# fio a.fio\n", "# sync\n# fio a.fio\n"),
        ("### Before\n```\n", "```\n```\n"),
    ] {
        let found = all(&two([before, between], ["", ""]));
        assert_eq!(rates(&found, RANDOM), [[10_000.0, 20_000.0]], "{between}");
    }
}

#[test]
fn lines_that_were_broken_are_whole() {
    let head = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32\n";
    let latencies = "    clat percentiles (usec):\n     | 50.00th=[  300], 99.00th=[  734], 99.50th=[  800], 99.90th=[  900]\n";
    let line = format!("  read: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(391MiB/10000msec)\n{latencies}");
    let text =
        format!("{head}fio-3.33\nStarting 1 process\n{}{SUMS}", result("a", 1, 7, &line, "100000,0,0,0"));
    let whole = one(&text);
    let key = "disk.random@one-cpu?cache=untold&op=read/block=4096&depth=32#";
    assert_eq!(
        (value(&whole, &format!("{key}iops")), value(&whole, &format!("{key}latency_p99"))),
        (10_000.0, 734.0)
    );
    for width in [60, 66, 72, 76, 78] {
        let mut broken = String::new();
        for mut line in text.lines() {
            while line.len() > width {
                let from = line.len() - line.trim_start().len() + 1;
                let Some(at) = line[..=width].rfind(' ').filter(|at| *at > from) else { break };
                broken += &format!("{}\n", &line[..at]);
                line = line[at..].trim_start();
            }
            broken += &format!("{line}\n");
        }
        assert_ne!(broken, text);
        assert_eq!(keys(&one(&broken)), keys(&whole), "{broken}");
        let found = [&whole, &one(&broken)]
            .map(|one| keys(one).iter().map(|key| values(one, key)).collect::<Vec<_>>());
        assert_eq!(found[0], found[1], "{broken}");
    }
    // A command that goes on, in which the two differ.
    let called = |disk: &str| format!("# fio --name=a \\\n      --filename={disk}\n");
    let found = all(&two([&called("/dev/sda"), &called("/dev/sdb")], ["", ""]));
    assert_eq!(rates(&found, RANDOM), [[10_000.0], [20_000.0]]);
    assert_eq!(told(&found[1], "command"), "fio --name=a --filename=/dev/sdb");
}

#[test]
fn of_a_line_that_was_cut_only_what_is_whole_is_read() {
    let depths = "  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%\n";
    let text = |announced: &str| {
        let line = format!("  read: IOPS=10.0k, BW=39.1MiB/s (41.0MB/s)(391MiB/10000msec)\n{depths}");
        format!("{announced}\nfio-3.33\n{}{SUMS}", result("a", 1, 7, &line, "100000,0,0,0"))
    };
    let head = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32";
    for (cut, engine, depth) in [
        (0, "", "32"),
        (1, "", "untold"),
        ("iodepth=32".len(), "", "untold"),
        ("aio, iodepth=32".len(), "engine=untold&", "untold"),
        (" (T) 4096B-4096B, ioengine=libaio, iodepth=32".len(), "engine=untold&", "untold"),
    ] {
        let found = one(&text(&head[..head.len() - cut]));
        let key = format!("disk.random@one-cpu?cache=untold&{engine}op=read/block=4096&depth={depth}#iops");
        assert_eq!(value(&found, &key), 10_000.0, "{:?}", keys(&found));
    }
    // Figures, too.
    let cut = "  read: IOPS=10.0\n    clat (usec): min=10, max=9000, avg=32\n    clat percentiles (usec):\n     | 50.00th=[  300], 99.00th=[  73\n";
    let found = one(&format!("{head}\nfio-3.33\n{}", result("a", 1, 7, cut, "1000"))
        .replace(" short=0,0,0,0 dropped=0,0,0,0", ""));
    let key = "disk.random@one-cpu?cache=untold&op=read/block=4096&depth=32#";
    let of = |metric: &str| keys(&found).contains(&format!("{key}{metric}").as_str());
    assert!(!of("latency_mean") && !of("latency_p99"), "{:?}", keys(&found));
    skipped(&found, &format!("{key}iops"));
}

#[test]
fn rates_below_a_hundred_keep_what_their_counts_tell() {
    for (ios, printed) in [(19, "1"), (9, "0"), (79, "7"), (199, "19"), (999, "99"), (995, "100")] {
        let line =
            format!("  read: IOPS={printed}, BW={}B/s ({0}B/s)({}KiB/10000msec)\n", ios * 4096 / 10, ios * 4);
        let found = one(&(announced("a", 0, "randread", "4096B")
            + "fio-3.33\n"
            + &result("a", 1, 7, &line, &format!("{ios},0,0,0"))));
        assert!(near(value(&found, &format!("{RANDOM}iops")), f64::from(ios) / 10.0), "{ios}");
        assert!(rules(&found).is_empty(), "{:?}", found.findings);
    }
}

#[test]
fn both_directions_as_one_are_called_neither() {
    let head = announced("a", 0, "randrw", "4096B") + "fio-3.33\n";
    let line = "  mixed: IOPS=1000, BW=4000KiB/s (4096kB/s)(4000KiB/1000msec)\n";
    for (totals, share) in [("750,250,0,0", "75"), ("900,100,0,0", "90"), ("1000,0,0,0", "untold")] {
        let found = one(&(head.clone() + &result("a", 1, 1, line, totals)));
        let key = format!(
            "disk.random@one-cpu?cache=untold&engine=psync&op=mixed&read_share={share}/block=4096&depth=1#iops"
        );
        assert_eq!(value(&found, &key), 1000.0, "{:?}", keys(&found));
        assert!(found.figures.iter().all(|figure| !figure.wording.contains("read")), "{totals}");
        assert!(found.figures.iter().any(|figure| figure.wording == "a iops"));
    }
    let found = one(&(head + &result("a", 1, 1, &line.replace("mixed", "read"), "1000,0,0,0")));
    assert!(found.figures.iter().any(|figure| figure.wording == "a read iops"));
}

#[test]
fn a_server_that_is_gone_is_no_faulty_device() {
    for (error, words, cause) in [
        (116, "Stale file handle", "server"),
        (111, "Connection refused", "server"),
        (110, "Connection timed out", "server"),
        (107, "Transport endpoint is not connected", "server"),
        (5, "Input/output error", "cable"),
        (61, "No data available", "cable"),
    ] {
        let head = announced("a", 0, "write", "4096B");
        let said = format!("fio: pid=3, err={error}/file:io_u.c:1876, func=io_u error, error={words}\n");
        let failed = format!(
            "a: (groupid=0, jobs=1): err={error} (file:io_u.c:1876, func=io_u error, error={words}): pid=3: Wed Nov 25 01:31:31 2026\n"
        );
        let found = one(&format!("{head}fio-3.33\n{said}\n{failed}"));
        assert_eq!(rules(&found), [FAILED_IO]);
        assert!(found.findings[0].cause.contains(cause), "{words}: {}", found.findings[0].cause);
    }
}

#[test]
fn documents_of_a_list_in_one_line_are_read() {
    use super::kinds::{document, job, none, side};
    let of = |at: u64, ios: u64| {
        document(
            at,
            job(serde_json::json!({"rw": "randread", "bs": "4k"}), 1000, side(ios, ios * 4096, 1000), none()),
        )
    };
    let (a, b) = (of(0, 1000), of(90_000, 2000));
    let (a, b) = (a.trim(), b.trim());
    let key = RANDOM.replace("untold", "buffered");
    for text in [
        format!("[{a}, {b}]\n"),
        format!("[{a},{b}]"),
        format!("[\n{a},\n{b}\n]\n"),
        format!(" [ {a} , {b} ]\nbye\n"),
    ] {
        assert_eq!(rates(&all(&text), &key), [[1000.0], [2000.0]], "{text}");
    }
    assert!(crate::is_json(b"[\n{\n\"fio version\" : \"fio-3.33\""));
    // Each has its heading.
    for (before, between, label, words) in [
        (
            "<details>\n<summary>none</summary>\n\n",
            "</details>\n<details>\n<summary>mq-deadline</summary>\n\n",
            "heading",
            ["none", "mq-deadline"],
        ),
        (
            "### Before\n<details>\n<summary>fio</summary>\n\n",
            "</details>\n### After\n<details>\n<summary>fio</summary>\n",
            "heading",
            ["Before", "After"],
        ),
        ("Kernel 5.4:\nOutput:\n", "\nKernel 5.10:\nOutput:\n", "heading", ["Kernel 5.4", "Kernel 5.10"]),
        (
            "# taskset -c 0 fio a.fio\n",
            "# taskset -c 8 fio a.fio\n",
            "started by",
            ["taskset -c 0", "taskset -c 8"],
        ),
        ("fio a.fio\n", "fio b.fio\n", "command", ["fio a.fio", "fio b.fio"]),
    ] {
        let found = all(&format!("{before}{a}\n{between}{b}\n"));
        assert_eq!(rates(&found, &key), [[1000.0], [2000.0]], "{between}");
        assert_eq!([told(&found[0], label), told(&found[1], label)], words, "{between}");
    }
    let found = all(&format!("root@a:~# fio a.fio\n{a}\nroot@b:~# fio a.fio\n{b}\n"));
    assert_eq!([found[0].host.as_str(), found[1].host.as_str()], ["a", "b"]);
    assert!(note(&all(&format!("[{a}]"))[0], &format!("{key}iops")).contains("page cache"));
}

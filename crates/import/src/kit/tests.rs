//! The kit, with a format of its own.

use super::commands::{ShellLine, command, place};
use super::context::{ContextTracker, RunContext, says};
use super::lines::{adds, ahead, begins, ends, ignored, once, within};
use super::*;
use crate::Format;
use crate::above::{folder, prompt};

const LINES: &[Pattern] = &[
    begins("head", r"tool (?<value>\d+)"),
    ahead("before", r"on (?<value>\S+)"),
    once("speed", r"speed: (?<value>[\d.]+) (?<value_unit>[KM]?)B"),
    adds("part", r"part (?<value>\d+)"),
    ends("end", r"bye"),
    ignored(r"hello .*"),
];

/// The results of a text: each one's heading, what started it, and its values.
fn results(text: &str) -> Vec<(String, String, Vec<f64>)> {
    let log = log(text, "tool", &Table::new(LINES), |_, _, _| None);
    let mut results = Results::new(Format("tool result"), "a remark");
    for run in &log.runs {
        let facts = vec![("kernel", run.text("before").unwrap_or_default().to_string())];
        let (builder, _) = results.of(run, facts, false).expect("few results");
        let meaning = crate::builder::Meaning {
            keyed: crate::keyed("tool.speed@free#speed").expect("a key"),
            wording: "speed".into(),
            unit: "B".into(),
            better: model::Better::Higher,
            note: String::new(),
        };
        match run.hit("speed").and_then(|hit| hit.scaled("value", 1024.0)) {
            Some(speed) => builder.value(meaning, speed.value),
            None => builder.missing(meaning, "none".into()),
        }
    }
    let told = |one: &crate::Imported, name: &str| {
        let found = one.make_up.iter().find(|(label, _)| label == name);
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    let values = |one: &crate::Imported| {
        let processes = one.figures[0].judged.series.processes.iter();
        processes.flat_map(|process| process.values.clone()).collect()
    };
    let all = results.finish(&log);
    all.iter().map(|one| (told(one, "heading"), told(one, "started by"), values(one))).collect()
}

fn headed(text: &str) -> Vec<(String, Vec<f64>)> {
    results(text).into_iter().map(|(heading, _, values)| (heading, values)).collect()
}

#[test]
fn numbers_keep_their_digits() {
    let number = Number::read("12.50").expect("a number");
    assert_eq!((number.value, number.rounding), (12.5, 0.005));
    assert_eq!(Number::read("-3").map(|number| (number.value, number.rounding)), Some((-3.0, 0.5)));
    let number = Number::read("2.50e+01").expect("a number");
    assert_eq!((number.value, number.rounding), (25.0, 0.05));
    for wrong in
        ["", "-", "1.", ".5", "1e5", "1.5e", "1.5e+1", "1.e+01", "1.5e+0x", "nan", "1,5", "1.2.3", "0x1"]
    {
        assert_eq!(Number::read(wrong), None, "{wrong}");
    }
    let of = |text: &str| Number::read(text).expect("a number");
    assert!(is_rate(of("27.5"), of("3.2"), of("0.12")), "as far as the digits go");
    assert!(is_rate(of("1000.00"), of("10012"), of("10.0005")));
    assert!(!is_rate(of("1100.00"), of("10012"), of("10.0005")));
    assert!(is_rate(of("300.0"), of("1"), of("0.00")), "a time of 0 is none that can be divided by");
    assert_eq!(
        [scale("KBytes", 1024.0), scale("Mbits", 1e3), scale("GiB", 1024.0)],
        [1024.0, 1e6, 1073741824.0]
    );
    assert_eq!([scale("bits", 1e3), scale("Bytes", 1024.0), scale("", 1024.0)], [1.0; 3]);
}

#[test]
fn runs_are_told_apart_by_their_heads_and_by_what_is_said_again() {
    let of = |text: &str| headed(text).into_iter().flat_map(|(_, values)| values).collect::<Vec<_>>();
    assert_eq!(of("tool 1\nspeed: 5 B\ntool 1\nspeed: 6 KB\n"), [5.0, 6144.0]);
    assert_eq!(of("speed: 5 B\npart 1\npart 2\nspeed: 6 B\n"), [5.0, 6.0]);
    assert_eq!(of("tool 1\nbye\nspeed: 6 B\nbye\n"), [6.0], "what stands behind an end is another run's");
    assert_eq!(of("bye\nhello you\n"), [0.0; 0]);
}

#[test]
fn only_runs_of_which_all_is_told_alike_are_repetitions() {
    let pooled = |values: &[f64]| vec![(String::new(), values.to_vec())];
    let run = |speed: u32| format!("tool 1\nspeed: {speed} B\nbye\n");
    let (one, two) = (run(1), run(2));
    assert_eq!(headed(&format!("{one}{two}")), pooled(&[1.0, 2.0]));
    // Counting, times of one day, prompts and lines without a word say nothing of a run.
    for between in
        ["run 2", "=== Iteration 2 of 5 ===", "2", "12:30:01", "------", "$ sleep 5", "me@box:~$ date", "#2"]
    {
        assert_eq!(headed(&format!("{one}{between}\n{two}")), pooled(&[1.0, 2.0]), "{between}");
    }
    let apart = |between: &str| headed(&format!("{one}{between}\n{two}"));
    for between in
        ["with the patch", "After:", "$ sysctl -w vm.swappiness=1", "Mon Nov  2 2026", "kernel 6.1"]
    {
        assert_eq!(apart(between).len(), 2, "{between}");
    }
    assert_eq!(apart("After:")[1], ("After".to_string(), vec![2.0]));
    // A heading holds for the runs below it, up to the next.
    let text = format!("Before:\n{one}{two}After:\n{}{}", run(3), run(4));
    assert_eq!(headed(&text), [("Before".into(), vec![1.0, 2.0]), ("After".into(), vec![3.0, 4.0])]);
    // A command ends no heading, and may be one.
    let under =
        |heading: &str, speed: u32| format!("{heading}\n{}$ sysctl x=1\n{}", run(speed), run(speed + 1));
    for headings in [["## Before", "## After"], ["Before:", "After:"], ["# Before", "# After"]] {
        for command in ["$ sysctl x=1", "# sync", "# swapoff b", "# echo 1 > /x", "me@box:~$ sysctl x=1"] {
            let text = headings.map(|heading| under(heading, 1)).concat().replace("$ sysctl x=1", command);
            assert!(headed(&text).len() >= 4, "{headings:?}, {command}: {:?}", headed(&text));
        }
    }
    let disks =
        ["# sda", "# sdb"].map(|disk| format!("{disk}\n## random\n{one}## sequential\n{one}")).concat();
    assert_eq!(headed(&disks).len(), 4);
    assert_eq!(headed(&format!("# one\n{one}# two\n{two}"))[1].0, "two");
    // What a program prints in its run is no command, whatever it looks like.
    let within = |line: &str| format!("tool 1\n{line}\nspeed: 1 B\nbye\n");
    assert_eq!(headed(&(one.clone() + &within("# made 5 files") + &two)), pooled(&[1.0, 1.0, 2.0]));
    // What `time` prints.
    assert_eq!(headed(&format!("{one}real    0m1.1s\nuser 0m0.9s\n{two}real 0m1.2s\n")), pooled(&[1.0, 2.0]));
    assert_eq!(headed(&format!("on 6.1\n{one}on 6.2\n{two}")).len(), 2, "facts of another system");
    assert_eq!(headed(&format!("on 6.1\n{one}on 6.1\n{two}")), pooled(&[1.0, 2.0]));
    assert_eq!(headed(&format!("a@one:~$ tool x\n{one}a@two:~$ tool x\n{two}")).len(), 2, "another host");
}

#[test]
fn all_that_stands_above_tells_runs_apart() {
    let run = |speed: u32| format!("tool 1\nspeed: {speed} B\nbye\n");
    let both = |before: &str, after: &str| headed(&format!("{before}\n{}{after}\n{}", run(1), run(2)));
    // However far up, however short, and whatever a clock or a counter looks like.
    for (before, after) in [
        ("kernel 6.1\na: b\nc: d\ne: f", "kernel 6.6\na: b\nc: d\ne: f"),
        ("### 1500", "### 9000"),
        ("4", "8"),
        ("NIC 82:00.0", "NIC 82:00.1"),
        ("0000:02:00.0", "0000:02:00.1"),
        ("52:54:00:12:34:56", "52:54:00:12:34:57"),
        ("<details><summary>old</summary>", "<details><summary>new</summary>"),
        ("# cpupower set a && tool -x", "# cpupower set b && tool -x"),
        ("# echo on > smt; tool -x", "# echo off > smt; tool -x"),
        ("$ ./gcc/tool -x", "$ ./clang/tool -x"),
        ("me@box:~/old$ ./tool -x", "me@box:~/new$ ./tool -x"),
        ("$ cd old\n$ ./tool -x", "$ cd ../new\n$ ./tool -x"),
        ("$ cd old; ./tool -x", "$ cd new; ./tool -x"),
        ("$ tool -x", "$ LD_PRELOAD=a.so tool -x"),
        ("$ tool -x", "$ sudo env GOMAXPROCS=2 tool -x"),
    ] {
        let found = both(before, after);
        assert_eq!(found.len(), 2, "{before}, {after}: {found:?}");
    }
    // The line that differs is shown, and those right above as ever.
    let found = both("kernel 6.1\na: b\nc: d\ne: f", "kernel 6.6\na: b\nc: d\ne: f");
    assert_eq!(found[1].0, "kernel 6.6 / a: b / c: d / e: f");
    for (before, after) in [
        ("1", "2"),
        ("at 12:30:01.5", "at 23:59:00.7"),
        ("12:30: it runs", "12:31: it runs"),
        ("sample 1500", "sample 1501"),
        ("$ tool -x", "$ sudo LC_ALL=C /usr/bin/tool -x"),
        ("$ cd /tmp; tool -x", "$ sleep 5; tool -x"),
        ("$ for i in 1 2; do tool -x; done", "$ while true; do tool -x; done"),
        ("$ tool -x 2>&1 | tee a", "$ tool -x 2>&1 | tee b"),
    ] {
        let found = both(before, after);
        assert_eq!(found.len(), 1, "{before}, {after}: {found:?}");
    }
}

#[test]
fn what_may_stand_in_a_run_or_before_it_begins_none() {
    let lines = [LINES, &[within("warning", r"careful: (?<value>.*)")]].concat();
    let table = Table::new(lines.leak());
    let warned = |text: &str| {
        let log = log(text, "tool", &table, |_, _, _| None);
        log.runs.iter().map(|run| run.all("warning").count()).collect::<Vec<_>>()
    };
    assert_eq!(warned("careful: a\ntool 1\nspeed: 1 B\n"), [1]);
    assert_eq!(warned("tool 1\ncareful: a\nspeed: 1 B\ncareful: b\n"), [2]);
    assert_eq!(warned("tool 1\nspeed: 1 B\nbye\ncareful: a\ntool 1\nspeed: 2 B\n"), [0, 1]);
    assert_eq!(warned("tool 1\nspeed: 1 B\nAfter:\ncareful: a\ncareful: b\ntool 1\nspeed: 2 B\n"), [0, 2]);
    assert_eq!(warned("careful: a\n"), [0; 0]);
}

#[test]
fn what_starts_a_run_is_part_of_what_it_is() {
    let run = "tool 1\nspeed: 1 B\n";
    let text =
        format!("$ tool -a\n{run}$ sudo taskset -c 0 ./tool -a | tee x\n{run}# time tool -a > log\n{run}");
    let found = results(&text);
    let under: Vec<&str> = found.iter().map(|(_, under, _)| under.as_str()).collect();
    assert_eq!(under, ["", "taskset -c 0"]);
    assert_eq!(found[0].2, [1.0, 1.0]);
    let table = Table::new(LINES);
    let text = format!("[root@box ~]# tool --size=4K -n 5 -k7 \"--x\"\n{run}");
    let log = log(&text, "tool", &table, |_, _, _| None);
    let command = log.runs[0].command.as_ref().expect("a command");
    assert_eq!(log.runs[0].host, "box");
    assert_eq!(
        [&["--size"], &["-n"], &["-k"], &["-q"]].map(|names| command.value(names)),
        [Some("4K"), Some("5"), Some("7"), None]
    );
    assert!(command.has(&["--x"]) && !command.has(&["-x"]));
}

#[test]
fn a_run_below_a_heading_or_a_prompt_of_its_own_has_no_command_of_another() {
    let table = Table::new(LINES);
    let run = "tool 1\nspeed: 1 B\nbye\n";
    let options = |between: &str| -> Vec<Option<Vec<String>>> {
        let text = format!("$ tool -n 5\n{run}{between}{run}");
        let log = log(&text, "tool", &table, |_, _, _| None);
        log.runs.iter().map(|run| run.command.as_ref().map(|command| command.words.clone())).collect()
    };
    let words = |words: &[&str]| Some(words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
    for between in ["", "---\n", "run 2\n", "12:30:01\n", "on 6.1\n", "real 0m1.1s\n"] {
        assert_eq!(options(between), [words(&["-n", "5"]), words(&["-n", "5"])], "{between:?}");
    }
    for between in
        ["After:\n", "## 9000\n", "$ \n", "me@box:~$ date\n", "$ sysctl x=1\n", "of another host\n"]
    {
        assert_eq!(options(between), [words(&["-n", "5"]), None], "{between:?}");
    }
    for between in ["After:\n$ tool -n 7\n", "$ tool -n 7\nAfter:\n", "$ date\n$ tool -n 7 > log\n"] {
        assert_eq!(options(between), [words(&["-n", "5"]), words(&["-n", "7"])], "{between:?}");
    }
    // What a run prints in its midst is no prompt, and a loop goes on behind what it prints.
    let within = format!("$ tool -n 5\ntool 1\n# made 5 files\nspeed: 1 B\nbye\n{run}");
    let both = log(&within, "tool", &table, |_, _, _| None);
    assert!(both.runs.iter().all(|run| run.command.is_some()), "{both:?}");
    let turns = format!("$ for k in 1 2; do echo of $k; tool -n $k; done\nof 1\n{run}of 2\n{run}");
    let both = log(&turns, "tool", &table, |_, _, _| None);
    let counts = both.runs.iter().map(|run| run.command.as_ref().and_then(|command| command.value(&["-n"])));
    assert_eq!(counts.collect::<Vec<_>>(), [Some("1"), Some("2")]);
}

#[test]
fn what_is_not_read_is_said() {
    let log = log("tool 1\nwho knows\nand this\nspeed: 1 B\n", "tool", &Table::new(LINES), |_, _, _| None);
    let mut results = Results::new(Format("tool result"), "a remark");
    let meaning = crate::builder::Meaning {
        keyed: crate::keyed("tool.speed@free#speed").expect("a key"),
        wording: "speed".into(),
        unit: "B".into(),
        better: model::Better::Higher,
        note: String::new(),
    };
    results.of(&log.runs[0], Vec::new(), false).expect("a result").0.value(meaning, 1.0);
    let remarks = results.finish(&log).remove(0).remarks;
    assert!(
        remarks.iter().any(|one| one.contains("2 of its lines") && one.contains("who knows")),
        "{remarks:?}"
    );
}

/// Cut anywhere, a text never has a value that the whole does not have.
#[test]
fn what_is_cut_has_no_other_values() {
    let values = |text: &str| -> Vec<f64> {
        let all = crate::read(text.as_bytes()).unwrap_or_default();
        let series = all.iter().flat_map(|one| &one.figures).map(|figure| &figure.judged.series);
        series.flat_map(|series| &series.processes).flat_map(|process| process.values.clone()).collect()
    };
    for name in
        ["sysbench.txt", "sysbench-old.txt", "iperf3-client.txt", "iperf3-server.txt", "iperf3-verbose.txt"]
    {
        let whole = crate::tests::recorded(name);
        let known = values(&whole);
        for end in (0..whole.len()).step_by(499) {
            for value in values(&whole[..end]) {
                // A percentile of a histogram stands in where that which is printed was cut off.
                let bucket = whole.contains(&format!("{:.3} |", value / 1e3));
                assert!(known.contains(&value) || bucket, "{name}, cut after {end} bytes: {value}");
            }
        }
    }
}

#[test]
fn commands_are_told_from_sentences() {
    for line in [
        "fio --name=a",
        "# fio --name=a",
        "root@box:~# fio --name=a",
        "$ sudo /usr/bin/fio --name=a",
        "+ fio --name=a",
        "[root@box ~]# time fio --name=a",
        "# echo 1 > /x; fio a.fio",
    ] {
        let found = command(line, "fio").expect(line);
        assert!(found.ends_with("fio --name=a") || found == "fio a.fio", "{line}: {found}");
    }
    for line in [
        "fio results",
        "# fio",
        "# fio results - after",
        "fio 3.33 on sda",
        "## fio before",
        "With fio 3.1",
        "we ran fio --name=a",
        "fio-3.33",
        "",
    ] {
        assert_eq!(command(line, "fio"), None, "{line}");
    }
}

#[test]
fn a_call_has_all_that_stands_before_the_program() {
    for (line, host, folder, before) in [
        ("root@a:~# fio --name=a", Some("a"), "~", ""),
        ("root@b:/mnt/hdd# sudo fio --name=a", Some("b"), "/mnt/hdd", ""),
        ("[root@n srv]# taskset -c 0 fio --name=a", Some("n"), "srv", "taskset -c 0"),
        ("# echo none > /sys/x; fio --name=a", None, "", "echo none > /sys/x;"),
        ("fio --name=a", None, "", ""),
    ] {
        let typed = ShellLine::of(line, "fio").expect(line);
        assert_eq!((typed.host.as_deref(), typed.folder.as_str()), (host, folder), "{line}");
        let command = typed.runs().next().expect(line);
        assert_eq!((command.before.as_str(), command.line.as_str()), (before, "fio --name=a"), "{line}");
    }
    let under =
        |line: &str| ShellLine::of(line, "x").and_then(|typed| Some(typed.runs().next()?.under.clone()));
    for (line, expected) in [
        ("sudo -E LC_ALL=C /usr/bin/time -p x -a", ""),
        ("timeout 10 x -a", "timeout 10"),
        ("sudo env A=1 numactl -N 0 x -a", "A=1 numactl -N 0"),
        ("ssh box x -a", "ssh box"),
    ] {
        assert_eq!(under(line).as_deref(), Some(expected), "{line}");
    }
}

/// The contexts of the runs in a shell's lines; line `x` starts as many as `runs` says.
fn told(lines: &[&str], runs: usize) -> Vec<RunContext> {
    let mut tracker = ContextTracker::default();
    let mut all = Vec::new();
    for line in lines {
        let (host, text) = prompt(line).unwrap_or((None, line));
        tracker.typed(ShellLine::new(host, folder(line), text, &|words| place(words, "x")), *line);
        let is_run = line.contains('x');
        all.extend((0..runs).filter(|_| is_run).map(|_| tracker.begin()));
    }
    all
}

#[test]
fn runs_of_which_the_same_is_told() {
    for same in [
        ["x -g 1", "x -g 1"],
        ["sudo x", "sleep 5; x"],
        ["echo 1 > a; x", "echo 1 > a; x"],
        ["cat run1.log; x", "cat run2.log; x"],
        ["for i in 1 2; do x; echo 3 > drop; done", "for i in 1 2; do x; echo 3 > drop; done"],
        ["A=b x", "A=b x"],
        ["date; x 2>&1 | tee a", "x | tee b"],
    ] {
        let all = told(&same, 1);
        assert!(!all[0].is_apart(&all[1], true), "{same:?}");
    }
    for other in [
        ["echo 1 > a; x", "echo 0 > a; x"],
        ["x", "LD_PRELOAD=b.so x"],
        ["./old/x", "./new/x"],
        ["me@box:/old$ ./x", "me@box:/new$ ./x"],
        ["me@box:/old$ x", "me@box:/new$ x"],
        ["taskset -c 0 x", "taskset -c 8 x"],
        ["ssh a x", "ssh b x"],
        ["x", "cpupower frequency-set -g powersave && x"],
        ["x; echo 0 > a", "x"],
    ] {
        let all = told(&other, 1);
        assert!(all[0].is_apart(&all[1], true), "{other:?}");
        assert_ne!(all[0].apart(&[&all[1]]), all[1].apart(&[&all[0]]), "{other:?}");
    }
    // What was set and set back is as before, and another command alters it.
    let all = told(&["echo 1 > a; x", "echo 0 > a; x", "echo 1 > a; x", "swapoff b; x", "echo 1 > a; x"], 1);
    let same = |one: usize, other: usize| !all[one].is_apart(&all[other], true);
    assert!(same(0, 2) && !same(2, 3) && !same(0, 4), "{all:?}");
    // Each name that is set holds for itself.
    let all = told(&["sysctl a=1; sysctl b=0; x", "sysctl a=0; x", "sysctl b=0; x", "sysctl -w a=1; x"], 1);
    assert!(all[0].is_apart(&all[2], true) && all[0].is_apart(&all[1], true), "{all:?}");
}

#[test]
fn runs_of_a_loop_have_the_settings_of_their_turn() {
    let apart = |line: &str, runs: usize| -> Vec<String> {
        let all = told(&[line], runs);
        let all: Vec<&RunContext> = all.iter().collect();
        all.iter().map(|one| one.apart(&all)).collect()
    };
    for (line, expected) in [
        ("for k in 0 1; do sysctl v=$k; x; done", ["sysctl v=0", "sysctl v=1"]),
        ("for k in {3..4}; do echo \"${k}\" > a; x -q; done", ["echo 3 > a", "echo 4 > a"]),
        ("# for c in 0 8; do taskset -c $c x; done", ["taskset -c 0", "taskset -c 8"]),
        ("for p in old new; do ./$p/x; done", ["old/x", "new/x"]),
        ("for k in $(cat l); do sysctl v=$k; x; done", ["sysctl v=$k#1", "sysctl v=$k#2"]),
        ("for ((k=0; k<2; k++)); do sysctl v=$k; x; done", ["sysctl v=$k#1", "sysctl v=$k#2"]),
        ("while read k; do sysctl v=$k; x; done < l", ["sysctl v=$k#1", "sysctl v=$k#2"]),
        ("for i in 1 2 3; do echo 1 > a; x; echo 0 > a; x; done", ["echo 1 > a", "echo 0 > a"]),
        ("for a in 0 1; do for b in 7 9; do sysctl v=$a$b; x; done; done", ["sysctl v=07", "sysctl v=09"]),
    ] {
        assert!(told(&[line], 2)[0].is_apart(&told(&[line], 2)[1], true), "{line}");
        assert_eq!(apart(line, 2), expected, "{line}");
    }
    // What varies nothing is known of all of them.
    for line in [
        "for i in 1 2 3; do x; done",
        "for i in 1 2 3; do echo turn $i; sync; x > log.$i; sleep $i; done",
        "for i in $(seq 3); do x; echo 3 > drop; done",
        "while true; do x; done",
    ] {
        assert_eq!(apart(line, 3), ["", "", ""], "{line}");
    }
    // Nested loops, and those that never come to a run, end soon.
    let deep = "for a in $b; do while true; do ".repeat(200) + "x; " + &"done; ".repeat(400);
    let never = "while true; do for a in ; do x; done; done";
    assert_eq!(told(&[&deep, &"for a in {0..9999999}; do x".repeat(50), never], 100).len(), 300);
    // Over several lines.
    let log = log(
        "$ for k in 0 1; do\n> sysctl v=$k\n> tool -a\n> done\ntool 1\nspeed: 1 B\ntool 1\nspeed: 2 B\n",
        "tool",
        &Table::new(LINES),
        |_, _, _| None,
    );
    assert!(log.runs[0].is_apart(&log.runs[1], true), "{log:?}");
}

#[test]
fn counts_and_times_say_nothing() {
    for nothing in ["run 2", "Iteration 2 of 5", "== Run #3 ==", "pass 1/3", "11:22:33", "---"] {
        assert!(!says(nothing), "{nothing}");
    }
    for something in ["kernel 6.1", "1:10 overcommit", "node2", "1500", "run 2 on b", "82:00.1"] {
        assert!(says(something), "{something}");
    }
}

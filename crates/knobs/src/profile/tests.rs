//! Profiles of tuned, lists of sysctls, and files that are neither.

use std::fs;

use super::*;

/// A folder of profiles: names and texts.
fn folder(profiles: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in profiles {
        fs::create_dir_all(folder.path().join(name)).expect("a folder");
        fs::write(folder.path().join(name).join(PROFILE), text).expect("a profile");
    }
    folder
}

/// Reads one of them, and nothing of this system's.
fn profile(profiles: &[(&str, &str)], name: &str) -> Profile {
    let folder = folder(profiles);
    read_with(&folder.path().join(name), &[]).unwrap_or_else(|error| panic!("{error:#}"))
}

fn text(text: &str) -> Profile {
    profile(&[("p", text)], "p")
}

fn refused(profiles: &[(&str, &str)], name: &str) -> String {
    let folder = folder(profiles);
    let error = read_with(&folder.path().join(name), &[]).expect_err("refused");
    format!("{error:#}")
}

fn listed(text: &str) -> Profile {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("sysctls");
    fs::write(&file, text).expect("a file");
    read_with(&file, &[]).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Section, name and value of all settings.
fn settings(profile: &Profile) -> Vec<(&str, &str, &str)> {
    profile.settings.iter().map(|one| (one.section.as_str(), one.name.as_str(), one.value.as_str())).collect()
}

fn says(profile: &Profile, words: &str) -> bool {
    profile.remarks.iter().any(|remark| remark.contains(words))
}

const BASE: &str = "# a comment\n[main]\nsummary=Broad\n[variables]\nswap=10\n[cpu]\ngovernor=performance\n[sysctl]\nvm.dirty_ratio = 40   # as before\nvm.swappiness=${swap}\nnet.core.somaxconn=>2048\n";

#[test]
fn what_includes_comes_over_what_is_included() {
    let own = "[main]\ninclude=base\n[sysctl]\nvm.dirty_ratio=3\nkernel.sched_autogroup_enabled = 0\n\
               [scheduler]\nsched_min_granularity_ns = 10000000\n[variables]\nswap=${swap}1\n";
    let found = profile(&[("base", BASE), ("own", own)], "own");
    assert_eq!(found.name, "own");
    assert_eq!(
        settings(&found),
        [
            ("cpu", "governor", "performance"),
            ("sysctl", "vm.dirty_ratio", "3"),
            ("sysctl", "vm.swappiness", "${swap}1"),
            ("sysctl", "net.core.somaxconn", ">2048"),
            ("sysctl", "kernel.sched_autogroup_enabled", "0"),
            ("scheduler", "sched_min_granularity_ns", "10000000"),
        ]
    );
    let origin = &found.settings[1].origin;
    assert!(origin.ends_with("own/tuned.conf:4"), "{origin}");
    assert!(found.settings[2].origin.ends_with("base/tuned.conf:10"), "{}", found.settings[2].origin);
    // The file itself is as good as its folder.
    let folder = folder(&[("base", BASE)]);
    let file = read_with(&folder.path().join("base").join(PROFILE), &[]).expect("a profile");
    assert_eq!((file.name.as_str(), file.settings[2].value.as_str()), ("base", "10"));
    assert_eq!(file.remarks, Vec::<String>::new());
}

#[test]
fn included_twice_in_a_circle_and_not_at_all() {
    let both = [
        ("a", "[main]\ninclude=b, c\n"),
        ("b", "[main]\ninclude=c\n"),
        ("c", "[vm]\ntransparent_hugepages=never\n"),
    ];
    assert_eq!(settings(&profile(&both, "a")), [("vm", "transparent_hugepages", "never")]);
    let circle = [("a", "[main]\ninclude=b\n"), ("b", "[main]\ninclude=c\n"), ("c", "[main]\ninclude=a\n")];
    assert!(refused(&circle, "a").contains("in a circle: a -> b -> c -> a"), "{}", refused(&circle, "a"));
    assert!(refused(&[("a", "[main]\ninclude=a\n")], "a").contains("a -> a"));
    assert!(
        refused(&[("a", "[main]\ninclude=gone\n")], "a")
            .contains("a includes gone, but there is no tuned.conf")
    );
    assert_eq!(settings(&text("[main]\ninclude=-gone\n[cpu]\ngovernor=x\n")), [("cpu", "governor", "x")]);
    // Outside of the folders of profiles nothing is included.
    assert!(refused(&[("a", "[main]\ninclude=../../etc\n")], "a").contains("includes ../../etc"));
    // A profile that stands over the system's own of the same name.
    let (system, own) = (
        folder(&[("p", "[cpu]\ngovernor=system\nno_turbo=1\n")]),
        folder(&[("p", "[main]\ninclude=p\n[cpu]\ngovernor=own\n")]),
    );
    let found = read_with(&own.path().join("p"), &[system.path().to_path_buf()]).expect("a profile");
    assert_eq!(settings(&found), [("cpu", "governor", "own"), ("cpu", "no_turbo", "1")]);
    let many: Vec<(String, String)> =
        (0..150).map(|at| (format!("p{at}"), format!("[main]\ninclude=p{}\n", at + 1))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(refused(&many, "p0").contains("more than 100 profiles"));
}

#[test]
fn sections_that_say_something_of_themselves() {
    let base = "[main]\n[sysctl]\na.b=1\nc.d=2\n[x]\ntype=sysctl\ne.f=3\n[disk]\ndevices=sd*\nreadahead=>4096\n[vm]\ntransparent_hugepages=always\n";
    let own = "[main]\ninclude=base\n[sysctl]\ndrop=c.d\na.b=5\n[vm]\nreplace=true\n[disk]\nenabled=false\n[vm.arm]\ntype=vm\nuname_regex=aarch64\ntransparent_hugepages=never\n[script]\nscript=${i:PROFILE_DIR}/x.sh\npriority=5\n";
    let found = profile(&[("base", base), ("own", own)], "own");
    assert_eq!(settings(&found), [("sysctl", "a.b", "5"), ("x", "e.f", "3")]);
    assert_eq!(knob_name(&found.settings[1]).as_deref(), Some("e.f"));
    assert!(says(&found, "[disk] is switched off"));
    assert!(says(&found, "[vm.arm] applies only to hosts that match aarch64"));
    assert!(says(&found, "own/x.sh, whose effect is unknown"), "{:?}", found.remarks);
    assert!(says(&profile(&[("base", base)], "base"), "[disk] applies only to the devices sd*"));
}

#[test]
fn variables_and_functions() {
    let found = text(
        "[variables]\none=1\ntwo=${one}2\nself=${self}x\n[sysctl]\na=${two}3\nb=\\${one}\nc=${nobody} ${nobody}\n\
         d=${f:cpulist_unpack:${one}}\ne=${\nf=${}$\n",
    );
    let values: Vec<&str> = settings(&found).iter().map(|(_, _, value)| *value).collect();
    assert_eq!(values, ["123", "${one}", "${nobody} ${nobody}", "${f:cpulist_unpack:1}", "${", "${}$"]);
    assert!(
        says(&found, "c of [sysctl] needs the variable nobody") && found.remarks.len() == 2,
        "{:?}",
        found.remarks
    );
    assert!(says(&found, "d of [sysctl] calls a function, which Assay does not evaluate: ${f:"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = folder.path().join("more.conf");
    fs::write(&more, "# isolated\ncores=2-3\n").expect("a file");
    let with = |file: &Path| format!("[variables]\ninclude={}\n[sysctl]\na=${{cores}}\n", file.display());
    assert_eq!(settings(&text(&with(&more)))[0].2, "2-3");
    assert!(says(&text(&with(&folder.path().join("gone"))), "was not read"));
    let decided = text("[main]\ninclude=${f:virt_check:a:b}\n[cpu]\ngovernor=x\n");
    assert!(says(&decided, "includes a profile by a function or variable") && decided.settings.len() == 1);
    // Each twice as long as the one before: it stops.
    let bomb: String = (1..200).map(|at| format!("v{at}=${{v{}}}${{v{}}}\n", at - 1, at - 1)).collect();
    let bomb = text(&format!("[variables]\nv0=boom\n{bomb}[sysctl]\na=${{v199}}\n"));
    assert!(bomb.settings[0].value.len() <= 4096);
}

#[test]
fn one_name_for_a_knob() {
    let setting = |plugin: &str, name: &str| Setting {
        name: name.to_string(),
        value: "1".to_string(),
        section: plugin.to_string(),
        plugin: plugin.to_string(),
        origin: "f:1".to_string(),
    };
    for (plugin, name, knob) in [
        ("sysctl", "kernel.sched_min_granularity_ns", "min_granularity_ns"),
        ("sysctl", "kernel.sched_wakeup_granularity_ns", "wakeup_granularity_ns"),
        ("sysctl", "kernel/sched_latency_ns", "latency_ns"),
        ("sysctl", "kernel.sched_migration_cost_ns", "migration_cost_ns"),
        ("sysctl", "kernel.sched_nr_migrate", "nr_migrate"),
        ("sysctl", "kernel.sched_autogroup_enabled", "autogroup"),
        ("sysctl", "kernel.numa_balancing", "numa_balancing"),
        ("sysctl", "kernel.sched_rt_runtime_us", "kernel.sched_rt_runtime_us"),
        ("sysctl", "vm.swappiness", "vm.swappiness"),
        ("sysctl", "net.ipv4.conf.eth0/1.forwarding", "net.ipv4.conf.eth0/1.forwarding"),
        ("sysctl", "net/ipv4/conf/eth0.1/forwarding", "net.ipv4.conf.eth0/1.forwarding"),
        ("scheduler", "sched_min_granularity_ns", "min_granularity_ns"),
        ("vm", "transparent_hugepages", "thp"),
        ("vm", "transparent_hugepage", "thp"),
        ("vm", "transparent_hugepage.defrag", "thp_defrag"),
        ("sysfs", "/sys/kernel/mm/transparent_hugepage/enabled", "thp"),
        ("sysfs", "/proc/sys/kernel/sched_latency_ns", "latency_ns"),
        ("sysfs", "/sys/kernel/debug/sched/base_slice_ns", "base_slice_ns"),
        ("cpu", "governor", "governor"),
    ] {
        assert_eq!(knob_name(&setting(plugin, name)).as_deref(), Some(knob), "{name}");
        assert_eq!(why_no_knob(&setting(plugin, name)), None);
    }
    for (plugin, name, why) in [
        ("bootloader", "cmdline", "needs a reboot"),
        ("disk", "readahead", "belongs to devices"),
        ("scheduler", "isolated_cores", "sorts tasks"),
        ("scheduler", "sched_", "sorts tasks"),
        ("sysfs", "/sys/block/sda/queue/nr_requests", "Assay has no name for"),
        ("cpu", "force_latency", "request to the CPU"),
        ("systemd", "cpu_affinity", "another program"),
        ("rtentsk", "x", "plugin that Assay does not know"),
    ] {
        assert_eq!(knob_name(&setting(plugin, name)), None);
        let said = why_no_knob(&setting(plugin, name)).expect("a reason");
        assert!(said.contains(why) && said.starts_with(&format!("{name} of [{plugin}]")), "{said}");
    }
}

#[test]
fn lists_of_sysctls() {
    let found = listed(
        "# saved\nkernel.sched_latency_ns = 6000000\n; more\nvm.swappiness=60\n-net.x = 1\nvm.swappiness = 10\n\
                        net.ipv4.tcp_rmem = 4096\t131072\t6291456\nkernel.empty =\nsysctl: permission denied on key 'x'\n",
    );
    assert_eq!((found.name.as_str(), found.settings.len()), ("sysctls", 5));
    assert_eq!(settings(&found)[1], ("sysctl", "vm.swappiness", "10"));
    assert!(found.settings[1].origin.ends_with("sysctls:6"), "{}", found.settings[1].origin);
    assert!(says(&found, "line 9 is not NAME=VALUE") && found.remarks.len() == 1, "{:?}", found.remarks);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |bytes: &[u8]| {
        let file = folder.path().join("file");
        fs::write(&file, bytes).expect("a file");
        format!("{:#}", read_with(&file, &[]).expect_err("refused"))
    };
    for nothing in [&b""[..], b"hello\n", b"{\"a\": \"b = c\"}\n", b"# only\n"] {
        assert!(refused(nothing).contains("give a profile of tuned or lines"));
    }
    assert!(refused(b"a\0=b").contains("not text"));
    assert!(refused(&vec![b'a'; 2 << 20]).contains("more than 1 MB"));
    assert!(
        refused(&(0..30_000).flat_map(|at| format!("a{at}=1\n").into_bytes()).collect::<Vec<_>>())
            .contains("more than 20000")
    );
    assert!(format!("{:#}", read(&folder.path().join("gone")).expect_err("gone")).contains("cannot open"));
}

#[test]
fn what_differs() {
    let before = listed(
        "kernel.sched_min_granularity_ns = 2250000\nvm.swappiness = 10\nnet.core.somaxconn = 4096\n\
                         kernel.pid_max = 100\nkernel.sem = 250\t32000\nvm.x = 1\n",
    );
    let after = text(
        "[scheduler]\nsched_min_granularity_ns=10000000\n[sysctl]\nvm.swappiness=10\nnet.core.somaxconn=>2048\nkernel.pid_max=>4194304\nkernel.sem = 250 32000\n[bootloader]\ncmdline=+quiet\n",
    );
    let found = differences(&before, &after);
    let words: Vec<(&str, Option<&str>, Option<&str>, bool)> = found
        .iter()
        .map(|one| (one.name.as_str(), one.before.as_deref(), one.after.as_deref(), one.knob.is_some()))
        .collect();
    assert_eq!(
        words,
        [
            ("min_granularity_ns", Some("2250000"), Some("10000000"), true),
            ("kernel.pid_max", Some("100"), Some(">4194304"), true),
            ("cmdline", None, Some("+quiet"), false),
            ("vm.x", Some("1"), None, true),
        ]
    );
    assert_eq!(differences(&after, &after), []);
    let twice = text("[sysctl]\nkernel.sched_latency_ns=1\n[scheduler]\nsched_latency_ns=2\n");
    assert!(says(&twice, "latency_ns is set twice: to 1"), "{:?}", twice.remarks);
    assert_eq!(differences(&twice, &twice), []);
}

/// Whatever the text: read or refused, never a panic, within bounds.
#[test]
fn any_text_is_read_or_refused() {
    let parts = [
        "[main]",
        "include=",
        "p",
        "[variables]",
        "a=${a}",
        "${",
        "}",
        "[",
        "]",
        "=",
        "\n",
        " ",
        "\t",
        "#",
        ";",
        "replace=1",
        "drop=a",
        "[sysctl]",
        "kernel.sched_",
        "é\u{202e}",
        "script=x",
        "${f:",
        "\\",
        ",",
        "uname_regex=(",
        "[vm]\n",
        "enabled=0\n",
        ">",
        "-",
    ];
    let folder = folder(&[("p", "")]);
    let (mut state, mut read) = (7_u64, 0);
    for round in 0..1500 {
        let mut text = if round % 2 == 0 { "[sysctl]\n".to_string() } else { String::new() };
        for _ in 0..60 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        let name = if round % 3 == 0 { "list" } else { PROFILE };
        fs::write(folder.path().join("p").join(name), &text).expect("a file");
        let Ok(profile) = read_with(&folder.path().join("p").join(name), &[]) else { continue };
        read += 1;
        assert!(profile.settings.len() <= 60 && profile.remarks.len() <= MOST_REMARKS + 1, "{text}");
        assert_eq!(differences(&profile, &profile), [], "{text}");
        assert_eq!(
            differences(&Profile::default(), &profile).iter().filter(|one| one.before.is_some()).count(),
            0
        );
    }
    assert!(read > 300, "{read}");
    // As much as may be, of everything: it ends.
    for line in ["[s@]\n", "a@=${b}${c}\n", "[sysctl]\na@=${x@}\n", " x\n", "script=@\n"] {
        let text: String = (0..50_000).map(|at| line.replace('@', &at.to_string())).take(20_000).collect();
        fs::write(folder.path().join("p").join(PROFILE), format!("[sysctl]\nq=1\n{text}")).expect("a file");
        let profile = read_with(&folder.path().join("p"), &[]).expect("a profile");
        assert!(profile.remarks.len() <= MOST_REMARKS + 1 && profile.settings.len() <= MOST_TUNED);
    }
}

//! Numbers and texts as findings say them.

use machine::disk::Block;
use machine::{Hypervisor, Machine};
use model::{Planned, Run};

pub use model::{counted, figure, percent, rough_figure};

/// Bytes in the binary unit that makes them readable: `48 KiB`, `1.25 MiB`, `46.9 GiB`, `105 MiB`.
pub fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    let number = format!("{value:.digits$}");
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {}", UNITS[unit])
}

/// `3.77 MiB (1.61–8.35)`; an end in another unit keeps its own. `64 MiB or more` if there is no
/// upper end.
pub fn sizes(at: f64, low: f64, high: f64) -> String {
    let at = bytes(at);
    if !high.is_finite() {
        return format!("{at} or more");
    }
    let unit = at.trim_start_matches(|c: char| !c.is_whitespace());
    let [low, high] = [low, high].map(|end| bytes(end).trim_end_matches(unit).to_string());
    format!("{at} ({low}–{high})")
}

/// What a guest of this hypervisor is called: `KVM guest`.
pub fn guest(hypervisor: &str) -> String {
    let name = match hypervisor {
        "kvm" => "KVM",
        "qemu" => "QEMU",
        "vmware" => "VMware",
        "hyperv" => "Hyper-V",
        "xen" => "Xen",
        "virtualbox" => "VirtualBox",
        "user-mode linux" => "User-Mode Linux",
        name if name.contains("guest") => return name.to_string(),
        name => name,
    };
    format!("{name} guest")
}

/// Where a placement puts its tasks, as a sentence says it: `on one CPU`; other names stay as they
/// are.
pub fn placement(name: &str) -> &str {
    match name {
        "free" => "left to the scheduler",
        "one-cpu" | "same-cpu" => "on one CPU",
        "smt-sibling" => "on two threads of one core",
        "same-cluster" => "on two cores that share an L2",
        "same-llc" => "on two CPUs that share an L3",
        "other-llc" => "on two CPUs with different L3s",
        "other-node" => "on two NUMA nodes",
        "other-package" => "on two sockets",
        "other-cpu" => "on two CPUs",
        "all" => "on all CPUs",
        "one-per-core" => "on every core",
        "per-node" => "on every NUMA node",
        "spread" => "spread over all CPUs",
        other => other,
    }
}

/// With a capital, as sentences begin.
pub fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}", rest.as_str())
}

/// `10–14 %`.
pub fn percent_range(low: f64, high: f64) -> String {
    format!("{}–{}", percent(low).trim_end_matches(" %"), percent(high))
}

/// A title inside a sentence: `memory bandwidth`. Names and words in capitals stay.
pub fn uncapital(text: &str) -> String {
    const NAMES: [&str; 3] = ["Dhrystone", "Nexmark", "Unix"];
    let mut rest = text.chars();
    let first = rest.next().map(|c| c.to_lowercase().collect::<String>()).unwrap_or_default();
    let is_word = rest.clone().next().is_some_and(char::is_lowercase);
    if is_word && !NAMES.iter().any(|name| text.starts_with(name)) {
        format!("{first}{}", rest.as_str())
    } else {
        text.to_string()
    }
}

/// `two`; from ten on the digits.
pub fn number_word(count: usize) -> String {
    const WORDS: [&str; 10] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    WORDS.get(count).map_or_else(|| count.to_string(), |word| word.to_string())
}

/// `steal, placement and L3 cache`; of many the first three and how many more there are.
pub fn listed(names: &[&str]) -> String {
    const MOST: usize = 3;
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        names if names.len() > MOST => at_most(MOST, names),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// `a, b, c and 2 more`; without the rest where there are no more.
pub fn at_most<Name: std::borrow::Borrow<str>>(most: usize, names: &[Name]) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    if names.len() > most { format!("{shown} and {} more", names.len() - most) } else { shown }
}

/// A figure as screens show it: microseconds with the Greek letter.
pub fn shown(value: f64, unit: &str) -> String {
    figure(value, if unit == "us" { "µs" } else { unit })
}

/// What another tool calls a figure, in words: `latency_p999` is `latency p99.9`. `metric` is
/// Assay's name for it, with which many such names end.
pub fn foreign_name(wording: &str, metric: &str) -> String {
    let percentile = |word: &str| match word.strip_prefix('p') {
        Some(digits) if digits.len() > 2 && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("p{}.{}", &digits[..2], &digits[2..])
        }
        _ => word.to_string(),
    };
    let text = match wording.strip_suffix(metric) {
        Some(head) => format!("{head}{}", metric.replace('_', " ")),
        None => wording.to_string(),
    };
    let mut words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
    if let Some(last) = words.last_mut().filter(|last| metric.rsplit('_').next() == Some(last.as_str())) {
        *last = percentile(last);
    }
    // Some name a test as its figure: `latency latency p50`.
    words.dedup();
    words.join(" ")
}

/// The unit in which an imported figure is shown if it has none, and the number of those units in
/// one: shares in per cent.
pub fn share_unit(metric: &str, unit: &str) -> Option<(&'static str, f64)> {
    let is_share = ["loss", "reordered", "unfairness"].contains(&metric)
        || metric.ends_with("_busy")
        || metric.ends_with("_cpu");
    match metric {
        _ if !unit.is_empty() => None,
        "cycles_per_byte" => Some(("cycles", 1.0)),
        _ => is_share.then_some(("%", 100.0)),
    }
}

/// A time in the unit that makes it readable.
pub fn duration_us(us: f64) -> String {
    match us.abs() {
        size if size < 1.0 => figure(us * 1e3, "ns"),
        size if size < 1e4 => figure(us, "µs"),
        size if size < 1e7 => figure(us / 1e3, "ms"),
        _ => figure(us / 1e6, "s"),
    }
}

/// A word of a command that people may paste into a shell: in a foreign run file, a benchmark's
/// name may be anything.
pub fn shell(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':' | ',');
    match !word.is_empty() && word.chars().all(harmless) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// At most 200 characters of foreign text.
pub fn clipped(text: &str) -> String {
    text.chars().take(200).collect()
}

/// What makes two hosts peers, as label and value.
pub fn make_up(machine: &Machine) -> Vec<(String, String)> {
    let count = |label: &str, count: Option<usize>| Some((label.to_string(), count?.to_string()));
    let text = |label: &str, text: &Option<String>| Some((label.to_string(), clipped(text.as_ref()?)));
    let hypervisor = match &machine.hypervisor {
        Hypervisor::Unknown => None,
        Hypervisor::None => Some("none".to_string()),
        Hypervisor::Guest(name) => Some(clipped(name)),
    };
    let gib = machine.memory.total_bytes.map(|bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 30)));
    let dimms: Vec<String> =
        machine.dimms.iter().filter_map(|dimm| Some((dimm.size_bytes? >> 20).to_string())).collect();
    [
        text("cpu_model", &machine.cpus.name()),
        count("packages", machine.cpus.packages.as_ref().map(Vec::len)),
        count("cores", machine.cpus.cores.as_ref().map(Vec::len)),
        count("cpus", Some(machine.cpus.online.len())),
        count("numa_nodes", (!machine.nodes.is_empty()).then_some(machine.nodes.len())),
        gib.map(|gib| ("memory_gib".to_string(), gib)),
        (!dimms.is_empty()).then(|| ("dimms_mib".to_string(), dimms.join(" "))),
        text("kernel", &machine.kernel.release),
        text("microcode", &machine.cpus.microcode),
        text("product", &machine.dmi.product),
        hypervisor.map(|name| ("hypervisor".to_string(), name)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Settings of the disk that affect the figures of a run that measured it, as label and value;
/// empty for other runs.
pub fn disk_settings(run: &Run, machine: &Machine) -> Vec<(String, String)> {
    let measured = |planned: &Planned| {
        planned.case.bench.starts_with("disk.") || planned.case.bench.starts_with("file.")
    };
    let Some(disk) = machine.disk.as_ref().filter(|_| run.header.plan.iter().any(measured)) else {
        return Vec::new();
    };
    let of_leaves = |value: fn(&Block) -> Option<String>| -> Option<String> {
        let mut all: Vec<String> = disk.leaves().filter_map(value).collect();
        all.sort();
        all.dedup();
        (!all.is_empty()).then(|| all.join(" and "))
    };
    let kind = |block: &Block| Some(block.model.clone().unwrap_or_else(|| block.kind.words().to_string()));
    let layers: Vec<&str> =
        disk.stack.iter().filter(|block| !block.below.is_empty()).map(|block| block.kind.words()).collect();
    [
        ("disk", of_leaves(kind)),
        ("disk_layers", (!layers.is_empty()).then(|| layers.join(", "))),
        ("filesystem", disk.filesystem.clone()),
        ("mount_options", (!disk.options.is_empty()).then(|| disk.options.join(","))),
        ("disk_scheduler", of_leaves(|block| block.scheduler.clone())),
        ("disk_write_cache", of_leaves(|block| block.write_cache.clone())),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some((label.to_string(), clipped(&value?))))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_read_them() {
        assert_eq!(bytes(49152.0), "48 KiB");
        assert_eq!(bytes(1.5 * 1048576.0), "1.5 MiB");
    }

    #[test]
    fn parts_of_sentences() {
        assert_eq!((capital("fsync"), capital("")), ("Fsync".into(), "".into()));
        assert_eq!(percent_range(0.1, 0.14), "10–14 %");
        let titles = ["Memory bandwidth", "TCP bandwidth", "Unix stream socket", "fork", ""].map(uncapital);
        assert_eq!(titles, ["memory bandwidth", "TCP bandwidth", "Unix stream socket", "fork", ""]);
        assert_eq!((counted(1, "figure"), counted(12, "figure")), ("1 figure".into(), "12 figures".into()));
        let times = [0.05, 78.2, 9_999.0, 84_000.0, 12e6].map(duration_us);
        assert_eq!(times, ["50.0 ns", "78.2 µs", "9999 µs", "84.0 ms", "12.0 s"]);
        assert_eq!((number_word(2), number_word(12)), ("two".into(), "12".into()));
        let lists = [&["a"][..], &["a", "b", "c"], &["a", "b", "c", "d", "e"]].map(listed);
        assert_eq!(lists, ["a", "a, b and c", "a, b, c and 2 more"]);
        assert_eq!(
            (at_most(2, &["a", "b"]), at_most(1, &["a", "b"])),
            ("a, b".into(), "a and 1 more".into())
        );
        assert_eq!((placement("same-cpu"), placement("nodes-0-3")), ("on one CPU", "nodes-0-3"));
    }

    #[test]
    fn foreign_names_are_words() {
        for (wording, metric, words) in [
            ("job read latency_p999", "latency_p999", "job read latency p99.9"),
            ("schbench wakeup latency p99", "wakeup_latency_p99", "schbench wakeup latency p99"),
            ("schbench latency latency p9999", "latency_p9999", "schbench latency p99.99"),
            ("likwid-bench load_avx", "bandwidth", "likwid-bench load_avx"),
            ("iperf3 cwnd_bytes", "cwnd_bytes", "iperf3 cwnd bytes"),
        ] {
            assert_eq!(foreign_name(wording, metric), words);
        }
    }

    #[test]
    fn shares_are_read_in_per_cent() {
        assert_eq!(share_unit("loss", ""), Some(("%", 100.0)));
        assert_eq!(share_unit("local_busy", ""), Some(("%", 100.0)));
        assert_eq!(share_unit("cycles_per_byte", ""), Some(("cycles", 1.0)));
        // A score has no unit, and what has one keeps it.
        assert_eq!((share_unit("score", ""), share_unit("loss", "1/s")), (None, None));
    }

    #[test]
    fn words_that_a_shell_takes_for_one() {
        assert_eq!(shell("memory.latency"), "memory.latency");
        assert_eq!(shell("x; rm -rf ~"), "'x; rm -rf ~'");
        assert_eq!(shell("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!(shell(""), "''");
    }
}

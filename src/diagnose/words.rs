//! Numbers and texts as findings say them.

use crate::machine::{Hypervisor, Machine};

/// A share as per cent: two digits, no more precision than findings have.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        value if value.abs() >= 10.0 => format!("{value:.0} %"),
        value if value.abs() >= 1.0 => format!("{value:.1} %"),
        value => format!("{value:.2} %"),
    }
}

/// Three significant digits, thousands in k and M for plain counts.
pub fn figure(value: f64, unit: &str) -> String {
    // Only a damaged file has such numbers; nobody reads three hundred digits.
    if value != 0.0 && !(1e-9..1e15).contains(&value.abs()) {
        return format!("{value:.2e} {unit}").trim_end().to_string();
    }
    let (value, prefix) = match (value.abs(), unit) {
        (size, "1/s" | "") if size >= 1e6 => (value / 1e6, "M"),
        (size, "1/s" | "") if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    match (prefix, unit) {
        ("", "") => format!("{value:.digits$}"),
        (prefix, "1/s") => format!("{value:.digits$}{prefix}/s"),
        (prefix, unit) => format!("{value:.digits$}{prefix} {unit}").trim_end().to_string(),
    }
}

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

/// A word of a command that people may paste into a shell: whoever wrote a run file may have called a benchmark
/// anything.
pub fn shell(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':');
    match !word.is_empty() && word.chars().all(harmless) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// At most 200 characters of somebody else's text.
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
        text("cpu_model", &machine.cpus.model),
        count("packages", machine.cpus.packages.as_ref().map(Vec::len)),
        count("cores", machine.cpus.cores.as_ref().map(Vec::len)),
        count("cpus", Some(machine.cpus.online.len())),
        count("numa_nodes", (!machine.nodes.is_empty()).then_some(machine.nodes.len())),
        gib.map(|gib| ("memory_gib".to_string(), gib)),
        (!dimms.is_empty()).then(|| ("dimms_mib".to_string(), clipped(&dimms.join(" ")))),
        text("kernel", &machine.kernel.release),
        text("microcode", &machine.cpus.microcode),
        text("product", &machine.dmi.product),
        hypervisor.map(|name| ("hypervisor".to_string(), name)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_people_read_them() {
        let figures = [
            (470_123.0, "1/s", "470k/s"),
            (14_040.0, "1/s", "14.0k/s"),
            (9_500.0, "1/s", "9500/s"),
            (1.2345, "ns", "1.23 ns"),
            (35.5, "GB/s", "35.5 GB/s"),
            (0.05, "", "0.050"),
            (1e308, "ns", "1.00e308 ns"),
            (-2.5e-300, "GB/s", "-2.50e-300 GB/s"),
            (0.0, "ms", "0 ms"),
        ];
        for (value, unit, words) in figures {
            assert_eq!(figure(value, unit), words);
        }
        assert_eq!(bytes(49152.0), "48 KiB");
        assert_eq!(bytes(1.5 * 1048576.0), "1.5 MiB");
        assert_eq!(percent(0.4849), "48 %");
    }

    #[test]
    fn words_that_a_shell_takes_for_one() {
        assert_eq!(shell("memory.latency"), "memory.latency");
        assert_eq!(shell("x; rm -rf ~"), "'x; rm -rf ~'");
        assert_eq!(shell("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!(shell(""), "''");
    }
}

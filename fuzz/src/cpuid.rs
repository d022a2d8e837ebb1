//! Dumps of CPUID leaves, as `assay machine --cpuid` and the live host's probes give them.

use model::{Entry, Snapshot};

use super::machine;

/// A text of leaves a CPU, apart by lines of one `=`.
pub fn cpuid(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let dumps = text.split("\n=\n").take(64).enumerate();
    let entry = |(cpu, dump): (usize, &str)| (format!("probe:cpuid/{cpu}"), Entry::Text(dump.to_string()));
    let snapshot = Snapshot { entries: dumps.map(entry).collect() };
    let machine = machine::check_all(&snapshot);
    let summary = machine.summary();
    assert!(summary.cores.unwrap_or(0) <= summary.cpus.unwrap_or(0), "more cores than CPUs");
    assert!(summary.packages.unwrap_or(0) <= summary.cpus.unwrap_or(0), "more packages than CPUs");
}

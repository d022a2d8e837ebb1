//! The key figures: the few that the first screen of a run shows, each with a short name of its
//! own, in a fixed order. One line of [`KEY_FIGURES`] each.

use super::ladder::{LastCache, ladder};
use super::{Diagnosis, Evidence};
use Group::{Cpu, Disk, Memory, Network, Os};
use model::pattern::{KeyParts, Pattern};
use model::{Grade, VerdictKind};
use stats::analysis::Judged;

/// The groups of figures, in the order of every screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Cpu,
    Memory,
    Os,
    Disk,
    Network,
}

impl Group {
    pub const ALL: [Group; 5] = [Cpu, Memory, Os, Disk, Network];

    pub fn word(self) -> &'static str {
        match self {
            Cpu => "CPU",
            Memory => "memory",
            Os => "OS",
            Disk => "disk",
            Network => "network",
        }
    }

    /// The group of a benchmark by the first part of its id, of sysbench's by the second; what
    /// talks to the kernel is the OS's.
    pub fn of_bench(bench: &str) -> Group {
        match bench.strip_prefix("sysbench.").unwrap_or(bench).split('.').next().unwrap_or_default() {
            "cpu" | "lock" | "smt" | "rate" => Cpu,
            "memory" => Memory,
            "disk" | "fileio" => Disk,
            "network" => Network,
            _ => Os,
        }
    }
}

/// Where the value comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The first of these patterns that a measured series matches; of several such series the one
    /// with the largest block.
    Series(&'static [&'static str]),
    /// The last-level cache as the latency ladder shows it.
    Ladder,
}

/// One key figure.
#[derive(Debug)]
pub struct KeyFigure {
    /// What people call it by, in files and options: `dram-latency`.
    pub name: &'static str,
    pub group: Group,
    /// At most 26 columns.
    pub label: &'static str,
    /// Its label without a column of groups before it.
    pub alone: &'static str,
    /// The unit that it is shown in.
    pub unit: &'static str,
    source: Source,
    /// Measured between two hosts only.
    pub between_hosts: bool,
}

impl KeyFigure {
    /// What it reads best by: a size is large or small, all else fast or slow.
    pub fn is_size(&self) -> bool {
        matches!(self.source, Source::Ladder)
    }
}

const fn figure(
    name: &'static str,
    group: Group,
    [label, alone]: [&'static str; 2],
    unit: &'static str,
    series: &'static [&'static str],
) -> KeyFigure {
    KeyFigure { name, group, label, alone, unit, source: Source::Series(series), between_hosts: false }
}

const fn between_hosts(own: KeyFigure) -> KeyFigure {
    KeyFigure { between_hosts: true, ..own }
}

/// All of them, in the order of every screen.
pub const KEY_FIGURES: &[KeyFigure] = &[
    figure("core-clock", Cpu, ["core clock"; 2], "GHz", &["cpu.clock@one-cpu#clock"]),
    figure(
        "dram-latency",
        Memory,
        ["latency", "memory latency"],
        "ns",
        &["memory.data-source@one-cpu?source=dram/within=#latency"],
    ),
    figure(
        "remote-latency",
        Memory,
        ["latency, other socket", "latency, other socket"],
        "ns",
        &[
            "memory.data-source@other-package?source=dram-remote#latency",
            "memory.data-source@other-node?source=dram-remote#latency",
        ],
    ),
    figure(
        "read-one-cpu",
        Memory,
        ["read, one CPU", "memory read, one CPU"],
        "GB/s",
        &["memory.bandwidth@one-cpu?op=read#bandwidth"],
    ),
    figure(
        "read-all-cpus",
        Memory,
        ["read, all CPUs", "memory read, all CPUs"],
        "GB/s",
        &["memory.bandwidth@all?op=read#bandwidth"],
    ),
    KeyFigure {
        name: "l3-size",
        group: Memory,
        label: "L3 that one task can use",
        alone: "L3 one task can use",
        unit: "MiB",
        source: Source::Ladder,
        between_hosts: false,
    },
    figure(
        "line-transfer",
        Memory,
        ["line from another core", "line from another core"],
        "ns",
        &[
            "memory.data-source@same-llc?source=core-modified#latency",
            "memory.data-source@other-llc?source=core-modified#latency",
            "memory.data-source@other-node?source=core-modified#latency",
            "memory.data-source@other-package?source=core-modified#latency",
        ],
    ),
    figure("syscall", Os, ["system call"; 2], "µs", &["syscall.getpid@one-cpu#latency"]),
    figure(
        "context-switch",
        Os,
        ["context switch, one CPU"; 2],
        "µs",
        &["sched.context-switch@same-cpu?processes=2/kb=0#latency"],
    ),
    figure(
        "wake-up",
        Os,
        ["wake-up of another CPU"; 2],
        "µs",
        &[
            "ipc.pipe-pingpong@same-llc#wakeup_p50",
            "ipc.pipe-pingpong@other-llc#wakeup_p50",
            "ipc.pipe-pingpong@other-node#wakeup_p50",
            "ipc.pipe-pingpong@other-package#wakeup_p50",
        ],
    ),
    figure("page-fault", Os, ["page fault, 4 KiB"; 2], "µs", &["vm.page-fault@one-cpu#latency"]),
    figure("fork-exec", Os, ["fork and exec"; 2], "µs", &["process.exec@one-cpu?program=minimal#latency"]),
    figure(
        "disk-read-latency",
        Disk,
        ["4 KiB read, 1 at a time"; 2],
        "µs",
        &["disk.random?op=read/block=4096/depth=1#latency_p50"],
    ),
    figure(
        "disk-read-iops",
        Disk,
        ["4 KiB read, 32 at a time"; 2],
        "k/s",
        &["disk.random?op=read/block=4096/depth=32#iops"],
    ),
    figure("fdatasync", Disk, ["fdatasync"; 2], "µs", &["disk.sync?op=fdatasync/block=4096#latency_p50"]),
    between_hosts(figure(
        "tcp",
        Network,
        ["TCP, one connection"; 2],
        "Gbit/s",
        &["network.tcp?direction=send/streams=1#bandwidth"],
    )),
    between_hosts(figure(
        "round-trip",
        Network,
        ["round trip"; 2],
        "µs",
        &["network.round-trip?protocol=tcp#latency_p50"],
    )),
];

/// A key figure by its name.
pub fn named(name: &str) -> Option<&'static KeyFigure> {
    KEY_FIGURES.iter().find(|figure| figure.name == name)
}

/// The key figure that the series with this key gives, if any.
pub fn of_key(key: &str) -> Option<&'static KeyFigure> {
    KEY_FIGURES.iter().find(|figure| figure.patterns().iter().any(|text| Pattern::of(text).matches(key)))
}

impl KeyFigure {
    /// Of its series, the nearest first; none of what is read off a curve.
    pub fn patterns(&self) -> &'static [&'static str] {
        match self.source {
            Source::Series(patterns) => patterns,
            Source::Ladder => &[],
        }
    }

    /// Of some series, which have keys, the one that this figure is: the first pattern that any
    /// matches, there the largest block.
    pub fn find<'a, T>(
        &self,
        all: impl Iterator<Item = &'a T> + Clone,
        key: impl Fn(&T) -> &str,
    ) -> Option<&'a T> {
        let block = |one: &&T| {
            let bytes = KeyParts::of(key(one)).param("bytes").and_then(|bytes| bytes.parse::<u64>().ok());
            bytes.unwrap_or(0)
        };
        self.patterns().iter().find_map(|text| {
            let pattern = Pattern::of(text);
            all.clone().filter(|one| pattern.matches(key(one))).max_by_key(block)
        })
    }
}

/// A key figure as a run measured it.
#[derive(Clone, Debug)]
pub struct Measured {
    pub figure: &'static KeyFigure,
    /// The series it is; `None` of what was read off a curve.
    pub key: Option<String>,
    /// In the figure's unit; `None` of a rejected one.
    pub value: Option<f64>,
    /// The 95 % interval, in that unit; infinite above where the end was not seen.
    pub low_high: Option<[f64; 2]>,
    pub verdict: VerdictKind,
    pub grade: Grade,
    /// What the kernel reports of the same, in the figure's unit.
    pub reported: Option<f64>,
}

/// The key figures of a run in their order, those that were tried.
pub fn measured(diagnosis: &Diagnosis) -> Vec<Measured> {
    let evidence = diagnosis.evidence();
    let tried = |judged: &&Judged| judged.analysis.verdict.kind != VerdictKind::Skipped;
    let measure = |figure: &'static KeyFigure| match figure.source {
        Source::Ladder => cache(figure, &evidence),
        Source::Series(_) => {
            let all = diagnosis.series.iter().filter(tried);
            let fits = all.filter(|judged| !figure.between_hosts || is_between_hosts(judged));
            figure.find(fits, |judged| &judged.series.key).map(|judged| series(figure, judged))
        }
    };
    KEY_FIGURES.iter().filter_map(measure).collect()
}

/// Whether one of the participants is another host.
pub fn is_between_hosts(judged: &Judged) -> bool {
    judged.series.case.placement.seats.iter().any(|seat| seat.host.is_some())
}

fn series(figure: &'static KeyFigure, judged: &Judged) -> Measured {
    let analysis = &judged.analysis;
    let scale = model::unit_factor(&judged.series.metric.unit, figure.unit).unwrap_or(1.0);
    let estimate = analysis.figure().filter(|_| analysis.verdict.usable());
    let interval = estimate.and_then(|estimate| estimate.interval);
    Measured {
        figure,
        key: Some(judged.series.key.clone()),
        value: estimate.map(|estimate| estimate.median * scale),
        low_high: interval.map(|interval| [interval.low * scale, interval.high * scale]),
        verdict: analysis.verdict.kind,
        grade: analysis.verdict.grade,
        reported: None,
    }
}

/// The last-level cache that one task can use: its end on the ladder, or the reported size if that
/// lies within the measured bounds.
fn cache(figure: &'static KeyFigure, evidence: &Evidence) -> Option<Measured> {
    const MIB: f64 = 1048576.0;
    let ladder = ladder(evidence)?;
    let size = ladder.last_size()?;
    let bounds = match ladder.last_cache()? {
        LastCache::Ends(step) => [step.low, step.high],
        LastCache::AtLeast(end) => [end, f64::INFINITY],
    };
    Some(Measured {
        figure,
        key: None,
        value: Some(size.at / MIB),
        low_high: Some(bounds.map(|bytes| bytes / MIB)),
        verdict: VerdictKind::Trusted,
        grade: Grade::B,
        reported: ladder.claimed.last().map(|(_, bytes)| bytes / MIB),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_and_a_label_of_its_own() {
        let no_benchmark =
            |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        for (at, figure) in KEY_FIGURES.iter().enumerate() {
            assert!(no_benchmark(figure.name), "{}", figure.name);
            assert!(
                figure.label.chars().count() <= 26 && figure.alone.chars().count() <= 26,
                "{}",
                figure.name
            );
            assert!(
                KEY_FIGURES[..at]
                    .iter()
                    .all(|other| other.name != figure.name && other.alone != figure.alone)
            );
            assert!(KEY_FIGURES[..at].iter().all(|other| other.group <= figure.group), "{}", figure.name);
        }
        assert_eq!(named("syscall").map(|figure| figure.label), Some("system call"));
        assert!(named("syscall.getpid").is_none());
    }

    #[test]
    fn a_key_says_which_figure_it_is() {
        let name = |key: &str| of_key(key).map(|figure| figure.name);
        assert_eq!(name("memory.data-source@one-cpu+huge-pages?source=dram#latency"), Some("dram-latency"));
        assert_eq!(name("memory.data-source@one-cpu+huge-pages?source=dram/within=4096#latency"), None);
        let blocks = [4096, 65536, 16384]
            .map(|bytes| format!("memory.bandwidth@all+huge-pages?op=read/bytes={bytes}#bandwidth"));
        let found = named("read-all-cpus").and_then(|figure| figure.find(blocks.iter(), |key| key));
        assert_eq!(found, Some(&blocks[1]));
    }
}

//! A report as a two-package server would give it.

use model::{Fact, Finding, Severity, Verdict, VerdictKind};
use report::block::{
    Axis, Bar, Block, BoxNode, Cell, Chart, ChartKind, Check, CheckMark, Column, Dot, Line, LinePoint,
    Report, Scale, Section, Side, Strip, Table,
};

/// The same numbers at every run.
pub struct Noise(pub fastrand::Rng);

impl Noise {
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0
    }
}

pub fn report() -> Report {
    let mut noise = Noise(fastrand::Rng::with_seed(7));
    let mut sections = vec![
        section(
            "findings",
            "Findings",
            "What the rules found, the gravest first.",
            vec![Block::Findings(findings())],
        ),
        section("machine", "Machine", "As the kernel shows it.", machine()),
        section("memory", "Memory", "Latency and bandwidth of caches and memory.", memory(&mut noise)),
        section("scheduler", "Scheduler and IPC", "", scheduler(&mut noise)),
        section(
            "numbers",
            "All numbers",
            "Every series with its verdict.",
            vec![Block::Table(numbers(&mut noise, false))],
        ),
        section(
            "conditions",
            "Conditions",
            "What went on beside the measuring.",
            vec![conditions(&mut noise)],
        ),
        section("method", "Method", "", method()),
    ];
    sections[4].blocks.push(Block::Table(numbers(&mut noise, true)));
    Report {
        title: "vm-17: standard run".to_owned(),
        machine: "KVM guest, 2 × AMD EPYC 9354, 32 cores, 64 CPUs, 256 GiB, Linux 6.12.48".to_owned(),
        subtitle: "profile standard · 2026-11-20 14:03 UTC · 8 min 12 s · seed 4711".to_owned(),
        checks: checks(),
        json: serde_json::json!({ "schema": 1, "host": "vm-17", "series": [1.5, null] }).to_string(),
        sections,
        screen: None,
        tone: report::screen::Tone::Plain,
    }
}

pub fn section(id: &str, title: &str, about: &str, blocks: Vec<Block>) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), about: about.to_owned(), blocks, long: false }
}

pub fn chart(id: &str, title: &str, about: &str, kind: ChartKind, data: Table) -> Block {
    Block::from(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        kind,
        summary: None,
        data,
    })
}

fn checks() -> Vec<Check> {
    let check = |mark, text: &str| Check { mark, text: text.to_owned() };
    vec![
        check(CheckMark::Good, "idle 98.9 %"),
        check(CheckMark::Good, "governor performance"),
        check(CheckMark::Care, "SMT siblings hidden by the hypervisor"),
        check(CheckMark::Bad, "steal 4.1 % while measuring"),
        check(CheckMark::Note, "perf counters not permitted (kernel.perf_event_paranoid=3)"),
    ]
}

pub fn findings() -> Vec<Finding> {
    let finding = |rule: &str, severity, headline: &str, cause: &str, facts, confirm: &str, advice: &str| {
        Finding::of(rule.to_owned(), severity, headline.to_owned())
            .cause(cause.to_owned())
            .facts(facts)
            .confirm(confirm.to_owned())
            .advice(advice.to_owned())
            .explains(["ipc.pipe-pingpong free#latency".to_owned()])
    };
    vec![
        finding(
            "A-0009",
            Severity::Warning,
            "Memory is 26 % slower past 7 MiB",
            "The guest's ladder leaves its L3 plateau at 7 MiB, the reported size is 32 MiB. A cache partition or a noisy neighbour would do this.",
            vec![Fact::new("leaves the plateau", "7.1 MiB [6.4, 7.9]", "memory.latency same-llc#latency")],
            "assay run --only memory.latency --placement same-llc",
            "Ask the provider whether cache allocation is set for this guest.",
        ),
        finding(
            "A-0017",
            Severity::Problem,
            "pipe-pingpong looks 3.9× faster than it is",
            "Both tasks ran on one CPU in 33 of 40 samples. The guest reports one L3 per vCPU, so the scheduler found no idle CPU that shares a cache and kept the wakee on the waker's CPU. The score measures a context switch, not a wake-up across CPUs.",
            vec![
                Fact::new(
                    "measured",
                    "1.46 µs median, two modes at 1.4 and 5.9 µs",
                    "ipc.pipe-pingpong free#latency",
                ),
                Fact::new(
                    "expected",
                    "5.6 µs, pinned to two cores of one L3",
                    "ipc.pipe-pingpong same-llc#latency",
                ),
                Fact::new(
                    "caches",
                    "64 L3 caches for 64 CPUs",
                    "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
                ),
            ],
            "assay run --only ipc.pipe-pingpong --placement free,same-llc",
            "Compare hosts by the pinned placements only.",
        ),
        finding(
            "A-0031",
            Severity::Note,
            "Huge pages are on request only",
            "Transparent huge pages stand at madvise. Programs that do not ask get 4 KiB pages.",
            vec![Fact::new(
                "setting",
                "always [madvise] never",
                "/sys/kernel/mm/transparent_hugepage/enabled",
            )],
            "assay run --only memory.latency --pages 4k,2m",
            "",
        ),
    ]
}

pub fn node(kind: &'static str, label: &str, inside: Vec<BoxNode>) -> BoxNode {
    BoxNode { label: label.to_owned(), kind, inside, alike: 1 }
}

fn machine() -> Vec<Block> {
    let facts = [
        ("Processor", "2 × AMD EPYC 9354 32-Core Processor, family 25 model 17"),
        ("Caches", "L1d 48 KiB, L2 1 MiB, L3 32 MiB for 4 cores"),
        ("Memory", "256 GiB in 2 NUMA nodes, 16 × DDR5-4800"),
        ("Kernel", "6.12.48+deb13-amd64, clocksource tsc, mitigations on"),
        ("Hypervisor", "KVM"),
    ];
    let facts = facts.map(|(label, value)| (label.to_owned(), value.to_owned())).to_vec();
    let package = |package: usize| {
        let caches = (0..4).map(|cache| {
            let cores = (0..4).map(|core| {
                let cpu = package * 16 + cache * 4 + core;
                let cpus = [cpu, cpu + 32].map(|cpu| node("cpu", &cpu.to_string(), Vec::new()));
                node("core", "", cpus.to_vec())
            });
            node("l3", "L3 32 MiB", cores.collect())
        });
        let memory = node("memory", "128 GiB, 8 × DDR5-4800", Vec::new());
        let inside = std::iter::once(memory).chain(caches).collect();
        node(
            "package",
            &format!("Package {package}"),
            vec![node("node", &format!("NUMA node {package}"), inside)],
        )
    };
    let mut alike = node(
        "l3",
        "L3 32 MiB",
        vec![node("core", "", vec![node("cpu", "0", vec![]), node("cpu", "96", vec![])])],
    );
    (alike.alike, alike.inside[0].alike) = (12, 8);
    let l2 = node("l2", "L2 2 MiB", vec![node("cpu", "4", vec![]), node("cpu", "5", vec![])]);
    let other = node(
        "package",
        "Package 2, collapsed",
        vec![alike, l2, node("offline", "CPU 192–199 offline", vec![])],
    );
    let drawing = "┌ package 0 ───────────┐\n│ L3 32 MiB  0 1 2 3   │\n└──────────────────────┘";
    vec![
        Block::Facts(facts),
        Block::Boxes(vec![package(0), package(1), other]),
        Block::Preformatted(drawing.to_owned()),
    ]
}

pub fn table(columns: &[(&str, bool)], rows: Vec<Vec<Cell>>) -> Table {
    let columns = columns.iter().map(|(title, right)| Column { title: (*title).to_owned(), right: *right });
    Table { columns: columns.collect(), rows, folded: false }
}

fn number(value: f64) -> Cell {
    Cell::Number(format!("{value:.2}"))
}

/// A latency ladder of two placements, with intervals.
pub fn ladder(noise: &mut Noise, points: usize) -> (ChartKind, Table) {
    let mut rows = Vec::new();
    let lines = [("same-llc", 30.0), ("other-node", 7.0)].map(|(name, plateau)| {
        let made = (0..points).map(|index| {
            let bytes = 4096.0 * 2_f64.powf(18.0 * index as f64 / (points - 1) as f64);
            let step = |at: f64| 1.0 / (1.0 + (at / bytes).powi(4));
            let l3 = plateau * 1048576.0;
            let value = 1.2
                + 2.8 * step(49152.0)
                + 11.0 * step(1048576.0)
                + 95.0 * step(l3) * if plateau < 10.0 { 1.25 } else { 1.0 };
            let value = value * (1.0 + 0.01 * noise.normal());
            let half = value * (0.02 + 0.03 * noise.0.f64());
            let point = LinePoint {
                x: bytes.round(),
                y: value,
                low_high: Some([value - half, value + half * 1.4]),
                hollow: false,
            };
            rows.push(vec![Cell::Text(name.to_owned()), number(point.x), number(value)]);
            point
        });
        Line { name: name.to_owned(), points: made.collect(), joined: true }
    });
    let axis = |title: &str, scale| Axis { title: title.to_owned(), scale };
    let marks = [
        (32768.0, "L1i 32 KiB"),
        (49152.0, "L1d 48 KiB"),
        (1048576.0, "L2 1 MiB"),
        (33554432.0, "L3 32 MiB"),
    ];
    let kind = ChartKind::Lines {
        x: axis("", Scale::Bytes),
        y: axis("ns per load", Scale::Log),
        lines: lines.to_vec(),
        marks: marks.map(|(at, text)| (at, text.to_owned())).to_vec(),
        callouts: Vec::new(),
    };
    (kind, table(&[("placement", false), ("bytes", true), ("ns", true)], rows))
}

fn memory(noise: &mut Noise) -> Vec<Block> {
    let (kind, data) = ladder(noise, 30);
    let about = "Random pointer chase, 2 MiB pages, one core. Band: interval of the median. Dashed: cache sizes that the kernel reports.";
    let about = chart("ladder", "Memory latency ladder", about, kind, data);
    let bars = [
        ("same-cpu", 212.4, VerdictKind::Trusted),
        ("other-llc", 208.9, VerdictKind::TrustedWithCause),
        ("other-node", 121.7, VerdictKind::Imprecise),
        ("other-package", 96.3, VerdictKind::Rejected),
        ("per-node", f64::NAN, VerdictKind::Skipped),
    ];
    let rows = bars.map(|(name, value, kind)| {
        vec![Cell::Text(name.to_owned()), number(value), Cell::Verdict(verdict(kind))]
    });
    let bars = bars.map(|(label, value, kind)| Bar {
        label: label.to_owned(),
        value,
        low_high: value.is_finite().then_some([value * 0.96, value * 1.03]),
        verdict: verdict(kind),
    });
    let kind =
        ChartKind::Bars { y: Axis { title: "GB/s".to_owned(), scale: Scale::Linear }, bars: bars.to_vec() };
    let data = table(&[("placement", false), ("GB/s", true), ("verdict", false)], rows.to_vec());
    vec![about, chart("copy", "Copy bandwidth by placement", "Median with interval.", kind, data)]
}

fn verdict(kind: VerdictKind) -> Verdict {
    let reason = match kind {
        VerdictKind::Trusted => "",
        VerdictKind::TrustedWithCause => "steal moved it by 2 %",
        VerdictKind::Imprecise => "about 40 processes are needed for ±3 %, 9 ran",
        VerdictKind::Multimodal => "2 modes, ratio 3.9: both tasks on one CPU in 33 of 40 samples",
        VerdictKind::Drifting => "fell by 7 % from the first to the last minute",
        VerdictKind::Rejected => "above the physical ceiling of 8 channels × 4800 MT/s",
        VerdictKind::Skipped => "the time budget ended",
        VerdictKind::Unverified => "imported: nobody watched",
    };
    Verdict::new(kind, reason)
}

pub fn strip(noise: &mut Noise, label: &str, samples: usize, modes: bool) -> Strip {
    let dots = (0..samples).map(|index| {
        let low = modes && noise.0.f64() < 0.4;
        let relative = if low { 0.62 } else { 1.0 } + 0.03 * noise.normal();
        let warm_up = index < 3;
        let relative = if warm_up { relative + 0.25 } else { relative };
        Dot { relative, warm_up }
    });
    let kind = if modes { VerdictKind::Multimodal } else { VerdictKind::Trusted };
    Strip {
        label: label.to_owned(),
        figure: "5.60 µs ±2.1 %".to_owned(),
        dots: dots.collect(),
        low_high: Some([0.97, 1.04]),
        verdict: verdict(kind),
    }
}

fn scheduler(noise: &mut Noise) -> Vec<Block> {
    let names = [
        "ipc.pipe-pingpong · free",
        "ipc.pipe-pingpong · same-llc",
        "sched.context-switch · same-cpu",
        "sched.futex-wake · same-llc",
        "memory.copy · per-node",
        "memory.latency · 64 MiB",
        "process.fork · free",
        "syscall.getpid · same-cpu",
        "signal.self · same-cpu",
        "disk.fsync-4k",
        "network.loopback · other-llc",
        "process.exec · free",
    ];
    let strips: Vec<Strip> =
        names.iter().enumerate().map(|(index, name)| strip(noise, name, 40, index % 5 == 0)).collect();
    let rows = strips.iter().map(|strip| {
        let raw = strip.dots.iter().map(|dot| dot.relative * 5.6).collect();
        vec![
            Cell::Text(strip.label.clone()),
            number(5.6),
            Cell::Distribution(raw),
            Cell::Verdict(strip.verdict.clone()),
        ]
    });
    let columns = [("series", false), ("median, µs", true), ("distribution", false), ("verdict", false)];
    let data = table(&columns, rows.collect());
    let samples = chart(
        "samples",
        "Samples",
        "Every sample, relative to the median of its series.",
        ChartKind::Strips { strips },
        data,
    );
    let cpu_pairs = chart(
        "cpu-to-cpu",
        "CPU-to-CPU latency",
        "One cache line bounced between two pinned threads, ns round trip ÷ 2.",
        matrix(noise, 64, 210.0),
        classes(),
    );
    let beside = chart(
        "cpu-to-cpu-loaded",
        "The same beside a stream",
        "All other cores copy memory.",
        matrix(noise, 64, 320.0),
        classes(),
    );
    vec![cpu_pairs, beside, samples]
}

pub fn matrix(noise: &mut Noise, cpus: usize, far: f64) -> ChartKind {
    // CPU n and n + half share a core, four cores an L3; there are two packages.
    let half = cpus / 2;
    let place = |cpu: usize| (cpu % half * 2 / half, cpu % half / 4, cpu % half);
    let mut value = |a: usize, b: usize| {
        let (a, b) = (place(a), place(b));
        let base = if a.2 == b.2 {
            9.5
        } else if a.1 == b.1 {
            24.0
        } else if a.0 == b.0 {
            88.0
        } else {
            far - 14.0
        };
        base * (1.0 + 0.02 * noise.normal())
    };
    let values = (0..cpus).map(|a| (0..cpus).map(|b| (a != b).then(|| value(a, b))).collect()).collect();
    let mut topology_order: Vec<usize> = (0..cpus).collect();
    topology_order.sort_by_key(|cpu| (place(*cpu), *cpu));
    let side = Side {
        title: "CPU".to_owned(),
        labels: (0..cpus).map(|cpu| cpu.to_string()).collect(),
        topology_order,
    };
    ChartKind::Matrix {
        unit: "ns".to_owned(),
        rows: side.clone(),
        columns: side,
        values,
        rejected: Vec::new(),
    }
}

pub fn classes() -> Table {
    let rows = [("same core", 9.5), ("same L3", 24.0), ("same package", 88.0), ("other package", 196.0)];
    let rows = rows.map(|(name, value)| vec![Cell::Text(name.to_owned()), number(value)]);
    table(&[("pair", false), ("ns", true)], rows.to_vec())
}

fn numbers(noise: &mut Noise, long: bool) -> Table {
    let kinds = [
        VerdictKind::Trusted,
        VerdictKind::TrustedWithCause,
        VerdictKind::Imprecise,
        VerdictKind::Multimodal,
        VerdictKind::Drifting,
        VerdictKind::Rejected,
        VerdictKind::Skipped,
        VerdictKind::Unverified,
    ];
    let rows = (0..if long { 400 } else { 16 }).map(|index| {
        let raw: Vec<f64> = (0..40).map(|_| 5.0 + noise.normal()).collect();
        vec![
            Cell::Code(format!("memory.latency same-llc size={}KiB#latency", 4 << (index % 12))),
            Cell::Number("9 × 5".to_owned()),
            number(raw[0]),
            Cell::Text("µs".to_owned()),
            Cell::Number(format!("±{:.1} %", 1.0 + raw[1].abs())),
            if index % 7 == 6 { Cell::Empty } else { Cell::Distribution(raw) },
            Cell::Verdict(verdict(kinds[index % kinds.len()])),
        ]
    });
    let columns = [
        ("series", false),
        ("samples", true),
        ("median", true),
        ("", false),
        ("spread", true),
        ("distribution", false),
        ("verdict", false),
    ];
    Table { folded: long, ..table(&columns, rows.collect()) }
}

fn conditions(noise: &mut Noise) -> Block {
    let lines =
        ["cpu0 frequency, GHz", "cpu1 frequency, GHz", "steal, %"].iter().enumerate().map(|(index, name)| {
            let points = (0..240).map(|second| {
                let y =
                    [3.65, 3.6, 1.0][index] + 0.05 * noise.normal() + if second > 120 { -0.3 } else { 0.0 };
                LinePoint { x: f64::from(second), y: y.max(0.0), low_high: None, hollow: false }
            });
            Line { name: (*name).to_owned(), points: points.collect(), joined: true }
        });
    let axis = |title: &str| Axis { title: title.to_owned(), scale: Scale::Linear };
    let kind = ChartKind::Lines {
        x: axis("seconds"),
        y: axis(""),
        lines: lines.collect(),
        marks: vec![(120.0, "gate".to_owned())],
        callouts: Vec::new(),
    };
    chart(
        "time-lines",
        "Frequency and steal",
        "Once a second.",
        kind,
        table(&[("second", true)], vec![vec![number(1.0)]]),
    )
}

fn method() -> Vec<Block> {
    let text = "Median with an exact order-statistic interval over process medians. Windows of one process are not independent, so they count singly only where they were found to be.\n\nWarm-up and outliers are marked and explained, never deleted.";
    vec![Block::Prose(text.to_owned())]
}

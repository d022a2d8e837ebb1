//! The charts of a study of rising load: work, IPC or what stands in for it, CPU%, attainment, and
//! the gap.

use super::ratio_words;
use crate::block::{Axis, Cell, Chart, ChartKind, Column, Line, LinePoint, Table};
use crate::sections::figures::value_words;
use crate::sections::names::placement_words;
use crate::sections::{column, number, right, text};
use diagnose::capacity::{Level, PlacementLevels, Study};
use model::vocabulary::MetricId;
use model::vocabulary::smt as ids;
use model::{VerdictKind, percent};

/// Those for which something was measured.
pub fn all(study: &Study) -> Vec<Chart> {
    let charts = [performance(study), ratios(study), cpu_of_levels(study), attainment(study), gap(study)];
    charts.into_iter().flatten().collect()
}

fn hollow(level: &Level, metric: MetricId) -> bool {
    level.judged(metric).is_some_and(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected)
}

/// CPU% of the CPUs of an arm, 0..100.
fn cpu_percent(arm: &PlacementLevels, level: &Level) -> Option<f64> {
    Some(level.median(ids::metric::CPU)? / arm.cpus as f64)
}

fn interval(level: &Level, metric: MetricId) -> Option<[f64; 2]> {
    let interval = level.judged(metric)?.analysis.figure()?.interval?;
    Some([interval.low, interval.high])
}

/// A line a placement: a metric over CPU%.
fn over_cpu(study: &Study, metric: MetricId) -> Vec<Line> {
    let line = |arm: &PlacementLevels| {
        let point = |level: &Level| {
            Some(LinePoint {
                x: cpu_percent(arm, level)?,
                y: level.median(metric)?,
                low_high: interval(level, metric),
                hollow: hollow(level, metric),
            })
        };
        Line {
            name: arm_name(study, arm),
            points: arm.levels.iter().filter_map(point).collect(),
            joined: true,
        }
    };
    study.arms.iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

fn arm_name(study: &Study, arm: &PlacementLevels) -> String {
    let cpus = &arm.case.placement;
    match (arm.name(), study.smt) {
        ("one-cpu", true) => "one CPU: one thread of a core".to_string(),
        (name, _) => format!("{}: CPUs {}", placement_words(name), cpus.cpus()),
    }
}

/// Everything of every level: what the charts are drawn from.
fn data(study: &Study) -> Table {
    const METRICS: [(MetricId, &str); 10] = [
        (ids::metric::WALL, "time of the fixed work"),
        (ids::metric::PERFORMANCE, "work"),
        (ids::metric::CPU, "CPU%, together"),
        (ids::metric::CPU_TICKS, "as top adds it up"),
        (ids::metric::ATTAINMENT, "work per %"),
        (ids::metric::IPC, "IPC"),
        (ids::metric::PER_BUSY, "work per busy second"),
        (ids::metric::BUSY_BOTH, "both at work"),
        (ids::metric::P99, "request, p99"),
        (ids::metric::CLOCK, "clock"),
    ];
    let there: Vec<(MetricId, &str)> = METRICS
        .into_iter()
        .filter(|(metric, _)| {
            study.arms.iter().any(|arm| arm.levels.iter().any(|level| level.median(*metric).is_some()))
        })
        .collect();
    let mut columns = vec![column("placement"), right("level")];
    columns.extend(there.iter().map(|(_, title)| right(title)));
    columns.extend([right("core used"), column("verdict")]);
    let s = study.main().map(|second| second.found.throughput.value);
    let mut rows = Vec::new();
    for arm in &study.arms {
        let is_pair = study.pair().is_some_and(|pair| std::ptr::eq(pair.case, arm.case));
        for level in &arm.levels {
            let mut row = vec![text(placement_words(arm.name())), number(level.level.to_string())];
            row.extend(
                there
                    .iter()
                    .map(|(metric, _)| number(level.judged(*metric).map_or("–".to_string(), value_words))),
            );
            let used = s.filter(|_| is_pair).and_then(|s| level.used(s, study.smt));
            row.push(number(used.map_or(String::new(), |used| {
                if used.lo == used.hi {
                    percent(used.mid)
                } else {
                    format!("{} ({}–{})", percent(used.mid), percent(used.lo), percent(used.hi))
                }
            })));
            let verdict =
                level.judged(ids::metric::PERFORMANCE).map(|judged| judged.analysis.verdict.clone());
            row.push(verdict.map_or(Cell::Empty, Cell::Verdict));
            rows.push(row);
        }
    }
    Table::new(columns, rows).folded()
}

fn chart(
    id: &str,
    title: &str,
    about: String,
    [x, y]: [&str; 2],
    lines: Vec<Line>,
    data: Table,
) -> Option<Chart> {
    (!lines.is_empty()).then(|| {
        Chart::new(
            format!("chart-capacity-{id}"),
            title,
            ChartKind::lines(Axis::linear(x), Axis::linear(y), lines),
            data,
        )
        .about(about)
    })
}

fn performance(study: &Study) -> Option<Chart> {
    let unit = &study.arms.first()?.full()?.judged(ids::metric::PERFORMANCE)?.series.metric.unit;
    chart(
        "performance",
        "Work done over CPU%",
        "Medians with 95 % intervals, one point per level. Two threads of one core bend \
                 where two cores keep rising. Hollow: rejected."
            .into(),
        ["CPU% of the placement's CPUs", &format!("work, {unit}")],
        over_cpu(study, ids::metric::PERFORMANCE),
        data(study),
    )
}

/// Two over one at each level: IPC, or what stands in for it.
fn ratios(study: &Study) -> Option<Chart> {
    let one = study.arm("one-cpu")?;
    let (metric, title) = match study.no_ipc {
        None => (ids::metric::IPC, "IPC of two over IPC of one"),
        Some(_) => (ids::metric::PER_BUSY, "Work per second of CPU time, of two over one (no IPC here)"),
    };
    let pairs = study.arms.iter().filter(|arm| arm.cpus == 2);
    let mut rows = Vec::new();
    let lines: Vec<Line> = pairs
        .map(|arm| {
            let point = |level: &Level| {
                let alone = one.levels.iter().find(|alone| alone.level == level.level)?;
                let ratio = level.over(alone, metric)?;
                rows.push(vec![
                    text(placement_words(arm.name())),
                    number(level.level.to_string()),
                    number(ratio_words(Some(&ratio))),
                ]);
                Some(LinePoint {
                    x: level.level as f64,
                    y: ratio.ratio,
                    low_high: ratio.interval.map(|between| [between.low, between.high]),
                    hollow: hollow(level, metric),
                })
            };
            let points = arm.levels.iter().filter_map(point).collect();
            Line { name: arm_name(study, arm), points, joined: true }
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    let columns: Vec<Column> = vec![column("placement"), right("level"), right("two over one (95 %)")];
    chart(
        "ratio",
        title,
        "Pairs from one pass, with the 95 % interval of their median. 1: each of the \
                 two works as if alone. Threads of one core fall towards half of their yield as load grows."
            .into(),
        ["level of load", "two over one"],
        lines,
        Table::new(columns, rows).folded(),
    )
}

/// CPU% at each level: tasks that share a core are busier with the same pauses.
fn cpu_of_levels(study: &Study) -> Option<Chart> {
    let mut rows = Vec::new();
    let lines: Vec<Line> = study
        .arms
        .iter()
        .map(|arm| {
            let point = |level: &Level| {
                let cpu = cpu_percent(arm, level)?;
                rows.push(vec![
                    text(placement_words(arm.name())),
                    number(level.level.to_string()),
                    number(level.judged(ids::metric::CPU).map_or(String::new(), value_words)),
                ]);
                let each = |end: f64| end / arm.cpus as f64;
                Some(LinePoint {
                    x: level.level as f64,
                    y: cpu,
                    low_high: interval(level, ids::metric::CPU).map(|ends| ends.map(each)),
                    hollow: hollow(level, ids::metric::CPU),
                })
            };
            let points = arm.levels.iter().filter_map(point).collect();
            Line { name: arm_name(study, arm), points, joined: true }
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    chart(
        "cpu",
        "CPU% at each level of load",
        "Pauses are equal in all placements. Threads that share a core take longer per \
                 request, so they show more CPU% for the same load."
            .into(),
        ["level of load", "CPU% of the placement's CPUs"],
        lines,
        Table::new(vec![column("placement"), right("level"), right("CPU%, together")], rows).folded(),
    )
}

fn attainment(study: &Study) -> Option<Chart> {
    let rows = study.arms.iter().flat_map(|arm| {
        arm.levels.iter().map(|level| {
            let cpu = cpu_percent(arm, level).map_or("–".to_string(), |cpu| format!("{cpu:.1} %"));
            let work = level.judged(ids::metric::ATTAINMENT).map_or("–".to_string(), value_words);
            vec![
                text(placement_words(arm.name())),
                number(level.level.to_string()),
                number(cpu),
                number(work),
            ]
        })
    });
    let columns = vec![column("placement"), right("level"), right("CPU%"), right("work per % of CPU")];
    chart(
        "attainment",
        "Attainment: work per % of CPU",
        "Flat: CPU% matches the work done. Falling: each further percent of CPU adds less work.".into(),
        ["CPU% of the placement's CPUs", "work per % of CPU"],
        over_cpu(study, ids::metric::ATTAINMENT),
        Table::new(columns, rows).folded(),
    )
}

/// Work done minus CPU%, on a core whose threads are taken one after the other.
fn gap(study: &Study) -> Option<Chart> {
    let core = study.first()?;
    let points = core.attainment();
    let rows = points.iter().map(|(share, attained)| {
        vec![number(percent(*share)), number(percent(*attained)), number(percent(attained - share))]
    });
    let line = Line {
        name: "work done minus CPU%".into(),
        points: points
            .iter()
            .map(|(share, attained)| LinePoint::at(share * 100.0, (attained - share) * 100.0))
            .collect(),
        joined: true,
    };
    let found = study.gap()?;
    let points = |share: f64| percent(share).trim_end_matches(" %").to_string();
    let interval = found
        .interval
        .map_or(String::new(), |between| format!(" ({}–{})", points(between.low), points(between.high)));
    let columns = vec![right("CPU%"), right("share of the capacity"), right("ahead of CPU%")];
    chart(
        "gap",
        "Work done minus CPU%",
        format!(
            "Share of the capacity in use, less CPU%: at most {} points{interval}, at CPU% {}. {}",
            points(found.gap),
            points(found.at),
            if study.smt {
                "One thread of the core up to full load; from there in a straight line to both at full load."
            } else {
                "One core up to full load; from there in a straight line to both."
            }
        ),
        ["CPU%", "ahead, % of the capacity"],
        vec![line],
        Table::new(columns, rows).folded(),
    )
}

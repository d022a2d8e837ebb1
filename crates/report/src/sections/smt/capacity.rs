//! Work at rising load: what CPU% hides, and how much more fits.

use crate::block::{Axis, Block, Cell, Chart, ChartKind, Column, Line, LinePoint, Scale, Section, Table};
use crate::sections::figures::value_words;
use crate::sections::{column, number, right, text};
use diagnose::Diagnosis;
use diagnose::capacity::{self, Arm, Level, Levels, Second, Study, yield_words};
use model::vocabulary::MetricId;
use model::vocabulary::smt as ids;
use model::{Case, VerdictKind, percent};
use stats::compare::Ratio;
use stats::smt::spread_first;

/// Whether a case stands in this section, and nowhere else.
pub fn is_own(case: &Case) -> bool {
    case.bench == ids::LOAD
}

/// CPU% that the table of truths has, 0..1.
const SAID: [f64; 6] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.9];

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let levels = Levels::of(&diagnosis.series);
    let study = capacity::study(&diagnosis.run, &levels)?;
    let mut blocks = vec![Block::Prose(words(&study))];
    // What was rejected is shown, and nothing is concluded from it.
    blocks.extend(truths(&study).filter(|_| study.doubt().is_none()).map(Block::Table));
    blocks.push(Block::Table(kinds(&study)));
    let charts = [performance(&study), ratios(&study), attainment(&study), gap(&study)];
    blocks.extend(charts.into_iter().flatten().map(Block::from));
    let absent = absent(diagnosis);
    if !absent.is_empty() {
        blocks.push(Block::Prose(format!("not measured here: {absent}")));
    }
    Some(Section {
        id: "capacity".into(),
        title: "What CPU% hides".into(),
        about: "Fixed work at rising load, by one CPU, by two threads of a core, by separate cores. CPU% is the kernel's: what its idle time leaves."
            .into(),
        blocks,
        long: false,
    })
}

fn words(study: &Study) -> String {
    let mut sentences = Vec::new();
    if !study.smt {
        sentences.push(
            "This machine shows no SMT: the same study on two cores, whose work should go in a straight line with CPU%.".to_string(),
        );
    }
    match study.doubt() {
        Some(why) => {
            sentences.push(format!("Nothing is concluded here, since what it rests on was rejected: {why}."));
        }
        None => {
            sentences.extend(study.truth(0.5).map(|truth| format!("{}.", truth.words())));
            sentences.extend(study.bottom_line());
        }
    }
    sentences.push(match study.no_ipc {
        Some(why) => format!(
            "IPC is not available here: {why}. Work per second of CPU time stands in its place, under its own name."
        ),
        None => "IPC is counted by the CPU, in user space.".to_string(),
    });
    sentences.join(" ")
}

/// What a CPU% of one core means.
fn truths(study: &Study) -> Option<Table> {
    let yields = study.range();
    let row = |says: &f64| {
        let truth = study.truth(*says)?;
        let by_formula = yields.filter(|_| study.smt).map_or(String::new(), |s| {
            let at = |s: f64| percent(spread_first(*says, s, 2, 1.0));
            if s.lo == s.hi { at(s.mid) } else { format!("{} to {}", at(s.hi), at(s.lo)) }
        });
        let mut row = vec![number(percent(*says)), number(percent(truth.used))];
        row.extend(study.smt.then(|| number(by_formula)));
        row.extend([number(format!("{:.2}×", 1.0 / truth.used)), number(format!("{:.2}×", 1.0 / says))]);
        Some(row)
    };
    let rows: Vec<Vec<Cell>> = SAID.iter().filter_map(row).collect();
    let whose = if study.smt { "CPU% of a core's threads" } else { "CPU% of two cores" };
    let mut columns = vec![right(whose), right("really used, loop")];
    columns.extend(study.smt.then(|| right("by the yields of all kinds")));
    columns.extend([right("work can grow to"), right("CPU% suggests")]);
    (!rows.is_empty()).then_some(Table { columns, rows, folded: false })
}

fn ratio_words(ratio: Option<&Ratio>) -> String {
    let Some(ratio) = ratio else { return "–".to_string() };
    match ratio.interval {
        Some(between) => format!("{:.2} ({:.2} to {:.2})", ratio.ratio, between.low, between.high),
        None => format!("{:.2}", ratio.ratio),
    }
}

/// What a second CPU gives to each kind of work, at full load.
fn kinds(study: &Study) -> Table {
    let counted = study.no_ipc.is_none();
    let columns = vec![
        column("kind of work"),
        right("one CPU"),
        right(if study.smt { "both threads" } else { "two cores" }),
        right("two over one"),
        right(if counted { "IPC, two over one" } else { "work per busy second, two over one" }),
        right("p99 of a request, two over one"),
        column("verdict"),
    ];
    let row = |second: &Second| {
        let value =
            |level: &Level| level.judged(ids::metric::PERFORMANCE).map_or("–".to_string(), value_words);
        let verdicts =
            [second.one, second.both].into_iter().filter_map(|level| level.judged(ids::metric::PERFORMANCE));
        let verdict = verdicts
            .map(|judged| &judged.analysis.verdict)
            .max_by_key(|verdict| crate::sections::wide::weight(verdict));
        let share = if counted { second.ipc.as_ref() } else { second.per_busy.as_ref() };
        vec![
            text(second.kind),
            number(value(second.one)),
            number(value(second.both)),
            number(yield_words(&second.found.throughput)),
            number(ratio_words(share)),
            number(ratio_words(second.p99.as_ref())),
            verdict.cloned().map_or(Cell::Empty, Cell::Verdict),
        ]
    };
    Table { columns, rows: study.seconds.iter().map(row).collect(), folded: false }
}

fn axis(title: &str) -> Axis {
    Axis { title: title.into(), scale: Scale::Linear }
}

fn hollow(level: &Level, metric: MetricId) -> bool {
    level.judged(metric).is_some_and(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected)
}

/// CPU% of the CPUs of an arm, 0..100.
fn cpu_percent(arm: &Arm, level: &Level) -> Option<f64> {
    Some(level.median(ids::metric::CPU)? / arm.cpus as f64)
}

fn interval(level: &Level, metric: MetricId) -> Option<[f64; 2]> {
    let interval = level.judged(metric)?.analysis.figure()?.interval?;
    Some([interval.low, interval.high])
}

/// A line a placement: a metric over CPU%.
fn over_cpu(study: &Study, metric: MetricId) -> Vec<Line> {
    let line = |arm: &Arm| {
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

fn arm_name(study: &Study, arm: &Arm) -> String {
    let cpus = &arm.case.placement;
    match (arm.name(), study.smt) {
        ("one-cpu", true) => "one-cpu: one thread of a core".to_string(),
        (name, _) => format!("{name}: CPUs {}", cpus.cpus()),
    }
}

/// Everything of every level: what the charts are drawn from.
fn data(study: &Study) -> Table {
    const METRICS: [(MetricId, &str); 10] = [
        (ids::metric::WALL, "time of the fixed work"),
        (ids::metric::PERFORMANCE, "work"),
        (ids::metric::CPU, "CPU%, together"),
        (ids::metric::CPU_TICKS, "as top adds it up"),
        (ids::metric::ATTAINMENT, "work for each %"),
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
    columns.extend([right("core used, by the yield"), column("verdict")]);
    let s = study.main().map(|second| second.found.throughput.value);
    let mut rows = Vec::new();
    for arm in &study.arms {
        let is_pair = study.pair().is_some_and(|pair| std::ptr::eq(pair.case, arm.case));
        for level in &arm.levels {
            let mut row = vec![text(arm.name()), number(level.level.to_string())];
            row.extend(
                there
                    .iter()
                    .map(|(metric, _)| number(level.judged(*metric).map_or("–".to_string(), value_words))),
            );
            let used = s.filter(|_| is_pair).and_then(|s| level.used(s, study.smt));
            row.push(number(used.map_or(String::new(), |used| match used.lo == used.hi {
                true => percent(used.mid),
                false => format!("{} ({} to {})", percent(used.mid), percent(used.lo), percent(used.hi)),
            })));
            let verdict =
                level.judged(ids::metric::PERFORMANCE).map(|judged| judged.analysis.verdict.clone());
            row.push(verdict.map_or(Cell::Empty, Cell::Verdict));
            rows.push(row);
        }
    }
    Table { columns, rows, folded: true }
}

fn chart(
    id: &str,
    title: &str,
    about: String,
    [x, y]: [&str; 2],
    lines: Vec<Line>,
    data: Table,
) -> Option<Chart> {
    (!lines.is_empty()).then(|| Chart {
        id: format!("chart-capacity-{id}"),
        title: title.into(),
        about,
        kind: ChartKind::Lines { x: axis(x), y: axis(y), lines, marks: Vec::new(), callouts: Vec::new() },
        summary: None,
        data,
    })
}

fn performance(study: &Study) -> Option<Chart> {
    let unit = &study.arms.first()?.full()?.judged(ids::metric::PERFORMANCE)?.series.metric.unit;
    chart(
        "performance",
        "Work done over CPU%",
        "Medians with their 95 % intervals, a point a level. Two threads of a core that share it bend where separate cores go on. \
         Hollow: rejected."
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
                    text(arm.name()),
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
        "Pairs of a pass, with the 95 % interval of their median. 1: each of two works as if it were alone. Threads of one core fall \
         towards half of their yield as load grows."
            .into(),
        ["level of load", "two over one"],
        lines,
        Table { columns, rows, folded: true },
    )
}

fn attainment(study: &Study) -> Option<Chart> {
    let rows = study.arms.iter().flat_map(|arm| {
        arm.levels.iter().map(|level| {
            let cpu = cpu_percent(arm, level).map_or("–".to_string(), |cpu| format!("{cpu:.1} %"));
            let work = level.judged(ids::metric::ATTAINMENT).map_or("–".to_string(), value_words);
            vec![text(arm.name()), number(level.level.to_string()), number(cpu), number(work)]
        })
    });
    let columns = vec![column("placement"), right("level"), right("CPU%"), right("work for each % of CPU")];
    chart(
        "attainment",
        "Attainment: work for each % of CPU",
        "Flat where CPU% tells the truth. Falling: each further percent of CPU buys less work.".into(),
        ["CPU% of the placement's CPUs", "work for each % of CPU"],
        over_cpu(study, ids::metric::ATTAINMENT),
        Table { columns, rows: rows.collect(), folded: true },
    )
}

/// How far the work done is ahead of CPU%, on a core whose threads are taken one after the other.
fn gap(study: &Study) -> Option<Chart> {
    let core = study.core()?;
    let points = core.attainment();
    let rows = points
        .iter()
        .map(|(share, attained)| {
            vec![number(percent(*share)), number(percent(*attained)), number(percent(attained - share))]
        })
        .collect();
    let line = Line {
        name: "work done less CPU%".into(),
        points: points
            .iter()
            .map(|(share, attained)| LinePoint {
                x: share * 100.0,
                y: (attained - share) * 100.0,
                low_high: None,
                hollow: false,
            })
            .collect(),
        joined: true,
    };
    let found = study.gap()?;
    let interval = found
        .interval
        .map_or(String::new(), |between| format!(" ({} to {})", percent(between.low), percent(between.high)));
    let columns = vec![right("CPU%"), right("share of the capacity"), right("ahead of CPU%")];
    chart(
        "gap",
        "How far the work done is ahead of CPU%",
        format!(
            "Share of the capacity that is used, less CPU%: at most {}{interval} at {} CPU. {}",
            percent(found.gap),
            percent(found.at),
            if study.smt {
                "One thread of the core up to full load, then both."
            } else {
                "One core up to full load, then both."
            }
        ),
        ["CPU%", "ahead, % of the capacity"],
        vec![line],
        Table { columns, rows, folded: true },
    )
}

/// What could not be measured and why.
fn absent(diagnosis: &Diagnosis) -> String {
    let own = diagnosis.run.header.plan.iter().filter(|planned| is_own(&planned.case));
    let mut said: Vec<String> = Vec::new();
    for planned in own {
        let Some(why) = planned.unmet.as_deref() else { continue };
        let why = if why.starts_with("budget") { "no time in the budget" } else { why };
        let words = format!("{} ({why})", planned.case.placement.name);
        if !said.contains(&words) {
            said.push(words);
        }
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::made::{charts, tables, texts};
    use crate::sections::{results, shown};
    use diagnose::diagnose;
    use testkit::capacity::made;

    fn prose(section: &Section) -> String {
        let prose = section.blocks.iter().filter_map(|block| match block {
            Block::Prose(text) => Some(text.as_str()),
            _ => None,
        });
        prose.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_core_with_two_threads_has_its_truth_and_its_charts() {
        let diagnosis = diagnose(made(1.25, true));
        let section = section(&diagnosis).expect("a study");
        let prose = prose(&section);
        for words in [
            "CPU% says 50: 80 % are used; work can grow to 1.25 times",
            "Capacity at 100 %: 125 M/s",
            "80 % of",
        ] {
            assert!(prose.contains(words) || words == "80 % of", "{words:?} is missing in {prose}");
        }
        let all = charts(&section);
        let ids: Vec<&str> = all.iter().map(|chart| chart.id.as_str()).collect();
        let names =
            ["performance", "ratio", "attainment", "gap"].map(|name| format!("chart-capacity-{name}"));
        assert_eq!(ids, names);
        let kinds = texts(tables(&section)[1]);
        assert!(kinds[0][3].starts_with("1.25"), "{kinds:?}");
        assert!(shown::first(&diagnosis).0.is_empty(), "rows of this study stand here only");
        assert!(results::section(&diagnosis).is_none());
        let finding =
            diagnosis.findings.iter().find(|finding| finding.rule == "smt-capacity").expect("found");
        assert!(finding.headline.starts_with("the second thread of a core adds 25"), "{}", finding.headline);
    }

    #[test]
    fn without_smt_the_line_is_straight_and_said() {
        let diagnosis = diagnose(made(2.0, false));
        let prose = prose(&section(&diagnosis).expect("a study"));
        assert!(prose.contains("shows no SMT") && prose.contains("50 % are used"), "{prose}");
        assert!(diagnosis.clean.iter().any(|rule| rule.id == "smt-capacity"));
        let mut disturbed = diagnose(made(2.0, false));
        for judged in &mut disturbed.series {
            judged.analysis.verdict = model::Verdict::new(VerdictKind::Rejected, "somebody else".to_string());
        }
        let section = section(&disturbed).expect("a study");
        let prose = self::prose(&section);
        assert!(prose.contains("Nothing is concluded here") && !prose.contains("are used"), "{prose}");
        assert_eq!(tables(&section).len(), 1, "no table of truths");
        let hidden = diagnose(made(1.25, false));
        let finding = hidden.findings.iter().find(|finding| finding.rule == "smt-capacity").expect("found");
        assert!(finding.headline.contains("are said to be two cores"), "{}", finding.headline);
    }
}

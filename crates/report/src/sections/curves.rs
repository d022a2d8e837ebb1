//! Charts over a parameter.

use super::figures::value_words;
use super::levels::{claimed_caches, levels};
use super::names::{PLACE, Subject, Trait, placement_words, told_apart, traits_with_place};
use super::{column, number, right, text};
use crate::block::{Axis, Block, Cell, Chart, ChartKind, Line, LinePoint, Scale, Section, Table};
use diagnose::words::bytes;
use diagnose::{Diagnosis, Wake};
use model::vocabulary::cpu::FREQUENCY_RAMP;
use model::vocabulary::cpu::param::AT_US;
use model::{Case, Metric, Title, VerdictKind};
use stats::analysis::Judged;

/// More lines than this are hard to distinguish in one chart, which is divided if possible; lines
/// that differ in a number, as a family does, may be a few more.
const MAX_LINES: usize = 8;
const MAX_FAMILY_LINES: usize = 12;

/// A case and what was measured of it at rising places.
type Curve<'a> = (&'a Case, Vec<(f64, &'a Judged)>);

pub fn section(diagnosis: &Diagnosis, title: &Title, x: &str, log: bool) -> Option<Section> {
    let metric = title.metrics.iter().find(|metric| metric.headline)?;
    let own =
        |judged: &&Judged| judged.series.case.bench == title.id && judged.series.metric.name == metric.name;
    let mut curves: Vec<Curve> = Vec::new();
    let mut last = None;
    for judged in diagnosis.series.iter().filter(own) {
        let at = judged.series.point.named(x).and_then(|value| value.number());
        let (Some(at), Some(_)) = (at, judged.analysis.figure()) else { continue };
        if last != Some(judged.series.planned) {
            curves.push((&judged.series.case, Vec::new()));
            last = Some(judged.series.planned);
        }
        curves.last_mut()?.1.push((at, judged));
    }
    if curves.is_empty() {
        return None;
    }
    let id = title.id.replace('.', "-");
    // One place makes no curve: the results say it.
    let flat = curves.iter().all(|(_, points)| points.len() < 2);
    let curves = if flat { Vec::new() } else { curves };
    let charts = split(curves).into_iter().enumerate().map(|(index, (name, curves))| {
        let suffix = if name.is_empty() { String::new() } else { format!(", {name}") };
        Block::from(Chart {
            id: if index == 0 { format!("chart-{id}") } else { format!("chart-{id}-{index}") },
            title: format!("{}{suffix}", title.title),
            ..chart(diagnosis, metric, &curves, x, log)
        })
    });
    // What the curves of a wake-up come to stands before them, a sentence a curve.
    let wakes = if title.id == FREQUENCY_RAMP { diagnosis.wakes() } else { Vec::new() };
    let words: Vec<String> = wakes.iter().map(Wake::sentence).collect();
    let words = (!words.is_empty()).then(|| Block::Prose(words.join(" ")));
    let mut blocks: Vec<Block> = words.into_iter().chain(charts).collect();
    // What is measured beside the curve (the parts of a hop) stands beside it.
    if title.metrics.len() > 2 {
        blocks.extend(
            super::wide::table(diagnosis, title, &super::wide::shown(title))
                .map(|table| Block::Table(Table { folded: !flat, ..table })),
        );
    }
    Section::new(id, &*title.title, blocks).about(&*title.reading).long().unless_empty()
}

/// Cases that stand in one chart together: all, or those of one placement, or those that also share
/// a word.
pub fn split<T>(cases: Vec<(&Case, T)>) -> Vec<(String, Vec<(&Case, T)>)> {
    divide(String::new(), sorted(cases))
}

/// In the order of the plan, but families by their numbers.
fn sorted<T>(cases: Vec<(&Case, T)>) -> Vec<(&Case, T)> {
    let mut families: Vec<Vec<Trait>> = Vec::new();
    let mut placed: Vec<(usize, (&Case, T))> = Vec::new();
    for (case, more) in cases {
        let words: Vec<Trait> = traits_with_place(case).into_iter().filter(|one| !one.number).collect();
        let family = families.iter().position(|other| *other == words).unwrap_or_else(|| {
            families.push(words);
            families.len() - 1
        });
        placed.push((family, (case, more)));
    }
    let numbers = |case: &Case| case.params.values().filter_map(|value| value.number()).collect::<Vec<f64>>();
    placed.sort_by(|(family, (case, _)), (other_family, (other, _))| {
        let order = numbers(case).partial_cmp(&numbers(other)).unwrap_or(std::cmp::Ordering::Equal);
        family.cmp(other_family).then(order)
    });
    placed.into_iter().map(|(_, case)| case).collect()
}

fn divide<T>(name: String, cases: Vec<(&Case, T)>) -> Vec<(String, Vec<(&Case, T)>)> {
    if cases.is_empty() {
        return Vec::new();
    }
    let words = |case: &Case, by: &str| {
        let own = traits_with_place(case).into_iter().find(|one| one.name == by);
        // A word that only names another parameter (`order=stride&stride=64`) is said by that.
        own.map_or(String::new(), |one| if one.words.is_empty() { case_word(case, by) } else { one.words })
    };
    let differ = |by: &String| {
        let first = words(cases[0].0, by);
        cases.iter().any(|(case, _)| words(case, by) != first)
    };
    let all: Vec<Trait> = cases.iter().flat_map(|(case, _)| traits_with_place(case)).collect();
    let family = all.iter().any(|one| one.number && differ(&one.name));
    if cases.len() <= if family { MAX_FAMILY_LINES } else { MAX_LINES } {
        return vec![(name, cases)];
    }
    let mut by = vec![PLACE.to_string()];
    for one in all.into_iter().filter(|one| !one.number) {
        if !by.contains(&one.name) {
            by.push(one.name);
        }
    }
    let Some(by) = by.into_iter().find(differ) else { return vec![(name, cases)] };
    let mut groups: Vec<(String, Vec<(&Case, T)>)> = Vec::new();
    for (case, more) in cases {
        let group = words(case, &by);
        match groups.iter_mut().find(|(other, _)| *other == group) {
            Some((_, list)) => list.push((case, more)),
            None => groups.push((group, vec![(case, more)])),
        }
    }
    if by != PLACE {
        groups = together(groups);
    }
    let named = groups.into_iter().map(|(group, cases)| {
        let both = [name.as_str(), group.as_str()].into_iter().filter(|word| !word.is_empty());
        (both.collect::<Vec<_>>().join(", "), cases)
    });
    named.flat_map(|(name, cases)| divide(name, cases)).collect()
}

/// Neighbouring groups that one chart has room for, about as many lines in each chart: what is
/// compared should stand side by side.
fn together<T>(groups: Vec<(String, Vec<T>)>) -> Vec<(String, Vec<T>)> {
    let lines: usize = groups.iter().map(|(_, list)| list.len()).sum();
    let most = lines.div_ceil(lines.div_ceil(MAX_LINES).max(1));
    let mut merged: Vec<(Vec<String>, Vec<T>)> = Vec::new();
    for (name, list) in groups {
        match merged.last_mut() {
            Some((names, before)) if before.len() + list.len() <= most => {
                names.push(name);
                before.extend(list);
            }
            _ => merged.push((vec![name], list)),
        }
    }
    merged.into_iter().map(|(names, list)| (listed(names), list)).collect()
}

/// `read, write and copy`.
fn listed(mut names: Vec<String>) -> String {
    names.retain(|name| !name.is_empty());
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn case_word(case: &Case, by: &str) -> String {
    case.params.named(by).map_or(String::new(), |value| value.to_string())
}

fn chart(diagnosis: &Diagnosis, metric: &Metric, curves: &[Curve], x: &str, log: bool) -> Chart {
    let names = told_apart(&curves.iter().map(|(case, _)| *case).collect::<Vec<_>>());
    let subject = Subject::of(x);
    let sizes = matches!(subject, Subject::Bytes | Subject::Message);
    // Time since a wake-up in decades, over it a clock, of which half is half as high.
    let wake_up = x == AT_US.as_str();
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for ((case, points), name) in curves.iter().zip(&names) {
        let point = |(at, judged): &(f64, &Judged)| {
            let estimate = judged.analysis.figure()?;
            let low_high = estimate.interval.map(|interval| [interval.low, interval.high]);
            // A rejected number is shown, but a line through it would say that it is one.
            let hollow = judged.analysis.verdict.kind == VerdictKind::Rejected;
            Some(LinePoint { x: *at, y: estimate.median, low_high, hollow })
        };
        lines.push(Line {
            name: name.clone(),
            points: points.iter().filter_map(point).collect(),
            // Between two CPUs there is nothing.
            joined: subject != Subject::Cpu,
        });
        rows.extend(points.iter().map(|(at, judged)| {
            let mut row = vec![
                text(if sizes { bytes(*at) } else { at.to_string() }),
                text(placement_words(&case.placement.name)),
                number(value_words(judged)),
                number(judged.analysis.figure().map_or(String::new(), |one| one.n.to_string())),
                Cell::Verdict(judged.analysis.verdict.clone()),
            ];
            if curves.len() > 1 {
                row.insert(0, text(name.clone()));
            }
            row
        }));
    }
    let mut columns =
        vec![column(x), column("placement"), right("median (95 %)"), right("n"), column("verdict")];
    if curves.len() > 1 {
        columns.insert(0, column("case"));
    }
    let cpu = curves.first().and_then(|(case, _)| case.placement.cpus().first());
    let marks = match subject {
        Subject::Bytes => marks(diagnosis, cpu),
        _ => Vec::new(),
    };
    let dashed = dashed(&marks, diagnosis);
    let scale = match (log, subject) {
        (false, _) => Scale::Linear,
        (true, _) if sizes => Scale::Bytes,
        (true, _) if wake_up => Scale::Log,
        // Whatever is swept by factors is swept by powers of two.
        (true, _) => Scale::Powers,
    };
    Chart::new(
        "",
        "",
        ChartKind::Lines {
            x: Axis { title: axis_title(x).into(), scale },
            y: Axis {
                title: super::wide::titled(metric),
                scale: if log && !wake_up { Scale::Log } else { Scale::Linear },
            },
            lines,
            marks,
            callouts: Vec::new(),
        },
        Table::new(columns, rows).folded(),
    )
    .about(format!("Median of passes with its 95 % interval. Hollow: rejected.{dashed}"))
}

/// What dashed lines are.
fn dashed(marks: &[(f64, String)], diagnosis: &Diagnosis) -> &'static str {
    match (marks.is_empty(), diagnosis.measured_caches.is_empty()) {
        (true, _) => "",
        (false, true) => " Dashed: sizes that the kernel reports.",
        (false, false) => " Dashed: sizes that the kernel reports, and the measured ones if these differ.",
    }
}

/// Ends of caches: as the kernel claims, and where the ladder shows another one that, too.
fn marks(diagnosis: &Diagnosis, cpu: Option<u32>) -> Vec<(f64, String)> {
    let claims = claimed_caches(&diagnosis.machine, cpu);
    let mut marks: Vec<(f64, String)> =
        claims.into_iter().map(|(name, size)| (size, format!("{name} {}", bytes(size)))).collect();
    let measured = levels(diagnosis, cpu).into_iter().filter(|level| level.size.by_ladder);
    marks.extend(measured.map(|level| {
        let text = format!("{} {} {}", level.name, bytes(level.size.at), level.size.source());
        (level.size.at, text)
    }));
    marks
}

fn axis_title(x: &str) -> &str {
    match x {
        "bytes" => "block",
        "message" => "message, bytes",
        "cpu" => "CPU",
        "offset" => "offset, bytes",
        "at_us" => "since the wake-up, µs",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, bandwidth, case, charts, latency, machine, of, texts};
    use super::super::shown;
    use super::*;
    use diagnose::ladder::{CacheSize, MeasuredCache};
    use model::{Metric, Params, Value, Verdict, View};

    const SIZES: [u64; 5] = [16 << 10, 1 << 20, 8 << 20, 16 << 20, 256 << 20];

    fn curve(x: &'static str, log: bool) -> View {
        View::Curve { x: x.into(), log }
    }

    fn measured(made: Made, case: Case, x: &str, metric: &Metric, points: &[(u64, f64)]) -> Made {
        let at = |(at, value): &(u64, f64)| (of(&[(x, (*at).into())]), [(metric.name.to_string(), *value)]);
        let owned: Vec<(Params, [(String, f64); 1])> = points.iter().map(at).collect();
        let values: Vec<Vec<(&str, f64)>> = owned
            .iter()
            .map(|(_, values)| values.iter().map(|(name, value)| (name.as_str(), *value)).collect())
            .collect();
        let points: Vec<_> =
            owned.iter().zip(&values).map(|((point, _), values)| (point.clone(), &values[..])).collect();
        made.case(case, &points)
    }

    /// Bandwidth over sizes of these operations at these placements.
    fn ladder(ops: &[&str], placements: &[&'static str]) -> Diagnosis {
        let mut made = Made::new(curve("bytes", true), vec![bandwidth()]);
        for placement in placements {
            for op in ops {
                let points = SIZES.map(|bytes| (bytes, 1e9 / bytes as f64));
                made = measured(
                    made,
                    case(placement, &[("op", Value::from(*op))]),
                    "bytes",
                    &bandwidth(),
                    &points,
                );
            }
        }
        made.diagnosed(machine(4))
    }

    fn section_of(diagnosis: &Diagnosis) -> Section {
        let title = &diagnosis.run.header.catalogue[0];
        let View::Curve { x, log } = &title.view else { panic!("a curve") };
        section(diagnosis, title, x, *log).expect("a section")
    }

    fn names(chart: &Chart) -> Vec<&str> {
        let ChartKind::Lines { lines, .. } = &chart.kind else { panic!("lines") };
        lines.iter().map(|line| line.name.as_str()).collect()
    }

    #[test]
    fn few_lines_share_a_chart_and_many_have_one_a_placement() {
        let few = section_of(&ladder(&["read", "copy"], &["one-cpu", "all"]));
        assert_eq!(charts(&few).len(), 1);
        assert_eq!(
            names(charts(&few)[0]),
            ["read, one CPU", "copy, one CPU", "read, all CPUs", "copy, all CPUs"]
        );
        let ops = ["read", "write", "copy", "fill", "triad"];
        let many = section_of(&ladder(&ops, &["one-cpu", "all"]));
        let titles: Vec<&str> = charts(&many).iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Test, one CPU", "Test, all CPUs"]);
        assert_eq!(names(charts(&many)[1]), ops);
        let ids: Vec<&str> = charts(&many).iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["chart-memory-test", "chart-memory-test-1"]);
    }

    #[test]
    fn too_many_lines_are_divided_evenly() {
        let ops = ["read", "write", "write-nt", "read-write", "copy", "copy-nt", "copy-rep", "fill", "triad"];
        let section = section_of(&ladder(&ops, &["one-cpu"]));
        let titles: Vec<&str> = charts(&section).iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Test, read, write, write-nt, read-write and copy", "Test, copy-nt, copy-rep, fill and triad"]
        );
        assert_eq!(names(charts(&section)[0]), ops[..5]);
        assert_eq!(names(charts(&section)[1]), ops[5..]);
    }

    #[test]
    fn families_divide_by_words_and_not_by_numbers() {
        let mut made = Made::new(curve("bytes", true), vec![bandwidth()]);
        for op in ["read", "copy"] {
            for llc in 0..10u64 {
                let case = case("per-llc", &[("op", Value::from(op)), ("llc", llc.into())]);
                made = measured(
                    made,
                    case,
                    "bytes",
                    &bandwidth(),
                    &SIZES.map(|bytes| (bytes, 10.0 + llc as f64)),
                );
            }
        }
        let diagnosis = made.diagnosed(machine(4));
        let section = section_of(&diagnosis);
        let titles: Vec<&str> = charts(&section).iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Test, read", "Test, copy"]);
        assert_eq!(names(charts(&section)[0])[..2], ["LLC 0", "LLC 1"]);
        // In the table of results the slowest and the fastest of each family.
        let labels: Vec<String> = shown::first(&diagnosis).0.into_iter().map(|shown| shown.label).collect();
        assert_eq!(labels.len(), 4 + 4, "{labels:?}");
        assert_eq!(labels.last().map(String::as_str), Some("Test, copy, LLC 9, 256 MiB (memory)"));
    }

    #[test]
    fn what_is_compared_stands_together_and_families_by_their_numbers() {
        let order = |order: &str| ("order", Value::from(order));
        let random = case("one-cpu", &[order("random")]);
        let spaced = case("one-cpu", &[order("random"), ("pace", Value::from("spaced"))]);
        let page_random = case("one-cpu", &[order("page-random")]);
        let strides = [64u64, 16, 4096, 128, 256, 512, 1024, 2048, 32, 8192];
        let mut cases = vec![random, spaced, page_random];
        cases.extend(strides.map(|bytes| case("one-cpu", &[order("stride"), ("stride", bytes.into())])));
        let divided = split(cases.iter().map(|case| (case, ())).collect());
        let names: Vec<&str> = divided.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["random and page-random", "stride"]);
        let strides = told_apart(&divided[1].1.iter().map(|(case, _)| *case).collect::<Vec<_>>());
        assert_eq!(
            (strides.len(), &strides[..2]),
            (10, &["stride 16".to_string(), "stride 32".to_string()][..])
        );
        assert_eq!(split(cases[..12].iter().map(|case| (case, ())).collect()).len(), 1, "a family and a few");
    }

    #[test]
    fn sizes_have_dashed_caches_and_rejected_points_are_hollow() {
        let mut diagnosis = ladder(&["read"], &["one-cpu"]);
        diagnosis.series[1].analysis.verdict = Verdict::new(VerdictKind::Rejected, "impossible");
        let section = section_of(&diagnosis);
        let ChartKind::Lines { x, lines, marks, .. } = &charts(&section)[0].kind else { panic!("lines") };
        assert_eq!((x.title.as_str(), x.scale), ("block", Scale::Bytes));
        let marks: Vec<&str> = marks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(marks, ["L1d 48 KiB", "L2 2 MiB", "L3 32 MiB"]);
        let hollow: Vec<bool> = lines[0].points.iter().map(|point| point.hollow).collect();
        assert_eq!(hollow, [false, true, false, false, false]);
        assert_eq!(lines.len(), 1, "in its own line's colour");
    }

    #[test]
    fn other_parameters_have_their_own_axes_and_ends() {
        let points = [(1, 90.0), (2, 45.0), (4, 23.0), (32, 9.0)];
        let made = Made::new(curve("chains", true), vec![latency()]);
        let diagnosis =
            measured(made, case("one-cpu", &[]), "chains", &latency(), &points).diagnosed(machine(4));
        let section = section_of(&diagnosis);
        let ChartKind::Lines { x, lines, marks, .. } = &charts(&section)[0].kind else { panic!("lines") };
        assert_eq!((x.title.as_str(), x.scale, marks.len()), ("chains", Scale::Powers, 0));
        assert!(lines[0].joined);
        let labels: Vec<String> = shown::first(&diagnosis).0.into_iter().map(|shown| shown.label).collect();
        assert_eq!(labels, ["Test, chains 1", "Test, chains 32"]);
    }

    #[test]
    fn cpus_are_dots_of_which_the_slowest_and_the_fastest_are_named() {
        let points = [(0, 90.0), (1, 45.0), (2, 99.0), (3, 80.0)];
        let made = Made::new(curve("cpu", false), vec![bandwidth()]);
        let diagnosis =
            measured(made, case("one-per-core", &[]), "cpu", &bandwidth(), &points).diagnosed(machine(4));
        let section = section_of(&diagnosis);
        let chart = charts(&section)[0];
        let ChartKind::Lines { x, lines, .. } = &chart.kind else { panic!("lines") };
        assert_eq!((x.title.as_str(), x.scale, lines[0].joined), ("CPU", Scale::Linear, false));
        assert_eq!(texts(&chart.data)[2][0], "2");
        let labels: Vec<String> = shown::first(&diagnosis).0.into_iter().map(|shown| shown.label).collect();
        assert_eq!(labels, ["Test, CPU 1 (slowest)", "Test, CPU 2 (fastest)"]);
    }

    #[test]
    fn results_show_fewer_levels_of_more_cases() {
        let rows = |ops: &[&str], placements: &[&'static str]| {
            let diagnosis = ladder(ops, placements);
            shown::first(&diagnosis).0.into_iter().map(|shown| shown.label).collect::<Vec<_>>()
        };
        // Where a task finds 6 MiB of the last cache, no block is in the middle of it.
        let mut share = ladder(&["read"], &["one-cpu"]);
        let mib = |size: f64| size * 1_048_576.0;
        let size = CacheSize { at: mib(6.0), low: mib(5.0), high: mib(7.0), by_ladder: true };
        share.measured_caches = vec![MeasuredCache { name: "L3".into(), claimed: Some(mib(32.0)), size }];
        let labels: Vec<String> = shown::first(&share).0.into_iter().map(|shown| shown.label).collect();
        assert_eq!(
            labels,
            ["Test, read, 16 KiB (L1d)", "Test, read, 1 MiB (L2)", "Test, read, 256 MiB (memory)"]
        );
        let section = section_of(&share);
        let ChartKind::Lines { marks, .. } = &charts(&section)[0].kind else { panic!("lines") };
        let marks: Vec<&str> = marks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(marks, ["L1d 48 KiB", "L2 2 MiB", "L3 32 MiB", "L3 6 MiB as measured"]);
        assert_eq!(
            rows(&["read"], &["one-cpu"]),
            [
                "Test, read, 16 KiB (L1d)",
                "Test, read, 1 MiB (L2)",
                "Test, read, 16 MiB (L3)",
                "Test, read, 256 MiB (memory)"
            ]
        );
        let quick = rows(&["read", "write", "copy"], &["one-cpu", "all"]);
        assert_eq!(quick.len(), 18, "L1, L2 and memory of six cases: {quick:?}");
        let ops = ["read", "write", "write-nt", "read-write", "copy", "copy-nt"];
        let full = rows(&ops, &["one-cpu", "all"]);
        assert_eq!(full.len(), 4 + 11, "all levels of the first, memory of the others: {full:?}");
    }
}

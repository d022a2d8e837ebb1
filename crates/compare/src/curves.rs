//! Work over CPU%: the curves of two machines on one another, and where they cross. Of studies of rising load, and of stream
//! processing at rising rates.

use super::arm::Arm;
use super::{Member, Options};
use model::VerdictKind;
use model::vocabulary as ids;
use model::vocabulary::MetricId;
use stats::smt::{Crossing, Curve, Pass, Point, crossing};

/// Two curves of the same work.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlaid {
    pub title: String,
    /// Of the work.
    pub unit: String,
    /// Placement of each.
    pub placements: [String; 2],
    pub curves: [Curve; 2],
    /// The clock that both were scaled to, GHz.
    pub clock_ghz: Option<f64>,
    pub crossing: Option<Crossing>,
}

/// A kind of benchmark that has such curves.
struct Kind {
    /// The beginning of its id.
    bench: &'static str,
    work: MetricId,
    /// Whether CPU% is that of all its CPUs together (200 of two), not of each.
    together: bool,
}

const KINDS: [Kind; 2] = [
    Kind { bench: ids::smt::LOAD.as_str(), work: ids::smt::metric::PERFORMANCE, together: true },
    Kind { bench: "nexmark.", work: ids::nexmark::metric::RATE, together: false },
];

/// Two CPUs of a machine: threads of one core, or cores, whichever was studied.
const PAIRS: [&str; 7] =
    ["smt-sibling", "same-cluster", "same-llc", "other-llc", "other-node", "other-package", "other-cpu"];

/// Every curve that both have: of the same placement, and of two CPUs each even where these are threads of one core on one
/// machine and two cores on the other.
pub fn overlaid(a: &Arm, b: &Arm, options: &Options) -> Vec<Overlaid> {
    let (own, theirs) = (lines(a), lines(b));
    let mut all = Vec::new();
    for line in &own {
        let same = theirs.iter().find(|other| other.title == line.title && other.placement == line.placement);
        all.extend(same.and_then(|other| overlay(line, other, [a, b], options)));
    }
    for line in own.iter().filter(|line| PAIRS.contains(&line.placement.as_str())) {
        let pair = |other: &&Line| {
            other.title == line.title && PAIRS.contains(&other.placement.as_str()) && other.cpus == line.cpus
        };
        let is_first =
            own.iter().find(|one| one.title == line.title && PAIRS.contains(&one.placement.as_str()));
        let other = theirs.iter().find(pair).filter(|other| other.placement != line.placement);
        if is_first.is_some_and(|first| std::ptr::eq(first, line)) {
            all.extend(other.and_then(|other| overlay(line, other, [a, b], options)));
        }
    }
    all
}

struct Line {
    title: String,
    unit: String,
    placement: String,
    cpus: usize,
    /// Of each level its point, and its clock where that was measured, GHz.
    points: Vec<(Point, Option<f64>)>,
}

/// The lines of a result, in the order in which it has them.
fn lines(arm: &Arm) -> Vec<Line> {
    let mut lines: Vec<(String, Line)> = Vec::new();
    for member in arm.valued() {
        let Some(kind) = KINDS.iter().find(|kind| member.case.bench.starts_with(kind.bench)) else {
            continue;
        };
        // Nothing is concluded from what was rejected.
        if member.metric.name != kind.work || member.verdict.kind == VerdictKind::Rejected {
            continue;
        }
        let beside = |metric: MetricId| {
            let same = |other: &&Member| {
                other.case.key() == member.case.key()
                    && other.point == member.point
                    && other.metric.name == metric
            };
            arm.valued().find(same)
        };
        let cpus = member.case.placement.cpus().len().max(1);
        let Some(cpu) = beside(ids::smt::metric::CPU) else { continue };
        let whole = 100.0 * if kind.together { cpus as f64 } else { 1.0 };
        let Some(point) = point(cpu, member, whole) else { continue };
        let clock = beside(ids::smt::metric::CLOCK).map(|clock| clock.median).filter(|ghz| *ghz > 0.0);
        let key = member.case.key();
        let at = match lines.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let words: Vec<&str> = [ids::smt::param::KIND]
                    .into_iter()
                    .filter_map(|name| member.case.params.get(name)?.text())
                    .collect();
                let title = member.title.split(':').next().unwrap_or_default().to_string();
                let title = [title.as_str()].into_iter().chain(words).collect::<Vec<_>>().join(", ");
                let placement = member.case.placement.name.to_string();
                let unit = member.metric.unit.to_string();
                lines.push((key, Line { title, unit, placement, cpus, points: Vec::new() }));
                lines.len() - 1
            }
        };
        lines[at].1.points.push((point, clock));
    }
    // One level is no curve.
    lines.into_iter().map(|(_, line)| line).filter(|line| line.points.len() > 1).collect()
}

/// A level: process by process where both have as many, else by the medians.
fn point(cpu: &Member, work: &Member, whole: f64) -> Option<Point> {
    if cpu.told.is_none()
        && work.told.is_none()
        && cpu.medians.len() == work.medians.len()
        && !cpu.medians.is_empty()
    {
        let pairs = cpu.medians.iter().zip(&work.medians);
        return Point::of(pairs.map(|(cpu, work)| Pass { share: cpu / whole, performance: *work }).collect());
    }
    let interval = work.told.map(|([low, high], _)| stats::order::Interval { low, high });
    Point::known(cpu.median / whole, work.median, interval)
}

fn overlay(a: &Line, b: &Line, arms: [&Arm; 2], options: &Options) -> Option<Overlaid> {
    let clocked = |line: &Line| line.points.iter().all(|(_, clock)| clock.is_some());
    let common = options.common_clock.then(|| arms[0].clock_ghz().or(a.points.first()?.1)).flatten();
    let common = common.filter(|_| clocked(a) && clocked(b));
    let curve = |line: &Line| {
        let scaled = |(point, clock): &(Point, Option<f64>)| match (common, clock) {
            (Some(common), Some(clock)) => {
                Curve::of(vec![point.clone()])?.scaled(common / clock).points().first().cloned()
            }
            _ => Some(point.clone()),
        };
        Curve::of(line.points.iter().filter_map(scaled).collect())
    };
    let curves = [curve(a)?, curve(b)?];
    Some(Overlaid {
        title: a.title.clone(),
        unit: b.unit.clone(),
        placements: [a.placement.clone(), b.placement.clone()],
        crossing: crossing(&curves[0], &curves[1]),
        curves,
        clock_ghz: common,
    })
}

impl Overlaid {
    /// Where they cross, in words; `b` is the second's letter.
    pub fn words(&self, b: &str) -> String {
        let Some(found) = &self.crossing else {
            return format!("A and {b} have no CPU% in common.");
        };
        let range = format!("between {:.0} and {:.0} % CPU", found.from * 100.0, found.to * 100.0);
        match found.at.as_slice() {
            [] => match found.second_ahead_last {
                Some(true) => format!("{b} does more than A at the same CPU%, all the way {range}."),
                Some(false) => format!("A does more than {b} at the same CPU%, all the way {range}."),
                None => format!("A and {b} do the same {range}."),
            },
            crosses => {
                let each = crosses.iter().map(|cross| {
                    let ahead = if cross.second_ahead { b } else { "A" };
                    let sure = if cross.sure { "" } else { " (not sure: their intervals meet)" };
                    format!("from {:.0} % on {ahead} does more{sure}", cross.share * 100.0)
                });
                let first = if found.second_ahead_first == Some(true) { b } else { "A" };
                format!(
                    "At light load {first} does more at the same CPU%; {}.",
                    each.collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::diagnose;
    use testkit::capacity::made;

    fn arm(s: f64, smt: bool, file: &str) -> Arm {
        Arm::measured(&diagnose(made(s, smt)), file)
    }

    #[test]
    fn threads_of_a_core_and_two_cores_cross_where_the_core_is_full() {
        let (smt, cores) = (arm(1.25, true, "smt"), arm(2.0, false, "cores"));
        let all = overlaid(&smt, &cores, &Options::default());
        let names: Vec<[&str; 2]> =
            all.iter().map(|one| one.placements.each_ref().map(String::as_str)).collect();
        assert_eq!(names, [["one-cpu", "one-cpu"], ["smt-sibling", "same-llc"]]);
        assert!(all[0].words("B").contains("do the same"), "{}", all[0].words("B"));
        // Two cores do more at any CPU%, and most at full load.
        assert!(all[1].words("B").starts_with("B does more than A"), "{}", all[1].words("B"));
        let best = all[1].curves.each_ref().map(|curve| curve.capacity(1.0).most);
        assert!((best[1] / best[0] - 1.6).abs() < 0.03, "{best:?}");
    }

    #[test]
    fn a_faster_machine_with_smt_is_overtaken() {
        let fast = arm(1.25, true, "smt");
        let scaled: Vec<Line> = lines(&fast)
            .into_iter()
            .map(|line| {
                let points = line.points.iter().filter_map(|(point, clock)| {
                    let curve = Curve::of(vec![point.clone()])?.scaled(1.4);
                    Some((curve.points().first()?.clone(), *clock))
                });
                Line { points: points.collect(), ..line }
            })
            .collect();
        let cores = arm(2.0, false, "cores");
        let theirs = lines(&cores);
        let found = overlay(&scaled[1], &theirs[1], [&fast, &cores], &Options::default()).expect("both");
        let words = found.words("B");
        assert!(
            words.starts_with("At light load A does more") && words.contains("on B does more"),
            "{words}"
        );
    }
}

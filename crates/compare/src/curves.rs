//! Work over CPU%: the curves of two hosts on one another, and where they cross. Of studies of
//! rising load, and of stream processing at rising rates.

use super::Member;
use super::arm::ComparisonSide;
use model::VerdictKind;
use model::vocabulary as ids;
use model::vocabulary::MetricId;
use stats::order::median;
use stats::smt::{Crossing, Curve, Pass, Point, crossing};

/// Two curves of the same work.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlaidCurves {
    pub title: String,
    /// Of the work.
    pub unit: String,
    /// Placement of each.
    pub placements: [String; 2],
    /// Both at one clock, where both clocks are known.
    pub curves: [Curve; 2],
    /// The clock that both were scaled to, A's, GHz.
    pub clock_ghz: Option<f64>,
    /// At which each was measured, GHz.
    pub measured_ghz: [Option<f64>; 2],
    pub crossing: Option<Crossing>,
    /// Where they cross as they were measured; `None` where they were not scaled.
    pub unscaled: Option<Crossing>,
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

/// Every curve that both have: of the same placement, and of two CPUs each even where these are
/// threads of one core on one host and two cores on the other.
pub fn overlaid(a: &ComparisonSide, b: &ComparisonSide) -> Vec<OverlaidCurves> {
    let (own, theirs) = (lines(a), lines(b));
    let mut all = Vec::new();
    for line in &own {
        let same = theirs.iter().find(|other| other.title == line.title && other.placement == line.placement);
        all.extend(same.and_then(|other| overlay(line, other, [a, b])));
    }
    for line in own.iter().filter(|line| PAIRS.contains(&line.placement.as_str())) {
        let pair = |other: &&Line| {
            other.title == line.title && PAIRS.contains(&other.placement.as_str()) && other.cpus == line.cpus
        };
        let is_first =
            own.iter().find(|one| one.title == line.title && PAIRS.contains(&one.placement.as_str()));
        let other = theirs.iter().find(pair).filter(|other| other.placement != line.placement);
        if is_first.is_some_and(|first| std::ptr::eq(first, line)) {
            all.extend(other.and_then(|other| overlay(line, other, [a, b])));
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
fn lines(arm: &ComparisonSide) -> Vec<Line> {
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
    if cpu.given_interval.is_none()
        && work.given_interval.is_none()
        && cpu.medians.len() == work.medians.len()
        && !cpu.medians.is_empty()
    {
        let pairs = cpu.medians.iter().zip(&work.medians);
        return Point::of(pairs.map(|(cpu, work)| Pass { share: cpu / whole, performance: *work }).collect());
    }
    let interval = work.given_interval.map(|([low, high], _)| stats::order::Interval { low, high });
    Point::known(cpu.median / whole, work.median, interval)
}

/// The clock of each level: as the study measured it beside the level, else that of the whole run.
fn clocks(line: &Line, arm: &ComparisonSide) -> Option<Vec<f64>> {
    line.points.iter().map(|(_, clock)| clock.or_else(|| arm.clock_ghz())).collect()
}

fn overlay(a: &Line, b: &Line, arms: [&ComparisonSide; 2]) -> Option<OverlaidCurves> {
    let lines = [a, b];
    let known = [0, 1].map(|side| clocks(lines[side], arms[side]));
    let measured_ghz = known.each_ref().map(|clocks| median(clocks.as_ref()?));
    let common = measured_ghz[0].filter(|_| known.iter().all(Option::is_some));
    let measured = |line: &Line| Curve::of(line.points.iter().map(|(point, _)| point.clone()).collect());
    let scaled = |side: usize| {
        let Some((common, clocks)) = common.zip(known[side].as_ref()) else { return measured(lines[side]) };
        let point = |((point, _), clock): (&(Point, Option<f64>), &f64)| {
            Curve::of(vec![point.clone()])?.scaled(common / clock).points().first().cloned()
        };
        Curve::of(lines[side].points.iter().zip(clocks).filter_map(point).collect())
    };
    let curves = [scaled(0)?, scaled(1)?];
    Some(OverlaidCurves {
        title: a.title.clone(),
        unit: b.unit.clone(),
        placements: [a.placement.clone(), b.placement.clone()],
        crossing: crossing(&curves[0], &curves[1]),
        unscaled: common.and_then(|_| crossing(&measured(a)?, &measured(b)?)),
        curves,
        clock_ghz: common,
        measured_ghz,
    })
}

impl OverlaidCurves {
    /// Where they cross, in words; `b` is the second's letter.
    pub fn words(&self, b: &str) -> String {
        crossing_words(self.crossing.as_ref(), b)
    }

    /// At which clocks they were measured, and where they would cross at these; `b` is the second's
    /// letter.
    pub fn clock_words(&self, b: &str) -> String {
        let ghz =
            |clock: Option<f64>| clock.map_or("an unknown clock".to_string(), |ghz| format!("{ghz:.2} GHz"));
        let [own, theirs] = self.measured_ghz.map(ghz);
        match (self.clock_ghz, self.measured_ghz) {
            (Some(common), [_, Some(other)]) => format!(
                "A ran at {own}, {b} at {theirs}. {b}'s work is scaled by {:.2} to A's clock. As measured: {}",
                common / other,
                crossing_words(self.unscaled.as_ref(), b)
            ),
            _ => format!("A ran at {own}, {b} at {theirs}: work is as measured."),
        }
    }

    /// B's work over A's at this CPU% (0..1) and its bounds by both intervals; `None` outside of
    /// either's levels.
    pub fn ratio(&self, share: f64) -> Option<(f64, Option<[f64; 2]>)> {
        let [own, theirs] = &self.curves;
        let least =
            [own, theirs].map(|curve| curve.points().first().map_or(f64::INFINITY, |point| point.share));
        let ratio = theirs.performance(share)? / own.performance(share)?;
        let bounds = || {
            let (own, theirs) = (own.bounds(share)?, theirs.bounds(share)?);
            Some([theirs.low / own.high, theirs.high / own.low])
        };
        (least[0].max(least[1]) <= share).then(|| (ratio, bounds()))
    }
}

fn crossing_words(crossing: Option<&Crossing>, b: &str) -> String {
    let Some(found) = crossing else {
        return format!("A and {b} were measured at no common CPU%.");
    };
    let range = format!("from {:.0} to {:.0} % CPU", found.from * 100.0, found.to * 100.0);
    match found.at.as_slice() {
        [] => match found.second_ahead_last {
            Some(true) => {
                format!("They do not cross: {b} does more than A at the same CPU%, {range}.")
            }
            Some(false) => {
                format!("They do not cross: A does more than {b} at the same CPU%, {range}.")
            }
            None => format!("A and {b} do the same {range}."),
        },
        crosses => {
            let each = crosses.iter().map(|cross| {
                let ahead = if cross.second_ahead { b } else { "A" };
                let sure = if cross.sure { "" } else { " (uncertain: the intervals overlap)" };
                let between = cross.interval.map_or(" (no interval)".to_string(), |between| {
                    format!(" ({:.0}–{:.0})", (100.0 * between.low).floor(), (100.0 * between.high).ceil())
                });
                format!(
                    "they cross at {:.0} % CPU{between}; above it {ahead} does more{sure}",
                    cross.share * 100.0
                )
            });
            let first = if found.second_ahead_first == Some(true) { b } else { "A" };
            format!(
                "At light load {first} does more at the same CPU%; {}.",
                each.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::diagnose;
    use testkit::capacity::made;

    fn arm(s: f64, smt: bool, file: &str) -> ComparisonSide {
        ComparisonSide::measured(&diagnose(made(s, smt)), file)
    }

    #[test]
    fn threads_of_a_core_and_two_cores_cross_where_the_core_is_full() {
        let (smt, cores) = (arm(1.25, true, "smt"), arm(2.0, false, "cores"));
        let all = overlaid(&smt, &cores);
        let names: Vec<[&str; 2]> =
            all.iter().map(|one| one.placements.each_ref().map(String::as_str)).collect();
        assert_eq!(names, [["one-cpu", "one-cpu"], ["smt-sibling", "same-llc"]]);
        assert!(all[0].words("B").contains("do the same"), "{}", all[0].words("B"));
        // Two cores do more at any CPU%, and most at full load.
        assert!(
            all[1].words("B").starts_with("They do not cross: B does more than A"),
            "{}",
            all[1].words("B")
        );
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
        let found = overlay(&scaled[1], &theirs[1], [&fast, &cores]).expect("both");
        let words = found.words("B");
        assert!(
            words.starts_with("At light load A does more") && words.contains("above it B does more"),
            "{words}"
        );
        let cross = found.crossing.as_ref().and_then(|found| found.at.first()).expect("a crossing");
        let between = cross.interval.expect("fifteen passes");
        assert!(
            between.low <= cross.share && cross.share <= between.high && between.high - between.low < 0.1
        );
        assert!(words.contains(&format!("they cross at {:.0} % CPU (", 100.0 * cross.share)), "{words}");
        assert!(found.clock_words("B").contains("work is as measured"), "{}", found.clock_words("B"));
    }

    /// The article's clocks: 3.5 GHz with SMT, 2.7 GHz without.
    #[test]
    fn both_are_scaled_to_one_clock_and_the_clocks_are_said() {
        let (smt, cores) = (arm(1.25, true, "smt"), arm(2.0, false, "cores"));
        let clocked = |arm: &ComparisonSide, ghz: f64| -> Vec<Line> {
            let mut own = lines(arm);
            own.iter_mut().flat_map(|line| &mut line.points).for_each(|(_, clock)| *clock = Some(ghz));
            own
        };
        let (own, theirs) = (clocked(&smt, 3.5), clocked(&cores, 2.7));
        let found = overlay(&own[1], &theirs[1], [&smt, &cores]).expect("both");
        assert_eq!((found.clock_ghz, found.measured_ghz), (Some(3.5), [Some(3.5), Some(2.7)]));
        let best = found.curves.each_ref().map(|curve| curve.capacity(1.0).most);
        assert!((best[1] / best[0] - 1.6 * 3.5 / 2.7).abs() < 0.04, "{best:?}");
        let words = found.clock_words("B");
        for said in ["A ran at 3.50 GHz, B at 2.70 GHz", "scaled by 1.30", "As measured: They do not cross"] {
            assert!(words.contains(said), "{said:?} is missing in {words}");
        }
        let (ratio, bounds) = found.ratio(0.5).expect("inside");
        let bounds = bounds.expect("fifteen passes");
        assert!(bounds[0] <= ratio && ratio <= bounds[1] && ratio > 1.0, "{ratio} {bounds:?}");
        assert_eq!(found.ratio(0.01), None);
    }

    /// The same study as Flink's: its CPU% is that of each CPU, not of all together.
    #[test]
    fn two_flink_studies_lie_on_one_another_too() {
        let flink = |s: f64, smt: bool, file: &str| {
            let mut run = made(s, smt);
            for planned in &mut run.header.plan {
                planned.case.bench = "nexmark.q0".into();
            }
            let title = &mut run.header.catalogue[0];
            title.id = "nexmark.q0".into();
            title.metrics[0].name = ids::nexmark::metric::RATE.as_str().into();
            for visit in &mut run.visits {
                let cpus = run.header.plan[visit.case as usize].case.placement.cpus().len() as f64;
                for samples in &mut visit.samples {
                    let value = samples.work.get(0).expect("a value");
                    let work = |value: f64| model::Packed::Each(vec![value]);
                    if samples.metrics[0] == ids::smt::metric::PERFORMANCE.as_str() {
                        samples.metrics[0] = ids::nexmark::metric::RATE.as_str().to_string();
                    } else if samples.metrics[0] == ids::nexmark::metric::CPU.as_str() {
                        samples.work = work(value / cpus);
                    }
                }
            }
            ComparisonSide::measured(&diagnose(run), file)
        };
        let (flinks, studies) = (
            overlaid(&flink(1.25, true, "smt"), &flink(2.0, false, "cores")),
            overlaid(&arm(1.25, true, "smt"), &arm(2.0, false, "cores")),
        );
        assert_eq!(flinks.len(), 2);
        for (flink, study) in flinks.iter().zip(&studies) {
            assert_eq!(flink.placements, study.placements);
            for (one, other) in flink.curves.iter().zip(&study.curves) {
                let shares =
                    |curve: &Curve| curve.points().iter().map(|point| point.share).collect::<Vec<f64>>();
                let (one, other) = (shares(one), shares(other));
                assert!(
                    one.len() == 7 && one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-9),
                    "{one:?}"
                );
            }
            assert_eq!(flink.words("B"), study.words("B"));
        }
    }
}

//! The scores of a run: for each number of copies the tests, context switching by placement, and
//! the index in its forms.

use std::collections::BTreeMap;

use super::{Classic, SCALE, TESTS, Test, classic, of_bench};
use crate::analysis::{CONFIDENCE, Judged};
use crate::index::{Component, geometric_mean, index};
use crate::order::{Interval, median};
use model::vocabulary::unixbench::metric::SCORE;
use model::vocabulary::unixbench::param::COPIES;
use model::{Beside, Better, VerdictKind};

/// The test whose score depends on where its two tasks land, and where the classic form leaves
/// them.
pub const CONTEXT: &str = "context1";
const FREE: &str = "free";
const SAME_CPU: &str = "same-cpu";

/// Pairs of CPUs, nearest first.
const PAIRS: [&str; 7] =
    ["smt-sibling", "same-cluster", "same-llc", "other-llc", "other-node", "other-package", "other-cpu"];

/// Where the two tasks of context switching are while the index is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Wherever the scheduler puts them, as UnixBench does it.
    Classic,
    /// Both on one CPU.
    Pinned,
    /// On two CPUs, the nearest that were measured.
    TwoCpus,
}

impl Form {
    pub const ALL: [Form; 3] = [Form::Classic, Form::Pinned, Form::TwoCpus];
}

/// What was measured with one number of copies.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores<'a> {
    pub copies: i64,
    /// The classic form of each test, in the order of [`TESTS`]; `None` for those that were not
    /// planned.
    rows: Vec<Option<&'a Judged>>,
    same_cpu: Option<&'a Judged>,
    two_cpus: Option<&'a Judged>,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub value: f64,
    /// 95 %, by the delta method; `None` where a test has none.
    pub interval: Option<Interval>,
    /// The lowest and the highest index that leaving one test out gives.
    pub without_one: Option<Interval>,
}

/// The scores among the series of a run, by the number of copies; none where nothing of UnixBench
/// was planned.
pub fn scores(series: &[Judged]) -> Vec<Scores<'_>> {
    let mut found: BTreeMap<i64, Scores> = BTreeMap::new();
    for judged in series {
        let case = &judged.series.case;
        let Some(place) = of_bench(&case.bench).and_then(|test| TESTS.iter().position(|other| other == test))
        else {
            continue;
        };
        let plain = case.placement.beside == Beside::Idle && case.knobs.is_empty();
        if !plain || judged.series.metric.name != SCORE || !judged.series.point.is_empty() {
            continue;
        }
        let copies = case.params.get(COPIES).map_or(Some(1), |copies| copies.int()).unwrap_or(1);
        let new = || Scores { copies, rows: vec![None; TESTS.len()], same_cpu: None, two_cpus: None };
        let own = found.entry(copies).or_insert_with(new);
        match case.placement.name.as_ref() {
            FREE => own.rows[place] = Some(judged),
            SAME_CPU if TESTS[place].name == CONTEXT => own.same_cpu = Some(judged),
            name if TESTS[place].name == CONTEXT && distance(name).is_some() => own.offer(judged),
            _ => {}
        }
    }
    found.into_values().collect()
}

fn distance(name: &str) -> Option<usize> {
    PAIRS.iter().position(|pair| *pair == name)
}

/// The number of a series, where it may be used.
pub fn usable(judged: &Judged) -> Option<f64> {
    let estimate = judged.analysis.estimate.as_ref().filter(|_| judged.analysis.verdict.usable())?;
    Some(estimate.median).filter(|value| value.is_finite() && *value > 0.0)
}

/// What UnixBench itself would print for a series: the process medians stand for its passes.
pub fn as_unixbench(judged: &Judged) -> Option<Classic> {
    usable(judged)?;
    let passes: Vec<f64> =
        judged.series.processes.iter().filter_map(|process| median(&process.values)).collect();
    classic(&passes).filter(|_| judged.series.metric.better == Better::Higher)
}

impl<'a> Scores<'a> {
    /// Keeps the nearest pair of CPUs that was measured; one that was not, only as long as there is
    /// none.
    fn offer(&mut self, judged: &'a Judged) {
        let worth = |judged: &Judged| {
            let far = distance(&judged.series.case.placement.name).unwrap_or(PAIRS.len());
            (judged.analysis.verdict.kind == VerdictKind::Skipped, far)
        };
        if self.two_cpus.is_none_or(|known| worth(judged) < worth(known)) {
            self.two_cpus = Some(judged);
        }
    }

    /// The classic form of each test that was planned.
    pub fn tests(&self) -> impl Iterator<Item = (&'static Test, &'a Judged)> {
        TESTS.iter().zip(&self.rows).filter_map(|(test, judged)| Some((test, (*judged)?)))
    }

    /// Context switching in this form, where it was planned.
    pub fn context(&self, form: Form) -> Option<&'a Judged> {
        match form {
            Form::Classic => self.tests().find(|(test, _)| test.name == CONTEXT).map(|(_, judged)| judged),
            Form::Pinned => self.same_cpu,
            Form::TwoCpus => self.two_cpus,
        }
    }

    /// The tests as this form of the index takes them.
    fn taken(&self, form: Form) -> impl Iterator<Item = (&'static Test, Option<&'a Judged>)> {
        TESTS.iter().zip(&self.rows).map(move |(test, judged)| match test.name {
            CONTEXT => (test, self.context(form)),
            _ => (test, *judged),
        })
    }

    /// Tests that were not planned.
    pub fn absent(&self) -> Vec<&'static str> {
        let taken = self.taken(Form::Classic);
        taken.filter(|(_, judged)| judged.is_none()).map(|(test, _)| test.title).collect()
    }

    /// The index; in words why there is none: a part is never taken for the whole.
    pub fn index(&self, form: Form) -> Result<Score, String> {
        let absent = self.absent();
        if !absent.is_empty() {
            return Err(format!("no index: {} of its {} tests were not run", absent.len(), TESTS.len()));
        }
        let component = |(test, judged): (&'static Test, Option<&Judged>)| -> Result<Component, String> {
            let judged = judged.ok_or_else(|| format!("no index: {} was not run there", test.title))?;
            let value = usable(judged).ok_or_else(|| {
                let verdict = &judged.analysis.verdict;
                format!(
                    "no index: {} has no usable number ({}: {})",
                    test.title, verdict.kind, verdict.reason
                )
            })?;
            let interval = judged.analysis.estimate.as_ref().and_then(|estimate| estimate.interval);
            let ratio = |value: f64| value / test.baseline;
            let interval = interval.map(|own| Interval { low: ratio(own.low), high: ratio(own.high) });
            Ok(Component { name: test.title.to_string(), ratio: ratio(value), interval, weight: 1.0 })
        };
        let (components, without): (Vec<_>, Vec<_>) =
            self.taken(form).map(component).partition(Result::is_ok);
        if let Some(Err(first)) = without.first() {
            return Err(match without.len() {
                1 => first.clone(),
                many => format!("{first}, nor have {} others", many - 1),
            });
        }
        let components: Vec<Component> = components.into_iter().flatten().collect();
        let found = index(&components, CONFIDENCE).ok_or("no index: a score is not positive")?;
        let scaled = |interval: Interval| Interval { low: interval.low * SCALE, high: interval.high * SCALE };
        Ok(Score {
            value: found.value * SCALE,
            interval: found.interval.map(scaled),
            without_one: found.leave_one_out.map(scaled),
        })
    }

    /// The index of each pass in which every test has a value: what a comparison of two runs rests
    /// on. Empty where there is no index.
    pub fn index_by_pass(&self, form: Form) -> Vec<f64> {
        if self.index(form).is_err() {
            return Vec::new();
        }
        let mut passes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (test, judged) in self.taken(form) {
            for process in judged.iter().flat_map(|judged| &judged.series.processes) {
                if let Some(value) = median(&process.values) {
                    passes.entry(process.pass).or_default().push(test.index(value));
                }
            }
        }
        passes
            .into_values()
            .filter(|pass| pass.len() == TESTS.len())
            .filter_map(|pass| geometric_mean(&pass))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Series, analyse};
    use model::{Case, Form as Values, Metric, Params, Placement, Verdict};

    /// Twenty times the baseline in every test, by this many processes around it; context switching
    /// pinned at forty.
    fn judged(name: &str, placement: &'static str, copies: u64, times: f64) -> Judged {
        let test = TESTS.iter().find(|test| test.name == name).expect("a test");
        let placement = Placement::named(placement);
        let case =
            Case { params: Params::from([(COPIES, copies.into())]), ..Case::new(test.bench(), placement) };
        let values: Vec<f64> =
            (0..9).map(|at| test.baseline * times * (1.0 + 0.002 * f64::from(at - 4))).collect();
        let metric = Metric::new(SCORE, "score", test.unit, Better::Higher, Values::Value);
        let series = Series::imported(&case, Params::new(), metric, &values, None);
        let analysis = analyse(&series, 0.01, 0, None);
        Judged { series, analysis }
    }

    fn run(copies: u64) -> Vec<Judged> {
        let mut all: Vec<Judged> = TESTS.iter().map(|test| judged(test.name, "free", copies, 20.0)).collect();
        all.push(judged(CONTEXT, "same-cpu", copies, 40.0));
        all.push(judged(CONTEXT, "other-package", copies, 5.0));
        all.push(judged(CONTEXT, "same-llc", copies, 10.0));
        all
    }

    #[test]
    fn the_index_both_ways() {
        let all = [run(4), run(1)].concat();
        let found = scores(&all);
        assert_eq!(found.iter().map(|one| one.copies).collect::<Vec<_>>(), [1, 4]);
        let one = &found[0];
        assert_eq!(one.tests().count(), 12);
        let value = |form| one.index(form).map(|score| score.value);
        let near =
            |found: Result<f64, String>, value: f64| (found.expect("an index") / value - 1.0).abs() < 1e-9;
        assert!(near(value(Form::Classic), 200.0));
        assert!(near(value(Form::Pinned), 200.0 * 2f64.powf(1.0 / 12.0)));
        // The nearest of the two pairs.
        assert!(near(value(Form::TwoCpus), 200.0 * 0.5f64.powf(1.0 / 12.0)));
        assert_eq!(
            one.context(Form::TwoCpus).map(|judged| judged.series.case.placement.name.as_ref()),
            Some("same-llc")
        );
        let score = one.index(Form::Pinned).expect("an index");
        let interval = score.interval.expect("nine processes");
        assert!(interval.contains(score.value) && interval.half_width() < 1.0, "{interval:?}");
        let range = score.without_one.expect("twelve tests");
        assert!((range.low - 200.0).abs() < 1e-9 && range.high > score.value);
        let passes = one.index_by_pass(Form::Classic);
        assert!(passes.len() == 9 && (median(&passes).expect("passes") - 200.0).abs() < 1e-9);
    }

    #[test]
    fn no_index_is_invented() {
        let all = run(1);
        let less: Vec<Judged> =
            all.iter().filter(|one| one.series.case.bench != "unixbench.spawn").cloned().collect();
        assert_eq!(
            scores(&less)[0].index(Form::Classic),
            Err("no index: 1 of its 12 tests were not run".into())
        );
        assert_eq!(scores(&less)[0].absent(), ["Process Creation"]);
        let mut wrong = all.clone();
        wrong[2].analysis.verdict = Verdict::new(VerdictKind::Rejected, "wrong answer");
        let found = scores(&wrong);
        for form in Form::ALL {
            let why = found[0].index(form).expect_err("no index");
            assert!(why.contains("Execl Throughput has no usable number (rejected: wrong answer)"), "{why}");
        }
        assert!(found[0].index_by_pass(Form::Classic).is_empty());
        assert_eq!(as_unixbench(&wrong[2]), None);
        // Without the pinned forms the classic one stands.
        let free = &all[..12];
        let found = scores(free);
        assert!(found[0].index(Form::Classic).is_ok() && found[0].index(Form::Pinned).is_err());
        assert!(scores(&[]).is_empty());
    }

    #[test]
    fn the_worst_third_of_the_processes() {
        let found = as_unixbench(&judged("pipe", "free", 1, 20.0)).expect("nine processes");
        assert_eq!((found.kept, found.dropped), (6, 3));
        // What is left is the better part.
        assert!(found.score > 20.0 * 12_440.0 * 1.002, "{found:?}");
    }
}

//! The plan of a sweep: a case for each cell of a grid of settings, and the present setting as
//! control.

use anyhow::{Context, bail, ensure};

use super::Candidate;
use bench::{Benchmark, Param, Range};
use model::sweep::{Axis, AxisOf, combinations, set_param};
use model::{Case, Planned, Value, did_you_mean};

/// Cells between two visits of the control.
pub const EVERY: u32 = 8;
/// Most cells: above this a sweep takes hours.
const MAX_CELLS: usize = 4096;
/// Values of a range without a count.
const DEFAULT_COUNT: usize = 7;

/// Splits `NAME=VALUES`.
pub fn named(word: &str) -> anyhow::Result<(&str, &str)> {
    let parts = word.split_once('=').filter(|(name, values)| !name.is_empty() && !values.is_empty());
    parts.with_context(|| format!("{word:?} is not NAME=VALUES"))
}

/// Parses `1,2,4`, `1ms..30ms:8` (eight values, linear) or `1ms..30ms:log8` (logarithmic). `number`
/// reads one value, `text` makes the case's value; equal ones count once.
pub fn values(
    words: &str,
    number: impl Fn(&str) -> Option<f64>,
    text: impl Fn(&str) -> Result<String, String>,
) -> anyhow::Result<Vec<String>> {
    let given: Vec<String> = match words.split_once("..") {
        None => words.split(',').map(|word| word.trim().to_string()).collect(),
        Some((from, rest)) => {
            let (to, count) = rest.split_once(':').unwrap_or((rest, ""));
            let (log, count) = match count.strip_prefix("log") {
                Some(count) => (true, count),
                None => (false, count),
            };
            let count: usize = match count {
                "" => DEFAULT_COUNT,
                count => {
                    count.parse().ok().with_context(|| format!("{count:?} is not a number of values"))?
                }
            };
            ensure!((2..=200).contains(&count), "a range has 2–200 values, not {count}");
            let read =
                |word: &str| number(word).with_context(|| format!("a range needs numbers, not {word:?}"));
            let (from, to) = (read(from)?, read(to)?);
            ensure!(from < to, "a range goes from a smaller number to a larger one");
            ensure!(!log || from > 0.0, "a logarithmic range begins above 0");
            let at = |index: usize| {
                let share = index as f64 / (count - 1) as f64;
                if log { (from.ln() + share * (to / from).ln()).exp() } else { from + share * (to - from) }
            };
            (0..count).map(|index| rounded(at(index), log).to_string()).collect()
        }
    };
    let mut all: Vec<String> = Vec::new();
    for word in given {
        let value = text(&word).map_err(anyhow::Error::msg)?;
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Ok(all)
}

/// An integer, of a logarithmic range with three significant digits.
fn rounded(value: f64, log: bool) -> u64 {
    let unit = if log && value >= 1000.0 { 10f64.powf(value.log10().floor() - 2.0) } else { 1.0 };
    ((value / unit).round() * unit).round() as u64
}

/// Values of a parameter of a benchmark's cases, checked against its range.
pub fn param_values(bench: &Benchmark, name: &str, words: &str) -> anyhow::Result<Vec<String>> {
    let known: Vec<&str> = bench.params.iter().map(|param| param.name.as_str()).collect();
    let param: &Param = bench.params.iter().find(|param| param.name == name).with_context(|| {
        let has = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        format!(
            "{} has no parameter {name:?}{}; it has {has}",
            bench.id,
            did_you_mean(name, known.iter().copied())
        )
    })?;
    let text = |word: &str| {
        let value = match param.range {
            Range::Int { .. } | Range::Bytes { .. } => {
                word.parse().map(Value::Int).unwrap_or(Value::Text(word.to_string()))
            }
            Range::Choice(_) | Range::Word => Value::Text(word.to_string()),
        };
        if param.range.holds(&value) {
            Ok(value.to_string())
        } else {
            Err(format!("{name} takes {}, not {word:?}", param.range))
        }
    };
    values(words, |word| word.parse().ok(), text)
}

/// The axes of a sweep.
pub struct Grid {
    pub axes: Vec<Axis>,
    pub facets: Vec<Axis>,
    /// Fixed parameters.
    pub fixed: Vec<(String, String)>,
}

impl Grid {
    pub fn cells(&self) -> usize {
        self.axes.iter().chain(&self.facets).map(|axis| axis.values.len()).product()
    }

    /// A case for each cell of each benchmark's base, cell by cell, then the control if no cell has
    /// its setting. `unmet`: why a knob cannot have a value. `seconds`: time of a visit with other
    /// parameters.
    pub fn cases(
        &self,
        bases: &[Candidate],
        unmet: &dyn Fn(&str, &str) -> Option<String>,
        seconds: &dyn Fn(&Case, f64) -> f64,
    ) -> anyhow::Result<Vec<Candidate>> {
        ensure!(self.cells() <= MAX_CELLS, "{} settings are too many: at most {MAX_CELLS}", self.cells());
        let mut all: Vec<Candidate> = Vec::new();
        for facet in combinations(&self.facets) {
            let mut settings = combinations(&self.axes);
            if let Some(before) = self.axes.iter().map(|axis| axis.before.clone()).collect::<Option<Vec<_>>>()
                && !settings.contains(&before)
            {
                settings.push(before);
            }
            for setting in &settings {
                for base in bases {
                    let case = self.case(&base.case, &facet, setting);
                    if all.iter().any(|other| other.case.key() == case.key()) {
                        continue;
                    }
                    let refused = case.knobs.iter().find_map(|(name, value)| unmet(name, value));
                    let seconds = seconds(&case, base.seconds);
                    let (priority, memory_bytes) = (base.priority, base.memory_bytes);
                    let unmet = base.unmet.clone().or(refused);
                    let with_last = false;
                    all.push(Candidate { case, priority, seconds, memory_bytes, unmet, with_last });
                }
            }
        }
        if all.iter().all(|candidate| candidate.unmet.is_some()) {
            match all.into_iter().find_map(|candidate| candidate.unmet) {
                Some(why) => bail!("{why}"),
                None => bail!("a sweep needs values"),
            }
        } else {
            Ok(all)
        }
    }

    /// A base's case at one setting; parameters that it lacks are ignored.
    fn case(&self, base: &Case, facet: &[String], setting: &[String]) -> Case {
        let mut case = base.clone();
        for (name, value) in &self.fixed {
            if base.params.named(name).is_some() {
                set_param(&mut case.params, name, value);
            }
        }
        let facets = self.facets.iter().zip(facet);
        for (axis, value) in self.axes.iter().zip(setting).chain(facets) {
            match axis.of {
                AxisOf::Knob => {
                    case.knobs.insert(axis.name.clone(), value.clone());
                }
                AxisOf::Param if base.params.named(&axis.name).is_some() => {
                    set_param(&mut case.params, &axis.name, value);
                }
                AxisOf::Param => {}
            }
        }
        case
    }

    /// The cases of a plan with the present setting.
    pub fn control(&self, plan: &[Planned]) -> Vec<u32> {
        let is_before = |planned: &Planned| {
            self.axes.iter().all(|axis| match (axis.value_of(&planned.case), &axis.before) {
                (Some(own), Some(before)) => own == *before,
                // A response without this parameter is the same everywhere.
                (None, Some(_)) => axis.of == AxisOf::Param,
                (_, None) => false,
            })
        };
        let of = (0u32..).zip(plan).filter(|(_, planned)| is_before(planned));
        of.map(|(index, _)| index).collect()
    }
}

/// The default parameters of a case.
pub fn param_before(case: &Case, name: &str) -> Option<String> {
    case.params.named(name).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::vocabulary::BenchId;
    use model::vocabulary::hackbench::param::GROUPS;
    use model::vocabulary::selftest::{MODES, STEADY};
    use model::{Params, Placement};

    fn numbers(words: &str) -> Result<Vec<String>, String> {
        let text = |word: &str| match word.parse::<u64>() {
            Ok(_) => Ok(word.to_string()),
            Err(_) => Err(format!("no {word:?}")),
        };
        values(words, |word| word.parse().ok(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn lists_and_ranges() {
        let list = |words: &str| numbers(words).expect("values").join(" ");
        assert_eq!(list("1,2, 4,2"), "1 2 4");
        assert_eq!(list("0..30:4"), "0 10 20 30");
        assert_eq!(list("100000..100000000:log4"), "100000 1000000 10000000 100000000");
        assert_eq!(list("100000..1000000:log3"), "100000 316000 1000000");
        assert_eq!(numbers("1..8").expect("seven").len(), 7);
        for wrong in ["a", "1..", "..2", "4..1", "0..8:log4", "1..2:1", "1..9:x", "1,,2"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
        assert!(named("=1").is_err() && named("a=").is_err() && named("a").is_err());
        assert_eq!(named("a=b=c").expect("two"), ("a", "b=c"));
    }

    #[test]
    fn the_setting_before_is_the_control_on_the_grid_or_beside_it() {
        let base = |bench: BenchId| {
            let placement = Placement::named("free");
            let mut base = Candidate::new(bench, placement, 1, 1.0);
            base.case.params = Params::from([(GROUPS, Value::Int(10))]);
            base
        };
        let axis = |before: &str| Axis {
            name: "slice_ns".into(),
            of: AxisOf::Knob,
            values: vec!["1".into(), "2".into()],
            before: Some(before.into()),
        };
        for (before, cases) in [("2", 4), ("9", 6)] {
            let grid =
                Grid { axes: vec![axis(before)], facets: vec![], fixed: vec![("groups".into(), "3".into())] };
            let all = grid.cases(&[base(STEADY), base(MODES)], &|_, _| None, &|_, s| s).expect("cases");
            let keys: Vec<String> = all.iter().map(|candidate| candidate.case.key()).collect();
            assert_eq!(keys.len(), cases, "{keys:?}");
            assert_eq!(keys[0], "selftest.steady@free?groups=3!slice_ns=1");
            let plan: Vec<Planned> = all
                .into_iter()
                .map(|candidate| Planned {
                    case: candidate.case,
                    priority: 1,
                    seconds: 1.0,
                    memory_bytes: 0,
                    unmet: None,
                })
                .collect();
            let control = grid.control(&plan);
            assert_eq!(control.len(), 2, "of both benchmarks");
            assert!(control.iter().all(|index| plan[*index as usize].case.knobs["slice_ns"] == before));
        }
        let refused = |_: &str, _: &str| Some("no such knob".to_string());
        let grid = Grid { axes: vec![axis("1")], facets: vec![], fixed: vec![] };
        let error = grid.cases(&[base(STEADY)], &refused, &|_, s| s).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("no such knob"));
    }
}

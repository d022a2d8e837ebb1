//! What a sweep is laid out along: the plan holds its cells as cases, this says which case is which
//! cell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Case, Params};

/// What an axis turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AxisOf {
    /// A kernel knob, or one of our own tasks.
    Knob,
    /// A parameter of the benchmark.
    Param,
}

/// Values of one knob or parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    pub name: String,
    pub of: AxisOf,
    /// In the order in which they are drawn, as they stand in the cases.
    pub values: Vec<String>,
    /// What it was set to before the sweep, or what the benchmark takes when nothing is said.
    #[serde(default)]
    pub before: Option<String>,
}

impl Axis {
    /// Where a case stands on it: the index of its value; `None` where that is none of the axis's.
    pub fn position(&self, case: &Case) -> Option<usize> {
        let value = self.value_of(case)?;
        self.values.iter().position(|own| *own == value)
    }

    /// The value that a case has.
    pub fn value_of(&self, case: &Case) -> Option<String> {
        match self.of {
            AxisOf::Knob => case.knobs.get(&self.name).cloned(),
            AxisOf::Param => case.params.named(&self.name).map(ToString::to_string),
        }
    }

    /// Its values as numbers, where all are.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(|value| value.parse().ok().filter(|number: &f64| number.is_finite())).collect()
    }

    /// Where a value lies between those of the axis, in cells from 0: of numbers between two, by
    /// their logarithms where all are above 0; `None` where it lies outside, or is no number.
    pub fn place_of(&self, value: &str) -> Option<f64> {
        if let Some(index) = self.values.iter().position(|own| own == value) {
            return Some(index as f64);
        }
        let numbers = self.numbers()?;
        let wanted: f64 = value.parse().ok()?;
        let log = wanted > 0.0 && numbers.iter().all(|number| *number > 0.0);
        let scaled = |number: f64| if log { number.ln() } else { number };
        let between = |(index, pair): (usize, &[f64])| {
            let (low, high) = (scaled(pair[0]), scaled(pair[1]));
            let share = (scaled(wanted) - low) / (high - low);
            (0.0..=1.0).contains(&share).then_some(index as f64 + share)
        };
        numbers.windows(2).enumerate().find_map(between)
    }
}

/// One metric of one benchmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    pub bench: String,
    pub metric: String,
}

/// The layout of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// One or two: the first is drawn from left to right, the second from below.
    pub axes: Vec<Axis>,
    /// Further parameters: a map for each of their combinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facets: Vec<Axis>,
    /// Parameters that were set to one value for all cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<(String, String)>,
    /// What is swept for.
    pub target: Measure,
    /// The response of a host under load at the same settings, where it is measured beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Measure>,
    /// Cases at the setting that was there before, visited again all the while: what they do is
    /// drift.
    pub control: Vec<u32>,
    /// Cells between two such visits.
    pub every: u32,
    /// The smallest effect of a knob that was to be seen, a share (0.05: 5 %); runs of before did
    /// not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<f64>,
}

impl Sweep {
    /// Columns and rows of its map.
    pub fn shape(&self) -> [usize; 2] {
        let count = |index: usize| self.axes.get(index).map_or(1, |axis| axis.values.len());
        [count(0), count(1)]
    }

    /// Column and row of a case; `None`: it is none of the map's cells, or of another facet.
    pub fn cell_of(&self, case: &Case) -> Option<[usize; 2]> {
        let at = |index: usize| self.axes.get(index).map_or(Some(0), |axis| axis.position(case));
        Some([at(0)?, at(1)?])
    }

    /// All combinations of the facets' values, at least the empty one.
    pub fn facet_values(&self) -> Vec<Vec<String>> {
        combinations(&self.facets)
    }

    /// Whether a case belongs to this combination of facets, as far as it has their parameters.
    pub fn is_in_facet(&self, case: &Case, values: &[String]) -> bool {
        let agrees = |(facet, value): (&Axis, &String)| facet.value_of(case).is_none_or(|own| own == *value);
        self.facets.iter().zip(values).all(agrees)
    }

    /// What a facet is called: `groups 4, transport pipe`.
    pub fn facet_words(&self, values: &[String]) -> String {
        let each = self.facets.iter().zip(values).map(|(facet, value)| format!("{} {value}", facet.name));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// All combinations of the values of several axes, the last one's changing first; of none, the
/// empty one.
pub fn combinations(axes: &[Axis]) -> Vec<Vec<String>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let with = |own: &Vec<String>| {
            let own = own.clone();
            axis.values.iter().map(move |value| [own.clone(), vec![value.clone()]].concat())
        };
        all.iter().flat_map(with).collect()
    })
}

/// A parameter's value from its text: a number where it is one.
pub fn param_value(text: &str) -> super::Value {
    match text.parse::<i64>() {
        Ok(number) => super::Value::Int(number),
        Err(_) => super::Value::Text(text.to_string()),
    }
}

/// A parameter set in a list of them.
pub fn set_param(params: &mut Params, name: &str, text: &str) {
    params.set(name, param_value(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[&str]) -> Axis {
        let values = values.iter().map(ToString::to_string).collect();
        Axis { name: "slice_ns".into(), of: AxisOf::Knob, values, before: None }
    }

    #[test]
    fn a_value_between_two_cells() {
        let slices = axis(&["1000", "10000", "1000000"]);
        assert_eq!(slices.place_of("10000"), Some(1.0));
        assert!((slices.place_of("100000").expect("between") - 1.5).abs() < 1e-9, "by logarithms");
        assert_eq!((slices.place_of("999"), slices.place_of("batch")), (None, None));
        let from_nothing = axis(&["0", "10"]);
        assert_eq!(from_nothing.place_of("5"), Some(0.5));
        assert_eq!(axis(&["other", "batch"]).place_of("batch"), Some(1.0));
    }

    #[test]
    fn facets_are_all_combinations() {
        let param =
            |name: &str, values: &[&str]| Axis { name: name.into(), of: AxisOf::Param, ..axis(values) };
        let sweep = Sweep {
            axes: vec![axis(&["1", "2"])],
            facets: vec![param("groups", &["2", "4"]), param("transport", &["pipe", "socket"])],
            fixed: vec![],
            target: Measure { bench: "a".into(), metric: "b".into() },
            response: None,
            control: vec![],
            every: 8,
            effect: None,
        };
        let all = sweep.facet_values();
        assert_eq!(all.len(), 4);
        assert_eq!(sweep.facet_words(&all[1]), "groups 2, transport socket");
        assert_eq!(sweep.shape(), [2, 1]);
    }
}

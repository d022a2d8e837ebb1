//! The factorial design of a comparison of two configurations: which knobs it varies, and which
//! differing knobs it leaves out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Case;
use super::sweep::Measure;

/// A knob that differs between the two configurations and is varied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    pub name: String,
    /// Its value in the configuration [`Factors::before`], as in `Case::knobs`.
    pub before: String,
    /// Its value in the configuration [`Factors::after`].
    pub after: String,
}

/// A difference that is not varied, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub name: String,
    /// Its values in the two configurations; `None` if one does not set it.
    #[serde(default)]
    pub before: Option<String>,
    #[serde(default)]
    pub after: Option<String>,
    pub why: String,
}

/// Two configurations, and the knobs that the experiment varies between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factors {
    /// Name of the first configuration.
    pub before: String,
    /// Name of the second configuration.
    pub after: String,
    /// The measured figure.
    pub target: Measure,
    pub factors: Vec<Factor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Parts of the configuration files that were not understood, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Factors {
    /// Bit i is set if factor i has its `after` value in the case. `None` if the case is not of
    /// this design, or if the design has more than 64 factors.
    pub fn mask(&self, case: &Case) -> Option<u64> {
        (0..).zip(&self.factors).try_fold(0, |mask, (index, factor)| {
            let bit = 1_u64.checked_shl(index)?;
            match case.knobs.get(&factor.name)? {
                value if *value == factor.after => Some(mask | bit),
                value if *value == factor.before => Some(mask),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_factors_and_more_than_64_have_no_mask() {
        let name = |index: usize| format!("knob{index}");
        let design = |count: usize| Factors {
            before: "a".into(),
            after: "b".into(),
            target: Measure { bench: "cpu.int".into(), metric: "rate".into() },
            factors: (0..count)
                .map(|index| Factor { name: name(index), before: "0".into(), after: "1".into() })
                .collect(),
            left_out: Vec::new(),
            remarks: Vec::new(),
        };
        let case = |value: &str| Case {
            knobs: (0..65).map(|index| (name(index), value.to_string())).collect(),
            ..Case::new("cpu.int", crate::Placement::named("one-cpu"))
        };
        assert_eq!(design(3).mask(&case("1")), Some(0b111));
        assert_eq!(design(3).mask(&case("2")), None);
        assert_eq!(design(64).mask(&case("1")), Some(u64::MAX));
        assert_eq!(design(65).mask(&case("1")), None);
    }
}

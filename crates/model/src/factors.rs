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
    /// Its values in the two configurations, as in `Case::knobs`.
    pub before: String,
    pub after: String,
}

/// A difference that is not varied, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub name: String,
    #[serde(default)]
    pub before: Option<String>,
    #[serde(default)]
    pub after: Option<String>,
    pub why: String,
}

/// Two configurations, and the knobs that the experiment varies between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factors {
    /// Names of the two configurations.
    pub before: String,
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
    /// this design. At most 64 factors.
    pub fn mask(&self, case: &Case) -> Option<u64> {
        self.factors.iter().enumerate().try_fold(0, |mask, (index, factor)| {
            let value = case.knobs.get(&factor.name)?;
            match value {
                value if *value == factor.after => Some(mask | 1 << index),
                value if *value == factor.before => Some(mask),
                _ => None,
            }
        })
    }
}

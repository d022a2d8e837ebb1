//! What a comparison of two settings of many knobs consists of: which knobs are turned in its
//! cases, and which could not be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Case;
use super::sweep::Measure;

/// A knob that differs between the two, and can be turned here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factor {
    pub name: String,
    /// As they stand in the cases.
    pub before: String,
    pub after: String,
}

/// A difference that is no factor here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub name: String,
    #[serde(default)]
    pub before: Option<String>,
    #[serde(default)]
    pub after: Option<String>,
    pub why: String,
}

/// The two settings, and what of them can be told apart by experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Factors {
    /// What the two are called.
    pub before: String,
    pub after: String,
    /// What is measured.
    pub target: Measure,
    pub factors: Vec<Factor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What was met in the files and not understood, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Factors {
    /// Which knobs a case has at their value after: bit i is factor i. `None`: it is none of the
    /// design's.
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

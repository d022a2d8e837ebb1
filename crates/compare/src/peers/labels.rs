//! Whether what sets hosts apart follows a label that their owner gave them: all four are in rack
//! r7, and few others are.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::fleet::Fleet;
use stats::contingency::Table;

/// Chance that any label at all seems to be followed where none is: Fisher's exact test, its p
/// multiplied by the number of labels with values that were looked at.
pub const CHANCE: f64 = 0.01;

/// Labels that are named, the surest first.
const NAMED: usize = 3;

/// A label with a value that slow hosts share, and that others mostly do not have. Only hosts that
/// report the label are counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OutputFollowed")]
pub struct Followed {
    pub label: String,
    pub value: String,
    /// Hosts that are behind and have it.
    #[serde(rename = "behind")]
    pub having: usize,
    /// All hosts that are behind.
    #[serde(rename = "of_behind")]
    pub apart: usize,
    /// Other hosts that have it.
    #[serde(rename = "others")]
    pub beside: usize,
    /// All other hosts.
    #[serde(rename = "of_others")]
    pub others: usize,
    /// Fisher's exact test, one-sided, times the labels with values that were looked at.
    pub p: f64,
}

impl Followed {
    /// `all 4 hosts that are behind have rack=r7; of 96 others 2`
    pub fn words(&self, who: &str) -> String {
        let how_many = if self.having == self.apart {
            format!("all {}", self.apart)
        } else {
            format!("{} of {}", self.having, self.apart)
        };
        let others = if self.beside == 0 { "none".to_string() } else { self.beside.to_string() };
        format!("{how_many} {who} have {}={}; of {} others {others}", self.label, self.value, self.others)
    }

    pub fn has(&self, fleet: &Fleet, host: usize) -> bool {
        fleet.hosts.get(host).and_then(|host| host.labels.get(&self.label)) == Some(self.value.as_str())
    }
}

/// The labels that hosts which stand apart follow, the surest first.
pub(super) fn followed(fleet: &Fleet, apart: &[usize], others: &[usize]) -> Vec<Followed> {
    // By label and value: how many of both have it.
    let mut counts: BTreeMap<&str, BTreeMap<&str, [usize; 2]>> = BTreeMap::new();
    for (side, places) in [apart, others].into_iter().enumerate() {
        for (label, value) in places.iter().flat_map(|place| fleet.hosts[*place].labels.iter()) {
            counts.entry(label).or_default().entry(value).or_default()[side] += 1;
        }
    }
    let told = |values: &BTreeMap<&str, [usize; 2]>, side: usize| values.values().map(|of| of[side]).sum();
    let mut looked_at = 0;
    let mut found: Vec<Followed> = Vec::new();
    for (label, values) in &counts {
        let (apart, others): (usize, usize) = (told(values, 0), told(values, 1));
        for (value, [having, beside]) in values {
            // A value that one host has alone, or all have, explains nothing.
            if having + beside < 2 || having + beside == apart + others {
                continue;
            }
            looked_at += 1;
            if *having < 2 || 2 * beside >= others {
                continue;
            }
            let table = Table {
                both: *having,
                first_only: beside.to_owned(),
                second_only: apart - having,
                neither: others - beside,
            };
            found.push(Followed {
                label: label.to_string(),
                value: value.to_string(),
                having: *having,
                apart,
                beside: *beside,
                others,
                p: table.fisher_together(),
            });
        }
    }
    found.iter_mut().for_each(|one| one.p = (one.p * looked_at as f64).min(1.0));
    found.retain(|one| one.p <= CHANCE);
    found.sort_by(|a, b| a.p.total_cmp(&b.p).then_with(|| a.label.cmp(&b.label)));
    found.truncate(NAMED);
    found
}

//! The order of kernel settings in a pass.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan;
use model::{Planned, fingerprint};

/// Knobs and their values.
pub(super) type Knobs = BTreeMap<String, String>;

/// The settings of runnable cases, in the order of a pass. Two: drawn, and reversed every other
/// pass (ABBA), so that a setting lasts into the next pass. More: drawn anew for each pass.
pub(super) fn settings<'p>(plan: &'p [Planned], runnable: &[usize], pass: u32, seed: u64) -> Vec<&'p Knobs> {
    let all: BTreeSet<&Knobs> = runnable.iter().map(|case| &plan[*case].case.knobs).collect();
    let all: Vec<&Knobs> = all.into_iter().collect();
    let indices: Vec<usize> = (0..all.len()).collect();
    let few = all.len() <= 2;
    let seed = if few { seed } else { seed ^ fingerprint(&format!("settings of pass {pass}")) };
    let drawn = plan::orders(&indices, 1, seed).into_iter().flatten();
    let mut order: Vec<&Knobs> = drawn.map(|index| all[index]).collect();
    if few && pass % 2 == 1 {
        order.reverse();
    }
    order
}

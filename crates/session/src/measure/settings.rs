//! Which settings of the kernel's knobs a pass has, in which order.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan;
use model::{Planned, fingerprint};

/// Knobs and what they are turned to.
pub(super) type Knobs = BTreeMap<String, String>;

/// The settings of the knobs that runnable cases want, in the order of a pass. Two: drawn, and
/// turned round for every other pass (ABBA), so that a setting lasts from the end of one pass into
/// the next. More: drawn anew for each pass.
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

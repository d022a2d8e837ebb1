//! Sweeps over knobs, and factorial experiments.

use super::{Family, names};

names! { pub mod rule: RuleId:
    SWEEP_EFFECT = "sweep-effect",
    SWEEP_TRADE = "sweep-trade",
    PROFILE_SHARES = "profile-shares",
}

pub(super) const FAMILY: Family = Family { name: "sweep", rules: rule::ALL, ..Family::NONE };

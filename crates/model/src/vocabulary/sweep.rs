//! Sweeps over knobs, and factorial experiments.

use super::{family, names};

names! { pub mod rule: RuleId:
    SWEEP_EFFECT = "sweep-effect",
    SWEEP_TRADE = "sweep-trade",
    PROFILE_SHARES = "profile-shares",
}

family! { "sweep" rules: rule }

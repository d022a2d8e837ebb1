//! Planted faults.

use super::{family, names};

names! { BenchId:
    STEADY = "selftest.steady",
    DRIFT = "selftest.drift",
    MODES = "selftest.modes",
    KNOBS = "selftest.knobs",
    WRONG_ANSWER = "selftest.wrong-answer",
    TOO_FAST = "selftest.too-fast",
    CRASH = "selftest.crash",
    KILLED = "selftest.killed",
    HANG = "selftest.hang",
    SPIN = "selftest.spin",
    FAULT = "selftest.fault",
    NO_MEMORY = "selftest.no-memory",
    GARBAGE = "selftest.garbage",
    FLOOD = "selftest.flood",
    MEMORY = "selftest.memory",
    COUNTERS = "selftest.counters",
}

/// Input of a case that is slowed on purpose (`--planted`): the share of work that its timed loops
/// do beyond what they report.
pub const PLANTED: &str = "planted";

names! { pub mod metric: MetricId:
    SPEED = "speed",
    INSTRUCTIONS = "instructions",
    CYCLES = "cycles",
    IPC = "ipc",
}

family! { "selftest" benchmarks: self, metrics: metric }

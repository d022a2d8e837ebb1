//! The core itself: clock, arithmetic, neighbours.

use super::{BenchId, MetricId, family, names};

names! { BenchId:
    CLOCK = "cpu.clock",
    FREQUENCY_RAMP = "cpu.frequency-ramp",
    ARITHMETIC = "cpu.arithmetic",
    PAIR_SLOWDOWN = "cpu.pair-slowdown",
}

names! { pub mod metric: MetricId:
    CLOCK = "clock",
    FIRST_CLOCK = "first_clock",
    STEADY_CLOCK = "steady_clock",
    SETTLING = "settling",
    CLOCK_BY_MULTIPLY = "clock_by_multiply",
    TIME = "time",
    CYCLES = "cycles",
    SLOWDOWN = "slowdown",
    ALONE = "alone",
}

names! { pub mod param: ParamId:
    IDLE_MS = "idle_ms",
    AT_US = "at_us",
    OPERATION = "operation",
    TIMING = "timing",
    FROM = "from",
    TO = "to",
}

const CORE_BOUND: &[(BenchId, &[MetricId])] = &[(ARITHMETIC, &[])];

family! { "cpu" benchmarks: self, metrics: metric, params: param; CORE_BOUND }

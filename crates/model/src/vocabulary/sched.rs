//! The scheduler: switches and wake-ups.

use super::{BenchId, MetricId, family, names};

names! { BenchId:
    CONTEXT_SWITCH = "sched.context-switch",
    WAKE_UP = "sched.wake-up",
}

names! { pub mod metric: MetricId:
    LATENCY = "latency",
    PIPE = "pipe",
    DATA = "data",
    OVERHEAD = "overhead",
    SWITCH = "switch",
    REFILL = "refill",
    SWITCHES = "switches",
    OCCUPANCY = "occupancy",
    WAKEUP_P50 = "wakeup_p50",
    WAKEUP_P99 = "wakeup_p99",
    WAKEUP_JITTER = "wakeup_jitter",
    WAKING = "waking",
    WAITING = "waiting",
    SWITCHING = "switching",
    VOLUNTARY = "voluntary",
    INVOLUNTARY = "involuntary",
    MIGRATIONS = "migrations",
    AFFINE = "affine",
    LATENCY_P99 = "latency_p99",
    LATENCY_P50 = "latency_p50",
    LATENCY_P999 = "latency_p999",
    LATENCY_MAX = "latency_max",
    REQUESTS = "requests",
}

names! { pub mod param: ParamId:
    PROCESSES = "processes",
    KB = "kb",
    CLASS = "class",
    MESSENGERS = "messengers",
    WORKERS = "workers",
    WORK_US = "work_us",
}

const CORE_BOUND: &[(BenchId, &[MetricId])] = &[(CONTEXT_SWITCH, &[])];

family! { "sched" benchmarks: self, metrics: metric, params: param; CORE_BOUND }

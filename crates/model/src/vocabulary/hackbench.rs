//! hackbench and its like: many tasks that talk.

use super::{family, names};

names! { BenchId:
    HACKBENCH = "sched.hackbench",
    MESSAGING = "sched.messaging",
}

names! { pub mod metric: MetricId:
    TIME = "time",
    CPU_USER = "cpu_user",
    CPU_SYSTEM = "cpu_system",
    VOLUNTARY = "voluntary",
    INVOLUNTARY = "involuntary",
    SWITCHES = "switches",
    MIGRATIONS = "migrations",
    WAIT = "wait",
    LOCK_SHARE = "lock_share",
    MASKED_SHARE = "masked_share",
    MESSAGES = "messages",
    TASKS = "tasks",
    LATENCY_P50 = "latency_p50",
    LATENCY_P99 = "latency_p99",
    LATENCY_P999 = "latency_p999",
    LATENCY_MAX = "latency_max",
}

names! { pub mod param: ParamId:
    GROUPS = "groups",
    FDS = "fds",
    LOOPS = "loops",
    BYTES = "bytes",
    TASKS = "tasks",
    TRANSPORT = "transport",
}

family! { "hackbench" benchmarks: self, metrics: metric, params: param }

//! What a second thread of a core gives.

use super::{family, names};

names! { BenchId:
    LOAD = "smt.load",
}

names! { pub mod metric: MetricId:
    PERFORMANCE = "performance",
    CPU = "cpu",
    CPU_TICKS = "cpu_ticks",
    ATTAINMENT = "attainment",
    WALL = "wall",
    P50 = "p50",
    P99 = "p99",
    PER_BUSY = "per_busy",
    TASK_CPU = "task_cpu",
    BUSY_ONE = "busy_one",
    BUSY_BOTH = "busy_both",
    CPU_FIRST = "cpu_first",
    CPU_SECOND = "cpu_second",
    IPC = "ipc",
    CLOCK = "clock",
}

names! { pub mod param: ParamId:
    KIND = "kind",
    LEVELS = "levels",
    LEVEL = "level",
}

names! { pub mod rule: RuleId:
    SMT_COST = "smt-cost",
    SMT_CAPACITY = "smt-capacity",
}

family! { "smt" benchmarks: self, metrics: metric, params: param, rules: rule }

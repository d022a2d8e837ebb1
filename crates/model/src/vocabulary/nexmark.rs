//! Queries of Nexmark on a Flink cluster.

use super::{family, names};

names! { BenchId:
    Q0 = "nexmark.q0",
    Q1 = "nexmark.q1",
    Q2 = "nexmark.q2",
    Q5 = "nexmark.q5",
    Q7 = "nexmark.q7",
    Q8 = "nexmark.q8",
    Q11 = "nexmark.q11",
}

names! { pub mod metric: MetricId:
    RATE = "rate",
    CPU = "cpu",
    CPU_TICKS = "cpu_ticks",
    PROCESS_CPU = "process_cpu",
    COST = "cost",
    ATTAINMENT = "attainment",
    TARGET = "target",
    ACHIEVED = "achieved",
    LATE = "late",
    OTHERS = "others",
    STEAL = "steal",
    GC = "gc",
    REJECTED = "rejected",
    RESTARTS = "restarts",
}

names! { pub mod param: ParamId:
    LOAD = "load",
}

names! { pub mod probe: probes:
    FLINK = "probe:flink",
}

family! { "nexmark" benchmarks: self, metrics: metric, params: param, probes: probe }

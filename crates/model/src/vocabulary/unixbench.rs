//! The tests of UnixBench.

use super::{family, names};

names! { BenchId:
    DHRY2REG = "unixbench.dhry2reg",
    WHETSTONE = "unixbench.whetstone",
    EXECL = "unixbench.execl",
    FSTIME = "unixbench.fstime",
    FSBUFFER = "unixbench.fsbuffer",
    FSDISK = "unixbench.fsdisk",
    PIPE = "unixbench.pipe",
    CONTEXT1 = "unixbench.context1",
    SPAWN = "unixbench.spawn",
    SHELL1 = "unixbench.shell1",
    SHELL8 = "unixbench.shell8",
    SYSCALL = "unixbench.syscall",
}

names! { pub mod metric: MetricId:
    SCORE = "score",
    VOLUNTARY = "voluntary",
    INVOLUNTARY = "involuntary",
    OCCUPANCY = "occupancy",
    MIGRATIONS = "migrations",
    AFFINE = "affine",
}

names! { pub mod param: ParamId:
    COPIES = "copies",
    CLASS = "class",
}

names! { pub mod rule: RuleId:
    MORE_THAN_COPIES = "more-than-copies",
}

family! { "unixbench" benchmarks: self, metrics: metric, params: param, rules: rule }

//! The rate suite: copies of whole programs.

use super::{family, names};

names! { BenchId:
    BWAVES = "rate.bwaves",
    LBM = "rate.lbm",
    MULTIGRID = "rate.multigrid",
    WAVES = "rate.waves",
    TRIAD = "rate.triad",
    FOURIER = "rate.fourier",
    SPARSE = "rate.sparse",
    GRAPH = "rate.graph",
    JOIN = "rate.join",
    MOLECULES = "rate.molecules",
    DENSE = "rate.dense",
    RAYS = "rate.rays",
    CHESS = "rate.chess",
    PARSE = "rate.parse",
    MACHINE = "rate.machine",
    COMPRESS = "rate.compress",
    DIGEST = "rate.digest",
    ALIGN = "rate.align",
}

names! { pub mod metric: MetricId:
    RATE = "rate",
    RATIO = "ratio",
    COPY_SPREAD = "copy_spread",
    SLOWEST_CPU = "slowest_cpu",
    PHYSICAL = "physical",
    HUGE_FREE = "huge_free",
}

names! { pub mod param: ParamId:
    MIB = "mib",
    NODE = "node",
}

names! { pub mod rule: RuleId:
    RATE_RUNS_APART = "rate-runs-apart",
    RATE_SETTLED_AT_START = "rate-settled-at-start",
    RATE_MEMORY_MOVES = "rate-memory-moves",
    RATE_FOOTPRINT_IN_CACHE = "rate-footprint-in-cache",
    RATE_SLOW_MEMORY = "rate-slow-memory",
}

names! { pub mod probe: probes:
    RATE_HISTORY = "probe:rate-history",
    RATE_ESCALATION = "probe:rate-escalation",
}

family! { "rate" benchmarks: self, metrics: metric, params: param, rules: rule, probes: probe }

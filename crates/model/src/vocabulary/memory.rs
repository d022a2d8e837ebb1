//! Memory and caches: latency, bandwidth, sharing.

use super::{BenchId, MetricId, family, names};

names! { BenchId:
    BANDWIDTH = "memory.bandwidth",
    LATENCY = "memory.latency",
    DATA_SOURCE = "memory.data-source",
    CORE_TO_CORE = "memory.core-to-core",
    LLC_SHARING = "memory.llc-sharing",
    CORES = "memory.cores",
    PARALLELISM = "memory.parallelism",
    TLB = "memory.tlb",
    LINE = "memory.line",
    NODE_BANDWIDTH = "memory.node-bandwidth",
    NODE_LATENCY = "memory.node-latency",
    LOADED_LATENCY = "memory.loaded-latency",
}

names! { pub mod metric: MetricId:
    BANDWIDTH = "bandwidth",
    BUS_TRAFFIC = "bus_traffic",
    LATENCY = "latency",
    CYCLES = "cycles",
    TRAFFIC = "traffic",
    TRANSLATION = "translation",
}

names! { pub mod param: ParamId:
    OP = "op",
    BYTES = "bytes",
    LLC = "llc",
    NODE = "node",
    ORDER = "order",
    STRIDE = "stride",
    PACE = "pace",
    CACHES = "caches",
    SOURCE = "source",
    FROM = "from",
    TO = "to",
    AFTER = "after",
    CPU = "cpu",
    CHAINS = "chains",
    LAYOUT = "layout",
    PAGES = "pages",
    OFFSET = "offset",
    MEMORY = "memory",
    MIX = "mix",
    PAUSE = "pause",
    WITHIN = "within",
}

const CORE_BOUND: &[(BenchId, &[MetricId])] = &[(BANDWIDTH, &[]), (LATENCY, &[]), (DATA_SOURCE, &[])];

family! { "memory" benchmarks: self, metrics: metric, params: param; CORE_BOUND }

//! The map of memory, and what is slow in it.

use super::{family, names};

names! { BenchId:
    MAP = "memory.map",
    REGIONS = "memory.regions",
}

names! { pub mod metric: MetricId:
    BANDWIDTH = "bandwidth",
    TYPICAL = "typical",
    PHYSICAL = "physical",
    SPREAD = "spread",
    HOPPING = "hopping",
    SCATTERED = "scattered",
    NEAR = "near",
    STREAM = "stream_alone",
    STREAM_NEAR = "stream_near",
    STREAM_HOPPING = "stream_hopping",
    HUGE_PAGE = "huge_page",
    HUGE_PAGE_NEAR = "huge_page_near",
    KEPT = "kept_in_cache",
    CHUNK_IN_TIME = "chunk_in_time",
    MOMENT = "moment",
    MOVED = "moved",
    FIRST_TOUCH = "first_touch",
    SECOND_TOUCH = "second_touch",
}

names! { pub mod param: ParamId:
    NODE = "node",
    CHUNK = "chunk",
}

names! { pub mod rule: RuleId:
    MEMORY_TWO_SPEEDS = "memory-two-speeds",
    MEMORY_REGIONS_DIFFER = "memory-regions-differ",
    MEMORY_NEIGHBOUR = "memory-neighbour",
    MEMORY_NODES_UNEVEN = "memory-nodes-uneven",
}

family! { "memory_map" benchmarks: self, metrics: metric, params: param, rules: rule }

//! The map of memory, and what is slow in it.

use super::{Family, names};

names! { BenchId:
    MAP = "memory.map",
}

pub mod metric {
    use super::names;

    names! { MetricId:
        BANDWIDTH = "bandwidth",
        TYPICAL = "typical",
        PHYSICAL = "physical",
        SPREAD = "spread",
    }
}

pub mod param {
    use super::names;

    names! { ParamId:
        NODE = "node",
        CHUNK = "chunk",
    }
}

pub mod rule {
    use super::names;

    names! { RuleId:
        MEMORY_TWO_SPEEDS = "memory-two-speeds",
        MEMORY_NODES_UNEVEN = "memory-nodes-uneven",
    }
}

pub(super) const FAMILY: Family = Family {
    name: "memory_map",
    benchmarks: ALL,
    metrics: metric::ALL,
    params: param::ALL,
    rules: rule::ALL,
    ..Family::NONE
};

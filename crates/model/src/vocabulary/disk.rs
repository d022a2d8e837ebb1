//! Disks.

use super::{family, names};

names! { BenchId:
    SEQUENTIAL = "disk.sequential",
    RANDOM = "disk.random",
    PACED = "disk.paced",
    SYNC = "disk.sync",
    METADATA = "disk.metadata",
    TRIM = "disk.trim",
    VERIFY = "disk.verify",
    SUSTAINED = "disk.sustained",
}

names! { pub mod metric: MetricId:
    BANDWIDTH = "bandwidth",
    IOPS = "iops",
    LATENCY_P50 = "latency_p50",
    LATENCY_P99 = "latency_p99",
    LATENCY_P90 = "latency_p90",
    LATENCY_P999 = "latency_p999",
    LATENCY_P9999 = "latency_p9999",
    LATENCY_MAX = "latency_max",
    CPU_PER_IO = "cpu_per_io",
    GENERATOR_BUSY = "generator_busy",
    DEVICE_SHARE = "device_share",
    IN_FLIGHT = "in_flight",
    DEVICE_BUSY = "device_busy",
    ACHIEVED = "achieved",
    RATE = "rate",
}

names! { pub mod param: ParamId:
    OP = "op",
    CACHE = "cache",
    ENGINE = "engine",
    JOBS = "jobs",
    SECONDS = "seconds",
    BLOCK = "block",
    DEPTH = "depth",
    RATE = "rate",
}

names! { pub mod rule: RuleId:
    DISK_FAILED_IO = "disk-failed-io",
    DISK_PAGE_CACHE = "disk-page-cache",
    DISK_THROTTLED = "disk-throttled",
    DISK_GENERATOR_BOUND = "disk-generator-bound",
    DISK_OTHERS = "disk-others",
    DISK_NOT_STEADY = "disk-not-steady",
    DISK_UNSAFE_FAST = "disk-unsafe-fast",
    DISK_LATENCY_TAIL = "disk-latency-tail",
    DISK_DEPTH_USELESS = "disk-depth-useless",
    DISK_NEARLY_FULL = "disk-nearly-full",
    DISK_NO_TRIM = "disk-no-trim",
}

names! { pub mod probe: probes:
    DISK = "probe:disk",
}

family! { "disk" benchmarks: self, metrics: metric, params: param, rules: rule, probes: probe }

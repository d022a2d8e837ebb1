//! Files in the page cache.

use super::{Family, names};

names! { BenchId:
    READ = "file.read",
    MMAP = "file.mmap",
    CREATE = "file.create",
}

names! { pub mod metric: MetricId:
    IO = "io",
    OPEN_CLOSE = "open_close",
    CACHED_SHARE = "cached_share",
    CREATE = "create",
    DELETE = "delete",
}

names! { pub mod param: ParamId:
    CACHE = "cache",
    BYTES = "bytes",
}

pub(super) const FAMILY: Family =
    Family { name: "file", benchmarks: ALL, metrics: metric::ALL, params: param::ALL, ..Family::NONE };

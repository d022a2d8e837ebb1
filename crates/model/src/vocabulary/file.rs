//! Files in the page cache.

use super::{Family, names};

names! { BenchId:
    READ = "file.read",
    MMAP = "file.mmap",
    CREATE = "file.create",
}

pub mod metric {
    use super::names;

    names! { MetricId:
        IO = "io",
        OPEN_CLOSE = "open_close",
        CACHED_SHARE = "cached_share",
        CREATE = "create",
        DELETE = "delete",
    }
}

pub mod param {
    use super::names;

    names! { ParamId:
        CACHE = "cache",
        BYTES = "bytes",
    }
}

pub(super) const FAMILY: Family =
    Family { name: "file", benchmarks: ALL, metrics: metric::ALL, params: param::ALL, ..Family::NONE };

//! Files in the page cache.

use super::{family, names};

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

family! { "file" benchmarks: self, metrics: metric, params: param }

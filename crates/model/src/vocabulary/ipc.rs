//! Two tasks that talk: pipes, sockets, semaphores.

use super::{BenchId, MetricId, family, names};

names! { BenchId:
    PIPE_PINGPONG = "ipc.pipe-pingpong",
    PIPE_WORK = "ipc.pipe-work",
    PIPE = "ipc.pipe",
    FIFO = "ipc.fifo",
    UNIX_STREAM = "ipc.unix-stream",
    UNIX_DATAGRAM = "ipc.unix-datagram",
    TCP = "ipc.tcp",
    UDP = "ipc.udp",
    EVENTFD = "ipc.eventfd",
    FUTEX = "ipc.futex",
    SYSV_SEMAPHORE = "ipc.sysv-semaphore",
    POSIX_SEMAPHORE = "ipc.posix-semaphore",
    FCNTL_LOCK = "ipc.fcntl-lock",
    SHARED_MEMORY = "ipc.shared-memory",
    PIPE_BANDWIDTH = "ipc.pipe-bandwidth",
    UNIX_BANDWIDTH = "ipc.unix-bandwidth",
    TCP_BANDWIDTH = "ipc.tcp-bandwidth",
    TCP_CONNECT = "ipc.tcp-connect",
    UNIX_CONNECT = "ipc.unix-connect",
}

names! { pub mod metric: MetricId:
    ROUND_TRIPS = "round_trips",
    WAKEUP_P50 = "wakeup_p50",
    WAKEUP_P99 = "wakeup_p99",
    WAKEUP_JITTER = "wakeup_jitter",
    WAKING = "waking",
    WAITING = "waiting",
    SWITCHING = "switching",
    VOLUNTARY = "voluntary",
    INVOLUNTARY = "involuntary",
    OCCUPANCY = "occupancy",
    MIGRATIONS = "migrations",
    AFFINE = "affine",
    LATENCY = "latency",
    BANDWIDTH = "bandwidth",
    COPY = "copy",
    COPY_SHARE = "copy_share",
    NET = "net",
}

names! { pub mod param: ParamId:
    CLASS = "class",
    WORK_NS = "work_ns",
    MESSAGE = "message",
}

const CORE_BOUND: &[(BenchId, &[MetricId])] = &[
    (PIPE_PINGPONG, &[]),
    (PIPE, &[]),
    (FIFO, &[]),
    (UNIX_STREAM, &[]),
    (UNIX_DATAGRAM, &[]),
    (TCP, &[]),
    (UDP, &[]),
    (EVENTFD, &[]),
    (FUTEX, &[]),
    (SYSV_SEMAPHORE, &[]),
    (POSIX_SEMAPHORE, &[]),
    (FCNTL_LOCK, &[]),
    (SHARED_MEMORY, &[]),
    (PIPE_BANDWIDTH, &[]),
    (UNIX_BANDWIDTH, &[]),
    (TCP_BANDWIDTH, &[]),
    (TCP_CONNECT, &[]),
    (UNIX_CONNECT, &[]),
];

family! { "ipc" benchmarks: self, metrics: metric, params: param; CORE_BOUND }

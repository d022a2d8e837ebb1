//! What the kernel does for one task: system calls, signals, pages, processes, timers, locks.

use super::{BenchId, Family, MetricId, names};

names! { BenchId:
    SYSCALL_GETPID = "syscall.getpid",
    SYSCALL_WRITE = "syscall.write",
    SYSCALL_READ = "syscall.read",
    SYSCALL_STAT = "syscall.stat",
    SYSCALL_FSTAT = "syscall.fstat",
    SYSCALL_OPEN_CLOSE = "syscall.open-close",
    SYSCALL_SELECT = "syscall.select",
    SYSCALL_POLL = "syscall.poll",
    SYSCALL_EPOLL = "syscall.epoll",
    SYSCALL_CLOCK_GETTIME = "syscall.clock-gettime",
    SIGNAL_HANDLER = "signal.handler",
    SIGNAL_PROTECTION_FAULT = "signal.protection-fault",
    VM_PAGE_FAULT = "vm.page-fault",
    VM_POPULATE = "vm.populate",
    VM_FILE_FAULT = "vm.file-fault",
    VM_MMAP = "vm.mmap",
    VM_MPROTECT = "vm.mprotect",
    PROCESS_FORK = "process.fork",
    PROCESS_VFORK_EXEC = "process.vfork-exec",
    PROCESS_SPAWN = "process.spawn",
    PROCESS_EXEC = "process.exec",
    PROCESS_SHELL = "process.shell",
    PROCESS_THREAD = "process.thread",
    TIMER_NANOSLEEP = "timer.nanosleep",
    TIMER_TIMERFD = "timer.timerfd",
    LOCK_ATOMIC = "lock.atomic",
    LOCK_MUTEX = "lock.mutex",
    LOCK_HANDOVER = "lock.handover",
}

pub mod metric {
    use super::names;

    names! { MetricId:
        LATENCY = "latency",
        RATIO = "ratio",
        INSTALL = "install",
        SEND = "send",
        TOTAL = "total",
        HANDLE = "handle",
        BANDWIDTH = "bandwidth",
        TOUCHED = "touched",
        PAGE = "page",
        COPY = "copy",
        PAGES_PER_FAULT = "pages_per_fault",
        PER_GB = "per_gb",
        LATENESS_P50 = "lateness_p50",
        LATENESS_MIN = "lateness_min",
        LATENESS_P99 = "lateness_p99",
        LATENESS_MAX = "lateness_max",
        LATENESS_WORST = "lateness_worst",
        RATE = "rate",
        LEAST_SHARE = "least_share",
        HANDED_OVER = "handed_over",
        OCCUPANCY = "occupancy",
    }
}

pub mod param {
    use super::names;

    names! { ParamId:
        FDS = "fds",
        WAY = "way",
        BYTES = "bytes",
        RESIDENT_MB = "resident_mb",
        PROGRAM = "program",
        POLICY = "policy",
        SLACK_NS = "slack_ns",
        OP = "op",
        CLASS = "class",
    }
}

const CORE_BOUND: &[(BenchId, &[MetricId])] = &[
    (SYSCALL_GETPID, &[]),
    (SYSCALL_WRITE, &[]),
    (SYSCALL_READ, &[]),
    (SYSCALL_STAT, &[]),
    (SYSCALL_FSTAT, &[]),
    (SYSCALL_OPEN_CLOSE, &[]),
    (SYSCALL_SELECT, &[]),
    (SYSCALL_POLL, &[]),
    (SYSCALL_EPOLL, &[]),
    (SYSCALL_CLOCK_GETTIME, &[]),
    (SIGNAL_HANDLER, &[]),
    (SIGNAL_PROTECTION_FAULT, &[]),
    (VM_PAGE_FAULT, &[]),
    (VM_MPROTECT, &[]),
    (VM_MMAP, &[metric::LATENCY]),
    (VM_FILE_FAULT, &[metric::LATENCY]),
    (PROCESS_VFORK_EXEC, &[]),
    (PROCESS_SPAWN, &[]),
    (PROCESS_EXEC, &[]),
    (PROCESS_SHELL, &[]),
    (LOCK_ATOMIC, &[]),
    (LOCK_MUTEX, &[]),
    (LOCK_HANDOVER, &[]),
];

pub(super) const FAMILY: Family = Family {
    name: "kernel",
    benchmarks: ALL,
    metrics: metric::ALL,
    params: param::ALL,
    core_bound: CORE_BOUND,
    ..Family::NONE
};

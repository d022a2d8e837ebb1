//! The machine and its host: what rules find of it, whatever is measured, and what a host leaves
//! its guest.

use super::{family, names};

names! { BenchId:
    PAUSES = "host.pauses",
    IPI = "host.ipi",
    TIMER = "host.timer",
    IDLE = "host.idle",
    NEIGHBOURS = "host.neighbours",
}

/// The group of these benchmarks.
pub const GROUP: &str = "host";

names! { pub mod metric: MetricId:
    WITHHELD = "withheld",
    BY_TASKS = "by_tasks",
    PAUSED = "paused",
    LONGEST = "longest",
    RATE = "rate",
    GAP_P50 = "gap_p50",
    GAP_P99 = "gap_p99",
    GAP_P999 = "gap_p999",
    GAP_MAX = "gap_max",
    STOLEN = "stolen",
    INTERRUPTS = "interrupts",
    WATCHED = "watched",
    PAUSE = "pause",
    LATENCY = "latency",
    INTERRUPT = "interrupt",
    REPROGRAM = "reprogram",
    EXIT = "exit",
    WAKE_P50 = "wake_p50",
    WAKE_P99 = "wake_p99",
    CLOCK = "clock",
    CACHE = "cache",
    BANDWIDTH = "bandwidth",
    SIZE = "size",
    KEPT = "kept",
    MOMENT = "moment",
}

names! { pub mod param: ParamId:
    CPU = "cpu",
    STATE = "state",
    EXPIRY = "expiry",
    IDLE_US = "idle_us",
}

names! { pub mod rule: RuleId:
    WRONG_ANSWER = "wrong-answer",
    FAILED_CASE = "failed-case",
    ABOVE_CEILING = "above-ceiling",
    FREE_PLACEMENT = "free-placement",
    TWO_CPUS_WIN = "two-cpus-win",
    BACKGROUND_LOAD = "background-load",
    STEAL = "steal",
    CPU_QUOTA = "cpu-quota",
    SANDBOXED = "sandboxed",
    RESTRICTED_CONTAINER = "restricted-container",
    MISPLACED_TASK = "misplaced-task",
    SWAPPING = "swapping",
    HIGHER_PRIORITY = "higher-priority",
    MEMORY_PRESSURE = "memory-pressure",
    UNSTABLE_CLOCKSOURCE = "unstable-clocksource",
    SLOW_GOVERNOR = "slow-governor",
    TURBO_OFF = "turbo-off",
    MOVING_CLOCK = "moving-clock",
    CLOCK_CHECK = "clock-check",
    SHARED_CORE = "shared-core",
    SLOW_CLOCK = "slow-clock",
    CLOCK_AFTER_IDLE = "clock-after-idle",
    NO_HUGE_PAGES = "no-huge-pages",
    SLOW_HUGE_PAGES = "slow-huge-pages",
    DIMM_POPULATION = "dimm-population",
    BLOCK_INSIDE_CACHE = "block-inside-cache",
    LLC_DIFFERS = "llc-differs",
    ODD_CORE = "odd-core",
    LATENCY_KNEE = "latency-knee",
    NUMA_BALANCING = "numa-balancing",
    REMOTE_MEMORY = "remote-memory",
    DRIFT = "drift",
    MODES = "modes",
    PACKAGES_IN_ONE_NODE = "packages-in-one-node",
    NODES_WITHOUT_DISTANCE = "nodes-without-distance",
    HIDDEN_LLC = "hidden-llc",
    LLC_NOT_SHARED = "llc-not-shared",
    HIDDEN_SMT = "hidden-smt",
    WRONG_SIBLINGS = "wrong-siblings",
    FLOATING_VCPUS = "floating-vcpus",
    PREEMPTED_CPUS = "preempted-cpus",
}

names! { pub mod probe: probes:
    AFFINITY = "probe:affinity",
    ARCHITECTURE = "probe:architecture",
    CPUID = "probe:cpuid",
    PAGE_BYTES = "probe:page_bytes",
    DIRECTORY = "probe:directory",
    DMIDECODE = "probe:dmidecode",
    DMIDECODE_SIGNS = "probe:dmidecode_signs",
    BLANKED = "probe:blanked",
    ARCHIVE = "probe:archive",
    FOLDERS_CPU = "probe:folders/cpu",
    FOLDERS_NODE = "probe:folders/node",
}

family! { "host" benchmarks: self, metrics: metric, params: param, rules: rule, probes: probe }

//! The machine and its host: what rules find of it, whatever is measured.

use super::{Family, names};

pub mod rule {
    use super::names;

    names! { RuleId:
        WRONG_ANSWER = "wrong-answer",
        FAILED_CASE = "failed-case",
        ABOVE_CEILING = "above-ceiling",
        FREE_PLACEMENT = "free-placement",
        TWO_CPUS_WIN = "two-cpus-win",
        BACKGROUND_LOAD = "background-load",
        STEAL = "steal",
        CPU_QUOTA = "cpu-quota",
        SANDBOXED = "sandboxed",
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
    }
}

pub mod probe {
    use super::names;

    names! { probes:
        AFFINITY = "probe:affinity",
        ARCHITECTURE = "probe:architecture",
        CPUID = "probe:cpuid",
        PAGE_BYTES = "probe:page_bytes",
        DIRECTORY = "probe:directory",
        DMIDECODE = "probe:dmidecode",
        BLANKED = "probe:blanked",
        FOLDERS_CPU = "probe:folders/cpu",
        FOLDERS_NODE = "probe:folders/node",
    }
}

pub(super) const FAMILY: Family =
    Family { name: "host", rules: rule::ALL, probes: probe::ALL, ..Family::NONE };

//! Others' commands, measured under watch.

use super::{Family, names};

names! { BenchId:
    COMMAND = "guard.command",
}

pub mod metric {
    use super::names;

    names! { MetricId:
        RESULT = "result",
        WALL = "wall",
        CPU_USER = "cpu_user",
        CPU_SYSTEM = "cpu_system",
        VOLUNTARY = "voluntary",
        INVOLUNTARY = "involuntary",
        MIGRATIONS = "migrations",
        FAULTS = "faults",
        WAIT = "wait",
        TASKS = "tasks",
        OCCUPANCY = "occupancy",
        LOOKS = "looks",
        PINNED = "pinned",
        LEFT = "left",
        WATCH_CPU = "watch_cpu",
        OVERLAP = "overlap",
    }
}

pub mod param {
    use super::names;

    names! { ParamId:
        COMMAND = "command",
        CLASS = "class",
    }
}

pub mod rule {
    use super::names;

    names! { RuleId:
        SWINGING_COMMAND = "swinging-command",
        COMMAND_PLACEMENT = "command-placement",
    }
}

pub(super) const FAMILY: Family = Family {
    name: "guard",
    benchmarks: ALL,
    metrics: metric::ALL,
    params: param::ALL,
    rules: rule::ALL,
    ..Family::NONE
};

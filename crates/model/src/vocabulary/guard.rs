//! Others' commands, measured under watch.

use super::{family, names};

names! { BenchId:
    COMMAND = "guard.command",
}

names! { pub mod metric: MetricId:
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

names! { pub mod param: ParamId:
    COMMAND = "command",
    CLASS = "class",
}

names! { pub mod rule: RuleId:
    SWINGING_COMMAND = "swinging-command",
    COMMAND_PLACEMENT = "command-placement",
}

family! { "guard" benchmarks: self, metrics: metric, params: param, rules: rule }

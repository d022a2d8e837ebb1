//! The known knobs: name, possible values, and files by kernel. A new knob is a row of [`KNOBS`];
//! sysctls need none: their own dotted names will do.

use std::path::Path;

use model::units;

/// A knob: its name here, and where Linux keeps it.
pub struct Knob {
    pub name: &'static str,
    pub about: &'static str,
    pub values: Values,
    /// In the order of search; empty: it is a property of Assay's own tasks.
    pub places: &'static [Place],
    /// The kernels that have it, from one version to before another, where it came or went.
    pub from: Option<Version>,
    pub until: Option<Version>,
    /// What those have instead that lack it.
    pub instead: &'static str,
}

/// Major and minor number of a kernel.
pub type Version = (u32, u32);

/// `6.18.44-cloud` as a version.
pub fn version(release: &str) -> Option<Version> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

impl Knob {
    /// Whether kernels of this version have it, as far as is known.
    pub fn is_of(&self, version: Version) -> bool {
        self.from.is_none_or(|from| version >= from) && self.until.is_none_or(|until| version < until)
    }
}

/// Where a knob is, on some kernels.
pub struct Place {
    /// Below the root. One `*` in it stands for each of several files that are turned together.
    pub file: &'static str,
    pub form: Form,
    pub kernels: &'static str,
}

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    Choice(&'static [&'static str]),
    /// Whole numbers from the first to the second.
    Number(u64, u64),
    /// Whole nanoseconds; people may write us, ms or s behind the number.
    Nanoseconds(u64, u64),
    /// Whatever its file takes: a sysctl's own affair.
    Any,
}

/// How a file says which value it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// All values, the current one in brackets: `always [madvise] never`, `none (voluntary) full`.
    Bracketed,
    /// One word of many, with `NO_` before it where it is off: this one.
    Feature(String),
}

const SECOND: u64 = 1_000_000_000;

const fn place(file: &'static str, kernels: &'static str) -> Place {
    Place { file, form: Form::Plain, kernels }
}

const fn bracketed(file: &'static str, kernels: &'static str) -> Place {
    Place { file, form: Form::Bracketed, kernels }
}

const EEVDF: &str = "kernels from 6.6 on use EEVDF: set base_slice_ns, or from 6.12 on slice_ns (no root \
  needed)";

pub const KNOBS: &[Knob] = &[
    Knob {
        name: "min_granularity_ns",
        about: "CFS: guaranteed slice of a runnable task",
        values: Values::Nanoseconds(10_000, SECOND),
        places: &[
            place("/sys/kernel/debug/sched/min_granularity_ns", "5.13–6.5"),
            place("/proc/sys/kernel/sched_min_granularity_ns", "to 5.12"),
        ],
        from: None,
        until: Some((6, 6)),
        instead: EEVDF,
    },
    Knob {
        name: "wakeup_granularity_ns",
        about: "CFS: lead that a woken task needs to preempt the running one",
        values: Values::Nanoseconds(0, SECOND),
        places: &[
            place("/sys/kernel/debug/sched/wakeup_granularity_ns", "5.13–6.5"),
            place("/proc/sys/kernel/sched_wakeup_granularity_ns", "to 5.12"),
        ],
        from: None,
        until: Some((6, 6)),
        instead: "kernels from 6.6 on use EEVDF: set policy=batch to stop wake-up preemption of a task (no \
          root needed), or feature.WAKEUP_PREEMPTION for all",
    },
    Knob {
        name: "latency_ns",
        about: "CFS: period in which every runnable task runs once",
        values: Values::Nanoseconds(100_000, SECOND),
        places: &[
            place("/sys/kernel/debug/sched/latency_ns", "5.13–6.5"),
            place("/proc/sys/kernel/sched_latency_ns", "to 5.12"),
        ],
        from: None,
        until: Some((6, 6)),
        instead: EEVDF,
    },
    Knob {
        name: "base_slice_ns",
        about: "EEVDF: default slice of a task",
        values: Values::Nanoseconds(100_000, SECOND),
        places: &[place("/sys/kernel/debug/sched/base_slice_ns", "from 6.6")],
        from: Some((6, 6)),
        until: None,
        instead: "kernels to 6.5 use CFS: set min_granularity_ns and wakeup_granularity_ns",
    },
    Knob {
        name: "migration_cost_ns",
        about: "time after its run in which a task counts as cache-hot and is not moved",
        values: Values::Nanoseconds(0, SECOND),
        places: &[
            place("/sys/kernel/debug/sched/migration_cost_ns", "from 5.13"),
            place("/proc/sys/kernel/sched_migration_cost_ns", "to 5.12"),
        ],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "nr_migrate",
        about: "most tasks that load balancing moves at once",
        values: Values::Number(0, 4096),
        places: &[
            place("/sys/kernel/debug/sched/nr_migrate", "from 5.13"),
            place("/proc/sys/kernel/sched_nr_migrate", "to 5.12"),
        ],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "preempt",
        about: "where kernel code may be preempted",
        values: Values::Choice(&["none", "voluntary", "full", "lazy"]),
        places: &[
            bracketed("/sys/kernel/debug/sched/preempt", "from 5.13, with CONFIG_PREEMPT_DYNAMIC"),
            bracketed("/sys/kernel/debug/sched_preempt", "5.12"),
        ],
        from: None,
        until: None,
        instead: "a kernel without CONFIG_PREEMPT_DYNAMIC is built for one of them",
    },
    Knob {
        name: "numa_balancing",
        about: "NUMA balancing: moves pages to the node of the tasks that use them",
        values: Values::Number(0, 3),
        places: &[place("/proc/sys/kernel/numa_balancing", "from 3.13, with CONFIG_NUMA_BALANCING")],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "autogroup",
        about: "fair shares per session instead of per task",
        values: Values::Choice(&["0", "1"]),
        places: &[place(
            "/proc/sys/kernel/sched_autogroup_enabled",
            "from 2.6.38, with CONFIG_SCHED_AUTOGROUP",
        )],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "thp",
        about: "transparent huge pages: for all memory, on madvise, or never",
        values: Values::Choice(&["always", "madvise", "never"]),
        places: &[bracketed("/sys/kernel/mm/transparent_hugepage/enabled", "from 2.6.38")],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "thp_defrag",
        about: "effort to find a huge page at a page fault",
        values: Values::Choice(&["always", "defer", "defer+madvise", "madvise", "never"]),
        places: &[bracketed("/sys/kernel/mm/transparent_hugepage/defrag", "from 2.6.38")],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "governor",
        about: "governor that sets the core clock, in all frequency policies",
        values: Values::Any,
        places: &[place("/sys/devices/system/cpu/cpufreq/*/scaling_governor", "with cpufreq")],
        from: None,
        until: None,
        instead: "without cpufreq (most guests) the host or the firmware sets the clock",
    },
    Knob {
        name: "smt",
        about: "SMT: second threads of all cores, online or not",
        values: Values::Choice(&["on", "off"]),
        places: &[place("/sys/devices/system/cpu/smt/control", "from 4.19")],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "slice_ns",
        about: "slice of the benchmark's own tasks (no root needed)",
        values: Values::Nanoseconds(100_000, 100_000_000),
        places: &[],
        from: None,
        until: None,
        instead: "",
    },
    Knob {
        name: "policy",
        about: "scheduling policy of the benchmark's own tasks (no root needed)",
        values: Values::Choice(&["other", "batch"]),
        places: &[],
        from: None,
        until: None,
        instead: "",
    },
];

/// A knob whose name says which: `feature.RUN_TO_PARITY`.
const FEATURE: &str = "feature.";
const FEATURE_FILES: [&str; 2] = ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
const FEATURE_VALUES: Values = Values::Choice(&["on", "off"]);

pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

/// A name as the table and the kernel's own names have it.
pub enum Named {
    Row(&'static Knob),
    /// A scheduler feature, by its name in the kernel.
    Feature(String),
    /// A file below /proc/sys.
    Sysctl(String),
}

impl Named {
    pub fn of(name: &str) -> Option<Named> {
        if let Some(knob) = find(name) {
            return Some(Named::Row(knob));
        }
        let word = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        if let Some(feature) = name.strip_prefix(FEATURE) {
            return word(feature).then(|| Named::Feature(feature.to_ascii_uppercase()));
        }
        (name.contains('.') && name.split('.').all(word)).then(|| Named::Sysctl(name.replace('.', "/")))
    }

    pub fn values(&self) -> Values {
        match self {
            Named::Row(knob) => knob.values,
            Named::Feature(_) => FEATURE_VALUES,
            Named::Sysctl(_) => Values::Any,
        }
    }

    /// Whether it is a property of Assay's own tasks only.
    pub fn is_of_tasks(&self) -> bool {
        matches!(self, Named::Row(knob) if knob.places.is_empty())
    }

    /// The patterns of the files where it may be, the form of each, and the kernels that have it.
    pub fn places(&self) -> Vec<(String, Form, &'static str)> {
        match self {
            Named::Row(knob) => knob
                .places
                .iter()
                .map(|place| (place.file.to_string(), place.form.clone(), place.kernels))
                .collect(),
            Named::Feature(feature) => FEATURE_FILES
                .map(|file| (file.to_string(), Form::Feature(feature.clone()), "with CONFIG_SCHED_DEBUG"))
                .to_vec(),
            Named::Sysctl(path) => vec![(format!("/proc/sys/{path}"), Form::Plain, "")],
        }
    }

    /// Whether both name the same setting: a row and its sysctl, a feature in small letters.
    pub fn is_same(&self, other: &Named) -> bool {
        let others = other.places();
        self.places()
            .iter()
            .any(|(file, form, _)| others.iter().any(|(of, as_, _)| of == file && as_ == form))
    }

    /// The form of the value in this file; `None` if the file is not the knob's.
    pub fn form_of(&self, file: &str) -> Option<Form> {
        let known = |pattern: &str| match pattern.split_once('*') {
            Some((before, after)) => {
                let middle = file.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                middle.is_some_and(|middle| !middle.is_empty() && !middle.contains('/') && middle != "..")
            }
            None => pattern == file,
        };
        self.places().into_iter().find(|(pattern, ..)| known(pattern)).map(|(_, form, _)| form)
    }
}

impl Values {
    /// The value as its file holds it, or an error that says what is wrong.
    pub fn canonical(self, name: &str, value: &str) -> Result<String, String> {
        let within = |number: Option<u64>, low: u64, high: u64, forms: &str| match number {
            Some(number) if (low..=high).contains(&number) => Ok(number.to_string()),
            _ => Err(format!("{name} takes {}{forms}, not {value:?}", self.words())),
        };
        match self {
            Values::Choice(choices) if choices.contains(&value) => Ok(value.to_string()),
            Values::Choice(choices) => Err(format!("{name} takes {}, not {value:?}", choices.join(", "))),
            Values::Number(low, high) => within(value.parse().ok(), low, high, ""),
            Values::Nanoseconds(low, high) => within(nanoseconds(value), low, high, " (in ns, or as 2.5ms)"),
            Values::Any if value.is_empty() || value.len() > 200 || value.contains(char::is_control) => {
                Err(format!("{name} cannot be {value:?}"))
            }
            Values::Any => Ok(value.to_string()),
        }
    }

    pub fn words(self) -> String {
        match self {
            Values::Choice(choices) => choices.join(", "),
            Values::Number(low, high) => format!("{low}–{high}"),
            Values::Nanoseconds(low, high) => format!("{}–{}", time(low), time(high)),
            Values::Any => "what its file accepts".to_string(),
        }
    }
}

/// Whole ns in the largest unit that divides them: `10 µs`, `1 s`.
fn time(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1000)];
    let unit = units.into_iter().find(|(_, size)| ns > 0 && ns.is_multiple_of(*size));
    unit.map_or(ns.to_string(), |(unit, size)| format!("{} {unit}", ns / size))
}

/// `2500000`, `2.5ms`, `100us`, `1s`.
pub fn nanoseconds(text: &str) -> Option<u64> {
    units::time(text, "ns").filter(|ns| *ns < 1e15).map(|ns| ns.round() as u64)
}

impl Form {
    /// The value that a file's text names.
    pub fn value_in(&self, text: &str) -> Option<String> {
        let text = text.trim();
        match self {
            Form::Plain => Some(text.to_string()),
            Form::Bracketed => {
                let within =
                    |word: &str, open, close| Some(word.strip_prefix(open)?.strip_suffix(close)?.to_string());
                text.split_ascii_whitespace()
                    .find_map(|word| within(word, '[', ']').or_else(|| within(word, '(', ')')))
            }
            Form::Feature(feature) => text.split_ascii_whitespace().find_map(|word| {
                if word.strip_prefix("NO_").unwrap_or(word) == feature {
                    Some(if word == feature { "on" } else { "off" }.to_string())
                } else {
                    None
                }
            }),
        }
    }

    /// What is written to set a value.
    pub fn written(&self, value: &str) -> String {
        match (self, value) {
            (Form::Feature(feature), "off") => format!("NO_{feature}"),
            (Form::Feature(feature), _) => feature.clone(),
            _ => value.to_string(),
        }
    }

    /// What a kernel's file holds after a value was written: so does the file of a made tree.
    pub fn text_after(&self, before: &str, value: &str) -> String {
        let words = |change: &dyn Fn(&str) -> String| {
            before.split_ascii_whitespace().map(change).collect::<Vec<_>>().join(" ")
        };
        match self {
            Form::Plain => value.to_string(),
            Form::Bracketed => words(&|word| {
                let bare = word.trim_matches(['[', ']', '(', ')']);
                if bare == value { format!("[{bare}]") } else { bare.to_string() }
            }),
            Form::Feature(feature) => words(&|word| {
                if word.strip_prefix("NO_").unwrap_or(word) == feature {
                    self.written(value)
                } else {
                    word.to_string()
                }
            }),
        }
    }
}

/// The files that a pattern stands for below a root, in name order.
pub fn files(root: &Path, pattern: &str) -> Vec<String> {
    let Some((folder, leaf)) = pattern.split_once("/*/") else { return vec![pattern.to_string()] };
    let below = root.join(folder.trim_start_matches('/'));
    let entries = std::fs::read_dir(below).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let file = |name: &String| format!("{folder}/{name}/{leaf}");
    let there = |file: &String| root.join(file.trim_start_matches('/')).exists();
    names.iter().map(file).filter(there).collect()
}

/// Whether a file belongs to debugfs, which is often not mounted or closed.
pub fn is_debugfs(file: &str) -> bool {
    file.starts_with("/sys/kernel/debug/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rows_features_or_sysctls() {
        assert!(matches!(Named::of("thp"), Some(Named::Row(knob)) if knob.name == "thp"));
        assert!(
            matches!(Named::of("feature.run_to_parity"), Some(Named::Feature(name)) if name == "RUN_TO_PARITY")
        );
        assert!(matches!(Named::of("vm.swappiness"), Some(Named::Sysctl(path)) if path == "vm/swappiness"));
        for none in ["warp", "feature.", "feature.A B", "vm..x", "../etc/passwd", "a/b.c", ".", ""] {
            assert!(Named::of(none).is_none(), "{none}");
        }
        let same = |one: &str, other: &str| {
            Named::of(one).zip(Named::of(other)).is_some_and(|(one, other)| one.is_same(&other))
        };
        assert!(same("feature.next_buddy", "feature.NEXT_BUDDY") && !same("policy", "slice_ns"));
        assert!(same("autogroup", "kernel.sched_autogroup_enabled"));
        assert!(!same("feature.NEXT_BUDDY", "feature.PLACE_LAG") && !same("thp", "thp_defrag"));
        let names: std::collections::BTreeSet<&str> = KNOBS.iter().map(|knob| knob.name).collect();
        assert_eq!(names.len(), KNOBS.len());
    }

    #[test]
    fn values_are_held_to_what_their_knob_takes() {
        let slice = Named::of("slice_ns").expect("a row").values();
        for (text, ns) in
            [("100000", "100000"), ("2.5ms", "2500000"), ("700us", "700000"), ("0.1s", "100000000")]
        {
            assert_eq!(slice.canonical("slice_ns", text).as_deref(), Ok(ns));
        }
        for wrong in ["99us", "1h", "-1ms", "", "ms", "NaN", "1e99"] {
            assert!(slice.canonical("slice_ns", wrong).is_err(), "{wrong}");
        }
        let any = Named::of("vm.swappiness").expect("a sysctl").values();
        assert_eq!(any.canonical("vm.swappiness", "10").as_deref(), Ok("10"));
        assert!(any.canonical("vm.swappiness", "1\n2").is_err());
        assert!(find("thp").expect("a row").values.canonical("thp", "maybe").is_err());
    }

    #[test]
    fn files_say_their_value_in_three_ways() {
        let feature = Form::Feature("NEXT_BUDDY".to_string());
        let text = "PLACE_LAG NO_NEXT_BUDDY RUN_TO_PARITY";
        assert_eq!(feature.value_in(text).as_deref(), Some("off"));
        assert_eq!(feature.text_after(text, "on"), "PLACE_LAG NEXT_BUDDY RUN_TO_PARITY");
        assert_eq!(feature.value_in(&feature.text_after(text, "on")).as_deref(), Some("on"));
        assert_eq!((feature.written("off").as_str(), feature.value_in("PLACE_LAG")), ("NO_NEXT_BUDDY", None));
        assert_eq!(Form::Bracketed.value_in("none (voluntary) full").as_deref(), Some("voluntary"));
        assert_eq!(Form::Bracketed.text_after("always [madvise] never", "never"), "always madvise [never]");
        assert_eq!(Form::Bracketed.value_in("always madvise"), None);
        assert_eq!(Form::Plain.value_in(" 3000000\n").as_deref(), Some("3000000"));
    }

    #[test]
    fn a_journal_cannot_name_a_file_that_is_not_the_knobs() {
        let governor = Named::of("governor").expect("a row");
        let file = |policy: &str| format!("/sys/devices/system/cpu/cpufreq/{policy}/scaling_governor");
        assert_eq!(governor.form_of(&file("policy3")), Some(Form::Plain));
        for other in [file("a/b"), file(".."), file(""), "/etc/passwd".to_string()] {
            assert_eq!(governor.form_of(&other), None, "{other}");
        }
        let thp = Named::of("thp").expect("a row");
        assert_eq!(thp.form_of("/sys/kernel/mm/transparent_hugepage/enabled"), Some(Form::Bracketed));
        assert_eq!(thp.form_of("/sys/kernel/mm/transparent_hugepage/defrag"), None);
    }
}

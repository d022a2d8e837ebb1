//! The ids that measuring, meaning and reports share: of benchmarks, metrics, parameters, rules and
//! probes, as constants of types of their own. All code takes ids from here, so that none names
//! what does not exist.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

pub mod cpu;
pub mod disk;
pub mod file;
pub mod guard;
pub mod hackbench;
pub mod host;
pub mod ipc;
pub mod kernel;
pub mod memory;
pub mod memory_map;
pub mod network;
pub mod nexmark;
pub mod rate;
pub mod sched;
pub mod selftest;
pub mod smt;
pub mod sweep;
pub mod unixbench;

/// A kind of id: a text of its own type, which only the vocabulary makes.
macro_rules! kind {
    ($(#[$about:meta])* $kind:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $kind(&'static str);

        impl $kind {
            pub const fn as_str(self) -> &'static str {
                self.0
            }
        }

        impl Deref for $kind {
            type Target = str;

            fn deref(&self) -> &str {
                self.0
            }
        }

        impl AsRef<str> for $kind {
            fn as_ref(&self) -> &str {
                self.0
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.0)
            }
        }

        impl<Text: Borrow<str> + ?Sized> PartialEq<Text> for $kind {
            fn eq(&self, other: &Text) -> bool {
                self.0 == other.borrow()
            }
        }

        impl PartialEq<$kind> for str {
            fn eq(&self, other: &$kind) -> bool {
                self == other.0
            }
        }

        impl PartialEq<$kind> for &str {
            fn eq(&self, other: &$kind) -> bool {
                *self == other.0
            }
        }

        impl PartialEq<$kind> for String {
            fn eq(&self, other: &$kind) -> bool {
                self == other.0
            }
        }

        impl PartialEq<$kind> for Cow<'_, str> {
            fn eq(&self, other: &$kind) -> bool {
                self == other.0
            }
        }

        impl From<$kind> for String {
            fn from(id: $kind) -> String {
                id.0.to_string()
            }
        }

        impl From<$kind> for &'static str {
            fn from(id: $kind) -> &'static str {
                id.0
            }
        }

        impl From<$kind> for Cow<'static, str> {
            fn from(id: $kind) -> Cow<'static, str> {
                Cow::Borrowed(id.0)
            }
        }
    };
}

kind! {
    /// Of a benchmark: `group.name`.
    BenchId
}
kind! {
    /// Of a benchmark's metric.
    MetricId
}
kind! {
    /// Of a parameter of cases or points.
    ParamId
}
kind! {
    /// Of a rule.
    RuleId
}

/// Constants of one kind, and `ALL` of them; with `pub mod`, in a module of their own.
macro_rules! names {
    (pub mod $module:ident: $($rows:tt)+) => {
        pub mod $module {
            $crate::vocabulary::names! { $($rows)+ }
        }
    };
    (probes: $($name:ident = $text:literal,)+) => {
        $(pub const $name: &str = $text;)+
        pub(in crate::vocabulary) const ALL: &[&str] = &[$($name),+];
    };
    ($kind:ident: $($name:ident = $text:literal,)+) => {
        $(pub const $name: $crate::vocabulary::$kind = $crate::vocabulary::$kind($text);)+
        pub(in crate::vocabulary) const ALL: &[$crate::vocabulary::$kind] = &[$($name),+];
    };
}
use names;

/// A family from the `ALL` of modules.
macro_rules! family {
    ($name:literal $($field:ident: $module:tt),+ $(; $core_bound:ident)?) => {
        pub(super) const FAMILY: $crate::vocabulary::Family = $crate::vocabulary::Family {
            name: $name,
            $($field: $module::ALL,)+
            $(core_bound: $core_bound,)?
            ..$crate::vocabulary::Family::NONE
        };
    };
}
use family;

/// The vocabulary of one family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    pub benchmarks: &'static [BenchId],
    pub metrics: &'static [MetricId],
    pub params: &'static [ParamId],
    pub rules: &'static [RuleId],
    /// Paths of a snapshot that are no files: plain texts, as the paths of files are.
    pub probes: &'static [&'static str],
    /// Benchmarks whose time is a count of core cycles where all of their tasks share one CPU, each
    /// with the metrics of which that is so; none named: all that are timed. A new row needs a
    /// pooled slope of ln(time) on ln(clock) within
    /// -1 ± 0.15 on two hosts whose clocks move.
    pub core_bound: &'static [(BenchId, &'static [MetricId])],
}

impl Family {
    const NONE: Family = Family {
        name: "",
        benchmarks: &[],
        metrics: &[],
        params: &[],
        rules: &[],
        probes: &[],
        core_bound: &[],
    };
}

pub const FAMILIES: &[Family] = &[
    cpu::FAMILY,
    memory::FAMILY,
    memory_map::FAMILY,
    kernel::FAMILY,
    ipc::FAMILY,
    hackbench::FAMILY,
    sched::FAMILY,
    file::FAMILY,
    disk::FAMILY,
    network::FAMILY,
    smt::FAMILY,
    rate::FAMILY,
    nexmark::FAMILY,
    unixbench::FAMILY,
    guard::FAMILY,
    selftest::FAMILY,
    sweep::FAMILY,
    host::FAMILY,
];

impl ParamId {
    /// The parameter that is called so, if this version has it.
    pub fn named(name: &str) -> Option<ParamId> {
        FAMILIES.iter().flat_map(|family| family.params).copied().find(|id| *id == name)
    }
}

impl BenchId {
    /// Of a row that is to be filled: no benchmark.
    pub const NONE: BenchId = BenchId("");

    /// The benchmark that is called so, if this version has it.
    pub fn named(name: &str) -> Option<BenchId> {
        FAMILIES.iter().flat_map(|family| family.benchmarks).copied().find(|id| *id == name)
    }
}

/// Whether the time of this metric is a count of core cycles where all tasks share one CPU.
pub fn core_bound(bench: &str, metric: &str) -> bool {
    let mut rows = FAMILIES.iter().flat_map(|family| family.core_bound);
    let named = |names: &[MetricId]| names.is_empty() || names.iter().any(|name| *name == metric);
    rows.any(|(id, names)| *id == bench && named(names))
}

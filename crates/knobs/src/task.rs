//! Settings of Assay's own tasks: slice and policy, which child processes inherit. They need no
//! root and affect no other process.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use super::table::{Named, nanoseconds};
use sys::sched::{self, Policy};

/// Whether a setting is one of Assay's own tasks.
pub fn is_task_knob(name: &str) -> bool {
    Named::of(name).is_some_and(|named| named.is_of_tasks())
}

/// Applies a case's task settings to the calling process and its later children. The policy comes
/// first, because changing it resets the slice.
pub fn apply(knobs: &BTreeMap<String, String>) -> anyhow::Result<()> {
    if let Some(name) = knobs.get("policy") {
        let policy = Policy::named(name).with_context(|| format!("no policy is called {name:?}"))?;
        sched::set_policy(policy).with_context(|| format!("cannot set the policy {name}"))?;
    }
    if let Some(text) = knobs.get("slice_ns") {
        let ns = nanoseconds(text).with_context(|| format!("{text:?} is not a slice"))?;
        set_slice(ns)?;
    }
    Ok(())
}

fn set_slice(ns: u64) -> anyhow::Result<()> {
    sched::set_slice(ns).with_context(|| format!("cannot ask for a slice of {ns} ns"))?;
    match sched::slice()? {
        now if now == ns => Ok(()),
        0 => bail!("this kernel has no slice per task; kernels from 6.12 on do"),
        now => bail!("asked for a slice of {ns} ns, but the kernel gave {now} ns"),
    }
}

/// The present value for the calling task; an error says why it is unknown.
pub fn value(name: &str) -> Result<String, String> {
    match name {
        "policy" => sched::policy().map(|policy| policy.to_string()).map_err(|error| error.to_string()),
        "slice_ns" => match sched::slice() {
            Ok(0) => Err("this kernel has no slice per task; kernels from 6.12 on do".to_string()),
            Ok(ns) => Ok(ns.to_string()),
            Err(error) => Err(format!("the kernel does not report it ({error})")),
        },
        other => Err(format!("{other} is not a setting of a task")),
    }
}

/// Why Assay's tasks cannot have this value; `None` if they can.
pub fn unmet(name: &str, wanted: &str) -> Option<String> {
    match name {
        "policy" => match Policy::named(wanted) {
            Some(policy) => sched::why_refused(policy),
            None => Some(format!("no policy is called {wanted:?}")),
        },
        _ => value(name).err(),
    }
}

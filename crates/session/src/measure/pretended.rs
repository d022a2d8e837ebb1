//! Times and conditions of a pretended run: a visit every 100 ms on a quiet host.

use model::{Conditions, CpuSet};

pub const VISIT_MS: f64 = 100.0;

/// All CPUs busy with Assay's own work only.
pub fn conditions(cpus: &CpuSet) -> Conditions {
    let (wall_ms, count) = (VISIT_MS, cpus.len().max(1) as u32);
    Conditions {
        wall_ms,
        cpus: count,
        busy_ms: Some(wall_ms),
        own_ms: Some(wall_ms),
        others_on_seats_ms: Some(0.0),
        steal_ms: Some(0.0),
        psi_cpu_ms: Some(0.0),
        psi_memory_ms: Some(0.0),
        swapped_pages: Some(0.0),
        throttled_ms: Some(0.0),
        ..Conditions::default()
    }
}

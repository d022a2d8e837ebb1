//! Which cache a block fits into, by what the kernel claims.

use machine::{CacheKind, Machine};

/// The smallest level of a CPU's caches that claims to hold a block.
pub fn level(machine: &Machine, cpu: Option<u32>, size: f64) -> String {
    let holds = claimed_caches(machine, cpu).into_iter().find(|(_, claimed)| *claimed >= size);
    holds.map_or("memory".to_string(), |(name, _)| name)
}

/// The data caches that a CPU has by the kernel's claim, from the smallest: name and bytes.
pub fn claimed_caches(machine: &Machine, cpu: Option<u32>) -> Vec<(String, f64)> {
    let own = machine.caches.iter().filter(|cache| {
        cache.kind != CacheKind::Instruction && cpu.is_none_or(|cpu| cache.cpus.contains(cpu))
    });
    let mut caches: Vec<(String, f64)> = Vec::new();
    for cache in own {
        let name = match cache.kind {
            CacheKind::Data => format!("L{}d", cache.level),
            _ => format!("L{}", cache.level),
        };
        if let Some(size) = cache.size_bytes.filter(|_| !caches.iter().any(|(other, _)| *other == name)) {
            caches.push((name, size as f64));
        }
    }
    caches.sort_by(|one, other| one.1.total_cmp(&other.1));
    caches
}

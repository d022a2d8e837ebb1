//! Which cache a block fits into: by the ladder where that contradicts the kernel, else by the
//! kernel's word.

use diagnose::Diagnosis;
use diagnose::ladder::CacheSize;
use diagnose::words::sizes;
use machine::{CacheKind, Machine};

/// A data cache of a CPU.
pub struct Level {
    pub name: String,
    pub size: CacheSize,
}

/// The data caches that a CPU has, from the first.
pub fn levels(diagnosis: &Diagnosis, cpu: Option<u32>) -> Vec<Level> {
    let measured = &diagnosis.measured_caches;
    let claimed = claimed_caches(&diagnosis.machine, cpu).into_iter();
    let mut levels: Vec<Level> = claimed
        .map(|(name, bytes)| {
            // Caches of one claim are taken for alike.
            let own = measured.iter().find(|cache| cache.name == name && cache.claimed == Some(bytes));
            let size = own.map_or(CacheSize::claimed(bytes), |cache| cache.size);
            Level { name, size }
        })
        .collect();
    let further = measured.iter().filter(|cache| cache.claimed.is_none());
    levels.extend(further.map(|cache| Level { name: cache.name.clone(), size: cache.size }));
    levels
}

/// The first level that holds a block; one of a size within the bounds of a level's end is only
/// partly in it.
pub fn level(diagnosis: &Diagnosis, cpu: Option<u32>, size: f64) -> String {
    let within = levels(diagnosis, cpu).into_iter().find(|level| size <= level.size.high);
    match within {
        Some(level) if size <= level.size.low => level.name,
        Some(level) => format!("partly {}", level.name),
        None => "memory".to_string(),
    }
}

/// `L3 3.77 MiB (1.61–8.35) as measured`, of the caches that are not what the kernel
/// claims.
pub fn contradicted(diagnosis: &Diagnosis) -> Vec<String> {
    let words = |size: &CacheSize| sizes(size.at, size.low, size.high);
    let all = diagnosis.measured_caches.iter();
    all.map(|cache| format!("{} {} {}", cache.name, words(&cache.size), cache.size.source())).collect()
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

#[cfg(test)]
mod tests {
    use super::super::made::{Made, latency, machine};
    use super::*;
    use diagnose::ladder::MeasuredCache;
    use model::View;

    const MIB: f64 = 1_048_576.0;

    fn diagnosis(measured: Vec<MeasuredCache>) -> Diagnosis {
        let made = Made::new(View::Table, vec![latency()]);
        Diagnosis { measured_caches: measured, ..made.diagnosed(machine(4)) }
    }

    fn measured(name: &str, claimed: Option<f64>, [low, at, high]: [f64; 3]) -> MeasuredCache {
        let mib = |size: f64| size * MIB;
        let size = CacheSize { at: mib(at), low: mib(low), high: mib(high), by_ladder: true };
        MeasuredCache { name: name.into(), claimed: claimed.map(mib), size }
    }

    fn named(diagnosis: &Diagnosis) -> Vec<String> {
        [0.016, 1.0, 8.0, 16.0, 128.0].iter().map(|size| level(diagnosis, Some(0), size * MIB)).collect()
    }

    #[test]
    fn blocks_are_named_by_the_ladder_where_it_contradicts() {
        let claims = diagnosis(Vec::new());
        assert_eq!(named(&claims), ["L1d", "L2", "L3", "L3", "memory"]);
        assert_eq!(contradicted(&claims), [""; 0]);
        let share = diagnosis(vec![measured("L3", Some(32.0), [9.0, 13.5, 20.0])]);
        assert_eq!(named(&share), ["L1d", "L2", "L3", "partly L3", "memory"]);
        assert_eq!(contradicted(&share), ["L3 13.5 MiB (9–20) as measured"]);
        let whole = diagnosis(vec![measured("L3", Some(32.0), [256.0, 256.0, f64::INFINITY])]);
        assert_eq!(named(&whole).pop().as_deref(), Some("L3"));
        assert_eq!(contradicted(&whole), ["L3 256 MiB or more as measured"]);
        let behind = diagnosis(vec![measured("cache beyond L3", None, [100.0, 120.0, 150.0])]);
        assert_eq!(named(&behind)[3..], ["L3", "partly cache beyond L3"]);
        // Another cache than the one that was walked.
        let other = diagnosis(vec![measured("L3", Some(16.0), [9.0, 13.5, 20.0])]);
        assert_eq!(named(&other), named(&claims));
    }
}

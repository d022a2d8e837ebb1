//! Compiles ordinary code once for each vector width, and runs the widest version that this CPU
//! supports.
//!
//! The timed parts of `work` must be `#[inline(always)]`: only inlined code is compiled for the
//! width. Rust neither contracts nor reassociates floating point, so results have the same bits at
//! every width.

/// Runs `work` with the widest vectors that this CPU supports.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn with_widest_vectors<R>(work: impl FnOnce() -> R) -> R {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx2<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn avx512<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    macro_rules! all {
        ($($name:tt)+) => { $(std::arch::is_x86_feature_detected!($name))&&+ };
    }
    if !all!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt") {
        return work();
    }
    match all!("avx512f" "avx512vl" "avx512bw" "avx512dq") {
        // SAFETY: this CPU has every feature that the function names, as just checked.
        true => unsafe { avx512(work) },
        // SAFETY: as above.
        false => unsafe { avx2(work) },
    }
}

/// On other architectures all CPUs have the same vectors (NEON on aarch64).
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn with_widest_vectors<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(always)]
    fn lanes(values: &[f64]) -> [f64; 8] {
        let mut sums = [0.0; 8];
        for eight in values.chunks_exact(8) {
            for (sum, value) in sums.iter_mut().zip(eight) {
                *sum += value * 1.000_000_1;
            }
        }
        sums
    }

    #[test]
    fn results_have_the_same_bits_at_any_width() {
        let values: Vec<f64> = (0..4096).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let plain = lanes(std::hint::black_box(&values));
        let wide = with_widest_vectors(|| lanes(std::hint::black_box(&values)));
        assert_eq!(plain.map(f64::to_bits), wide.map(f64::to_bits));
    }
}

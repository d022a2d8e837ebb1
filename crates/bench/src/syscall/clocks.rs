//! Asking what time it is, with and without entering the kernel.

use std::hint::black_box;

use crate::row::note;
use crate::{Benchmark, LATENCY_NS, Param, Point, Sampler, check_answer, point};
use model::vocabulary::kernel as ids;
use model::{Case, Params};
use sys::clock;

pub const CLOCK_GETTIME: Benchmark = Benchmark {
    id: ids::SYSCALL_CLOCK_GETTIME,
    title: "Time of day",
    about: "Time to read the monotonic clock as programs do (way=vdso) and by a system call (way=kernel). `ratio` is \
            kernel over vdso.",
    reading: "Lower is better: vdso 15–40 ns, kernel 20–70 ns above syscall.getpid. A ratio near 1 means that \
              reading the time enters the kernel. The clock source is then not the CPU's counter (hpet, acpi_pm, \
              xen), and each reading costs 10–100 × as much. `assay machine` names the clock source.",
    method: "The C library reads the CPU's counter in code that the kernel maps into each process. Readings must \
             never run backwards. Readings by the library must lie between kernel readings taken before and after.",
    source: file!(),
    metrics: &[LATENCY_NS, note(ids::metric::RATIO, "kernel over vDSO", "x")],
    params: &[Param::choice(ids::param::WAY, "way to read the clock", &["vdso", "kernel"])],
    points,
    run,
    ..Benchmark::PINNED
};

fn points(_: &Case) -> Vec<Params> {
    ["vdso", "kernel"].map(|way| point(ids::param::WAY, way)).to_vec()
}

fn run(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let vdso = read_by(sampler, "vdso", clock::monotonic_by_library)?;
    let kernel = read_by(sampler, "kernel", clock::monotonic_by_kernel)?;
    sampler.value(point(ids::param::WAY, "kernel"), ids::metric::RATIO, kernel / vdso, 0.0)?;
    let readings =
        [clock::monotonic_by_kernel(), clock::monotonic_by_library(), clock::monotonic_by_kernel()];
    agree(readings)
}

/// Times a way of reading the clock and checks that it moves, and only forwards.
fn read_by(sampler: &mut Sampler, way: &str, now: fn() -> u64) -> anyhow::Result<f64> {
    let first = now();
    let (mut last, mut backwards) = (first, 0u64);
    let ns = sampler.time(Point::new(ids::metric::LATENCY, 1.0).at(point(ids::param::WAY, way)), |n| {
        for _ in 0..n {
            let next = black_box(now());
            backwards += u64::from(next < last);
            last = next;
        }
    })?;
    check_answer(backwards == 0 && last > first, || {
        format!("the {way} clock went from {first} to {last} ns, {backwards} times backwards")
    })?;
    Ok(ns)
}

/// The library's reading lies between the kernel's before and after it.
fn agree([before, between, after]: [u64; 3]) -> anyhow::Result<()> {
    check_answer(before <= between && between <= after, || {
        format!("the library read {between} ns, outside of the kernel's {before}–{after} ns")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_outside_the_kernels_is_wrong() {
        assert!(agree([5, 5, 6]).is_ok());
        assert!(agree([5, 4, 6]).is_err());
        assert!(agree([5, 7, 6]).is_err());
    }
}

//! What a core is like right now: its clock, and whether it works for another thread as well.

use sys::clock::Clock;

/// Rounds of the dependent chain behind a clock reading: 8192 cycles, 2 to 4 µs.
const CLOCK_ROUNDS: u64 = 8192 / kernels::CHAIN_UNROLL;

/// The core's clock right now, GHz: the best of three short chains (an interrupt can only make one
/// longer).
pub fn core_clock_ghz(clock: Clock) -> f64 {
    let mut shortest = f64::INFINITY;
    for _ in 0..3 {
        let begin = clock.now();
        std::hint::black_box(kernels::add_chain(std::hint::black_box(CLOCK_ROUNDS), 1, 1));
        shortest = shortest.min(clock.now() - begin);
    }
    (CLOCK_ROUNDS * kernels::CHAIN_UNROLL) as f64 / shortest
}

/// Rounds of the fetch probe, which shows whether the core's other thread is busy: 3–10 µs.
const FETCH_ROUNDS: u64 = 10_000;

/// Core cycles a round of a loop of taken branches right now, at this clock in GHz.
pub fn fetch_cycles(clock: Clock, ghz: f64) -> f64 {
    let begin = clock.now();
    kernels::taken_branches(std::hint::black_box(FETCH_ROUNDS));
    (clock.now() - begin) * ghz / FETCH_ROUNDS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::clock;

    #[test]
    fn the_core_clock_is_a_plausible_one() {
        let clock = Clock::from_run(&clock::calibrate(true));
        let ghz = core_clock_ghz(clock);
        assert!((0.2..10.0).contains(&ghz), "{ghz} GHz");
    }

    #[test]
    fn a_round_of_branches_takes_some_cycles() {
        let clock = Clock::from_run(&clock::calibrate(true));
        let cycles = fetch_cycles(clock, core_clock_ghz(clock));
        assert!(cycles.is_finite() && cycles > 0.1, "{cycles} cycles");
    }
}

//! The processes in which a layout does its work. Each prints its times, a line each.

use std::error::Error;
use std::time::Instant;

use bench::sampler::core_clock_ghz;
use model::CpuSet;
use sys::affinity;
use sys::clock::Clock;

/// How a worker is started: `trust-worker CPU WORK SLOWER MODE NUMBERS...`.
///
/// `once N`: does N units and says nothing, a command. `find NS`: how many units take this long.
/// `windows N WARM COUNT`: ns a unit of each sample of N units. `linear WARM_NS TOTAL_NS SAMPLES`:
/// as criterion samples. `visit NS WARM COUNT CLOCK`: as a pass of Assay's, with GHz behind each
/// time.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [cpu, work, slower, mode, numbers @ ..] = arguments else { return Err("too few words".into()) };
    affinity::pin(&CpuSet::one(cpu.parse()?))?;
    let unit = Unit { calls: work == "getpid", slower: slower.parse()? };
    let number = |at: usize| -> Result<f64, Box<dyn Error>> {
        Ok(numbers.get(at).ok_or("a number is missing")?.parse()?)
    };
    match mode.as_str() {
        "once" => unit.work(number(0)? as u64),
        "find" => println!("{}", unit.filling(number(0)?)),
        "windows" => {
            for window in 0..(number(1)? + number(2)?) as usize {
                let ns = unit.timed(number(0)? as u64);
                if window >= number(1)? as usize {
                    println!("{ns}");
                }
            }
        }
        "linear" => unit.linear(number(0)?, number(1)?, number(2)? as u64),
        "visit" => {
            let clock = Clock::from_run(&serde_json::from_str(numbers.get(3).ok_or("no clock")?)?);
            let units = unit.filling(number(0)?);
            for window in 0..(number(1)? + number(2)?) as usize {
                let ns = unit.timed(units);
                let ghz = core_clock_ghz(clock);
                if window >= number(1)? as usize {
                    println!("{ns} {ghz}");
                }
            }
        }
        other => return Err(format!("no mode is called {other:?}").into()),
    }
    Ok(())
}

/// What is done.
struct Unit {
    /// System calls; else dependent additions.
    calls: bool,
    /// Per cent of work beyond what is reported.
    slower: u64,
}

impl Unit {
    fn work(&self, units: u64) {
        let units = units + units * self.slower / 100;
        if self.calls {
            (0..units).for_each(|_| {
                std::hint::black_box(sys::c_calls::process());
            })
        } else {
            std::hint::black_box(kernels::add_chain(units, 1, 1));
        }
    }

    /// Nanoseconds a unit.
    fn timed(&self, units: u64) -> f64 {
        let begin = Instant::now();
        self.work(units);
        begin.elapsed().as_nanos() as f64 / units as f64
    }

    /// How many units take this many nanoseconds, in whole hundreds.
    fn filling(&self, ns: f64) -> u64 {
        let mut units = 100;
        loop {
            let each = self.timed(units);
            if each * units as f64 >= ns / 8.0 {
                return ((ns / each / 100.0) as u64).max(1) * 100;
            }
            units *= 4;
        }
    }

    /// After warming up: samples of d, 2d, 3d ... units, in all as long as was asked; a line of
    /// units and ns each.
    fn linear(&self, warm_ns: f64, total_ns: f64, samples: u64) {
        let begin = Instant::now();
        let (mut units, mut done) = (100, 0);
        while (begin.elapsed().as_nanos() as f64) < warm_ns {
            self.work(units);
            done += units;
            units = (units * 2).min(done);
        }
        let each = begin.elapsed().as_nanos() as f64 / done as f64;
        let step = (total_ns / each / (samples * (samples + 1) / 2) as f64).max(1.0) as u64;
        // Steps of 20 units: 5 % of them is a whole number.
        let step = step.next_multiple_of(20);
        for sample in 1..=samples {
            let units = sample * step;
            let begin = Instant::now();
            self.work(units);
            println!("{units} {}", begin.elapsed().as_nanos());
        }
    }
}

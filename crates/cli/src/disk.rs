//! The options of disk benchmarks: blocks, depths, jobs, engine, time and rate instead of the
//! profile's.

use super::device::DISK;
use bench::{Benchmark, Candidate, DiskOverrides, MAX_DISK_JOBS, Scope, disk_cases};
use model::units;

#[derive(clap::Args, Default)]
#[command(next_help_heading = DISK)]
pub struct DiskArgs {
    /// I/O sizes (512 to 8M), such as 4k,64k,1M [default: the profile's]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = block)]
    block: Vec<u64>,
    /// I/Os in flight per job, such as 1,32 [default: the profile's]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Vec<u32>,
    /// Jobs at once (1 to 64), each with its own core and file
    #[arg(long, value_name = "N", value_parser = jobs)]
    jobs: Option<usize>,
    /// I/Os per second of disk.paced [default: the profile's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    io_rate: Option<u64>,
    /// uring, polled (io_uring that polls) or psync [default: uring]
    #[arg(long, value_name = "ENGINE", value_parser = ["uring", "polled", "psync"], hide_possible_values = true)]
    engine: Option<String>,
    /// Time per point, 1s to 1h (5m shows burst credits)
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    io_time: Option<u64>,
}

/// As a time on any command line, from a second to an hour.
fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = units::duration(text)?;
    let whole = time.subsec_nanos() == 0 && (1..=3600).contains(&time.as_secs());
    whole.then_some(time.as_secs()).ok_or_else(|| "use whole seconds, 1s to 1h".to_string())
}

const SMALLEST: u64 = 512;
const LARGEST: u64 = 8 << 20;

/// `4096`, `4k`, `1M`: whole sectors.
fn block(text: &str) -> Result<u64, String> {
    let fits = |bytes: &u64| (SMALLEST..=LARGEST).contains(bytes) && bytes.is_multiple_of(SMALLEST);
    units::bytes(text)
        .filter(fits)
        .ok_or_else(|| "a block is a multiple of 512 bytes up to 8M, such as 4k or 1M".to_string())
}

/// `1` to `64`.
fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse::<usize>().ok().filter(|jobs| (1..=MAX_DISK_JOBS).contains(jobs));
    jobs.ok_or_else(|| {
        format!("there may be 1–{MAX_DISK_JOBS} jobs: more would measure the scheduler, not the disk")
    })
}

impl DiskArgs {
    fn overrides(&self) -> DiskOverrides {
        let (blocks, depths) = (self.block.clone(), self.depth.clone());
        let engine = match self.engine.as_deref() {
            Some("uring") => Some("uring"),
            Some("polled") => Some("polled"),
            Some("psync") => Some("psync"),
            _ => None,
        };
        DiskOverrides { blocks, depths, jobs: self.jobs, rate: self.io_rate, engine, seconds: self.io_time }
    }

    /// The options that none of these benchmarks can use, in words.
    pub fn refused(&self, benches: &[&Benchmark]) -> Option<String> {
        self.overrides().refused(benches)
    }

    /// The candidates of a plan, those of disks with these options.
    pub fn supply(&self, candidates: Vec<Candidate>, scope: &Scope) -> Vec<Candidate> {
        disk_cases(candidates, &self.overrides(), scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_sectors() {
        assert_eq!((block("4k"), block("1M"), block("512")), (Ok(4096), Ok(1 << 20), Ok(512)));
        for wrong in ["", "k", "0", "100", "16M", "4kk", "4g", "-1", "99999999999999999999M"] {
            assert!(block(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        assert_eq!(
            (whole_seconds("10s"), whole_seconds("5m"), whole_seconds("1h")),
            (Ok(10), Ok(300), Ok(3600))
        );
        for wrong in ["0.5s", "1.5s", "2h", "0", "", "10d"] {
            assert!(whole_seconds(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn jobs_are_one_to_64() {
        assert_eq!((jobs("1"), jobs("64")), (Ok(1), Ok(64)));
        for wrong in ["0", "65", "-1", "", "two"] {
            assert!(jobs(wrong).is_err_and(|why| why.contains("1–64")), "{wrong:?}");
        }
    }
}

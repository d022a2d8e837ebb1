//! `assay memmap`: has all memory one speed?

use std::process::ExitCode;

use anyhow::Context;

use super::measure_args::{CHOICES, MeasureArgs, hide};
use super::measuring::Study;
use super::output::refuse_if;
use bench::{self, Depth, MapOptions, Plant};
use model::units;
use model::vocabulary::memory_map::MAP;
use session::plan;

/// Measure the bandwidth of every region of memory and find slow ones
#[derive(clap::Args)]
#[command(
    mut_args(hide(&CHOICES)),
    after_help = "\
Takes most of the free memory of one NUMA node after the other, reads it chunk by chunk with all cores in many \
rounds, and gives it back. It takes at most 80 % of a node's free memory and of what the control group leaves, and \
70 % of the host's free memory. At least 2 GiB, or a quarter, stays free.
Three answers: several speeds, with ratio, share, place and possible causes; uniform, with the second speed that \
would have been seen; inconclusive, with what would help.
Takes seconds to minutes, mostly for the first touch. As root the map is drawn in physical order, too. Nothing is \
changed, and Ctrl-C gives the memory back at once.
Examples:
  assay memmap                       every node, as much memory as allowed
  assay memmap --max 8G              at most 8 GiB of each node
  assay memmap --node 1 --rounds 25  one node, more rounds to see a smaller difference
  assay memmap --limit 20%           uniform if a second speed 20 % apart would be seen
Exit codes: as of `assay run`"
)]
pub struct Args {
    /// Largest memory to take per node, such as 8G or 512M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max: Option<u64>,
    /// NUMA node to test [default: all]
    #[arg(long, value_name = "N")]
    node: Option<u32>,
    /// Rounds through all chunks, after one that does not count
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=200))]
    rounds: u64,
    /// Second speed to detect in a tenth of the memory, such as 10%
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    limit: f64,
    /// Bytes of a chunk (tests on little memory)
    #[arg(long, value_name = "SIZE", hide = true, value_parser = size)]
    chunk: Option<u64>,
    /// Invented slow region, such as slow:25%@1.33 (tests)
    #[arg(long, value_name = "WHAT", hide = true, value_parser = Plant::parse)]
    plant: Option<Plant>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// `8G`, `512M`, `64K`, with or without `iB`.
pub fn size(text: &str) -> Result<u64, String> {
    units::bytes(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size is a whole number with K, M, G or T, such as 8G".to_string())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let fine = number.filter(|percent| (1.0..=300.0).contains(percent));
    fine.ok_or_else(|| "a limit is 1–300 %, such as 10%".to_string())
}

/// Nodes of a large host take their time.
const BUDGET_S: f64 = 3600.0;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { max, node, rounds, limit, chunk, plant, measure } = args;
    let why = "assay memmap measures one benchmark, memory.map; --node names a node";
    refuse_if(!measure.only.is_empty(), why)?;
    let usual = measure.profile_within(|_| BUDGET_S)?;
    let profile = plan::Profile {
        // One visit has all rounds: another one would get other memory.
        passes_min: 1,
        passes_max: 1,
        depth: Depth::Full,
        windows: bench::Windows { count: rounds as usize, ..usual.windows },
        ..usual
    };
    let row = bench::find(&MAP).with_context(|| format!("the benchmark {MAP} is missing"))?;
    let options = MapOptions { max, node, rounds, limit, chunk, looks: true, plant, plant_places: false };
    let study = Study::of(profile, vec![row]).choosing(|_, scope, _| bench::map_cases(row, scope, &options));
    Ok(study.measure(&measure)?.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_percents() {
        assert_eq!(size("8G"), Ok(8 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("64kB"), Ok(64 << 10));
        for wrong in ["", "G", "-1G", "1.5G", "0", "8X", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!([percent("10%"), percent("2.5")], [Ok(10.0), Ok(2.5)]);
        assert!(percent("0%").is_err() && percent("x").is_err());
    }
}

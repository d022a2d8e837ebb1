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
Takes most of the free memory of one node after the other (never more than 80 % of it, of what the control group leaves, or than \
70 % of what is free on the machine; at least 2 GiB, or a quarter, stay free), reads it chunk by chunk with all cores in many rounds, and gives it \
back. There are three answers: several speeds, with ratio, share, place and what could make them; uniform, with the \
second speed that would have been seen; inconclusive, with what would help. Seconds to minutes, most of it for the first touch. \
As root the map is drawn in physical order, too. Nothing is changed; Ctrl-C gives the memory back at once.
Examples:
  assay memmap                       every node, as much memory as may be taken
  assay memmap --max 8G              8 GiB of each node at most
  assay memmap --node 1 --rounds 25  one node, more rounds: a smaller second speed is seen
  assay memmap --limit 20%           content if a second speed 20 % apart would be seen
Exit codes as those of `assay run`"
)]
pub struct Args {
    /// Most memory of each node that may be taken, like 8G or 512M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max: Option<u64>,
    /// One NUMA node only
    #[arg(long, value_name = "N")]
    node: Option<u32>,
    /// Rounds through all chunks; one more before them is not counted
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=200))]
    rounds: u64,
    /// The second speed that must be seen in a tenth of the memory for it to be called uniform: so
    /// much apart
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    limit: f64,
    /// Bytes of a chunk (tests on little memory)
    #[arg(long, value_name = "SIZE", hide = true, value_parser = size)]
    chunk: Option<u64>,
    /// Make a slow region, like slow:25%@1.33 (tests)
    #[arg(long, value_name = "WHAT", hide = true, value_parser = Plant::parse)]
    plant: Option<Plant>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// `8G`, `512M`, `64K`, with or without `iB`.
pub fn size(text: &str) -> Result<u64, String> {
    units::bytes(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "a size is a whole number with K, M, G or T, like 8G".to_string())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let fine = number.filter(|percent| (1.0..=300.0).contains(percent));
    fine.ok_or_else(|| "a limit is a number of percent from 1 to 300, like 10%".to_string())
}

/// Nodes of a large machine take their time.
const BUDGET_S: f64 = 3600.0;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { max, node, rounds, limit, chunk, plant, measure } = args;
    let why = "assay memmap measures one benchmark, memory.map; --node names a node";
    refuse_if(!measure.only.is_empty(), why)?;
    let usual = measure.profile_within(|_| BUDGET_S)?;
    let profile = plan::Profile {
        // A visit holds all rounds; another one would get other memory, and be another map.
        passes_min: 1,
        passes_max: 1,
        depth: Depth::Full,
        windows: bench::Windows { count: rounds as usize, ..usual.windows },
        ..usual
    };
    let row = bench::find(&MAP).with_context(|| format!("{MAP} is not there"))?;
    let wish = MapOptions { max, node, rounds, limit, chunk, looks: true, plant, plant_places: false };
    let study = Study::of(profile, vec![row]).choosing(|_, scope, _| bench::map_cases(row, scope, &wish));
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

//! The options of every measuring verb.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::device::Device;
use super::network::Network;
use super::planted::Planted;
use super::screen::ScreenArgs;
use model::Severity;
use session::measure::Patience;
use session::plan::{self, PROFILES, Profile};

#[derive(clap::Args)]
pub struct MeasureArgs {
    /// How much to measure: quick (90 s, asks for 3 %), standard (10 min, 1 %) or full
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = ["quick", "standard", "full"])]
    pub profile: String,
    /// Short for --profile quick
    #[arg(long, conflicts_with = "profile")]
    pub quick: bool,
    /// Only these: a group (memory), a benchmark (memory.latency) or the beginning of its name;
    /// several with commas, or repeated
    #[arg(long, value_name = "GROUP[.NAME]", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Folder for the run file and the report
    #[arg(long, value_name = "DIR", default_value = "assay-out")]
    pub out: PathBuf,
    /// Folder for the files of file and disk benchmarks, on the disk that is to be measured
    /// (default: the system's temporary one)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Drop the whole machine's page cache before every cold pass through a file (root): slows
    /// everybody down
    #[arg(long)]
    pub drop_caches: bool,
    /// Print the results as JSON on standard output (people's text then goes to standard error)
    #[arg(long)]
    pub json: bool,
    /// Don't wait for a quiet machine
    #[arg(long, conflicts_with = "wait_idle")]
    pub force: bool,
    /// Wait for a quiet machine as long as it takes
    #[arg(long)]
    pub wait_idle: bool,
    /// Time that measuring may take, like 90s, 10m or 2h; the least important cases are cut
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// Seed of the visiting order, so that a run can be repeated in the same order
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Every pair of CPUs, not a sample of them
    #[arg(long)]
    pub every_pair: bool,
    /// Say what would be measured, how long it would take and what would be changed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Begin a new run even where an interrupted one could be gone on with
    #[arg(long)]
    pub new: bool,
    /// Exit with 1 when a finding is at least this grave: note, warning or problem
    #[arg(long, value_name = "SEVERITY")]
    pub fail_on: Option<Severity>,
    #[command(flatten)]
    pub screen: ScreenArgs,
    /// Invent samples from this seed instead of measuring: tests of everything behind the samples
    #[arg(long, value_name = "SEED", hide = true)]
    pub pretend: Option<u64>,
    /// Let what these rows time do so many per cent more work than it reports: planted differences
    /// for `prove a-a`
    #[arg(long, value_name = "PERCENT[:NAMES]", hide = true, conflicts_with = "pretend")]
    pub planted: Option<Planted>,
    /// Describe the machine from this saved snapshot (with --pretend)
    #[arg(long, value_name = "FILE", hide = true, requires = "pretend")]
    pub from: Option<PathBuf>,
    /// Read /proc and /sys below this folder (tests replay counters and settings so)
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub root: PathBuf,
    /// Time limit of each visit
    #[arg(long, value_name = "TIME", value_parser = duration, hide = true)]
    pub visit_limit: Option<Duration>,
    /// The other host of network rows, and what is wanted of them.
    #[arg(skip)]
    pub network: Option<Box<Network>>,
    /// The raw device that disk rows are to use.
    #[arg(skip)]
    pub device: Option<Box<Device>>,
}

impl MeasureArgs {
    pub fn profile(&self) -> anyhow::Result<Profile> {
        let name = if self.quick { "quick" } else { &self.profile };
        let mut profile = plan::profile(name).with_context(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            format!("no profile is called {name:?}; there are {}", names.join(", "))
        })?;
        if let Some(budget) = self.budget {
            profile.budget_s = budget.as_secs_f64();
            profile.budget_per_group = false;
        }
        Ok(profile)
    }

    pub fn patience(&self) -> Patience {
        const USUAL: Duration = Duration::from_secs(20);
        match (self.force, self.wait_idle) {
            (true, _) => Patience::None,
            (_, true) => Patience::UntilIdle,
            _ => Patience::Bounded(USUAL),
        }
    }
}

/// `90`, `90s`, `10m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(['s', 'm', 'h']);
    let factor = match &text[number.len()..] {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number above 0 with s, m or h, like 90s or 10m".to_string()),
    };
    let seconds = number.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1e7);
    seconds
        .map(|seconds| Duration::from_secs_f64(seconds * factor))
        .ok_or_else(|| "a time is a number above 0 with s, m or h, like 90s or 10m".to_string())
}

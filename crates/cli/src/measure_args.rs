//! The options of every measuring verb.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::device::DISK;
use super::naming::{Naming, OUT, OUTPUT};
use super::output::eprint_line;
use super::planted::Planted;
use super::screen::ScreenArgs;
use model::Severity;
use model::units::duration;
use session::measure::Patience;
use session::plan::{self, PROFILES, Profile};

#[derive(clap::Args)]
#[command(next_help_heading = "Measuring")]
pub struct MeasureArgs {
    /// quick (90 s, to 3 %), standard (10 min, to 1 %), full (1 h or more)
    #[arg(long, value_name = "NAME", default_value = "standard", value_parser = ["quick", "standard", "full"], hide_possible_values = true)]
    pub profile: String,
    /// Short for --profile quick
    #[arg(long, conflicts_with = "profile")]
    pub quick: bool,
    /// Groups or benchmarks, such as memory,disk.random
    #[arg(long, value_name = "GROUP[.NAME]", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Time limit, such as 90s: less important figures are left out
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// Every pair of CPUs, not a sample of them
    #[arg(long, alias = "every-pair")]
    pub all_pairs: bool,
    /// No wait for a quiet host
    #[arg(long, conflicts_with = "wait_idle")]
    pub force: bool,
    /// Wait for a quiet host without a limit
    #[arg(long)]
    pub wait_idle: bool,
    /// Start afresh instead of resuming an interrupted run
    #[arg(long)]
    pub new: bool,
    /// Seed of the order of measuring, to repeat it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Plan, time and changes only, without measuring
    #[arg(long)]
    pub dry_run: bool,
    /// Folder for the run file and the report
    #[arg(long, value_name = "DIR", default_value = OUT, help_heading = OUTPUT)]
    out: PathBuf,
    /// Save the run file only: `assay report` makes a page of it
    #[arg(long, help_heading = OUTPUT)]
    pub no_report: bool,
    /// JSON on standard output, text on standard error
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Exit 1 on findings from this severity on: note, warning, problem
    #[arg(long, value_name = "SEVERITY", help_heading = OUTPUT)]
    pub fail_on: Option<Severity>,
    #[command(flatten)]
    pub screen: ScreenArgs,
    #[command(flatten)]
    pub naming: Naming,
    /// Folder for test files, on the disk to measure [default: $TMPDIR]
    #[arg(long, value_name = "DIR", help_heading = DISK)]
    pub dir: Option<PathBuf>,
    /// Empty the host's page cache before each cold pass (root)
    #[arg(long, help_heading = DISK)]
    pub drop_caches: bool,
    #[command(flatten)]
    pub tests: TestArgs,
}

/// Options for Assay's own tests.
#[derive(clap::Args)]
pub struct TestArgs {
    /// Invent samples from this seed instead of measuring: tests of everything behind the samples
    #[arg(long, value_name = "SEED", hide = true)]
    pub pretend: Option<u64>,
    /// Do this much more work than reported, in percent: planted differences for `prove a-a`
    #[arg(long, value_name = "PERCENT[:NAMES]", hide = true, conflicts_with = "pretend")]
    pub planted: Option<Planted>,
    /// Describe the host from this saved snapshot (with --pretend)
    #[arg(long, value_name = "FILE", hide = true, requires = "pretend")]
    pub from: Option<PathBuf>,
    /// Read /proc and /sys below this folder (tests replay counters and settings so)
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub root: PathBuf,
    /// Time limit of each visit
    #[arg(long, value_name = "TIME", value_parser = duration, hide = true)]
    pub visit_limit: Option<Duration>,
}

impl TestArgs {
    /// Whether samples are invented.
    pub fn pretends(&self) -> bool {
        self.pretend.is_some()
    }
}

/// The options that choose between benchmarks, for verbs that measure their own.
pub const CHOICES: [&str; 4] = ["only", "dir", "drop_caches", "all_pairs"];

/// Leaves these options out of a verb's help, whose profiles take times of their own.
pub fn hide(names: &[&str]) -> impl Fn(clap::Arg) -> clap::Arg {
    move |arg| {
        let is_hidden = names.contains(&arg.get_id().as_str());
        match arg.get_id().as_str() {
            _ if is_hidden => arg.hide(true),
            "profile" => arg.help("quick, standard or full: how much to measure"),
            _ => arg,
        }
    }
}

impl MeasureArgs {
    /// The folder for the run file and the report: --out, or that of --name in it.
    pub fn out(&self) -> PathBuf {
        self.naming.folder(&self.out)
    }

    pub fn profile(&self) -> anyhow::Result<Profile> {
        let name = if self.quick { "quick" } else { &self.profile };
        let mut profile = plan::profile(name).with_context(|| {
            let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
            format!("no profile is called {name:?}; profiles are {}", names.join(", "))
        })?;
        if let Some(budget) = self.budget {
            profile = profile.within(budget.as_secs_f64());
        }
        Ok(profile)
    }

    /// The profile, with `budget_s` unless --budget is given.
    pub fn profile_within(&self, budget_s: impl FnOnce(&Profile) -> f64) -> anyhow::Result<Profile> {
        let profile = self.profile()?;
        let budget_s = self.budget.map_or_else(|| budget_s(&profile), |given| given.as_secs_f64());
        Ok(profile.within(budget_s))
    }

    /// In this version `--all`, which prints every figure, still measures every pair of CPUs.
    pub fn all_pairs(&self) -> bool {
        if self.screen.all && !self.all_pairs {
            eprint_line(
                "assay: --all prints every figure; this version also measures every pair of CPUs for it. \
                  The next one does so only with --all-pairs",
            );
        }
        self.all_pairs || self.screen.all
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

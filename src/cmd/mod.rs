//! The verbs: one file each with its arguments and its `run`.

mod case;
mod machine;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tells the truth about a Linux server: measures it, and says for every number whether it can be believed, what
/// moved it and which experiment shows that
#[derive(Parser)]
#[command(
    name = "assay",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Machine(machine::Args),
    /// Measure one case: an order on standard input, sample lines on standard output
    #[command(hide = true)]
    Case(case::Args),
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Machine(args) => machine::run(args),
            Verb::Case(args) => case::run(args),
        }
    }
}

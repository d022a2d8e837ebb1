//! Verbs: each has its arguments and a `run` that gives the exit code.

pub mod machine;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tells the truth about a Linux server: what it is, how fast it is, and whether a number can be believed.
#[derive(Debug, Parser)]
#[command(name = "assay", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Machine(machine::Args),
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Machine(args) => machine::run(args),
        }
    }
}

//! Arguments, verb, exit code.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    assay::cmd::Cli::parse().run().unwrap_or_else(|error| assay::cmd::complain(&error))
}

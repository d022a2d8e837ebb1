//! The verbs: one file each with its arguments and its `run`.
//!
//! Invariant: the only crate that prints or chooses an exit code.

#![forbid(unsafe_code)]

mod bundle;
mod case;
mod check;
mod compare;
mod concluding;
mod device;
mod diagnose;
mod disk;
mod dry_run;
mod explain;
mod explain_profile;
mod files;
mod guard;
mod hackbench;
#[cfg(test)]
mod help_tests;
mod host;
mod import;
mod keeping;
mod knobs;
mod leftovers;
mod list;
mod machine;
mod margin;
mod measure_args;
mod measuring;
mod memory_map;
mod naming;
mod network;
mod nexmark;
mod output;
mod pages;
mod peers;
mod planted;
mod progress;
mod rate;
mod reference;
mod references;
mod report;
mod report_file;
mod reports;
mod restore;
mod results;
mod run;
mod schema;
mod screen;
mod serve;
mod setup;
mod shell;
mod signals;
mod smt;
mod start;
mod summary;
mod sweep;
mod trend;
mod unixbench;
mod utilization;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::DisplayArgs;
pub use output::complain;
pub use start::start;

/// Measures a Linux server and says how far each figure can be trusted, and why
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
    #[command(flatten)]
    look: DisplayArgs,
}

/// The verbs in the order of the help: each is a module with its `Args` and its `run`.
macro_rules! verbs {
    ($($name:ident: $module:ident,)+) => {
        #[derive(Subcommand)]
        enum Verb {
            $($name($module::Args),)+
            Completions(shell::CompletionArgs),
            Man(shell::ManArgs),
        }

        impl Verb {
            fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $(Verb::$name(args) => $module::run(args),)+
                    Verb::Completions(args) => shell::completions(args),
                    Verb::Man(args) => shell::man(args),
                }
            }
        }
    };
}

verbs! {
    Run: run,
    Serve: serve,
    List: list,
    Knobs: knobs,
    Machine: machine,
    Explain: explain,
    Diagnose: diagnose,
    Report: report,
    Restore: restore,
    Setup: setup,
    Sweep: sweep,
    ExplainProfile: explain_profile,
    Smt: smt,
    Rate: rate,
    Memmap: memory_map,
    Host: host,
    Utilization: utilization,
    Guard: guard,
    Hackbench: hackbench,
    Unixbench: unixbench,
    Import: import,
    Compare: compare,
    Check: check,
    Peers: peers,
    Trend: trend,
    Reference: reference,
    Summary: summary,
    Bundle: bundle,
    Schema: schema,
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.look.settle();
        self.verb.run()
    }
}

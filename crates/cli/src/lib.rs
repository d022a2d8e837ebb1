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

use output::LookArgs;
pub use output::{complain, tell};
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
    look: LookArgs,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Args),
    Serve(serve::Args),
    List(list::Args),
    Knobs(knobs::Args),
    Machine(machine::Args),
    Explain(explain::Args),
    Diagnose(diagnose::Args),
    Report(report::Args),
    Restore(restore::Args),
    Setup(setup::Args),
    Sweep(sweep::Args),
    ExplainProfile(explain_profile::Args),
    Smt(smt::Args),
    Rate(rate::Args),
    Memmap(memory_map::Args),
    Host(host::Args),
    Utilization(utilization::Args),
    Guard(guard::Args),
    Hackbench(hackbench::Args),
    Unixbench(unixbench::Args),
    Import(import::Args),
    Compare(compare::Args),
    Check(check::Args),
    Peers(peers::Args),
    Trend(trend::Args),
    Reference(reference::Args),
    Summary(summary::Args),
    Bundle(bundle::Args),
    Schema(schema::Args),
    Completions(shell::CompletionArgs),
    Man(shell::ManArgs),
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.look.settle();
        match self.verb {
            Verb::Run(args) => run::run(args),
            Verb::Serve(args) => serve::run(args),
            Verb::List(args) => list::run(args),
            Verb::Knobs(args) => knobs::run(args),
            Verb::Machine(args) => machine::run(args),
            Verb::Explain(args) => explain::run(args),
            Verb::Diagnose(args) => diagnose::run(args),
            Verb::Report(args) => report::run(args),
            Verb::Restore(args) => restore::run(args),
            Verb::Setup(args) => setup::run(args),
            Verb::Sweep(args) => sweep::run(args),
            Verb::ExplainProfile(args) => explain_profile::run(args),
            Verb::Smt(args) => smt::run(args),
            Verb::Rate(args) => rate::run(args),
            Verb::Memmap(args) => memory_map::run(args),
            Verb::Host(args) => host::run(args),
            Verb::Utilization(args) => utilization::run(args),
            Verb::Guard(args) => guard::run(args),
            Verb::Hackbench(args) => hackbench::run(args),
            Verb::Unixbench(args) => unixbench::run(args),
            Verb::Import(args) => import::run(args),
            Verb::Compare(args) => compare::run(args),
            Verb::Check(args) => check::run(args),
            Verb::Peers(args) => peers::run(args),
            Verb::Trend(args) => trend::run(args),
            Verb::Reference(args) => reference::run(args),
            Verb::Summary(args) => summary::run(args),
            Verb::Bundle(args) => bundle::run(args),
            Verb::Schema(args) => schema::run(args),
            Verb::Completions(args) => shell::completions(args),
            Verb::Man(args) => shell::man(args),
        }
    }
}

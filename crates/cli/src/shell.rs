//! `assay completions` and `assay man`: generated from the program's own arguments, so they cannot
//! be out of date.

use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use super::{Cli, output};

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example: assay completions bash > /etc/bash_completion.d/assay")]
pub struct CompletionArgs {
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Print the manual page
#[derive(clap::Args)]
#[command(after_help = "Example: assay man > /usr/local/share/man/man1/assay.1")]
pub struct ManArgs {
    /// The page of one verb instead of the whole program
    #[arg(value_name = "VERB")]
    verb: Option<String>,
}

pub fn completions(args: CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "assay", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: ManArgs) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let command = match &args.verb {
        None => command,
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => found.clone(),
            None => {
                output::tell(&format!("assay: there is no verb {verb:?}; `assay --help` lists them"));
                return Ok(ExitCode::from(2));
            }
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).context("cannot write the manual page")?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

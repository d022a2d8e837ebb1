//! `assay completions` and `assay man`: generated from the program's own arguments, so they cannot
//! be out of date.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::Roff;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::output::{self, misuse};
use super::{Cli, files, pages};

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example: assay completions bash > /etc/bash_completion.d/assay")]
pub struct CompletionArgs {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Print the manual page, or write one per command
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay man run | man -l -                             read the page of a command
  assay man --out ~/.local/share/man/man1              then `man assay-run` finds it")]
pub struct ManArgs {
    /// Command whose page to print [default: the whole program]
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// Folder to write all pages to
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
    /// Folder to write the reference pages of the book to
    #[arg(long, value_name = "DIR", conflicts_with_all = ["verb", "out"])]
    markdown: Option<PathBuf>,
}

pub fn completions(args: CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "assay", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: ManArgs) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.markdown {
        pages::write(folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        write_pages(&program, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let command = match &args.verb {
        None => &program,
        Some(verb) => program
            .find_subcommand(verb)
            .ok_or_else(|| misuse(format!("there is no command {verb:?}; `assay --help` lists them")))?,
    };
    output::print(&page(command)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a command and those of all below it, each under its own name.
fn write_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = Man::new(command.clone()).get_filename();
    let text = page(command)?;
    files::write_named(&folder.join(name), |file| Ok(file.write_all(text.as_bytes())?))?;
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| write_pages(command, folder))
}

/// The manual page of a command, dated by `SOURCE_DATE_EPOCH`, so that a package is the same
/// whenever it is made; else by today.
fn page(command: &clap::Command) -> anyhow::Result<String> {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let date = epoch.map_or_else(|| Ok(Timestamp::now()), Timestamp::from_second);
    let date = date.context("SOURCE_DATE_EPOCH is not a time")?.to_zoned(TimeZone::UTC).date();
    let name = command.get_display_name().unwrap_or("assay");
    let notes = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let man = Man::new(command.clone().after_help(None).after_long_help(None))
        .title(name.to_uppercase())
        .date(date.to_string())
        .source(concat!("Assay ", env!("CARGO_PKG_VERSION")))
        .manual("Assay's manual");
    let mut text = Vec::new();
    man.render(&mut text).context("cannot make the manual page")?;
    let text = String::from_utf8_lossy(&text);
    // The version is in the footer. Lint calls a break next to an empty line superfluous.
    let text = text.split(".SH VERSION\n").next().unwrap_or_default().replace(".br\n\n.br\n", ".sp\n");
    Ok(text + &notes.map_or_else(String::new, |notes| section_of_notes(&notes)))
}

/// The help below the options of a verb: each line is a paragraph, and indented lines keep their
/// columns.
fn section_of_notes(notes: &str) -> String {
    let mut roff = Roff::default();
    roff.control("SH", ["NOTES"]);
    let mut indented = false;
    for (number, line) in notes.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        if line.starts_with(' ') != indented {
            indented = !indented;
            roff.control(if indented { "nf" } else { "fi" }, []);
        }
        if !indented && number > 0 {
            roff.control("PP", []);
        }
        roff.text([clap_mangen::roff::roman(line)]);
    }
    if indented {
        roff.control("fi", []);
    }
    roff.to_roff()
}

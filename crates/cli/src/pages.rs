//! `assay man --markdown`: the reference pages of the book, from the tables that the program itself
//! uses.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use knobs::table::KNOBS;

use super::{Cli, explain, files, schema};

/// Columns of quoted terminal output.
const WIDTH: usize = 100;

/// Writes every page into a folder.
///
/// # Errors
///
/// If the folder cannot be made or a page not be written.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, title, body) in [
        ("commands.md", "Commands", commands()),
        ("benchmarks.md", "Benchmarks", benchmarks()),
        ("rules.md", "Rules", rules()),
        ("words.md", "Words on a screen", words()),
        ("knobs.md", "Kernel settings", settings()),
        ("schemas.md", "JSON Schemas", schemas()),
    ] {
        let text = format!("# {title}\n\n<!-- written by: assay man --markdown -->\n{body}");
        files::write_named(&folder.join(name), |file| Ok(file.write_all(text.as_bytes())?))?;
    }
    Ok(())
}

fn quoted(heading: &str, text: &str) -> String {
    format!("\n{heading}\n\n```text\n{}\n```\n", text.trim_end())
}

fn commands() -> String {
    let hidden = |command: clap::Command| {
        command.mut_args(|arg| if arg.get_help_heading() == Some("Display") { arg.hide(true) } else { arg })
    };
    let mut program = hidden(Cli::command().disable_help_subcommand(true).term_width(WIDTH));
    program.build();
    let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    verbs
        .map(|verb| {
            let name = verb.get_name().to_string();
            quoted(&format!("## assay {name}"), &hidden(verb).render_help().to_string())
        })
        .collect()
}

fn benchmarks() -> String {
    let mut text = String::new();
    let mut group = "";
    for bench in explain::benches() {
        if bench.group() != group {
            group = bench.group();
            text.push_str(&format!("\n## {group}\n"));
        }
        text.push_str(&explained(&format!("### {}", bench.id), bench.id.as_str()));
    }
    text
}

fn rules() -> String {
    diagnose::rules().map(|rule| explained(&format!("## {}", rule.id), rule.id.as_str())).collect()
}

fn words() -> String {
    explain::words().iter().map(|word| explained(&format!("## {word}"), word)).collect()
}

fn explained(heading: &str, name: &str) -> String {
    quoted(heading, &explain::named(name, WIDTH).unwrap_or_default())
}

fn settings() -> String {
    let rows =
        KNOBS.iter().map(|knob| format!("| `{}` | {} | {} |\n", knob.name, knob.about, knob.values.words()));
    format!(
        "\n`assay knobs` lists them with the values of this host.\n\n| name | what it is | values \
          |\n|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

fn schemas() -> String {
    let rows = schema::FORMATS.iter().map(|format| format!("| `{}` | {} |\n", format.name, format.about));
    format!(
        "\n`assay schema NAME` prints one.\n\n| name | of what |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

//! `assay knobs`: the settings that can be changed on this kernel, or why not.

use super::output::{self, misuse};
use std::path::PathBuf;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use knobs::Knobs;
use knobs::table::{self, KNOBS, Named};
use report::plain::{lines, plain};

/// List kernel settings that Assay can change, with their values
#[derive(clap::Args)]
#[command(after_help = "\
A knob is a kernel setting with one name on all kernels. `assay sweep --knob NAME=VALUES` changes it, wherever the \
running kernel keeps it. Also accepted: feature.NAME for a scheduler feature (feature.RUN_TO_PARITY), and any sysctl \
(vm.swappiness).
Examples:
  assay knobs                     all of them
  assay knobs slice_ns vm.swappiness
Exit codes: 0; 2 unknown name; 3 a named setting is missing on this kernel")]
pub struct Args {
    /// Names of settings [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Root of the /proc and /sys to read
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
}

/// A knob of `knobs --json`.
#[derive(Serialize, JsonSchema)]
pub struct Listed {
    pub name: String,
    pub about: String,
    /// Its value; null if this kernel lacks it or does not report it.
    pub value: Option<String>,
    /// What may be written.
    pub range: String,
    /// Its file, or `own tasks`; null if this kernel lacks it.
    pub place: Option<String>,
    /// Whether this user may write it now.
    pub writable: bool,
    /// Why it cannot be read or written; empty if it can.
    pub why_not: String,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let knobs = Knobs::of(&args.root);
    let names: Vec<String> = if args.names.is_empty() {
        KNOBS.iter().map(|knob| knob.name.to_string()).collect()
    } else {
        args.names.clone()
    };
    let mut all = Vec::new();
    for name in &names {
        let named = Named::of(name).ok_or_else(|| misuse(knobs.unmet(name, "").unwrap_or_default()))?;
        all.push(listed(&knobs, name, &named));
    }
    if args.json {
        output::print_json(&all)?
    } else {
        output::print_text(&text(&all))?
    }
    let lacking = !args.names.is_empty() && all.iter().any(|knob| knob.value.is_none());
    Ok(if lacking { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

fn listed(knobs: &Knobs, name: &str, named: &Named) -> Listed {
    let about = match named {
        Named::Row(row) => row.about.to_string(),
        Named::Feature(feature) => format!("the scheduler's feature {feature}"),
        Named::Sysctl(_) => "a sysctl".to_string(),
    };
    let (place, unwritable) = if named.is_of_tasks() {
        (Some("own tasks".to_string()), None)
    } else {
        match knobs.locate(name) {
            Ok(located) => (Some(located.place().to_string()), knobs.unwritable(&located)),
            Err(_) => (None, None),
        }
    };
    let (value, why_not) = match knobs.current(name) {
        Ok(value) => {
            // What is there may still not be turned: a host without SMT has its control.
            let why = unwritable.or_else(|| knobs.unmet(name, first_value(named, &value)));
            (Some(value), why.unwrap_or_default())
        }
        Err(why) => (None, why),
    };
    Listed {
        name: name.to_string(),
        about,
        writable: value.is_some() && why_not.is_empty(),
        value,
        range: named.values().words(),
        place,
        why_not,
    }
}

/// A value that it may be set to: the present one, if that is possible.
fn first_value<'v>(named: &Named, value: &'v str) -> &'v str {
    match named.values() {
        table::Values::Choice(choices) if !choices.contains(&value) => choices[0],
        _ => value,
    }
}

fn text(all: &[Listed]) -> String {
    let width = all.iter().map(|knob| knob.name.len()).max().unwrap_or(0);
    let room = output::style(std::io::IsTerminal::is_terminal(&std::io::stdout())).width;
    let indent = " ".repeat(width + 2);
    let mut text = String::new();
    let mut line = |words: &str, first: Option<&str>| {
        for (index, line) in lines(words, room.saturating_sub(width + 2).max(40)).iter().enumerate() {
            match first.filter(|_| index == 0) {
                Some(name) => text.push_str(&format!("{name:width$}  {line}\n")),
                None => text.push_str(&format!("{indent}{line}\n")),
            }
        }
    };
    for knob in all {
        let value = knob.value.as_deref().map_or("not here".to_string(), |value| plain(value, 80));
        let head = format!("{value} ({}): {}", knob.range, knob.about);
        line(&head, Some(&knob.name));
        let place = knob.place.as_deref().map(|place| plain(place, 200));
        match (place, knob.why_not.as_str()) {
            (Some(place), "") => line(&format!("{place}, writable"), None),
            (Some(place), why) => line(&format!("{place}; {}", plain(why, 500)), None),
            (None, why) => line(&plain(why, 500), None),
        }
    }
    text
}

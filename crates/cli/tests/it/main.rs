//! Assay from the outside: the real program, driven as a user does, and its report in a real
//! browser.

// Tests may be long tables.
#![allow(clippy::too_many_lines)]

mod accepted;
mod archive;
mod book;
mod browser;
mod bundle;
mod check;
mod check_fleet;
mod check_written;
mod cli;
mod compare;
mod corpus;
mod disk;
mod distribution;
mod engines;
mod explain;
mod faults;
mod fleets_page;
mod golden;
mod guard;
mod hidden;
mod host_share;
mod import;
mod junit;
mod knobs;
mod kubernetes;
mod lab;
mod machine;
mod memmap;
mod mutations;
mod named;
mod nexmark;
mod objects;
mod observed;
mod owned;
mod peers;
mod pods;
mod privacy;
mod recorded;
mod reference;
mod refuse;
mod repeatability;
mod rules;
mod runs;
mod serve;
mod smbios;
mod soak;
mod studies;
mod sweep;
mod synthetic;
mod texts;
mod tidy;
mod trend;
mod undisturbed;
mod unixbench;
mod utilization;
mod vocabulary;
mod words;

use std::process::Command;

use testkit::host;

/// The program, with an environment that says nothing about terminals or languages.
fn assay() -> Command {
    let mut command = Command::new(testkit::program());
    command.env_remove("COLUMNS").env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("NO_COLOR");
    command
}

/// What checks JSON against one of the schemas that the program publishes.
fn validator(format: &str) -> jsonschema::Validator {
    let output = assay().args(["schema", format]).output().expect("assay runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let schema = serde_json::from_slice(&output.stdout).expect("a JSON schema");
    jsonschema::validator_for(&schema).expect("a valid schema")
}

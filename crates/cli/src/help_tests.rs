//! One-line helps: what each command does and what each option gives fits one line of a terminal.

use clap::{Command, CommandFactory};

use super::Cli;

/// At most this many characters have the short help of a command or an option.
const MAX_CHARS: usize = 70;

/// Collects what is wrong with the short helps of a command, its options and its own commands.
fn collect_faults(command: &Command, path: &str, faults: &mut Vec<String>) {
    let own = command.get_about().map(ToString::to_string);
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let args = args.map(|arg| (arg.get_id().as_str(), arg.get_help().map(ToString::to_string)));
    for (name, help) in std::iter::once(("", own)).chain(args) {
        let help = help.unwrap_or_default();
        let length = help.chars().count();
        if length == 0 || length > MAX_CHARS || help.contains(';') || help.ends_with('.') {
            faults.push(format!("{path} {name}: {length} characters: {help}"));
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        collect_faults(inner, &format!("{path} {}", inner.get_name()), faults);
    }
}

#[test]
fn short_helps_fit_one_line() {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut faults = Vec::new();
    for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        collect_faults(verb, verb.get_name(), &mut faults);
    }
    assert!(program.get_subcommands().count() > 20);
    assert!(faults.is_empty(), "{} short helps:\n{}", faults.len(), faults.join("\n"));
}

//! The plan of a measuring verb, in words or as JSON; nothing is measured.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use super::leftovers::{self, Left};
use super::measure_args::MeasureArgs;
use super::output::{print_json, print_text};
use diagnose::words::{self, counted};
use knobs::task;
use model::{Case, Planned};
use report::plain::{lines, plain};
use session::plan::Profile;

/// What `--dry-run --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct DryRun {
    pub profile: String,
    pub budget_s: f64,
    /// Estimated seconds for the fewest passes that give intervals.
    pub estimated_s: f64,
    pub plan: Vec<Planned>,
    /// Cases that would need root.
    pub needs_root: Vec<String>,
    /// What would be changed on this system.
    pub changes: Vec<String>,
    /// What killed runs left in the folders that would be worked in.
    pub leftovers: Vec<Left>,
}

/// The planned passes: one if all visits are long.
fn passes(profile: &Profile, planned: &[Planned]) -> String {
    let mut runnable = runnable(planned).peekable();
    let once =
        runnable.peek().is_some() && runnable.all(|one| profile.seconds_of(one.seconds) == one.seconds);
    if once && profile.passes_min > 1 {
        "1 pass".to_string()
    } else {
        format!("{} passes", profile.passes_min)
    }
}

/// Shows the plan and does nothing.
pub fn show(
    host: &str,
    planned: &[Planned],
    profile: &Profile,
    args: &MeasureArgs,
) -> anyhow::Result<ExitCode> {
    let dry = dry_run(planned, profile, &args.out());
    if args.json {
        print_json(&dry)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "{}, {} profile: at least {}, about {:.0} s of at most {:.0} s\n\n",
        plain(host, 60),
        profile.name,
        passes(profile, planned),
        dry.estimated_s,
        profile.budget_s
    );
    text.push_str(&case_lines(planned));
    text.push_str(&format!(
        "\n  needs root: {}\n  would change on this host: {}\n",
        listed(&needing_root(planned)),
        listed(&dry.changes)
    ));
    text.push_str(&written(planned, args));
    for one in &dry.leftovers {
        text.push_str(&match &one.stays {
            None => format!("  would remove the remains of a killed run: {}\n", plain(&one.path, 300)),
            Some(why) => format!("  {}\n", leftovers::stays_as_it_is(&one.path, why)),
        });
    }
    print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn runnable(planned: &[Planned]) -> impl Iterator<Item = &Planned> {
    planned.iter().filter(|planned| planned.unmet.is_none())
}

/// Whether a case turns a knob of the whole system: only root may.
fn turns_knobs(planned: &Planned) -> bool {
    planned.case.knobs.keys().any(|name| !task::is_task_knob(name))
}

/// Whether all of the system's page cache is dropped for a case: only root may.
fn drops_caches(planned: &Planned) -> bool {
    planned.case.inputs.contains_key(bench::DROP_CACHES)
}

/// Cases that change the system.
fn changing(planned: &[Planned]) -> impl Iterator<Item = &Planned> {
    runnable(planned).filter(|planned| turns_knobs(planned) || drops_caches(planned))
}

fn dry_run(planned: &[Planned], profile: &Profile, out: &Path) -> DryRun {
    let knobs = changing(planned).flat_map(|planned| &planned.case.knobs);
    let knobs = knobs.filter(|(name, _)| !task::is_task_knob(name));
    let mut changes: BTreeSet<String> = knobs.map(|(name, value)| format!("{name} to {value}")).collect();
    if runnable(planned).any(drops_caches) {
        changes.insert("empties the host's page cache before each cold pass".to_string());
    }
    DryRun {
        profile: profile.name.to_string(),
        budget_s: profile.budget_s,
        estimated_s: runnable(planned).map(|planned| profile.seconds_of(planned.seconds)).sum(),
        plan: planned.to_vec(),
        needs_root: changing(planned).map(|planned| planned.case.key()).collect(),
        changes: changes.into_iter().collect(),
        leftovers: leftovers::found(&leftovers::places(planned, out)),
    }
}

/// A line for each case: its time, or why it is not tested.
fn case_lines(planned: &[Planned]) -> String {
    let keys: Vec<String> = planned.iter().map(|one| shown(&one.case, planned)).collect();
    let width = keys.iter().map(|key| key.chars().count()).max().unwrap_or(0);
    let style = super::output::style(std::io::stdout().is_terminal());
    let line = |(planned, key): (&Planned, &String)| match &planned.unmet {
        None => format!("  {key:width$} {}\n", what_it_takes(planned)),
        Some(why) => {
            let why = format!("not tested: {}", plain(why, 300));
            let indent = " ".repeat(width + 4);
            let room = style.width.saturating_sub(indent.len()).max(30);
            format!("  {key:width$}  {}\n", lines(&why, room).join(&format!("\n{indent}")))
        }
    };
    planned.iter().zip(&keys).map(line).collect()
}

/// Time, points, memory and CPUs of a visit.
fn what_it_takes(planned: &Planned) -> String {
    let memory = words::bytes(planned.memory_bytes as f64);
    let points = bench::find(&planned.case.bench).map_or(1, |row| (row.points)(&planned.case).len());
    let cpus = planned.case.placement.cpus();
    let beside = planned.case.placement.busy_cpus().difference(&cpus);
    let beside = if beside.is_empty() {
        String::new()
    } else {
        format!(", partners on {}", plain(&beside.to_string(), 40))
    };
    format!(
        "{:6.2} s a pass, {:>9}, {memory:>9}, CPUs {}{beside}",
        planned.seconds,
        counted(points, "point"),
        plain(&cpus.to_string(), 40)
    )
}

/// Cases that need root; of a sweep the knobs, as many cells need root for the same ones.
fn needing_root(planned: &[Planned]) -> Vec<String> {
    let has_knobs = planned.iter().any(|planned| !planned.case.knobs.is_empty());
    let names = changing(planned).flat_map(|planned| {
        if has_knobs && turns_knobs(planned) {
            planned.case.knobs.keys().filter(|name| !task::is_task_knob(name)).cloned().collect()
        } else {
            vec![planned.case.key()]
        }
    });
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

fn listed(list: &[String]) -> String {
    match list {
        [] => "nothing".to_string(),
        list => plain(&list.join(", "), 600),
    }
}

/// The files that would be written.
fn written(planned: &[Planned], args: &MeasureArgs) -> String {
    let reports = if args.no_report { "" } else { ", report.html and report.json" };
    let folders: BTreeSet<&String> =
        runnable(planned).filter_map(|planned| planned.case.inputs.get("dir")).collect();
    let folder = |folder: &String| format!(", and temporary test files into {}", plain(folder, 200));
    let folders: String = folders.into_iter().map(folder).collect();
    format!("  would write: a run file{reports} into {}{folders}\n", args.out().display())
}

/// The key of a case; a long one without the parameters that all cases of its benchmark share, so
/// that cells differ visibly.
fn shown(case: &Case, all: &[Planned]) -> String {
    const ROOM: usize = 70;
    const MORE_ROOM: usize = 140;
    let key = case.key();
    if key.chars().count() <= ROOM {
        return plain(&key, ROOM);
    }
    let others = || all.iter().map(|other| &other.case).filter(|other| other.bench == case.bench);
    let mut short = case.clone();
    short.params.retain(|name, value| others().any(|other| other.params.named(name) != Some(value)));
    plain(&short.key(), MORE_ROOM)
}

//! What a measuring verb would do: the plan in words or as JSON, and nothing done.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use super::leftovers::{self, Left};
use super::measure_args::MeasureArgs;
use super::output::{counted, print_json, print_text};
use diagnose::words;
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

/// The passes that are counted with: one where all visits are long.
fn passes(profile: &Profile, planned: &[Planned]) -> String {
    let mut runnable = planned.iter().filter(|planned| planned.unmet.is_none()).peekable();
    let once =
        runnable.peek().is_some() && runnable.all(|one| profile.seconds_of(one.seconds) == one.seconds);
    match once && profile.passes_min > 1 {
        true => "1 pass".to_string(),
        false => format!("{} passes", profile.passes_min),
    }
}

/// Says what would be done, and does nothing.
pub fn show(
    host: &str,
    planned: &[Planned],
    profile: &Profile,
    args: &MeasureArgs,
) -> anyhow::Result<ExitCode> {
    let out = args.out();
    let runnable = || planned.iter().filter(|planned| planned.unmet.is_none());
    let estimated_s = runnable().map(|planned| profile.seconds_of(planned.seconds)).sum::<f64>();
    // Nothing but a kernel knob and dropping all caches changes the system, and nobody but root may
    // do either.
    let drops = |planned: &Planned| planned.case.inputs.contains_key(bench::DROP_CACHES);
    let system = |planned: &Planned| planned.case.knobs.keys().any(|name| !task::is_one(name));
    let changing = || runnable().filter(|planned| system(planned) || drops(planned));
    let knobs = changing().flat_map(|planned| &planned.case.knobs).filter(|(name, _)| !task::is_one(name));
    let mut changes: BTreeSet<String> = knobs.map(|(name, value)| format!("{name} to {value}")).collect();
    if runnable().any(drops) {
        changes.insert("the page cache of the whole machine, dropped before each cold pass".to_string());
    }
    let folders: BTreeSet<&String> =
        runnable().filter_map(|planned| planned.case.inputs.get("dir")).collect();
    let dry = DryRun {
        profile: profile.name.to_string(),
        budget_s: profile.budget_s,
        estimated_s,
        plan: planned.to_vec(),
        needs_root: changing().map(|planned| planned.case.key()).collect(),
        changes: changes.into_iter().collect(),
        leftovers: leftovers::found(&leftovers::places(planned, &out)),
    };
    if args.json {
        print_json(&dry)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "{}, {} profile: {} or more take about {estimated_s:.0} s of at most {:.0} s\n\n",
        plain(host, 60),
        profile.name,
        passes(profile, planned),
        profile.budget_s
    );
    let keys: Vec<String> = planned.iter().map(|one| shown(&one.case, planned)).collect();
    let width = keys.iter().map(|key| key.chars().count()).max().unwrap_or(0);
    let style = super::output::style(std::io::stdout().is_terminal());
    for (planned, key) in planned.iter().zip(&keys) {
        match &planned.unmet {
            None => {
                let memory = words::bytes(planned.memory_bytes as f64);
                let points =
                    bench::find(&planned.case.bench).map_or(1, |row| (row.points)(&planned.case).len());
                let placement = &planned.case.placement;
                let cpus = placement.cpus();
                let beside = match placement.busy_cpus().difference(&cpus) {
                    none if none.is_empty() => String::new(),
                    beside => format!(", beside them {}", plain(&beside.to_string(), 40)),
                };
                text.push_str(&format!(
                    "  {key:width$} {:6.2} s a visit, {:>9}, {memory:>9}, CPUs {}{beside}\n",
                    planned.seconds,
                    counted(points, "point"),
                    plain(&cpus.to_string(), 40)
                ));
            }
            Some(why) => {
                let why = format!("not measured: {}", plain(why, 300));
                let indent = " ".repeat(width + 4);
                let room = style.width.saturating_sub(indent.len()).max(30);
                text.push_str(&format!(
                    "  {key:width$}  {}\n",
                    lines(&why, room).join(&format!("\n{indent}"))
                ));
            }
        }
    }
    // Many cells of a sweep need it for the same few knobs.
    let by_root: BTreeSet<String> = match planned.iter().all(|planned| planned.case.knobs.is_empty()) {
        true => dry.needs_root.iter().cloned().collect(),
        false => changing()
            .map(|planned| match system(planned) {
                true => planned.case.knobs.keys().filter(|name| !task::is_one(name)).cloned().collect(),
                false => vec![planned.case.key()],
            })
            .collect::<Vec<_>>()
            .concat()
            .into_iter()
            .collect(),
    };
    let by_root: Vec<String> = by_root.into_iter().collect();
    let listed = |list: &[String]| match list {
        [] => "nothing".to_string(),
        list => plain(&list.join(", "), 600),
    };
    text.push_str(&format!(
        "\n  needs root: {}\n  would change on this system: {}\n  would write: a run file{} into {}{}\n",
        listed(&by_root),
        listed(&dry.changes),
        if args.no_report { "" } else { ", its page and its JSON (report.html, report.json)" },
        out.display(),
        folders
            .iter()
            .map(|folder| format!(", and test files, removed again, into {}", plain(folder, 200)))
            .collect::<String>()
    ));
    for one in &dry.leftovers {
        text.push_str(&match &one.stays {
            None => format!("  would remove what a killed run left: {}\n", plain(&one.path, 300)),
            Some(why) => format!("  {}\n", leftovers::stays_as_it_is(&one.path, why)),
        });
    }
    print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The key of a case; of a long one without the parameters that are the same in all cases of its
/// benchmark, so that the cells of a sweep can be told apart.
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

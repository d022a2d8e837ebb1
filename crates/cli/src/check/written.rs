//! Files that a check writes of its outcomes, and the names that they may not have.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::files;
use super::super::report_file::{Form, ReportFile};
use super::{Args, Report, specs};
use crate::output::eprint_line;
use ::check::Outcome;
use report::checking;

/// The exit code of an outcome whose files should be written: an accepted one becomes an error if
/// they could not be, others stay.
pub fn kept(code: u8, written: &[anyhow::Result<()>]) -> u8 {
    let failed = || written.iter().filter_map(|one| one.as_ref().err());
    failed().for_each(|error| eprint_line(&format!("assay: {error:#}")));
    if code == 0 && failed().next().is_some() { 3 } else { code }
}

/// Writes all requested files.
pub fn all(args: &Args, report: &Report, now_s: f64) -> [anyhow::Result<()>; 5] {
    let outcomes = &report.runs;
    [
        junit(args, outcomes),
        out(args, report),
        maas(args, outcomes),
        nfd(args, outcomes, now_s),
        prometheus(args, outcomes),
    ]
}

/// Why a file has no room for these outcomes.
pub fn crowded(args: &Args, outcomes: &[Outcome]) -> Option<String> {
    let mut hosts = HashSet::new();
    let twice = outcomes.iter().find(|one| !hosts.insert(&one.host));
    if let Some((file, twice)) = args.prometheus.as_ref().zip(twice) {
        return Some(format!(
            "--prometheus {}: two runs are of {}, but a metric takes one: add --newest, or name hosts by \
              --host when measuring",
            file.display(),
            twice.host
        ));
    }
    let of_one = [("--maas", &args.maas), ("--nfd", &args.nfd)];
    let (name, file) = of_one.iter().find_map(|(name, path)| Some((name, path.as_ref()?)))?;
    (outcomes.len() != 1).then(|| {
        format!(
            "{name} {}: such a file is for one run, and these are {}: name one run, or add --newest or \
              --confirmed for one host",
            file.display(),
            outcomes.len()
        )
    })
}

fn maas(args: &Args, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let (Some(file), [outcome]) = (&args.maas, outcomes) else { return Ok(()) };
    let text = serde_json::to_string_pretty(&::check::maas(outcome))?;
    files::write_named(file, |out| Ok(writeln!(out, "{text}")?))
}

fn nfd(args: &Args, outcomes: &[Outcome], now_s: f64) -> anyhow::Result<()> {
    let (Some(file), [outcome]) = (&args.nfd, outcomes) else { return Ok(()) };
    let text = ::check::nfd(outcome, now_s);
    files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))
}

fn junit(args: &Args, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let Some(file) = &args.junit else { return Ok(()) };
    let text = ::check::junit(outcomes)?;
    files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))
}

fn out(args: &Args, report: &Report) -> anyhow::Result<()> {
    let Some(file) = &args.out else { return Ok(()) };
    match file.form {
        Form::Csv => file.write(|out| checking::rows(&report.runs, out)),
        _ => {
            let text = serde_json::to_string_pretty(report)?;
            file.write(|out| Ok(writeln!(out, "{text}")?))
        }
    }
}

fn prometheus(args: &Args, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let Some(file) = &args.prometheus else { return Ok(()) };
    let text = checking::prometheus(outcomes);
    files::write_named(file, |out| Ok(out.write_all(text.as_bytes())?))
}

/// The options that name files to be written.
fn outputs(args: &Args) -> Vec<(&'static str, &PathBuf)> {
    let out = args.out.as_ref().map(ReportFile::path);
    let others = [&args.junit, &args.maas, &args.nfd, &args.prometheus].map(Option::as_ref);
    let all = ["--junit", "--maas", "--nfd", "--prometheus"].into_iter().zip(others).chain([("--out", out)]);
    all.filter_map(|(name, path)| Some((name, path?))).collect()
}

/// Why an output would replace an input or another output.
pub fn clash(args: &Args) -> Option<String> {
    let place = |path: &PathBuf| {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = || Some(above.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(beside)
    };
    let mut outputs = outputs(args);
    outputs.retain(|(_, path)| path.is_file() || !path.exists());
    let specs = args.spec_dir.iter().flat_map(|folder| specs::of_folder(folder).unwrap_or_default());
    let read = args.spec.iter().cloned().chain(specs).chain(args.runs.iter().cloned());
    let read: Vec<PathBuf> = read.filter_map(|path| place(&path)).collect();
    let is_read = |path: &PathBuf| place(path).is_some_and(|own| read.contains(&own));
    if let Some((name, path)) = outputs.iter().find(|(_, path)| is_read(path)) {
        return Some(format!("{name} {}: it is the input: name another file", path.display()));
    }
    outputs.iter().enumerate().find_map(|(at, (name, path))| {
        let own = place(path)?;
        let (first, _) = outputs[..at].iter().find(|(_, other)| place(other).as_ref() == Some(&own))?;
        Some(format!("{first} and {name} both name {}: give each a file of its own", path.display()))
    })
}

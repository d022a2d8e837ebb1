//! The references for a verb's figures: `--reference`, then the user's own (`assay reference add`),
//! then the published table.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, anyhow, bail};

use super::output::eprint_line;
use super::{nexmark, peers, results};
use compare::peers::{Bands, HostResult, bands};
use diagnose::Diagnosis;
use diagnose::reference::{self, HostClass, Kind, References, Row, Sure, UnusedBecause};
use model::Better;

/// Largest table that is read, bytes.
const LARGEST: u64 = 16 << 20;

#[derive(clap::Args, Clone, Debug, Default)]
pub struct ReferenceArg {
    /// Run, folder of runs or table (.csv) as reference
    #[arg(long, value_name = "RUN|DIR|CSV")]
    reference: Option<PathBuf>,
}

impl ReferenceArg {
    pub fn is_given(&self) -> bool {
        self.reference.is_some()
    }

    /// The references that the figures of a run are read by.
    pub fn references(&self, own: &Diagnosis) -> anyhow::Result<References> {
        let references = self.read_for(|| HostResult::from((own.summary(), String::new())))?;
        if let Some(file) = self.reference.as_deref().filter(|path| is_table(path) && !path.is_dir())
            && let Some(text) = without_effect(&table(file)?, own)
        {
            eprint_once(format!("assay: --reference {}: {text}", file.display()));
        }
        Ok(references)
    }

    /// The same for any result; asks for the make where a folder of runs is the reference.
    pub fn read_for(&self, own: impl FnOnce() -> HostResult) -> anyhow::Result<References> {
        let references = kept()?;
        match &self.reference {
            None => Ok(references),
            Some(path) => named(references, path, own).map_err(|error| {
                let text = results::about(&path.display().to_string(), &format!("{error:#}"));
                anyhow!("cannot use --reference: {text}")
            }),
        }
    }
}

/// The published table and the user's own, which come first.
pub fn kept() -> anyhow::Result<References> {
    let Ok(folder) = folder() else { return Ok(References::published()) };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_table(path)).collect();
    files.sort();
    let mut references = References::published();
    // The first by name wins.
    for file in files.iter().rev() {
        match table(file) {
            Ok(rows) => references = references.with_table(&name_of(file), rows),
            Err(error) => eprint_once(format!("assay: {} is ignored: {error:#}", file.display())),
        }
    }
    Ok(references)
}

/// Where users' references are.
pub fn folder() -> anyhow::Result<PathBuf> {
    Ok(nexmark::share()?.join("reference"))
}

/// The file of a kept reference; the name may not lead out of the folder or begin with a dot.
pub fn file_of(name: &str) -> anyhow::Result<PathBuf> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '+' | '(' | ')');
    if name.trim() != name || name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        bail!("{name:?} is not a name: use letters, digits, spaces, - and _");
    }
    if name.len() > 100 {
        bail!("a name has at most 100 bytes");
    }
    Ok(folder()?.join(format!("{name}.csv")))
}

fn is_table(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("csv"))
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn table(file: &Path) -> anyhow::Result<Vec<Row>> {
    let found = std::fs::metadata(file).context("cannot read it")?;
    if !found.is_file() {
        bail!("it is not a file but a folder, pipe or device: write its content into a file");
    }
    if found.len() > LARGEST {
        bail!("it has more than {} MB, too much for a table", LARGEST >> 20);
    }
    let text = std::fs::read_to_string(file).context("cannot read it")?;
    let rows = reference::read(&text)
        .map_err(|why| anyhow::anyhow!("{why}; `assay explain references` names the columns of a table"))?;
    Ok(rows)
}

fn named(
    references: References,
    path: &Path,
    own: impl FnOnce() -> HostResult,
) -> anyhow::Result<References> {
    if path.is_dir() {
        let Some(found) = bands(peers::fleet_in(path)?, own()) else {
            bail!("it has no run of a host of the same make (`assay peers` shows them)");
        };
        let name = format!("{} ({})", path.display(), diagnose::words::counted(found.hosts, "host"));
        return Ok(references.with_table(&name, rows_of(&found, &name)));
    }
    let name = path.display().to_string();
    if is_table(path) {
        return Ok(references.with_table(&name, table(path)?));
    }
    let diagnosis = diagnose::diagnose(results::run(path)?);
    let rows = reference::rows_of_run(&name, &diagnosis, true);
    if rows.is_empty() {
        bail!("it has no usable figure");
    }
    Ok(references.with_table(&name, rows))
}

/// Prints a line once, however often the references are read.
fn eprint_once(text: String) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
        eprint_line(&text);
    }
}

/// Most rows that are named if they do not apply.
const NAMED: usize = 3;

/// Which rows of a table do not apply to a run, in a sentence; `None` if all do.
fn without_effect(rows: &[Row], own: &Diagnosis) -> Option<String> {
    let host = HostClass::of(&own.machine);
    let figures = || own.series.iter().map(|one| (one.series.key.as_str(), one.series.metric.unit.as_ref()));
    let silent = rows.iter().filter_map(|row| Some((row, row.unused_because(&host, figures())?)));
    let silent: Vec<(&Row, UnusedBecause)> = silent.collect();
    let reason = |(row, why): &(&Row, UnusedBecause)| {
        Some(match why {
            UnusedBecause::Figure => format!("the run has no figure {}", row.metric),
            UnusedBecause::Unit => format!("{:?} is not a unit of {}", row.unit, row.metric),
            UnusedBecause::Class => format!("no class of hosts is called {:?}", row.subject),
            UnusedBecause::Host => return None,
        })
    };
    let mut reasons: Vec<String> = silent.iter().filter_map(reason).collect();
    let others = silent.len() - reasons.len();
    if let Some(more @ 1..) = reasons.len().checked_sub(NAMED) {
        reasons.truncate(NAMED);
        reasons.push(format!("{more} more like these"));
    }
    match others {
        0 => {}
        1 => reasons.push("1 is for other hosts".to_string()),
        _ => reasons.push(format!("{others} are for other hosts")),
    }
    let what = match (silent.len(), rows.len()) {
        (0, _) => return None,
        (1, 1) => "its only row does not apply here".to_string(),
        (1, all) => format!("1 of its {all} rows does not apply here"),
        (many, all) if many == all => format!("none of its {all} rows applies here"),
        (many, all) => format!("{many} of its {all} rows do not apply here"),
    };
    Some(format!("{what}: {}", reasons.join("; ")))
}

fn rows_of(found: &Bands, name: &str) -> Vec<Row> {
    let row = |band: &compare::peers::Band| Row {
        metric: band.key.clone(),
        name: String::new(),
        subject: "any".to_string(),
        place: None,
        detail: String::new(),
        unit: band.unit.clone(),
        better: if band.higher { Better::Higher } else { Better::Lower },
        low: Some(band.low),
        high: Some(band.high),
        kind: Some(if found.are_limits { Kind::Peers } else { Kind::Run }),
        source: name.to_string(),
        source_date: String::new(),
        sure: Sure::High,
        note: String::new(),
    };
    found.bands.iter().map(row).collect()
}

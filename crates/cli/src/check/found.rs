//! The runs that a check is of: all that were named, or of each host the newest.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use jiff::Timestamp;

use super::super::references::ReferenceArg;
use super::super::results::{self, Contents};
use super::specs::Measured;
use ::check::Subject;
use compare::ComparisonSide;
use diagnose::Diagnosis;
use diagnose::bottom_line::key_readings;
use model::Summary;
use model::run_file::{self, EXTENSION};
use report::sections::label;

/// A run, or its file and the reason why it is unreadable.
pub type Found = Result<Measured, (String, String)>;

/// Which runs to read, and how.
pub struct Wanted<'w> {
    pub runs: &'w [PathBuf],
    pub reference: &'w ReferenceArg,
    /// Whether a spec counts from other runs.
    pub compares: bool,
    /// Of each host the newest run only.
    pub newest: bool,
}

/// What became of the runs, and the files of those that are older than another of their host.
pub struct All<T> {
    pub found: Vec<One<T>>,
    pub left_out: Vec<String>,
}

/// The result for a run and, if the newest of each host is wanted, for its older ones, newest
/// first.
pub struct One<T> {
    pub own: T,
    pub earlier: Vec<LoadedRun<T>>,
}

/// Whose run it is, and when it began; of two that began at once the later name counts.
struct Mark {
    /// Hosts of one name need not be one machine: half the world is called localhost.
    host: [String; 3],
    age: (Option<Timestamp>, String),
}

impl Mark {
    fn of(host: &str, fact: impl Fn(&str) -> Option<String>, started: &str, file: &str) -> Mark {
        let told = |name: &str| fact(name).unwrap_or_default();
        Mark {
            host: [host.to_string(), told("cpu_model"), told("packages")],
            age: (started.parse().ok(), file.to_string()),
        }
    }

    fn of_subject(own: &Subject) -> Mark {
        Mark::of(&own.host, |name| own.fact(name).map(str::to_string), &own.started, &own.file)
    }

    fn of_summary(own: &Summary, file: &str) -> Mark {
        let fact = |name: &str| own.make_up.iter().find(|(label, _)| label == name).map(|one| one.1.clone());
        Mark::of(&own.host, fact, &own.started, file)
    }
}

/// The result for a run, or the file to read on demand.
pub enum LoadedRun<T> {
    Ready(T),
    Deferred(PathBuf),
}

impl<T> LoadedRun<T> {
    /// `None` for a file without a run any more.
    pub fn made(
        self,
        wanted: &Wanted,
        make: impl Fn(Found) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        match self {
            LoadedRun::Ready(one) => Ok(Some(one)),
            LoadedRun::Deferred(path) => {
                let all = made(&path, wanted, make)?;
                Ok(all.into_iter().find_map(|(_, one)| match one {
                    LoadedRun::Ready(one) => Some(one),
                    LoadedRun::Deferred(_) => None,
                }))
            }
        }
    }
}

/// All named runs, one at a time. Unreadable runs are judged, too: they do not pass. Errors come
/// from the reference or from `make`.
pub fn all<T>(wanted: &Wanted, make: impl Fn(Found) -> anyhow::Result<T>) -> anyhow::Result<All<T>> {
    let mut seen: Vec<(Option<Mark>, LoadedRun<T>)> = Vec::new();
    for named in wanted.runs {
        let shown = named.display().to_string();
        let files = match results::files(std::slice::from_ref(named)) {
            Ok(files) if files.is_empty() => Err(format!("the folder has no run ({EXTENSION})")),
            Ok(files) => Ok(files),
            Err(error) => Err(format!("{error:#}")),
        };
        match files {
            Err(why) => seen.push((None, LoadedRun::Ready(make(Err((shown, why)))?))),
            Ok(files) => {
                for path in files {
                    match waits(&path, wanted) {
                        Some(mark) => seen.push((Some(mark), LoadedRun::Deferred(path))),
                        None => seen.extend(made(&path, wanted, &make)?),
                    }
                }
            }
        }
    }
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for places in of_hosts(seen.iter().map(|(mark, _)| mark.as_ref().filter(|_| wanted.newest))) {
        let mut earlier = Vec::new();
        let mut own = None;
        for place in places {
            let (mark, one) =
                std::mem::replace(&mut seen[place], (None, LoadedRun::Deferred(PathBuf::new())));
            match own {
                None => own = one.made(wanted, &make)?,
                Some(_) => {
                    left_out.extend(mark.map(|mark| mark.age.1));
                    earlier.push(one);
                }
            }
        }
        found.extend(own.map(|own| One { own, earlier }));
    }
    Ok(All { found, left_out })
}

/// The places of the runs of each host, the newest first; hosts by the places of those. What has no
/// mark is a host by itself.
fn of_hosts<'m>(marks: impl Iterator<Item = Option<&'m Mark>>) -> Vec<Vec<usize>> {
    let (mut hosts, mut known) = (Vec::<Vec<(Option<&Mark>, usize)>>::new(), HashMap::new());
    for (place, mark) in marks.enumerate() {
        match mark {
            None => hosts.push(vec![(None, place)]),
            Some(own) => {
                let at = *known.entry(&own.host).or_insert(hosts.len());
                if at == hosts.len() {
                    hosts.push(Vec::new());
                }
                hosts[at].push((mark, place));
            }
        }
    }
    for runs in &mut hosts {
        runs.sort_by(|(one, _), (other, _)| other.map(|mark| &mark.age).cmp(&one.map(|mark| &mark.age)));
    }
    let mut places: Vec<Vec<usize>> =
        hosts.into_iter().map(|runs| runs.into_iter().map(|(_, place)| place).collect()).collect();
    places.sort_unstable();
    places
}

/// Reads only the last line of a run file if a newer one may exist: a folder that is checked every
/// minute may have a year of runs.
fn waits(path: &Path, wanted: &Wanted) -> Option<Mark> {
    if !wanted.newest || !results::is_run(path).ok()? {
        return None;
    }
    let summary = run_file::summary(&mut run_file::open(path).ok()?).ok()?;
    Some(Mark::of_summary(&summary, &path.display().to_string()))
}

/// What is made of the runs in a file.
fn made<T>(
    path: &Path,
    wanted: &Wanted,
    make: impl Fn(Found) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<(Option<Mark>, LoadedRun<T>)>> {
    let all = match found_in(path, wanted.reference, wanted.compares) {
        Ok(all) => all,
        Err(error) if error.is::<Unreadable>() => return Err(error),
        Err(error) => vec![Err((path.display().to_string(), format!("{error:#}")))],
    };
    let marked = all.into_iter().map(|one| {
        let mark = one.as_ref().ok().map(|measured| Mark::of_subject(&measured.subject));
        Ok((mark, LoadedRun::Ready(make(one)?)))
    });
    marked.collect()
}

fn found_in(path: &Path, reference: &ReferenceArg, compares: bool) -> anyhow::Result<Vec<Found>> {
    let shown = path.display().to_string();
    if results::is_run(path)? {
        let diagnosis = diagnose::diagnose(results::run(path)?);
        return Ok(vec![Ok(of_run(&diagnosis, reference, &shown, compares)?)]);
    }
    match results::contents(path)? {
        Contents::Summaries(all) => {
            let of = |one: Result<_, _>| {
                one.map(|(summary, file): (_, String)| Measured {
                    subject: Subject::of_summary(&summary, &file),
                    arm: compares.then(|| ComparisonSide::summarised(summary, &file)),
                })
            };
            Ok(all.into_iter().map(of).collect())
        }
        Contents::Arms(_) => {
            bail!("it is a result of another tool or a saved report: a spec checks run files and summaries")
        }
    }
}

/// A run to check against a spec.
pub fn of_run(
    diagnosis: &Diagnosis,
    reference: &ReferenceArg,
    file: &str,
    compares: bool,
) -> anyhow::Result<Measured> {
    let references = reference.references(diagnosis).map_err(Unreadable)?;
    let readings = key_readings(diagnosis, &references);
    let subject = Subject::of_run(diagnosis, readings, file, |judged| label(diagnosis, judged));
    Ok(Measured { subject, arm: compares.then(|| ComparisonSide::measured(diagnosis, file)) })
}

/// Why `--reference` cannot be used, which is not the run's fault.
#[derive(Debug)]
struct Unreadable(anyhow::Error);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Unreadable {}

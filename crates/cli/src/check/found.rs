//! The runs that a check is of: all that were named, or of each host the newest.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use jiff::Timestamp;

use super::super::references::ReferenceArg;
use super::super::results::{self, Held};
use super::specs::Measured;
use ::check::Subject;
use compare::ComparisonSide;
use diagnose::Diagnosis;
use diagnose::bottom_line::key_readings;
use model::Summary;
use model::run_file::{self, EXTENSION};
use report::sections::label;

/// A run, or the file and why there is none.
pub type Found = Result<Measured, (String, String)>;

/// Which runs are wanted, and what of them.
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

/// What became of a run, and, where of each host the newest is wanted, its host's older ones, the
/// newest first.
pub struct One<T> {
    pub own: T,
    pub earlier: Vec<Seen<T>>,
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

/// What is made of a run, or the file in which it waits until it is asked for.
pub enum Seen<T> {
    Made(T),
    Waits(PathBuf),
}

impl<T> Seen<T> {
    /// Nothing is made of a file that holds no run any more.
    pub fn made(
        self,
        wanted: &Wanted,
        make: impl Fn(Found) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        match self {
            Seen::Made(one) => Ok(Some(one)),
            Seen::Waits(path) => {
                let all = made(&path, wanted, make)?;
                Ok(all.into_iter().find_map(|(_, one)| match one {
                    Seen::Made(one) => Some(one),
                    Seen::Waits(_) => None,
                }))
            }
        }
    }
}

/// All runs that were named, a run at a time. What cannot be read is judged, too: it is no run that
/// passes. Errors are those of the reference, and of what is made of a run.
pub fn all<T>(wanted: &Wanted, make: impl Fn(Found) -> anyhow::Result<T>) -> anyhow::Result<All<T>> {
    let mut seen: Vec<(Option<Mark>, Seen<T>)> = Vec::new();
    for named in wanted.runs {
        let shown = named.display().to_string();
        let files = match results::files(std::slice::from_ref(named)) {
            Ok(files) if files.is_empty() => Err(format!("the folder has no run ({EXTENSION})")),
            Ok(files) => Ok(files),
            Err(error) => Err(format!("{error:#}")),
        };
        match files {
            Err(why) => seen.push((None, Seen::Made(make(Err((shown, why)))?))),
            Ok(files) => {
                for path in files {
                    match waits(&path, wanted) {
                        Some(mark) => seen.push((Some(mark), Seen::Waits(path))),
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
            let (mark, one) = std::mem::replace(&mut seen[place], (None, Seen::Waits(PathBuf::new())));
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

/// Of a run file that others may be newer than its mark, by its last line alone: a folder that is
/// checked every minute may hold a year of runs.
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
) -> anyhow::Result<Vec<(Option<Mark>, Seen<T>)>> {
    let all = match found_in(path, wanted.reference, wanted.compares) {
        Ok(all) => all,
        Err(error) if error.is::<Unreadable>() => return Err(error),
        Err(error) => vec![Err((path.display().to_string(), format!("{error:#}")))],
    };
    let marked = all.into_iter().map(|one| {
        let mark = one.as_ref().ok().map(|measured| Mark::of_subject(&measured.subject));
        Ok((mark, Seen::Made(make(one)?)))
    });
    marked.collect()
}

fn found_in(path: &Path, reference: &ReferenceArg, compares: bool) -> anyhow::Result<Vec<Found>> {
    let shown = path.display().to_string();
    if results::is_run(path)? {
        let diagnosis = diagnose::diagnose(results::run(path)?);
        return Ok(vec![Ok(of_run(&diagnosis, reference, &shown, compares)?)]);
    }
    match results::held(path)? {
        Held::Summaries(all) => {
            let of = |one: Result<_, _>| {
                one.map(|(summary, file): (_, String)| Measured {
                    subject: Subject::of_summary(&summary, &file),
                    arm: compares.then(|| ComparisonSide::summarised(summary, &file)),
                })
            };
            Ok(all.into_iter().map(of).collect())
        }
        Held::Arms(_) => {
            bail!("it is a result of another tool or a saved report: a spec checks run files and summaries")
        }
    }
}

/// A run as a spec is held against it.
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

/// Why what `--reference` names cannot be used, which is no fault of a run.
#[derive(Debug)]
struct Unreadable(anyhow::Error);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Unreadable {}

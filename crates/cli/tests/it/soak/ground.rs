//! Where one command is killed and gone on with: its folders, full of a user's files that look like
//! ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model::Visit;
use model::run_file;
use tempfile::TempDir;

use super::decoys::Decoys;
use crate::runs::is_result;

/// The folders of one command.
pub struct Ground {
    folder: TempDir,
    /// Stands in the environment of every process that is started here.
    pub nonce: String,
    pub decoys: Decoys,
}

/// What a folder's run files held: of each its visits and whether it was closed, or why it cannot
/// be read.
pub type Runs = BTreeMap<PathBuf, Result<(Vec<Visit>, bool), String>>;

impl Ground {
    pub fn new() -> Ground {
        let folder = tempfile::Builder::new().prefix("soak-").tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let named = ["tmp", "dir", "out", "state"].map(path);
        named.iter().for_each(|path| fs::create_dir(path).expect("a folder"));
        let decoys = Decoys::plant(&[&named[0], &named[1], &named[2]], &path("watched"));
        Ground { nonce: crate::host::unique(), decoys, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps the folder, to be looked at.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// All files that are neither a user's nor results.
    pub fn strange_files(&self) -> Vec<String> {
        let mut strange = Vec::new();
        for name in ["tmp", "dir", "out", "state"] {
            let results = name == "out";
            for entry in fs::read_dir(self.path(name)).into_iter().flatten().flatten() {
                let (path, own) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let result = results
                    && (is_result(&own) && !is_run_file(&path)
                        || own.ends_with(".svg")
                        || is_run_file(&path) && run_file::read(&path).is_ok());
                // The empty lock file of kernel settings stays; no other file of `state` does.
                let lock = name == "state"
                    && entry.metadata().is_ok_and(|about| about.is_file() && about.len() == 0);
                if !(result || lock || self.decoys.has(&path)) {
                    strange.push(format!("{} is there", path.display()));
                }
            }
        }
        strange
    }

    /// The run files that are no user's.
    pub fn runs(&self) -> Runs {
        let entries =
            fs::read_dir(self.path("out")).into_iter().flatten().flatten().map(|entry| entry.path());
        let ours = entries.filter(|path| is_run_file(path) && !self.decoys.has(path));
        ours.map(|path| (path.clone(), look(&path))).collect()
    }

    /// Whether the newest run has been closed.
    pub fn concluded(&self) -> bool {
        let entries =
            fs::read_dir(self.path("out")).into_iter().flatten().flatten().map(|entry| entry.path());
        let newest = entries.filter(|path| is_run_file(path) && !self.decoys.has(path)).max();
        let text = newest.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().next_back().is_some_and(|line| line.contains("\"summary\":{"))
    }
}

fn is_run_file(path: &Path) -> bool {
    path.to_string_lossy().ends_with(run_file::EXTENSION)
}

fn look(path: &Path) -> Result<(Vec<Visit>, bool), String> {
    let run = run_file::read(path).map_err(|error| format!("{error:#}"))?;
    match run.damage.iter().find(|damage| !damage.contains("the file ends in the middle of it")) {
        Some(damage) => Err(damage.clone()),
        None => Ok((run.visits, run.summary.is_some())),
    }
}

/// When a run has no more to do.
#[derive(Clone, Copy)]
pub enum Enough {
    /// This many visits, or this many milliseconds.
    Either(usize, f64),
    Visits(usize),
}

impl Enough {
    fn is(self, visits: &[Visit]) -> bool {
        // A resumed run first checks for a second whether the host is quiet.
        let end = visits.last().map_or(0.0, |visit| visit.at_ms + visit.conditions.wall_ms + 1500.0);
        match self {
            Enough::Either(most, ms) => visits.len() >= most || end >= ms,
            Enough::Visits(most) => visits.len() >= most,
        }
    }
}

/// What is wrong with the run files after a start; `whole`: it came to its end by itself. `Err` in
/// the list's first place is a loss, in its second a run that was not gone on with.
pub fn went_wrong(
    before: &Runs,
    after: &Runs,
    whole: bool,
    resumes: bool,
    enough: Enough,
) -> (Vec<String>, Vec<String>) {
    let (mut lost, mut not_on) = (Vec::new(), Vec::new());
    let mut open = None;
    for (path, was) in before {
        let Ok((visits, closed)) = was else { continue };
        let shown = path.display();
        match after.get(path) {
            None => lost.push(format!("{shown} with {} visits is gone", visits.len())),
            Some(Err(why)) => lost.push(format!("{shown} with {} visits: {why}", visits.len())),
            Some(Ok((now, _))) if !now.starts_with(visits) => {
                lost.push(format!("{shown} had {} visits, and of them it has not all", visits.len()));
            }
            Some(Ok((now, _))) if *closed && now != visits => {
                lost.push(format!("{shown} was closed and went on"))
            }
            Some(Ok((now, now_closed))) if !closed => open = Some((shown, visits, now, *now_closed)),
            Some(Ok(_)) => {}
        }
    }
    let Some((shown, visits, now, closed)) = open.filter(|_| resumes) else { return (lost, not_on) };
    let new = after.keys().filter(|path| !before.contains_key(*path));
    not_on.extend(new.map(|path| format!("{} was begun although {shown} waits", path.display())));
    if whole && !closed {
        not_on.push(format!("{shown} has {} visits and no summary after a whole run", now.len()));
    } else if whole && now.len() <= visits.len() && !enough.is(visits) {
        not_on.push(format!("{shown} has {} visits as before, and had not enough", now.len()));
    }
    (lost, not_on)
}

mod tests {
    use super::*;

    fn visit(order: u32) -> Visit {
        let samples = vec![];
        let at_ms = 1000.0 + 50.0 * f64::from(order);
        let (conditions, process) = (Default::default(), Default::default());
        Visit { order, case: 0, pass: order, at_ms, conditions, process, samples, reason: None }
    }

    fn runs(files: &[(&str, u32, bool)]) -> Runs {
        let one = |(name, visits, closed): &(&str, u32, bool)| {
            (PathBuf::from(name), Ok(((0..*visits).map(visit).collect(), *closed)))
        };
        files.iter().map(one).collect()
    }

    #[test]
    fn a_lost_run_and_one_that_was_not_gone_on_with_are_seen() {
        let enough = Enough::Either(20, 9000.0);
        let open = runs(&[("a", 3, false)]);
        let wrong = |after: &Runs, whole: bool| went_wrong(&open, after, whole, true, enough);
        let none = (Vec::<String>::new(), Vec::<String>::new());
        assert_eq!(wrong(&runs(&[("a", 5, true)]), true), none);
        assert_eq!(wrong(&runs(&[("a", 3, false)]), false), none, "killed before it went on");
        assert_eq!(
            went_wrong(
                &runs(&[("a", 3, true)]),
                &runs(&[("a", 3, true), ("b", 2, true)]),
                true,
                true,
                enough
            ),
            none
        );
        let fresh = runs(&[("a", 3, false), ("b", 2, true)]);
        assert_eq!(went_wrong(&open, &fresh, true, false, enough), none, "such a one begins anew");

        assert!(wrong(&runs(&[]), true).0[0].contains("is gone"));
        assert!(wrong(&runs(&[("a", 2, false)]), false).0[0].contains("not all"));
        let broken = [(PathBuf::from("a"), Err("line 3 was left out".to_string()))].into_iter().collect();
        assert!(wrong(&broken, true).0[0].contains("line 3"));
        let closed = went_wrong(&runs(&[("a", 3, true)]), &runs(&[("a", 4, true)]), true, true, enough);
        assert!(closed.0[0].contains("closed and went on"));

        assert!(wrong(&fresh, true).1[0].contains("was begun although"));
        assert!(wrong(&runs(&[("a", 3, true)]), true).1[0].contains("as before"));
        assert!(wrong(&runs(&[("a", 5, false)]), true).1[0].contains("no summary"));
        let full = runs(&[("a", 20, false)]);
        assert_eq!(
            went_wrong(&full, &runs(&[("a", 20, true)]), true, true, enough),
            none,
            "nothing was left to do"
        );
    }
}

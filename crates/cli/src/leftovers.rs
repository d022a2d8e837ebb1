//! Remains of killed runs in the folders of a run: removed if they are provably Assay's, else
//! named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Serialize;

use super::output::eprint_line;
use model::Planned;
use report::plain::plain;
use sys::scratch::{self, Leftover};

/// A folder with an Assay name whose owner has ended.
#[derive(Serialize, JsonSchema)]
pub struct Left {
    pub path: String,
    /// Why it would stay; absent if it would be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}

/// The folders in which visits of a plan make some of their own.
pub fn worked_in<'p>(plan: impl IntoIterator<Item = &'p Planned>) -> impl Iterator<Item = PathBuf> {
    plan.into_iter().filter_map(|planned| planned.case.inputs.get("dir")).map(PathBuf::from)
}

/// The folders in which a run of this plan makes its own.
pub fn places(plan: &[Planned], out: &Path) -> BTreeSet<PathBuf> {
    let all = worked_in(plan).chain([std::env::temp_dir(), out.to_path_buf()]);
    // One folder of two names is one.
    all.map(|place| place.canonicalize().unwrap_or(place)).collect()
}

/// What a run would find there; nothing is done to it.
pub fn found(places: &BTreeSet<PathBuf>) -> Vec<Left> {
    let all = places.iter().flat_map(|place| scratch::leftovers(place));
    all.map(|one| Left { path: one.path.display().to_string(), stays: one.stays }).collect()
}

/// Removes what is Assay's, and names the rest once.
pub fn sweep<'p>(places: impl IntoIterator<Item = &'p (impl AsRef<Path> + ?Sized + 'p)>) {
    static NAMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    for Leftover { path, stays } in places.into_iter().flat_map(|place| scratch::sweep(place.as_ref())) {
        let new = NAMED.lock().is_ok_and(|mut named| named.insert(path.clone()));
        if let Some(why) = stays.filter(|_| new) {
            eprint_line(&format!("  {}", stays_as_it_is(&path.display().to_string(), &why)));
        }
    }
}

/// A message about a folder that is not removed.
pub fn stays_as_it_is(path: &str, why: &str) -> String {
    format!(
        "not removed: {}, because {}; check it, and remove it by hand if you do not need it",
        plain(path, 300),
        plain(why, 300)
    )
}

//! Finding an interrupted run that can be gone on with, without writing into anything that someone
//! else may have put there.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::place::{NotResumable, open_folder};
use super::reader::first_line;
use super::{EXTENSION, Source, Writer, open, summary};
use crate::{Header, Run};

/// What a folder holds of a run that can be gone on with.
#[derive(Default)]
pub struct Candidates {
    /// Opened for more, and its content.
    pub found: Option<(Writer, Run)>,
    /// Newer ones that are not written to, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// The newest incomplete run file of a folder that `agrees` says may be gone on with. Files that
/// cannot be read (cut inside their header, foreign) or written are left where they are.
pub fn candidates(dir: &Path, agrees: impl Fn(&Header) -> bool) -> Candidates {
    let mut all = Candidates::default();
    let (Ok(folder), Ok(entries)) = (open_folder(dir), std::fs::read_dir(dir)) else { return all };
    let folder = Arc::new(folder);
    let mut files: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let ours = path.file_name()?.to_str()?.ends_with(EXTENSION);
            // Only plain files: opening a device may do something.
            let metadata = std::fs::metadata(&path).ok().filter(|metadata| ours && metadata.is_file())?;
            Some((metadata.modified().ok()?, path))
        })
        .collect();
    files.sort();
    for (_, path) in files.into_iter().rev() {
        // A folder may hold hundreds of complete runs: most are distinguished by their header.
        let Some(mut file) = agreeing(&path, &agrees) else { continue };
        // Opened, and so locked, before it is read: no one adds to it in between.
        match Writer::open(&folder, &path) {
            Ok(writer) => {
                let run = writer.read().ok().filter(|run| run.summary.is_none() && agrees(&run.header));
                if let Some(run) = run {
                    all.found = Some((writer, run));
                    return all;
                }
            }
            Err(NotResumable::Unsafe(why)) if summary(&mut file).is_err() => all.refused.push((path, why)),
            Err(_) => {}
        }
    }
    all
}

/// A file, opened for reading only, whose header agrees.
fn agreeing(path: &Path, agrees: impl Fn(&Header) -> bool) -> Option<Source> {
    let mut source = open(path).ok().filter(Source::is_file)?;
    let header = first_line(&mut BufReader::new(&mut source)).ok()?.header;
    agrees(&header).then_some(source)
}

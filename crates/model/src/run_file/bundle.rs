//! Bundles: tar archives with run files in them, as `assay bundle` makes and `tar czf` too. A run
//! in one has the path `BUNDLE/FILE`, as if the bundle were a folder.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::MemfdFlags;
use tar::Archive;

use super::EXTENSION;
use crate::packed::{head_of, unpacked};

/// A bundle unpacks to no more, and has no more entries.
const MAX_BYTES: u64 = 2 << 30;
const MAX_FILES: usize = 100_000;

/// Where tar archives say that they are.
const MARK: (usize, &[u8]) = (257, b"ustar");

/// Whether a file is an archive, packed or not, by how it begins.
pub fn is_bundle(path: &Path) -> bool {
    // What was read once from a pipe would be gone.
    let head = || -> io::Result<Vec<u8>> {
        let mut plain = unpacked(File::open(path)?, MAX_BYTES)?;
        head_of(&mut plain, MARK.0 + MARK.1.len())
    };
    path.is_file() && head().is_ok_and(|head| head.len() > MARK.0 && head[MARK.0..] == *MARK.1)
}

/// The run files in a bundle, by name, as paths that can be opened.
pub fn runs_in(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    each(path, |name, _| {
        let file = name.file_name().unwrap_or_default().to_string_lossy();
        if file.trim_end_matches(".gz").ends_with(EXTENSION) {
            runs.push(path.join(&*file));
        }
        Ok(true)
    })?;
    runs.sort();
    let all = runs.len();
    runs.dedup();
    ensure!(
        all == runs.len(),
        "{} has two run files of one name: unpack it and give the folder",
        path.display()
    );
    ensure!(!runs.is_empty(), "{} is an archive without a run file (…{EXTENSION})", path.display());
    Ok(runs)
}

/// Every file of a bundle with its bytes.
pub fn files_in(path: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    each(path, |name, content| {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        files.push((name.to_path_buf(), bytes));
        Ok(true)
    })?;
    Ok(files)
}

/// The bundle and the file in it that a path means; `None`: it means what it says.
pub(super) fn inside(path: &Path) -> Option<(&Path, &Path)> {
    let (bundle, file) = (path.parent()?, path.file_name()?);
    (bundle.is_file() && is_bundle(bundle)).then_some((bundle, Path::new(file)))
}

/// One file of a bundle, in memory.
pub(super) fn extract(bundle: &Path, file: &Path) -> anyhow::Result<File> {
    let mut found = None;
    each(bundle, |name, content| {
        if name.file_name() != Some(file.as_os_str()) {
            return Ok(true);
        }
        let mut own = File::from(rustix::fs::memfd_create("assay-run", MemfdFlags::CLOEXEC)?);
        io::copy(content, &mut own)?;
        own.rewind()?;
        found = Some(own);
        Ok(false)
    })?;
    found.with_context(|| format!("{} has no file {}", bundle.display(), file.display()))
}

/// Looks at the files of a bundle until `look` says that it has seen enough.
fn each(path: &Path, mut look: impl FnMut(&Path, &mut dyn Read) -> io::Result<bool>) -> anyhow::Result<()> {
    let cannot = || format!("cannot read the bundle {}", path.display());
    let mut archive = Archive::new(unpacked(super::open(path)?, MAX_BYTES).with_context(cannot)?);
    for (number, entry) in archive.entries().with_context(cannot)?.enumerate() {
        let mut entry = entry.with_context(cannot)?;
        if number >= MAX_FILES {
            bail!("{} has more than {MAX_FILES} files", path.display());
        }
        // Links lead anywhere, and nothing else has content.
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path().with_context(cannot)?.into_owned();
        if !look(&name, &mut entry).with_context(cannot)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
        let path = folder.join("case.tar.gz");
        let packed = flate2::write::GzEncoder::new(File::create(&path).expect("a file"), Default::default());
        let mut tar = tar::Builder::new(packed);
        for (name, text) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, text.as_bytes()).expect("added");
        }
        tar.into_inner().and_then(|packed| packed.finish()).expect("written");
        path
    }

    #[test]
    fn runs_of_an_archive_are_opened_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = archive(
            folder.path(),
            &[("x/a.assay.jsonl", "one"), ("x/M.json", "{}"), ("b.assay.jsonl.gz", "two")],
        );
        assert!(is_bundle(&path) && !is_bundle(folder.path()));
        let runs = runs_in(&path).expect("runs");
        assert_eq!(runs, [path.join("a.assay.jsonl"), path.join("b.assay.jsonl.gz")]);
        let mut text = String::new();
        super::super::open(&runs[0]).expect("opens").read_to_string(&mut text).expect("text");
        assert_eq!(text, "one");
        let why = super::super::open(&path.join("c")).err().expect("none").to_string();
        assert!(why.contains("has no file c"), "{why}");
        let twice = archive(folder.path(), &[("x/a.assay.jsonl", "one"), ("y/a.assay.jsonl", "two")]);
        assert!(runs_in(&twice).expect_err("twice").to_string().contains("two run files of one name"));
    }
}

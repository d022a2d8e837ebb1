//! Searches a bundle for names of hosts and owners.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;

use super::pack::about;
use super::{FOLDER, MANIFEST, Manifest, Mapping, Packed, map_of, show, vocabulary};
use model::packed::unpacked;
use model::run_file;
use redact::{Left, Names, Search, Searched, Vocabulary};

/// No file of a bundle unpacks to more.
const LARGEST: u64 = 2 << 30;

/// `--verify`.
pub fn bundle(path: &Path, map: Option<&Path>) -> anyhow::Result<ExitCode> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    ensure!(run_file::is_bundle(path), "{} is not a bundle: `assay bundle` makes one", path.display());
    let beside = map_of(path);
    let map = map.or_else(|| beside.is_file().then_some(beside.as_path()));
    let names = match map {
        Some(map) => {
            let advice = || format!("{} is not a mapping of `assay bundle`", map.display());
            let mapping: Mapping = serde_json::from_reader(run_file::open(map)?).with_context(advice)?;
            Names::of_mapping(mapping.mapping)
        }
        None => Names::default(),
    };
    let mut held: Vec<(String, Vec<u8>)> = run_file::files_in(path)?
        .into_iter()
        .map(|(name, bytes)| (name.display().to_string(), bytes))
        .collect();
    let manifest =
        manifest_of(&held).with_context(|| format!("cannot read the bundle {}", path.display()))?;
    if let (Some(map), Some(manifest)) = (map, &manifest) {
        ensure!(
            names.counts() == manifest.replaced,
            "{} is the mapping of another bundle, not of {}: name the right one by --map",
            map.display(),
            path.display()
        );
    }
    let changed = manifest.map(|manifest| changes(&held, &manifest));
    let frame = frame_of(path).with_context(|| format!("cannot read the bundle {}", path.display()))?;
    held.push((FRAME.to_string(), frame));
    let (left, searched) = files(&held, &names, &vocabulary())?;
    show::left(&left);
    show::searched(path, map, &searched, changed.as_deref(), left.len())?;
    Ok(ExitCode::from(u8::from(!left.is_empty())))
}

/// The parts of an archive outside its files.
const FRAME: &str = "headers of the archive";

/// Names of files, links, users and groups, comments, and bytes after the archive's end.
fn frame_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut frame = Vec::new();
    let mut head = Vec::new();
    File::open(path)?.take(GZIP_HEAD).read_to_end(&mut head)?;
    frame.extend(gzip_head(&head));
    let mut archive = tar::Archive::new(unpacked(File::open(path)?, LARGEST)?);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        frame.extend_from_slice(entry.header().as_bytes());
        if !entry.header().entry_type().is_file() {
            entry.read_to_end(&mut frame)?;
        }
    }
    archive.into_inner().read_to_end(&mut frame)?;
    Ok(frame)
}

/// Longest name or comment of gzip that is read.
const GZIP_HEAD: u64 = 64 << 10;

/// The name and the comment in a gzip header.
fn gzip_head(bytes: &[u8]) -> Vec<u8> {
    let packed = GzDecoder::new(bytes);
    let parts = packed.header().map(|head| [head.filename(), head.comment(), head.extra()]);
    parts.into_iter().flatten().flatten().flat_map(|part| [b"\n", part].concat()).collect()
}

fn manifest_of(held: &[(String, Vec<u8>)]) -> anyhow::Result<Option<Manifest>> {
    let own = format!("{FOLDER}/{MANIFEST}");
    let found = held.iter().find(|(name, _)| *name == own);
    let read = |(_, bytes): &(String, Vec<u8>)| serde_json::from_slice(bytes);
    found.map(read).transpose().with_context(|| format!("its {MANIFEST} is not from `assay bundle`"))
}

/// Files that are not as the manifest has them.
fn changes(held: &[(String, Vec<u8>)], manifest: &Manifest) -> Vec<String> {
    let own = format!("{FOLDER}/{MANIFEST}");
    let files = held.iter().filter(|(name, _)| *name != own);
    let now: Vec<Packed> = files.map(|(name, bytes)| about(name, bytes)).collect();
    let mut changed = Vec::new();
    for one in &now {
        match manifest.files.iter().find(|packed| packed.name == one.name) {
            None => changed.push(format!("{} was added", one.name)),
            Some(packed) if packed.sha256 != one.sha256 => changed.push(format!("{} was changed", one.name)),
            Some(_) => {}
        }
    }
    let gone = manifest.files.iter().filter(|packed| now.iter().all(|one| one.name != packed.name));
    changed.extend(gone.map(|packed| format!("{} is missing", packed.name)));
    changed
}

/// Names left in files, which are unpacked if needed, and what was searched for.
pub fn files(
    files: &[(String, Vec<u8>)],
    names: &Names,
    vocabulary: &Vocabulary,
) -> anyhow::Result<(Vec<Left>, Searched)> {
    let mut search = Search::new(names, &own_names(), vocabulary)?;
    let mut left = Vec::new();
    for (name, bytes) in files {
        let mut plain = Vec::new();
        unpacked(bytes.as_slice(), LARGEST)?
            .read_to_end(&mut plain)
            .with_context(|| format!("cannot unpack {name}"))?;
        plain.extend(gzip_head(bytes));
        left.extend(search.of(name, &plain));
    }
    Ok((left, search.searched))
}

/// What this host and its user are called.
fn own_names() -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let user = std::env::var("USER").ok();
    [Some(host), user].into_iter().flatten().filter(|name| !name.is_empty()).collect()
}

//! Searches a bundle for what may name somebody.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use super::{Mapping, map_of, show, vocabulary};
use model::packed::unpacked;
use model::run_file;
use redact::{Left, Names, Search, Searched, Vocabulary};

/// No file of a bundle unpacks to more.
const LARGEST: u64 = 2 << 30;

/// `--verify`.
pub fn bundle(path: &Path, map: Option<&Path>) -> anyhow::Result<ExitCode> {
    ensure!(run_file::is_bundle(path), "{} is no bundle: `assay bundle` makes one", path.display());
    let beside = map_of(path);
    let map = map.or_else(|| beside.is_file().then_some(beside.as_path()));
    let names = match map {
        Some(map) => {
            let advice = || format!("{} is no mapping that `assay bundle` wrote", map.display());
            let mapping: Mapping = serde_json::from_reader(run_file::open(map)?).with_context(advice)?;
            Names::of_mapping(mapping.mapping)
        }
        None => Names::default(),
    };
    let held: Vec<(String, Vec<u8>)> = run_file::files_in(path)?
        .into_iter()
        .map(|(name, bytes)| (name.display().to_string(), bytes))
        .collect();
    let (left, searched) = files(&held, &names, &vocabulary())?;
    show::left(&left);
    show::searched(path, map, &searched, left.len())?;
    Ok(ExitCode::from(u8::from(!left.is_empty())))
}

/// What is left in files, packed ones unpacked, and what was looked for.
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

//! A bundle's files and their archive.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::{FOLDER, MANIFEST, Manifest, Packed, STAYS};
use model::run_file::{self, EXTENSION};
use model::{Record, Run, SCHEMA};
use redact::Redactor;
use report::{html, sections};

/// What leaves.
pub struct Bundle {
    pub files: Vec<(String, Vec<u8>)>,
    pub archive: Vec<u8>,
    pub manifest: Manifest,
}

/// Redacts the runs, renders their pages from the result, and packs both.
pub fn pack(redactor: &mut Redactor, runs: &[Run]) -> anyhow::Result<Bundle> {
    let (mut files, mut taken) = (Vec::new(), BTreeSet::new());
    for run in runs {
        let records = redactor.run(run)?;
        let Some(Record::Header(header)) = records.first() else { bail!("a run without its header") };
        let stem = fresh(run_file::stem(&header.host, &header.started), &mut taken);
        let mut text = Vec::new();
        for record in &records {
            text.extend(run_file::sealed(record).context("a redacted line")?);
        }
        // The page is of the run that leaves, as its receiver would render it.
        let left = run_file::parse(text.as_slice()).context("a redacted run cannot be read back")?;
        let mut page = Vec::new();
        html::write(&sections::compose(&diagnose::diagnose(left))?, &mut page)?;
        files.push((format!("{FOLDER}/{stem}{EXTENSION}.gz"), packed(&text)?));
        files.push((format!("{FOLDER}/{stem}.report.html"), page));
    }
    let manifest = Manifest {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        reading: reading(runs.len()),
        files: files.iter().map(|(name, bytes)| about(name, bytes)).collect(),
        replaced: redactor.names().counts(),
        stays: STAYS.to_string(),
        dropped_entries: redactor.dropped_entries,
        dropped_lines: redactor.dropped_lines,
    };
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    files.insert(0, (format!("{FOLDER}/{MANIFEST}"), text.into_bytes()));
    Ok(Bundle { archive: archive(&files)?, files, manifest })
}

fn reading(runs: usize) -> Vec<String> {
    let one = match runs {
        1 => "assay diagnose BUNDLE.tar.gz: the findings, with the rules of your version",
        _ => {
            "assay diagnose BUNDLE.tar.gz/NAME.assay.jsonl.gz: the findings of one run, with the rules of your version"
        }
    };
    let all = [
        "the pages (*.report.html): in any browser, without Assay",
        one,
        "assay compare, check, peers and summary read the bundle like a folder of runs",
        "host-1, path-2 and the like are replacements; only the sender has the mapping",
    ];
    all.map(str::to_string).to_vec()
}

pub fn about(name: &str, bytes: &[u8]) -> Packed {
    let sum = Sha256::digest(bytes);
    let name = name.strip_prefix(&format!("{FOLDER}/")).unwrap_or(name);
    Packed {
        name: name.to_string(),
        bytes: bytes.len() as u64,
        sha256: sum.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A name that no file of the bundle has yet.
fn fresh(stem: String, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{stem}-{number}"));
    let name = std::iter::once(stem.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = name.unwrap_or(stem);
    taken.insert(name.clone());
    name
}

fn packed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

/// An archive without owners and times: the same runs give the same bytes.
fn archive(files: &[(String, Vec<u8>)]) -> anyhow::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes.as_slice())
            .with_context(|| format!("cannot pack {name}"))?;
    }
    Ok(tar.into_inner()?.finish()?)
}

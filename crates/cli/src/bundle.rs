//! `assay bundle`: runs without names of hosts and owners, with their pages, and a search that
//! proves it.

mod pack;
mod show;
mod verify;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::output::eprint_line;
use super::{files, naming, results};
use model::SCHEMA;
use model::run_file::{self, Limits};
use redact::{Kind, Redactor, Vocabulary};

/// Pack runs without the names of hosts and owners
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay bundle RUN --redact --out case.tar.gz      a run and its page, for a vendor or a forum
  assay bundle runs/ --redact --out case.tar.gz    all runs below a folder
  assay bundle --verify case.tar.gz                search it for the names in the mapping
  assay diagnose case.tar.gz                       read it, as compare, check, peers and others do
Replaced, alike in all runs of a bundle: hosts, labels, UUIDs, addresses, paths, control groups, processes, guarded \
commands and every word that Assay does not know.
Kept: processor, board, BIOS, sizes, kernel release, kinds of devices and filesystems, settings and times.
The mapping is written next to the bundle (case.map.json). Do not send it. More: `assay explain redaction`.
Exit codes: 0 made, or nothing is left; 1 something is left, and no bundle was made; 2 usage; 3 error")]
pub struct Args {
    /// Run files (.assay.jsonl, .gz), folders of them, bundles, or @NAME
    #[arg(value_name = "RUN", required_unless_present = "verify", value_parser = naming::results())]
    runs: Vec<PathBuf>,
    /// Replace names of hosts, owners and other work
    #[arg(long, required_unless_present = "verify")]
    redact: bool,
    /// File for the bundle
    #[arg(long, short, value_name = "FILE", required_unless_present = "verify")]
    out: Option<PathBuf>,
    /// Search a bundle for names that are left
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["runs", "redact", "out"])]
    verify: Option<PathBuf>,
    /// Mapping for --verify [default: BUNDLE.map.json next to it]
    #[arg(long, value_name = "FILE", requires = "verify")]
    map: Option<PathBuf>,
}

/// Words of the program's own texts (see `build.rs`).
const JUDGING: &str = include_str!(concat!(env!("OUT_DIR"), "/judging.words"));
const SHOWING: &str = include_str!(concat!(env!("OUT_DIR"), "/showing.words"));

/// The folder in a bundle; it contains no name of a host.
const FOLDER: &str = "assay-bundle";
const MANIFEST: &str = "MANIFEST.json";

/// Content of a bundle, in it as MANIFEST.json.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    pub schema: u32,
    /// Version of Assay that made the bundle.
    pub assay: String,
    /// What the receiver can do with it.
    pub reading: Vec<String>,
    /// All other files of the bundle.
    pub files: Vec<Packed>,
    /// How many originals of each kind were replaced, the same one alike in all files.
    pub replaced: BTreeMap<Kind, usize>,
    /// What was kept.
    pub stays: String,
    /// Files of /proc, /sys and /etc that were left out of the runs.
    pub dropped_entries: usize,
    /// Lines of the runs that could not be read, and were left out.
    pub dropped_lines: usize,
}

/// A file of a bundle.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Packed {
    pub name: String,
    pub bytes: u64,
    /// Of its bytes as they are stored, in hexadecimal digits.
    pub sha256: String,
}

const STAYS: &str =
    "processor, board, BIOS, sizes, kernel release, kinds of devices and filesystems, settings, times";

/// Replacements and originals, for the owner only.
#[derive(Serialize, Deserialize)]
pub struct Mapping {
    pub schema: u32,
    pub assay: String,
    /// Replacement to original.
    pub mapping: BTreeMap<String, String>,
}

fn vocabulary() -> Vocabulary {
    Vocabulary::new(JUDGING, SHOWING)
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(bundle) = &args.verify {
        return verify::bundle(bundle, args.map.as_deref());
    }
    let out = args.out.as_deref().context("--out names no file")?;
    let named = results::files(&args.runs)?;
    ensure!(!named.is_empty(), "no run file was found in {}", run_file::EXTENSION);
    let runs = named.iter().map(|path| whole(path)).collect::<anyhow::Result<Vec<_>>>()?;

    for thinned in runs.iter().filter_map(|run| run.thinned.as_ref()) {
        eprint_line(&format!("assay: {}", thinned.words()));
    }

    let vocabulary = vocabulary();
    let mut redactor = Redactor::new(&vocabulary, &runs)?;
    let packed = pack::pack(&mut redactor, &runs)?;
    let (left, searched) = verify::files(&packed.files, redactor.names(), &vocabulary)?;
    if !left.is_empty() {
        show::left(&left);
        eprint_line(&format!(
            "assay: {} was not made: it would contain the names listed above. Please report this bug",
            out.display()
        ));
        return Ok(ExitCode::from(1));
    }
    let map = map_of(out);
    let mapping = Mapping {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        mapping: redactor
            .names()
            .mapping()
            .into_iter()
            .map(|(replacement, original)| (replacement.to_string(), original.to_string()))
            .collect(),
    };
    // First the mapping: a bundle without one could not be read by its owner.
    files::write_private(&map, &(serde_json::to_string_pretty(&mapping)? + "\n"))?;
    files::write_named(out, |file| Ok(file.write_all(&packed.archive)?))?;
    show::made(out, &map, &packed, &searched)?;
    Ok(ExitCode::SUCCESS)
}

/// A run with all its visits, however many there are.
fn whole(path: &Path) -> anyhow::Result<model::Run> {
    let limits = Limits { visits_each: usize::MAX, ..Limits::default() };
    let read = || {
        let text = run_file::unpacked(run_file::open(path)?, &limits).context("cannot read it")?;
        run_file::parse_within(text, &limits)
    };
    read().with_context(|| format!("{} is not a usable run file", path.display()))
}

/// The mapping of a bundle: `case.map.json` next to `case.tar.gz`.
fn map_of(bundle: &Path) -> PathBuf {
    let name = bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem =
        [".tar.gz", ".tgz", ".tar"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    bundle.with_file_name(format!("{stem}.map.json"))
}

//! Reports of a run lie beside its run file and are named after it: `vm-TIME.report.html` of
//! `vm-TIME.assay.jsonl`. The old names, `report.html` and `report.json`, lead to the newest, so
//! that the next run in the folder takes nothing away.
//!
//! A `report.html` of an older version gets the name of its run, or `report-1.html` if that is
//! unknown or taken. Other files of this name stay, with a message.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::files;
use super::output::eprint_line;
use model::run_file::{EXTENSION, stem};
use report::html;
use sys::atomic_file::{LinkOutcome, put_link, rename};

/// Writes a report of a run into a folder and returns its path. The general name links to it from
/// then on.
pub fn write(
    folder: &Path,
    run_file: &Path,
    ending: &str,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let own = folder.join(name(run_file, ending));
    files::write_own(&own, write)?;
    let general = general(folder, ending);
    lead(&general, &own, put_link).with_context(|| {
        format!(
            "cannot write {}; the run file is safe, and its report is {}: `assay report --out` can write it \
              elsewhere",
            general.display(),
            own.display()
        )
    })?;
    Ok(own)
}

/// The name that leads to the newest report.
pub fn general(folder: &Path, ending: &str) -> PathBuf {
    folder.join(format!("report.{ending}"))
}

/// What a report of this run file is called.
fn name(run_file: &Path, ending: &str) -> String {
    let file = run_file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = file.strip_suffix(".gz").unwrap_or(&file);
    let plain = || Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = file.strip_suffix(EXTENSION).map(str::to_string).or_else(plain).unwrap_or_default();
    format!("{}.report.{ending}", if stem.is_empty() { "run" } else { &stem })
}

/// What has the general name.
enum ExistingFile {
    Nothing,
    /// A link to a report of the folder, an empty file, or a copy of a report that is there.
    Ours,
    /// A report that has no other name.
    Report,
}

/// Makes the general name lead to a report.
fn lead(
    general: &Path,
    own: &Path,
    link: impl Fn(&Path, &OsStr, bool) -> anyhow::Result<LinkOutcome>,
) -> anyhow::Result<()> {
    let target = own.file_name().context("a report has a name")?;
    loop {
        let replace = match found(general)? {
            ExistingFile::Nothing => false,
            ExistingFile::Ours => true,
            ExistingFile::Report => {
                keep(general)?;
                continue;
            }
        };
        match link(general, target, replace)? {
            LinkOutcome::Created => return Ok(()),
            LinkOutcome::NameTaken => {}
            LinkOutcome::Unsupported => {
                return files::copy(own, general, &|| Ok(!matches!(found(general)?, ExistingFile::Nothing)));
            }
        }
    }
}

fn found(general: &Path) -> anyhow::Result<ExistingFile> {
    let Ok(about) = general.symlink_metadata() else { return Ok(ExistingFile::Nothing) };
    if about.is_symlink() {
        let target = general.read_link()?;
        let is_report = target.components().count() == 1 && is_named(&target, general);
        if is_report {
            return Ok(ExistingFile::Ours);
        }
    } else if files::is_own(general)? {
        let copies = |one: &PathBuf| is_named(one, general) && same(one, general);
        let is_copy = about.len() == 0 || beside(general).iter().any(copies);
        return Ok(if is_copy { ExistingFile::Ours } else { ExistingFile::Report });
    }
    bail!("a file of this name exists that Assay did not write or that was edited since; it stays as it is")
}

fn beside(general: &Path) -> Vec<PathBuf> {
    let folder = general.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether a file is a report by its name, of the form that the general one has.
fn is_named(path: &Path, general: &Path) -> bool {
    let of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    of(path).ends_with(&format!(".{}", of(general)))
}

/// Whether two files are equal; unreadable ones are not.
fn same(one: &Path, other: &Path) -> bool {
    let length =
        |path: &Path| path.symlink_metadata().ok().filter(|found| found.is_file()).map(|own| own.len());
    length(one).is_some()
        && length(one) == length(other)
        && std::fs::read(one).ok().zip(std::fs::read(other).ok()).is_some_and(|(one, other)| one == other)
}

/// Gives a report that has the general name the name of its run, or a number.
fn keep(general: &Path) -> anyhow::Result<()> {
    const MAX_NAMES: usize = 10_000;
    let ending = general.extension().unwrap_or_default().to_string_lossy();
    let named = run_of(general).map(|stem| format!("{stem}.report.{ending}"));
    let numbered = (1..MAX_NAMES).map(|number| format!("report-{number}.{ending}"));
    for name in named.into_iter().chain(numbered) {
        if rename(general, OsStr::new(&name))? {
            eprint_line(&format!(
                "  {} of an earlier run is {name} now",
                general.file_name().unwrap_or_default().to_string_lossy()
            ));
            return Ok(());
        }
    }
    bail!("it is a report of an earlier run, and no other name is free for it")
}

/// The run that a report is of.
#[derive(Deserialize)]
struct Of {
    host: String,
    started: String,
}

/// The name of the run file of a report, if the report has it.
fn run_of(report: &Path) -> Option<String> {
    let text = std::fs::read_to_string(report).ok()?;
    let json = match report.extension()?.to_str()? {
        "html" => html::embedded_json(&text)?,
        "json" => text,
        _ => return None,
    };
    let of: Of = serde_json::from_str(&json).ok()?;
    Some(stem(&of.host, &of.started))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const REPORT: &str =
        "{\"schema\":1,\"assay\":\"0.1.0\",\"host\":\"db 1\",\"started\":\"2026-11-25T08:25:13Z\"}";

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn written(folder: &Path, run: &str, text: &str) -> anyhow::Result<PathBuf> {
        write(folder, &folder.join(run), "json", |out| Ok(out.write_all(text.as_bytes())?))
    }

    #[test]
    fn each_run_keeps_its_report_and_the_general_name_leads_to_the_newest() {
        let folder = tempfile::tempdir().expect("a folder");
        let newest = || fs::read_to_string(folder.path().join("report.json")).expect("a report");
        for (run, text) in [("a.assay.jsonl", REPORT), ("b.assay.jsonl.gz", "{}"), ("a.assay.jsonl", REPORT)]
        {
            written(folder.path(), run, text).expect("written");
            assert_eq!(newest(), text);
        }
        assert_eq!(names(folder.path()), ["a.report.json", "b.report.json", "report.json"]);
        assert!(folder.path().join("report.json").is_symlink());
    }

    #[test]
    fn reports_of_earlier_versions_are_kept_under_the_name_of_their_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let untold = REPORT.replace("started", "begun");
        let new = REPORT.replace("db 1", "new");
        for text in [REPORT, &untold, &format!("{REPORT}\n")] {
            fs::remove_file(path("report.json")).unwrap_or_default();
            fs::write(path("report.json"), text).expect("written");
            written(folder.path(), "new.assay.jsonl", &new).expect("written");
        }
        let found = names(folder.path());
        assert_eq!(
            found,
            [
                "db_1-2026-11-25T082513Z.report.json",
                "new.report.json",
                "report-1.json",
                "report-2.json",
                "report.json"
            ]
        );
        let text = |name: &str| fs::read_to_string(path(name)).expect("a file");
        assert_eq!(text(&found[0]), REPORT);
        assert_eq!([text("report-1.json"), text("report-2.json")], [untold, format!("{REPORT}\n")]);
        // An empty file, or that of another program.
        fs::remove_file(path("report.json")).expect("removed");
        fs::write(path("report.json"), "").expect("written");
        written(folder.path(), "new.assay.jsonl", &new).expect("written");
        for place in ["mine", "link"] {
            fs::remove_file(path("report.json")).expect("removed");
            match place {
                "mine" => fs::write(path("report.json"), "my notes").expect("written"),
                _ => std::os::unix::fs::symlink("elsewhere", path("report.json")).expect("a link"),
            }
            let error =
                format!("{:#}", written(folder.path(), "new.assay.jsonl", &new).expect_err("it stays"));
            assert!(error.contains("that Assay did not write") && error.contains("report.json"), "{error}");
        }
    }

    #[test]
    fn where_links_are_impossible_the_general_name_is_a_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for (run, text) in [("a", REPORT.to_string()), ("b", REPORT.replace("db 1", "db 2"))] {
            let own = path(&format!("{run}.report.json"));
            fs::write(&own, &text).expect("written");
            lead(&path("report.json"), &own, |_, _, _| Ok(LinkOutcome::Unsupported)).expect("copied");
            assert_eq!(fs::read_to_string(path("report.json")).expect("a file"), text);
            assert!(!path("report.json").is_symlink());
        }
        assert_eq!(names(folder.path()), ["a.report.json", "b.report.json", "report.json"]);
    }
}

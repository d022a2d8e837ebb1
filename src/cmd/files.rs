//! Files that verbs write for later, and what they never take the place of: measurements, what was
//! read, and, under a name that nobody chose, what Assay did not write.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use flate2::read::MultiGzDecoder;
use rustix::fs::{Mode, OFlags, major, minor};

use super::leftovers;
use crate::run_file::{self, EXTENSION, GZIP};
use crate::sys::fresh::{Fresh, handle};

/// Writes what a run becomes, under a name that nobody chose: only nothing, or what Assay wrote,
/// gives way. Whole or not at all, readable for whom the user's umask lets: a full disk or a crash
/// never leaves half a file, and nobody reads one.
pub fn write_own(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let advice = || {
        format!(
            "cannot write {}; the run file is safe: `assay report` on it makes the page again, once there is room or \
             with --out and another folder",
            path.display()
        )
    };
    let ours = match replaceable(path).with_context(advice)? {
        Some(head) => is_a_report(&String::from_utf8_lossy(&head)),
        // Nothing, or what cannot be known: a link, a pipe, a folder, a file that may not be read.
        None => path.symlink_metadata().is_err(),
    };
    if !ours {
        let why = "what has this name was not written by assay, and stays as it is";
        return Err(anyhow!(why)).with_context(advice);
    }
    put(path, &advice, write)
}

/// Writes into the place that the user named: through a pipe or a terminal, else a file, as
/// [`write_own`] makes it.
pub fn write_named(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let advice = || format!("cannot write {}", path.display());
    if let Some(taker) = taker(path).with_context(advice)? {
        return fill(taker, &advice, write);
    }
    replaceable(path).with_context(advice)?;
    put(path, &advice, write)
}

fn put(
    path: &Path,
    advice: &dyn Fn() -> String,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    leftovers::sweep([directory]);
    let fresh = Fresh::beside(path).with_context(advice)?;
    fill(fresh.file().try_clone().map(File::from).with_context(advice)?, advice, write)?;
    fresh.put().with_context(advice)
}

fn fill(
    file: File,
    advice: &dyn Fn() -> String,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut buffered = BufWriter::new(file);
    write(&mut buffered).and_then(|()| Ok(buffered.flush()?)).with_context(advice)
}

/// What takes what is written and keeps nothing of its own: a pipe, a terminal, /dev/null. It is
/// opened by what was looked at and not by its name again, which somebody may have given to another
/// file meanwhile. An error where no file can be.
fn taker(path: &Path) -> anyhow::Result<Option<File>> {
    let held = match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(held) => File::from(held),
        Err(_) => return Ok(None),
    };
    let found = held.metadata()?;
    let kind = found.file_type();
    ensure!(!kind.is_dir(), "it is a folder: name a file in it");
    if kind.is_file() {
        return Ok(None);
    }
    let nothing = [(1, 3), (1, 7)].contains(&(major(found.rdev()), minor(found.rdev())));
    let opened = || File::options().write(true).open(handle(&held));
    match () {
        () if kind.is_fifo() || kind.is_char_device() && nothing => Ok(Some(opened()?)),
        () if kind.is_char_device() => match opened().ok().filter(File::is_terminal) {
            Some(terminal) => Ok(Some(terminal)),
            None => bail!("it is a device, and no file can take its place: name another file"),
        },
        () => bail!("it is a device or a socket, and no file can take its place: name another file"),
    }
}

/// As much of a file as tells what it is.
const HEAD: u64 = 4096;

/// How a file begins that can be replaced; nothing where there is none, or a link, which is
/// replaced itself. An error where it holds measurements, or was read by this process.
fn replaceable(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(_) => return Ok(None),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    (&file).take(HEAD).read_to_end(&mut head)?;
    let mut unpacked = Vec::new();
    if head.starts_with(&GZIP) {
        // Where the head's end cuts a block, what came before it will do.
        let _ = MultiGzDecoder::new(&head[..]).take(HEAD).read_to_end(&mut unpacked);
    }
    let named = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase().contains(EXTENSION);
    ensure!(
        !named && ![&head, &unpacked].iter().any(|begin| begin.starts_with(br#"{"header":"#)),
        "it is a run file: a report never takes the place of measurements; name another file"
    );
    ensure!(!run_file::was_read(&found), "it is what was read: name another file");
    Ok(Some(head))
}

/// Whether a file begins as one of the reports of a run does, of this version or of an older one.
fn is_a_report(head: &str) -> bool {
    let dense: String = head.chars().filter(|letter| !letter.is_whitespace()).take(40).collect();
    let schema = dense
        .strip_prefix("{\"schema\":")
        .unwrap_or_default()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    head.trim().is_empty()
        || head.contains("<meta name=\"generator\" content=\"assay ")
        || schema.starts_with(",\"assay\":\"")
        || head.starts_with("host,test,placement,param,metric,")
        || head.contains("(filled by Assay ")
        // The line of when and by what a run was measured, in Markdown.
        || head.contains("Z, Assay ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_told_from_what_people_write() {
        let page = "<!DOCTYPE html>\n<meta name=\"generator\" content=\"assay 0.1.0\">";
        let pretty = "{\n  \"schema\": 1,\n  \"assay\": \"0.1.0\"";
        let markdown = "# vm\n\nquick profile, 1 visits in 1 s, 2026-11-25T08:25:13Z, Assay 0.1.0";
        let csv = "host,test,placement,param,metric,process,window,value,unit,verdict\nvm,";
        for ours in [page, pretty, "{\"schema\":1,\"assay\":\"0.1.0\"", markdown, csv, ""] {
            assert!(is_a_report(ours), "{ours}");
        }
        let foreign =
            ["My notes on Assay", "<!DOCTYPE html>", "{\"schema\":1}", "host,test\n", "{\"assay\":\"0\"}"];
        for foreign in foreign {
            assert!(!is_a_report(foreign), "{foreign}");
        }
    }
}

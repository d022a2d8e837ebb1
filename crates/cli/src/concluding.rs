//! The end of a measurement: results are kept or saved elsewhere, judged, shown and reported.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use super::check::{self, LoadedSpec};
use super::measure_args::MeasureArgs;
use super::measuring::Prepared;
use super::output::{self, eprint_line};
use super::reports;
use super::screen::{self, Page};
use diagnose::reference::References;
use diagnose::{self, Diagnosis};
use model::Record;
use model::run_file::Writer;
use report::block::Report;
use report::html;
use session::measure::Ended;

/// Checks the run file between visits: it may have been removed, moved, cut or changed.
pub struct RunFileMonitor<'a> {
    args: &'a MeasureArgs,
    /// Whether a failure to save was reported already.
    warned: Cell<bool>,
}

impl RunFileMonitor<'_> {
    pub fn of(args: &MeasureArgs) -> RunFileMonitor<'_> {
        RunFileMonitor { args, warned: Cell::new(false) }
    }

    /// A message, if there is one.
    pub fn look(&self, writer: &mut Writer) -> Option<String> {
        let why = writer.lost()?;
        match save(self.args, writer, &why) {
            Ok(saved) => Some(format!("{saved}; measuring continues there")),
            Err(_) if self.warned.replace(true) => None,
            Err(error) => Some(format!("{error:#}: measuring continues, and saving is tried again later")),
        }
    }
}

/// Saves a run file that was moved or changed during the run to a new place, and prints which;
/// whether that was necessary.
pub fn keep(args: &MeasureArgs, writer: &mut Writer) -> anyhow::Result<bool> {
    let lost = writer.lost_or_changed();
    if let Some(why) = &lost {
        eprint_line(&format!("  {}", save(args, writer, why)?));
    }
    Ok(lost.is_some())
}

/// In --out, next to it, in the current folder or in the temporary one.
fn save(args: &MeasureArgs, writer: &mut Writer, why: &str) -> anyhow::Result<String> {
    let above = args.out().parent().unwrap_or(Path::new("/")).to_path_buf();
    let others = [above, PathBuf::from("."), std::env::temp_dir()];
    match writer.save_elsewhere(&args.out(), &others) {
        Ok(from) => {
            Ok(format!("{} {why}: the results are saved as {}", from.display(), writer.path().display()))
        }
        Err(places) => {
            bail!("{} {why}, and no other place could be written ({places})", writer.path().display())
        }
    }
}

/// The exit code of a study and its run; `None` if nothing was measured.
pub struct Finished {
    pub code: ExitCode,
    pub diagnosis: Option<Diagnosis>,
}

/// Reads the run back as everybody else would, judges it, closes it with its summary and reports.
pub fn conclude(
    args: &MeasureArgs,
    prepared: &Prepared,
    writer: &mut Writer,
    ended: Ended,
) -> anyhow::Result<Finished> {
    let (run, mut closed) = match (keep(args, writer), writer.read()) {
        (kept, Ok(run)) => (run, kept.map(|_| ())),
        (kept, Err(error)) => return Err(kept.err().unwrap_or(error)),
    };
    let mut diagnosis = diagnose::diagnose(run);
    let stopped = ended == Ended::Interrupted;
    if !stopped {
        let summary = diagnosis.summary();
        closed = closed.and_then(|()| writer.append(&Record::Summary(Box::new(summary.clone()))));
        closed = closed.and_then(|()| keep(args, writer).map(|_| ()));
        writer.sync();
        // From here on the run is what its file says: complete.
        diagnosis.run.summary = closed.is_ok().then_some(summary);
    }
    let page = reports::general(&output::beside(writer.path(), &None), "html");
    let page = if args.no_report {
        Page::NoneOf(writer.path())
    } else {
        Page::At { page: &page, run: Some(writer.path()) }
    };
    // A reference that went meanwhile costs no result.
    let references = args.screen.reference.references(&diagnosis).unwrap_or_else(|error| {
        eprint_line(&format!("  {error:#}"));
        References::published()
    });
    // Results are shown before reports are written, since the disk may be full. A pager may block
    // here for hours, and the folder may go meanwhile.
    let shown = screen::show(&diagnosis, &references, &args.screen, args.json, !args.no_report, &page);
    // The spec is checked, too.
    let loaded = prepared.accept.as_ref().filter(|_| !stopped);
    let reference = &args.screen.reference;
    let judge = |loaded: &LoadedSpec| check::accept(loaded, &diagnosis, reference, writer.path(), args.json);
    let verdict = loaded.map(judge).transpose();
    closed.and_then(|()| keep(args, writer))?;
    let (report, verdict) = (shown?, verdict?);
    let exit = match (verdict, stopped) {
        (Some(verdict), _) => (verdict.exit_code(), verdict.words()),
        (None, true) => (130, "interrupted"),
        (None, false) => output::exit(&diagnosis, args.fail_on),
    };
    let (folder, written) = loop {
        let folder = output::beside(writer.path(), &None);
        let reports =
            if args.no_report { Ok(Vec::new()) } else { write_reports(&report, &folder, writer.path()) };
        let written = reports.map(|reports| tell_saved(writer.path(), &reports, exit));
        // With a run file that had to be saved again the reports are written again, too.
        if !keep(args, writer)? {
            break (folder, written);
        }
    };
    let code = match verdict {
        Some(_) => check::kept(exit.0, &[written]),
        None => written.map(|()| exit.0)?,
    };
    if stopped {
        let next = match prepared.device.as_ref().is_some_and(|device| device.is_written_to()) {
            true => "the same command starts afresh, because a device is written only on request; kept:",
            false if folder != args.out() => "kept (move it back into --out to resume):",
            false => "the same command resumes",
        };
        eprint_line(&format!("interrupted; {next} {}", writer.path().display()));
    }
    Ok(Finished { code: ExitCode::from(code), diagnosis: Some(diagnosis) })
}

/// Writes the page and the JSON of a run into `dir`.
fn write_reports(report: &Report, dir: &Path, run_file: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let data = reports::write(dir, run_file, "json", |file| Ok(file.write_all(report.json.as_bytes())?));
    let page = reports::write(dir, run_file, "html", |file| html::write(report, file))?;
    Ok(vec![page, data?])
}

/// Prints what was saved and the exit code, in words.
fn tell_saved(run_file: &Path, reports: &[PathBuf], (code, words): (u8, &str)) {
    let files = std::iter::once(run_file).chain(reports.iter().map(PathBuf::as_path));
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    eprint_line(&format!("\n  saved {}    exit {code} ({words})", files.join(", ")));
}

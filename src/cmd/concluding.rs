//! How a measurement ends: what was measured is kept where it stands or saved elsewhere, judged, shown and reported.

use std::path::{Path, PathBuf};

use super::measuring::{Finished, MeasureArgs};
use super::output;
use super::progress::Display;
use crate::diagnose;
use crate::measure::Ended;
use crate::model::Record;
use crate::run_file::{Place, Writer};

/// Looks between visits whether the run file still stands where it was opened, and says once if it does not.
pub struct Lookout {
    place: Place,
    told: bool,
}

impl Lookout {
    pub fn of(writer: &Writer) -> Lookout {
        Lookout { place: writer.place().clone(), told: false }
    }

    pub fn look(&mut self, display: &Display) {
        if self.told {
            return;
        }
        if let Some(why) = self.place.lost() {
            self.told = true;
            display.line(&format!(
                "  ! {} is no longer in its place ({why}): measuring goes on, and it will be saved elsewhere at the end",
                self.place.path().display()
            ));
        }
    }
}

/// Saves a run file that lost its place where it can be found, and says where: in --out, beside that, in the current folder or
/// in the system's temporary one.
pub fn keep(args: &MeasureArgs, writer: &mut Writer) -> anyhow::Result<()> {
    let above = args.out.parent().unwrap_or(Path::new("/")).to_path_buf();
    let others = [above, PathBuf::from("."), std::env::temp_dir()];
    if let Some(moved) = writer.save_elsewhere(&args.out, &others)? {
        output::tell(&format!(
            "  {} is no longer in its place ({}): all that was measured is saved as {}",
            moved.from.display(),
            moved.why,
            writer.path().display()
        ));
    }
    Ok(())
}

/// Reads the run back from its file, as everybody else would, judges it, closes it with its summary and reports.
pub fn conclude(args: &MeasureArgs, writer: &mut Writer, ended: Ended) -> anyhow::Result<Finished> {
    let (run, mut closed) = match (keep(args, writer), writer.read()) {
        (kept, Ok(run)) => (run, kept),
        (kept, Err(error)) => return Err(kept.err().unwrap_or(error)),
    };
    let mut diagnosis = diagnose::diagnose(run);
    let stopped = ended == Ended::Interrupted;
    if !stopped {
        let summary = diagnosis.summary();
        closed = closed.and_then(|()| writer.append(&Record::Summary(Box::new(summary.clone()))));
        writer.sync();
        // From here on the run is what its file says: complete.
        diagnosis.run.summary = closed.is_ok().then_some(summary);
    }
    // Shown first: an hour of measuring is not lost to a full disk.
    let report = output::show(&diagnosis, args.json)?;
    closed?;
    let folder = output::beside(writer.path(), &None);
    let code = output::save(&diagnosis, &report, &folder, writer.path(), args.fail_on, stopped)?;
    if stopped {
        let next = match args.device.as_ref().is_some_and(|device| device.is_written_to()) {
            true => "the same command begins afresh, as nothing is written to a device unasked; kept is",
            false if folder != args.out => "kept is (back in --out the same command goes on with it)",
            false => "the same command goes on with",
        };
        output::tell(&format!("interrupted; {next} {}", writer.path().display()));
    }
    Ok(Finished { code, diagnosis: Some(diagnosis) })
}

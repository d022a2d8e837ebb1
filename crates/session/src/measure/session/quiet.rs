//! Waiting for a quiet machine, before the first pass and after loud ones.

use model::run_file::Writer;
use model::{Conditions, Record};

use super::super::gate::{self, Patience};
use super::{Loop, Progress};

impl Loop<'_, '_> {
    pub(super) fn gate(
        &mut self,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<()> {
        if self.session.header.pretend.is_some() {
            return Ok(());
        }
        let (begin, begin_ms) = (self.begin, self.begin_ms);
        let report = gate::wait(
            &mut self.counters,
            self.patience,
            || begin_ms + begin.elapsed().as_secs_f64() * 1e3,
            self.session.interrupted,
            |why, since| progress(Progress::Waiting { why, since }),
        );
        self.neighbours.remember();
        if let Patience::Bounded(left) = self.patience {
            let waited = begin.elapsed().min(left);
            self.patience = match report.disturbed {
                Some(_) => Patience::None,
                None => Patience::Bounded(left - waited.min(left)),
            };
        }
        for line in report.lines {
            writer.append(&Record::TimeLine(line))?;
        }
        writer.append(&Record::Event(report.event))
    }

    /// After a pass in which others were loud, waits at the gate again while there is patience.
    pub(super) fn wait_if_loud(
        &mut self,
        first_of_pass: usize,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<()> {
        let sum = |part: fn(&Conditions) -> Option<f64>| -> Option<f64> {
            let parts: Vec<f64> =
                self.run.visits[first_of_pass..].iter().filter_map(|visit| part(&visit.conditions)).collect();
            (!parts.is_empty()).then(|| parts.iter().sum())
        };
        let whole = Conditions {
            wall_ms: sum(|conditions| Some(conditions.wall_ms)).unwrap_or(0.0),
            cpus: self.run.visits.last().map_or(0, |visit| visit.conditions.cpus),
            busy_ms: sum(|conditions| conditions.busy_ms),
            own_ms: sum(|conditions| conditions.own_ms),
            steal_ms: sum(|conditions| conditions.steal_ms),
            swapped_pages: sum(|conditions| conditions.swapped_pages),
            // Pressure and throttling are not looked at here: our own tasks cause both.
            ..Conditions::default()
        };
        let loud = whole.wall_ms > 0.0 && gate::disturbance(&whole).is_some();
        match loud && self.patience != Patience::None && !(self.session.interrupted)() {
            true => self.gate(writer, progress),
            false => Ok(()),
        }
    }
}

//! Waiting for a quiet host, before the first pass and after disturbed ones.

use std::time::Instant;

use model::run_file::Writer;
use model::{Conditions, Record, Visit};
use sys::clock::Clock;

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
        // The cores of this host say nothing about another one's counters.
        let here = self.session.root == std::path::Path::new("/");
        let header = self.session.header;
        let probe = || gate::CoreProbe::over(&header.allowed_cpus, Clock::from_run(&header.clock));
        let waiting = Instant::now();
        let report = gate::wait(
            &mut self.counters,
            here.then(probe),
            self.patience,
            || begin_ms + begin.elapsed().as_secs_f64() * 1e3,
            self.session.interrupted,
            |why, since| progress(Progress::Waiting { why, since }),
        );
        self.neighbours.remember();
        match self.patience {
            Patience::Bounded(left) => {
                self.patience = match report.disturbed {
                    Some(_) => Patience::None,
                    None => Patience::Bounded(left.saturating_sub(waiting.elapsed())),
                };
            }
            Patience::UntilIdle => self.waited += waiting.elapsed(),
            Patience::None => {}
        }
        for line in report.lines {
            writer.append(&Record::TimeLine(line))?;
        }
        writer.append(&Record::Event(report.event))
    }

    /// After a pass with much other work, waits at the gate again while there is patience.
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
            // Pressure and throttling are ignored here: Assay's own tasks cause both.
            ..Conditions::default()
        };
        let loud =
            whole.wall_ms > 0.0 && gate::disturbance(&whole, &self.looks_since(first_of_pass)).is_some();
        if loud && self.patience != Patience::None && !(self.session.interrupted)() {
            self.gate(writer, progress)
        } else {
            Ok(())
        }
    }

    /// Probes of the core in visits to one CPU, from this visit on.
    fn looks_since(&self, first: usize) -> Vec<f64> {
        let on_one_cpu = |visit: &&Visit| self.plan()[visit.case as usize].case.placement.is_of_one_cpu();
        let samples = self.run.visits[first..].iter().filter(on_one_cpu).flat_map(|visit| &visit.samples);
        samples
            .flat_map(|samples| {
                let looks = samples.beside.fetch_cycles.as_ref();
                (0..samples.len()).filter_map(move |window| looks?.get(window))
            })
            .collect()
    }
}

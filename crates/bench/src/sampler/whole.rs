//! Samples that cannot be cut to a length: whole pieces of work, each timed once.

use super::columns::Columns;
use super::{Point, Sampler, core_clock_ghz};
use model::vocabulary::MetricId;
use model::{Covariates, Params};

/// What a piece of work came to.
pub struct Piece {
    /// In units of the point's work.
    pub work: f64,
    pub ns: f64,
    /// A value for each further metric of these samples.
    pub notes: Vec<f64>,
}

impl Sampler<'_> {
    /// Times `count` pieces of work, a sample each, none of them for warming up; `body` gets the
    /// number of the piece and may do what is not timed before and after. `notes` names further
    /// metrics, whose values the pieces carry.
    pub fn whole_pieces(
        &mut self,
        point: Point,
        notes: &[MetricId],
        count: usize,
        mut body: impl FnMut(usize) -> anyhow::Result<Piece>,
    ) -> anyhow::Result<()> {
        let mut columns = Columns::default();
        let mut noted = Vec::new();
        for piece in 0..count {
            let before = self.gauge();
            let Piece { work, ns, notes } = body(piece)?;
            columns.push(&before, &self.gauge(), work * point.work, ns);
            columns.clock_ghz.push(Some(core_clock_ghz(self.clock)));
            noted.push(notes);
        }
        let samples = columns.samples(point.params.clone(), point.metrics(), 0, None);
        if let Some((metric, factor)) = point.times {
            self.emit(samples.times(metric, factor))?;
        }
        let notes: Vec<_> = notes.iter().map(|metric| (point.params.clone(), *metric)).collect();
        self.emit_notes(&samples, &notes, &noted)?;
        self.emit(samples)
    }

    /// Emits samples that the caller timed itself, none of them for warming up, with what moved in
    /// each.
    pub fn windows_beside(
        &mut self,
        params: Params,
        metric: MetricId,
        (work, ns): (Vec<f64>, Vec<f64>),
        beside: Covariates,
    ) -> anyhow::Result<()> {
        self.emit_windows(params, metric, (work, ns), 0, beside)
    }
}

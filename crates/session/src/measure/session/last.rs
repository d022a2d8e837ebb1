//! Cases that are visited once at the end: the map of the memory that earlier visits used.

use super::Loop;
use crate::measure::Progress;
use model::LAST;
use model::run_file::Writer;

impl Loop<'_, '_> {
    pub(super) fn is_last(&self, case: usize) -> bool {
        self.plan()[case].case.inputs.contains_key(LAST)
    }

    /// Visits the cases that come once and last, whatever the budget. False if the user interrupted
    /// it.
    pub(super) fn last(
        &mut self,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<bool> {
        let due: Vec<usize> =
            self.runnable().filter(|case| self.is_last(*case) && self.is_due(*case, 0)).collect();
        for case in due {
            if (self.session.interrupted)() || !self.visit(case, &[], 0, writer, progress)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

//! The end times of the steps of a piece of work: how fast a copy of a benchmark progresses.

use std::cell::RefCell;
use std::rc::Rc;

use crate::clock::Clock;

/// The steps of a copy's current piece of work. Clones share the record: the work writes it, the
/// caller reads it.
#[derive(Clone, Default)]
pub struct Steps(Rc<RefCell<Record>>);

#[derive(Default)]
struct Record {
    begin_ns: f64,
    ended_ns: Vec<f64>,
}

/// Further steps are not recorded.
const MAX_STEPS: usize = 64;

impl Steps {
    /// To be called at the start of a piece of work.
    pub fn begin(&self) {
        let mut record = self.0.borrow_mut();
        record.ended_ns.clear();
        record.ended_ns.reserve(MAX_STEPS);
        record.begin_ns = Clock::Raw.now();
    }

    /// To be called at the end of each of its equal steps.
    pub fn end_one(&self) {
        let mut record = self.0.borrow_mut();
        if record.ended_ns.len() < MAX_STEPS {
            let now = Clock::Raw.now();
            record.ended_ns.push(now);
        }
    }

    /// Time from the start of the piece to the end of step `index`, ns; `None` beyond the last.
    pub fn ended_ns(&self, index: usize) -> Option<f64> {
        let record = self.0.borrow();
        record.ended_ns.get(index).map(|ended| ended - record.begin_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_starts_a_new_record() {
        let steps = Steps::default();
        let work = steps.clone();
        work.begin();
        (0..MAX_STEPS + 3).for_each(|_| work.end_one());
        let all: Vec<f64> = (0..).map_while(|index| steps.ended_ns(index)).collect();
        assert_eq!(all.len(), MAX_STEPS);
        assert!(all[0] >= 0.0 && all.is_sorted(), "{all:?}");
        work.begin();
        assert_eq!(steps.ended_ns(0), None);
    }
}

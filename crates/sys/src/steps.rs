//! When each step of a piece of work ended: a copy's own record of its progress.

use std::cell::RefCell;
use std::rc::Rc;

use crate::clock::Clock;

/// The steps of one copy's current piece of work. Clones share the record: the work notes, its
/// caller reads.
#[derive(Clone, Default)]
pub struct Steps(Rc<RefCell<Record>>);

#[derive(Default)]
struct Record {
    begin_ns: f64,
    ended_ns: Vec<f64>,
}

/// Further steps are not noted.
const MOST: usize = 64;

impl Steps {
    /// A piece of work begins now.
    pub fn begin(&self) {
        let mut record = self.0.borrow_mut();
        record.ended_ns.clear();
        record.ended_ns.reserve(MOST);
        record.begin_ns = Clock::Raw.now();
    }

    /// One of its equal steps has ended.
    pub fn end_one(&self) {
        let mut record = self.0.borrow_mut();
        if record.ended_ns.len() < MOST {
            let now = Clock::Raw.now();
            record.ended_ns.push(now);
        }
    }

    /// From the beginning of the piece to the end of step `at`, ns; `None` beyond the last.
    pub fn ended_ns(&self, at: usize) -> Option<f64> {
        let record = self.0.borrow();
        record.ended_ns.get(at).map(|ended| ended - record.begin_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_begins_anew() {
        let steps = Steps::default();
        let noted = steps.clone();
        noted.begin();
        (0..MOST + 3).for_each(|_| noted.end_one());
        let all: Vec<f64> = (0..).map_while(|at| steps.ended_ns(at)).collect();
        assert_eq!(all.len(), MOST);
        assert!(all[0] >= 0.0 && all.is_sorted(), "{all:?}");
        noted.begin();
        assert_eq!(steps.ended_ns(0), None);
    }
}

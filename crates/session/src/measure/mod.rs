//! Runs visits: the gate, a child each, its conditions, the run file, the stop rule, the budget.

pub mod child;
mod enough;
pub mod gate;
mod pretended;
mod session;
mod settings;
mod watch;

pub use gate::Patience;
pub use session::{Ended, Progress, Session};
pub(crate) use session::{FAILURES_MAX, VISIT_LIMIT, VISIT_LIMIT_ESTIMATES};

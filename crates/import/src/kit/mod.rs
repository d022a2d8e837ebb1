//! What importers of texts share. A format is a table of patterns with named fields ([`lines`]).
//! The lines that they know make up runs, and one decision says which runs are repetitions of each
//! other and which are different results ([`runs`]), by the text around them ([`context`]) and the
//! commands before them ([`commands`]). A format that needs no more is tables and a function
//! for its checks, nothing else ([`form`]). Numbers keep the digits that they are printed with, so
//! that figures can be checked against each other ([`numbers`]); percentiles, of whatever format,
//! by their order ([`order`]).

pub mod commands;
pub mod context;
pub mod damage;
mod expression;
mod figures;
pub mod form;
pub mod lines;
pub mod numbers;
pub mod order;
pub mod runs;

pub use commands::{Command, options};
pub use expression::Expression;
pub use figures::{Figures, MAX_EACH, Metric, metric, unfinished};
pub use lines::{Hit, Pattern, Role, Table};
pub use numbers::{Number, is_rate, scale};
pub use runs::{LinesAbove, Log, Results, Run, headlines, log, said_again};

#[cfg(test)]
mod tests;

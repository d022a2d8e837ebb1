//! The run file: written a line at a time, read whole, tolerant of a torn tail and of what newer versions add.

mod line;
mod place;
mod reader;
mod resume;
mod writer;

pub use line::sealed;
pub use place::Place;
pub use reader::{check_columns, parse, read, summary, unpack};
pub use resume::{Candidates, candidates};
pub use writer::Writer;

/// What a run file's name ends in.
pub const EXTENSION: &str = ".assay.jsonl";

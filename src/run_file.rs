//! The run file: written a line at a time, read whole, tolerant of a torn tail and of what newer versions add.

mod reader;
mod writer;

pub use reader::{check_columns, parse, read, summary, unpack};
pub use writer::{Writer, resumable};

/// What a run file's name ends in.
pub const EXTENSION: &str = ".assay.jsonl";

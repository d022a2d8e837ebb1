//! The run file: written a line at a time, read whole, tolerant of a torn tail and of what newer versions add.

mod keep;
mod limits;
mod reader;
mod source;
mod writer;

pub use limits::Limits;
pub use reader::{check_columns, last_summary, parse, parse_within, read, summary, unpack};
pub use source::{Exceeded, GZIP, Source, open, unpacked};
pub use writer::{Writer, resumable};

/// What a run file's name ends in.
pub const EXTENSION: &str = ".assay.jsonl";

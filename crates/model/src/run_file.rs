//! The run file: written a line at a time, read whole, tolerant of a torn tail and of what newer
//! versions add.

mod bundle;
mod keep;
mod limits;
mod line;
mod place;
mod reader;
mod resume;
mod source;
mod summaries;
mod writer;
mod written;

pub use bundle::{files_in, is_bundle, runs_in};
pub use limits::Limits;
pub use line::sealed;
pub use reader::{check_columns, last_summary, parse, parse_within, read, summary, unpack};
pub use resume::{Candidates, candidates};
pub use source::{Exceeded, GZIP, Source, open, unpacked, was_read, words};
pub use summaries::{LONGEST_SUMMARY, SUMMARY, SummaryLine, SummaryLines, summaries, summary_line};
pub use writer::{Writer, stem};

/// What a run file's name ends in.
pub const EXTENSION: &str = ".assay.jsonl";

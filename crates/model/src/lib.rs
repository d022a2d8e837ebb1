//! The types and names that all other crates share.
//!
//! A run is the host's own raw text ([`Snapshot`]) plus samples ([`Visit`]); everything else is a
//! pure function of a run. These types cross the process boundary (child to parent), the disk (run
//! file) and time (a newer Assay reads an older file), so every field that was added later has a
//! default.
//!
//! Invariant: plain data: nothing here measures or judges, and the only files it opens are run
//! files.

#![forbid(unsafe_code)]

mod blank;
mod case;
mod cpuset;
pub mod dmidecode_text;
pub mod factors;
mod figure;
mod finding;
mod metric;
mod nearest;
pub mod packed;
pub mod pattern;
mod places;
mod run;
pub mod run_file;
mod sample;
pub mod smbios;
mod snapshot;
pub mod sweep;
mod thinned;
pub mod units;
pub mod vocabulary;

pub use blank::{BLANKED, PRINTOUT, TABLES, without_ids};
pub use case::{Beside, COMPILER, Case, LAST, Pages, Params, Placement, Seat, Value, fingerprint};
pub use cpuset::CpuSet;
pub use factors::Factors;
pub use figure::{counted, figure, letters, percent, rough_figure, time_unit, unit_words};
pub use finding::{
    Effect, Fact, Finding, FindingDraft, Grade, SUSPECT, Severity, Verdict, VerdictKind, rough,
};
pub use metric::{Better, Form, Metric, Title, View};
pub use nearest::{did_you_mean, nearest};
pub use places::{PagePlaces, Progress};
pub use run::{
    Conditions, Event, Header, Line, Neighbour, Planned, RUN_FILE_SCHEMA, Reason, Record, Run, RunClock,
    SCHEMA, Summary, SummaryFinding, SummarySeries, TimeLine, Visit, measured_ms,
};
pub use sample::{BEYOND, Covariates, Histogram, Moves, Packed, ProcessFacts, Samples, backs};
pub use snapshot::{Entry, Snapshot};
pub use sweep::Sweep;
pub use thinned::{Earlier, LeftOut, Place, Thinned};
pub use units::unit_factor;

//! The words that every other module speaks: plain data, no measuring, no judging, no I/O.
//!
//! A run is the machine's own raw text ([`Snapshot`]) plus samples ([`Visit`]); everything else is a pure
//! function of a run. These types cross the process boundary (child to parent), the disk (run file) and time
//! (a newer Assay reads an older file), so every field that was added later has a default.

mod case;
mod cpuset;
pub mod factors;
mod figure;
mod finding;
mod metric;
mod run;
mod sample;
mod snapshot;
pub mod sweep;

pub use case::{Beside, COMPILER, Case, Pages, Params, Placement, Seat, Value, fingerprint};
pub use cpuset::CpuSet;
pub use factors::Factors;
pub use figure::{figure, letters, percent};
pub use finding::{Effect, Fact, Finding, SUSPECT, Severity, Verdict, VerdictKind};
pub use metric::{Better, Form, Metric, Title, View};
pub use run::{
    Conditions, Event, Header, Line, Neighbour, Planned, RUN_FILE_SCHEMA, Reason, Record, Run, RunClock,
    SCHEMA, Summary, SummaryFinding, SummarySeries, TimeLine, Visit, measured_ms,
};
pub use sample::{BEYOND, Covariates, Histogram, Packed, ProcessFacts, Samples, backs};
pub use snapshot::{Entry, Snapshot};
pub use sweep::Sweep;

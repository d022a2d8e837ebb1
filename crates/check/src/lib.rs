//! Acceptance: checks a run of a host against the demands of a spec file. Each demand is met,
//! missed or undecided, by the whole 95 % interval of a figure and never by its middle alone.
//!
//! Invariant: pure: never does I/O and never sees a live host.

#![forbid(unsafe_code)]

mod against;
mod among;
mod caveat;
mod class;
mod confirmed;
mod demand;
mod figures;
mod judge;
mod junit;
mod limit;
mod lint;
mod maas;
mod nfd;
mod spec;
mod subject;
mod write;

pub use among::{PEERS, PeerResult};
pub use caveat::Caveat;
pub use class::{OF_CLASS, of_class};
pub use confirmed::{APART_S, LOOKS, WITHIN_S, confirmed};
pub use demand::Demand;
pub use judge::{Background, Outcome, Verdict, check};
pub use junit::junit;
pub use limit::{DemandStatus, Limit};
pub use lint::{Catalogue, KnownBenchmark};
pub use maas::{MaasResult, maas};
pub use nfd::nfd;
pub use spec::{PeersDemand, Spec};
pub use subject::{Figure, Ratio, ReferenceRatios, Subject};
pub use write::{MIN_RUNS, derived, initial};

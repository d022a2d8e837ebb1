//! What of a visit would stay on this host if every process of ours were killed at once, and must
//! be known before.

use super::is_nexmark;
use super::nexmark::cluster_of;
use super::pair::lines::IN_A_SET;
use model::Case;
use model::vocabulary::guard::COMMAND;
use model::vocabulary::ipc as ids;
use sys::semaphore::SharedKey;

/// Of one visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// A set of so many System V semaphores, where the kernel refuses it an IPC namespace of its
    /// own.
    Semaphores(u32),
    /// Programs that are not ours, with whatever they start: those of a guarded command, or a Flink
    /// cluster.
    Programs,
    /// A job and its program on another's Flink cluster, at this REST address.
    Job(String),
}

/// The input that names the key of a set, or says why there is none.
pub const SET_KEY: &str = "set_key";

/// The input that is the number of the job, which is part of its program's name, too.
pub const JOB: &str = "job";

/// `None`: all that a visit of this row makes goes with its processes, which die with each other.
pub fn leaves(case: &Case) -> Option<Leaves> {
    match case.id() {
        Some(ids::SYSV_SEMAPHORE) => Some(Leaves::Semaphores(IN_A_SET)),
        Some(COMMAND) => Some(Leaves::Programs),
        _ if is_nexmark(case) => Some(cluster_of(case).map_or(Leaves::Programs, Leaves::Job)),
        _ => None,
    }
}

/// Where a visit may make its set.
pub fn key_of(case: &Case) -> SharedKey {
    match case.inputs.get(SET_KEY) {
        None => Err("it is in no journal".to_string()),
        Some(text) => text.parse().map_err(|_| text.clone()),
    }
}

//! What a pass leaves on this host if all its processes are killed at once; the journal notes it
//! before.

use super::is_nexmark;
use super::nexmark::cluster_of;
use super::pair::lines::IN_A_SET;
use model::Case;
use model::vocabulary::guard::COMMAND;
use model::vocabulary::ipc as ids;
use sys::semaphore::SharedKey;

/// Of one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// A set of this many System V semaphores, if the kernel refuses a private IPC namespace.
    Semaphores(u32),
    /// Programs of others and their children: a guarded command, or a Flink cluster.
    Programs,
    /// A job and its program on another's Flink cluster, at this REST address.
    Job(String),
}

/// The input that names the key of a set, or says why there is none.
pub const SET_KEY: &str = "set_key";

/// The input that is the number of the job, which is part of its program's name, too.
pub const JOB: &str = "job";

/// `None` if nothing outlives the processes of a pass.
pub fn leaves(case: &Case) -> Option<Leaves> {
    match case.id() {
        Some(ids::SYSV_SEMAPHORE) => Some(Leaves::Semaphores(IN_A_SET)),
        Some(COMMAND) => Some(Leaves::Programs),
        _ if is_nexmark(case) => Some(cluster_of(case).map_or(Leaves::Programs, Leaves::Job)),
        _ => None,
    }
}

/// Where a pass may make its set.
pub fn key_of(case: &Case) -> SharedKey {
    match case.inputs.get(SET_KEY) {
        None => Err("it is in no journal".to_string()),
        Some(text) => text.parse().map_err(|_| text.clone()),
    }
}

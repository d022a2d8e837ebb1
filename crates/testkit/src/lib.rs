//! What tests share: where things lie, small runs that were made up, and changes of this host that
//! are undone.
//!
//! Invariant: nothing of the product depends on it.

#![forbid(unsafe_code)]

pub mod capacity;
mod headline;
pub mod host;
pub mod killing;
pub mod memory_map;
pub mod png;
mod run_of;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub use headline::{NOT_SAID, headline_faults};
pub use run_of::*;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).expect("two folders above").to_path_buf()
    });
    &ROOT
}

/// The `assay` that was built with the running test, from the same profile folder.
pub fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = std::env::current_exe().expect("where this program lies");
        let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("assay"));
        beside.filter(|program| program.is_file()).last().expect("`assay`, built before")
    });
    &PROGRAM
}

/// For tests that wait until a pipe has no more writers, or a file none: does `body` in a process
/// of its own, whose files no child of another test has inherited.
pub fn alone(body: impl FnOnce()) {
    let work = || match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(why) => {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or(why.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
            // The harness would keep what this process prints, and it ends with it.
            let _ = rustix::io::write(std::io::stderr(), format!("{text}\n").as_bytes());
            1
        }
    };
    let status =
        sys::process::fork(work).expect("fork").wait(std::time::Duration::from_secs(120)).expect("it ends");
    assert!(status.success(), "{status}: what went wrong stands above");
}

//! Helpers that tests share: paths, small invented runs, and changes of this host that are undone.
//!
//! Invariant: the product does not depend on it.

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

/// The workspace's folder.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).expect("two folders above").to_path_buf()
    });
    &ROOT
}

/// The `assay` program in the profile folder of the running test.
pub fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = std::env::current_exe().expect("the path of this program");
        let beside = own.ancestors().skip(1).take(2).map(|folder| folder.join("assay"));
        beside.filter(|program| program.is_file()).last().expect("`assay`, built before")
    });
    &PROGRAM
}

/// Runs `body` in a process of its own, for tests that wait until a pipe or file has no more
/// writers: no child of another test inherits its files.
pub fn alone(body: impl FnOnce()) {
    let work = || match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(why) => {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or(why.downcast_ref::<&str>().copied()).unwrap_or("a panic without words");
            // The harness would capture what this process prints, and would lose it.
            let _ = rustix::io::write(std::io::stderr(), format!("{text}\n").as_bytes());
            1
        }
    };
    let status =
        sys::process::fork(work).expect("fork").wait(std::time::Duration::from_secs(120)).expect("it ends");
    assert!(status.success(), "{status}: see the error above");
}

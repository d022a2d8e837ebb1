//! One sweep per host: two at once would disturb each other.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use anyhow::{Context, bail};

use super::Knobs;

/// Held by the one sweep of a host; the kernel frees it when the process dies.
#[derive(Debug)]
pub struct SweepLock {
    _name: UnixListener,
}

impl Knobs {
    /// Takes the lock for the one sweep of this host, of any user. A synthetic tree, or a journal
    /// in another place, has its own lock. It is an error if another sweep runs.
    pub fn lock_sweeps(&self) -> anyhow::Result<SweepLock> {
        let usual = self.root == Path::new("/") && std::env::var_os(super::STATE_VARIABLE).is_none();
        // An abstract socket name: any user may take it, and the kernel frees it with its owner.
        let name =
            if usual { "assay-sweep".to_string() } else { format!("assay-sweep {}", self.store.0.display()) };
        let name: String = name.chars().take(100).collect();
        let address =
            SocketAddr::from_abstract_name(name.as_bytes()).context("cannot set the lock of this sweep")?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(SweepLock { _name: listener }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                bail!("another sweep runs on this host: wait for its end, as two would disturb each other")
            }
            Err(error) => Err(error).context("cannot check whether another sweep runs on this host"),
        }
    }
}

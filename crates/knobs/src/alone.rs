//! One sweep a host: two at once would measure each other.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use anyhow::{Context, bail};

use super::Knobs;

/// Held by the one sweep of a host; whoever holds it and dies gives it back.
#[derive(Debug)]
pub struct Alone {
    _name: UnixListener,
}

impl Knobs {
    /// Becomes the one sweep of this host, whichever user's; of a made tree, or where the journal
    /// has a place of its own, the one sweep of that. An error says that there is one already.
    pub fn alone(&self) -> anyhow::Result<Alone> {
        let usual = self.root == Path::new("/") && std::env::var_os(super::STATE_VARIABLE).is_none();
        // A name that is no file: any user may take it, and the kernel frees it with its holder.
        let name = match usual {
            true => "assay-sweep".to_string(),
            false => format!("assay-sweep {}", self.store.0.display()),
        };
        let name: String = name.chars().take(100).collect();
        let address = SocketAddr::from_abstract_name(name.as_bytes()).context(
            "cannot set the lock of this \
          sweep",
        )?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Alone { _name: listener }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                bail!("another sweep runs on this host: wait for its end, as two would disturb each other")
            }
            Err(error) => Err(error).context("cannot check whether another sweep runs on this host"),
        }
    }
}

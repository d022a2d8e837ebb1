//! The peers that are C programs of Assay's, built for this very CPU (`gcc -O3 -march=native`).

use std::path::PathBuf;
use std::process::Command;

use super::rate::WITH_PEER;

/// A chase of pointers in multichase's orders.
pub const CHASE: &str = "chase";

/// Where they are built.
pub struct Built(tempfile::TempDir);

impl Built {
    /// An error where there is no compiler.
    pub fn build() -> Result<Built, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let sources = testkit::root().join("crates/prove/peers");
        let of_rate = WITH_PEER.map(|name| (name, sources.join(format!("rate/{name}.c"))));
        let chase = (CHASE, sources.join(format!("{CHASE}.c")));
        for (name, source) in of_rate.into_iter().chain([chase]) {
            let built = Command::new("gcc")
                .args(["-O3", "-march=native", "-DHUGE_PAGES", "-o"])
                .arg(folder.path().join(name))
                .arg(source)
                .arg("-lm")
                .output()
                .map_err(|error| format!("gcc: {error}"))?;
            if !built.status.success() {
                return Err(String::from_utf8_lossy(&built.stderr).into_owned());
            }
        }
        Ok(Built(folder))
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

//! One boot for several tests. The guest runs each test's script in a folder of its own, one after
//! the other; each test gets its folder back.

use std::path::Path;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::placement::{DESCRIBE, EVERY_PAIR};
use super::{brought, dimms, skipped, unpacked};

/// A folder's name, and what is done in it.
type Part = (&'static str, fn() -> String);

pub struct Boot {
    machine: &'static str,
    /// Options of QEMU, which may name files in a folder that is there while the machine is.
    qemu: fn(&Path) -> Vec<String>,
    parts: &'static [Part],
    made: OnceLock<Result<Vec<u8>, String>>,
}

/// Every case of some benchmarks, on a machine that has described itself.
pub const DESCRIBED: &str = "assay machine --json >machine.json; every_case_once";

pub static TWO_NODES: Boot = Boot::of(
    "two-nodes",
    dimms::full_board,
    &[
        ("dimms", || dimms::SCRIPT.to_string()),
        ("nodes", || format!("{DESCRIBED} memory.node,memory.data-source")),
    ],
);

pub static SHARED_L3: Boot = Boot::of(
    "shared-l3",
    no_options,
    &[("pairs", || format!("{DESCRIBE}\n{EVERY_PAIR}")), ("node", || super::ONE_NODE.to_string())],
);

fn no_options(_: &Path) -> Vec<String> {
    Vec::new()
}

impl Boot {
    const fn of(machine: &'static str, qemu: fn(&Path) -> Vec<String>, parts: &'static [Part]) -> Boot {
        Boot { machine, qemu, parts, made: OnceLock::new() }
    }

    /// The folder of one part; `None`, with a message, where nothing can be booted. The first test
    /// that asks boots.
    pub fn part(&self, test: &str, name: &str) -> Option<TempDir> {
        assert!(self.parts.iter().any(|(known, _)| *known == name), "no part is called {name}");
        let made = self.made.get_or_init(|| {
            let scratch = tempfile::tempdir().expect("a temporary folder");
            let qemu = (self.qemu)(scratch.path());
            let qemu: Vec<&str> = qemu.iter().map(String::as_str).collect();
            let scripts = self
                .parts
                .iter()
                .map(|(name, script)| format!("mkdir {name}\ncd {name}\n(\n{}\n)\ncd ..\n", script()));
            brought(&[], self.machine, &qemu, &scripts.collect::<String>())
        });
        match made {
            Ok(archive) => Some(unpacked(archive, Some(name))),
            Err(why) => {
                skipped(test, why);
                None
            }
        }
    }
}

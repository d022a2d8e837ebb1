//! What each fuzz target does with its bytes. No target only looks for panics: each asserts what
//! must hold of the answer. `crates/cli/tests/it/corpus.rs` includes this file and replays the
//! committed corpus, without libFuzzer.

mod archive;
mod cpuid;
mod cpuset;
mod dmidecode_text;
mod import;
mod machine;
mod network;
mod report;
mod run_file;
mod sample_line;
mod smbios;
pub mod tree;
mod visible;
mod visits;

pub use archive::archive;
pub use cpuid::cpuid;
pub use cpuset::cpuset;
pub use dmidecode_text::dmidecode_text;
pub use import::import;
pub use machine::snapshot;
pub use network::network;
pub use run_file::run_file;
pub use sample_line::sample_line;
pub use smbios::smbios;
pub use tree::machine_tree;
pub use visits::visits;

/// What a target does with its bytes.
pub type Target = fn(&[u8]);

/// Every target by the name of its program and of its corpus folder.
pub const TARGETS: [(&str, Target); 12] = [
    ("archive", archive),
    ("cpuid", cpuid),
    ("cpuset", cpuset),
    ("dmidecode_text", dmidecode_text),
    ("import", import),
    ("machine_tree", machine_tree),
    ("network", network),
    ("run_file", run_file),
    ("sample_line", sample_line),
    ("smbios", smbios),
    ("snapshot", snapshot),
    ("visits", visits),
];

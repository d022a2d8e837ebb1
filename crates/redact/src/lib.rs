//! Replaces every word of a run that could name a person, an organisation or a host.
//!
//! A word stays only if it identifies no one: the program has it (rules can only ask for words of
//! the program, so that a redacted run gets the same verdicts), the run file's schema has it, or
//! firmware and kernel use it for processor, board and disks. All others are replaced, each by one
//! name in all runs of a bundle, so that what belongs together still does. New fields are replaced
//! too, until a rule here says that they may stay.
//!
//! Invariant: deny by default: what has no class does not leave. No file is opened here.

#![forbid(unsafe_code)]

mod left;
mod names;
mod place;
mod run;
mod shapes;
mod snapshot;
mod text;
mod vocabulary;

pub use left::{Left, Search, Searched};
pub use names::{Kind, Names};
pub use run::Redactor;
pub use snapshot::{Class, class_of};
pub use vocabulary::Vocabulary;

/// What `assay explain redaction` prints, by section.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "`assay bundle --redact` packs runs and their pages without the names of hosts, owners or other work. A word of a run \
         stays only if it identifies no one: Assay itself has the word, the kernel has it, or a maker uses it for a processor, \
         board, firmware or disk. All other words are replaced.",
    ),
    (
        "What becomes what",
        "host names: host-1. Values of labels: label-1. Boot numbers, UUIDs: uuid-1. Hardware addresses: mac-1. Network \
         addresses except loopback: ip-1. Mail addresses: email-1. Folders and parts of paths: path-1. Control groups: \
         group-1. Other processes: process-1, with numbers from 1. Words of guarded programs: program-1. Names of disks and \
         interfaces that the kernel did not give: device-1. Any other word: redacted-1. One original has one name in all runs \
         of a bundle, in upper and lower case.",
    ),
    (
        "What stays",
        "Processor, board, BIOS, sizes, kernel release, kinds of devices and file systems, settings, policies, priorities, times, \
         all figures, and numbers of up to 15 digits. Files of the host without a class are left out, and so are unreadable lines.",
    ),
    (
        "Why the verdicts stay the same",
        "A rule can ask for a word only if Assay has it, and those words stay. What belongs together still has one name.",
    ),
    (
        "What is searched",
        "Before a bundle is written, and by `assay bundle --verify`, Assay looks in every unpacked byte for each replaced text and \
         for each shape of an address, a UUID or a mail: as text, in hexadecimal digits and in base64, in upper and lower case. \
         Short originals, words of Assay's own pages and kernel names (cpu0, node0, sda) would be found by chance: they are \
         counted, and --verify lists them. It also searches the headers of the archive, and checks that its files are as Assay \
         packed them and that the mapping is of this bundle.",
    ),
];

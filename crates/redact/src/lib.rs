//! Takes out of a run what names somebody or something of an owner's.
//!
//! A word stays only where it is known to name nobody: the program itself has it (no rule can ask
//! for a word that the program does not have, so that a redacted run is judged as the original),
//! the run file's schema has it, or firmware and kernel say it of processor, board and disks. All
//! others are replaced: the same one by the same one in all runs of a bundle, so that what belongs
//! together still does. A field that is added tomorrow is treated so, too, until somebody says more
//! of it.
//!
//! Invariant: deny by default: what nobody classified does not leave. No file is opened here.

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

/// What `assay explain redaction` says, by section.
pub const EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "`assay bundle --redact` packs runs and their pages so that they name no host, owner or other work. A word of a run stays \
         only where it is known to name nobody: Assay has the word itself, the kernel has it, or a maker says it of processor, \
         board, firmware or disk. All other words are replaced.",
    ),
    (
        "What becomes what",
        "host names: host-1. Values of labels: label-1. Boot numbers, UUIDs: uuid-1. Hardware addresses: mac-1. Addresses of \
         networks, but loopback: ip-1. Mail addresses: email-1. Folders and parts of paths: path-1. Control groups: group-1. Other \
         processes: process-1, with numbers from 1. Words of guarded programs: program-1. Names of disks and interfaces that the \
         kernel does not give: device-1. Any other word: redacted-1. The same original has the same name in all runs of a bundle, \
         in either case of its letters.",
    ),
    (
        "What stays",
        "Processor, board, BIOS, sizes, kernel release, kinds of devices and filesystems, settings, policies, priorities, times, all \
         figures, and numbers of up to 15 digits. Files of the machine that nobody classified are left out, and so are lines that \
         cannot be read.",
    ),
    (
        "Why it is judged as before",
        "A rule can ask for a word only if Assay has it, and those words stay. What belongs together still has one name.",
    ),
    (
        "What is searched",
        "Before a bundle is written, and by `assay bundle --verify`, each replaced text and each shape of an address, a UUID or a mail \
         is looked for in every unpacked byte: as text, in hexadecimal digits and in base64, in any case. Originals that are short, \
         words of Assay's own pages, or as the kernel calls processors, nodes and disks (cpu0, node0, sda) would be found by \
         chance: they are counted, and --verify lists them. It also searches the headers of the archive, and says whether its \
         files are as Assay packed them and whether the mapping is of this bundle.",
    ),
];

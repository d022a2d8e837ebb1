//! Where in a run something stands that is private, whatever its words are.

use super::names::Kind;

/// How the text at a place is treated where it is not simply read word by word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// All of it is one name.
    Whole(Kind),
    /// A folder or a file of an owner's.
    Folder,
    /// A host or an address, with a port.
    Peer,
    /// A command line: none of its words stays.
    Command,
    /// Names of programs, each behind `A-` or `B-`; or numbers.
    Programs,
    /// The plan's number: what it is made of includes folders.
    Plan,
}

/// Places by their path in a record; the numbers of lists are no part of it.
const PLACES: [(&str, Place); 16] = [
    ("header/host", Place::Whole(Kind::Host)),
    ("summary/host", Place::Whole(Kind::Host)),
    ("header/labels/*", Place::Whole(Kind::Label)),
    ("summary/labels/*", Place::Whole(Kind::Label)),
    ("header/boot_id", Place::Whole(Kind::Uuid)),
    ("summary/boot_id", Place::Whole(Kind::Uuid)),
    ("header/plan_id", Place::Plan),
    ("header/plan/case/inputs/dir", Place::Folder),
    ("header/plan/case/inputs/jar", Place::Folder),
    ("header/plan/case/inputs/java", Place::Folder),
    ("header/plan/case/inputs/home", Place::Folder),
    ("header/plan/case/inputs/to", Place::Peer),
    ("header/plan/case/inputs/jobmanager", Place::Peer),
    ("header/plan/case/params/command", Place::Whole(Kind::Program)),
    ("visit/conditions/neighbours/name", Place::Whole(Kind::Process)),
    // Of two guarded programs; of all others sizes.
    ("header/plan/case/inputs/points", Place::Programs),
];

/// Inputs of a guarded program that hold its command line.
const COMMANDS: [&str; 2] = ["header/plan/case/inputs/words", "header/plan/case/inputs/rival"];

/// The number of a process.
pub const PID: &str = "visit/conditions/neighbours/pid";

pub fn place_of(path: &str) -> Option<Place> {
    if COMMANDS.contains(&path) {
        return Some(Place::Command);
    }
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(folder) => path.starts_with(folder),
        None => pattern == path,
    };
    PLACES.iter().find(|(pattern, _)| fits(pattern)).map(|(_, place)| *place)
}

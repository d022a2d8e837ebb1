//! dmidecode: what it prints, and the tables that `--dump-bin` writes.

use model::{Entry, TABLES};

use super::Tool;
use super::reported::Reported;

pub(super) const TOOL: Tool =
    Tool { name: "dmidecode", file: "dmidecode (its printout or --dump-bin)", knows, read };

/// A dump begins with its entry point: anything may hold bytes that look like tables.
fn knows(bytes: &[u8]) -> bool {
    bytes.starts_with(b"_SM") && machine::table_of(bytes).is_some()
        || machine::is_printout(&String::from_utf8_lossy(bytes))
}

fn read(bytes: &[u8], told: &mut Reported) {
    match machine::table_of(bytes) {
        Some(table) => drop(told.files.insert(TABLES.to_string(), Entry::Bytes(table.to_vec()))),
        None => told.printout(&String::from_utf8_lossy(bytes)),
    }
}

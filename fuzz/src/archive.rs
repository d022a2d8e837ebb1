//! What tools of support collected: any bytes are an archive, a printout, or refused with the list
//! of what can be read.

use snapshot::archive;

use super::machine;

/// Bytes after unpacking: a bomb of the corpus's size makes more of itself.
const UNPACKED: u64 = 16 << 20;

pub fn archive(data: &[u8]) {
    match archive::read_from(data, UNPACKED) {
        Ok(snapshot) => {
            let machine = machine::check_all(&snapshot);
            let lines = machine.archive.iter().flat_map(|archive| &archive.contradictions);
            lines.for_each(|line| assert!(!line.contains('\n'), "a sentence of two lines: {line:?}"));
        }
        Err(why) => assert!(why.contains("Assay reads a folder or an archive"), "{why}"),
    }
}

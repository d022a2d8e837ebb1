//! What dmidecode prints, as people pass it on: any text, any bytes.

use ::machine::{PRINTOUT, is_printout};
use model::{Entry, Snapshot};

use super::{machine, smbios};

/// A file of `assay machine --dmi` that is no table.
pub fn dmidecode_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let printout = is_printout(&text);
    // How its lines end does not matter, but where a lone carriage return stands inside a value.
    if !text.contains('\r') {
        assert_eq!(printout, is_printout(&text.replace('\n', "\r\n")), "Windows line ends");
    }
    let entries = [(PRINTOUT.to_string(), Entry::Text(text))];
    let found = machine::check_all(&Snapshot { entries: entries.into_iter().collect() });
    assert!(printout || found.dimms.is_empty(), "modules of what is no printout");
    smbios::population(&found);
}

//! A printout as dmidecode would write it, from what other tools report about the same tables.

use std::fmt::Write;

/// Structures in the order in which they come.
#[derive(Default)]
pub(super) struct Printout {
    text: String,
    /// Handles so far, where the tool reports none.
    count: u32,
}

impl Printout {
    /// Begins a structure; its fields follow.
    pub fn structure(&mut self, kind: u32, title: &str) -> &mut Printout {
        self.count += 1;
        self.with_handle(self.count, kind, title)
    }

    /// The same with a handle that the tool reports.
    pub fn with_handle(&mut self, handle: u32, kind: u32, title: &str) -> &mut Printout {
        let _ = write!(self.text, "\nHandle {}, DMI type {kind}, 0 bytes\n{title}\n", written(handle));
        self
    }

    /// A field that is reported; no value of several lines.
    pub fn field(&mut self, name: &str, value: Option<&str>) -> &mut Printout {
        let value = value.map(|value| value.split(['\n', '\r']).next().unwrap_or("").trim());
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(self.text, "\t{name}: {value}");
        }
        self
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A handle as dmidecode writes it.
pub(super) fn written(handle: u32) -> String {
    format!("0x{handle:04X}")
}

/// Bytes as dmidecode writes a module's size.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0 => "No Module Installed".to_string(),
        bytes if bytes.is_multiple_of(1 << 30) => format!("{} GB", bytes >> 30),
        bytes => format!("{} MB", bytes >> 20),
    }
}

//! What dmidecode prints, cut into structures: with handles or without (`-q`), from any version
//! since 2.7, as people pass it on: behind a shell's prompt, with a byte order mark, Windows line
//! ends or blanks for tabs, cut short.

/// Structures that matter, by number and by the title that stands above their fields.
pub const TITLES: [(u32, &str); 9] = [
    (0, "BIOS Information"),
    (1, "System Information"),
    (2, "Base Board Information"),
    (3, "Chassis Information"),
    (4, "Processor Information"),
    (16, "Physical Memory Array"),
    (17, "Memory Device"),
    (19, "Memory Array Mapped Address"),
    (20, "Memory Device Mapped Address"),
];

/// Fields of one structure, in order.
pub struct Structure<'a> {
    /// Of one that has no title of ours: `u32::MAX`.
    pub kind: u32,
    pub handle: Option<&'a str>,
    pub fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Structure<'a> {
    /// The value of the first field that has one of these names.
    pub fn get(&self, names: &[&str]) -> Option<&'a str> {
        let named = |name: &&str| self.fields.iter().find(|(known, _)| known == name);
        names.iter().find_map(named).map(|(_, value)| *value)
    }
}

pub fn structures(text: &str) -> Vec<Structure<'_>> {
    let mut found: Vec<Structure> = Vec::new();
    let mut handle = None;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let words = line.trim();
        if let Some(at) = words.find("Handle 0x").filter(|_| words.contains("DMI type")) {
            handle = words[at + 7..].split(',').next();
            continue;
        }
        if let Some((kind, _)) = TITLES.iter().find(|(_, title)| *title == words) {
            found.push(Structure { kind: *kind, handle: handle.take(), fields: Vec::new() });
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        match (words.split_once(':'), found.last_mut()) {
            (Some((name, value)), Some(last)) if indented => last.fields.push((name.trim(), value.trim())),
            // A word alone of a list: a characteristic.
            (None, Some(last)) if indented && !words.is_empty() => last.fields.push((words, "")),
            // Another structure's title: what follows is not the last one's.
            (_, Some(_)) if !indented && !words.is_empty() => {
                found.push(Structure { kind: u32::MAX, handle: None, fields: Vec::new() });
            }
            _ => {}
        }
    }
    found
}

//! Parses pasted output of dmidecode (any version since 2.7, also `-q` without handles) into
//! structures. Tolerates a shell prompt, a byte order mark, Windows line ends, blanks for tabs,
//! mail quotes, changed or lost indentation, and a cut end.

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Structure<'a> {
    /// Number of the structure type; `None` if its title is not in [`TITLES`].
    pub kind: Option<u32>,
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

/// The structures of a text, in order; text before the first title is skipped.
pub fn structures(text: &str) -> Vec<Structure<'_>> {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(unquoted).collect();
    let heads = lines.iter().filter(|line| is_head(line));
    let base = heads.map(|line| indentation(line)).min().unwrap_or(0);
    let is_flat = is_flat(&lines, base);
    let mut found: Vec<Structure> = Vec::new();
    let mut handle = None;
    // A blank line or a handle stands before each title.
    let mut may_be_title = true;
    for line in lines {
        let text = line.trim();
        let follows_gap = std::mem::replace(&mut may_be_title, text.is_empty());
        if let Some(at) = handle_in(text) {
            handle = text[at + "Handle ".len()..].split(',').next();
            may_be_title = true;
            continue;
        }
        if let Some((kind, _)) = TITLES.iter().find(|(_, title)| *title == text) {
            found.push(Structure { kind: Some(*kind), handle: handle.take(), fields: Vec::new() });
            continue;
        }
        // Without indentation only a line after a gap, and without a colon, is a title.
        let is_field = if is_flat { !follows_gap || text.contains(':') } else { indentation(line) > base };
        match (text.split_once(':'), found.last_mut()) {
            (Some((name, value)), Some(last)) if is_field => last.fields.push((name.trim(), value.trim())),
            // A line without a colon is an item of a list, such as a characteristic.
            (None, Some(last)) if is_field && !text.is_empty() => last.fields.push((text, "")),
            // A title that is not in TITLES: the fields below it belong to no known structure.
            (_, Some(_)) if !is_field && !text.is_empty() => {
                found.push(Structure { kind: None, handle: handle.take(), fields: Vec::new() });
            }
            _ => {}
        }
    }
    found
}

/// A line without the marks of a mail's quotation.
pub(super) fn unquoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn handle_in(words: &str) -> Option<usize> {
    words.find("Handle 0x").filter(|_| words.contains("DMI type"))
}

/// Whether a structure begins with this line.
fn is_head(line: &str) -> bool {
    let words = line.trim();
    handle_in(words).is_some() || TITLES.iter().any(|(_, title)| *title == words)
}

/// Whether most fields have the indentation of titles: copying may strip leading blanks.
fn is_flat(lines: &[&str], base: usize) -> bool {
    let inside = lines.iter().skip_while(|line| !is_head(line)).skip(1);
    let fields = inside.filter(|line| line.contains(':') && !is_head(line));
    let (flat, all) =
        fields.fold((0, 0), |(flat, all), line| (flat + usize::from(indentation(line) <= base), all + 1));
    2 * flat > all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n\n\
        Handle 0x0700, DMI type 7, 27 bytes\nCache Information\n\tSocket Designation: L1\n\tVersion: none\n\n\
        Handle 0x0000, DMI type 0, 26 bytes\nBIOS Information\n\tVendor: X\n\tCharacteristics:\n\t\tPCI is supported\n\
        \t\tSystem is a virtual machine\n\nHandle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n";

    fn each(text: &str, changed: impl Fn(&str) -> String) -> String {
        text.lines().map(|line| changed(line) + "\n").collect()
    }

    #[test]
    fn a_printout_however_it_was_copied() {
        let plain = structures(TEXT);
        assert_eq!(plain.len(), 4);
        assert_eq!(plain[3].get(&["Locator"]), Some("A1"));
        assert!(
            plain[2].get(&["System is a virtual machine"]).is_some() && plain[0].get(&["Version"]).is_none()
        );
        for (how, text) in [
            ("quoted", each(TEXT, |line| format!("> {line}"))),
            ("quoted twice, closely", each(TEXT, |line| format!(">>{line}"))),
            ("without indentation", each(TEXT, |line| line.trim().to_string())),
            ("quoted without indentation", each(TEXT, |line| format!("> {}", line.trim()))),
            ("as code, indented", each(TEXT, |line| format!("    {}", line.replace('\t', "    ")))),
            (
                "behind a prompt",
                format!("$ sudo dmidecode\n  note: mine\n{}", each(TEXT, |line| line.trim().to_string())),
            ),
        ] {
            assert_eq!(structures(&text), plain, "{how}");
        }
        let quiet = TEXT.lines().filter(|line| !line.starts_with("Handle")).collect::<Vec<_>>().join("\n");
        let flat = each(&quiet, |line| line.trim().to_string());
        assert_eq!(structures(&flat), structures(&quiet));
    }
}

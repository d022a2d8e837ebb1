//! The syntax of tuned's profiles: sections of options as Python's configparser reads them, and
//! variables in their values.

use std::collections::BTreeMap;

/// Values and names are cut beyond this many bytes.
pub const MAX_BYTES: usize = 4096;
/// No real profile defines more variables.
const MOST_VARIABLES: usize = 1000;
/// More of these in a file are no profile either.
const MOST_SECTIONS: usize = 200;
const MOST_ENTRIES: usize = 5000;

/// An option of a section, with the number of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub section: String,
    pub name: String,
    pub value: String,
    pub line: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ini {
    /// The headings, in order, each once.
    pub sections: Vec<String>,
    pub entries: Vec<Entry>,
    /// The numbers of lines that are neither, that belong to no section, or that are too many.
    pub odd: Vec<usize>,
}

/// Reads a text; what stands before its first heading belongs to the section `before`, or to none
/// where that is empty.
pub fn parse(text: &str, before: &str) -> Ini {
    let mut ini = Ini::default();
    let mut section = before.to_string();
    // The indentation of the last option, which deeper lines go on with.
    let mut depth = None;
    for (at, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let line = uncommented(line);
        if line.is_empty() {
            continue;
        }
        if let Some((depth, last)) = depth.zip(ini.entries.last_mut())
            && indent > depth
        {
            if last.value.len() + line.len() < MAX_BYTES {
                last.value.push(' ');
                last.value.push_str(line);
                last.value = last.value.trim().to_string();
            }
            continue;
        }
        if let Some((heading, _)) = line.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) {
            section = cut(heading);
            depth = None;
            match ini.sections.contains(&section) {
                true => {}
                false if ini.sections.len() < MOST_SECTIONS => ini.sections.push(section.clone()),
                false => {
                    section = String::new();
                    ini.odd.push(at + 1);
                }
            }
        } else if !section.is_empty()
            && ini.entries.len() < MOST_ENTRIES
            && let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.trim().is_empty())
        {
            let (name, value) = (cut(name), cut(value));
            ini.entries.push(Entry { section: section.clone(), name, value, line: at + 1 });
            depth = Some(indent);
        } else {
            ini.odd.push(at + 1);
            depth = None;
        }
    }
    ini
}

/// A line without comment: `#` and `;` begin one at its start, `#` also after a space.
fn uncommented(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with([';', '#']) {
        return "";
    }
    let inside = line.match_indices('#').find(|(at, _)| line[..*at].ends_with(char::is_whitespace));
    inside.map_or(line, |(at, _)| line[..at].trim_end())
}

fn cut(text: &str) -> String {
    let text = text.trim();
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_string()
}

/// What `${name}` stands for.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

/// A value with its variables put in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expanded {
    pub value: String,
    /// Undefined variables: they stay as they are written.
    pub unknown: Vec<String>,
    /// It calls a function, which stays as it is written.
    pub function: bool,
}

impl Variables {
    /// Defines a variable by what is defined so far.
    pub fn define(&mut self, name: &str, value: &str) {
        if self.0.len() < MOST_VARIABLES || self.0.contains_key(name) {
            self.0.insert(name.to_string(), self.expand(value).value);
        }
    }

    pub fn expand(&self, value: &str) -> Expanded {
        let mut found = Expanded::default();
        let mut rest = value;
        while let Some((before, behind)) = rest.split_once("${") {
            found.value.push_str(before);
            rest = behind;
            let name = rest.split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
            match name {
                // A backslash before it says that it is none.
                Some(_) if found.value.ends_with('\\') => {
                    found.value.pop();
                    found.value.push_str("${");
                }
                Some(name) => {
                    match self.0.get(name) {
                        Some(known) => found.value.push_str(known),
                        None => {
                            found.value.push_str(&format!("${{{name}}}"));
                            if !found.unknown.iter().any(|known| known == name) {
                                found.unknown.push(name.to_string());
                            }
                        }
                    }
                    rest = &rest[name.len() + 1..];
                }
                None => {
                    found.function |= rest.starts_with("f:");
                    found.value.push_str("${");
                }
            }
            if found.value.len() > MAX_BYTES {
                // What becomes that long was made to become long.
                return Expanded { value: cut(value), ..found };
            }
        }
        found.value.push_str(rest);
        found.value = cut(&found.value);
        found
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

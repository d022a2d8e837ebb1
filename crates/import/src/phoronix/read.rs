//! The file's elements by the parser's events: no element is expanded, none is followed, and what
//! is cut off or mixed up ends with what was whole until then.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

/// The deepest element of the format is the sixth; another one's depth is a mistake or an attack.
const MAX_DEPTH: usize = 32;
/// More of each in one file are a mistake or an attack.
const MAX_SYSTEMS: usize = 2000;
const MAX_ENTRIES: usize = 20_000;

/// A file's own words.
#[derive(Debug, Default)]
pub(super) struct Composite {
    pub systems: Vec<System>,
    pub results: Vec<Test>,
    /// It ends before its end.
    pub torn: bool,
    /// Entries.
    pub left_out: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct System {
    pub identifier: String,
    pub hardware: String,
    pub software: String,
    pub time: String,
    pub client: String,
    pub json: String,
}

/// One test as one of its ways to be run.
#[derive(Clone, Debug, Default)]
pub(super) struct Test {
    /// `pts/simdjson-2.0.1`; empty where no test gave it.
    pub identifier: String,
    pub title: String,
    pub version: String,
    pub arguments: String,
    pub description: String,
    pub scale: String,
    pub proportion: String,
    pub display: String,
    pub entries: Vec<Entry>,
    /// An element stands in it twice: lines of another one are in it.
    pub mixed: bool,
}

/// What one system came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub system: String,
    pub value: String,
    /// Each repetition.
    pub raw: String,
    pub json: String,
}

/// Reads a file from behind its first tag.
pub(super) fn composite(file: &str) -> Composite {
    let mut found = Building::default();
    let mut reader = Reader::from_str(file);
    let config = reader.config_mut();
    // Ends are matched here.
    (config.check_end_names, config.allow_unmatched_ends, config.allow_dangling_amp) = (false, true, true);
    found.whole.torn = true;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                if found.path.len() >= MAX_DEPTH {
                    break;
                }
                found.begin(tag.local_name().as_ref());
            }
            Ok(Event::End(tag)) if tag.local_name().as_ref() == "PhoronixTestSuite" => {
                found.whole.torn = false;
                break;
            }
            Ok(Event::End(tag)) => found.end(tag.local_name().as_ref()),
            Ok(Event::Text(text)) => found.text.push_str(&text),
            Ok(Event::CData(text)) => found.text.push_str(&text),
            Ok(Event::GeneralRef(name)) => found.reference(&name),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    found.whole
}

/// The elements that are open, and what is in them so far.
#[derive(Default)]
struct Building {
    path: Vec<String>,
    text: String,
    system: System,
    test: Test,
    entry: Entry,
    whole: Composite,
    entries: usize,
}

impl Building {
    fn begin(&mut self, name: &str) {
        self.text.clear();
        match name {
            "System" => self.system = System::default(),
            "Result" => self.test = Test::default(),
            "Entry" => self.entry = Entry::default(),
            _ => {}
        }
        self.path.push(name.to_string());
    }

    /// A character by its number, or one of the five names that need no declaration.
    fn reference(&mut self, name: &BytesRef) {
        let character = name.resolve_char_ref().ok().flatten();
        match (character, resolve_predefined_entity(name)) {
            (Some(character), _) => self.text.push(character),
            (None, Some(text)) => self.text.push_str(text),
            (None, None) => self.text.push_str(&format!("&{};", &**name)),
        }
    }

    /// Ends the innermost element of this name, and what was left open in it.
    fn end(&mut self, name: &str) {
        let Some(depth) = self.path.iter().rposition(|open| open == name) else { return };
        let is_innermost = depth + 1 == self.path.len();
        self.path.truncate(depth);
        let inside = self.path.last().map_or("", String::as_str).to_string();
        let text = std::mem::take(&mut self.text).trim().to_string();
        match (inside.as_str(), name) {
            (_, "System") => {
                let known = self.whole.systems.iter().any(|one| one.identifier == self.system.identifier);
                if !known && self.whole.systems.len() < MAX_SYSTEMS {
                    self.whole.systems.push(std::mem::take(&mut self.system));
                }
            }
            (_, "Result") => self.whole.results.push(std::mem::take(&mut self.test)),
            (_, "Entry") if self.entries >= MAX_ENTRIES => self.whole.left_out += 1,
            (_, "Entry") => {
                self.entries += 1;
                self.test.entries.push(std::mem::take(&mut self.entry));
            }
            // What is in others is no field.
            _ if !is_innermost => {}
            _ => self.field(&inside, name, text),
        }
    }

    fn field(&mut self, inside: &str, name: &str, text: String) {
        let (system, test, entry) = (&mut self.system, &mut self.test, &mut self.entry);
        let place = match (inside, name) {
            ("System", "Identifier") => &mut system.identifier,
            ("System", "Hardware") => &mut system.hardware,
            ("System", "Software") => &mut system.software,
            ("System", "TimeStamp") => &mut system.time,
            ("System", "TestClientVersion") => &mut system.client,
            ("System", "JSON") => &mut system.json,
            ("Result", "Identifier") => &mut test.identifier,
            ("Result", "Title") => &mut test.title,
            ("Result", "AppVersion") => &mut test.version,
            ("Result", "Arguments") => &mut test.arguments,
            ("Result", "Description") => &mut test.description,
            ("Result", "Scale") => &mut test.scale,
            ("Result", "Proportion") => &mut test.proportion,
            ("Result", "DisplayFormat") => &mut test.display,
            ("Entry", "Identifier") => &mut entry.system,
            ("Entry", "Value") => &mut entry.value,
            ("Entry", "RawString") => &mut entry.raw,
            ("Entry", "JSON") => &mut entry.json,
            _ => return,
        };
        fill(place, text).then(|| self.test.mixed = true);
    }
}

/// Fills a field; whether it had another text before.
fn fill(place: &mut String, text: String) -> bool {
    let again = !place.is_empty() && *place != text;
    if place.is_empty() {
        *place = text;
    }
    again
}

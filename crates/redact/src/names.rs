//! What became what: for each original one replacement, the same in all runs of a bundle.

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a replaced text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Host,
    Label,
    Uuid,
    Mac,
    Ip,
    Email,
    Path,
    Group,
    Process,
    Pid,
    Program,
    Device,
    Redacted,
}

impl Kind {
    pub const ALL: [Kind; 13] = [
        Kind::Host,
        Kind::Label,
        Kind::Uuid,
        Kind::Mac,
        Kind::Ip,
        Kind::Email,
        Kind::Path,
        Kind::Group,
        Kind::Process,
        Kind::Pid,
        Kind::Program,
        Kind::Device,
        Kind::Redacted,
    ];

    /// What replacements of this kind begin with.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Label => "label",
            Kind::Uuid => "uuid",
            Kind::Mac => "mac",
            Kind::Ip => "ip",
            Kind::Email => "email",
            Kind::Path => "path",
            Kind::Group => "group",
            Kind::Process => "process",
            Kind::Pid => "pid",
            Kind::Program => "program",
            Kind::Device => "device",
            Kind::Redacted => "redacted",
        }
    }
}

/// One original, as it was met first.
struct Known {
    kind: Kind,
    replacement: String,
    original: String,
}

/// Original (in small letters) to replacement.
#[derive(Default)]
pub struct Names {
    known: HashMap<String, Known>,
    taken: HashMap<Kind, usize>,
    given: HashSet<String>,
    /// Texts of an owner's that look like replacements.
    avoided: HashSet<String>,
}

impl Names {
    /// The replacement of an original, as this kind where it is new.
    pub fn of(&mut self, kind: Kind, original: &str) -> String {
        let key = original.to_lowercase();
        if let Some(known) = self.known.get(&key) {
            return known.replacement.clone();
        }
        let replacement = loop {
            let number = self.taken.entry(kind).or_default();
            *number += 1;
            let one = format!("{}-{number}", kind.word());
            if one != key && !self.known.contains_key(&one) && !self.avoided.contains(&one) {
                break one;
            }
        };
        self.given.insert(replacement.clone());
        let original = original.to_string();
        self.known.insert(key, Known { kind, replacement: replacement.clone(), original });
        replacement
    }

    /// An owner may call a host `host-1` himself: what looks so in a text is no replacement.
    pub fn avoid(&mut self, text: &str) {
        for (at, _) in text.match_indices('-') {
            let number: String = text[at + 1..].chars().take_while(char::is_ascii_digit).collect();
            let lead = text[..at].bytes().rev().take_while(u8::is_ascii_alphabetic).count();
            let word = text[at - lead..at].to_lowercase();
            if !number.is_empty() && Kind::ALL.iter().any(|kind| word == kind.word()) {
                self.avoided.insert(format!("{word}-{number}"));
            }
        }
    }

    /// The replacement of what was met before.
    pub fn known(&self, original: &str) -> Option<&str> {
        self.known.get(&original.to_lowercase()).map(|known| known.replacement.as_str())
    }

    /// Originals with their kinds.
    pub fn originals(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.known.values().map(|known| (known.original.as_str(), known.kind))
    }

    /// How many originals of each kind were replaced.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for known in self.known.values() {
            *counts.entry(known.kind).or_default() += 1;
        }
        counts
    }

    /// Replacement to original, for the owner.
    pub fn mapping(&self) -> BTreeMap<&str, &str> {
        self.known.values().map(|known| (known.replacement.as_str(), known.original.as_str())).collect()
    }

    /// Whether a text is a replacement.
    pub fn is_given(&self, text: &str) -> bool {
        self.given.contains(text)
    }

    /// The names of a mapping that was saved.
    pub fn of_mapping(mapping: BTreeMap<String, String>) -> Names {
        let mut names = Names::default();
        for (replacement, original) in mapping {
            let word = replacement.rsplit_once('-').map_or("", |(word, _)| word);
            let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word).unwrap_or(Kind::Redacted);
            names.given.insert(replacement.clone());
            names.known.insert(original.to_lowercase(), Known { kind, replacement, original });
        }
        names
    }
}

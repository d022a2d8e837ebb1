//! The host's own text, as read: path to entry.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::BLANKED;

/// One thing read from the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file's text, exactly as read.
    Text(String),
    /// A file that is not UTF-8 (SMBIOS tables, a hostile DMI string).
    Bytes(Vec<u8>),
    /// A symbolic link's target.
    Link(String),
    /// The file exists but could not be read: the errno.
    Failed(i32),
}

/// Everything that was read from a machine: absolute path (or `probe:NAME/...` for what is no file)
/// to entry.
///
/// A host's description is derived from it and never stored, so a better parser improves old
/// runs. In JSON it is a tree of path components, so that shared prefixes are written once: an
/// object is a folder, a string is a file's text, `["bytes", "6162"]`, `["link", "../x"]` and
/// `["errno", 13]` are the other entries. What identifies an owner is blanked when it is read from
/// there (see [`Snapshot::blank`]): files of older versions hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub entries: BTreeMap<String, Entry>,
}

impl Snapshot {
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// A file's text without surrounding white space; `None` where it is missing, unreadable or not
    /// text.
    pub fn text(&self, path: &str) -> Option<&str> {
        match self.entries.get(path)? {
            Entry::Text(text) => Some(text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0')),
            _ => None,
        }
    }

    /// A file's text with invalid UTF-8 replaced, trimmed: for strings that only people read (DMI
    /// names).
    pub fn lossy(&self, path: &str) -> Option<String> {
        match self.entries.get(path)? {
            Entry::Text(text) => Some(text.trim().to_string()),
            Entry::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).trim().to_string()),
            _ => None,
        }
    }

    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The entries below a folder (given without its final slash), in path order, with their full
    /// paths.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a Entry)> + 'a {
        let start = format!("{folder}/");
        self.entries
            .range(start.clone()..)
            .take_while(move |(path, _)| path.starts_with(&start))
            .map(|(path, entry)| (path.as_str(), entry))
    }

    /// The names directly inside a folder, files and folders alike, each once, in byte order.
    pub fn children<'a>(&'a self, folder: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for (path, _) in self.below(folder) {
            let rest = &path[folder.len() + 1..];
            let name = rest.split('/').next().unwrap_or(rest);
            if names.last() != Some(&name) {
                names.push(name);
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Numbers N of the children `prefixN` of a folder, in rising order (`cpu0`, `cpu10`, `cpufreq`
    /// gives 0, 10).
    pub fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .children(folder)
            .into_iter()
            .filter_map(|name| plain_number(name.strip_prefix(prefix)?))
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

/// A number as the kernel names folders: `+1` and `01` are other names, which no path made of the
/// number would find.
fn plain_number(digits: &str) -> Option<u32> {
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| plain)
}

/// A folder while the tree is built for writing.
#[derive(Default)]
struct Folder<'a> {
    folders: BTreeMap<&'a str, Folder<'a>>,
    files: BTreeMap<&'a str, &'a Entry>,
}

impl Serialize for Folder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, folder) in &self.folders {
            // A path that is file and folder at once (only a damaged snapshot has one) keeps both:
            // folders end in a slash.
            if self.files.contains_key(name) {
                map.serialize_entry(&format!("{name}/"), folder)?
            } else {
                map.serialize_entry(name, folder)?
            }
        }
        for (name, entry) in &self.files {
            map.serialize_entry(name, entry)?;
        }
        map.end()
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Entry::Text(text) => serializer.serialize_str(text),
            Entry::Bytes(bytes) => {
                let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                ("bytes", hex).serialize(serializer)
            }
            Entry::Link(target) => ("link", target).serialize(serializer),
            Entry::Failed(errno) => ("errno", errno).serialize(serializer),
        }
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut root = Folder::default();
        for (path, entry) in &self.entries {
            // The first component keeps what stands before the first slash: "" for /proc,
            // "probe:cpuid" for probes. Deeper folders than Assay reads are part of the
            // file name: writing must end, and be readable.
            let mut components = path.splitn(MAX_DEPTH, '/').peekable();
            let mut folder = &mut root;
            while let Some(name) = components.next() {
                match components.peek() {
                    Some(_) => folder = folder.folders.entry(name).or_default(),
                    None => {
                        folder.files.insert(name, entry);
                    }
                }
            }
        }
        root.serialize(serializer)
    }
}

/// A node of the tree while it is read: a folder's flattened content, or an entry.
enum Node {
    Folder(Vec<(String, Entry)>),
    File(Entry),
}

/// Deeper trees are refused: no path of /proc or /sys but those of nested control groups comes
/// near, and recursion must end (that of the JSON reader does at 128).
const MAX_DEPTH: usize = 64;

struct NodeVisitor {
    depth: usize,
}

impl<'de> serde::de::DeserializeSeed<'de> for NodeVisitor {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a folder (object), a text (string) or [\"bytes\"|\"link\"|\"errno\", value]")
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::File(Entry::Text(text.to_string())))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::File(Entry::Text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let kind: String = seq.next_element()?.ok_or_else(|| A::Error::custom("an empty entry"))?;
        let missing = || A::Error::custom(format!("the entry {kind:?} has no value"));
        let entry = match kind.as_str() {
            "bytes" => {
                let hex: String = seq.next_element()?.ok_or_else(missing)?;
                Entry::Bytes(unhex(&hex).ok_or_else(|| A::Error::custom("bytes that are not hexadecimal"))?)
            }
            "link" => Entry::Link(seq.next_element()?.ok_or_else(missing)?),
            "errno" => Entry::Failed(seq.next_element()?.ok_or_else(missing)?),
            other => return Err(A::Error::custom(format!("an entry of unknown kind {other:?}"))),
        };
        while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Node::File(entry))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        if self.depth >= MAX_DEPTH {
            return Err(A::Error::custom("a snapshot nested too deeply"));
        }
        let mut content = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            match map.next_value_seed(NodeVisitor { depth: self.depth + 1 })? {
                Node::File(entry) => content.push((name, entry)),
                Node::Folder(inner) => {
                    let name = name.strip_suffix('/').unwrap_or(&name);
                    content.extend(inner.into_iter().map(|(path, entry)| (format!("{name}/{path}"), entry)));
                }
            }
        }
        Ok(Node::Folder(content))
    }
}

fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits?;
    if digits.len() % 2 != 0 {
        return None;
    }
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Snapshot, D::Error> {
        match deserializer.deserialize_map(NodeVisitor { depth: 0 })? {
            Node::Folder(content) => {
                let mut snapshot = Snapshot { entries: content.into_iter().collect() };
                let before = snapshot.clone();
                snapshot.blank();
                if snapshot != before {
                    snapshot.entries.insert(BLANKED.to_string(), Entry::Text(String::new()));
                }
                Ok(snapshot)
            }
            Node::File(_) => Err(D::Error::custom("a snapshot must be an object")),
        }
    }
}

impl schemars::JsonSchema for Snapshot {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Snapshot".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "A tree of path components: object = folder, string = text as read, \
                            [\"bytes\", hex], [\"link\", target], [\"errno\", number]",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Snapshot {
        let entries = [
            ("/proc/cpuinfo", Entry::Text("processor\t: 0\n".into())),
            ("/sys/devices/system/cpu/cpu0/online", Entry::Text("1\n".into())),
            ("/sys/devices/system/cpu/cpu10/online", Entry::Failed(13)),
            ("/sys/devices/system/cpu/cpufreq/x", Entry::Link("../policy0".into())),
            ("/sys/class/dmi/id/product_name", Entry::Bytes(vec![0xff, 0x00, 0x41])),
            ("probe:affinity", Entry::Text("0-1".into())),
            ("probe:cpuid/0", Entry::Text("0 0: 1 2 3 4".into())),
        ];
        Snapshot { entries: entries.into_iter().map(|(path, entry)| (path.to_string(), entry)).collect() }
    }

    #[test]
    fn round_trips_as_a_tree() {
        let snapshot = sample();
        let json = serde_json::to_string(&snapshot).expect("serialises");
        assert_eq!(serde_json::from_str::<Snapshot>(&json).expect("reads back"), snapshot);
        assert!(json.len() < 400, "shared prefixes are written once: {json}");
    }

    #[test]
    fn file_and_folder_of_one_name_survive() {
        let mut snapshot = sample();
        snapshot.entries.insert("/proc/cpuinfo/odd".into(), Entry::Text("x".into()));
        let json = serde_json::to_string(&snapshot).expect("serialises");
        assert_eq!(serde_json::from_str::<Snapshot>(&json).expect("reads back"), snapshot);
    }

    #[test]
    fn lookups() {
        let snapshot = sample();
        assert_eq!(snapshot.numbered("/sys/devices/system/cpu", "cpu"), vec![0, 10]);
        assert_eq!(
            ["0", "7", "07", "+7", "00", "", "-0"].map(plain_number),
            [Some(0), Some(7), None, None, None, None, None]
        );
        assert_eq!(snapshot.number::<u32>("/sys/devices/system/cpu/cpu0/online"), Some(1));
        assert_eq!(snapshot.text("/sys/class/dmi/id/product_name"), None);
        assert_eq!(snapshot.lossy("/sys/class/dmi/id/product_name").as_deref(), Some("\u{fffd}\0A"));
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}\"x\"{}", "{\"a\":".repeat(100), "}".repeat(100));
        assert!(serde_json::from_str::<Snapshot>(&deep).is_err());
        // Names may hold slashes: a path of a hundred thousand folders is written without as many
        // calls, and read back.
        let entry = |path: String| (path, Entry::Text("x".into()));
        let paths = ["/a".repeat(100_000), "/a".repeat(62), "/a".repeat(63), "/".repeat(64), "/".repeat(65)];
        let snapshot = Snapshot { entries: paths.into_iter().map(entry).collect() };
        let json = serde_json::to_string(&snapshot).expect("serialises");
        assert_eq!(serde_json::from_str::<Snapshot>(&json).expect("reads back"), snapshot);
    }
}

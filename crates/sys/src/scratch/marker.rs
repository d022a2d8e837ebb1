//! The marker of a scratch directory: the file that its owner writes first, to prove later that
//! Assay made the directory.

use std::ffi::CStr;

use rustix::fs::Stat;

use crate::counters;

/// File name of the marker.
pub const NAME: &CStr = c".assay-owner";
/// Prefix of every scratch directory's name; the owner's process id and a random number follow.
pub const PREFIX: &str = "assay-files-";
/// Every marker is shorter, bytes.
pub const MAX_BYTES: usize = 4096;

/// The name of a scratch directory, which its marker repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub process: u32,
    pub nonce: u64,
}

/// Which version of Assay may have given a folder its name.
#[derive(Debug, PartialEq, Eq)]
pub enum NameForm {
    /// Today's form: the folder must contain a marker.
    WithMarker(Name),
    /// The form of version 0.1.0, which wrote no marker.
    Version010,
}

impl Name {
    pub fn text(self) -> String {
        format!("{PREFIX}{}-{:016x}", self.process, self.nonce)
    }
}

/// The form of a folder's name; `None` if Assay never gives such names.
pub fn form_of_name(name: &str) -> Option<NameForm> {
    let (older, rest) = match name.strip_prefix("assay-tree-") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix(PREFIX)?),
    };
    let (process, nonce) = rest.split_once('-')?;
    let hex = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let process: u32 = process.parse().ok().filter(|number: &u32| number.to_string() == process)?;
    let number = u64::from_str_radix(nonce, 16).ok().filter(|_| nonce.bytes().all(hex))?;
    match nonce.len() {
        8 => Some(NameForm::Version010),
        16 if !older => Some(NameForm::WithMarker(Name { process, nonce: number })),
        _ => None,
    }
}

/// The content of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    pub name: Name,
    /// When the owner was started, ticks since the boot; for people who find the marker.
    started: u64,
    /// The identifier of that boot.
    boot: String,
    pub user: u32,
    /// Device and inode of the folder: a copy has another inode.
    pub folder: (u64, u64),
    /// Names that the owner creates; `#` stands for digits, `/` ends a folder's name, `|` a FIFO's,
    /// `@` a link's.
    pub holds: Vec<String>,
}

impl Marker {
    /// The marker of a folder that the calling process has made.
    pub fn of_this_process(name: Name, folder: &Stat, holds: &[&str]) -> Marker {
        Marker {
            name,
            started: counters::start_ticks().unwrap_or(0),
            boot: counters::boot_id().unwrap_or_else(|| "unknown".to_string()),
            user: folder.st_uid,
            folder: (folder.st_dev, folder.st_ino),
            holds: holds.iter().map(|name| name.to_string()).collect(),
        }
    }

    pub fn text(&self) -> String {
        let (device, number) = self.folder;
        let holds: String = self.holds.iter().map(|name| format!("holds {name}\n")).collect();
        format!(
            "assay-scratch 1\nnonce {:016x}\nprocess {} {}\nboot {}\nuser {}\nfolder {device} {number}\n{holds}end\n",
            self.name.nonce, self.name.process, self.started, self.boot, self.user
        )
    }

    /// Parses exactly what [`Marker::text`] writes.
    pub fn parse(text: &str) -> Option<Marker> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(str::to_string);
        (value("assay-scratch")? == "1").then_some(())?;
        let nonce = u64::from_str_radix(&value("nonce")?, 16).ok()?;
        let two_numbers = |text: String| {
            let (first, second) = text.split_once(' ')?;
            Some((first.parse::<u64>().ok()?, second.parse::<u64>().ok()?))
        };
        let (process, started) = two_numbers(value("process")?)?;
        let (boot, user) = (value("boot")?, value("user")?.parse().ok()?);
        let folder = two_numbers(value("folder")?)?;
        let holds = lines.filter_map(|line| line.strip_prefix("holds ")).map(str::to_string).collect();
        let name = Name { process: process.try_into().ok()?, nonce };
        let marker = Marker { name, started, boot, user, folder, holds };
        (marker.text() == text).then_some(marker)
    }

    /// Whether the owner creates this name with this kind (`/`: a folder, `|`: a FIFO, `@`: a link,
    /// `None`: a file).
    pub fn declares(&self, name: &str, kind: Option<char>) -> bool {
        self.holds.iter().any(|pattern| {
            let (plain, declared_kind) = match pattern.strip_suffix(['/', '|', '@']) {
                Some(plain) => (plain, pattern.chars().next_back()),
                None => (pattern.as_str(), None),
            };
            declared_kind == kind && matches(plain, name)
        })
    }

    /// Whether programs may create this name inside one of the owner's folders: any name, unless
    /// patterns such as `tmp/flink-*` restrict the prefix.
    pub fn declares_inside(&self, folder: &str, name: &str) -> bool {
        let inside = |pattern: &'_ String| {
            let prefix = pattern.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix('*')?;
            Some(name.starts_with(prefix))
        };
        let mut matches = self.holds.iter().filter_map(inside).peekable();
        matches.peek().is_none() || matches.any(|matches| matches)
    }
}

/// `#` stands for one digit or more.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('#') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && matches(after, &rest[digits..])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_ours() {
        let name = Name { process: 17, nonce: 0xab };
        assert_eq!(form_of_name(&name.text()), Some(NameForm::WithMarker(name)));
        for older in ["assay-files-1-0000abcd", "assay-tree-4194304-deadbeef"] {
            assert_eq!(form_of_name(older), Some(NameForm::Version010), "{older}");
        }
        let wrong = [
            "assay-tree-src",
            "assay-files-results",
            "assay-files-1-0",
            "assay-files-01-00000000000000ab",
            "assay-files-+1-00000000000000ab",
            "assay-files-1-00000000000000AB",
            "assay-files-1-+0000000000000ab",
            "assay-files-1-00000000000000ab2",
            "assay-files-1-00000000000000ab~",
            "assay-tree-1-00000000000000ab",
            "my-assay-files-1-00000000000000ab",
            "assay-files-99999999999-00000000000000ab",
        ];
        wrong.iter().for_each(|wrong| assert_eq!(form_of_name(wrong), None, "{wrong}"));
    }

    #[test]
    fn a_marker_is_read_back_whole_or_not_at_all() {
        let marker = Marker {
            name: Name { process: 17, nonce: 3 },
            started: 5,
            boot: "b".into(),
            user: 0,
            folder: (64, 2),
            holds: vec!["f#".into(), "tmp/".into(), "to-ping|".into()],
        };
        let text = marker.text();
        assert!(text.len() < MAX_BYTES);
        assert_eq!(Marker::parse(&text), Some(marker));
        (0..text.len()).for_each(|cut| assert_eq!(Marker::parse(&text[..cut]), None, "{cut}"));
        for (one, other) in [(" 1\n", " 2\n"), ("holds f#", "holds"), ("end", "x\nend"), ("boot", "root")] {
            assert_eq!(Marker::parse(&text.replacen(one, other, 1)), None, "{other}");
        }
    }

    #[test]
    fn names_are_declared_with_their_kind() {
        let holds = ["f#", "taskmanager-#.log", "tmp/", "to-ping|"].map(String::from).to_vec();
        let name = Name { process: 1, nonce: 1 };
        let marker = Marker { name, started: 0, boot: String::new(), user: 0, folder: (0, 0), holds };
        for (name, kind) in
            [("f000001", None), ("taskmanager-12.log", None), ("tmp", Some('/')), ("to-ping", Some('|'))]
        {
            assert!(marker.declares(name, kind), "{name}");
        }
        for (name, kind) in [
            ("f", None),
            ("f1a", None),
            ("taskmanager-.log", None),
            ("taskmanager-1.logs", None),
            ("tmp", None),
            ("tmp/", Some('/')),
            ("to-ping", None),
            ("f1", Some('/')),
            ("#", None),
        ] {
            assert!(!marker.declares(name, kind), "{name}");
        }
        let holds = ["tmp/", "tmp/flink-*", "tmp/tm_*", "package/"].map(String::from).to_vec();
        let marker = Marker { holds, ..marker };
        assert!(marker.declares("tmp", Some('/')));
        for (folder, name, declared) in
            [("tmp", "flink-io-1", true), ("tmp", "notes.txt", false), ("package", "notes.txt", true)]
        {
            assert_eq!(marker.declares_inside(folder, name), declared, "{name}");
        }
    }
}

//! SUSE's supportconfig (`scc_HOST_….txz`, older `nts_HOST_….tbz`): text files of sections, each of
//! a file's content or of what a command printed.
//!
//! A section begins with `#==[ Command ]=…#` or `#==[ Configuration File ]=…#`, and the line below
//! names the command or the file. The shape is that which `supportconfig.rc` of supportutils writes
//! (read there, not copied); it leaves out empty lines of files, and those that begin with `#`.

use std::collections::BTreeMap;

use model::Entry;

use super::files::Node;
use super::{Files, Layout, MAX_PRINTED, MAX_PRINTOUT_BYTES, Opened, Output, is_of_tool};
use crate::tree::Tree;

pub(super) const LAYOUT: Layout = Layout { name: "supportconfig", sign: "basic-environment.txt", open };

/// Files with sections about the host.
pub(super) const FILES: &[&str] = &[
    "basic-environment.txt",
    "boot.txt",
    "env.txt",
    "hardware.txt",
    "memory.txt",
    "network.txt",
    "proc.txt",
    "security-apparmor.txt",
    "sysfs.txt",
];

fn open(tree: Tree) -> Opened {
    let mut taken = Taken { files: Files::new(), outputs: Vec::new(), members: BTreeMap::new() };
    for name in FILES {
        let text = match tree.read_up_to(&format!("/{name}"), MAX_PRINTOUT_BYTES) {
            Some(Entry::Text(text)) => text,
            Some(Entry::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => continue,
        };
        for section in sections(&text) {
            taken.take(&section, name);
        }
    }
    Opened { tree: Tree::of_files(taken.files), outputs: taken.outputs, members: taken.members }
}

/// Sections read so far.
struct Taken {
    files: Files,
    outputs: Vec<Output>,
    /// The file in which a path's section stands.
    members: BTreeMap<String, String>,
}

struct Section<'a> {
    /// `Command`, `Configuration File`, …
    kind: &'a str,
    /// The line below, without its mark.
    title: &'a str,
    body: &'a str,
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("#==[ ") {
        let begins_a_line = at == 0 || rest.as_bytes()[at - 1] == b'\n';
        rest = &rest[at + 5..];
        let Some((kind, below)) = rest.split_once('\n').filter(|_| begins_a_line) else { continue };
        let Some((kind, _)) = kind.split_once(" ]") else { continue };
        let Some((title, below)) = below.split_once('\n') else { continue };
        let Some(title) = title.strip_prefix("# ") else { continue };
        let end = below.find("\n#==[ ").map_or(below.len(), |end| end + 1);
        let body = if below.starts_with("#==[ ") { "" } else { &below[..end] };
        found.push(Section { kind, title: title.trim(), body });
    }
    found
}

impl Taken {
    fn take(&mut self, section: &Section, name: &str) {
        let mut words = section.title.split_whitespace();
        let first = words.next().unwrap_or("");
        let is_command = section.kind == "Command";
        let program = first.rsplit('/').next().unwrap_or(first);
        match (is_command, program, words.next()) {
            (false, _, None) => self.keep(first, section.body, name),
            (true, "cat", Some(path)) if words.next().is_none() => self.keep(path, section.body, name),
            // `grep -H . /sys/devices/system/cpu/vulnerabilities/*`
            (true, "grep", Some("-H")) => {
                for (path, value) in section.body.lines().filter_map(|line| line.split_once(':')) {
                    self.keep(path, value, name);
                }
            }
            (true, ..) if is_of_tool(program) => {
                let known = self.outputs.iter().filter(|known| known.command == program);
                if known.count() < MAX_PRINTED {
                    self.outputs.push(Output {
                        command: program.to_string(),
                        source: name.to_string(),
                        bytes: section.body.as_bytes().to_vec(),
                    });
                }
            }
            _ => {}
        }
    }

    /// A file of /proc or /sys, as first reported.
    fn keep(&mut self, path: &str, body: &str, name: &str) {
        let of_machine =
            ["/proc/", "/sys/"].iter().any(|root| path.starts_with(root)) || path == "/etc/hostname";
        if of_machine && self.files.plain(path).is_none() {
            let body = body.trim_end_matches('\n').as_bytes().to_vec();
            self.files.insert(path, Node::File(body));
            self.members.insert(path.to_string(), name.to_string());
        }
    }
}

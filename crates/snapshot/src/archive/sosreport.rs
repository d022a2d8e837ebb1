//! `sosreport-HOST-….tar.xz`: copies of /proc and /sys, and what commands printed below
//! `sos_commands`, a folder a plugin. Links in its top folder (`dmidecode`) lead there.

use std::collections::BTreeMap;

use super::{Layout, Opened, outputs};
use crate::tree::Tree;

pub(super) const LAYOUT: Layout = Layout { name: "sosreport", sign: "sos_commands", open };

fn open(tree: Tree) -> Opened {
    let plugins = tree.names("/sos_commands");
    let folders = plugins.iter().map(|plugin| format!("/sos_commands/{plugin}"));
    let mut found = outputs(&tree, folders);
    // Old reports keep some beside the folder.
    let mut beside = outputs(&tree, [String::new()]);
    beside.retain(|output| found.iter().all(|known| known.command != output.command));
    found.extend(beside);
    Opened { tree, outputs: found, members: BTreeMap::new() }
}

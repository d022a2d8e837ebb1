//! `sosreport-HOST-….tar.xz`: copies of /proc and /sys, and what commands printed below
//! `sos_commands`, a folder a plugin. Links in its top folder (`dmidecode`) lead there.

use super::{Layout, Output, outputs};
use crate::tree::Tree;

pub(super) const LAYOUT: Layout = Layout { name: "sosreport", sign: "sos_commands", open };

fn open(tree: Tree) -> (Tree, Vec<Output>) {
    let plugins = tree.names("/sos_commands");
    let folders = plugins.iter().map(|plugin| format!("/sos_commands/{plugin}"));
    let mut found: Vec<Output> = folders.flat_map(|folder| outputs(&tree, &folder)).collect();
    // Old reports keep some beside the folder.
    for output in outputs(&tree, "") {
        if found.iter().all(|known| known.command != output.command) {
            found.push(output);
        }
    }
    (tree, found)
}

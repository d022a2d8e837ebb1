//! `insights-HOST-….tar.gz`: copies of files, and what commands printed in `insights_commands`;
//! both below `data` since insights-core collects them.

use super::{Layout, Output, outputs};
use crate::tree::Tree;

pub(super) const LAYOUT: Layout = Layout { name: "insights", sign: "insights_commands", open };

fn open(tree: Tree) -> (Tree, Vec<Output>) {
    let found = outputs(&tree, "/insights_commands");
    (tree, found)
}

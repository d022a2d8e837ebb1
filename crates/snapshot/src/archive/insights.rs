//! `insights-HOST-….tar.gz`: copies of files, and what commands printed in `insights_commands`;
//! both below `data` since insights-core collects them.

use std::collections::BTreeMap;

use super::{Layout, Opened, outputs};
use crate::tree::Tree;

pub(super) const LAYOUT: Layout = Layout { name: "insights", sign: "insights_commands", open };

fn open(tree: Tree) -> Opened {
    let outputs = outputs(&tree, ["/insights_commands".to_string()]);
    Opened { tree, outputs, members: BTreeMap::new() }
}

//! What a study shows of its own on a first screen: a table or a picture, where it fits.

use super::{Style, table};
use crate::block::Block;

/// Its lines; none where there is no room for them.
pub fn picture(block: &Block, style: Style) -> Vec<String> {
    let drawn = |style: Style| match block {
        Block::Table(table) => table::in_columns(table, style),
        block => super::render_block(block, false, style),
    };
    // Colours take no columns.
    let bare = drawn(Style { color: false, ..style });
    let lines = || bare.lines().map(str::trim_end);
    let most = if style.width < NARROW { PICTURE * 3 / 2 } else { PICTURE };
    if lines().count() <= most && lines().all(|line| line.chars().count() <= style.width) {
        drawn(style).lines().map(|line| line.trim_end().to_string()).collect()
    } else {
        Vec::new()
    }
}

/// Lines of a table or picture at most; on a terminal narrower than `NARROW` half as many again.
const PICTURE: usize = 22;
const NARROW: usize = 78;

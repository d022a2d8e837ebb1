//! A machine as people read it in a terminal.

use crate::machine::Machine;

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub color: bool,
    pub unicode: bool,
    pub width: usize,
}

pub fn draw(machine: &Machine, _style: Style) -> String {
    format!("{machine:#?}")
}

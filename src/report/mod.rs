//! What people read: findings, series and machines as text, HTML, Markdown and tables.

pub mod block;
pub mod html;
pub mod plain;
pub mod text_machine;

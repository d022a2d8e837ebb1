//! Assay from the outside: the real program, driven as a user does, and its report in a real browser.

mod browser;
mod machine;
mod synthetic;

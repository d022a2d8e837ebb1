//! Drives the real program, as a user does.

mod machine;
mod synthetic;

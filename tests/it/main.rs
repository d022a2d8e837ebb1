//! Assay from the outside.

mod browser;

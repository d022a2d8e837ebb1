//! Each rule with its fault and with a clean run.

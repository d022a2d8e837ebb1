//! Arguments, verb, exit code.

#![no_main]

use assay::sys::memory::Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

assay::main!(assay::cmd::start);

//! Arguments, verb, exit code.

#![no_main]

use sys::memory::Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

sys::main!(assay::start);

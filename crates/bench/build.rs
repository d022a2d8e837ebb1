//! Passes the compiler's name to the program: Dhrystone measures the compiler as much as the CPU.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let told = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    // "rustc 1.95.0 (commit date)": the name and the version.
    let words: Vec<&str> = told.split_whitespace().take(2).collect();
    let name = if words.len() == 2 { words.join(" ") } else { "an unknown rustc".to_string() };
    println!("cargo:rustc-env=ASSAY_COMPILER={name}");
    println!("cargo:rerun-if-changed=build.rs");
}

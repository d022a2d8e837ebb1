//! Links the program to a fixed address, and packs the sources that `assay explain ID --code`
//! prints.
//!
//! The address: each visit is a process that begins as this program, and without link-time
//! optimisation it has so many relocations that they took longer than the rest of `assay
//! --version`.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The crates whose sources measure: rows and harness, timed loops, wrappers of the kernel's calls.
const PACKED: [&str; 3] = ["bench", "kernels", "sys"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let has = |name: &str, value: &str| {
        std::env::var(name).is_ok_and(|found| found.split(',').any(|one| one == value))
    };
    // .cargo/config.toml does the same for the static program: it would crash with `-no-pie` alone.
    let is_static = has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    pack_sources().expect("the sources of bench, kernels and sys can be read and packed");
}

/// Writes `sources.deflate`: for each file a line `PATH BYTES`, then its text without tests.
fn pack_sources() -> std::io::Result<()> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let crates = variable("CARGO_MANIFEST_DIR").join("..");
    let other = match variable("CARGO_CFG_TARGET_ARCH").to_str() {
        Some("x86_64") => "aarch64",
        _ => "x86_64",
    };
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    for name in PACKED {
        let folder = crates.join(name).join("src");
        println!("cargo:rerun-if-changed={}", folder.display());
        for file in sources_in(&folder)? {
            let inside = file.strip_prefix(&crates).unwrap_or(&file).to_string_lossy().into_owned();
            let is_test =
                file.ends_with("tests.rs") || file.ends_with("rehearsal.rs") || inside.contains("/tests/");
            if is_test || inside.contains(other) {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            let text = text.split("\n#[cfg(test)]\nmod tests {\n").next().unwrap_or(&text);
            write!(packed, "crates/{inside} {}\n{text}", text.len())?;
        }
    }
    std::fs::write(variable("OUT_DIR").join("sources.deflate"), packed.finish()?)
}

/// All .rs files below a folder, sorted by path.
fn sources_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(sources_in(&path)?),
            false if path.extension().is_some_and(|kind| kind == "rs") => files.push(path),
            false => {}
        }
    }
    files.sort();
    Ok(files)
}

//! Links the program to a fixed address. Each visit is a process that begins as this program, and without link-time
//! optimisation it has so many relocations that they took longer than the rest of `assay --version`.

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
}

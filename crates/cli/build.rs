//! The program is linked to a fixed address. Each visit is a process that begins as this program, and to relocate it takes
//! longer than all else that such a start does. (The static program is told so in .cargo/config.toml.)

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let has = |name: &str, value: &str| {
        std::env::var(name).is_ok_and(|found| found.split(',').any(|one| one == value))
    };
    let is_static = has("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if has("CARGO_CFG_TARGET_OS", "linux") && has("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}

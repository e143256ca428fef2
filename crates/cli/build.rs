//! Records what built this binary, for `trawl --version --verbose`. Not by names that begin with `TRAWL_`: cargo also sets them when it
//! runs the binary, and there such names are settings.

use std::process::Command;

fn main() {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let rustc = Command::new(env("RUSTC")).arg("--version").output();
    let rustc = rustc.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo::rustc-env=BUILT_BY_RUSTC={rustc}");
    println!("cargo::rustc-env=BUILT_FOR_TARGET={}", env("TARGET"));
    println!("cargo::rustc-env=BUILT_WITH_PROFILE={}", env("PROFILE"));
    println!("cargo::rerun-if-changed=build.rs");
}

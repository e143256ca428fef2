//! Records what built this binary, for `trawl --version --verbose`.

use std::process::Command;

fn main() {
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let rustc = Command::new(env("RUSTC")).arg("--version").output();
    let rustc = rustc.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    println!("cargo::rustc-env=TRAWL_RUSTC={rustc}");
    println!("cargo::rustc-env=TRAWL_TARGET={}", env("TARGET"));
    println!("cargo::rustc-env=TRAWL_PROFILE={}", env("PROFILE"));
    println!("cargo::rerun-if-changed=build.rs");
}

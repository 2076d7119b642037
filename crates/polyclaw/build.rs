//! Tells the linker how to make the program smaller: of functions that are the same it keeps one, and it writes down
//! in few bytes what the loader has to move.

use std::path::Path;
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("TARGET").as_deref() == Ok(TARGET) && has_own_linker() {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        if loader_is_new() {
            println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// The C library's loader reads the short form since 2.36. A program linked against one does not run with an older one
/// anyway.
fn loader_is_new() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.trim().trim_start_matches("glibc ").split('.').map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(2)), Some(Ok(minor))) if minor >= 36)
}

/// Rust's makers ship a linker that knows how; where a distribution left it out, another one links.
fn has_own_linker() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&output.stdout);
    Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld").exists()
}

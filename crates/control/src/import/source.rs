//! The home of an OpenClaw gateway: its config with all includes, and the files next to it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use polyclaw_domain::audit::content_hash;
use polyclaw_domain::openclaw::{self, PairedSenders, TranslationNotes};
use serde_json::Value;

use crate::error::{Error, Result};

/// Names of the config file, the current one first.
const CONFIG_FILE_NAMES: [&str; 3] = ["openclaw.json", "moltbot.json", "clawdbot.json"];
/// The size limit of a config. Larger files are rejected.
const MAX_SOURCE_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_INCLUDE_DEPTH: usize = 10;
/// The number of files read for one import. A file counts each time it is included.
const MAX_INCLUDES: usize = 200;
const INCLUDE_KEY: &str = "$include";

pub struct OpenClawHome {
    file: PathBuf,
    pub root: PathBuf,
    pub config: Value,
    /// The hash of the config with all includes.
    pub digest: String,
}

impl OpenClawHome {
    pub fn open(path: &Path) -> Result<Self> {
        let missing = || Error::NoImport(path.display().to_string());
        let file = if path.is_dir() {
            CONFIG_FILE_NAMES
                .iter()
                .map(|name| path.join(name))
                .find(|file| file.is_file())
                .ok_or_else(missing)?
        } else {
            path.to_owned()
        };
        // The canonical path identifies the file however it is reached.
        let file = fs::canonicalize(&file).map_err(|_| missing())?;
        let root = file.parent().unwrap_or(Path::new("/")).to_owned();
        let config = IncludeReader { root: &root, left: MAX_INCLUDES }
            .resolve_includes(read_json5(&file)?, MAX_INCLUDE_DEPTH)?;
        if !config.is_object() {
            return Err(import_error(&file, "it is not a table"));
        }
        let digest = content_hash(config.to_string().as_bytes());
        Ok(Self { file, root, config, digest })
    }

    pub fn config_path(&self) -> String {
        self.file.display().to_string()
    }

    /// Derives a name from the folder: `.openclaw-work` becomes `openclaw-work`.
    pub fn name(&self) -> String {
        let folder = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = folder.trim_start_matches('.').chars().map(word).take(64).collect();
        let name = name.trim_matches('-').to_owned();
        if name.is_empty() { "openclaw".to_owned() } else { name }
    }

    pub fn read_cron_jobs(&self, notes: &mut TranslationNotes) -> Option<Value> {
        let file = self.root.join("cron/jobs.json");
        match file.exists().then(|| read_json5(&file)) {
            Some(Ok(jobs)) => Some(jobs),
            Some(Err(_)) => {
                notes.note_ignored("cron/jobs.json", "it cannot be read");
                None
            }
            None => None,
        }
    }

    /// Reads the variables of `.env` next to the config: `NAME=value` lines, with or without `export` and quotes.
    pub fn read_variables(&self) -> Vec<(String, String)> {
        let file = self.root.join(".env");
        let text = crate::file::read_text(&file, MAX_SOURCE_FILE_BYTES).unwrap_or_default();
        text.lines().filter_map(parse_variable).collect()
    }

    /// Reads the senders approved by pairing codes from `credentials/<channel>[-<account>]-allowFrom.json`.
    pub fn read_paired(&self, notes: &mut TranslationNotes) -> Vec<PairedSenders> {
        let folder = fs::read_dir(self.root.join("credentials")).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            folder.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        let mut found = Vec::new();
        for name in names {
            let Some(whose) = name.strip_suffix("-allowFrom.json") else { continue };
            let place = format!("credentials/{name}");
            let listed = read_json5(&self.root.join(&place)).ok().and_then(|value| {
                let ids = value["allowFrom"].as_array()?.iter();
                Some(
                    ids.filter_map(|id| {
                        id.as_str().map(str::to_owned).or_else(|| Some(id.as_i64()?.to_string()))
                    })
                    .collect(),
                )
            });
            let (channel, account) = match whose.split_once('-') {
                Some((channel, account)) => (channel, Some(account.to_lowercase())),
                None => (whose, None),
            };
            match listed {
                Some(ids) => found.push(PairedSenders { place, channel: channel.to_owned(), account, ids }),
                None => notes.note_ignored(&place, "it cannot be read"),
            }
        }
        found
    }

    /// Reads the key files, by agent name.
    pub fn read_profiles(&self) -> Vec<(String, Value)> {
        let agents = fs::read_dir(self.root.join("agents")).into_iter().flatten().flatten();
        let mut agents: Vec<String> =
            agents.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        agents.sort();
        let read = |agent: String| {
            let name = format!("agents/{agent}/agent/auth-profiles.json");
            read_json5(&self.root.join(&name)).ok().map(|value| (name, value))
        };
        agents.into_iter().filter_map(read).collect()
    }
}

fn parse_variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let inner = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    is_name
        .then(|| (name.to_owned(), inner.unwrap_or(value).to_owned()))
        .filter(|(_, value)| !value.is_empty())
}

/// Reads a JSON5 file.
pub fn read_json5(file: &Path) -> Result<Value> {
    let text = crate::file::read_text(file, MAX_SOURCE_FILE_BYTES).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => {
            import_error(file, "it is not a file, or too large to be a config")
        }
        _ => import_error(file, &error.to_string()),
    })?;
    openclaw::parse(&text).map_err(|broken| import_error(file, &broken.to_string()))
}

fn import_error(file: &Path, why: &str) -> Error {
    Error::BadImport { what: file.display().to_string(), why: why.to_owned() }
}

/// Resolves the includes of a config. Only files in its own folder are read.
struct IncludeReader<'a> {
    root: &'a Path,
    /// Number of files that may still be read.
    left: usize,
}

impl IncludeReader<'_> {
    /// Merges the included files. The table's own values take precedence.
    fn resolve_includes(&mut self, value: Value, depth: usize) -> Result<Value> {
        let Value::Object(mut map) = value else { return Ok(value) };
        let names = match map.shift_remove(INCLUDE_KEY) {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let mut base = Value::Object(serde_json::Map::new());
        for name in names {
            let named = self.root.join(&name);
            let file = fs::canonicalize(&named).map_err(|error| import_error(&named, &error.to_string()))?;
            if depth == 0 || !file.starts_with(self.root) {
                return Err(import_error(
                    &file,
                    "it is included from outside the folder, or nested too deeply",
                ));
            }
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                import_error(&file, &format!("more than {MAX_INCLUDES} files are included"))
            })?;
            merge_over(&mut base, self.resolve_includes(read_json5(&file)?, depth - 1)?);
        }
        for (key, value) in map {
            merge_over(&mut base, serde_json::json!({ key: self.resolve_includes(value, depth)? }));
        }
        Ok(base)
    }
}

fn merge_over(base: &mut Value, upper: Value) {
    match (base, upper) {
        (Value::Object(base), Value::Object(upper)) => {
            upper
                .into_iter()
                .for_each(|(key, value)| merge_over(base.entry(key).or_insert(Value::Null), value));
        }
        (base, upper) => *base = upper,
    }
}

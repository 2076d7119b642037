//! Builds the redactor of an instance from every source of its secrets.

use std::io::{self, Write};
use std::sync::Arc;

use polyclaw_control::file;
use polyclaw_control::log::{LOG_FILE_VARIABLE, RotatingLog};
use polyclaw_domain::config::Config;
use polyclaw_domain::redact::Redactor;
use tracing_subscriber::fmt::MakeWriter;

use crate::home::Home;
use crate::hot_swap::HotSwap;
use crate::secrets::SecretStore;

/// Name endings of environment variables that hold secrets, whether the config names them or not.
const SECRET_NAME_ENDINGS: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS"];

/// Builds a redactor for the secrets of the config, the secret store and the environment, and for the token.
pub fn build_redactor(config: &Config, home: &Home) -> Redactor {
    let stored = SecretStore::for_home(home).open_all().unwrap_or_else(|failure| {
        tracing::warn!(error = %failure, "cannot open the secret store; its secrets are not redacted");
        Default::default()
    });
    let held = config.secrets.iter().chain(stored.values()).map(|secret| secret.expose().to_owned());
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        is_secret(&name, &value).then_some(value)
    });
    Redactor::new(held.chain(environment).chain(home.read_token()).chain(control_plane_tokens(home)))
}

/// Tokens of the control plane that owns this home, if any. No turn may reveal them.
fn control_plane_tokens(home: &Home) -> impl Iterator<Item = String> {
    let files = home.path().ancestors().map(|above| above.join("cp/token"));
    let texts = files.filter_map(|path| file::read_text(&path, file::MAX_SMALL_FILE_BYTES).ok());
    texts.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty())
}

/// Returns whether a variable holds a secret. A path, a word or a flag is not a secret, whatever its name.
fn is_secret(name: &str, value: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or_default().to_ascii_uppercase();
    let named = SECRET_NAME_ENDINGS.iter().any(|ending| last.ends_with(ending));
    let random = value.len() >= 16 || value.bytes().any(|byte| byte.is_ascii_digit());
    named && random && !value.starts_with(['/', '.', '~'])
}

/// Writes redacted log lines to stderr. If stderr is a log file that a control plane keeps, the file is rotated when
/// full.
#[derive(Clone)]
pub struct RedactedLog {
    redactor: Arc<HotSwap<Redactor>>,
    rolling: Option<Arc<RotatingLog>>,
}

impl RedactedLog {
    pub fn new(redactor: Arc<HotSwap<Redactor>>) -> Self {
        let kept = std::env::var_os(LOG_FILE_VARIABLE).filter(|path| !path.is_empty());
        Self { redactor, rolling: kept.map(|path| Arc::new(RotatingLog::new(path.into()))) }
    }
}

impl<'a> MakeWriter<'a> for RedactedLog {
    type Writer = RedactedLine;

    fn make_writer(&'a self) -> RedactedLine {
        RedactedLine { redactor: self.redactor.get(), rolling: self.rolling.clone() }
    }
}

/// Writer of one line; the subscriber writes each line in one call.
pub struct RedactedLine {
    redactor: Arc<Redactor>,
    rolling: Option<Arc<RotatingLog>>,
}

impl Write for RedactedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let clean = self.redactor.redact_text(&text);
        // Errors are ignored: a closed terminal must not stop the program from logging.
        let _ = io::stderr().lock().write_all(clean.as_bytes());
        if let Some(rolling) = &self.rolling {
            rolling.record_written(clean.len());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_plane_token_is_redacted_in_its_instances() {
        let room = tempfile::tempdir().unwrap();
        let token = "1795ea0000000000000000000000000000000000000000000000000000565e00";
        let place = room.path().join("cp/instances/one");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(room.path().join("cp/token"), format!("{token}\n")).unwrap();
        for home in [room.path().to_owned(), place] {
            let redactor = build_redactor(&Config::default(), &Home::at(home));
            assert!(!redactor.redact_text(&format!("commit: {token}")).contains(token));
        }
    }

    #[test]
    fn secret_variables_are_detected_by_name_and_value() {
        for (name, value, expected) in [
            ("OPENAI_API_KEY", "sk-abc123", true),
            ("PGPASSWORD", "correct horse battery", true),
            ("GITHUB_TOKEN", "ghp_1", true),
            ("APP_KEY", "production", false),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key-1.json", false),
            ("KEYMAP", "us-1", false),
            ("PATH", "/usr/bin:1", false),
        ] {
            assert_eq!(is_secret(name, value), expected, "{name}");
        }
    }
}

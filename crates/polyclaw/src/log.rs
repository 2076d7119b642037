//! Log lines go to stderr: for people, or as JSON for machines. Never a body, never a secret.

use polyclaw_domain::config::{LogFormat, LogLevel, ObservabilityConfig};
use polyclaw_domain::safety::SafetyWarning;
use tracing_subscriber::EnvFilter;

use crate::redaction::RedactedLog;

/// `RUST_LOG` wins over the config, for one start. `quiet`: a person looks on, who is told the rest otherwise.
pub fn start_logging(settings: &ObservabilityConfig, quiet: bool, clean: RedactedLog) {
    let level =
        if quiet && settings.log_level == LogLevel::Info { LogLevel::Warn } else { settings.log_level };
    let level = level.as_str();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(log_filter(level)));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(clean);
    // A line that can not be written is lost: told about on the same full disk, it would be a panic instead.
    let lines = lines.log_internal_errors(false);
    // A second start in one process, as in tests, keeps the first.
    let _ = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.with_ansi(is_colored()).with_target(false).try_init(),
    };
}

/// Our own lines at the level asked for; libraries may show bodies and headers below `warn`.
fn log_filter(level: &str) -> String {
    let ours = ["polyclaw", "polyclaw_domain", "polyclaw_store", "polyclaw_engine", "polyclaw_provider"];
    let rest = ["polyclaw_tool", "polyclaw_channel", "polyclaw_server", "polyclaw_control"];
    let each: Vec<String> = ours.iter().chain(&rest).map(|name| format!("{name}={level}")).collect();
    format!("{},{}", if level == "error" { "error" } else { "warn" }, each.join(","))
}

/// A panic is a line like any other: what it says may hold what must not be seen.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(at, "panic: {text}");
    }));
}

fn is_colored() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// One line for each: what was meant once may be forgotten.
pub fn log_safety_warnings(found: Vec<SafetyWarning>) {
    for found in found {
        tracing::warn!(code = found.code, hint = found.hint, "unsafe setting: {}", found.message);
    }
}

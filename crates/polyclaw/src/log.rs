//! Log lines on stderr: text for people, or JSON for programs. They never hold message bodies or secrets.

use polyclaw_domain::config::{LogFormat, LogLevel, ObservabilityConfig};
use polyclaw_domain::safety::SafetyWarning;
use tracing_subscriber::EnvFilter;

use crate::redaction::RedactedLog;

/// Starts logging. `RUST_LOG` overrides the config for one start. `quiet` logs less, for a terminal that shows the
/// rest.
pub fn start_logging(settings: &ObservabilityConfig, quiet: bool, clean: RedactedLog) {
    let level =
        if quiet && settings.log_level == LogLevel::Info { LogLevel::Warn } else { settings.log_level };
    let level = level.as_str();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(log_filter(level)));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(clean);
    // A line that cannot be written is dropped. Reporting it to the same full disk would panic.
    let lines = lines.log_internal_errors(false);
    // A second start in one process, as in tests, keeps the first.
    let _ = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Text => lines.with_ansi(is_colored()).with_target(false).try_init(),
    };
}

/// Logs Polyclaw's crates at the requested level. Libraries stay at `warn`, because below it they may log bodies and
/// headers.
fn log_filter(level: &str) -> String {
    let ours = ["polyclaw", "polyclaw_domain", "polyclaw_store", "polyclaw_engine", "polyclaw_provider"];
    let rest = ["polyclaw_tool", "polyclaw_channel", "polyclaw_server", "polyclaw_control"];
    let each: Vec<String> = ours.iter().chain(&rest).map(|name| format!("{name}={level}")).collect();
    format!("{},{}", if level == "error" { "error" } else { "warn" }, each.join(","))
}

/// Logs panics as normal lines, so that their text is redacted.
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

/// Logs one line for each warning. Repeated at every start, because an old decision may be forgotten.
pub fn log_safety_warnings(found: Vec<SafetyWarning>) {
    for found in found {
        tracing::warn!(code = found.code, hint = found.hint, "unsafe setting: {}", found.message);
    }
}

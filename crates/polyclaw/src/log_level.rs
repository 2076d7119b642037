//! Reads the level of a log line.

pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Returns whether a line has at least this level. A line without a level continues the previous one and always
/// passes.
pub fn is_at_least(line: &str, level: &str) -> bool {
    let rank = |name: &str| LOG_LEVELS.iter().position(|known| known.eq_ignore_ascii_case(name));
    match (level_of(line).and_then(rank), rank(level)) {
        (Some(found), Some(wanted)) => found <= wanted,
        _ => true,
    }
}

/// Finds the level in `2026-11-17T03:12:39Z  INFO …` or `{"level":"INFO",…}`.
fn level_of(line: &str) -> Option<&str> {
    let rest = match line.split_once("\"level\":\"") {
        Some((_, rest)) if line.starts_with('{') => rest,
        _ => line.split_once(char::is_whitespace)?.1.trim_start(),
    };
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_line_without_level_or_at_level_is_kept() {
        let warned = "2026-11-17T03:12:39.1Z  WARN the disk is nearly full";
        let json = r#"{"timestamp":"2026-11-17T03:12:39Z","level":"INFO","message":"ready"}"#;
        for (line, level, kept) in [
            (warned, "warn", true),
            (warned, "info", true),
            (warned, "error", false),
            (json, "info", true),
            (json, "warn", false),
            ("   at some/file.rs:1", "error", true),
            ("", "error", true),
        ] {
            assert_eq!(is_at_least(line, level), kept, "{line} {level}");
        }
    }
}

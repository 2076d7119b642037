//! Reports an invalid command line. People get the parser's own text. With `--json` the error has the shape of every
//! other error, but on stderr, because no command ran that could answer on stdout.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::failure::{CommandFailure, FailureExit};
use crate::output;

/// Reports the error. A request for help is not an error.
pub fn report_usage_error(refusal: &clap::Error) -> ExitCode {
    if !refusal.use_stderr() {
        let _ = refusal.print();
        return ExitCode::SUCCESS;
    }
    if wants_json(std::env::args_os()) {
        let failure = usage_failure(refusal.kind(), &refusal.to_string());
        let _ = writeln!(std::io::stderr().lock(), "{}", output::as_json(&failure));
    } else {
        let _ = refusal.print();
    }
    ExitCode::from(FailureExit::Usage as u8)
}

/// Reads raw arguments, because one that is not UTF-8 may be the error.
fn wants_json(mut args: impl Iterator<Item = OsString>) -> bool {
    args.by_ref().take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// Converts the parser's text: the error comes first, then tips and the usage.
fn usage_failure(kind: ErrorKind, text: &str) -> CommandFailure {
    let line = |start: &str| text.lines().find_map(|line| line.trim().strip_prefix(start)).map(str::trim);
    let usage = line("Usage:").map(|usage| format!("usage: {usage}"));
    let hint =
        line("tip:").map(str::to_owned).or(usage).unwrap_or_else(|| "--help shows examples".to_owned());
    if matches!(kind, ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return CommandFailure::usage("missing command").hint(hint);
    }
    let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error:");
    let message = first.split_whitespace().collect::<Vec<_>>().join(" ");
    CommandFailure::usage(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_error_is_split_into_message_and_hint() {
        let text = "error: unrecognized subcommand 'sesions'\n\n  tip: a similar subcommand exists: 'sessions'\n\n\
                    Usage: polyclaw [OPTIONS] <COMMAND>\n";
        let failure = usage_failure(ErrorKind::InvalidSubcommand, text);
        assert_eq!(failure.message, "unrecognized subcommand 'sesions'");
        assert_eq!(failure.hint.unwrap(), "a similar subcommand exists: 'sessions'");
        let text = "error: the following required arguments were not provided:\n  --message <TEXT>\n\nUsage: polyclaw agent";
        let failure = usage_failure(ErrorKind::MissingRequiredArgument, text);
        assert!(failure.message.ends_with("provided: --message <TEXT>"), "{}", failure.message);
        assert_eq!(failure.hint.unwrap(), "usage: polyclaw agent");
    }

    #[test]
    fn json_option_after_double_dash_is_ignored() {
        let json = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(json("polyclaw dance --json") && !json("polyclaw dance -- --json"));
    }
}

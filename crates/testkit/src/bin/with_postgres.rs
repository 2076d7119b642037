//! Runs a command with a PostgreSQL server that all its processes share: `with_postgres cargo nextest run`.

use std::process::{Command, ExitCode};

use polyclaw_testkit::postgres::{PostgresCluster, SHARED_SERVER_VARIABLE};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        return exit_with_error("usage: with_postgres <command> [argument]…");
    };
    let cluster = match PostgresCluster::start() {
        Ok(cluster) => cluster,
        Err(error) => return exit_with_error(&error.to_string()),
    };
    match Command::new(program).args(words).env(SHARED_SERVER_VARIABLE, cluster.url()).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into(),
        Err(error) => exit_with_error(&error.to_string()),
    }
}

fn exit_with_error(reason: &str) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::from(2)
}

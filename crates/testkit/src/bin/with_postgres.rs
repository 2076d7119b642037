//! Runs a command with a PostgreSQL all its processes share: `with_postgres cargo nextest run`.

use std::process::{Command, ExitCode};

use polyclaw_testkit::postgres::{Cluster, SHARED};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else { return refuse("usage: with_postgres <command> [argument]…") };
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(error) => return refuse(&error.to_string()),
    };
    match Command::new(program).args(words).env(SHARED, cluster.url()).status() {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1).into(),
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::from(2)
}

//! The `polyclaw` binary.

mod accounts;
mod acp;
mod attachment;
mod bench;
mod broker_client;
mod chat;
mod cli;
mod client;
mod clock;
mod command;
mod config_edit;
mod confinement;
mod control;
mod daemon;
mod daemon_start;
mod embedder;
mod failure;
mod faults;
mod health;
mod home;
mod hooks;
mod hot_swap;
mod http;
mod ids;
mod instance;
mod keyring;
mod log;
mod log_level;
mod model_selection;
mod one_shot;
mod output;
mod progress;
mod redaction;
mod secrets;
mod service;
mod settings;
mod stream;
mod telemetry;
mod tools;
mod usage_error;
mod weights;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::failure::CommandFailure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return usage_error::report_usage_error(&refusal),
    };
    let json = cli.global.json;
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = CommandFailure::from_error(&error).redacted();
            output::report_failure(&failure, json);
            ExitCode::from(failure.exit as u8)
        }
    }
}

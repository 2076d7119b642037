//! The `polyclaw` binary.

mod accounts;
mod acp;
mod ask;
mod attach;
mod bench;
mod chat;
mod choice;
mod cli;
mod client;
mod clock;
mod command;
mod confinement;
mod control;
mod current;
mod daemon;
mod embedder;
mod exchange;
mod failure;
mod faults;
mod health;
mod home;
mod hooks;
mod http;
mod ids;
mod instance;
mod keyring;
mod level;
mod log;
mod output;
mod own_config;
mod progress;
mod redaction;
mod secrets;
mod service;
mod settings;
mod spawn;
mod stream;
mod telemetry;
mod tools;
mod usage;
mod weights;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return usage::refuse(&refusal),
    };
    let json = cli.global.json;
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = Failure::of(&error).cleaned();
            output::report(&failure, json);
            ExitCode::from(failure.exit as u8)
        }
    }
}

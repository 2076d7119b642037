//! The built-in tools: files below the workspace, a shell, and web pages.
//!
//! One file per tool. What the tools share is small: how a path is found ([`workspace`]) and opened without
//! following a link ([`folder`]), how blocking work is bounded ([`work`]), and how arguments are read.

mod arguments;
mod builtin;
mod edit_file;
mod error;
mod folder;
mod http_fetch;
mod list_dir;
mod read_file;
pub mod sandbox;
mod search_files;
mod shell;
mod text;
mod work;
pub mod worker;
mod workspace;
mod write_file;

pub use builtin::{Builtin, Settings};

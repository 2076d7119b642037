//! The built-in tools: files below the workspace, a shell, and web pages.
//!
//! One file per tool. What the tools share is small: how a path is found ([`workspace`]) and opened without
//! following a link ([`folder`]), how blocking work is bounded ([`work`]), and how arguments are read.

mod a2a;
mod apply_patch;
mod arguments;
mod blocking;
mod briefing;
mod builtin;
mod edit_file;
mod error;
mod folder;
mod http_fetch;
mod image_view;
mod list_dir;
mod mcp;
mod quota;
mod read_file;
mod read_skill;
pub mod sandbox;
mod search_files;
mod shell;
mod skill;
mod text;
mod web_search;
pub mod worker;
mod workspace;
mod write_file;
mod written;

pub use a2a::RemoteAgents;
pub use briefing::{FileBriefings, SharedSkills};
pub use builtin::{BuiltinSettings, BuiltinToolbox};
pub use folder::sweep_temporary;
pub use mcp::{McpHost, McpSettings, McpToolbox, probe_server as probe_mcp};
pub use skill::{DiscoveredSkill, SkillFolder, check_skills};

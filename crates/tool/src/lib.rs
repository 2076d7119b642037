//! The built-in tools: workspace files, a shell, web pages; and MCP servers, remote agents and tool workers.
//!
//! One file per tool. What the tools share is small: how a path is found ([`workspace`]) and opened without
//! following a link (`polyclaw_folder`), how blocking work is bounded ([`blocking`]), and how arguments are read.

mod a2a;
mod agent_folders;
mod apply_patch;
mod arguments;
mod blocking;
mod briefing;
mod builtin;
mod edit_file;
mod error;
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
pub use agent_folders::AgentFolders;
pub use briefing::{FileBriefings, SharedSkills};
pub use builtin::{BuiltinSettings, BuiltinToolbox};
pub use mcp::{McpHost, McpSettings, McpToolbox, probe_server as probe_mcp};
pub use polyclaw_folder::sweep_temporary;
pub use skill::{DiscoveredSkill, SkillFolder, check_skills};

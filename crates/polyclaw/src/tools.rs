//! Joins all tools of an instance: the built-in ones and those of MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyclaw_domain::agent::default_agent_folder;
use polyclaw_domain::config::Config;
use polyclaw_engine::ToolRegistry;
use polyclaw_store::Db;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_tool::worker::IsolatedToolbox;
use polyclaw_tool::{AgentFolders, BuiltinToolbox, FileBriefings, McpHost, McpSettings, McpToolbox};

use crate::command::guard::GUARD_COMMAND;
use crate::confinement;
use crate::home::Home;

/// Folders of a home that agents and their programs write.
const WRITTEN_FOLDERS: [&str; 5] = ["workspace", "workspaces", "tmp", "mcp", "teams"];

/// The servers of `mcp` outlive a reload: those with unchanged settings keep running. `made` holds the workspaces of
/// agents that were created at run time.
pub fn join_toolboxes(
    config: &Config,
    home: &Home,
    briefings: &Arc<FileBriefings>,
    (mcp, made): (&Arc<McpToolbox>, &[PathBuf]),
) -> ToolRegistry {
    mcp.apply_settings(mcp_settings(config, home, made));
    let builtin = BuiltinToolbox::new(polyclaw_tool::BuiltinSettings {
        allow_private: config.tools.allow_private_addresses,
        briefings: Some(Arc::clone(briefings)),
        web_search: config.tools.web_search.clone(),
        sandbox: confinement::sandbox_settings(&config.sandbox, home),
    });
    let builtin = IsolatedToolbox::new(builtin, confinement::worker_settings(&config.workers));
    ToolRegistry::new(vec![Arc::new(builtin), Arc::clone(mcp) as _])
}

/// Returns the settings of the configured MCP servers.
pub fn mcp_settings(config: &Config, home: &Home, made: &[PathBuf]) -> BTreeMap<String, McpSettings> {
    let host = mcp_host(config, home, made);
    let of = |name, server| McpSettings::from_config(name, server, &host);
    let named =
        config.mcp.servers.iter().filter_map(|(name, server)| Some((name.clone(), of(name, server)?)));
    named.collect()
}

/// Returns the folders that agents of this instance, MCP servers and, below a control plane, its other instances write.
/// Only the owner writes other folders of a home: scripts of hooks may be kept there.
pub fn agent_folders(config: &Config, home: &Home, made: &[PathBuf]) -> AgentFolders {
    let mut folders = agent_workspaces(config, home, made);
    let mut homes = vec![home.path().to_owned()];
    if let Some(parent) = parent_control_home(home.path()) {
        let instances = std::fs::read_dir(parent.join("cp/instances")).into_iter().flatten().flatten();
        homes.extend(instances.map(|entry| entry.path()));
        homes.push(parent);
    }
    for home in homes {
        folders.extend(WRITTEN_FOLDERS.iter().map(|name| home.join(name)));
    }
    AgentFolders::new(folders)
}

fn mcp_host(config: &Config, home: &Home, made: &[PathBuf]) -> McpHost {
    let mut workspaces = agent_workspaces(config, home, made);
    workspaces.extend(parent_control_home(home.path()));
    workspaces.sort();
    workspaces.dedup();
    McpHost {
        // The running executable, even if its file has been replaced since.
        guard: GUARD_COMMAND.map(str::to_owned).to_vec(),
        sandbox: confinement::sandbox_settings(&config.sandbox, home),
        home: home.path().to_owned(),
        workspaces,
        user_home: std::env::var_os("HOME").map(PathBuf::from),
    }
}

fn agent_workspaces(config: &Config, home: &Home, made: &[PathBuf]) -> Vec<PathBuf> {
    let (root, default) = (home.workspace_dir(), config.agents.default_agent_id());
    let own = config.agents.agent_specs().into_iter().map(|spec| spec.workspace_folder(&root, &default));
    let mut workspaces: Vec<PathBuf> = own.chain([root.clone()]).collect();
    // Agents created at run time have their workspaces in the same place, unless they set another.
    workspaces.extend(default_agent_folder(&root, &default).parent().map(Path::to_owned));
    let is_elsewhere = |folder: &&PathBuf| !workspaces.iter().any(|known| folder.starts_with(known));
    let elsewhere: Vec<PathBuf> = made.iter().filter(is_elsewhere).cloned().collect();
    workspaces.extend(elsewhere);
    workspaces
}

/// Returns the workspaces of agents that are not in the config: no MCP server may run a file from there.
pub async fn made_workspaces(db: &Db, config: &Config, home: &Home) -> polyclaw_store::Result<Vec<PathBuf>> {
    let (root, default) = (home.workspace_dir(), config.agents.default_agent_id());
    let known = db.read(agents::list).await?;
    let made = known.into_iter().filter(|known| known.source == AgentSource::Api);
    Ok(made.map(|known| known.spec.workspace_folder(&root, &default)).collect())
}

/// Returns the home of the control plane that contains this home. Agents of the other instances write there.
fn parent_control_home(home: &Path) -> Option<PathBuf> {
    home.ancestors().skip(1).find(|above| above.join("cp/registry.db").exists()).map(Path::to_owned)
}

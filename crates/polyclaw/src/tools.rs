//! All tools of an instance, joined: those that come with Polyclaw, and those of MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polyclaw_domain::agent::own_folder;
use polyclaw_domain::config::Config;
use polyclaw_engine::Toolboxes;
use polyclaw_tool::worker::Isolated;
use polyclaw_tool::{Builtin, FileBriefings, Mcp, McpHost, McpSettings};

use crate::command::guard::GUARD;
use crate::confinement;
use crate::home::Home;

/// The servers of `mcp` outlive a reload: those whose settings did not change go on.
pub fn join(config: &Config, home: &Home, briefings: &Arc<FileBriefings>, mcp: &Arc<Mcp>) -> Toolboxes {
    mcp.set(mcp_settings(config, home));
    let builtin = Builtin::new(polyclaw_tool::Settings {
        allow_private: config.tools.allow_private_addresses,
        briefings: Some(Arc::clone(briefings)),
        web_search: config.tools.web_search.clone(),
        sandbox: confinement::settings(&config.sandbox, home),
    });
    let builtin = Isolated::new(builtin, confinement::workers(&config.workers));
    Toolboxes::new(vec![Arc::new(builtin), Arc::clone(mcp) as _])
}

/// The servers that are to be there.
pub fn mcp_settings(config: &Config, home: &Home) -> BTreeMap<String, McpSettings> {
    let host = mcp_host(config, home);
    let of = |name, server| McpSettings::of(name, server, &host);
    let named =
        config.mcp.servers.iter().filter_map(|(name, server)| Some((name.clone(), of(name, server)?)));
    named.collect()
}

fn mcp_host(config: &Config, home: &Home) -> McpHost {
    let (root, default) = (home.workspace(), config.agents.default_id());
    let own = config.agents.specs().into_iter().map(|spec| spec.folder(&root, &default));
    let mut workspaces: Vec<PathBuf> = own.chain([root.clone()]).collect();
    // Agents that are made while the instance runs have theirs in the same place.
    workspaces.extend(own_folder(&root, &default).parent().map(Path::to_owned));
    workspaces.extend(control_home(home.path()));
    workspaces.sort();
    workspaces.dedup();
    McpHost {
        // The program that runs now, whatever has been put in its place on the disk since.
        guard: GUARD.map(str::to_owned).to_vec(),
        sandbox: confinement::settings(&config.sandbox, home),
        home: home.path().to_owned(),
        workspaces,
        user_home: std::env::var_os("HOME").map(PathBuf::from),
    }
}

/// The home of a control plane that this one lies in: the other instances' agents write there.
fn control_home(home: &Path) -> Option<PathBuf> {
    home.ancestors().skip(1).find(|above| above.join("cp/registry.db").exists()).map(Path::to_owned)
}

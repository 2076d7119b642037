//! All tools of an instance, joined: those that come with Polyclaw, and those of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config::Config;
use polyclaw_engine::Toolboxes;
use polyclaw_tool::worker::Isolated;
use polyclaw_tool::{Builtin, FileBriefings, Mcp, McpSettings};

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
    // The program that runs now, whatever has been put in its place on the disk since.
    let guard = GUARD.map(str::to_owned);
    // A home that was never started has no workspace yet; a check works there all the same.
    let workspace = Some(home.workspace()).filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    let of = |server| McpSettings::of(server, workspace.clone(), &guard);
    let named = config.mcp.servers.iter().filter_map(|(name, server)| Some((name.clone(), of(server)?)));
    named.collect()
}

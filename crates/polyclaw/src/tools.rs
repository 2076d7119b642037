//! All tools of an instance, joined: those that come with Polyclaw, and those of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::config::Config;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::tool::{Progress, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};
use polyclaw_tool::worker::Isolated;
use polyclaw_tool::{Builtin, FileBriefings, Mcp, McpSettings};

use crate::confinement;
use crate::home::Home;

pub struct Tools {
    builtin: Isolated,
    /// It outlives a reload: servers whose settings did not change go on.
    mcp: Arc<Mcp>,
}

impl Tools {
    pub fn new(config: &Config, home: &Home, briefings: &Arc<FileBriefings>, mcp: &Arc<Mcp>) -> Self {
        mcp.set(mcp_settings(config, home));
        let builtin = Builtin::new(polyclaw_tool::Settings {
            allow_private: config.tools.allow_private_addresses,
            briefings: Some(Arc::clone(briefings)),
            web_search: config.tools.web_search.clone(),
            sandbox: confinement::settings(&config.sandbox, home),
        });
        let builtin = Isolated::new(builtin, confinement::workers(&config.workers));
        Self { builtin, mcp: Arc::clone(mcp) }
    }
}

/// The servers that are to be there.
pub fn mcp_settings(config: &Config, home: &Home) -> BTreeMap<String, McpSettings> {
    // The program that runs now, whatever has been put in its place on the disk since.
    let guard = ["/proc/self/exe", "guard", "--"].map(str::to_owned);
    // A home that was never started has no workspace yet; a check works there all the same.
    let workspace = Some(home.workspace()).filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    let of = |server| McpSettings::of(server, workspace.clone(), &guard);
    let named = config.mcp.servers.iter().filter_map(|(name, server)| Some((name.clone(), of(server)?)));
    named.collect()
}

impl Toolbox for Tools {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let mut listed = self.builtin.list(scope);
        listed.extend(self.mcp.list(scope));
        listed
    }

    fn gather<'a>(&'a self, scope: &'a ToolScope) -> Option<Pending<'a, ()>> {
        self.mcp.gather(scope)
    }

    /// Names of MCP tools begin with `mcp_`; none that comes with Polyclaw does.
    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        match call.name.starts_with("mcp_") {
            true => self.mcp.run(scope, turn, call, progress),
            false => self.builtin.run(scope, turn, call, progress),
        }
    }
}

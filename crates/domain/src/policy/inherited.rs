//! Inherited tools: a spawned session has no more permissions than the turn that spawned it, whatever its own agent may
//! do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{PolicyLayer, PolicyLayers, PolicyRule, needs_approval, policy_steps};
use crate::agent::SandboxMode;
use crate::authority::Authority;
use crate::tool::ToolSpec;

/// Stored with the session, so that it survives restarts and is passed on to sessions that the session spawns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InheritedTools {
    /// The tools of that turn.
    pub tools: BTreeSet<String>,
    /// Those of the tools that need approval.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub asks: BTreeSet<String>,
    /// The sandbox mode of that turn; the session's own is at least as strict.
    pub sandbox: SandboxMode,
    /// The authority of the people that turn worked for, if lower than an owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Authority>,
}

impl InheritedTools {
    /// Returns what a turn passes on. A tool that needs approval is passed on with that requirement, even
    /// if no one could be asked in this turn.
    pub fn from_layers<'a>(
        tools: impl Iterator<Item = &'a ToolSpec>,
        layers: &PolicyLayers<'_>,
        sandbox: SandboxMode,
    ) -> Self {
        let own = Authority::lowest_of_senders(layers.senders);
        let authority =
            layers.inherited.and_then(|inherited| inherited.authority).map_or(own, |above| above.min(own));
        let authority = Some(authority).filter(|authority| *authority < Authority::Owner);
        let mut inherited = Self { sandbox, authority, ..Self::default() };
        for tool in tools.filter(|tool| has_tool(tool, layers)) {
            if needs_approval(tool, layers) {
                inherited.asks.insert(tool.name.clone());
            }
            inherited.tools.insert(tool.name.clone());
        }
        inherited
    }
}

fn has_tool(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    policy_steps(tool, layers).all(|step| step.layer == PolicyLayer::Approval || step.rule.is_allowed())
}

pub(super) fn inherited_rule(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> PolicyRule<'static> {
    match layers.inherited {
        Some(inherited) if !inherited.tools.contains(&tool.name) => PolicyRule::NotInherited,
        _ => PolicyRule::Open,
    }
}

/// Returns whether the spawning turn needed approval for the tool.
pub(super) fn requires_inherited_approval(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    layers.inherited.is_some_and(|inherited| inherited.asks.contains(&tool.name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::agent::{AgentSpec, SandboxSettings};
    use crate::id::{AgentId, SessionId};
    use crate::session::Session;
    use crate::session_key::SessionKey;
    use crate::time::Millis;
    use crate::tool::ToolScope;

    /// The spec of a session is resolved on every turn: loosening the agent later does not loosen a child of a confined
    /// one.
    #[test]
    fn inherited_sandbox_mode_is_never_loosened() {
        let confined = SandboxSettings { mode: SandboxMode::Strict, ..SandboxSettings::default() };
        for (own, inherited_mode, mode) in [
            (SandboxMode::Off, Some(SandboxMode::Strict), SandboxMode::Strict),
            (SandboxMode::Workspace, Some(SandboxMode::Off), SandboxMode::Workspace),
            (SandboxMode::Strict, Some(SandboxMode::Workspace), SandboxMode::Strict),
            (SandboxMode::Off, None, SandboxMode::Off),
        ] {
            let sandbox = SandboxSettings { mode: own, ..confined.clone() };
            let spec = AgentSpec { sandbox, ..AgentSpec::with_id(AgentId::main()) };
            let key = SessionKey::main(&AgentId::main());
            let session =
                Session::new_for_person(key.clone(), SessionId::new("s"), AgentId::main(), Millis(0));
            let inherited_tools =
                inherited_mode.map(|sandbox| InheritedTools { sandbox, ..InheritedTools::default() });
            let scope = ToolScope::for_session(&spec, key, Path::new("w"), false);
            assert_eq!(
                scope
                    .for_child_session(&spec, &Session { inherited: inherited_tools, ..session })
                    .sandbox
                    .mode,
                mode,
                "{own:?}"
            );
        }
    }
}

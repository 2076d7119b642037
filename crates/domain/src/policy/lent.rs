//! What a session was lent by the turn that began it: it has no more than that, whatever its own agent may.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Layer, Layers, Rule, asks, steps};
use crate::agent::SandboxMode;
use crate::authority::Authority;
use crate::tool::ToolSpec;

/// Stored with the session, so that it holds in every life of the engine, and for whatever the session begins itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lent {
    /// The tools that turn had.
    pub tools: BTreeSet<String>,
    /// Those of them for which a person is asked first.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub asks: BTreeSet<String>,
    /// How far its programs reached: these reach no further.
    pub sandbox: SandboxMode,
    /// What those that turn worked for may decide, where that is less than an owner may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Authority>,
}

impl Lent {
    /// What a turn can lend of the tools there are. One for which nobody could be asked there is lent with the question.
    pub fn of<'a>(
        tools: impl Iterator<Item = &'a ToolSpec>,
        layers: &Layers<'_>,
        sandbox: SandboxMode,
    ) -> Self {
        let own = Authority::of_senders(layers.senders);
        let authority = layers.lent.and_then(|lent| lent.authority).map_or(own, |above| above.min(own));
        let authority = Some(authority).filter(|authority| *authority < Authority::Owner);
        let mut lent = Self { sandbox, authority, ..Self::default() };
        for tool in tools.filter(|tool| is_had(tool, layers)) {
            if asks(tool, layers) {
                lent.asks.insert(tool.name.clone());
            }
            lent.tools.insert(tool.name.clone());
        }
        lent
    }
}

fn is_had(tool: &ToolSpec, layers: &Layers<'_>) -> bool {
    steps(tool, layers).all(|step| step.layer == Layer::Approval || step.rule.allows())
}

pub(super) fn by_lent(tool: &ToolSpec, layers: &Layers<'_>) -> Rule<'static> {
    match layers.lent {
        Some(lent) if !lent.tools.contains(&tool.name) => Rule::NotLent,
        _ => Rule::Open,
    }
}

/// Whether a person had to agree where it was lent.
pub(super) fn asks_first(tool: &ToolSpec, layers: &Layers<'_>) -> bool {
    layers.lent.is_some_and(|lent| lent.asks.contains(&tool.name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::agent::{AgentSpec, Sandbox};
    use crate::id::{AgentId, SessionId};
    use crate::key::SessionKey;
    use crate::session::Session;
    use crate::time::Millis;
    use crate::tool::ToolScope;

    /// The spec of a session is read anew with every turn: an agent that is set free later frees no child of a confined one.
    #[test]
    fn walls_that_were_lent_stand_whatever_the_agent_is_changed_to() {
        let confined = Sandbox { mode: SandboxMode::Strict, ..Sandbox::default() };
        for (own, lent, mode) in [
            (SandboxMode::Off, Some(SandboxMode::Strict), SandboxMode::Strict),
            (SandboxMode::Workspace, Some(SandboxMode::Off), SandboxMode::Workspace),
            (SandboxMode::Strict, Some(SandboxMode::Workspace), SandboxMode::Strict),
            (SandboxMode::Off, None, SandboxMode::Off),
        ] {
            let sandbox = Sandbox { mode: own, ..confined.clone() };
            let spec = AgentSpec { sandbox, ..AgentSpec::named(AgentId::main()) };
            let key = SessionKey::main(&AgentId::main());
            let begun = Session::begun(key.clone(), SessionId::new("s"), AgentId::main(), Millis(0));
            let lent = lent.map(|sandbox| Lent { sandbox, ..Lent::default() });
            let scope = ToolScope::of(&spec, key, Path::new("w"), false);
            assert_eq!(scope.below(&spec, &Session { lent, ..begun }).sandbox.mode, mode, "{own:?}");
        }
    }
}

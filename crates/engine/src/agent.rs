//! Agents made, changed and removed while the instance runs. Those of the config file belong to that file.

use std::sync::Arc;

use polyclaw_domain::agent::{AgentSpec, ToolPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::tool::{ToolScope, ToolSpec};
use polyclaw_store::agents::{self, Source, Stored};

use crate::core::Engine;
use crate::error::{Error, Result};

/// What decided about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Denied,
    Allowed,
    NotListed,
    /// The agent names no tools, so it has them all.
    Open,
}

impl Rule {
    pub fn of(policy: &ToolPolicy, tool: &str) -> Self {
        let named = |list: &[String]| list.iter().any(|name| name == tool || name == "*");
        match () {
            () if named(&policy.deny) => Self::Denied,
            () if policy.allow.is_empty() => Self::Open,
            () if named(&policy.allow) => Self::Allowed,
            () => Self::NotListed,
        }
    }

    pub fn allows(self) -> bool {
        matches!(self, Self::Allowed | Self::Open)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Allowed => "allowed",
            Self::NotListed => "not_listed",
            Self::Open => "open",
        }
    }
}

impl Engine {
    pub async fn agents(&self) -> Result<Vec<Stored>> {
        Ok(self.db().read(agents::list).await?)
    }

    pub async fn agent(&self, id: &AgentId) -> Result<Stored> {
        let wanted = id.clone();
        let found = self.db().read(move |tx| agents::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownAgent(id.to_string()))
    }

    pub async fn create_agent(&self, spec: AgentSpec) -> Result<Stored> {
        let (stored, now) = (spec.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            if is_taken(tx, &stored)? || agents::get(tx, &stored.agent_id)?.is_some() {
                return Ok(false);
            }
            agents::upsert(tx, &stored, Source::Api, now).map(|()| true)
        };
        match self.db().write(write).await? {
            true => self.agent(&spec.agent_id).await,
            false => Err(Error::AgentExists(spec.agent_id.to_string())),
        }
    }

    /// Takes effect at the next turn.
    pub async fn update_agent(&self, spec: AgentSpec) -> Result<Stored> {
        self.changeable(&spec.agent_id).await?;
        let (stored, now) = (spec.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            if is_taken(tx, &stored)? {
                return Ok(false);
            }
            agents::upsert(tx, &stored, Source::Api, now).map(|()| true)
        };
        match self.db().write(write).await? {
            true => self.agent(&spec.agent_id).await,
            false => Err(Error::AgentExists(spec.name)),
        }
    }

    /// Its sessions stay readable.
    pub async fn delete_agent(&self, id: &AgentId) -> Result<()> {
        self.changeable(id).await?;
        if *id == self.settings().default_agent {
            return Err(Error::DefaultAgent(id.to_string()));
        }
        let wanted = id.clone();
        self.db().write(move |tx| agents::delete(tx, &wanted)).await?;
        Ok(())
    }

    async fn changeable(&self, id: &AgentId) -> Result<()> {
        match self.agent(id).await?.source {
            Source::Config => Err(Error::AgentInConfig(id.to_string())),
            Source::Api => Ok(()),
        }
    }

    /// Every tool the instance has for an agent, each with the rule that decided.
    pub async fn tools_of(
        &self,
        id: &AgentId,
        session: Option<SessionKey>,
    ) -> Result<Vec<(Arc<ToolSpec>, Rule)>> {
        let spec = self.agent(id).await?.spec;
        let folder = spec.workspace.as_deref().unwrap_or_default();
        let scope = ToolScope {
            agent: id.clone(),
            session: session.unwrap_or_else(|| SessionKey::main(id)),
            workspace: self.settings().workspace.join(folder),
            can_ask: true,
            isolation: spec.isolation,
            sandbox: spec.sandbox.clone(),
        };
        let rule = |tool: Arc<ToolSpec>| {
            let rule = Rule::of(&spec.policy.tools, &tool.name);
            (tool, rule)
        };
        Ok(self.tools().list(&scope).into_iter().map(rule).collect())
    }
}

/// Another agent has the name.
fn is_taken(tx: &mut polyclaw_store::Tx<'_>, spec: &AgentSpec) -> polyclaw_store::Result<bool> {
    let listed = agents::list(tx)?;
    Ok(listed.iter().any(|other| other.spec.name == spec.name && other.spec.agent_id != spec.agent_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_says_what_the_policy_does() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        for (allow, deny, rule) in [
            (&[][..], &[][..], Rule::Open),
            (&["shell"], &["shell"], Rule::Denied),
            (&["shell"], &[], Rule::Allowed),
            (&["other"], &[], Rule::NotListed),
        ] {
            let policy = ToolPolicy { allow: words(allow), deny: words(deny) };
            assert_eq!(Rule::of(&policy, "shell"), rule);
            assert_eq!(policy.allows("shell"), rule.allows());
        }
    }
}

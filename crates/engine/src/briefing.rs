//! What agents are told from files, and as whom they show themselves.

use std::path::Path;

use polyclaw_domain::agent::{AgentSpec, Identity};
use polyclaw_domain::briefing::{self, Briefing, Reader};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::skill::Skill;

use crate::core::Engine;
use crate::error::Result;

impl Engine {
    pub(crate) fn brief(&self, spec: &AgentSpec, workspace: &Path, is_sub_agent: bool) -> Briefing {
        self.ports.briefings.brief(&Reader { is_sub_agent, ..Reader::of(spec, workspace) })
    }

    pub(crate) fn briefing_of(&self, spec: &AgentSpec) -> Briefing {
        self.brief(spec, &spec.workspace.folder(&self.settings().workspace), false)
    }

    /// How an agent shows itself to people.
    pub fn identity(&self, spec: &AgentSpec) -> Identity {
        briefing::identity(spec, &self.briefing_of(spec).identity)
    }

    /// Every skill found for an agent, and whether its policy lets it have it.
    pub async fn skills_of(&self, id: &AgentId) -> Result<Vec<(Skill, bool)>> {
        let spec = self.agent(id).await?.spec;
        let found = self.briefing_of(&spec).skills;
        let ruled = |skill: &Skill| (skill.clone(), spec.policy.skills.allows(&skill.name));
        Ok(found.iter().map(ruled).collect())
    }
}

//! Briefings of agents from files, and their displayed identity.

use std::path::{Path, PathBuf};

use polyclaw_domain::agent::{AgentIdentity, AgentSpec};
use polyclaw_domain::briefing::{self, Briefing, BriefingReader};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::skill::{self, Skill, SkillEligibility};

use crate::core::Engine;
use crate::error::Result;

impl Engine {
    pub(crate) fn read_briefing(&self, spec: &AgentSpec, workspace: &Path, is_sub_agent: bool) -> Briefing {
        self.ports
            .briefings
            .load_briefing(&BriefingReader { is_sub_agent, ..BriefingReader::for_agent(spec, workspace) })
    }

    pub(crate) fn agent_briefing(&self, spec: &AgentSpec) -> Briefing {
        self.read_briefing(spec, &self.agent_workspace(spec), false)
    }

    /// The agent's workspace folder.
    pub(crate) fn agent_workspace(&self, spec: &AgentSpec) -> PathBuf {
        let settings = self.settings();
        spec.workspace_folder(&settings.workspace, &settings.default_agent)
    }

    /// The agent's displayed identity.
    pub fn agent_identity(&self, spec: &AgentSpec) -> AgentIdentity {
        briefing::resolve_identity(spec, &self.agent_briefing(spec).identity)
    }

    /// All skills found for an agent, and whether it can use each: its policy must allow the skill and the tool that
    /// reads skills.
    pub async fn list_agent_skills(&self, id: &AgentId) -> Result<Vec<(Skill, SkillEligibility)>> {
        let spec = self.load_agent(id).await?.spec;
        let found = self.agent_briefing(&spec).skills;
        let tools = self.explain_tools(Some(id), None).await?;
        let reads = !tools.iter().any(|tool| tool.tool.name == skill::READ_SKILL_TOOL && !tool.allowed);
        let ruled = |skill: &Skill| match reads {
            true => (skill.clone(), spec.policy.skills.skill_eligibility(&skill.name)),
            false => (skill.clone(), SkillEligibility::NoTool),
        };
        Ok(found.iter().map(ruled).collect())
    }
}

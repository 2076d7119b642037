//! Skills available to an agent, and whether it may use them.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::skill::{Skill, SkillEligibility, SkillLocation};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SkillList {
    /// The skills the agent can find.
    pub skills: Vec<SkillView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SkillView {
    /// The name of the skill.
    pub name: String,
    /// What the skill is for.
    pub description: String,
    /// Where the skill was found: `agent`, `workspace` or `shared`. The closest location wins.
    #[schema(value_type = String)]
    pub place: SkillLocation,
    /// Whether the agent may use the skill, which includes the tool that reads it.
    pub allowed: bool,
    /// The reason: `open`, `allowed`, `denied`, `not_listed` or `no_tool`.
    #[schema(value_type = String)]
    pub rule: SkillEligibility,
}

impl From<(Skill, SkillEligibility)> for SkillView {
    fn from((skill, rule): (Skill, SkillEligibility)) -> Self {
        let allowed = rule.is_allowed();
        Self { name: skill.name, description: skill.description, place: skill.place, allowed, rule }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSkillsQuery {
    /// The agent. Defaults to the default agent.
    #[param(value_type = Option<String>)]
    pub agent: Option<AgentId>,
}

//! Skills available to an agent, and whether it may use them.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::skill::{Skill, SkillEligibility, SkillLocation};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct SkillList {
    /// The skills the agent can find.
    skills: Vec<SkillView>,
}

#[derive(Serialize, ToSchema)]
pub struct SkillView {
    /// The name of the skill.
    name: String,
    /// What the skill is for.
    description: String,
    /// Where the skill was found: `agent`, `workspace` or `shared`. The closest location wins.
    #[schema(value_type = String)]
    place: SkillLocation,
    /// Whether the agent may use the skill, which includes the tool that reads it.
    allowed: bool,
    /// The reason: `open`, `allowed`, `denied`, `not_listed` or `no_tool`.
    #[schema(value_type = String)]
    rule: SkillEligibility,
}

impl From<(Skill, SkillEligibility)> for SkillView {
    fn from((skill, rule): (Skill, SkillEligibility)) -> Self {
        let allowed = rule.is_allowed();
        Self { name: skill.name, description: skill.description, place: skill.place, allowed, rule }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSkillsQuery {
    /// The agent. Defaults to the default agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentId>,
}

/// Lists the skills that an agent can find, and whether it may use them.
#[utoipa::path(get, path = "/skills", tag = "agents", params(ListSkillsQuery), responses((status = 200, body = SkillList)))]
pub async fn list_skills(
    State(app): State<AppState>,
    QueryParams(who): QueryParams<ListSkillsQuery>,
) -> Result<Json<SkillList>> {
    let agent = who.agent.unwrap_or_else(|| app.engine.settings().default_agent.clone());
    let found = app.engine.list_agent_skills(&agent).await?;
    Ok(Json(SkillList { skills: found.into_iter().map(SkillView::from).collect() }))
}

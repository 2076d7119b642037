//! The skills an agent could have, and which of them it has.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::skill::{Place, Skill};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::Id;
use crate::http::agents::agent_id;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Skills {
    skills: Vec<SkillView>,
}

#[derive(Serialize, ToSchema)]
pub struct SkillView {
    name: String,
    description: String,
    /// `agent`, `workspace` or `shared`: where it was found, the nearest of its name.
    #[schema(value_type = String)]
    place: Place,
    /// Whether the agent's policy lets it have this one.
    allowed: bool,
}

impl From<(Skill, bool)> for SkillView {
    fn from((skill, allowed): (Skill, bool)) -> Self {
        Self { name: skill.name, description: skill.description, place: skill.place, allowed }
    }
}

#[utoipa::path(get, path = "/agents/{id}/skills", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = Skills)))]
pub async fn of_agent(State(app): State<AppState>, Id(id): Id) -> Result<Json<Skills>> {
    let found = app.engine.skills_of(&agent_id(&id)?).await?;
    Ok(Json(Skills { skills: found.into_iter().map(SkillView::from).collect() }))
}

//! Skills available to an agent, and whether it may use them.

use axum::Json;
use axum::extract::State;
use polyclaw_api::skills::{ListSkillsQuery, SkillList, SkillView};

use crate::error::Result;
use crate::extract::QueryParams;
use crate::state::AppState;

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

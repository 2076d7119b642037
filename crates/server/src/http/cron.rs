//! What agents do at set times: jobs of the config and heartbeats.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_engine::schedule::Standing;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::Id;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Cron {
    cron: Vec<ErrandView>,
}

#[derive(Serialize, ToSchema)]
pub struct ErrandView {
    id: String,
    /// Its schedule and time zone.
    rule: String,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The last due time that was run or left out; null where there was none yet.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_due: Option<Millis>,
    /// Null where it never comes again.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_due: Option<Millis>,
}

impl From<Standing> for ErrandView {
    fn from(Standing { errand, last, next }: Standing) -> Self {
        Self {
            id: errand.id,
            rule: errand.rule,
            agent_id: errand.agent,
            session_key: errand.session,
            last_due: last,
            next_due: next,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Begun {
    /// Null where there is nothing to do: a heartbeat of an agent without a task, or that is busy.
    #[schema(value_type = Option<String>)]
    session_key: Option<SessionKey>,
    #[schema(value_type = Option<String>)]
    turn_id: Option<TurnId>,
}

#[utoipa::path(get, path = "/cron", tag = "agents", responses((status = 200, body = Cron)))]
pub async fn list(State(app): State<AppState>) -> Result<Json<Cron>> {
    let errands = app.engine.errands().await?;
    Ok(Json(Cron { cron: errands.into_iter().map(ErrandView::from).collect() }))
}

/// Runs one now, beside its schedule.
#[utoipa::path(
    post, path = "/cron/{id}/run", tag = "agents",
    params(("id" = String, Path, description = "as `GET /cron` lists it")),
    responses((status = 200, body = Begun)),
)]
pub async fn run(State(app): State<AppState>, Id(id): Id) -> Result<Json<Begun>> {
    let accepted = app.engine.run_errand(&id).await?;
    let (session_key, turn_id) = accepted.map(|begun| (begun.session_key, begun.turn_id)).unzip();
    Ok(Json(Begun { session_key, turn_id }))
}

//! Turns: their request, steps and result.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::id::{AgentId, MessageId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{self, TurnJob};
use polyclaw_store::{Tx, messages, turns};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};
use crate::http::messages::{TurnReply, WaitQuery};
use crate::http::transcript::SessionMessageView;
use crate::http::usage::TokenUsageView;
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct TurnView {
    /// The id of the turn.
    #[schema(value_type = String)]
    id: TurnId,
    /// The session of the turn.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The agent that answers.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The queue of the turn: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    lane: JobLane,
    /// The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer
    /// message).
    #[schema(value_type = String)]
    state: JobState,
    /// How often the turn was started. It is more than 1 after a crash.
    attempt: u32,
    /// The model that answered.
    model: Option<String>,
    /// Tokens used by the turn.
    usage: TokenUsageView,
    /// The message with the reply.
    #[schema(value_type = Option<String>)]
    reply_id: Option<MessageId>,
    /// The turn that continues the task of a steered one.
    #[schema(value_type = Option<String>)]
    continued_by: Option<TurnId>,
    /// The trace of the turn. A trace connects all turns caused by one message.
    #[schema(value_type = String)]
    trace_id: TraceId,
    /// When the turn was queued.
    #[schema(value_type = String, format = DateTime)]
    queued_at: Millis,
    /// When the turn started.
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Millis>,
    /// When the turn ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
    /// The error, if the turn failed.
    error: Option<TurnError>,
    /// The answer. Only with `wait`, once this turn or one that continues it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<TurnReply>,
    /// Inputs, model steps and tool results. Only when a single turn is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<SessionMessageView>>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnError {
    /// The error code.
    code: String,
    /// The error message.
    message: Option<String>,
}

impl TurnView {
    fn from_job(job: TurnJob, steps: Option<Vec<SessionMessageView>>) -> Self {
        Self {
            id: job.turn,
            session_key: job.session,
            agent_id: job.agent,
            lane: job.lane,
            state: job.state,
            attempt: job.attempt,
            model: job.model,
            usage: job.usage.into(),
            reply_id: job.reply,
            continued_by: job.continued_by,
            trace_id: job.trace,
            queued_at: job.queued_at,
            started_at: job.started_at,
            ended_at: job.ended_at,
            error: job.error_code.map(|code| TurnError { code, message: job.error }),
            reply: None,
            steps,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListTurnsQuery {
    /// Only turns of this session.
    #[param(value_type = Option<String>)]
    session: Option<SessionKey>,
    /// Only turns in this state: `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    #[param(value_type = Option<String>)]
    state: Option<JobState>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnList {
    /// The turns of this page.
    turns: Vec<TurnView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

/// Lists turns, newest first.
#[utoipa::path(get, path = "/turns", tag = "turns", params(ListTurnsQuery), responses((status = 200, body = TurnList)))]
pub async fn list_turns(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListTurnsQuery>,
) -> Result<Json<TurnList>> {
    let paging = PageRequest::from_query("turns", which.limit, which.cursor.as_deref())?;
    let filter = turns::TurnListFilter {
        session: which.session,
        state: which.state,
        before: paging.after.as_ref().map(|place| place.at),
        limit: paging.row_limit(),
    };
    let mut found = app.engine.db().read(move |tx| turns::list(tx, &filter)).await?;
    let next_cursor = paging.cut_page(&mut found, |(seq, _)| PagePosition { at: *seq, id: String::new() });
    let turns = found.into_iter().map(|(_, job)| TurnView::from_job(job, None)).collect();
    Ok(Json(TurnList { turns, next_cursor }))
}

/// Returns a turn with its steps.
/// With `wait`, responds when the task is done or the time is up.
#[utoipa::path(
    get, path = "/turns/{id}", tag = "turns", params(("id" = String, Path), WaitQuery),
    responses((status = 200, body = TurnView)),
)]
pub async fn show_turn(
    State(app): State<AppState>,
    PathId(id): PathId,
    QueryParams(wait): QueryParams<WaitQuery>,
) -> Result<Json<TurnView>> {
    let turn = TurnId::new(id.as_str());
    let reply = match wait.wait_limit()? {
        None => None,
        Some(limit) => {
            let wanted = turn.clone();
            let job = app.engine.db().read(move |tx: &mut Tx<'_>| jobs::get(tx, &wanted)).await?;
            let session = job.ok_or_else(|| unknown_turn(&turn))?.session;
            app.engine.wait_for_answer(&session, &turn, limit).await?.map(TurnReply::from)
        }
    };
    let (job, steps) = read_turn(&app, &turn).await?;
    let steps = steps.into_iter().map(SessionMessageView::from).collect();
    Ok(Json(TurnView { reply, ..TurnView::from_job(job, Some(steps)) }))
}

async fn read_turn(app: &AppState, turn: &TurnId) -> Result<(TurnJob, Vec<messages::SessionMessage>)> {
    let wanted = turn.clone();
    let read = move |tx: &mut Tx<'_>| match jobs::get(tx, &wanted)? {
        Some(job) => Ok(Some((job, messages::list_by_turn(tx, &wanted)?))),
        None => Ok(None),
    };
    let found = app.engine.db().read(read).await?;
    found.ok_or_else(|| unknown_turn(turn))
}

fn unknown_turn(turn: &TurnId) -> Error {
    polyclaw_engine::Error::UnknownTurn(turn.to_string()).into()
}

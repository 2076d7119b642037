//! Turns: what was asked of which agent, step by step, and how it ended.

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
    #[schema(value_type = String)]
    id: TurnId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    lane: JobLane,
    /// `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    #[schema(value_type = String)]
    state: JobState,
    attempt: u32,
    model: Option<String>,
    usage: TokenUsageView,
    /// The reply's message.
    #[schema(value_type = Option<String>)]
    reply_id: Option<MessageId>,
    /// The turn that took up the task of a steered one.
    #[schema(value_type = Option<String>)]
    continued_by: Option<TurnId>,
    #[schema(value_type = String)]
    trace_id: TraceId,
    #[schema(value_type = String, format = DateTime)]
    queued_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Millis>,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
    error: Option<TurnError>,
    /// Only with `wait`, once the task is done: by this turn or by one that took it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<TurnReply>,
    /// Inputs, model steps and tool results; only for one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<SessionMessageView>>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnError {
    code: String,
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
    #[param(value_type = Option<String>)]
    session: Option<SessionKey>,
    #[param(value_type = Option<String>)]
    state: Option<JobState>,
    /// At most 1000; 100 if not given.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnList {
    turns: Vec<TurnView>,
    /// Null on the last page.
    next_cursor: Option<String>,
}

/// Newest first.
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

/// With `wait` it answers when the task is done, or when the time is over.
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

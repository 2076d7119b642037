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
use crate::extract::{Id, Query};
use crate::http::messages::{Reply, Wait};
use crate::http::transcript::MessageView;
use crate::http::usage::Tokens;
use crate::paging::{Paging, Place};
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
    usage: Tokens,
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
    reply: Option<Reply>,
    /// Inputs, model steps and tool results; only for one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<MessageView>>,
}

#[derive(Serialize, ToSchema)]
pub struct TurnError {
    code: String,
    message: Option<String>,
}

impl TurnView {
    fn of(job: TurnJob, steps: Option<Vec<MessageView>>) -> Self {
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
pub struct Which {
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
pub struct Turns {
    turns: Vec<TurnView>,
    /// Null on the last page.
    next_cursor: Option<String>,
}

/// Newest first.
#[utoipa::path(get, path = "/turns", tag = "turns", params(Which), responses((status = 200, body = Turns)))]
pub async fn list(State(app): State<AppState>, Query(which): Query<Which>) -> Result<Json<Turns>> {
    let paging = Paging::of("turns", which.limit, which.cursor.as_deref())?;
    let filter = turns::TurnListFilter {
        session: which.session,
        state: which.state,
        before: paging.after.as_ref().map(|place| place.at),
        limit: paging.wanted(),
    };
    let mut found = app.engine.db().read(move |tx| turns::list(tx, &filter)).await?;
    let next_cursor = paging.cut(&mut found, |(seq, _)| Place { at: *seq, id: String::new() });
    let turns = found.into_iter().map(|(_, job)| TurnView::of(job, None)).collect();
    Ok(Json(Turns { turns, next_cursor }))
}

/// With `wait` it answers when the task is done, or when the time is over.
#[utoipa::path(
    get, path = "/turns/{id}", tag = "turns", params(("id" = String, Path), Wait),
    responses((status = 200, body = TurnView)),
)]
pub async fn show(
    State(app): State<AppState>,
    Id(id): Id,
    Query(wait): Query<Wait>,
) -> Result<Json<TurnView>> {
    let turn = TurnId::new(id.as_str());
    let reply = match wait.limit()? {
        None => None,
        Some(limit) => {
            let wanted = turn.clone();
            let job = app.engine.db().read(move |tx: &mut Tx<'_>| jobs::get(tx, &wanted)).await?;
            let session = job.ok_or_else(|| unknown(&turn))?.session;
            app.engine.wait_for_answer(&session, &turn, limit).await?.map(Reply::from)
        }
    };
    let (job, steps) = read(&app, &turn).await?;
    let steps = steps.into_iter().map(MessageView::from).collect();
    Ok(Json(TurnView { reply, ..TurnView::of(job, Some(steps)) }))
}

async fn read(app: &AppState, turn: &TurnId) -> Result<(TurnJob, Vec<messages::SessionMessage>)> {
    let wanted = turn.clone();
    let read = move |tx: &mut Tx<'_>| match jobs::get(tx, &wanted)? {
        Some(job) => Ok(Some((job, messages::list_by_turn(tx, &wanted)?))),
        None => Ok(None),
    };
    let found = app.engine.db().read(read).await?;
    found.ok_or_else(|| unknown(turn))
}

fn unknown(turn: &TurnId) -> Error {
    polyclaw_engine::Error::UnknownTurn(turn.to_string()).into()
}

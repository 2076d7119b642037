//! Turns: their request, steps and result.

use axum::Json;
use axum::extract::State;
use polyclaw_api::messages::WaitQuery;
use polyclaw_api::transcript::SessionMessageView;
use polyclaw_api::turns::{ListTurnsQuery, TurnError, TurnList, TurnView};
use polyclaw_domain::id::TurnId;
use polyclaw_store::jobs::{self, TurnJob};
use polyclaw_store::{Tx, messages, turns};

use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};
use crate::http::messages::{turn_reply, wait_limit};
use crate::http::transcript::session_message_view;
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

fn turn_view(job: TurnJob, steps: Option<Vec<SessionMessageView>>) -> TurnView {
    TurnView {
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
    let turns = found.into_iter().map(|(_, job)| turn_view(job, None)).collect();
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
    let reply = match wait_limit(&wait)? {
        None => None,
        Some(limit) => {
            let wanted = turn.clone();
            let job = app.engine.db().read(move |tx: &mut Tx<'_>| jobs::get(tx, &wanted)).await?;
            let session = job.ok_or_else(|| unknown_turn(&turn))?.session;
            app.engine.wait_for_answer(&session, &turn, limit).await?.map(turn_reply)
        }
    };
    let (job, steps) = read_turn(&app, &turn).await?;
    let steps = steps.into_iter().map(session_message_view).collect();
    Ok(Json(TurnView { reply, ..turn_view(job, Some(steps)) }))
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

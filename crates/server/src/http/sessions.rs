//! Sessions: list, create, show, change, stop, reset and delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::sessions::{
    CreatedSession, ListSessionsQuery, NewSession, QueuedTurnView, SessionList, SessionPatch, SessionView,
    StopResult,
};
use polyclaw_domain::backlog::SessionLoad;
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{Team, TeamRole, hex_color};
use polyclaw_domain::time::Millis;
use polyclaw_engine::session as engine;
use polyclaw_store::{Tx, jobs, sessions, teams, usage};

use crate::error::{Error, Result};
use crate::extract::{JsonBody, QueryParams, SessionKeyPath};
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

fn read_session(tx: &mut Tx<'_>, session: Session) -> polyclaw_store::Result<SessionView> {
    let load = jobs::session_load(tx, &session.key)?;
    let team = match team_of(tx, &session)? {
        Some(team) => Some(SessionTeam { color: color_of(tx, &session)?, team }),
        None => None,
    };
    let used = usage::sum_by_session(tx, &session.key)?;
    Ok(session_view_from(session, load, (team, used.and_then(|used| used.total_tokens()))))
}

fn session_view_from(
    session: Session,
    load: SessionLoad,
    (place, tokens): (Option<SessionTeam>, Option<i64>),
) -> SessionView {
    let team = place.as_ref().map(|place| &place.team);
    SessionView {
        session_key: session.key,
        session_id: session.id,
        agent_id: session.agent,
        active_agent_id: session.active_agent,
        model: session.model_override,
        owner_session_key: session.owner,
        spawn_depth: session.spawn_depth,
        delegation_depth: session.delegation_depth,
        lane: session.lane,
        channel: session.address.map(|address| address.channel),
        team: team.map(|team| team.name.clone()),
        team_id: team.map(|team| team.id.clone()),
        team_name: team.map(|team| team.name.clone()),
        teammate_color: place.as_ref().and_then(|place| place.color).map(str::to_owned),
        deliver_policy: session.delivers,
        send_policy: session.sends,
        team_role: session.team_role,
        status: session.status,
        title: session.title,
        queued: load.waiting,
        running_turn_id: load.running,
        tokens,
        created_at: session.created_at,
        updated_at: session.updated_at,
    }
}

/// The team of a session.
struct SessionTeam {
    team: Team,
    color: Option<&'static str>,
}

fn color_of(tx: &mut Tx<'_>, session: &Session) -> polyclaw_store::Result<Option<&'static str>> {
    let member = teams::find_member_by_session(tx, &session.key)?;
    Ok(member.map(|member| hex_color(&member.color)))
}

fn team_of(tx: &mut Tx<'_>, session: &Session) -> polyclaw_store::Result<Option<Team>> {
    match session.team_role {
        None => Ok(None),
        Some(TeamRole::Lead) => Ok(teams::list_led_by(tx, &session.key)?.pop()),
        Some(TeamRole::Member) => match teams::find_member_by_session(tx, &session.key)? {
            Some(member) => teams::get(tx, &member.team),
            None => Ok(None),
        },
    }
}

/// Lists sessions, most recently active first.
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(ListSessionsQuery), responses((status = 200, body = SessionList)))]
pub async fn list_sessions(
    State(app): State<AppState>,
    QueryParams(which): QueryParams<ListSessionsQuery>,
) -> Result<Json<SessionList>> {
    let paging = PageRequest::from_query("sessions", which.limit, which.cursor.as_deref())?;
    let after = paging.after.clone();
    let filter = sessions::SessionFilter {
        agent: which.agent,
        status: Some(which.status.unwrap_or(SessionStatus::Active)),
        owner: which.owner,
        after: after.map(|place| sessions::SessionCursor { updated_at: Millis(place.at), key: place.id }),
        limit: paging.row_limit(),
    };
    let read = move |tx: &mut Tx<'_>| {
        let mut found = sessions::list(tx, &filter)?;
        let next_cursor = paging.cut_page(&mut found, |session| PagePosition {
            at: session.updated_at.0,
            id: session.key.to_string(),
        });
        let mut sessions = Vec::with_capacity(found.len());
        for session in found {
            sessions.push(read_session(tx, session)?);
        }
        Ok(SessionList { sessions, next_cursor })
    };
    Ok(Json(app.engine.db().read(read).await?))
}

/// Creates an empty session.
#[utoipa::path(post, path = "/sessions", tag = "sessions", request_body = NewSession, responses((status = 201, body = CreatedSession)))]
pub async fn create_session(
    State(app): State<AppState>,
    JsonBody(new): JsonBody<NewSession>,
) -> Result<(StatusCode, Json<CreatedSession>)> {
    let id = app.engine.next_id();
    let agent = new.agent.unwrap_or_else(|| app.engine.agent_by_bindings("web", "default", &id));
    let key = SessionKey::for_direct(&agent, "web", &id);
    let session = app.engine.create_session(&key, &agent, new.title).await?;
    Ok((StatusCode::CREATED, Json(CreatedSession { session_key: session.key })))
}

/// Returns a session.
#[utoipa::path(get, path = "/sessions/{key}", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = SessionView)))]
pub async fn show_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<SessionView>> {
    session_view(&app, &key).await
}

async fn session_view(app: &AppState, key: &SessionKey) -> Result<Json<SessionView>> {
    let session = app.engine.load_session(key).await?;
    Ok(Json(app.engine.db().read(move |tx| read_session(tx, session.clone())).await?))
}

/// Changes the agent, model or delivery policies of a session.
/// Takes effect at the next turn.
#[utoipa::path(patch, path = "/sessions/{key}", tag = "sessions", params(("key" = String, Path)), request_body = SessionPatch, responses((status = 200, body = SessionView)))]
pub async fn update_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
    JsonBody(change): JsonBody<SessionPatch>,
) -> Result<Json<SessionView>> {
    let policies = (change.deliver_policy, change.send_policy);
    if change.active_agent_id.is_none() && change.model.is_none() && policies == (None, None) {
        let message = "at least one of active_agent_id, model, deliver_policy and send_policy is required";
        return Err(Error::InvalidBody(message.to_owned()));
    }
    if policies != (None, None) {
        app.engine.set_session_policies(&key, policies.0, policies.1).await?;
    }
    if let Some(agent) = &change.active_agent_id {
        app.engine.set_session_agent(&key, agent).await?;
    }
    if let Some(model) = change.model {
        app.engine.set_session_model(&key, model).await?;
    }
    session_view(&app, &key).await
}

/// Deletes a session with all its messages.
#[utoipa::path(delete, path = "/sessions/{key}", tag = "sessions", params(("key" = String, Path)), responses((status = 204)))]
pub async fn delete_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<StatusCode> {
    app.engine.delete_session(&key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops the running turn of a session and drops its interrupted tasks.
#[utoipa::path(post, path = "/sessions/{key}/stop", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = StopResult)))]
pub async fn stop_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<StopResult>> {
    let stopped = app.engine.stop_session(&key).await?;
    let engine::StopOutcome { turn, interrupted_tasks, children } = stopped;
    Ok(Json(StopResult { turn_id: turn, interrupted_tasks, children }))
}

/// Starts a new conversation under the same key.
/// The old conversation is kept.
#[utoipa::path(post, path = "/sessions/{key}/new", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = SessionView)))]
pub async fn reset_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<SessionView>> {
    app.engine.renew_session(&key).await?;
    session_view(&app, &key).await
}

/// Compacts the history of a session into a summary, in a turn of its own.
#[utoipa::path(post, path = "/sessions/{key}/compact", tag = "sessions", params(("key" = String, Path)), responses((status = 202, body = QueuedTurnView)))]
pub async fn compact_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<(StatusCode, Json<QueuedTurnView>)> {
    let turn_id = app.engine.compact_session(&key).await?;
    Ok((StatusCode::ACCEPTED, Json(QueuedTurnView { turn_id })))
}

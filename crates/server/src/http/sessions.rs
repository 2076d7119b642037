//! Sessions: list, create, show, change, stop, reset and delete.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::backlog::SessionLoad;
use polyclaw_domain::id::{AgentId, SessionId, TeamId, TurnId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{Team, TeamRole, hex_color};
use polyclaw_domain::time::Millis;
use polyclaw_engine::session as engine;
use polyclaw_store::{Tx, jobs, sessions, teams, usage};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::extract::{JsonBody, QueryParams, SessionKeyPath};
use crate::paging::{PagePosition, PageRequest};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct SessionView {
    /// The key that identifies the session.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The id of the current conversation. It changes when the session is reset.
    #[schema(value_type = String)]
    session_id: SessionId,
    /// The agent that the session belongs to.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The agent that answers now. It differs from `agent_id` after a switch.
    #[schema(value_type = String)]
    active_agent_id: AgentId,
    /// The model chosen for this session. Null means the agent's own.
    #[schema(value_type = Option<String>)]
    model: Option<ModelRef>,
    /// The session that started this one. Null if none did.
    #[schema(value_type = Option<String>)]
    owner_session_key: Option<SessionKey>,
    /// How many sub-agent spawns lie between this session and a person.
    spawn_depth: u32,
    /// How many delegations lie between this session and a person.
    delegation_depth: u32,
    /// The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    lane: JobLane,
    /// The channel of the conversation it was started from.
    channel: Option<String>,
    /// Whether answers of this session may be delivered to channels.
    deliver_policy: bool,
    /// Whether the session may send messages to channels on its own.
    send_policy: bool,
    /// The team that the session leads or belongs to, even if that has ended. Same as `team_name`.
    team: Option<String>,
    /// The id of that team.
    #[schema(value_type = Option<String>)]
    team_id: Option<TeamId>,
    /// The name of that team.
    team_name: Option<String>,
    /// The color of a team member, as `#RRGGBB`.
    teammate_color: Option<&'static str>,
    /// The role in the team: `lead` or `member`.
    #[schema(value_type = Option<String>)]
    team_role: Option<TeamRole>,
    /// `active` or `archived`.
    #[schema(value_type = String)]
    status: SessionStatus,
    /// The title of the session.
    title: Option<String>,
    /// Messages and interrupted tasks that wait to be handled.
    queued: usize,
    /// The running turn, if any.
    #[schema(value_type = Option<String>)]
    running_turn_id: Option<TurnId>,
    /// Input and output tokens of all calls with reported usage. Null if there are none.
    tokens: Option<i64>,
    /// When the session was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When something last happened in the session.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl SessionView {
    fn read_session(tx: &mut Tx<'_>, session: Session) -> polyclaw_store::Result<Self> {
        let load = jobs::session_load(tx, &session.key)?;
        let team = match team_of(tx, &session)? {
            Some(team) => Some(SessionTeam { color: color_of(tx, &session)?, team }),
            None => None,
        };
        let used = usage::sum_by_session(tx, &session.key)?;
        Ok(Self::from_session(session, load, (team, used.and_then(|used| used.total_tokens()))))
    }

    fn from_session(
        session: Session,
        load: SessionLoad,
        (place, tokens): (Option<SessionTeam>, Option<i64>),
    ) -> Self {
        let team = place.as_ref().map(|place| &place.team);
        Self {
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
            teammate_color: place.as_ref().and_then(|place| place.color),
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

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSessionsQuery {
    /// Only sessions of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentId>,
    /// `active` (default) or `archived`, which are sub-agents that ended some time ago.
    #[param(value_type = Option<String>)]
    status: Option<SessionStatus>,
    /// Only sessions started by this session.
    #[param(value_type = Option<String>)]
    owner: Option<SessionKey>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SessionList {
    /// The sessions of this page.
    sessions: Vec<SessionView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The agent of the session. Defaults to the one that the bindings select for the web chat.
    #[schema(value_type = Option<String>)]
    agent: Option<AgentId>,
    /// The title of the session.
    title: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct CreatedSession {
    /// The key of the new session.
    #[schema(value_type = String)]
    session_key: SessionKey,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionPatch {
    /// The agent that answers from now on.
    #[schema(value_type = Option<String>)]
    active_agent_id: Option<AgentId>,
    /// The model as `provider/model`. Null resets it to the agent's own.
    #[serde(default, deserialize_with = "present_or_null")]
    #[schema(value_type = Option<String>)]
    model: Option<Option<ModelRef>>,
    /// Whether answers of this session may be delivered to channels.
    deliver_policy: Option<bool>,
    /// Whether the session may send messages to channels on its own.
    send_policy: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct StopResult {
    /// The turn that was stopped, if one was running.
    #[schema(value_type = Option<String>)]
    turn_id: Option<TurnId>,
    /// The number of interrupted tasks that were dropped.
    interrupted_tasks: usize,
    /// What was stopped with it, recursively: the label of each run and the name of each team member.
    children: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct QueuedTurnView {
    /// The queued turn.
    #[schema(value_type = String)]
    turn_id: TurnId,
}

/// Distinguishes `null` from an absent field.
fn present_or_null<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Option<ModelRef>>, D::Error> {
    Option::deserialize(from).map(Some)
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
            sessions.push(SessionView::read_session(tx, session)?);
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
    Ok(Json(app.engine.db().read(move |tx| SessionView::read_session(tx, session.clone())).await?))
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

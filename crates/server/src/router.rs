//! The routes of the instance. A route listed here under `/api/v1` is also in the OpenAPI document.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use polyclaw_domain::redact::quote_safely;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::error::Error;
use crate::http::document::CommonRefusals;
use crate::http::{
    agents, approvals, channels, cleanup, commands, config, context, cron, delegations, document, events,
    files, health, history, hooks, logins, mcp, media, memory, messages, models, monitor, outbox, pairing,
    route, runs, sessions, skills, status, stream, teams, tools, transcript, tree, turns, usage,
};
use crate::metrics::HttpMetrics;
use crate::route_table::{RouteTable, calls};
use crate::state::AppState;
use crate::{a2a, app, guard, login, mcp as tool_server, observe, openai, page, redact, ws};

/// The prefix of the instance's own calls.
const API_PREFIX: &str = "/api/v1";

/// Calls that require the token.
fn api_routes() -> RouteTable<AppState> {
    RouteTable::new([
        calls!(sessions::list_sessions, sessions::create_session),
        calls!(sessions::show_session, sessions::update_session, sessions::delete_session),
        calls!(cleanup::clean_up_sessions),
        calls!(sessions::stop_session),
        calls!(sessions::reset_session),
        calls!(sessions::compact_session),
        calls!(tree::show_tree),
        calls!(runs::list_runs),
        calls!(runs::show_run),
        calls!(runs::dismiss_run),
        calls!(delegations::list_delegations),
        calls!(messages::send_message),
        calls!(commands::run_command),
        calls!(transcript::read_transcript),
        calls!(transcript::show_backlog),
        calls!(stream::stream_session),
        calls!(turns::list_turns),
        calls!(turns::show_turn),
        calls!(history::list_history),
        calls!(agents::list_agents, agents::create_agent),
        calls!(agents::show_agent, agents::update_agent, agents::delete_agent),
        calls!(agents::list_agent_tools),
        calls!(files::show_agent_file, files::write_agent_file),
        calls!(memory::list_memories, memory::store_memory, memory::forget_memories),
        calls!(memory::import_memories),
        calls!(memory::memory_status),
        calls!(memory::show_memory, memory::forget_memory),
        calls!(context::show_context),
        calls!(skills::list_skills),
        calls!(mcp::list_mcp_servers),
        calls!(models::list_models),
        calls!(tools::list_tools),
        calls!(tools::explain_tool),
        calls!(usage::show_usage),
        calls!(cron::list_cron_jobs, cron::create_cron_job),
        calls!(cron::show_cron_job, cron::update_cron_job, cron::delete_cron_job),
        calls!(cron::run_cron_job),
        calls!(teams::list_teams, teams::create_team),
        calls!(teams::show_team),
        calls!(teams::join_team),
        calls!(teams::plan::show_plan, teams::plan::answer_plan),
        calls!(teams::list_team_tasks, teams::add_task),
        calls!(teams::tasks::claim_task),
        calls!(teams::tasks::start_task),
        calls!(teams::tasks::complete_task),
        calls!(teams::tasks::release_task),
        calls!(teams::tasks::assign_task),
        calls!(teams::tasks::reopen_task),
        calls!(teams::tasks::delete_task),
        calls!(teams::list_team_messages, teams::send_team_message),
        calls!(teams::read_task_log),
        calls!(teams::set_lead),
        calls!(teams::shut_down_team),
        calls!(events::list_events),
        calls!(outbox::list_outbox),
        calls!(outbox::resend_outbox_message),
        calls!(outbox::dismiss_outbox_message),
        calls!(approvals::list_approvals),
        calls!(approvals::show_approval, approvals::decide_approval),
        calls!(pairing::list_pairings, pairing::approve_pairing, pairing::revoke_pairing),
        calls!(route::explain_route),
        calls!(channels::list_channels),
        calls!(config::reload_config),
        calls!(logins::list_logins, logins::create_login),
        calls!(logins::end_login),
        calls!(status::show_status),
        calls!(monitor::show_metrics),
        calls!(document::serve_openapi),
        calls!(media::show_media),
        calls!(ws::open_socket),
    ])
}

/// Calls that need no token. They reveal nothing secret.
fn public_routes() -> RouteTable<AppState> {
    RouteTable::new([calls!(health::show_health), calls!(health::show_readiness)])
}

/// The OpenAI-compatible API.
fn openai_api() -> Router<AppState> {
    Router::new()
        .route("/v1/chat/completions", post(openai::chat::create_completion))
        .route("/v1/responses", post(openai::responses::create_response))
        .route("/v1/models", get(openai::models::list_models))
        .route("/v1/models/{*id}", get(openai::models::show_model))
}

fn a2a_api() -> Router<AppState> {
    Router::new()
        .route("/.well-known/agent-card.json", get(a2a::default_agent_card))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(a2a::agent_card))
        .route("/a2a/{agent}", post(a2a::handle_rpc))
}

fn other_routes() -> Router<AppState> {
    Router::new()
        .route("/hooks/{name}", post(hooks::receive_hook))
        .route(
            "/channels/{channel}/{account}",
            get(channels::receive_webhook).post(channels::receive_webhook),
        )
        .route("/health", get(health::show_health))
        .route("/ready", get(health::show_readiness))
        .route("/login", post(login::redeem_login::<AppState>))
        .route("/", get(page::serve_index))
        .route("/chat.js", get(page::serve_script))
        .route("/chat.css", get(page::serve_style))
        .route("/app", get(app::redirect_to_app))
        .route(app::APP_PATH, get(app::serve_index))
        .route("/app/{*file}", get(app::serve_file))
}

/// 429 if a session gets too many requests.
const COMMON_REFUSALS: CommonRefusals = CommonRefusals { always: &[], changing: &[429] };

const OTHER_ROUTES: [&str; 20] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/models",
    "/v1/models/{*id}",
    "/hooks/{name}",
    "/channels/{channel}/{account}",
    "/health",
    "/ready",
    "/metrics",
    "/mcp",
    "/.well-known/agent-card.json",
    "/a2a/{agent}/.well-known/agent-card.json",
    "/a2a/{agent}",
    "/",
    "/login",
    "/chat.js",
    "/chat.css",
    "/app",
    "/app/",
    "/app/{*file}",
];

pub fn instance_router(state: AppState) -> Router {
    let protected = from_fn_with_state(state.clone(), guard::authenticate);
    let routes = api_routes();
    let paths = routes
        .full_paths(API_PREFIX)
        .into_iter()
        .chain(public_routes().full_paths(API_PREFIX))
        .chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(HttpMetrics::new(paths));
    let routes = routes.into_router(API_PREFIX);
    let clean = from_fn_with_state(state.clone(), redact::redact_errors::<AppState>);
    let tools = routes.clone().layer(clean).with_state(state.clone());
    let tools = tool_server::mcp_endpoint(tools, state.clone());
    routes
        .merge(openai_api())
        .merge(a2a_api())
        .route("/metrics", get(monitor::show_metrics))
        .route("/mcp", tools)
        .route_layer(protected)
        .merge(public_routes().into_router(API_PREFIX))
        .merge(other_routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown_route)
        .layer(from_fn_with_state(state.clone(), guard::check_host_and_origin::<AppState>))
        .layer(Extension(document::OpenApiDocument::new(openapi_bytes)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, observe::observe_request))
        .layer(from_fn_with_state(state.clone(), redact::redact_errors::<AppState>))
        .with_state(state)
}

/// Returns the OpenAPI document of `/api/v1`.
pub fn openapi() -> OpenApi {
    let described = OpenApiRouter::with_openapi(document::instance_document());
    let (_, mut document) =
        described.nest(API_PREFIX, api_routes().merge(public_routes()).openapi_router()).split_for_parts();
    document::finish_document(&mut document, &COMMON_REFUSALS);
    document
}

/// Returns the document as it is sent. OpenAPI has no sockets, so the schema of their frames is added to the other
/// schemas.
fn openapi_bytes() -> Bytes {
    let mut whole = serde_json::to_value(openapi()).unwrap_or_default();
    whole["components"]["schemas"]["Frame"] = stream::frame_schema();
    whole.to_string().into()
}

pub async fn unknown_route(request: Request) -> Error {
    Error::UnknownRoute(quote_safely(request.uri().path()))
}

pub async fn wrong_method(request: Request) -> Error {
    Error::WrongMethod(request.method().to_string())
}

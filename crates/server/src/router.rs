//! The table of contents. A route under `/api/v1` is in the OpenAPI document because it is here, and only so.

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
use crate::http::document::Refusals;
use crate::http::{
    agents, approvals, channels, cleanup, commands, config, context, cron, delegations, document, events,
    files, health, history, hooks, logins, mcp, media, memory, messages, models, monitor, outbox, pairing,
    route, runs, sessions, skills, status, stream, teams, tools, transcript, tree, turns, usage,
};
use crate::metrics::Metrics;
use crate::state::AppState;
use crate::table::{Table, calls};
use crate::{a2a, app, guard, login, mcp as tool_server, observe, openai, page, redact, ws};

/// Where all of the instance's own calls are.
const API: &str = "/api/v1";

/// Calls that need the token.
fn api() -> Table<AppState> {
    Table::new([
        calls!(sessions::list, sessions::create),
        calls!(sessions::show, sessions::change, sessions::delete),
        calls!(cleanup::run),
        calls!(sessions::stop),
        calls!(sessions::renew),
        calls!(sessions::compact),
        calls!(tree::show),
        calls!(runs::list),
        calls!(runs::show),
        calls!(runs::dismiss),
        calls!(delegations::list),
        calls!(messages::send),
        calls!(commands::run),
        calls!(transcript::page),
        calls!(transcript::backlog),
        calls!(stream::frames),
        calls!(turns::list),
        calls!(turns::show),
        calls!(history::list),
        calls!(agents::list, agents::create),
        calls!(agents::show, agents::change, agents::delete),
        calls!(agents::tools),
        calls!(files::show, files::write),
        calls!(memory::list, memory::store, memory::forget_all),
        calls!(memory::import),
        calls!(memory::status),
        calls!(memory::show, memory::forget),
        calls!(context::show),
        calls!(skills::list),
        calls!(mcp::list),
        calls!(models::list),
        calls!(tools::list),
        calls!(tools::explain),
        calls!(usage::totals),
        calls!(cron::list, cron::create),
        calls!(cron::show, cron::change, cron::delete),
        calls!(cron::run),
        calls!(teams::list, teams::create),
        calls!(teams::show),
        calls!(teams::join),
        calls!(teams::plan::show, teams::plan::answer),
        calls!(teams::tasks, teams::add_task),
        calls!(teams::work::claim),
        calls!(teams::work::start),
        calls!(teams::work::complete),
        calls!(teams::work::release),
        calls!(teams::work::assign),
        calls!(teams::work::reopen),
        calls!(teams::work::delete),
        calls!(teams::letters, teams::send),
        calls!(teams::log),
        calls!(teams::lead),
        calls!(teams::shutdown),
        calls!(events::list),
        calls!(outbox::list),
        calls!(outbox::resend),
        calls!(outbox::dismiss),
        calls!(approvals::list),
        calls!(approvals::show, approvals::decide),
        calls!(pairing::list, pairing::approve, pairing::revoke),
        calls!(route::explain),
        calls!(channels::list),
        calls!(config::reload),
        calls!(logins::list, logins::create),
        calls!(logins::end),
        calls!(status::counts),
        calls!(monitor::metrics),
        calls!(document::openapi),
        calls!(media::show),
        calls!(ws::open),
    ])
}

/// Calls anybody on an allowed host may make; they tell nothing secret.
fn public() -> Table<AppState> {
    Table::new([calls!(health::health), calls!(health::ready)])
}

/// The shapes of other people's clients.
fn openai_api() -> Router<AppState> {
    Router::new()
        .route("/v1/chat/completions", post(openai::chat::complete))
        .route("/v1/responses", post(openai::responses::create))
        .route("/v1/models", get(openai::models::list))
        .route("/v1/models/{*id}", get(openai::models::show))
}

fn a2a_api() -> Router<AppState> {
    Router::new()
        .route("/.well-known/agent-card.json", get(a2a::card))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(a2a::agent_card))
        .route("/a2a/{agent}", post(a2a::call))
}

fn rest() -> Router<AppState> {
    Router::new()
        .route("/hooks/{name}", post(hooks::receive))
        .route("/channels/{channel}/{account}", get(channels::called).post(channels::called))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/login", post(login::redeem::<AppState>))
        .route("/", get(page::index))
        .route("/chat.js", get(page::script))
        .route("/chat.css", get(page::style))
        .route("/app", get(app::folder))
        .route(app::FOLDER, get(app::index))
        .route("/app/{*file}", get(app::file))
}

/// Whoever asks too much of a session is told to wait.
const REFUSALS: Refusals = Refusals { always: &[], changing: &[429] };

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

pub fn router(state: AppState) -> Router {
    let protected = from_fn_with_state(state.clone(), guard::token);
    let routes = api();
    let paths =
        routes.paths(API).into_iter().chain(public().paths(API)).chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(Metrics::new(paths));
    let routes = routes.router(API);
    let clean = from_fn_with_state(state.clone(), redact::clean::<AppState>);
    let tools = routes.clone().layer(clean).with_state(state.clone());
    let tools = tool_server::endpoint(tools, state.clone());
    routes
        .merge(openai_api())
        .merge(a2a_api())
        .route("/metrics", get(monitor::metrics))
        .route("/mcp", tools)
        .route_layer(protected)
        .merge(public().router(API))
        .merge(rest())
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(from_fn_with_state(state.clone(), guard::place::<AppState>))
        .layer(Extension(document::Document::new(written)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, observe::observe))
        .layer(from_fn_with_state(state.clone(), redact::clean::<AppState>))
        .with_state(state)
}

/// The OpenAPI document of `/api/v1`.
pub fn openapi() -> OpenApi {
    let described = OpenApiRouter::with_openapi(document::info());
    let (_, mut document) = described.nest(API, api().and(public()).described()).split_for_parts();
    document::finish(&mut document, &REFUSALS);
    document
}

/// As it is sent. Sockets have no place in the paths of a document: their frames stand beside the other schemas.
fn written() -> Bytes {
    let mut whole = serde_json::to_value(openapi()).unwrap_or_default();
    whole["components"]["schemas"]["Frame"] = stream::schema();
    whole.to_string().into()
}

pub async fn unknown(request: Request) -> Error {
    Error::UnknownRoute(quote_safely(request.uri().path()))
}

pub async fn wrong_method(request: Request) -> Error {
    Error::WrongMethod(request.method().to_string())
}

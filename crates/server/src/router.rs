//! The table of contents. A route under `/api/v1` is in the OpenAPI document because it is here, and only so.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Extension, Router};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::Error;
use crate::http::{
    agents, approvals, channels, cleanup, commands, config, context, cron, delegations, document, events,
    health, hooks, logins, mcp, memory, messages, models, monitor, outbox, pairings, route, runs, sessions,
    skills, status, stream, teams, tools, transcript, tree, turns, usage,
};
use crate::metrics::Metrics;
use crate::state::AppState;
use crate::{app, guard, observe, openai, page, redact, ws};

/// Calls that need the token.
fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::show, sessions::change, sessions::delete))
        .routes(routes!(cleanup::run))
        .routes(routes!(sessions::stop))
        .routes(routes!(sessions::renew))
        .routes(routes!(sessions::compact))
        .routes(routes!(tree::show))
        .routes(routes!(runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::dismiss))
        .routes(routes!(delegations::list))
        .routes(routes!(messages::send))
        .routes(routes!(commands::run))
        .routes(routes!(transcript::page))
        .routes(routes!(transcript::backlog))
        .routes(routes!(stream::frames))
        .routes(routes!(turns::list))
        .routes(routes!(turns::show))
        .routes(routes!(agents::list, agents::create))
        .routes(routes!(agents::show, agents::change, agents::delete))
        .routes(routes!(agents::tools))
        .routes(routes!(memory::list, memory::store, memory::forget_all))
        .routes(routes!(memory::search))
        .routes(routes!(memory::import))
        .routes(routes!(memory::status))
        .routes(routes!(memory::show, memory::forget))
        .routes(routes!(context::show))
        .routes(routes!(skills::of_agent))
        .routes(routes!(mcp::list))
        .routes(routes!(models::list))
        .routes(routes!(tools::list))
        .routes(routes!(tools::explain))
        .routes(routes!(usage::totals))
        .routes(routes!(cron::list))
        .routes(routes!(cron::run))
        .routes(routes!(teams::list, teams::create))
        .routes(routes!(teams::show))
        .routes(routes!(teams::join))
        .routes(routes!(teams::tasks, teams::add_task))
        .routes(routes!(teams::letters, teams::send))
        .routes(routes!(teams::log))
        .routes(routes!(teams::lead))
        .routes(routes!(teams::shutdown))
        .routes(routes!(events::list))
        .routes(routes!(outbox::list))
        .routes(routes!(outbox::resend))
        .routes(routes!(outbox::dismiss))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show, approvals::decide))
        .routes(routes!(pairings::list))
        .routes(routes!(pairings::approve))
        .routes(routes!(pairings::revoke))
        .routes(routes!(route::explain))
        .routes(routes!(channels::list))
        .routes(routes!(config::reload))
        .routes(routes!(logins::create))
        .routes(routes!(status::counts))
        .routes(routes!(monitor::metrics))
        .routes(routes!(document::openapi))
        .routes(routes!(ws::open))
}

/// Calls anybody on an allowed host may make; they tell nothing secret.
fn public() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(health::health)).routes(routes!(health::ready))
}

/// The shapes of other people's clients.
fn openai_api() -> Router<AppState> {
    Router::new()
        .route("/v1/chat/completions", post(openai::chat::complete))
        .route("/v1/responses", post(openai::responses::create))
        .route("/v1/models", get(openai::models::list))
        .route("/v1/models/{*id}", get(openai::models::show))
}

fn rest() -> Router<AppState> {
    Router::new()
        .route("/hooks/{name}", post(hooks::receive))
        .route("/channels/{channel}/{account}", get(channels::called).post(channels::called))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/", get(page::index))
        .route("/chat.js", get(page::script))
        .route("/chat.css", get(page::style))
        .route("/app", get(app::folder))
        .route(app::FOLDER, get(app::index))
        .route("/app/{*file}", get(app::file))
}

const OTHER_ROUTES: [&str; 15] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/models",
    "/v1/models/{*id}",
    "/hooks/{name}",
    "/channels/{channel}/{account}",
    "/health",
    "/ready",
    "/metrics",
    "/",
    "/chat.js",
    "/chat.css",
    "/app",
    "/app/",
    "/app/{*file}",
];

pub fn router(state: AppState) -> Router {
    let protected = from_fn_with_state(state.clone(), guard::token);
    let (routes, document) = documented();
    let paths = document.paths.paths.keys().cloned().chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(Metrics::new(paths));
    let (open_routes, _) = OpenApiRouter::new().nest("/api/v1", public()).split_for_parts();
    routes
        .merge(openai_api())
        .route("/metrics", get(monitor::metrics))
        .route_layer(protected)
        .merge(open_routes)
        .merge(rest())
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown)
        .layer(from_fn_with_state(state.clone(), guard::place::<AppState>))
        .layer(Extension(document::Document::of(&document)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, observe::observe))
        .layer(from_fn_with_state(state.clone(), redact::clean))
        .with_state(state)
}

/// The protected routes, and the document of these and the public ones.
fn documented() -> (Router<AppState>, OpenApi) {
    let described = OpenApiRouter::with_openapi(document::info());
    let (routes, mut document) = described.nest("/api/v1", api()).split_for_parts();
    let (_, public) = OpenApiRouter::new().nest("/api/v1", public()).split_for_parts();
    document.merge(public);
    document::finish(&mut document);
    (routes, document)
}

/// The OpenAPI document of `/api/v1`.
pub fn openapi() -> OpenApi {
    documented().1
}

pub async fn unknown(request: Request) -> Error {
    Error::UnknownRoute(request.uri().path().chars().take(100).collect())
}

pub async fn wrong_method(request: Request) -> Error {
    Error::WrongMethod(request.method().to_string())
}

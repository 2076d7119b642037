//! The table of contents of the control plane. A route under `/api` is in the OpenAPI document because it is here.

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get};
use axum::{Extension, Router};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::ControlState;
use super::{
    audit, configs, gateway, guard, health, imports, instances, logs, messages, observe, page, pending,
    repeat, rules, tokens, ws,
};
use crate::http::document;
use crate::metrics::Metrics;
use crate::{app, guard as place, observe as around, page as files};

/// Calls that look.
fn looking() -> OpenApiRouter<ControlState> {
    OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::version))
        .routes(routes!(health::metrics))
        .routes(routes!(instances::list))
        .routes(routes!(instances::show))
        .routes(routes!(observe::details))
        .routes(routes!(observe::tasks))
        .routes(routes!(observe::usage))
        .routes(routes!(logs::lines))
        .routes(routes!(logs::download))
        .routes(routes!(configs::show))
        .routes(routes!(configs::validate))
        .routes(routes!(configs::diff))
        .routes(routes!(rules::list))
        .routes(routes!(messages::list))
        .routes(routes!(messages::dead))
        .routes(routes!(messages::show))
        .routes(routes!(messages::of_instance))
        .routes(routes!(document::openapi))
}

/// Calls that start and stop what is there.
fn operating() -> OpenApiRouter<ControlState> {
    OpenApiRouter::new()
        .routes(routes!(instances::start))
        .routes(routes!(instances::stop))
        .routes(routes!(instances::restart))
        .routes(routes!(messages::replay))
}

/// Calls of instances, which operators may make for them.
fn corresponding() -> OpenApiRouter<ControlState> {
    OpenApiRouter::new()
        .routes(routes!(messages::send))
        .routes(routes!(pending::poll))
        .routes(routes!(pending::acknowledge))
        .routes(routes!(pending::fail))
        .routes(routes!(pending::renew))
}

/// Calls that make, change and remove.
fn administering() -> OpenApiRouter<ControlState> {
    OpenApiRouter::new()
        .routes(routes!(instances::create))
        .routes(routes!(instances::change, instances::delete))
        .routes(routes!(instances::archive))
        .routes(routes!(instances::unarchive))
        .routes(routes!(instances::copy))
        .routes(routes!(configs::replace, configs::patch))
        .routes(routes!(rules::create))
        .routes(routes!(rules::remove))
        .routes(routes!(imports::openclaw))
}

/// Calls whose answers are secrets, or about who may call.
fn admitting() -> OpenApiRouter<ControlState> {
    OpenApiRouter::new()
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::login))
        .routes(routes!(imports::list))
        .routes(routes!(audit::list))
        .routes(routes!(audit::verify))
}

fn sockets() -> Router<ControlState> {
    Router::new()
        .route("/ws/instances", get(ws::instances))
        .route("/ws/instances/{id}/logs", get(ws::logs))
        .route("/ws/messages", get(ws::messages))
        .route("/ws/events", get(ws::events))
}

const GATEWAY: &str = "/api/instances/{id}/gateway/{*path}";
const OTHER_ROUTES: [&str; 6] =
    [GATEWAY, "/ws/instances", "/ws/instances/{id}/logs", "/ws/messages", "/ws/events", "/api/docs"];

pub fn router(state: ControlState) -> Router {
    let document = openapi();
    let paths = document.paths.paths.keys().cloned().chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(Metrics::new(paths));
    let once = from_fn_with_state(state.clone(), repeat::once);
    let plain =
        |group: OpenApiRouter<ControlState>| OpenApiRouter::new().nest("/api", group).split_for_parts().0;
    let changing = |group| plain(group).route_layer(once.clone()).route_layer(from_fn(repeat::bounded));
    let known = Router::new()
        .merge(plain(looking()).route_layer(from_fn(repeat::bounded)).route_layer(from_fn(guard::reads)))
        .merge(sockets().route_layer(from_fn(guard::reads)))
        .merge(changing(operating()).route_layer(from_fn(guard::operates)))
        .merge(changing(corresponding()).route_layer(from_fn(guard::corresponds)))
        .merge(changing(administering()).route_layer(from_fn(guard::administers)))
        .merge(
            plain(admitting()).route_layer(from_fn(repeat::bounded)).route_layer(from_fn(guard::administers)),
        )
        .merge(Router::new().route(GATEWAY, any(gateway::through)).route_layer(from_fn(guard::talks)))
        .route_layer(from_fn_with_state(state.clone(), guard::caller));
    known
        .route("/health", get(health::alive))
        .route("/", get(page::index))
        .route("/app", get(app::folder))
        .route(app::FOLDER, get(page::center))
        .route("/app/{*file}", get(app::file))
        .route("/api/docs", get(page::docs))
        .route("/api/docs.js", get(page::script))
        .route("/chat.css", get(files::style))
        .method_not_allowed_fallback(crate::router::wrong_method)
        .fallback(crate::router::unknown)
        .layer(from_fn_with_state(state.clone(), place::place::<ControlState>))
        .layer(Extension(document::Document::of(&document)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, around::observe))
        .with_state(state)
}

/// The OpenAPI document of `/api`.
pub fn openapi() -> OpenApi {
    let described = OpenApiRouter::with_openapi(document::control_info());
    // Merged before they are nested: routes of two groups may share a path.
    let all = looking().merge(operating()).merge(corresponding()).merge(administering()).merge(admitting());
    let (_, mut document) = described.nest("/api", all).split_for_parts();
    document::finish(&mut document);
    document
}

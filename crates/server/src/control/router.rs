//! The table of contents of the control plane. A route under `/api` is in the OpenAPI document because it is here.

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::state::ControlState;
use super::{
    audit, configs, gateway, guard, health, imports, instances, logs, messages, observe, page, pending,
    repeat, rules, tokens, ws,
};
use crate::http::document::{self, Refusals};
use crate::metrics::Metrics;
use crate::table::{Table, calls};
use crate::{app, guard as place, login, observe as around, page as files, redact};

/// Calls that look.
fn looking() -> Table<ControlState> {
    Table::new([
        calls!(health::health),
        calls!(health::version),
        calls!(health::metrics),
        calls!(instances::list),
        calls!(instances::show),
        calls!(observe::details),
        calls!(observe::tasks),
        calls!(observe::usage),
        calls!(logs::lines),
        calls!(logs::download),
        calls!(configs::show),
        calls!(configs::validate),
        calls!(configs::diff),
        calls!(tokens::logins),
        calls!(rules::list),
        calls!(rules::show),
        calls!(messages::list),
        calls!(messages::dead),
        calls!(messages::show),
        calls!(messages::of_instance),
        calls!(document::openapi),
    ])
}

/// A login may do no more than the token it is made with, so that every token is enough for one.
fn letting_in() -> Table<ControlState> {
    Table::new([calls!(tokens::login), calls!(tokens::end_login)])
}

/// Calls that start and stop what is there.
fn operating() -> Table<ControlState> {
    Table::new([
        calls!(instances::start),
        calls!(instances::stop),
        calls!(instances::restart),
        calls!(messages::replay),
    ])
}

/// Calls of instances, which operators may make for them.
fn corresponding() -> Table<ControlState> {
    Table::new([
        calls!(messages::send),
        calls!(pending::poll),
        calls!(pending::acknowledge),
        calls!(pending::fail),
        calls!(pending::renew),
    ])
}

/// Calls that make, change and remove.
fn administering() -> Table<ControlState> {
    Table::new([
        calls!(instances::create),
        calls!(instances::change, instances::delete),
        calls!(instances::archive),
        calls!(instances::unarchive),
        calls!(instances::copy),
        calls!(configs::replace, configs::patch),
        calls!(rules::create),
        calls!(rules::change, rules::remove),
        calls!(imports::openclaw),
    ])
}

/// Calls whose answers are secrets, or about who may call.
fn admitting() -> Table<ControlState> {
    Table::new([
        calls!(tokens::list, tokens::create),
        calls!(tokens::revoke),
        calls!(imports::list),
        calls!(audit::list),
        calls!(audit::verify),
    ])
}

fn sockets() -> Router<ControlState> {
    Router::new()
        .route("/ws/instances", get(ws::instances))
        .route("/ws/instances/{id}/logs", get(ws::logs))
        .route("/ws/messages", get(ws::messages))
        .route("/ws/events", get(ws::events))
}

/// Who guesses tokens is told to wait; a key of another call is refused.
const REFUSALS: Refusals = Refusals { always: &[429], changing: &[422] };

/// Where the control plane's own calls are.
const API: &str = "/api";
const GATEWAY: &str = "/api/instances/{id}/gateway/{*path}";
const OTHER_ROUTES: [&str; 6] =
    [GATEWAY, "/ws/instances", "/ws/instances/{id}/logs", "/ws/messages", "/ws/events", "/api/docs"];

pub fn router(state: ControlState) -> Router {
    let paths = all().paths(API).into_iter().chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(Metrics::new(paths));
    let once = from_fn_with_state(state.clone(), repeat::once);
    let clean = from_fn_with_state(state.clone(), redact::clean::<ControlState>);
    let changing = |group: Table<ControlState>| {
        // Before an answer is remembered.
        let answers = group.router(API).route_layer(clean.clone());
        answers.route_layer(once.clone()).route_layer(from_fn(repeat::bounded))
    };
    let once_through = from_fn_with_state(state.clone(), repeat::once_through);
    let through = Router::new().route(GATEWAY, gateway::methods());
    let through = through.route_layer(clean.clone()).route_layer(once_through);
    let known = Router::new()
        .merge(looking().router(API).route_layer(from_fn(repeat::bounded)).route_layer(from_fn(guard::reads)))
        .merge(sockets().route_layer(from_fn(guard::reads)))
        .merge(changing(operating()).route_layer(from_fn(guard::operates)))
        .merge(changing(corresponding()).route_layer(from_fn(guard::corresponds)))
        .merge(changing(administering()).route_layer(from_fn(guard::administers)))
        .merge(changing(admitting()).route_layer(from_fn(guard::administers)))
        .merge(changing(letting_in()).route_layer(from_fn(guard::reads)))
        .merge(through.route_layer(from_fn(guard::passes)))
        .route_layer(from_fn_with_state(state.clone(), guard::caller));
    known
        .route("/health", get(health::alive))
        .route("/login", post(login::redeem::<ControlState>))
        .route("/", get(page::index))
        .route("/app", get(app::folder))
        .route(app::FOLDER, get(app::index))
        .route("/app/{*file}", get(app::file))
        .route("/api/docs", get(page::docs))
        .route("/api/docs.js", get(page::script))
        .route("/chat.css", get(files::style))
        .method_not_allowed_fallback(crate::router::wrong_method)
        .fallback(crate::router::unknown)
        .layer(from_fn_with_state(state.clone(), place::place::<ControlState>))
        .layer(Extension(document::Document::new(written)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, around::observe))
        .layer(clean)
        .with_state(state)
}

/// The OpenAPI document of `/api`.
pub fn openapi() -> OpenApi {
    let described = OpenApiRouter::with_openapi(document::control_info());
    let (_, mut document) = described.nest(API, all().described()).split_for_parts();
    document::finish(&mut document, &REFUSALS);
    gateway::describe(&mut document);
    document
}

fn all() -> Table<ControlState> {
    let groups = [operating(), corresponding(), administering(), admitting(), letting_in()];
    groups.into_iter().fold(looking(), Table::and)
}

/// As it is sent.
fn written() -> Bytes {
    openapi().to_json().unwrap_or_default().into()
}

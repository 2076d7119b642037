//! The routes of the control plane. A route listed here under `/api` is also in the OpenAPI document.

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::state::ControlState;
use super::{
    audit, configs, gateway, guard, health, idempotency, imports, instances, logs, messages, observe, page,
    pending, rules, tokens, ws,
};
use crate::http::document::{self, CommonRefusals};
use crate::metrics::HttpMetrics;
use crate::route_table::{RouteTable, calls};
use crate::{app, guard as place, login, observe as around, page as files, redact};

/// Calls that only read.
fn read_routes() -> RouteTable<ControlState> {
    RouteTable::new([
        calls!(health::fleet_health),
        calls!(health::show_version),
        calls!(health::control_metrics),
        calls!(instances::list_instances),
        calls!(instances::show_instance),
        calls!(observe::show_details),
        calls!(observe::list_instance_tasks),
        calls!(observe::show_instance_usage),
        calls!(logs::read_log_lines),
        calls!(logs::download_log),
        calls!(configs::show_config),
        calls!(configs::validate_config),
        calls!(configs::diff_config),
        calls!(tokens::list_token_logins),
        calls!(rules::list_rules),
        calls!(rules::show_rule),
        calls!(messages::list_envelopes),
        calls!(messages::list_dead_letters),
        calls!(messages::show_envelope),
        calls!(messages::list_instance_envelopes),
        calls!(document::serve_openapi),
    ])
}

/// A login has at most the access of the token it is made with, so any token may create one.
fn login_routes() -> RouteTable<ControlState> {
    RouteTable::new([calls!(tokens::create_login_link), calls!(tokens::end_login)])
}

/// Calls that start and stop instances and replay messages.
fn operate_routes() -> RouteTable<ControlState> {
    RouteTable::new([
        calls!(instances::start_instance),
        calls!(instances::stop_instance),
        calls!(instances::restart_instance),
        calls!(messages::replay_dead_letter),
    ])
}

/// Calls of instances, which operators may make on their behalf.
fn instance_routes() -> RouteTable<ControlState> {
    RouteTable::new([
        calls!(messages::send_envelope),
        calls!(pending::poll_pending),
        calls!(pending::acknowledge_pending),
        calls!(pending::fail_pending),
        calls!(pending::renew_pending),
    ])
}

/// Calls that create, change and remove.
fn admin_routes() -> RouteTable<ControlState> {
    RouteTable::new([
        calls!(instances::create_instance),
        calls!(instances::update_instance, instances::delete_instance),
        calls!(instances::archive_instance),
        calls!(instances::unarchive_instance),
        calls!(instances::clone_instance),
        calls!(configs::replace_config, configs::patch_config),
        calls!(rules::create_rule),
        calls!(rules::update_rule, rules::delete_rule),
        calls!(imports::import_openclaw),
    ])
}

/// Calls that return secrets, or information about access.
fn admin_read_routes() -> RouteTable<ControlState> {
    RouteTable::new([
        calls!(tokens::list_tokens, tokens::create_token),
        calls!(tokens::revoke_token),
        calls!(imports::list_imports),
        calls!(audit::list_audit_entries),
        calls!(audit::verify_audit_chain),
    ])
}

fn socket_routes() -> Router<ControlState> {
    Router::new()
        .route("/ws/instances", get(ws::instances))
        .route("/ws/instances/{id}/logs", get(ws::logs))
        .route("/ws/messages", get(ws::messages))
        .route("/ws/events", get(ws::events))
}

/// 429 after too many wrong tokens; 422 for an idempotency key of another call.
const COMMON_REFUSALS: CommonRefusals = CommonRefusals { always: &[429], changing: &[422] };

/// The prefix of the control plane's own calls.
const API_PREFIX: &str = "/api";
const GATEWAY_ROUTE: &str = "/api/instances/{id}/gateway/{*path}";
const OTHER_ROUTES: [&str; 6] =
    [GATEWAY_ROUTE, "/ws/instances", "/ws/instances/{id}/logs", "/ws/messages", "/ws/events", "/api/docs"];

pub fn control_router(state: ControlState) -> Router {
    let paths = all_routes().full_paths(API_PREFIX).into_iter().chain(OTHER_ROUTES.map(str::to_owned));
    let metrics = Arc::new(HttpMetrics::new(paths));
    let once = from_fn_with_state(state.clone(), idempotency::run_once);
    let clean = from_fn_with_state(state.clone(), redact::redact_errors::<ControlState>);
    let changing = |group: RouteTable<ControlState>| {
        // Redacts errors before the response is stored.
        let answers = group.into_router(API_PREFIX).route_layer(clean.clone());
        answers.route_layer(once.clone()).route_layer(from_fn(idempotency::limit_body))
    };
    let once_through = from_fn_with_state(state.clone(), idempotency::run_proxied_once);
    let through = Router::new().route(GATEWAY_ROUTE, gateway::gateway_methods());
    let through = through.route_layer(clean.clone()).route_layer(once_through);
    let known = Router::new()
        .merge(
            read_routes()
                .into_router(API_PREFIX)
                .route_layer(from_fn(idempotency::limit_body))
                .route_layer(from_fn(guard::require_read)),
        )
        .merge(socket_routes().route_layer(from_fn(guard::require_read)))
        .merge(changing(operate_routes()).route_layer(from_fn(guard::require_operate)))
        .merge(changing(instance_routes()).route_layer(from_fn(guard::require_instance_or_operator)))
        .merge(changing(admin_routes()).route_layer(from_fn(guard::require_admin)))
        .merge(changing(admin_read_routes()).route_layer(from_fn(guard::require_admin)))
        .merge(changing(login_routes()).route_layer(from_fn(guard::require_read)))
        .merge(through.route_layer(from_fn(guard::require_gateway_access)))
        .route_layer(from_fn_with_state(state.clone(), guard::authenticate_caller));
    known
        .route("/health", get(health::show_liveness))
        .route("/login", post(login::redeem_login::<ControlState>))
        .route("/", get(page::redirect_to_app))
        .route("/app", get(app::redirect_to_app))
        .route(app::APP_PATH, get(app::serve_index))
        .route("/app/{*file}", get(app::serve_file))
        .route("/api/docs", get(page::serve_docs))
        .route("/api/docs.js", get(page::serve_docs_script))
        .route("/chat.css", get(files::serve_style))
        .method_not_allowed_fallback(crate::router::wrong_method)
        .fallback(crate::router::unknown_route)
        .layer(from_fn_with_state(state.clone(), place::check_host_and_origin::<ControlState>))
        .layer(Extension(document::OpenApiDocument::new(openapi_bytes)))
        .layer(Extension(Arc::clone(&metrics)))
        .layer(from_fn_with_state(metrics, around::observe_request))
        .layer(clean)
        .with_state(state)
}

/// Returns the OpenAPI document of `/api`.
pub fn openapi() -> OpenApi {
    let described = OpenApiRouter::with_openapi(document::control_document());
    let (_, mut document) = described.nest(API_PREFIX, all_routes().openapi_router()).split_for_parts();
    document::finish_document(&mut document, &COMMON_REFUSALS);
    // Only the instance knows the responses of these paths, so they get no common refusals.
    gateway::add_gateway_paths(&mut document);
    document::complete_texts(&mut document);
    document
}

fn all_routes() -> RouteTable<ControlState> {
    let groups = [operate_routes(), instance_routes(), admin_routes(), admin_read_routes(), login_routes()];
    groups.into_iter().fold(read_routes(), RouteTable::merge)
}

/// Returns the document as it is sent.
fn openapi_bytes() -> Bytes {
    openapi().to_json().unwrap_or_default().into()
}

//! `GET /openapi.json`: the API document, generated from the routes.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use axum::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use polyclaw_api::error::ErrorBody;
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, Content, ContentBuilder, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
    SecurityRequirement,
};

pub use super::document_texts::complete_texts;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Polyclaw instance",
        description = "Sessions, turns, agents and the state of every message. All errors have the same format.",
        contact(name = "Polyclaw")
    ),
    components(schemas(ErrorBody))
)]
struct InstanceApiInfo;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Polyclaw control plane",
        description = "Creates, starts, watches and configures many instances. `/api/instances/{id}/gateway/…` forwards to \
                       `/api/v1/…` of an instance. Calls that change something accept an `Idempotency-Key`.",
        contact(name = "Polyclaw")
    ),
    components(schemas(ErrorBody))
)]
struct ControlApiInfo;

pub fn instance_document() -> OpenApi {
    set_version(InstanceApiInfo::openapi())
}

pub fn control_document() -> OpenApi {
    set_version(ControlApiInfo::openapi())
}

fn set_version(mut document: OpenApi) -> OpenApi {
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document
}

/// Error statuses that any call of a server may return, besides those implied by its parameters and body.
pub struct CommonRefusals {
    pub always: &'static [u16],
    /// Statuses of calls that change something.
    pub changing: &'static [u16],
}

/// Adds what all routes share: the security scheme and the error responses.
pub fn finish_document(document: &mut OpenApi, refusals: &CommonRefusals) {
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_with(Components::new).add_security_scheme("token", bearer);
    document.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>("token", [])]);
    complete_texts(document);
    let bare = optional_objects(document);
    for item in document.paths.paths.values_mut() {
        let looks = [&mut item.get].into_iter().flatten().map(|look| (look, Vec::new()));
        let changes = [&mut item.post, &mut item.patch, &mut item.delete, &mut item.put];
        let changes =
            changes.into_iter().flatten().map(|change| (change, [&[409], refusals.changing].concat()));
        for (operation, more) in looks.chain(changes) {
            add_refusals(operation, [&more, refusals.always].concat());
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                make_optional(body, &bare);
            }
        }
    }
}

/// Adds the error statuses of an operation: those of authentication, of invalid input, and the given ones. Statuses
/// that the operation declares itself stay.
fn add_refusals(operation: &mut Operation, more: Vec<u16>) {
    let has_parameters = operation.parameters.iter().flatten().next().is_some();
    let has_body = operation.request_body.is_some();
    let mut statuses = vec![401, 403, 500, 503];
    statuses.extend(more);
    // The input may be invalid or name something that does not exist.
    if has_body || has_parameters {
        statuses.extend([400, 404]);
    }
    if has_body {
        statuses.extend([408, 413, 415]);
    }
    for status in statuses {
        let known = &mut operation.responses.responses;
        known.entry(status.to_string()).or_insert_with(|| error_body_response().into());
    }
}

fn error_body_response() -> Response {
    let shape = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    let notice = ResponseBuilder::new().description("What went wrong, with a stable code");
    notice.content("application/json", shape).build()
}

/// Returns references to the objects that have no required fields.
fn optional_objects(document: &OpenApi) -> BTreeSet<String> {
    let schemas = document.components.iter().flat_map(|components| &components.schemas);
    let bare = schemas
        .filter(|(_, schema)| matches!(schema, RefOr::T(Schema::Object(one)) if one.required.is_empty()));
    bare.map(|(name, _)| Ref::from_schema_name(name).ref_location).collect()
}

/// Marks a body as optional if `{}` is valid, because an absent body counts as `{}`.
fn make_optional(body: &mut RequestBody, bare: &BTreeSet<String>) {
    let is_bare = |content: &RefOr<Content>| match content {
        RefOr::T(Content { schema: Some(RefOr::Ref(named)), .. }) => bare.contains(&named.ref_location),
        _ => false,
    };
    if body.content.values().all(is_bare) {
        body.required = Some(Required::False);
    }
}

/// The serialized document. It is generated on first use, because most servers never need it.
#[derive(Clone)]
pub struct OpenApiDocument(Arc<LazyLock<Bytes>>);

impl OpenApiDocument {
    pub fn new(write: fn() -> Bytes) -> Self {
        Self(Arc::new(LazyLock::new(write)))
    }
}

/// Returns this OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", tag = "instance", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn serve_openapi(
    Extension(OpenApiDocument(json)): Extension<OpenApiDocument>,
) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], Bytes::clone(&json))
}

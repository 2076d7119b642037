//! `GET /openapi.json`: the API as the router has it.

use axum::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, ResponseBuilder, SecurityRequirement};

use crate::error::Problem;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Polyclaw instance",
        description = "Sessions, turns, agents and what became of every message. Errors have one shape."
    ),
    components(schemas(Problem))
)]
struct Info;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Polyclaw control plane",
        description = "Many instances: made, started, watched and configured. `/api/instances/{id}/gateway/…` leads \
                       through to `/api/v1/…` of an instance. Calls that change something take an `Idempotency-Key`."
    ),
    components(schemas(Problem))
)]
struct ControlInfo;

pub fn info() -> OpenApi {
    versioned(Info::openapi())
}

pub fn control_info() -> OpenApi {
    versioned(ControlInfo::openapi())
}

fn versioned(mut document: OpenApi) -> OpenApi {
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document
}

/// What every route has: the token, and the shape of its errors.
pub fn finish(document: &mut OpenApi) {
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_with(Components::new).add_security_scheme("token", bearer);
    document.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>("token", [])]);
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete, &mut item.put];
        for operation in operations.into_iter().flatten() {
            let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            let response = ResponseBuilder::new()
                .description("What went wrong, with a stable code")
                .content("application/json", problem)
                .build();
            operation.responses.responses.insert("default".to_owned(), response.into());
        }
    }
}

/// The document, written once.
#[derive(Clone)]
pub struct Document(Bytes);

impl Document {
    pub fn of(document: &OpenApi) -> Self {
        Self(document.to_json().unwrap_or_default().into())
    }
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "instance", responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn openapi(Extension(Document(json)): Extension<Document>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], json)
}

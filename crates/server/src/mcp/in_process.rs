//! `/mcp`: MCP over streamable HTTP. The caller is already authenticated; its calls go to the same routes as those of
//! other clients.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::Response;
use axum::routing::{MethodRouter, any};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use polyclaw_domain::port::BoxFuture;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use super::ToolServer;
use super::api::{ApiMethod, ApiRefusal, CallDelivery, InstanceApi};
use crate::error::Error;
use crate::extract::MAX_BODY_BYTES;
use crate::state::AppState;

/// The routes of `/api/v1` without authentication.
#[derive(Clone)]
struct InProcessApi {
    routes: Router,
    app: AppState,
}

/// Serves stateless requests: nothing is kept between two, so a restart of the instance loses nothing.
pub fn mcp_endpoint(routes: Router, app: AppState) -> MethodRouter<AppState> {
    // The guard checks hosts and origins for every route.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY_BYTES);
    let inside = InProcessApi { routes, app };
    let tools = move || Ok(ToolServer::new(inside.clone()));
    let service = StreamableHttpService::new(tools, Arc::new(LocalSessionManager::default()), config);
    any(move |request: Request| {
        let service = service.clone();
        async move { service.handle(request).await.map(Body::new) }
    })
}

impl InstanceApi for InProcessApi {
    fn call_instance<'a>(
        &'a self,
        verb: ApiMethod,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, ApiRefusal>> {
        Box::pin(async move {
            let method = match verb {
                ApiMethod::Get => Method::GET,
                ApiMethod::Post => Method::POST,
            };
            let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
            let request =
                request.body(body).map_err(|error| ApiRefusal::invalid_arguments(error.to_string()))?;
            // Infallible, because errors are responses too.
            let Ok(response) = TowerToHyperService::new(self.routes.clone()).call(request).await;
            read_response(response).await
        })
    }

    fn new_nonce(&self) -> String {
        self.app.engine.next_id()
    }
}

async fn read_response(response: Response) -> Result<Value, ApiRefusal> {
    let is_ok = response.status().is_success();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if is_ok {
        return Ok(value);
    }
    let reply = &value["error"];
    let text = |field: &str| reply[field].as_str().map(str::to_owned);
    Err(ApiRefusal {
        code: text("code").unwrap_or_else(|| Error::Panicked.code().to_owned()),
        message: text("message").unwrap_or_else(|| Error::Panicked.to_string()),
        hint: text("hint"),
        delivery: CallDelivery::Yes,
    })
}

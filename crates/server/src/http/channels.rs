//! `/channels/{channel}/{account}`: webhooks of chat platforms. The platform signs its calls and the adapter verifies
//! them. Also lists the connection state of each account.

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polyclaw_api::channels::{ChannelAccountList, ChannelAccountView};
use polyclaw_domain::channel::WebhookRequest;

use crate::error::{Error, Result};
use crate::extract::read_body;
use crate::state::AppState;

/// Lists the chat accounts with their connection state.
#[utoipa::path(get, path = "/channels", tag = "channels", responses((status = 200, body = ChannelAccountList)))]
pub async fn list_channels(State(app): State<AppState>) -> Json<ChannelAccountList> {
    let redactor = app.engine.settings().redactor.clone();
    let mut channels: Vec<ChannelAccountView> =
        app.engine.list_connection_states().into_iter().map(ChannelAccountView::from).collect();
    channels.iter_mut().filter_map(|view| view.reason.as_mut()).for_each(|why| redactor.redact_in_place(why));
    Json(ChannelAccountList { channels })
}

pub async fn receive_webhook(State(app): State<AppState>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &app).await;
    let Path((channel, account)) = path.map_err(|error| Error::invalid_field("path", error.body_text()))?;
    let (method, query) = (parts.method.to_string(), parts.uri.query().unwrap_or_default().to_owned());
    let headers = text_headers(&parts.headers);
    let body = read_body(Request::from_parts(parts, body)).await?.to_vec();
    let call = WebhookRequest { method, query, headers, body };
    let answer = app.engine.handle_webhook_call(&channel, &account, call).await;
    let answer = answer.ok_or_else(|| Error::UnknownChannel(channel.chars().take(40).collect()))?;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, [(header::CONTENT_TYPE, answer.media_type)], answer.body).into_response())
}

/// Returns the headers with text values, by lower-case name.
fn text_headers(given: &HeaderMap) -> Vec<(String, String)> {
    let text = given.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    text.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

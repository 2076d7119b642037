//! `/channels/{channel}/{account}`: platforms that call. They sign what they send, and their adapter checks it.

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polyclaw_domain::channel::Call;

use crate::error::{Error, Result};
use crate::extract::read;
use crate::state::AppState;

pub async fn called(State(app): State<AppState>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &app).await;
    let Path((channel, account)) = path.map_err(|error| Error::invalid("path", error.body_text()))?;
    let (method, query) = (parts.method.to_string(), parts.uri.query().unwrap_or_default().to_owned());
    let headers = headers(&parts.headers);
    let body = read(Request::from_parts(parts, body)).await?.to_vec();
    let call = Call { method, query, headers, body };
    let answer = app.engine.called(&channel, &account, call).await;
    let answer = answer.ok_or_else(|| Error::UnknownChannel(channel.chars().take(40).collect()))?;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, [(header::CONTENT_TYPE, answer.media_type)], answer.body).into_response())
}

/// Those that are text, by their names in lower case.
fn headers(given: &HeaderMap) -> Vec<(String, String)> {
    let text = given.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    text.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

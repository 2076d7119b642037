//! `POST /hooks/{name}`: signed webhooks.

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hmac::{Hmac, KeyInit, Mac};
use polyclaw_api::commands::CommandReply;
use polyclaw_api::messages::WaitQuery;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, WEBHOOK_CHANNEL};
use polyclaw_domain::command::CallerRole;
use polyclaw_domain::config::WebhookPost;
use polyclaw_domain::hex::{decode_hex, encode_hex};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobPriority;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::inbound::HookRoute;
use polyclaw_engine::ingress::IngressMessage;
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams, bounded_key, parse_json, read_body};
use crate::http::messages::{accept_and_wait, wait_limit};
use crate::state::{AppState, SignedHook};

const SIGNATURE_HEADER: &str = "x-polyclaw-signature";
/// Unix seconds. If sent, the signature covers `<timestamp>.<body>`.
const TIMESTAMP_HEADER: &str = "x-polyclaw-timestamp";
/// The allowed clock difference of a sender, and the time in which equal bodies without an id count as one post.
const REPLAY_WINDOW_SECS: i64 = 300;

/// The signature covers the raw body, so it is verified before the body is parsed.
pub async fn receive_hook(State(app): State<AppState>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let PathId(name) = PathId::from_request_parts(&mut parts, &app).await?;
    let QueryParams(wait) = QueryParams::<WaitQuery>::from_request_parts(&mut parts, &app).await?;
    let headers = std::mem::take(&mut parts.headers);
    let body = read_body(Request::from_parts(parts, body)).await?;
    let hook = app.hooks.get(&name).ok_or_else(|| Error::UnknownHook(name.clone()))?;
    let now_secs = app.engine.now().0 / 1000;
    let signed_at = verify_signature(hook, &headers, &body, now_secs)?;
    let limit = wait_limit(&wait)?;
    let (address, mut post) = split_address(&name, parse_post(hook, &body)?);
    post.id.get_or_insert_with(|| replay_id(&body, signed_at, now_secs));
    let hooked = hook.resolve_target(&app, &address)?;
    let takes = hooked.accepts_command(&post.text);
    let inbound = to_inbound(hooked, address, post);
    // The signer speaks for one conversation and is not an owner.
    if takes && let Some(text) = app.engine.run_inbound_command(&inbound, CallerRole::Alone).await? {
        return Ok((StatusCode::OK, Json(CommandReply { text })).into_response());
    }
    Ok(accept_and_wait(&app, inbound, limit).await?.into_response())
}

/// Derives an id for a post without one, so that a replayed post counts as the same. Without a signed time this holds
/// only within a time window, because the same text may be sent again on purpose.
fn replay_id(body: &[u8], signed_at: Option<i64>, now_secs: i64) -> String {
    let moment = signed_at.unwrap_or(now_secs / REPLAY_WINDOW_SECS);
    format!("body:{}:{moment}", encode_hex(&Sha256::digest(body)))
}

/// Verifies the signature. Returns the signed time, if there was one.
fn verify_signature(
    hook: &SignedHook,
    headers: &HeaderMap,
    body: &[u8],
    now_secs: i64,
) -> Result<Option<i64>> {
    let stamp = headers.get(TIMESTAMP_HEADER).map(|value| value.to_str().map_err(|_| Error::BadSignature));
    let stamp = stamp.transpose()?;
    let signed_at = stamp.map(|stamp| stamp.parse::<i64>().map_err(|_| Error::BadSignature)).transpose()?;
    let given = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| decode_hex(value.strip_prefix("sha256=")?)).ok_or(Error::BadSignature)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(hook.secret.as_bytes()).map_err(|_| Error::BadSignature)?;
    if let Some(stamp) = stamp {
        mac.update(stamp.as_bytes());
        mac.update(b".");
    }
    mac.update(body);
    // Constant-time comparison.
    mac.verify_slice(&given).map_err(|_| Error::BadSignature)?;
    match signed_at {
        Some(at) if now_secs.abs_diff(at) > REPLAY_WINDOW_SECS.unsigned_abs() => Err(Error::OldSignature),
        _ => Ok(signed_at),
    }
}

impl SignedHook {
    /// Returns the agent of a conversation: the hook's own, else the one the bindings select.
    pub fn resolve_target(&self, app: &AppState, address: &ChatAddress) -> Result<HookRoute> {
        let bound = || app.engine.agent_by_bindings(WEBHOOK_CHANNEL, &address.account, &address.peer);
        let agent = self.agent.clone().unwrap_or_else(bound);
        let session = hook_session(&agent, address)?;
        Ok(HookRoute { agent, session, is_named: self.agent.is_some(), is_mapped: !self.map.is_empty() })
    }
}

/// Extracts the message from a post, by the hook's mapping or in our own format.
fn parse_post(hook: &SignedHook, body: &[u8]) -> Result<WebhookPost> {
    match hook.map.is_empty() {
        true => parse_json(body),
        false => hook.map.extract_post(&parse_json(body)?).map_err(Error::InvalidBody),
    }
}

/// Returns the session of a post's conversation.
fn hook_session(
    agent: &AgentId,
    ChatAddress { account, peer, thread, .. }: &ChatAddress,
) -> Result<SessionKey> {
    let mut parts = vec![WEBHOOK_CHANNEL, account, "dm", peer];
    if let Some(thread) = thread {
        parts.extend(["thread", thread]);
    }
    bounded_key(SessionKey::from_parts(agent, &parts), "peer")
}

fn split_address(name: &str, mut post: WebhookPost) -> (ChatAddress, WebhookPost) {
    let peer = post.peer.take().unwrap_or_else(|| "default".to_owned());
    let (channel, account) = (WEBHOOK_CHANNEL.to_owned(), name.to_owned());
    (ChatAddress { channel, account, peer, thread: post.thread.take() }, post)
}

fn to_inbound(hooked: HookRoute, address: ChatAddress, post: WebhookPost) -> IngressMessage {
    let mut meta = None;
    Authority::NonOwner.write_to_meta(&mut meta);
    IngressMessage {
        meta,
        by: hooked.fixed_agent(),
        origin: MessageOrigin::Hook,
        priority: JobPriority::Webhook,
        platform_id: post.id,
        ..IngressMessage::from_person(hooked.session, hooked.agent, address, post.text)
    }
}

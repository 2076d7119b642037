//! Socket Mode: a WebSocket that this instance opens and reopens. An envelope is acknowledged after its message was
//! accepted; Slack redelivers unacknowledged ones.

use futures_util::{SinkExt, StreamExt};
use polyclaw_domain::backoff::Backoff;
use polyclaw_domain::channel::{InboundSink, IngestOutcome};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::account::{SlackAccount, SlackDelivery};
use super::api::with_setting_hint;
use super::event::SlackIdentity;
use crate::socket::{self, PlatformSocket};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SocketEnvelope {
    #[serde(rename = "type")]
    kind: String,
    envelope_id: Option<String>,
    payload: Value,
    reason: String,
}

impl SlackAccount {
    /// Receives until the future is dropped.
    pub(super) async fn receive_events(&self, inbox: &dyn InboundSink) {
        let mut backoff = self.retry_timing.backoff();
        loop {
            let ended = self.run_socket(inbox, &mut backoff).await;
            let pause = backoff.next_delay();
            match ended {
                Ok(reason) => {
                    tracing::debug!(
                        account = self.name,
                        reason,
                        "Slack asked for a new socket; reconnecting"
                    );
                }
                Err(reason) => {
                    self.connection.set_disconnected(&*reason);
                    tracing::warn!(
                        account = self.name,
                        reason,
                        ?pause,
                        "Slack connection failed; reconnecting"
                    );
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Runs one socket until it ends. `Ok` means that Slack asked for a new connection, which is not a failure.
    async fn run_socket(&self, inbox: &dyn InboundSink, backoff: &mut Backoff) -> Result<String, String> {
        let me = self.identity().await?;
        let mut socket = self.open_socket().await?;
        loop {
            let Some(text) = self.next_text(&mut socket).await? else { continue };
            let Ok(envelope) = serde_json::from_str::<SocketEnvelope>(&text) else { continue };
            match envelope.kind.as_str() {
                "hello" => {
                    backoff.reset();
                    self.connection.set_connected();
                    tracing::info!(account = self.name, "connected to Slack");
                }
                "disconnect" if envelope.reason == "link_disabled" => {
                    return Err("Socket Mode is disabled for this app".to_owned());
                }
                "disconnect" => return Ok(envelope.reason),
                _ => self.answer_envelope(me, &envelope, &mut socket, inbox).await?,
            }
        }
    }

    async fn open_socket(&self) -> Result<PlatformSocket, String> {
        let token = self.settings.app_token.as_ref().ok_or("app_token is not set")?;
        let answer = self.api.query("apps.connections.open", token, &json!({})).await;
        let answer = answer.map_err(|reason| with_setting_hint(reason, "app_token"))?;
        socket::open_socket(answer["url"].as_str().unwrap_or_default()).await
    }

    /// Returns the next text frame. Pings a silent socket and gives it up if there is no reply.
    async fn next_text(&self, socket: &mut PlatformSocket) -> Result<Option<String>, String> {
        let mut received = timeout(self.retry_timing.request_timeout, socket.next()).await;
        if received.is_err() {
            socket.send(Message::Ping(Bytes::new())).await.map_err(|error| error.to_string())?;
            received = timeout(self.retry_timing.request_timeout, socket.next()).await;
        }
        match received.map_err(|_| "the socket timed out")? {
            Some(Ok(Message::Text(text))) => Ok(Some(text.to_string())),
            Some(Ok(Message::Close(_))) | None => Err("Slack closed the socket".to_owned()),
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => Err(error.to_string()),
        }
    }

    async fn answer_envelope(
        &self,
        me: &SlackIdentity,
        envelope: &SocketEnvelope,
        socket: &mut PlatformSocket,
        inbox: &dyn InboundSink,
    ) -> Result<(), String> {
        let Some(id) = &envelope.envelope_id else { return Ok(()) };
        let taken = match SlackDelivery::from_payload(&envelope.kind, &envelope.payload) {
            Some(delivery) => self.ingest_delivery(me, &delivery, inbox).await,
            None => {
                tracing::debug!(
                    account = self.name,
                    kind = envelope.kind,
                    "could not parse a Slack envelope; acknowledged without processing"
                );
                IngestOutcome::Done
            }
        };
        if let IngestOutcome::Retry { reason } = taken {
            tracing::warn!(
                account = self.name,
                reason,
                "could not accept a Slack message; Slack will redeliver it"
            );
            return Ok(());
        }
        let acknowledged = Message::text(json!({ "envelope_id": id }).to_string());
        socket.send(acknowledged).await.map_err(|error| error.to_string())
    }
}

//! Receive loop: one long poll after another. The offset of a poll confirms all updates before it, so it advances only
//! past accepted updates.

use std::time::{Duration, Instant};

use polyclaw_domain::backoff::Backoff;
use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::account::TelegramAccount;
use super::inbound;
use super::update::{CallbackQuery, TelegramUpdate, TelegramUser};
use crate::response::PlatformCallError;

/// Other update kinds, such as edited messages, are not requested.
const UPDATE_KINDS: [&str; 3] = ["message", "channel_post", "callback_query"];
const UPDATE_BATCH_SIZE: usize = 100;
/// Timeout of acknowledging a button press. Later updates wait for it.
const BUTTON_ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// Polling state of an account.
struct PollState {
    me: TelegramUser,
    /// Offset of the first update that was not accepted.
    next: i64,
    /// Backoff while updates cannot be accepted.
    later: Backoff,
}

impl TelegramAccount {
    pub(super) async fn receive_updates(&self, inbox: &dyn InboundSink) {
        let mut backoff = self.retry_timing.backoff();
        let me = loop {
            match self.fetch_me().await {
                Ok(me) => break me,
                Err(refusal) => self.wait_before_retry(&mut backoff, &refusal).await,
            }
        };
        self.connection.set_connected();
        tracing::info!(account = self.name, bot = me.username, "connected to Telegram");
        let mut place = PollState { me, next: 0, later: self.retry_timing.backoff() };
        loop {
            match self.poll_updates(&mut place, inbox).await {
                Ok(()) => {
                    self.connection.set_connected();
                    backoff.reset();
                }
                Err(refusal) => self.wait_before_retry(&mut backoff, &refusal).await,
            }
        }
    }

    async fn fetch_me(&self) -> Result<TelegramUser, PlatformCallError> {
        let me = self.api.call("getMe", &json!({}), None).await?;
        TelegramUser::deserialize(me).map_err(|error| PlatformCallError {
            status: None,
            reason: format!("cannot parse Telegram's description of the bot: {error}"),
            after: None,
        })
    }

    async fn poll_updates(
        &self,
        place: &mut PollState,
        inbox: &dyn InboundSink,
    ) -> Result<(), PlatformCallError> {
        let poll = self.retry_timing.request_timeout * 2;
        let seconds = poll.as_secs().max(1);
        let question = json!({ "offset": place.next, "limit": UPDATE_BATCH_SIZE, "timeout": seconds, "allowed_updates": UPDATE_KINDS });
        let asked = Instant::now();
        let timeout = Duration::from_secs(seconds) + self.retry_timing.request_timeout;
        let updates = self.api.call("getUpdates", &question, Some(timeout)).await?;
        let updates = updates.as_array().map(Vec::as_slice).unwrap_or_default();
        if updates.is_empty() && asked.elapsed() < poll / 2 {
            // Prevents a busy loop with a server that does not long-poll.
            tokio::time::sleep(self.retry_timing.initial_backoff).await;
        }
        for update in updates {
            if !self.process_update(update, place, inbox).await {
                break;
            }
        }
        Ok(())
    }

    /// Processes one update. Returns false if it must be delivered again.
    async fn process_update(&self, update: &Value, place: &mut PollState, inbox: &dyn InboundSink) -> bool {
        let Some(id) = update.get("update_id").and_then(Value::as_i64) else { return true };
        let update = self.parse_update(update);
        if let Some(message) = update.as_ref().and_then(|update| self.to_inbound(update, &place.me))
            && let IngestOutcome::Retry { reason } = inbox.ingest_message(message).await
        {
            let pause = place.later.next_delay();
            tracing::warn!(
                account = self.name,
                reason,
                ?pause,
                "could not accept a Telegram message; retrying"
            );
            tokio::time::sleep(pause).await;
            return false;
        }
        place.later.reset();
        place.next = place.next.max(id.saturating_add(1));
        if let Some(press) = update.and_then(|update| update.callback_query) {
            self.acknowledge_button(&press).await;
        }
        true
    }

    fn parse_update(&self, update: &Value) -> Option<TelegramUpdate> {
        let read = TelegramUpdate::deserialize(update);
        read.inspect_err(|error| {
            tracing::warn!(account = self.name, %error, "could not parse a Telegram update; skipped");
        })
        .ok()
    }

    fn to_inbound(&self, update: &TelegramUpdate, me: &TelegramUser) -> Option<InboundMessage> {
        if let Some(press) = &update.callback_query {
            return inbound::inbound_from_callback(press, &self.name);
        }
        let message = update.message.as_ref().or(update.channel_post.as_ref())?;
        let inbound = inbound::inbound_from_message(message, me, &self.name)?;
        // Service messages, such as a join or a pin, have neither text nor attachments.
        (!inbound.text.is_empty() || !inbound.attachments.is_empty()).then_some(inbound)
    }

    /// Ends the progress indicator of the pressed button. The result of the command is sent as a message.
    async fn acknowledge_button(&self, press: &CallbackQuery) {
        let heard = json!({ "callback_query_id": press.id });
        if let Err(refusal) = self.api.call("answerCallbackQuery", &heard, Some(BUTTON_ACK_TIMEOUT)).await {
            tracing::debug!(
                account = self.name,
                reason = refusal.reason,
                "could not acknowledge a Telegram button press; the button keeps loading"
            );
        }
    }

    async fn wait_before_retry(&self, backoff: &mut Backoff, refusal: &PlatformCallError) {
        let PlatformCallError { status, reason, after } = refusal;
        let slow = self.retry_timing.max_backoff;
        let (pause, advice) = match *status {
            Some(StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) => {
                (slow, "Telegram rejected the token: correct the bot_token")
            }
            Some(StatusCode::CONFLICT) => (
                slow,
                "another program receives messages for this bot, or a webhook is set for it; only one \
                        receiver is possible",
            ),
            _ => (backoff.next_delay(), "cannot reach Telegram; retrying"),
        };
        let pause = after.map_or(pause, |after| after.max(pause));
        self.connection.set_disconnected(format!("{advice} ({reason})"));
        tracing::warn!(account = self.name, reason, ?pause, "{advice}");
        tokio::time::sleep(pause).await;
    }
}

//! Receiving: one long poll after the other. What is asked for next confirms what came before, so the next question
//! names only what was taken.

use std::time::{Duration, Instant};

use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::account::Account;
use super::letter;
use super::update::{Press, Update, User};
use crate::answer::Refusal;
use crate::backoff::Backoff;

/// Updates of other kinds, edited messages among them, are not even asked for.
const KINDS: [&str; 3] = ["message", "channel_post", "callback_query"];
const AT_ONCE: usize = 100;
/// Longest wait for a button to be let go of: what comes next waits for it.
const RELEASE: Duration = Duration::from_secs(5);

/// Where an account is in its updates.
struct Place {
    me: User,
    /// The first update that was not taken.
    next: i64,
    /// Pauses while nothing can be taken here.
    later: Backoff,
}

impl Account {
    pub(super) async fn listen(&self, inbox: &dyn InboundSink) {
        let mut backoff = self.pace.backoff();
        let me = loop {
            match self.me().await {
                Ok(me) => break me,
                Err(refusal) => self.wait(&mut backoff, &refusal).await,
            }
        };
        self.link.connected();
        tracing::info!(account = self.name, bot = me.username, "Telegram is connected");
        let mut place = Place { me, next: 0, later: self.pace.backoff() };
        loop {
            match self.poll(&mut place, inbox).await {
                Ok(()) => {
                    self.link.connected();
                    backoff.reset();
                }
                Err(refusal) => self.wait(&mut backoff, &refusal).await,
            }
        }
    }

    async fn me(&self) -> Result<User, Refusal> {
        let me = self.api.call("getMe", &json!({}), None).await?;
        User::deserialize(me).map_err(|error| Refusal {
            status: None,
            reason: format!("what Telegram says of the bot is not understood: {error}"),
            after: None,
        })
    }

    async fn poll(&self, place: &mut Place, inbox: &dyn InboundSink) -> Result<(), Refusal> {
        let poll = self.pace.patience * 2;
        let seconds = poll.as_secs().max(1);
        let question =
            json!({ "offset": place.next, "limit": AT_ONCE, "timeout": seconds, "allowed_updates": KINDS });
        let asked = Instant::now();
        let patience = Duration::from_secs(seconds) + self.pace.patience;
        let updates = self.api.call("getUpdates", &question, Some(patience)).await?;
        let updates = updates.as_array().map(Vec::as_slice).unwrap_or_default();
        if updates.is_empty() && asked.elapsed() < poll / 2 {
            // A server that does not wait would be asked without end.
            tokio::time::sleep(self.pace.first_pause).await;
        }
        for update in updates {
            if !self.take(update, place, inbox).await {
                break;
            }
        }
        Ok(())
    }

    /// False if it has to come again.
    async fn take(&self, update: &Value, place: &mut Place, inbox: &dyn InboundSink) -> bool {
        let Some(id) = update.get("update_id").and_then(Value::as_i64) else { return true };
        let update = self.read(update);
        if let Some(letter) = update.as_ref().and_then(|update| self.letter(update, &place.me))
            && let IngestOutcome::Retry { reason } = inbox.ingest_message(letter).await
        {
            let pause = place.later.next();
            tracing::warn!(
                account = self.name,
                reason,
                ?pause,
                "a message from Telegram cannot be taken now"
            );
            tokio::time::sleep(pause).await;
            return false;
        }
        place.later.reset();
        place.next = place.next.max(id.saturating_add(1));
        if let Some(press) = update.and_then(|update| update.callback_query) {
            self.release(&press).await;
        }
        true
    }

    fn read(&self, update: &Value) -> Option<Update> {
        let read = Update::deserialize(update);
        read.inspect_err(|error| {
            tracing::warn!(account = self.name, %error, "an update from Telegram is not understood");
        })
        .ok()
    }

    fn letter(&self, update: &Update, me: &User) -> Option<InboundMessage> {
        if let Some(press) = &update.callback_query {
            return letter::pressed(press, &self.name);
        }
        let message = update.message.as_ref().or(update.channel_post.as_ref())?;
        let letter = letter::letter(message, me, &self.name)?;
        // Somebody joined, something was pinned: nobody said anything.
        (!letter.text.is_empty() || !letter.attachments.is_empty()).then_some(letter)
    }

    /// The button shows that it is being pressed until Telegram hears of it. What came of it is said in the chat.
    async fn release(&self, press: &Press) {
        let heard = json!({ "callback_query_id": press.id });
        if let Err(refusal) = self.api.call("answerCallbackQuery", &heard, Some(RELEASE)).await {
            tracing::debug!(
                account = self.name,
                reason = refusal.reason,
                "a button on Telegram stays pressed"
            );
        }
    }

    async fn wait(&self, backoff: &mut Backoff, refusal: &Refusal) {
        let Refusal { status, reason, after } = refusal;
        let slow = self.pace.longest_pause;
        let (pause, advice) = match *status {
            Some(StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) => {
                (slow, "Telegram does not know this bot: correct its bot_token")
            }
            Some(StatusCode::CONFLICT) => {
                (slow, "another program receives for this bot, or a webhook is set for it: only one can")
            }
            _ => (backoff.next(), "Telegram is not reached; it will be asked again"),
        };
        let pause = after.map_or(pause, |after| after.max(pause));
        self.link.apart(format!("{advice} ({reason})"));
        tracing::warn!(account = self.name, reason, ?pause, "{advice}");
        tokio::time::sleep(pause).await;
    }
}

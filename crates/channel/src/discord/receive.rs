//! Receive loop: one connection after another, events processed in order.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::backoff::Backoff;
use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::CHANNEL_NAME;
use super::account::DiscordAccount;
use super::event::{
    DiscordChannel, DiscordGuild, DiscordInteraction, DiscordMessage, GatewayFrame, ReadyEvent,
};
use super::gateway::{DisconnectReason, EventProgress, GatewayConnection, SessionStart};
use super::threads::ThreadParents;
use super::{inbound, interaction};
use crate::response::PlatformCallError;
use crate::retry_timing::RetryTiming;
use crate::socket;

/// Discord allows a thousand identifies a day and revokes the token of a bot that exceeds it, so the backoff is longer
/// here.
const IDENTIFY_BACKOFF_FACTOR: u32 = 3;
/// Multiplies the maximum backoff if only a person can fix the problem.
const REFUSED_BACKOFF_FACTOR: u32 = 10;
/// A connection that lasted this many initial backoffs counts as stable and resets the backoff.
const STABLE_CONNECTION_FACTOR: u32 = 30;
/// How far before the start, or before the end of a connection, missed messages are looked for. Covers a restart and
/// the time until a dead connection is noticed.
const BACKFILL_WINDOW_MS: u64 = 10 * 60 * 1000;
const DISCORD_EPOCH_MS: u64 = 1_420_070_400_000;

/// State that outlives a connection.
pub(super) struct GatewaySession<'a> {
    pub inbox: &'a dyn InboundSink,
    /// The session id and its resume URL.
    session: Option<(String, Option<String>)>,
    me: String,
    pub places: ThreadParents,
    /// The last message seen in each channel, with the server of the channel.
    pub seen: HashMap<String, (u64, Option<String>)>,
    /// Lower bound for missed messages in channels where no message was seen.
    pub begin: u64,
    /// Servers of the session whose `GUILD_CREATE` is still expected. A later one was joined during the session, and
    /// earlier messages there were not for this bot.
    awaited: HashSet<String>,
    /// The current connection has delivered events.
    is_live: bool,
}

impl DiscordAccount {
    pub(super) async fn receive_events(&self, inbox: &dyn InboundSink) {
        let mut life = GatewaySession {
            inbox,
            session: None,
            me: String::new(),
            places: ThreadParents::default(),
            seen: HashMap::new(),
            begin: backfill_start_id(),
            awaited: HashSet::new(),
            is_live: false,
        };
        for address in inbox.recent_dm_addresses(CHANNEL_NAME, &self.name).await {
            life.seen.insert(address.peer, (life.begin, None));
        }
        let progress = EventProgress::default();
        let max_backoff = self.retry_timing.max_backoff * IDENTIFY_BACKOFF_FACTOR;
        let mut backoff = RetryTiming { max_backoff, ..self.retry_timing }.backoff();
        loop {
            let started_at = Instant::now();
            let ended = self.run_connection(&mut life, &progress).await;
            if started_at.elapsed() > self.retry_timing.initial_backoff * STABLE_CONNECTION_FACTOR {
                backoff.reset();
            }
            self.wait_before_reconnect(&mut backoff, &ended).await;
            if matches!(ended, DisconnectReason::Forgotten(_) | DisconnectReason::Refused(_)) {
                life.session = None;
                progress.last_seq.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Runs one connection and processes all events that it delivered.
    async fn run_connection(
        &self,
        life: &mut GatewaySession<'_>,
        progress: &EventProgress,
    ) -> DisconnectReason {
        let url = match self.gateway_url(life).await {
            Ok(url) => url,
            Err(refusal) if refusal.status == Some(StatusCode::UNAUTHORIZED) => {
                return DisconnectReason::Refused("Discord rejected the token: correct the bot_token");
            }
            Err(refusal) => return DisconnectReason::Broken(refusal.reason),
        };
        let socket = match socket::open_socket(&url).await {
            Ok(socket) => socket,
            Err(reason) => {
                // A resume URL can go away; the default gateway URL cannot.
                life.session = life.session.take().map(|(id, _)| (id, None));
                return DisconnectReason::Broken(reason);
            }
        };
        let opening = match &life.session {
            Some((session, _)) => SessionStart::Resume { session },
            None => SessionStart::Identify,
        };
        let connection = match GatewayConnection::open(socket, self.api.token(), opening, progress).await {
            Ok(connection) => connection,
            Err(ended) => return ended,
        };
        let (events, waiting) = unbounded_channel();
        let run = async { (connection.run(events).await, backfill_start_id()) };
        let ((ended, lately), ()) = tokio::join!(run, self.process_events(waiting, life, progress));
        if std::mem::take(&mut life.is_live) {
            life.begin = lately;
        }
        ended
    }

    async fn gateway_url(&self, life: &GatewaySession<'_>) -> Result<String, PlatformCallError> {
        let resume = life.session.as_ref().and_then(|(_, url)| url.clone());
        let url = match self.gateway.clone().or(resume) {
            Some(url) => url,
            None => {
                let found = self.api.get(&["gateway", "bot"], &[], self.retry_timing.backoff()).await?;
                found.get("url").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
        };
        Ok(format!("{}/?v=10&encoding=json", url.trim_end_matches('/')))
    }

    /// Processes queued events, also after the connection has ended, because the session resumes after them.
    async fn process_events(
        &self,
        mut waiting: UnboundedReceiver<GatewayFrame>,
        life: &mut GatewaySession<'_>,
        progress: &EventProgress,
    ) {
        while let Some(frame) = waiting.recv().await {
            let seq = frame.s;
            let kind = frame.t.clone().unwrap_or_default();
            if let Err(error) = self.handle_event(frame, life).await {
                tracing::warn!(account = self.name, %error, kind, "could not parse a Discord event; skipped");
            }
            progress.waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(seq) = seq {
                progress.last_seq.store(seq, Ordering::Relaxed);
            }
        }
    }

    async fn handle_event(
        &self,
        frame: GatewayFrame,
        life: &mut GatewaySession<'_>,
    ) -> Result<(), serde_json::Error> {
        match frame.t.as_deref() {
            Some("READY") => {
                let ready = ReadyEvent::deserialize(frame.d)?;
                self.connection.set_connected();
                tracing::info!(account = self.name, bot = ready.user.username, "connected to Discord");
                life.me = ready.user.id;
                life.session = Some((ready.session_id, ready.resume_gateway_url));
                life.awaited = ready.guilds.into_iter().map(|guild| guild.id).collect();
                life.is_live = true;
                self.backfill_dms(life).await;
            }
            Some("RESUMED") => {
                self.connection.set_connected();
                tracing::info!(account = self.name, "resumed the Discord session");
                life.is_live = true;
            }
            Some("GUILD_CREATE") => {
                let guild = DiscordGuild::deserialize(frame.d)?;
                life.places.record_guild(&guild);
                if life.awaited.remove(&guild.id) {
                    self.backfill_guild(&guild, life).await;
                }
            }
            Some("CHANNEL_CREATE" | "THREAD_CREATE") => {
                life.places.record_channel(&DiscordChannel::deserialize(frame.d)?);
            }
            Some("MESSAGE_CREATE") => {
                let message = DiscordMessage::deserialize(frame.d)?;
                let guild = message.guild_id.clone();
                self.handle_message(&message, guild, life).await;
            }
            Some("INTERACTION_CREATE") => {
                self.handle_command(&DiscordInteraction::deserialize(frame.d)?, life).await;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) async fn handle_message(
        &self,
        message: &DiscordMessage,
        guild: Option<String>,
        life: &mut GatewaySession<'_>,
    ) {
        let place = self.resolve_location(&mut life.places, &message.channel_id, guild.as_deref()).await;
        let inbound = inbound::inbound_from_message(message, &place, &life.me, &self.name);
        if let Some(inbound) =
            inbound.filter(|inbound| !inbound.text.is_empty() || !inbound.attachments.is_empty())
        {
            self.deliver_inbound(inbound, life.inbox).await;
        }
        let id = message.id.parse().unwrap_or_default();
        let seen = life.seen.entry(message.channel_id.clone()).or_insert((id, guild));
        seen.0 = seen.0.max(id);
    }

    async fn handle_command(&self, interaction: &DiscordInteraction, life: &mut GatewaySession<'_>) {
        let Some(channel) = interaction.channel_id.as_ref().filter(|_| interaction.is_command()) else {
            return;
        };
        let is_awaited = self.defer_interaction(interaction).await;
        let place = self.resolve_location(&mut life.places, channel, interaction.guild_id.as_deref()).await;
        if let Some(message) = interaction::inbound_from_interaction(interaction, &place, &self.name) {
            let text = message.text.clone();
            self.deliver_inbound(message, life.inbox).await;
            if is_awaited {
                self.confirm_interaction(interaction, &text).await;
            }
        }
    }

    /// Retries until the message is accepted, because Discord does not deliver it again.
    async fn deliver_inbound(&self, message: InboundMessage, inbox: &dyn InboundSink) {
        let mut backoff = self.retry_timing.backoff();
        while let IngestOutcome::Retry { reason } = inbox.ingest_message(message.clone()).await {
            let pause = backoff.next_delay();
            tracing::warn!(
                account = self.name,
                reason,
                ?pause,
                "could not accept a Discord message; retrying"
            );
            tokio::time::sleep(pause).await;
        }
    }

    async fn wait_before_reconnect(&self, backoff: &mut Backoff, ended: &DisconnectReason) {
        let (pause, reason) = match ended {
            DisconnectReason::Broken(reason) => (backoff.next_delay(), reason.as_str()),
            // Discord requires a longer delay before a new session.
            DisconnectReason::Forgotten(reason) => {
                (self.retry_timing.initial_backoff + backoff.next_delay(), reason.as_str())
            }
            DisconnectReason::Refused(reason) => {
                (self.retry_timing.max_backoff * REFUSED_BACKOFF_FACTOR, *reason)
            }
        };
        self.connection.set_disconnected(reason);
        tracing::warn!(account = self.name, reason, ?pause, "Discord connection ended; reconnecting");
        tokio::time::sleep(pause).await;
    }
}

/// Returns the message id that corresponds to the start of the backfill window.
fn backfill_start_id() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or_default();
    now.saturating_sub(DISCORD_EPOCH_MS + BACKFILL_WINDOW_MS) << 22
}

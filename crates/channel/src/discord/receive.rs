//! Receiving: one connection after the other, and events taken one after the other.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::NAME;
use super::account::Account;
use super::event::{Channel, Frame, Guild, Interaction, Message, Ready};
use super::gateway::{Connection, Ended, Opening, Progress};
use super::place::Places;
use super::{interaction, letter};
use crate::answer::Refusal;
use crate::backoff::Backoff;
use crate::socket;

/// A thousand identifications a day are allowed, and a bot that needs more loses its token. So pauses are longer here.
const PATIENT: u32 = 3;
/// Where only a person can help, many times longer.
const VERY_PATIENT: u32 = 10;
/// A connection that lasted so many first pauses was a good one.
const GOOD: u32 = 30;
/// What was written this long before the start, or before a connection ended, is looked for too: a restart takes a
/// moment, and so does noticing that nothing comes any more.
const RECENT_MS: u64 = 10 * 60 * 1000;
const EPOCH_MS: u64 = 1_420_070_400_000;

/// What outlives a connection.
pub(super) struct Life<'a> {
    pub inbox: &'a dyn InboundSink,
    /// The session, and where it can be gone on with.
    session: Option<(String, Option<String>)>,
    me: String,
    pub places: Places,
    /// The last message of each channel that was seen, with the server of the channel.
    pub seen: HashMap<String, (u64, Option<String>)>,
    /// In channels where nothing was seen, what is older than this was not missed.
    pub begin: u64,
    /// Servers that the session began with and has not told about yet. One that comes later was only joined then, and
    /// what people said there before was not said to this bot.
    awaited: HashSet<String>,
    /// Events came over this connection.
    is_live: bool,
}

impl Account {
    pub(super) async fn listen(&self, inbox: &dyn InboundSink) {
        let mut life = Life {
            inbox,
            session: None,
            me: String::new(),
            places: Places::default(),
            seen: HashMap::new(),
            begin: recently(),
            awaited: HashSet::new(),
            is_live: false,
        };
        for address in inbox.recent_dm_addresses(NAME, &self.name).await {
            life.seen.insert(address.peer, (life.begin, None));
        }
        let progress = Progress::default();
        let mut backoff = Backoff::new(self.pace.first_pause, self.pace.longest_pause * PATIENT);
        loop {
            let begun = Instant::now();
            let ended = self.connect(&mut life, &progress).await;
            if begun.elapsed() > self.pace.first_pause * GOOD {
                backoff.reset();
            }
            self.wait(&mut backoff, &ended).await;
            if matches!(ended, Ended::Forgotten(_) | Ended::Refused(_)) {
                life.session = None;
                progress.taken.store(0, Ordering::Relaxed);
            }
        }
    }

    /// One connection, and the taking of all it brought.
    async fn connect(&self, life: &mut Life<'_>, progress: &Progress) -> Ended {
        let url = match self.gateway(life).await {
            Ok(url) => url,
            Err(refusal) if refusal.status == Some(StatusCode::UNAUTHORIZED) => {
                return Ended::Refused("Discord does not know this bot: correct its bot_token");
            }
            Err(refusal) => return Ended::Broken(refusal.reason),
        };
        let socket = match socket::open(&url).await {
            Ok(socket) => socket,
            Err(reason) => {
                // Where a session may be gone on with can go away; where all sessions begin can not.
                life.session = life.session.take().map(|(id, _)| (id, None));
                return Ended::Broken(reason);
            }
        };
        let opening = match &life.session {
            Some((session, _)) => Opening::Resume { session },
            None => Opening::Identify,
        };
        let connection = match Connection::open(socket, self.api.token(), opening, progress).await {
            Ok(connection) => connection,
            Err(ended) => return ended,
        };
        let (events, waiting) = unbounded_channel();
        let run = async { (connection.run(events).await, recently()) };
        let ((ended, lately), ()) = tokio::join!(run, self.take_all(waiting, life, progress));
        if std::mem::take(&mut life.is_live) {
            life.begin = lately;
        }
        ended
    }

    async fn gateway(&self, life: &Life<'_>) -> Result<String, Refusal> {
        let resume = life.session.as_ref().and_then(|(_, url)| url.clone());
        let url = match self.gateway.clone().or(resume) {
            Some(url) => url,
            None => {
                let found = self.api.get(&["gateway", "bot"], &[], self.pace.backoff()).await?;
                found.get("url").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
        };
        Ok(format!("{}/?v=10&encoding=json", url.trim_end_matches('/')))
    }

    /// Takes what waits, also after the connection has ended: what is resumed then is what comes after it.
    async fn take_all(
        &self,
        mut waiting: UnboundedReceiver<Frame>,
        life: &mut Life<'_>,
        progress: &Progress,
    ) {
        while let Some(frame) = waiting.recv().await {
            let seq = frame.s;
            let kind = frame.t.clone().unwrap_or_default();
            if let Err(error) = self.take(frame, life).await {
                tracing::warn!(account = self.name, %error, kind, "an event of Discord is not understood");
            }
            progress.waiting.fetch_sub(1, Ordering::Relaxed);
            if let Some(seq) = seq {
                progress.taken.store(seq, Ordering::Relaxed);
            }
        }
    }

    async fn take(&self, frame: Frame, life: &mut Life<'_>) -> Result<(), serde_json::Error> {
        match frame.t.as_deref() {
            Some("READY") => {
                let ready = Ready::deserialize(frame.d)?;
                self.link.connected();
                tracing::info!(account = self.name, bot = ready.user.username, "Discord is connected");
                life.me = ready.user.id;
                life.session = Some((ready.session_id, ready.resume_gateway_url));
                life.awaited = ready.guilds.into_iter().map(|guild| guild.id).collect();
                life.is_live = true;
                self.look_for_missed_dms(life).await;
            }
            Some("RESUMED") => {
                self.link.connected();
                tracing::info!(account = self.name, "Discord is connected again");
                life.is_live = true;
            }
            Some("GUILD_CREATE") => {
                let guild = Guild::deserialize(frame.d)?;
                life.places.learn(&guild);
                if life.awaited.remove(&guild.id) {
                    self.look_for_missed(&guild, life).await;
                }
            }
            Some("CHANNEL_CREATE" | "THREAD_CREATE") => {
                life.places.learn_one(&Channel::deserialize(frame.d)?);
            }
            Some("MESSAGE_CREATE") => {
                let message = Message::deserialize(frame.d)?;
                let guild = message.guild_id.clone();
                self.take_message(&message, guild, life).await;
            }
            Some("INTERACTION_CREATE") => self.take_command(&Interaction::deserialize(frame.d)?, life).await,
            _ => {}
        }
        Ok(())
    }

    pub(super) async fn take_message(&self, message: &Message, guild: Option<String>, life: &mut Life<'_>) {
        let place = self.place(&mut life.places, &message.channel_id, guild.as_deref()).await;
        let letter = letter::letter(message, &place, &life.me, &self.name);
        if let Some(letter) =
            letter.filter(|letter| !letter.text.is_empty() || !letter.attachments.is_empty())
        {
            self.hand_in(letter, life.inbox).await;
        }
        let id = message.id.parse().unwrap_or_default();
        let seen = life.seen.entry(message.channel_id.clone()).or_insert((id, guild));
        seen.0 = seen.0.max(id);
    }

    async fn take_command(&self, interaction: &Interaction, life: &mut Life<'_>) {
        let Some(channel) = interaction.channel_id.as_ref().filter(|_| interaction.is_command()) else {
            return;
        };
        let is_awaited = self.defer(interaction).await;
        let place = self.place(&mut life.places, channel, interaction.guild_id.as_deref()).await;
        if let Some(letter) = interaction::letter(interaction, &place, &self.name) {
            let text = letter.text.clone();
            self.hand_in(letter, life.inbox).await;
            if is_awaited {
                self.confirm(interaction, &text).await;
            }
        }
    }

    /// There is nobody to ask for it again, so it is held until it can be taken.
    async fn hand_in(&self, letter: InboundMessage, inbox: &dyn InboundSink) {
        let mut backoff = self.pace.backoff();
        while let IngestOutcome::Retry { reason } = inbox.ingest_message(letter.clone()).await {
            let pause = backoff.next();
            tracing::warn!(account = self.name, reason, ?pause, "a message from Discord cannot be taken now");
            tokio::time::sleep(pause).await;
        }
    }

    async fn wait(&self, backoff: &mut Backoff, ended: &Ended) {
        let (pause, reason) = match ended {
            Ended::Broken(reason) => (backoff.next(), reason.as_str()),
            // Discord wants more than a moment before another session.
            Ended::Forgotten(reason) => (self.pace.first_pause + backoff.next(), reason.as_str()),
            Ended::Refused(reason) => (self.pace.longest_pause * VERY_PATIENT, *reason),
        };
        self.link.apart(reason);
        tracing::warn!(
            account = self.name,
            reason,
            ?pause,
            "Discord is not connected; it will be tried again"
        );
        tokio::time::sleep(pause).await;
    }
}

/// The id that a message would have that was written a little before now.
fn recently() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_millis()).unwrap_or_default();
    now.saturating_sub(EPOCH_MS + RECENT_MS) << 22
}

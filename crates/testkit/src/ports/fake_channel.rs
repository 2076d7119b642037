//! An in-process chat platform with people who write and read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use polyclaw_domain::channel::{
    AttachmentRef, ChannelAdapter, ChannelCapabilities, ChatAddress, InboundMessage, InboundSink,
    IngestOutcome, MenuItem, SendOutcome,
};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::inbound::{ChatPeer, InboundContext, PeerKind};
use polyclaw_domain::media::Image;
use polyclaw_domain::message::MessageAttachment;
use polyclaw_domain::port::BoxFuture;
use tokio::sync::{Notify, oneshot};

use crate::ports::lock;

/// An in-process chat platform. Its state outlives the engine.
pub struct FakeChannel {
    idempotent: bool,
    edits: AtomicBool,
    is_mute: AtomicBool,
    seen: Mutex<Vec<(String, OutgoingMessage)>>,
    /// Outcomes of the next sends; then it accepts again.
    planned: Mutex<Vec<SendOutcome>>,
    takes_ms: AtomicU64,
    /// How long it remembers a key. Forever if not set.
    remembers_ms: OnceLock<i64>,
    /// Incoming messages, each with the receiver of its outcome.
    inbounds: Mutex<VecDeque<(InboundMessage, oneshot::Sender<IngestOutcome>)>>,
    posted: Notify,
    /// How often receiving fails before it works.
    failures: AtomicU64,
    menus: Mutex<BTreeMap<String, Vec<MenuItem>>>,
    /// How many menus it rejects before it accepts one.
    menus_refused: AtomicU64,
    /// Files of messages, by handle.
    files: Mutex<BTreeMap<String, Image>>,
    /// Handles of the requested files.
    fetched: Mutex<Vec<String>>,
}

impl FakeChannel {
    pub fn new(idempotent: bool) -> Arc<Self> {
        Arc::new(Self {
            idempotent,
            edits: AtomicBool::new(false),
            is_mute: AtomicBool::new(false),
            seen: Mutex::default(),
            planned: Mutex::default(),
            takes_ms: AtomicU64::new(3),
            remembers_ms: OnceLock::new(),
            inbounds: Mutex::default(),
            posted: Notify::new(),
            failures: AtomicU64::new(0),
            menus: Mutex::default(),
            menus_refused: AtomicU64::new(0),
            files: Mutex::default(),
            fetched: Mutex::default(),
        })
    }

    /// Returns the messages that a person sees, with the keys they were sent under.
    pub fn visible_messages(&self) -> Vec<(String, String)> {
        lock(&self.seen).iter().map(|(key, sent)| (key.clone(), sent.text().to_owned())).collect()
    }

    /// Returns the texts that a person sees in one conversation, given by peer and thread.
    pub fn texts_at(&self, peer: &str, thread: Option<&str>) -> Vec<String> {
        let here = |sent: &OutgoingMessage| {
            sent.address().peer == peer && sent.address().thread.as_deref() == thread
        };
        lock(&self.seen)
            .iter()
            .filter(|(_, sent)| here(sent))
            .map(|(_, sent)| sent.text().to_owned())
            .collect()
    }

    /// Returns the commands of the visible buttons of a peer.
    pub fn buttons_at(&self, peer: &str) -> Vec<String> {
        let seen = lock(&self.seen);
        let here = seen.iter().filter(|(_, sent)| sent.address().peer == peer);
        here.flat_map(|(_, sent)| sent.buttons()).map(|button| button.command.clone()).collect()
    }

    /// Delivers a message as a platform does: again if it was not acknowledged.
    pub async fn deliver_inbound(&self, message: InboundMessage) -> IngestOutcome {
        loop {
            let (answer, taken) = oneshot::channel();
            lock(&self.inbounds).push_back((message.clone(), answer));
            self.posted.notify_one();
            if let Ok(taken) = taken.await {
                return taken;
            }
        }
    }

    /// Makes receiving panic this many times, like a faulty adapter.
    pub fn fail_receives(&self, times: u64) {
        self.failures.store(times, Ordering::Relaxed);
    }

    /// Rejects this many menus, like an unreachable platform.
    pub fn refuse_menus(&self, times: u64) {
        self.menus_refused.store(times, Ordering::Relaxed);
    }

    /// Returns the command menu of each account.
    pub fn menus(&self) -> BTreeMap<String, Vec<MenuItem>> {
        lock(&self.menus).clone()
    }

    /// Adds a file. Fetching an unknown handle never completes.
    pub fn add_file(&self, handle: &str, image: Image) {
        lock(&self.files).insert(handle.to_owned(), image);
    }

    /// Returns the handles of all requested files, with repetitions.
    pub fn fetched_handles(&self) -> Vec<String> {
        lock(&self.fetched).clone()
    }

    /// Lets messages be edited from now on.
    pub fn allow_edits(&self) {
        self.edits.store(true, Ordering::Relaxed);
    }

    /// Stops showing receipts for accepted messages.
    pub fn hide_receipts(&self) {
        self.is_mute.store(true, Ordering::Relaxed);
    }

    /// Sets the delay of each send.
    pub fn set_send_delay_ms(&self, millis: u64) {
        self.takes_ms.store(millis, Ordering::Relaxed);
    }

    /// Sets how long it claims to remember keys.
    pub fn set_idempotency_window_ms(&self, millis: i64) {
        let _ = self.remembers_ms.set(millis);
    }

    pub fn plan_answer(&self, answer: SendOutcome) {
        lock(&self.planned).push(answer);
    }
}

impl ChannelAdapter for FakeChannel {
    fn capabilities(&self, _: &str) -> ChannelCapabilities {
        ChannelCapabilities {
            idempotent_send: self.idempotent,
            max_chars: 4_000,
            edits: self.edits.load(Ordering::Relaxed),
            acknowledges: !self.is_mute.load(Ordering::Relaxed),
        }
    }

    fn idempotency_window_ms(&self, _: &str) -> Option<i64> {
        self.remembers_ms.get().copied()
    }

    fn set_command_menu<'a>(
        &'a self,
        account: &'a str,
        items: &'a [MenuItem],
    ) -> BoxFuture<'a, Result<(), String>> {
        let left = self.menus_refused.load(Ordering::Relaxed);
        self.menus_refused.store(left.saturating_sub(1), Ordering::Relaxed);
        if left > 0 {
            return Box::pin(std::future::ready(Err("not reached".to_owned())));
        }
        lock(&self.menus).insert(account.to_owned(), items.to_vec());
        Box::pin(std::future::ready(Ok(())))
    }

    fn fetch_attachment<'a>(
        &'a self,
        _: &'a str,
        attached: &'a AttachmentRef,
    ) -> BoxFuture<'a, MessageAttachment> {
        Box::pin(async move {
            let handle = attached.handle.clone().unwrap_or_default();
            lock(&self.fetched).push(handle.clone());
            let found = lock(&self.files).get(&handle).cloned();
            match found {
                Some(image) => MessageAttachment::from_image(&*attached.name, image),
                None => std::future::pending().await,
            }
        })
    }

    fn connection_accounts(&self) -> Vec<String> {
        vec!["default".to_owned()]
    }

    fn receive_messages<'a>(&'a self, _: &'a str, inbox: &'a dyn InboundSink) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let left = self.failures.load(Ordering::Relaxed);
            self.failures.store(left.saturating_sub(1), Ordering::Relaxed);
            assert!(left == 0, "an adapter that panics");
            loop {
                let next = lock(&self.inbounds).pop_front();
                match next {
                    Some((message, answer)) => drop(answer.send(inbox.ingest_message(message).await)),
                    None => self.posted.notified().await,
                }
            }
        })
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async move {
            let takes = self.takes_ms.load(Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(takes)).await;
            let planned = lock(&self.planned).pop();
            if let Some(answer @ (SendOutcome::Rejected { .. } | SendOutcome::Retry { .. })) = planned {
                return answer;
            }
            let mut seen = lock(&self.seen);
            if !(self.idempotent && seen.iter().any(|(known, _)| known == key)) {
                seen.push((key.to_owned(), outgoing.clone()));
            }
            planned.unwrap_or(SendOutcome::Accepted { platform_id: Some(key.to_owned()) })
        })
    }

    /// Messages are identified by the key they were sent under.
    fn edit_message<'a>(&'a self, id: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async move {
            if let Some(answer) = lock(&self.planned).pop() {
                return answer;
            }
            match lock(&self.seen).iter_mut().find(|(key, _)| key == id) {
                Some((_, shown)) => {
                    *shown = outgoing.clone();
                    SendOutcome::Accepted { platform_id: Some(id.to_owned()) }
                }
                None => SendOutcome::Rejected { reason: "there is no such message".to_owned() },
            }
        })
    }
}

/// Builds a Telegram direct message. Each text is a separate message.
pub fn inbound_dm(sender: &str, text: &str) -> InboundMessage {
    build_inbound(PeerKind::Dm, sender, sender, text)
}

/// Builds a group message that mentions the account.
pub fn inbound_group(group: &str, sender: &str, text: &str) -> InboundMessage {
    build_inbound(PeerKind::Group, group, sender, text)
}

/// Adds a file to a message, declared as PNG.
pub fn with_file(mut message: InboundMessage, handle: &str) -> InboundMessage {
    message.attachments.push(AttachmentRef {
        name: format!("{handle}.png"),
        media_type: "image/png".to_owned(),
        size: None,
        url: None,
        handle: Some(handle.to_owned()),
    });
    message
}

fn build_inbound(kind: PeerKind, peer: &str, sender: &str, text: &str) -> InboundMessage {
    let (channel, account) = ("telegram".to_owned(), "default".to_owned());
    InboundMessage {
        address: ChatAddress {
            channel: channel.clone(),
            account: account.clone(),
            peer: peer.into(),
            thread: None,
        },
        context: InboundContext {
            channel,
            account,
            peer: ChatPeer { kind, id: peer.into() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: Vec::new(),
            sender: sender.into(),
        },
        platform_id: format!("{peer}/{sender}/{text}"),
        text: text.into(),
        attachments: Vec::new(),
        mentioned: kind != PeerKind::Dm,
        sender_name: Some(format!("Name of {sender}")),
    }
}

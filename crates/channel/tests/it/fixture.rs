//! What the tests of all platforms share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_channel::RetryTiming;
use polyclaw_domain::admission::{AccountAccess, DmPolicy, GroupPolicy};
use polyclaw_domain::channel::{
    ChannelAdapter, ChatAddress, ConnectionState, InboundMessage, InboundSink, IngestOutcome, SendOutcome,
};
use polyclaw_domain::delivery::{DeliveryPolicy, OutgoingMessage, apply_gate};
use polyclaw_domain::media::AttachmentImage;
use polyclaw_domain::message::MessageAttachment;
use polyclaw_domain::port::BoxFuture;
use polyclaw_testkit::platform::ReplyOutcome;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Patient enough for a busy machine, and quick to come back.
pub const PACE: RetryTiming = RetryTiming {
    request_timeout: Duration::from_millis(500),
    initial_backoff: Duration::from_millis(10),
    max_backoff: Duration::from_millis(40),
};

/// Takes letters as the engine does: the same platform id once.
pub struct PlatformFixture {
    letters: Mutex<Vec<InboundMessage>>,
    ids: Mutex<HashSet<(String, String)>>,
    /// How many letters are not taken before one is.
    pub later: AtomicUsize,
    handed: watch::Sender<usize>,
    /// Where single people have written before.
    pub correspondents: Mutex<Vec<ChatAddress>>,
}

impl PlatformFixture {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            letters: Mutex::default(),
            ids: Mutex::default(),
            later: AtomicUsize::new(0),
            handed: watch::Sender::new(0),
            correspondents: Mutex::default(),
        })
    }

    pub fn letters(&self) -> Vec<InboundMessage> {
        self.letters.lock().unwrap().clone()
    }

    pub fn texts(&self) -> Vec<String> {
        self.letters().into_iter().map(|message| message.text).collect()
    }

    /// How often a letter was handed in, repeats and refused ones included.
    pub fn handed(&self) -> usize {
        *self.handed.borrow()
    }

    pub async fn wait_for(&self, count: usize) -> Vec<InboundMessage> {
        self.until(|| self.letters().len() >= count).await;
        self.letters()
    }

    pub async fn until(&self, is_so: impl Fn() -> bool) {
        let mut handed = self.handed.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(60), handed.wait_for(|_| is_so())).await;
        assert!(waited.is_ok(), "it did not come in time; there is {:?}", self.texts());
    }
}

impl InboundSink for PlatformFixture {
    fn ingest_message(&self, message: InboundMessage) -> BoxFuture<'_, IngestOutcome> {
        Box::pin(async move {
            let less = |left: usize| left.checked_sub(1);
            let taken = match self.later.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
                Ok(_) => IngestOutcome::Retry { reason: "the disk is full".to_owned() },
                Err(_) => {
                    let id = (message.context.account.clone(), message.platform_id.clone());
                    if self.ids.lock().unwrap().insert(id) {
                        self.letters.lock().unwrap().push(message);
                    }
                    IngestOutcome::Done
                }
            };
            self.handed.send_modify(|count| *count += 1);
            taken
        })
    }

    fn recent_dm_addresses<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Vec<ChatAddress>> {
        let known = self.correspondents.lock().unwrap().clone();
        Box::pin(async move { known })
    }
}

/// Receives until it is dropped.
pub struct ChannelFixture(JoinHandle<()>);

impl ChannelFixture {
    pub fn start(channel: &Arc<impl ChannelAdapter + 'static>, fixture: &Arc<PlatformFixture>) -> Self {
        let (channel, fixture) = (Arc::clone(channel), Arc::clone(fixture));
        Self(tokio::spawn(async move {
            let accounts = channel.connection_accounts();
            join_all(accounts.iter().map(|account| channel.receive_messages(account, fixture.as_ref())))
                .await;
        }))
    }
}

impl Drop for ChannelFixture {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why an account is not connected, once it says so.
pub async fn apart(channel: &impl ChannelAdapter, account: &str) -> String {
    for _ in 0..6_000 {
        if let Some(ConnectionState::Disconnected(why)) = channel.connection_state(account) {
            return why;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{account} stands otherwise: {:?}", channel.connection_state(account));
}

pub fn outgoing(address: &ChatAddress, text: &str) -> OutgoingMessage {
    apply_gate(Some(address.clone()), DeliveryPolicy::ALLOW_ALL, text.to_owned()).unwrap()
}

pub fn outgoing_to(
    channel: &str,
    account: &str,
    peer: &str,
    thread: Option<&str>,
    text: &str,
) -> OutgoingMessage {
    let address = ChatAddress {
        channel: channel.to_owned(),
        account: account.to_owned(),
        peer: peer.to_owned(),
        thread: thread.map(str::to_owned),
    };
    outgoing(&address, text)
}

/// Everybody may write, everywhere.
pub fn open() -> AccountAccess {
    AccountAccess { dm_policy: DmPolicy::Open, group_policy: GroupPolicy::Open, ..AccountAccess::default() }
}

pub fn word(sent: &SendOutcome) -> String {
    match sent {
        SendOutcome::Accepted { .. } => "accepted".to_owned(),
        SendOutcome::Rejected { .. } => "rejected".to_owned(),
        SendOutcome::Retry { after_ms: Some(ms), .. } => format!("retry after {ms}"),
        SendOutcome::Retry { after_ms: None, .. } => "retry".to_owned(),
        SendOutcome::Unknown { .. } => "unknown".to_owned(),
    }
}

/// What a platform does to a message, what is then said of sending it where no key is known again, and what of changing
/// one: that can be done again, if the platform is there.
pub const FATES: [(ReplyOutcome, &str, &str); 8] = [
    (ReplyOutcome::Shown, "accepted", "accepted"),
    (ReplyOutcome::Status(400), "rejected", "rejected"),
    (ReplyOutcome::Status(403), "rejected", "rejected"),
    (ReplyOutcome::Later { status: 429, seconds: 7 }, "retry after 7000", "retry after 7000"),
    (ReplyOutcome::ShownThenStatus(500), "unknown", "retry"),
    (ReplyOutcome::Status(502), "unknown", "retry"),
    (ReplyOutcome::ShownThenCut, "unknown", "unknown"),
    (ReplyOutcome::ShownThenHang, "unknown", "unknown"),
];

/// An address where nobody listens.
pub fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// Text without what platforms do not keep at the ends of a message.
pub fn letters_of(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Characters that are easy to count or to cut wrongly.
pub fn hostile(random: &mut fastrand::Rng, chars: usize) -> String {
    const KINDS: [&str; 12] = [
        "a",
        "word ",
        "\n",
        "\n\n",
        "😀",
        "👩‍👩‍👧",
        "\u{202e}עברית",
        "ß",
        "你好",
        "e\u{301}",
        "<b>&amp;",
        "`*_[x](y)",
    ];
    let mut left = chars;
    let mut text = String::new();
    while left > 0 {
        let next = KINDS[random.usize(..KINDS.len())];
        left = left.saturating_sub(next.chars().count());
        text.push_str(next);
    }
    text
}

/// What is attached to letters, fetched as the engine does it.
pub async fn attachments<'a>(
    channel: &impl ChannelAdapter,
    messages: impl IntoIterator<Item = &'a InboundMessage>,
) -> Vec<MessageAttachment> {
    let mut found = Vec::new();
    for message in messages {
        for attached in &message.attachments {
            found.push(channel.fetch_attachment(&message.context.account, attached).await);
        }
    }
    found
}

/// What of their attachments a model would see.
pub async fn shown<'a>(
    channel: &impl ChannelAdapter,
    messages: impl IntoIterator<Item = &'a InboundMessage>,
) -> Vec<Option<Vec<u8>>> {
    let bytes = |attachment: MessageAttachment| match attachment.media {
        Some(AttachmentImage::Fresh(image)) => Some(image.bytes().to_vec()),
        _ => None,
    };
    attachments(channel, messages).await.into_iter().map(bytes).collect()
}

//! What the tests of all platforms share.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_channel::Pace;
use polyclaw_domain::admission::{Access, DmPolicy, GroupPolicy};
use polyclaw_domain::channel::{Address, Channel, Inbox, Letter, Sent, Taken};
use polyclaw_domain::delivery::{Outgoing, Policy, gate};
use polyclaw_domain::port::Pending;
use polyclaw_testkit::platform::Outcome;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Patient enough for a busy machine, and quick to come back.
pub const PACE: Pace = Pace {
    patience: Duration::from_millis(500),
    first_pause: Duration::from_millis(10),
    longest_pause: Duration::from_millis(40),
};

/// Takes letters as the engine does: the same platform id once.
pub struct Desk {
    letters: Mutex<Vec<Letter>>,
    ids: Mutex<HashSet<(String, String)>>,
    /// How many letters are not taken before one is.
    pub later: AtomicUsize,
    handed: watch::Sender<usize>,
}

impl Desk {
    pub fn new() -> Arc<Self> {
        let (letters, ids) = (Mutex::default(), Mutex::default());
        Arc::new(Self { letters, ids, later: AtomicUsize::new(0), handed: watch::Sender::new(0) })
    }

    pub fn letters(&self) -> Vec<Letter> {
        self.letters.lock().unwrap().clone()
    }

    pub fn texts(&self) -> Vec<String> {
        self.letters().into_iter().map(|letter| letter.text).collect()
    }

    /// How often a letter was handed in, repeats and refused ones included.
    pub fn handed(&self) -> usize {
        *self.handed.borrow()
    }

    pub async fn wait_for(&self, count: usize) -> Vec<Letter> {
        self.until(|| self.letters().len() >= count).await;
        self.letters()
    }

    pub async fn until(&self, is_so: impl Fn() -> bool) {
        let mut handed = self.handed.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(10), handed.wait_for(|_| is_so())).await;
        assert!(waited.is_ok(), "it did not come in time; there is {:?}", self.texts());
    }
}

impl Inbox for Desk {
    fn take(&self, letter: Letter) -> Pending<'_, Taken> {
        Box::pin(async move {
            let less = |left: usize| left.checked_sub(1);
            let taken = match self.later.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
                Ok(_) => Taken::Later { reason: "the disk is full".to_owned() },
                Err(_) => {
                    let id = (letter.arrival.account.clone(), letter.platform_id.clone());
                    if self.ids.lock().unwrap().insert(id) {
                        self.letters.lock().unwrap().push(letter);
                    }
                    Taken::Done
                }
            };
            self.handed.send_modify(|count| *count += 1);
            taken
        })
    }
}

/// Receives until it is dropped.
pub struct Reception(JoinHandle<()>);

impl Reception {
    pub fn start(channel: &Arc<impl Channel + 'static>, desk: &Arc<Desk>) -> Self {
        let (channel, desk) = (Arc::clone(channel), Arc::clone(desk));
        Self(tokio::spawn(async move { channel.receive(desk.as_ref()).await }))
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub fn outgoing(address: &Address, text: &str) -> Outgoing {
    gate(Some(address.clone()), Policy::OPEN, text.to_owned()).unwrap()
}

pub fn outgoing_to(channel: &str, account: &str, peer: &str, thread: Option<&str>, text: &str) -> Outgoing {
    let address = Address {
        channel: channel.to_owned(),
        account: account.to_owned(),
        peer: peer.to_owned(),
        thread: thread.map(str::to_owned),
    };
    outgoing(&address, text)
}

/// Everybody may write, everywhere.
pub fn open() -> Access {
    Access { dm_policy: DmPolicy::Open, group_policy: GroupPolicy::Open, ..Access::default() }
}

pub fn word(sent: &Sent) -> String {
    match sent {
        Sent::Accepted { .. } => "accepted".to_owned(),
        Sent::Rejected { .. } => "rejected".to_owned(),
        Sent::Retry { after_ms: Some(ms), .. } => format!("retry after {ms}"),
        Sent::Retry { after_ms: None, .. } => "retry".to_owned(),
        Sent::Unknown { .. } => "unknown".to_owned(),
    }
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

/// Three thousand texts, most of them short, some longer than any platform takes at once. Where messages can be changed
/// they are shown in over ten thousand pieces.
pub async fn each_text(check: impl AsyncFn(String, &mut fastrand::Rng)) {
    for seed in 0..3_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let longest = if seed % 50 == 0 { 9_000 } else { 200 };
        let length = random.usize(1..longest);
        check(format!("x{}", hostile(&mut random, length)), &mut random).await;
    }
}

/// Now and then the next requests are told to come again later.
pub fn trouble(random: &mut fastrand::Rng, push: impl Fn(Outcome)) {
    let kinds = [Outcome::Later { status: 429, seconds: 0 }, Outcome::Status(429), Outcome::Status(400)];
    (0..random.usize(..4)).for_each(|n| push(kinds[n]));
}

/// Shows a text as the engine does while it grows: the first part by send, more of it by edits that may fail, and the
/// whole at the end. Where nothing can be changed each part comes whole.
pub async fn stream(channel: &dyn Channel, address: &Address, text: &str, random: &mut fastrand::Rng) {
    let capabilities = channel.capabilities(&address.account);
    let parts = outgoing(address, text).split(capabilities.max_chars);
    for (n, part) in parts.iter().enumerate() {
        if !capabilities.edits {
            insist(|| channel.send("no key is known", part)).await;
            continue;
        }
        let ends: Vec<usize> = part.text().char_indices().map(|(at, _)| at).filter(|at| *at > 0).collect();
        let first = ends.get(random.usize(..=ends.len())).copied().unwrap_or(part.text().len());
        let first = Some(&part.text()[..first]).filter(|text| !text.trim().is_empty()).unwrap_or(part.text());
        let (key, begun) = (format!("{n} of {:x}", random.u128(..)), outgoing(address, first));
        let id = insist(|| channel.send(&key, &begun)).await;
        for _ in 0..random.usize(..3) {
            let end = ends.get(random.usize(..=ends.len())).copied().unwrap_or(part.text().len());
            if !part.text()[..end].trim().is_empty() {
                let _ = channel.edit(&id, &outgoing(address, &part.text()[..end])).await;
            }
        }
        insist(|| channel.edit(&id, part)).await;
    }
}

/// Tries until it is accepted, as the outbox does where nothing was sent.
async fn insist<'a>(attempt: impl Fn() -> Pending<'a, Sent>) -> String {
    for _ in 0..10 {
        match attempt().await {
            Sent::Accepted { platform_id } => return platform_id.expect("an id"),
            Sent::Retry { .. } | Sent::Rejected { .. } => {}
            Sent::Unknown { reason } => panic!("{reason}"),
        }
    }
    panic!("it was never accepted");
}

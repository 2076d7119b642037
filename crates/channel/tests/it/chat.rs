//! What the tests of all chat platforms need.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use polyclaw_channel::Pace;
use polyclaw_domain::admission::{Access, DmPolicy, GroupPolicy};
use polyclaw_domain::channel::{Address, Channel, Inbox, Letter, Sent, Taken};
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::Pending;
use polyclaw_testkit::fuzz;
use polyclaw_testkit::platform::Outcome;
use tokio::sync::watch;

/// Quick, so that what breaks is seen to come back.
pub fn pace() -> Pace {
    Pace {
        answer: Duration::from_millis(500),
        silence: Duration::from_millis(300),
        first_pause: Duration::from_millis(10),
        longest_pause: Duration::from_millis(50),
    }
}

pub fn open() -> Access {
    Access { dm_policy: DmPolicy::Open, group_policy: GroupPolicy::Open, ..Access::default() }
}

pub fn outgoing(channel: &str, account: &str, peer: &str, thread: Option<&str>, text: &str) -> Outgoing {
    let address = Address {
        channel: channel.to_owned(),
        account: account.to_owned(),
        peer: peer.to_owned(),
        thread: thread.map(str::to_owned),
    };
    Outgoing::stored(address, text.to_owned()).unwrap()
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

/// An inbox that keeps everything, and every repeat of it.
pub struct Letterbox {
    letters: Mutex<Vec<Letter>>,
    /// How many more it does not take now.
    refusals: AtomicU32,
    distinct: watch::Sender<usize>,
    deliveries: watch::Sender<usize>,
}

impl Letterbox {
    pub fn new() -> Self {
        Self {
            letters: Mutex::default(),
            refusals: AtomicU32::new(0),
            distinct: watch::Sender::new(0),
            deliveries: watch::Sender::new(0),
        }
    }

    /// The next ones are not taken now.
    pub fn refuse(&self, count: u32) {
        self.refusals.store(count, Ordering::SeqCst);
    }

    /// The letters that were taken, each once, as a store that knows ids would have them.
    pub fn letters(&self) -> Vec<Letter> {
        let mut seen = HashSet::new();
        let mut letters = self.letters.lock().unwrap().clone();
        letters.retain(|letter| seen.insert((letter.address.account.clone(), letter.platform_id.clone())));
        letters
    }

    pub fn texts(&self) -> Vec<String> {
        self.letters().into_iter().map(|letter| letter.text).collect()
    }

    /// Waits until this many different letters were taken.
    pub async fn wait_for(&self, count: usize) -> Vec<Letter> {
        let mut distinct = self.distinct.subscribe();
        let wait = tokio::time::timeout(Duration::from_secs(10), distinct.wait_for(|seen| *seen >= count));
        assert!(wait.await.is_ok(), "expected {count} letters, took {:?}", self.texts());
        self.letters()
    }

    /// Waits until letters came this often, repeats and those that were not taken included.
    pub async fn wait_for_deliveries(&self, count: usize) {
        let mut deliveries = self.deliveries.subscribe();
        let wait = tokio::time::timeout(Duration::from_secs(10), deliveries.wait_for(|seen| *seen >= count));
        assert!(wait.await.is_ok(), "expected {count} deliveries");
    }
}

impl Inbox for Letterbox {
    fn take(&self, letter: Letter) -> Pending<'_, Taken> {
        Box::pin(async move {
            // As a commit does.
            tokio::task::yield_now().await;
            self.deliveries.send_modify(|count| *count += 1);
            let left = |left: u32| left.checked_sub(1);
            if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
                return Taken::Later { reason: "the disk is full".to_owned() };
            }
            self.letters.lock().unwrap().push(letter);
            self.distinct.send_replace(self.letters().len());
            Taken::Done
        })
    }
}

/// Runs a test while a channel receives.
pub async fn receiving<T>(channel: &dyn Channel, inbox: &dyn Inbox, test: impl Future<Output = T>) -> T {
    tokio::select! {
        () = channel.receive(inbox) => panic!("it stopped receiving"),
        result = test => result,
    }
}

/// A platform as the next test sees it.
pub struct Wall<'a> {
    pub push: &'a dyn Fn(Outcome),
    pub push_edit: &'a dyn Fn(Outcome),
    /// The texts that people see, as they were written; they are wiped.
    pub wipe: &'a dyn Fn() -> Vec<String>,
}

/// Whatever the text, the limit and the trouble: what people see, put together, is the text, and each part is there
/// once.
pub async fn text_survives(channel: &dyn Channel, address: &Address, wall: &Wall<'_>) {
    let corpus = [
        "Hello <b>&amp;</b> *you*\n\n```\nfn main() {}\n```\n",
        "<!channel> <@U1> | a b c d e f",
        "你好 🦀\n",
    ];
    let capabilities = channel.capabilities(&address.account);
    for (seed, case) in fuzz::cases(&corpus, 10_000) {
        let mut text = String::from_utf8_lossy(&case).into_owned();
        text.truncate(text.floor_char_boundary(20_000));
        let Ok(outgoing) = Outgoing::stored(address.clone(), text.clone()) else { continue };
        let mut rng = fastrand::Rng::with_seed(seed);
        let shortest = (text.chars().count() / 6).clamp(1, capabilities.max_chars);
        for (index, part) in outgoing.split(rng.usize(shortest..=capabilities.max_chars)).iter().enumerate() {
            let key = format!("{seed}:{index}");
            grow(channel, &key, part, capabilities.edits, wall, &mut rng).await;
        }
        assert_eq!((wall.wipe)().concat(), text, "seed {seed}");
    }
}

/// Sends one part: at once, or a piece of it that is changed until it is whole.
async fn grow(
    channel: &dyn Channel,
    key: &str,
    part: &Outgoing,
    edits: bool,
    wall: &Wall<'_>,
    rng: &mut fastrand::Rng,
) {
    let trouble = [Outcome::Later { status: 429, seconds: 0 }, Outcome::Status(429)];
    let piece = part.text().floor_char_boundary(part.text().len() / 2);
    let first = Outgoing::stored(part.address().clone(), part.text()[..piece].to_owned());
    let first = first.ok().filter(|_| edits && rng.bool());
    for outcome in trouble.into_iter().filter(|_| rng.u8(..) < 60) {
        (wall.push)(outcome);
        (wall.push_edit)(outcome);
    }
    let id = insist(|| channel.send(key, first.as_ref().unwrap_or(part))).await;
    if first.is_some() {
        insist(|| channel.edit(&id, part)).await;
    }
}

async fn insist<'a>(send: impl Fn() -> Pending<'a, Sent>) -> String {
    for _ in 0..10 {
        match send().await {
            Sent::Accepted { platform_id } => return platform_id.unwrap(),
            Sent::Retry { .. } => {}
            sent => panic!("{sent:?}"),
        }
    }
    panic!("it was never accepted");
}

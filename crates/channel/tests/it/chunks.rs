//! An answer that is shown while it grows, cut into parts, refused and slowed down on the way: what people see at the
//! end is the stored text. Ten thousand of them on each platform, through the adapter as it is.

use std::time::Duration;

use polyclaw_channel::RetryTiming;
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, SendOutcome};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_testkit::platform::{EmulatorState, PlatformEmulator, ReplyOutcome};

use crate::fixture::{PACE, hostile, letters_of, outgoing};

const CHUNKINGS: u64 = 10_000;
/// Among so many requests one may take long, and that is no failure of the platform.
pub const PATIENT: RetryTiming = RetryTiming { request_timeout: Duration::from_secs(20), ..PACE };

/// A platform with the adapter that reaches it.
pub struct Stage<'a, S> {
    pub platform: &'a PlatformEmulator<S>,
    pub channel: &'a dyn ChannelAdapter,
    pub address: ChatAddress,
    /// The call that shows a message, and the one that changes it.
    pub calls: [&'a str; 2],
    /// What the adapter was given, from what is shown.
    pub read: fn(&str) -> String,
}

impl<S: EmulatorState> Stage<'_, S> {
    pub async fn play(&self) {
        for seed in 0..CHUNKINGS {
            let mut random = fastrand::Rng::with_seed(seed);
            // Most texts are short and cut shorter. Every twentieth may be longer than the platform takes at once.
            let most = self.channel.capabilities(&self.address.account).max_chars;
            let (longest, limit) = if seed % 20 == 0 { (2 * most, most) } else { (45, random.usize(20..40)) };
            let length = random.usize(1..longest);
            let text = format!("x{}", hostile(&mut random, length));
            let parts = outgoing(&self.address, &text).split_by_limit(limit);
            self.show(&parts, &mut random).await;
            let shown: Vec<_> = self
                .platform
                .wipe_chat(&self.address.peer)
                .iter()
                .map(|one| (self.read)(&one.text))
                .collect();
            assert_eq!(shown.len(), parts.len(), "seed {seed}: {shown:?}");
            assert_eq!(letters_of(&shown.concat()), letters_of(&text), "seed {seed}");
            let same = shown.iter().zip(&parts).all(|(shown, part)| shown.trim() == part.text().trim());
            assert!(same, "seed {seed}: {shown:?} of {parts:?}");
        }
    }

    /// As the engine does: while the first part grows it is a draft that is changed, and every part is tried until it is
    /// there.
    async fn show(&self, parts: &[OutgoingMessage], random: &mut fastrand::Rng) {
        for (n, part) in parts.iter().enumerate() {
            let key = format!("{n}-{:x}", random.u128(..));
            let edits = self.channel.capabilities(&self.address.account).edits;
            match (n == 0 && edits && random.bool()).then(|| prefix(part.text(), random)).flatten() {
                Some(started) => {
                    let id = self.insist(&key, &outgoing(&self.address, started), random).await;
                    self.grow(&id, part, random).await;
                }
                None => drop(self.insist(&key, part, random).await),
            }
        }
    }

    /// Changes on the way may fail in any way. The last one is tried again.
    async fn grow(&self, id: &str, part: &OutgoingMessage, random: &mut fastrand::Rng) {
        for _ in 0..random.usize(..2) {
            let Some(more) = prefix(part.text(), random) else { continue };
            self.trip(
                1,
                random,
                &[ReplyOutcome::Status(400), ReplyOutcome::Status(502), SLOWER, ReplyOutcome::Cut],
            );
            let _ = self.channel.edit_message(id, &outgoing(&self.address, more)).await;
        }
        self.trip(1, random, &[SLOWER, ReplyOutcome::Status(502), ReplyOutcome::ShownThenCut]);
        for _ in 0..3 {
            if let SendOutcome::Accepted { .. } = self.channel.edit_message(id, part).await {
                return;
            }
        }
        panic!("the end was never shown");
    }

    /// What the platform recognises may be sent again whatever became of it, and is.
    async fn insist(&self, key: &str, part: &OutgoingMessage, random: &mut fastrand::Rng) -> String {
        let recognises = self.channel.capabilities(&self.address.account).idempotent_send;
        let troubles = [
            SLOWER,
            ReplyOutcome::Status(429),
            ReplyOutcome::ShownThenCut,
            ReplyOutcome::ShownThenStatus(500),
        ];
        self.trip(0, random, if recognises { &troubles } else { &troubles[..2] });
        for _ in 0..3 {
            match self.channel.send(key, part).await {
                SendOutcome::Accepted { platform_id } => return platform_id.expect("an id"),
                SendOutcome::Retry { .. } => {}
                SendOutcome::Unknown { .. } if recognises => {}
                sent => panic!("{sent:?}"),
            }
        }
        panic!("it was never accepted");
    }

    /// Every third time something is in the way of the next call.
    fn trip(&self, call: usize, random: &mut fastrand::Rng, outcomes: &[ReplyOutcome]) {
        if random.usize(..3) == 0 {
            self.platform.push(self.calls[call], outcomes[random.usize(..outcomes.len())]);
        }
    }
}

const SLOWER: ReplyOutcome = ReplyOutcome::Later { status: 429, seconds: 0 };

/// The beginning of a text, if there is anything to see in it.
fn prefix<'a>(text: &'a str, random: &mut fastrand::Rng) -> Option<&'a str> {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    Some(&text[..ends[random.usize(..ends.len())]]).filter(|text| !text.trim().is_empty())
}

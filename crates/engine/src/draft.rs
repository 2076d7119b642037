//! Drafts: on platforms that allow edits, an answer is shown while it is generated, and the outbox replaces it with the
//! final text. A draft in an unknown state is sent again under its idempotency key if the platform deduplicates by key.
//! Otherwise it is left alone and the answer is sent as a separate message.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, SendOutcome};
use polyclaw_domain::delivery::{DeliveryPolicy, OutgoingMessage, apply_gate, may_be_silence};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::time::Millis;
use polyclaw_store::drafts::{self, StoredDraft};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::core::Engine;
use crate::delivery::recognizes_key;
use crate::error::Result;
use crate::prompt::TurnContext;
use crate::worker::RunningTurn;

/// Pause between two edits of a message; platforms allow about one per second.
const EDIT_INTERVAL: Duration = Duration::from_millis(1_200);
/// Edits per typing signal. Platforms show a typing signal for about five seconds.
const EDITS_PER_TYPING_SIGNAL: u32 = 3;
/// Timeout of one platform call.
const PLATFORM_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// After this many failed calls, the platform is left alone until the final answer.
const MAX_DRAFT_FAILURES: u32 = 3;
/// Marks the end of an unfinished text.
const CONTINUATION_SUFFIX: &str = " …";

/// Drafts of a turn.
#[derive(Default)]
pub(crate) struct TurnDrafts {
    known: Mutex<Vec<DraftMessage>>,
    /// Held during a platform call.
    platform_lock: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
pub(crate) struct DraftMessage {
    pub address: ChatAddress,
    /// `None`: it is unknown whether the message exists.
    pub platform_id: Option<String>,
    /// Time just before it was sent for the first time.
    first_sent_at: Millis,
    /// Text it showed last, as far as this process knows.
    pub text: String,
}

impl TurnDrafts {
    /// Loads the drafts that an earlier run of the turn has sent.
    pub async fn load_stored(&self, engine: &Engine, turn: &TurnId) -> Result<()> {
        let turn = turn.clone();
        let stored = engine.db().read(move |tx| drafts::list_by_turn(tx, &turn)).await?;
        let draft = |StoredDraft { address, platform_id, at }| DraftMessage {
            address,
            platform_id,
            first_sent_at: at,
            text: String::new(),
        };
        *self.lock() = stored.into_iter().map(draft).collect();
        Ok(())
    }

    /// Sends drafts of an earlier run in an unknown state again, so that the answer can replace them.
    pub async fn resend_uncertain(&self, engine: &Engine, turn: &TurnId) {
        let known = self.lock().clone();
        for draft in known.into_iter().filter(|draft| draft.can_resend(engine)) {
            let Some(channel) = engine.ports.channels.get(&draft.address.channel).cloned() else { continue };
            let Ok(outgoing) = apply_gate(
                Some(draft.address.clone()),
                DeliveryPolicy::ALLOW_ALL,
                CONTINUATION_SUFFIX.trim().to_owned(),
            ) else {
                continue;
            };
            self.send_draft(engine, turn, (&*channel, draft), &outgoing).await;
        }
    }

    /// Sends a draft under its idempotency key and stores the platform's id of it.
    async fn send_draft(
        &self,
        engine: &Engine,
        turn: &TurnId,
        (channel, draft): (&dyn ChannelAdapter, DraftMessage),
        outgoing: &OutgoingMessage,
    ) -> Option<SendOutcome> {
        engine.hit_kill_point(KillPoint::OutboxSending).await;
        let sent =
            timeout(PLATFORM_CALL_TIMEOUT, channel.send(&draft.idempotency_key(turn), outgoing)).await.ok();
        engine.hit_kill_point(KillPoint::OutboxAccepted).await;
        if let Some(SendOutcome::Accepted { platform_id: Some(id) }) = &sent {
            let (turn, address, id) = (turn.clone(), draft.address.clone(), id.clone());
            self.upsert(DraftMessage { platform_id: Some(id.clone()), ..draft });
            log_store_error(
                engine.write_with_retry(move |tx| drafts::set_platform_id(tx, &turn, &address, &id)).await,
            );
        }
        sent
    }

    /// Waits for calls in flight. Until then it is unknown which message the answer replaces.
    pub async fn wait_until_idle(&self) {
        drop(self.platform_lock.lock().await);
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Platform id of the message that an answer to this address replaces.
    pub fn message_id_at(&self, address: &ChatAddress) -> Option<String> {
        self.find_draft(address)?.platform_id
    }

    /// Drafts that show text which no answer has replaced.
    pub fn leftover_drafts(&self) -> Vec<DraftMessage> {
        let shown = |draft: &&DraftMessage| draft.platform_id.is_some() && !draft.text.is_empty();
        self.lock().iter().filter(shown).cloned().collect()
    }

    /// Removes the drafts known to exist and returns them. Their text will not be replaced any more.
    pub fn release_sent(&self) -> Vec<DraftMessage> {
        let mut known = self.lock();
        let (released, unknown) = known.drain(..).partition(|draft| draft.platform_id.is_some());
        *known = unknown;
        released
    }

    fn find_draft(&self, address: &ChatAddress) -> Option<DraftMessage> {
        self.lock().iter().find(|known| known.address == *address).cloned()
    }

    fn upsert(&self, draft: DraftMessage) {
        self.remove_draft(&draft.address);
        self.lock().push(draft);
    }

    fn remove_draft(&self, address: &ChatAddress) {
        self.lock().retain(|known| known.address != *address);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<DraftMessage>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DraftMessage {
    /// Derived, so that a later run of the turn uses the same key. The time distinguishes successive drafts of a turn
    /// at one address; the address is included because platforms may apply keys across conversations.
    fn idempotency_key(&self, turn: &TurnId) -> String {
        let ChatAddress { peer, thread, .. } = &self.address;
        format!("{turn}-draft-{}-{peer}-{}", self.first_sent_at.0, thread.as_deref().unwrap_or_default())
    }

    /// Whether the draft may exist and sending it again is safe, because the platform deduplicates by key.
    fn can_resend(&self, engine: &Engine) -> bool {
        self.platform_id.is_none() && recognizes_key(engine, &self.address, self.first_sent_at)
    }
}

fn log_store_error(stored: Result<()>) {
    if let Err(error) = stored {
        tracing::warn!(%error, "could not store the draft sent; the answer may be posted beside it");
    }
}

/// A model call whose text is shown on chat platforms while it streams.
pub(crate) struct DraftStream {
    text: watch::Sender<String>,
    over: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl DraftStream {
    /// Returns `None` if nobody waits on a platform.
    pub fn start(engine: &Engine, running: &RunningTurn, context: &TurnContext) -> Option<Self> {
        let turn = &running.claim.turn;
        let mut desks: Vec<DraftTarget> = Vec::new();
        for address in context.watching_addresses().into_iter().filter(|address| !address.is_pull_channel()) {
            let Some(channel) = engine.ports.channels.get(&address.channel) else { continue };
            desks.push(DraftTarget { channel: Arc::clone(channel), address, failures: 0 });
        }
        if desks.is_empty() {
            return None;
        }
        let (text, growing) = watch::channel(String::new());
        let (over, ended) = oneshot::channel();
        let office = DraftWriter {
            engine: engine.clone(),
            turn: turn.clone(),
            drafts: Arc::clone(&running.drafts),
            signature: context.signature(),
        };
        let task = tokio::spawn(office.run(desks, growing, ended));
        Some(Self { text, over, task })
    }

    pub fn push_text(&self, text: &str) {
        self.text.send_modify(|all| all.push_str(text));
    }

    pub fn clear_text(&self) {
        self.text.send_modify(String::clear);
    }

    /// Waits for calls in flight. Until then it is unknown which message the final text replaces.
    pub async fn finish(self) {
        let _ = self.over.send(());
        let _ = self.task.await;
    }
}

/// One conversation that shows the text.
struct DraftTarget {
    channel: Arc<dyn ChannelAdapter>,
    address: ChatAddress,
    failures: u32,
}

struct DraftWriter {
    /// Name of the answering agent, if several agents answer.
    signature: String,
    engine: Engine,
    turn: TurnId,
    drafts: Arc<TurnDrafts>,
}

impl DraftWriter {
    async fn run(
        self,
        mut desks: Vec<DraftTarget>,
        mut growing: watch::Receiver<String>,
        mut over: oneshot::Receiver<()>,
    ) {
        for round in 0_u32.. {
            // Show a typing signal until there is text to show, without waiting for it.
            if round % EDITS_PER_TYPING_SIGNAL == 0 {
                let idle = desks.iter().filter(|target| self.drafts.find_draft(&target.address).is_none());
                idle.for_each(|target| self.engine.show_typing(target.address.clone()));
            }
            tokio::select! {
                biased;
                _ = &mut over => return,
                () = sleep(EDIT_INTERVAL) => {}
            }
            let text = growing.borrow_and_update().clone();
            for target in &mut desks {
                self.show_text(target, &text).await;
            }
        }
    }

    async fn show_text(&self, target: &mut DraftTarget, text: &str) {
        let can = target.channel.capabilities(&target.address.account);
        let signed = self.signature.chars().count() + text.chars().count();
        let fits = signed + CONTINUATION_SUFFIX.chars().count() <= can.max_chars;
        if !can.edits || !fits || target.failures >= MAX_DRAFT_FAILURES || may_be_silence(text) {
            return;
        }
        let text = &format!("{}{}", self.signature, text.trim_end());
        let growing = format!("{text}{CONTINUATION_SUFFIX}");
        let Ok(outgoing) = apply_gate(Some(target.address.clone()), DeliveryPolicy::ALLOW_ALL, growing)
        else {
            return;
        };
        let pen = self.drafts.platform_lock.lock().await;
        let sent = match self.drafts.find_draft(&target.address) {
            Some(known) if known.text == *text => return,
            Some(known @ DraftMessage { platform_id: Some(_), .. }) => {
                self.edit_draft(target, known, text, &outgoing).await
            }
            Some(known) if known.can_resend(&self.engine) => {
                let draft = DraftMessage { text: text.to_owned(), ..known };
                self.drafts.send_draft(&self.engine, &self.turn, (&*target.channel, draft), &outgoing).await
            }
            // Sending was started, but its result is unknown.
            Some(_) => return,
            None => self.send_first_draft(target, text, &outgoing).await,
        };
        drop(pen);
        target.record_result(sent.as_ref()).await;
    }

    async fn edit_draft(
        &self,
        target: &DraftTarget,
        known: DraftMessage,
        text: &str,
        outgoing: &OutgoingMessage,
    ) -> Option<SendOutcome> {
        let id = known.platform_id.as_deref()?;
        let sent = timeout(PLATFORM_CALL_TIMEOUT, target.channel.edit_message(id, outgoing)).await.ok();
        if matches!(sent, Some(SendOutcome::Accepted { .. })) {
            self.drafts.upsert(DraftMessage { text: text.to_owned(), ..known });
        }
        sent
    }

    /// Stores that a draft may exist before sending it, and its platform id afterwards.
    async fn send_first_draft(
        &self,
        target: &DraftTarget,
        text: &str,
        outgoing: &OutgoingMessage,
    ) -> Option<SendOutcome> {
        let (turn, address, started_at) = (self.turn.clone(), target.address.clone(), self.engine.now());
        self.engine.db().write(move |tx| drafts::insert(tx, &turn, &address, started_at)).await.ok()?;
        let draft = DraftMessage {
            address: target.address.clone(),
            platform_id: None,
            first_sent_at: started_at,
            text: text.to_owned(),
        };
        self.drafts.upsert(draft.clone());
        let sent =
            self.drafts.send_draft(&self.engine, &self.turn, (&*target.channel, draft), outgoing).await;
        if matches!(sent, Some(SendOutcome::Rejected { .. } | SendOutcome::Retry { .. })) {
            let (turn, address) = (self.turn.clone(), target.address.clone());
            self.drafts.remove_draft(&target.address);
            log_store_error(
                self.engine.write_with_retry(move |tx| drafts::delete(tx, &turn, &address)).await,
            );
        }
        sent
    }
}

impl DraftTarget {
    async fn record_result(&mut self, sent: Option<&SendOutcome>) {
        match sent {
            Some(SendOutcome::Accepted { .. }) => self.failures = 0,
            Some(SendOutcome::Retry { after_ms, .. }) => {
                self.failures += 1;
                sleep(Duration::from_millis(after_ms.unwrap_or(0)).min(PLATFORM_CALL_TIMEOUT)).await;
            }
            _ => self.failures += 1,
        }
    }
}

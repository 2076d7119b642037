//! Broadcasts: one message that several agents answer, each in its own session. The remaining work is read from stored
//! rows only and every step can be repeated, so a broadcast resumes after a crash.

use std::time::Duration;

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_store::broadcasts::{self, Broadcast, BroadcastTarget, TargetOutcome};
use polyclaw_store::{Tx, backlog, events, jobs};
use serde_json::{Value, json};

use super::direct::target_message;
use super::route::RouteTarget;
use super::{is_retryable, sessionless_event};
use crate::command_action::ActionOutcome;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::IngressMessage;
use crate::redact;
use crate::reply_once::InboundReceipt;
use crate::reply_text;

/// Interval at which open broadcasts are checked without a wake-up, because a turn may end on another node.
const BROADCAST_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which the loop checks whether any broadcast is open.
const BROADCAST_SCAN_INTERVAL: Duration = Duration::from_secs(15);

impl Engine {
    /// Starts a broadcast from an inbound message, or replies with the refusal.
    pub(super) async fn accept_broadcast(
        &self,
        inbound: &InboundMessage,
        targets: Vec<RouteTarget>,
        receipt: &InboundReceipt,
    ) -> Result<()> {
        let Some(first) = targets.first().cloned() else { return Ok(()) };
        let parts = self.fetch_attachments(inbound).await;
        let message =
            IngressMessage { parts, ..self.build_ingress_message(inbound, first, inbound.text.clone()) };
        if let Err(error) = self.check_message(&message) {
            return self.reply_refusal(error, receipt).await;
        }
        self.start_broadcast(message, targets, (self.next_id(), receipt)).await
    }

    /// Stores the message with its targets. From then on a crash cannot lose it.
    pub(super) async fn start_broadcast(
        &self,
        mut message: IngressMessage,
        targets: Vec<RouteTarget>,
        (id, receipt): (String, &InboundReceipt),
    ) -> Result<()> {
        redact::redact_message(&self.redactor(), &mut message);
        let round = self.build_broadcast(id, message, targets);
        let (id, now) = (round.id.clone(), round.created_at);
        let agents: Vec<&str> = round.targets.iter().map(|target| target.agent.as_str()).collect();
        let event = sessionless_event(
            EventKind::BroadcastStarted,
            json!({ "broadcast": id, "agents": agents, "is_sequential": round.is_sequential }),
        );
        let keep = move |tx: &mut Tx<'_>| {
            broadcasts::insert(tx, &round)?;
            events::record(tx, &event, now)?;
            Ok(Some(ActionOutcome::with_reply("")))
        };
        self.commit_once(receipt, keep).await?;
        self.hit_kill_point(KillPoint::BroadcastStored).await;
        if let Err(error) = self.advance_broadcast(&id).await {
            tracing::warn!(%error, round = id, "could not advance the broadcast; retrying later");
        }
        self.broadcast_started.notify_one();
        self.show_typing(receipt.address.clone());
        Ok(())
    }

    fn build_broadcast(&self, id: String, message: IngressMessage, targets: Vec<RouteTarget>) -> Broadcast {
        let settings = self.settings();
        let target_of = |target: RouteTarget| BroadcastTarget {
            agent: target.agent,
            session: target.session,
            outcome: None,
        };
        Broadcast {
            id,
            text: message.text,
            parts: message.parts,
            address: message.address,
            meta: message.meta,
            priority: message.priority,
            is_sequential: settings.inbound.is_sequential(),
            see_previous: settings.inbound.sees_previous(),
            targets: targets.into_iter().map(target_of).collect(),
            created_at: self.now(),
        }
    }

    /// Delivers the message to the targets whose turn it is, and closes the broadcast after the last one.
    async fn advance_broadcast(&self, id: &str) -> Result<()> {
        let wanted = id.to_owned();
        let Some(round) = self.db().read(move |tx| broadcasts::get(tx, &wanted)).await? else {
            return Ok(());
        };
        for (at, target) in round.targets.iter().enumerate() {
            let turn = match &target.outcome {
                None => self.deliver_to_target(&round, at).await?,
                Some(taken) => taken.clone(),
            };
            if let TargetOutcome::Turn(turn) = turn
                && round.is_sequential
                && !self.has_turn_ended(&turn).await?
            {
                return Ok(());
            }
        }
        let id = round.id;
        self.db().write(move |tx| broadcasts::close(tx, &id)).await?;
        Ok(())
    }

    /// Delivers the message to one target.
    async fn deliver_to_target(&self, round: &Broadcast, at: usize) -> Result<TargetOutcome> {
        let taken = match self.accept_message(target_message(round, at)).await {
            Ok(accepted) => TargetOutcome::Turn(accepted.turn_id),
            Err(error) if is_retryable(&error) => return Err(error),
            Err(error) => self.refuse_target(round, at, &error).await?,
        };
        self.hit_kill_point(KillPoint::BroadcastTargetAccepted).await;
        let (id, noted) = (round.id.clone(), taken.clone());
        self.db().write(move |tx| broadcasts::record_target_outcome(tx, &id, at, &noted)).await?;
        Ok(taken)
    }

    /// Records a refusal by one target and tells the sender which agent refused. The other targets still get the
    /// message.
    async fn refuse_target(&self, round: &Broadcast, at: usize, error: &Error) -> Result<TargetOutcome> {
        let target = &round.targets[at];
        tracing::warn!(round = round.id, agent.id = %target.agent, code = error.code(), "target refused a broadcast");
        let language = self.stored_language(&target.session).await?;
        let locale = self.settings().locale_for_text(language, &round.text);
        let receipt = InboundReceipt {
            session: target.session.clone(),
            locale,
            address: round.address.clone(),
            platform_id: Some(format!("round {} {at}", round.id)),
            deliver: true,
        };
        let text = reply_text::inbound::not_accepted_by(locale, &target.agent, error);
        self.reply_once(&receipt, &text).await?;
        Ok(TargetOutcome::Refused)
    }

    /// Whether a turn is over for good. A steered turn resumes later, unless its backlog item is gone.
    async fn has_turn_ended(&self, turn: &TurnId) -> Result<bool> {
        match self.load_answer(turn).await {
            Ok(Some(_)) | Err(Error::UnknownTurn(_)) => return Ok(true),
            Err(error) => return Err(error),
            Ok(None) => {}
        }
        let wanted = turn.clone();
        let read = move |tx: &mut Tx<'_>| {
            let Some(job) = jobs::find_answering(tx, &wanted)? else { return Ok(true) };
            let comes_back =
                backlog::list_waiting(tx, &job.session)?.iter().any(|row| row.task.token.turn_id == job.turn);
            Ok(job.state == JobState::Steered && !comes_back)
        };
        Ok(self.db().read(read).await?)
    }

    /// The replies of earlier targets, for the model that answers next. Read from the stored replies each time and
    /// never stored.
    pub(crate) async fn earlier_replies(&self, round: &str, position: usize) -> Result<Option<String>> {
        let wanted = round.to_owned();
        let Some(round) = self.db().read(move |tx| broadcasts::get(tx, &wanted)).await? else {
            return Ok(None);
        };
        if !(round.is_sequential && round.see_previous) {
            return Ok(None);
        }
        let mut texts = Vec::new();
        for target in round.targets.iter().take(position) {
            let Some(TargetOutcome::Turn(turn)) = &target.outcome else { continue };
            let answer = self.poll_answer(turn).await.ok().flatten();
            if let Some(answer) =
                answer.filter(|answer| answer.state == JobState::Done && !answer.text.is_empty())
            {
                texts.push(format!("{} answered:\n{}", target.agent, answer.text));
            }
        }
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }
}

/// Broadcast id and target index of a message.
pub(crate) fn broadcast_position_of(meta: Option<&Value>) -> Option<(&str, usize)> {
    // Messages stored by earlier versions call a broadcast a round.
    let broadcast = meta?.get("broadcast").or_else(|| meta?.get("round"))?;
    let position = broadcast
        .get("target")
        .or_else(|| broadcast.get("seat"))?
        .as_u64()
        .and_then(|position| usize::try_from(position).ok())?;
    Some((broadcast.get("id")?.as_str()?, position))
}

/// Advances all open broadcasts when a turn ends and at intervals.
pub(crate) async fn run_broadcast_loop(engine: &Engine) -> Result<()> {
    while !engine.is_draining() {
        let open = engine.db().read(broadcasts::list_open).await?;
        for id in &open {
            if let Err(error) = engine.advance_broadcast(id).await {
                tracing::warn!(%error, round = id, "could not advance the broadcast; retrying later");
            }
        }
        let pause = if open.is_empty() { BROADCAST_SCAN_INTERVAL } else { BROADCAST_POLL_INTERVAL };
        tokio::select! {
            () = engine.turn_ended.notified(), if !open.is_empty() => {}
            () = engine.broadcast_started.notified() => {}
            () = engine.wait_for_drain() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    Ok(())
}

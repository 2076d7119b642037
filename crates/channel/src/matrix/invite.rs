//! Room invitations. Accepts those from senders who may write and declines all others, so that
//! senders do not wait for an answer that never comes.

use polyclaw_domain::admission::{SenderAdmission, SenderFacts};
use polyclaw_domain::inbound::{ChatPeer, InboundContext, PeerKind};
use serde_json::{Value, json};

use super::CHANNEL_NAME;
use super::account::MatrixAccount;
use super::api::{MatrixRequest, MatrixRequestError};
use super::event::MatrixEvent;

const ENCRYPTED: &str = "This account cannot read encrypted rooms. Please invite it to an unencrypted room.";

impl MatrixAccount {
    /// Accepts or declines an invitation. On a permanent error the invitation stays open.
    pub(super) async fn answer_invite(
        &self,
        room: &str,
        events: &[MatrixEvent],
    ) -> Result<(), MatrixRequestError> {
        let own = &self.settings.user_id;
        let Some(invite) = events.iter().find(|event| event.is_membership_of(own)) else { return Ok(()) };
        let (action, body) = self.decide_invite(room, invite, events);
        let path = ["v3", "rooms", room, action];
        tracing::info!(account = self.name, room, by = invite.sender, action, "answering a room invitation");
        match self.api.request_json(&MatrixRequest::post(&path, &body)).await {
            Err(trouble) if trouble.is_permanent() => {
                tracing::warn!(
                    account = self.name,
                    room,
                    reason = trouble.into_reason(),
                    "could not answer a room invitation; it stays open"
                );
                Ok(())
            }
            answered => answered.map(drop),
        }
    }

    fn decide_invite(
        &self,
        room: &str,
        invite: &MatrixEvent,
        events: &[MatrixEvent],
    ) -> (&'static str, Value) {
        if events.iter().any(|event| event.kind == "m.room.encryption") {
            tracing::warn!(
                account = self.name,
                room,
                "declining an invitation to an encrypted room, because it cannot be read"
            );
            return ("leave", json!({ "reason": ENCRYPTED }));
        }
        match self.may_write(room, invite) {
            true => ("join", json!({})),
            false => ("leave", json!({})),
        }
    }

    /// Whether messages from the inviter would be admitted. A sender who would get a pairing code counts as well.
    fn may_write(&self, room: &str, invite: &MatrixEvent) -> bool {
        let (kind, id) = match invite.content.is_direct {
            true => (PeerKind::Dm, invite.sender.as_str()),
            false => (PeerKind::Group, room),
        };
        let arrival = InboundContext {
            channel: CHANNEL_NAME.to_owned(),
            account: self.name.clone(),
            peer: ChatPeer { kind, id: id.to_owned() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: Vec::new(),
            sender: invite.sender.clone(),
        };
        let known = SenderFacts { paired: false, mentioned: true };
        !matches!(self.settings.access.admit_sender(&arrival, known), SenderAdmission::Ignored(_))
    }
}

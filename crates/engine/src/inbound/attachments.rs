//! What is attached to a letter. It is fetched when the letter is let in, is no copy of one that was taken, and is a
//! message: nobody else can have this instance fetch anything. It is stored with the message or not at all.

use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::channel::{AttachmentRef, InboundMessage};
use polyclaw_domain::message::MessagePart;
use tokio::time::timeout;

use crate::core::Engine;

/// For all files of a letter together: what is written next waits for it.
const ATTACHMENT_FETCH_TIMEOUT: Duration = Duration::from_secs(15);

impl Engine {
    /// In their order. Of what does not come in time the message says what it is.
    pub(super) async fn fetch_attachments(&self, message: &InboundMessage) -> Vec<MessagePart> {
        join_all(message.attachments.iter().map(|attached| self.fetch_attachment(message, attached))).await
    }

    async fn fetch_attachment(&self, message: &InboundMessage, attached: &AttachmentRef) -> MessagePart {
        let arrival = &message.context;
        let fetched = match self.ports.channels.get(&arrival.channel) {
            Some(channel) => {
                timeout(ATTACHMENT_FETCH_TIMEOUT, channel.fetch_attachment(&arrival.account, attached))
                    .await
                    .ok()
            }
            None => None,
        };
        MessagePart::Attachment(fetched.unwrap_or_else(|| attached.to_attachment()))
    }
}

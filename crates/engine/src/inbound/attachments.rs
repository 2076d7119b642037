//! Fetches attachments of an inbound message: only for admitted messages that are not duplicates or commands, so nobody
//! else can make this instance download files. They are stored with the message or not at all.

use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::channel::{AttachmentRef, InboundMessage};
use polyclaw_domain::message::MessagePart;
use tokio::time::timeout;

use crate::core::Engine;

/// Timeout for all files of a message; the sender's next message waits for it.
const ATTACHMENT_FETCH_TIMEOUT: Duration = Duration::from_secs(15);

impl Engine {
    /// Fetches attachments in order. One that misses the deadline is included by name and type only.
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

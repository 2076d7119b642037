//! A Matrix account that answers what is said to it with the same words: the adapter alone, for trying it against a
//! homeserver. `echo <homeserver> <user>`, with the password in `MATRIX_PASSWORD`.
//!
//! A letter is taken when its answer was accepted, so one that was cut off by a crash is answered after the next start;
//! the key of an answer is made of the letter's id, so it is shown once.
#![allow(clippy::print_stdout, reason = "what it takes is its output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use polyclaw_channel::matrix::MatrixAdapter;
use polyclaw_domain::admission::{AccountAccess, DmPolicy, GroupPolicy};
use polyclaw_domain::channel::{ChannelAdapter, InboundMessage, InboundSink, IngestOutcome, SendOutcome};
use polyclaw_domain::config;
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::inbound::PeerKind;
use polyclaw_domain::port::BoxFuture;

struct Echo<'a>(&'a MatrixAdapter);

impl InboundSink for Echo<'_> {
    fn ingest_message(&self, message: InboundMessage) -> BoxFuture<'_, IngestOutcome> {
        Box::pin(async move {
            println!("{:?} {} {:?}", message.context.peer.kind, message.mentioned, message.text);
            if message.context.peer.kind != PeerKind::Dm && !message.mentioned {
                return IngestOutcome::Done;
            }
            match self.answer(&message).await {
                SendOutcome::Accepted { .. } | SendOutcome::Rejected { .. } => IngestOutcome::Done,
                sent => IngestOutcome::Retry { reason: format!("{sent:?}") },
            }
        })
    }
}

impl Echo<'_> {
    /// What has to be changed is said first in another way.
    async fn answer(&self, message: &InboundMessage) -> SendOutcome {
        self.0.send_typing(&message.address).await;
        let mut text = format!("echo: {}", message.text);
        for attached in &message.attachments {
            text +=
                &self.0.fetch_attachment(&message.context.account, attached).await.text.unwrap_or_default();
        }
        let first = if message.text.starts_with("change") { "echo …" } else { &text };
        let key = format!("echo-{}", message.platform_id);
        let part = |text: &str| OutgoingMessage::from_stored(message.address.clone(), text.to_owned());
        let (Ok(first), Ok(whole)) = (part(first), part(&text)) else {
            return SendOutcome::Rejected { reason: "there is nothing to say".to_owned() };
        };
        let sent = insist(|| self.0.send(&key, &first)).await;
        match &sent {
            SendOutcome::Accepted { platform_id: Some(id) } if first != whole => {
                insist(|| self.0.edit_message(id, &whole)).await
            }
            _ => sent,
        }
    }
}

/// Waits as long as the homeserver says.
async fn insist<'a>(send: impl Fn() -> BoxFuture<'a, SendOutcome>) -> SendOutcome {
    loop {
        match send().await {
            SendOutcome::Retry { after_ms, .. } => {
                tokio::time::sleep(Duration::from_millis(after_ms.unwrap_or(500))).await;
            }
            sent => return sent,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (homeserver, user_id) = args.next().zip(args.next()).ok_or("echo <homeserver> <user>")?;
    let account = config::MatrixConfig {
        homeserver,
        user_id,
        access_token: None,
        password: Some(config::Secret::new(std::env::var("MATRIX_PASSWORD")?)),
        access: AccountAccess {
            dm_policy: DmPolicy::Open,
            group_policy: GroupPolicy::Open,
            ..AccountAccess::default()
        },
    };
    let matrix = MatrixAdapter::from_config(&BTreeMap::from([("echo".to_owned(), account)]))?;
    matrix.receive_messages("echo", &Echo(&matrix)).await;
    Ok(())
}

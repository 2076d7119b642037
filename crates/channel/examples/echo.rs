//! A Matrix account that answers what is said to it with the same words: the adapter alone, for trying it against a
//! homeserver. `echo <homeserver> <user>`, with the password in `MATRIX_PASSWORD`.
//!
//! A letter is taken when its answer was accepted, so one that was cut off by a crash is answered after the next start;
//! the key of an answer is made of the letter's id, so it is shown once.
#![allow(clippy::print_stdout, reason = "what it takes is its output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use polyclaw_channel::matrix::Matrix;
use polyclaw_domain::admission::{Access, DmPolicy, GroupPolicy};
use polyclaw_domain::arrival::PeerKind;
use polyclaw_domain::channel::{Channel, Inbox, Letter, Sent, Taken};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::Pending;

struct Echo<'a>(&'a Matrix);

impl Inbox for Echo<'_> {
    fn take(&self, letter: Letter) -> Pending<'_, Taken> {
        Box::pin(async move {
            println!("{:?} {} {:?}", letter.arrival.peer.kind, letter.mentioned, letter.text);
            if letter.arrival.peer.kind != PeerKind::Dm && !letter.mentioned {
                return Taken::Done;
            }
            match self.answer(&letter).await {
                Sent::Accepted { .. } | Sent::Rejected { .. } => Taken::Done,
                sent => Taken::Later { reason: format!("{sent:?}") },
            }
        })
    }
}

impl Echo<'_> {
    /// What has to be changed is said first in another way.
    async fn answer(&self, letter: &Letter) -> Sent {
        self.0.typing(&letter.address).await;
        let mut text = format!("echo: {}", letter.text);
        for attached in &letter.attached {
            text += &self.0.fetch(&letter.arrival.account, attached).await.text.unwrap_or_default();
        }
        let first = if letter.text.starts_with("change") { "echo …" } else { &text };
        let key = format!("echo-{}", letter.platform_id);
        let part = |text: &str| Outgoing::stored(letter.address.clone(), text.to_owned());
        let (Ok(first), Ok(whole)) = (part(first), part(&text)) else {
            return Sent::Rejected { reason: "there is nothing to say".to_owned() };
        };
        let sent = insist(|| self.0.send(&key, &first)).await;
        match &sent {
            Sent::Accepted { platform_id: Some(id) } if first != whole => {
                insist(|| self.0.edit(id, &whole)).await
            }
            _ => sent,
        }
    }
}

/// Waits as long as the homeserver says.
async fn insist<'a>(send: impl Fn() -> Pending<'a, Sent>) -> Sent {
    loop {
        match send().await {
            Sent::Retry { after_ms, .. } => {
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
    let account = config::Matrix {
        homeserver,
        user_id,
        access_token: None,
        password: Some(config::Secret::new(std::env::var("MATRIX_PASSWORD")?)),
        access: Access { dm_policy: DmPolicy::Open, group_policy: GroupPolicy::Open, ..Access::default() },
    };
    let matrix = Matrix::from_config(&BTreeMap::from([("echo".to_owned(), account)]))?;
    matrix.receive("echo", &Echo(&matrix)).await;
    Ok(())
}

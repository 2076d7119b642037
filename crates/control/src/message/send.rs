//! Taking messages in.

use polyclaw_domain::envelope::{LARGEST, LONGEST_WORD, State, is_kind};
use polyclaw_domain::id::EnvelopeId;
use polyclaw_store::registry::envelopes::{self, Accepted, Draft, Payload, Refused, Verdict};
use serde_json::Value;

use crate::access::Caller;
use crate::control::Control;
use crate::error::{Error, Result};

/// A message as its sender writes it.
#[derive(Clone, Debug)]
pub struct Letter {
    /// An operator says for whom they write. An instance writes for itself.
    pub from: Option<String>,
    pub to: String,
    pub kind: String,
    pub payload: Value,
    pub correlation: Option<String>,
    pub key: Option<String>,
    pub hop: u32,
}

#[derive(Clone, Debug)]
pub enum Sent {
    New(Accepted),
    /// The sender's key stands for an earlier one.
    Repeated(EnvelopeId, State),
}

impl Control {
    /// Keeps a message for its recipient. When this returns, a crash does not lose it.
    pub async fn send(&self, by: &Caller, letter: Letter) -> Result<Sent> {
        let draft = self.draft(by, letter)?;
        let verdict = self.db.write(move |tx| envelopes::accept(tx, &draft)).await?;
        match verdict {
            Verdict::Accepted(accepted, events) => {
                self.broker.tell(events);
                if accepted.auto_start {
                    self.broker.wake.notify_one();
                }
                Ok(Sent::New(accepted))
            }
            Verdict::Repeated(id, state) => Ok(Sent::Repeated(id, state)),
            Verdict::Refused(refused) => Err(refused.into()),
        }
    }

    fn draft(&self, by: &Caller, letter: Letter) -> Result<Draft> {
        let from = match (&by.instance, letter.from) {
            (Some(own), None) => own.to_string(),
            (Some(own), Some(named)) if named == own.as_str() => named,
            (Some(_), Some(_)) => return Err(Error::ForeignSender),
            (None, Some(named)) => named,
            (None, None) => return Err(Error::BadMessage("from: say which instance it is from".to_owned())),
        };
        if !is_kind(&letter.kind) {
            return Err(Error::BadMessage(
                "type: words of letters, digits, - and _, joined by dots".to_owned(),
            ));
        }
        self.check_word("correlation_id", letter.correlation.as_deref())?;
        self.check_word("idempotency_key", letter.key.as_deref())?;
        Ok(Draft {
            id: EnvelopeId::new(self.ids.next()),
            from,
            to: letter.to,
            kind: letter.kind,
            payload: self.cleaned(letter.payload),
            correlation: letter.correlation,
            key: letter.key,
            hop: letter.hop,
            now: self.now(),
        })
    }

    /// A word is compared: it can not be stored with something taken out of it.
    fn check_word(&self, name: &str, word: Option<&str>) -> Result<()> {
        let Some(word) = word else { return Ok(()) };
        let fits = (1..=LONGEST_WORD).contains(&word.len()) && !word.chars().any(char::is_control);
        if !fits {
            return Err(Error::BadMessage(format!("{name}: 1 to {LONGEST_WORD} bytes of plain text")));
        }
        match self.broker.redactor().text(word) {
            std::borrow::Cow::Borrowed(_) => Ok(()),
            std::borrow::Cow::Owned(_) => Err(Error::BadMessage(format!("{name}: it looks like a secret"))),
        }
    }

    fn cleaned(&self, mut payload: Value) -> Payload {
        let written = payload.to_string();
        if written.len() > LARGEST {
            return Payload::TooLarge(written.len());
        }
        self.broker.redactor().payload(&mut payload);
        let json = payload.to_string();
        Payload::Clean { redacted: json != written, json }
    }

    /// What somebody says went wrong, as it may be stored.
    pub(super) fn cleaned_words(&self, words: &str) -> String {
        const LONGEST: usize = 500;
        let words: String = words.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
        self.broker.redactor().text(&words).into_owned()
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unknown(word) => Self::UnknownInstance(word.chars().take(100).collect()),
            Refused::Archived(name) => Self::Archived(name),
            Refused::TooLarge(bytes) => Self::PayloadTooLarge(bytes),
            Refused::TooManyHops(hop) => Self::MessageLoops(hop),
            Refused::NoRule { from, to, kind } => Self::RouteDenied { from, to, kind },
        }
    }
}

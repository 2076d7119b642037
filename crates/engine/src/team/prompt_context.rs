//! What lies before somebody in a team during one turn, and how much mail its model has room for.

use std::collections::{BTreeSet, HashSet};

use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::prompt::{estimate_text_tokens, shorten_text};
use polyclaw_domain::team_message::{self, TeamMessage};
use polyclaw_store::jobs::TurnClaim;
use polyclaw_store::{Tx, sessions, team_messages, teams};

use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::turn::{TurnResult, abort_if_stopping, check_claim};

/// Tokens of a letter that say what it was about.
const MIN_MESSAGE_TOKENS: usize = 100;

#[derive(Default)]
pub(crate) struct TeamPromptContext {
    /// Each team's block.
    pub state: Vec<String>,
    pub messages: Vec<TeamMessage>,
    pub is_loaded: bool,
    /// Letters that were in a prompt which was answered.
    pub answered: HashSet<TeamMessageId>,
}

impl TeamPromptContext {
    /// The letters as one text; `None` where there are none.
    pub fn mail_text(&self) -> Option<String> {
        let shown: Vec<String> = self.messages.iter().map(team_message::render_element).collect();
        (!shown.is_empty()).then(|| shown.join("\n"))
    }

    /// What mail takes of a prompt.
    pub fn mail_tokens(&self) -> usize {
        self.messages.iter().map(message_tokens).sum()
    }

    pub fn mark_answered(&mut self) {
        self.answered.extend(self.messages.iter().map(|message| message.id.clone()));
    }

    pub fn contains_all(&self, messages: &[TeamMessage]) -> bool {
        messages.iter().all(|message| self.messages.iter().any(|shown| shown.id == message.id))
    }

    /// Leaves of each new letter what half of this room holds, and of those that were answered, together, an eighth; or
    /// more, so that each can still be told from the others. Returns whether there was more.
    pub fn shorten_messages(&mut self, room: usize) -> bool {
        let answered = &self.answered;
        let is_old = |message: &TeamMessage| answered.contains(&message.id);
        let old: Vec<usize> =
            self.messages.iter().filter(|message| is_old(message)).map(message_tokens).collect();
        let most = (room / 8).max((MIN_MESSAGE_TOKENS * old.len()).min(room / 3));
        let most_of_old = if old.iter().sum::<usize>() > most { most / old.len() } else { usize::MAX };
        let most_of = |message: &TeamMessage| if is_old(message) { most_of_old } else { room / 2 };
        self.messages.iter_mut().fold(false, |did, message| shorten_message(message, most_of(message)) | did)
    }

    /// Takes away what has no room. What was answered stays, or it would be new twice.
    fn take_overflow(&mut self, most_tokens: usize) -> Vec<TeamMessage> {
        let mut pile = TeamMessageBatch::new(&self.answered, most_tokens);
        let (kept, surplus) =
            std::mem::take(&mut self.messages).into_iter().partition(|message| pile.try_take(message));
        self.messages = kept;
        surplus
    }
}

/// Its words as they are shown, escaped, with what stands around them.
fn shorten_message(message: &mut TeamMessage, most_tokens: usize) -> bool {
    let whole = message_tokens(message);
    if whole <= most_tokens {
        return false;
    }
    let bare = TeamMessage {
        content: String::new(),
        reason: message.reason.as_ref().map(|_| String::new()),
        ..message.clone()
    };
    let around = message_tokens(&bare);
    let (words, room) = (whole.saturating_sub(around).max(1), most_tokens.saturating_sub(around));
    let cut = |text: &mut String| shorten_text(text, estimate_text_tokens(text) * room / words);
    cut(&mut message.content) | message.reason.as_mut().is_some_and(cut)
}

/// What of these lies before a turn that has so much room; whatever the turn shows already does, also where an earlier life
/// of it had more room: what it is not shown any more would count as read.
pub(super) fn fit_messages(
    messages: Vec<TeamMessage>,
    answered: &HashSet<TeamMessageId>,
    most_tokens: usize,
) -> Vec<TeamMessage> {
    let mut pile = TeamMessageBatch::new(answered, most_tokens);
    messages.into_iter().filter(|message| pile.try_take(message) || message.turn.is_some()).collect()
}

/// New letters of one prompt as they are laid on each other: the first always, and others until there is no room. Whatever
/// comes after one that has none waits with it, so that order is kept.
struct TeamMessageBatch<'a> {
    answered: &'a HashSet<TeamMessageId>,
    left: usize,
    has_any: bool,
}

impl<'a> TeamMessageBatch<'a> {
    fn new(answered: &'a HashSet<TeamMessageId>, most_tokens: usize) -> Self {
        Self { answered, left: most_tokens, has_any: false }
    }

    fn try_take(&mut self, message: &TeamMessage) -> bool {
        if self.answered.contains(&message.id) {
            return true;
        }
        let left = self.left.checked_sub(message_tokens(message));
        let takes = left.is_some() || !self.has_any;
        (self.left, self.has_any) = (left.unwrap_or(0), true);
        takes
    }
}

fn message_tokens(message: &TeamMessage) -> usize {
    estimate_text_tokens(&team_message::render_element(message))
}

impl TurnContext {
    /// Mail that no model has answered yet, and that has no room, waits for the next turn. `false`: there is none.
    pub async fn return_unread_mail(&mut self, engine: &Engine, claim: &TurnClaim) -> TurnResult<bool> {
        let surplus = self.team_prompt.take_overflow(self.mail_token_budget(engine));
        if surplus.is_empty() {
            return Ok(false);
        }
        tracing::info!(
            messages = surplus.len(),
            "mail that has no room in this prompt waits for the next turn"
        );
        let owned = claim.clone();
        let write = move |tx: &mut Tx<'_>| {
            sessions::lock(tx, &owned.session)?;
            let hold = check_claim(tx, &owned)?;
            let teams: BTreeSet<_> = surplus.iter().map(|message| &message.team).collect();
            teams.into_iter().try_for_each(|team| teams::lock_team(tx, team).map(drop))?;
            surplus.iter().try_for_each(|message| team_messages::requeue(tx, &message.id, &owned.turn))?;
            Ok(hold)
        };
        abort_if_stopping(engine.write_with_retry(write).await?)?;
        Ok(true)
    }
}

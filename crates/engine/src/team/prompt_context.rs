//! What a turn's prompt shows of a team, and how many tokens of it team messages may use.

use std::collections::{BTreeSet, HashSet};

use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::prompt::{estimate_text_tokens, shorten_text};
use polyclaw_domain::team_message::{self, TeamMessage};
use polyclaw_store::jobs::TurnClaim;
use polyclaw_store::{Tx, sessions, team_messages, teams};

use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::turn::{TurnResult, abort_if_stopping, check_claim};

/// Enough tokens to tell what a message was about.
const MIN_MESSAGE_TOKENS: usize = 100;

#[derive(Default)]
pub(crate) struct TeamPromptContext {
    /// One block for each team.
    pub state: Vec<String>,
    pub messages: Vec<TeamMessage>,
    pub is_loaded: bool,
    /// Messages that were in a prompt the model has answered.
    pub answered: HashSet<TeamMessageId>,
}

impl TeamPromptContext {
    /// Returns the messages as one text, or `None` if there are none.
    pub fn mail_text(&self) -> Option<String> {
        let shown: Vec<String> = self.messages.iter().map(team_message::render_element).collect();
        (!shown.is_empty()).then(|| shown.join("\n"))
    }

    /// Returns the prompt tokens that messages use.
    pub fn mail_tokens(&self) -> usize {
        self.messages.iter().map(message_tokens).sum()
    }

    pub fn mark_answered(&mut self) {
        self.answered.extend(self.messages.iter().map(|message| message.id.clone()));
    }

    pub fn contains_all(&self, messages: &[TeamMessage]) -> bool {
        messages.iter().all(|message| self.messages.iter().any(|shown| shown.id == message.id))
    }

    /// Shortens each new message to half of `room`, and all answered ones together to an eighth, or more if they need
    /// it to stay distinguishable. Returns whether anything was cut.
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

    /// Removes and returns messages that do not fit. Answered messages stay, or they would be shown as new again.
    fn take_overflow(&mut self, most_tokens: usize) -> Vec<TeamMessage> {
        let mut pile = TeamMessageBatch::new(&self.answered, most_tokens);
        let (kept, surplus) =
            std::mem::take(&mut self.messages).into_iter().partition(|message| pile.try_take(message));
        self.messages = kept;
        surplus
    }
}

/// Shortens a message so that its rendered form fits, including escapes and the surrounding element.
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

/// Returns the messages that fit into a turn's prompt. Messages already marked for this turn stay, even if an earlier
/// attempt had more room: a message that is marked but not shown would count as read.
pub(super) fn fit_messages(
    messages: Vec<TeamMessage>,
    answered: &HashSet<TeamMessageId>,
    most_tokens: usize,
) -> Vec<TeamMessage> {
    let mut pile = TeamMessageBatch::new(answered, most_tokens);
    messages.into_iter().filter(|message| pile.try_take(message) || message.turn.is_some()).collect()
}

/// Collects the new messages of one prompt: always the first, then others while they fit. All messages after the first
/// that does not fit wait too, so that their order is kept.
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
    /// Returns unanswered messages that do not fit to the mailbox for the next turn. `false` if there are none.
    pub async fn return_unread_mail(&mut self, engine: &Engine, claim: &TurnClaim) -> TurnResult<bool> {
        let surplus = self.team_prompt.take_overflow(self.mail_token_budget(engine));
        if surplus.is_empty() {
            return Ok(false);
        }
        tracing::info!(
            messages = surplus.len(),
            "team messages exceed this prompt; delivering the rest in the next turn"
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

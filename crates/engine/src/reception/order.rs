//! Commands that come by a channel. They act on the session the conversation has; where several agents answer, on
//! the session of each.

use polyclaw_domain::channel::Letter;
use polyclaw_domain::command::parse;
use polyclaw_domain::id::{ApprovalId, SessionId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::session::Session;
use polyclaw_store::{approvals, sessions};

use super::route::{Place, Target, group};
use crate::command::{Given, Order, answerer};
use crate::core::Engine;
use crate::error::Result;

/// Commands that set something a session keeps: it is made for them.
const SETTING: [&str; 5] = ["agent", "model", "session", "focus", "subagents"];
/// Commands about the conversation itself, wherever it goes on.
const OF_PLACE: [&str; 4] = ["focus", "unfocus", "session", "subagents"];
const ANSWERS: [&str; 2] = ["approve", "deny"];

impl Engine {
    /// What is said to a command; `None` if the letter is a message.
    pub(super) async fn ordered(&self, letter: &Letter, place: &Place) -> Result<Option<String>> {
        let Some((command, rest)) = parse(&letter.text) else { return Ok(None) };
        let settings = self.settings();
        let speaker = settings.reception.speaker(&letter.arrival);
        let given = Given { address: &letter.address, platform_id: Some(&letter.platform_id) };
        let by = answerer(speaker, &letter.address);
        let order = Order { command, rest, speaker, by, place: Some(given) };
        tracing::info!(command = command.name, session.key = %place.key, ?speaker, "a command came");
        if SETTING.contains(&command.name) && speaker.may(command.reach_with(rest)) {
            self.make_room(letter, place).await?;
        }
        let said = match group(&settings.reception, &letter.arrival) {
            Some(targets) if !command.is_general => self.all_answered(targets, &order).await?,
            _ => self.answered(&concerned(place, command.name), &order).await?,
        };
        Ok(Some(said))
    }

    /// The session of a conversation in which nothing was said yet.
    async fn make_room(&self, letter: &Letter, place: &Place) -> Result<()> {
        let id = SessionId::new(self.next_id());
        let begun = Session::begun(place.key.clone(), id, place.agent.clone(), self.now());
        let session = Session { address: Some(letter.address.clone()), ..begun };
        self.db().write(move |tx| sessions::ensure(tx, &session)).await?;
        Ok(())
    }

    async fn all_answered(&self, mut targets: Vec<Target>, order: &Order<'_>) -> Result<String> {
        if ANSWERS.contains(&order.command.name) {
            let asked = self.asked_in(order.rest).await?;
            targets.retain(|target| asked.as_ref().is_none_or(|session| *session == target.session));
            targets.truncate(1);
        }
        let mut said = Vec::new();
        for target in &targets {
            said.push(format!("{}: {}", target.agent, self.answered(&target.session, order).await?));
        }
        Ok(if said.is_empty() { "This was not asked here.".to_owned() } else { said.join("\n") })
    }

    /// The session in which a question was asked.
    async fn asked_in(&self, rest: &str) -> Result<Option<SessionKey>> {
        let id = ApprovalId::new(rest.split_whitespace().next().unwrap_or_default());
        let asked = self.db().read(move |tx| approvals::get(tx, &id)).await?;
        Ok(asked.map(|asked| asked.session))
    }
}

fn concerned(place: &Place, command: &str) -> SessionKey {
    let focus = place.session.as_ref().and_then(|session| session.focus.clone());
    focus.filter(|_| !OF_PLACE.contains(&command)).unwrap_or_else(|| place.key.clone())
}

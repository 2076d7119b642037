//! Commands that come by a channel. They act on the session the conversation has; where several agents answer, on
//! the session of each.

use polyclaw_domain::channel::Letter;
use polyclaw_domain::command::{Reach, parse};
use polyclaw_domain::id::{ApprovalId, SessionId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::session::Session;
use polyclaw_store::{approvals, sessions};

use super::route::{Place, Target, group};
use crate::command::{Given, Order, answerer};
use crate::core::Engine;
use crate::deed::{Deed, Done, say};
use crate::error::Result;

/// Commands that set something a session keeps: it is made for them.
const SETTING: [&str; 5] = ["agent", "model", "session", "focus", "subagents"];
/// Commands about the conversation itself, wherever it goes on.
const OF_PLACE: [&str; 4] = ["focus", "unfocus", "session", "subagents"];
const ANSWERS: [&str; 2] = ["approve", "deny"];

impl Engine {
    /// What a command comes to; `None` if the letter is a message.
    pub(super) async fn ordered(&self, letter: &Letter, place: &Place) -> Result<Option<Deed>> {
        let Some((command, rest)) = parse(&letter.text) else { return Ok(None) };
        let settings = self.settings();
        let speaker = settings.reception.speaker(&letter.arrival);
        let given = Given { address: &letter.address, platform_id: Some(&letter.platform_id) };
        let by = answerer(speaker, &letter.address);
        let order = Order { command, rest, speaker, by, place: Some(given) };
        tracing::info!(command = command.name, session.key = %place.key, ?speaker, "a command came");
        let deed = match group(&settings.reception, &letter.arrival) {
            Some(targets) if !command.is_general => self.all_answered(targets, &order).await?,
            _ => self.answered(&concerned(place, command.name), &order).await?,
        };
        let reach = command.reach_with(rest);
        let is_setting = SETTING.contains(&command.name) && reach != Reach::Anyone && speaker.may(reach);
        Ok(Some(if is_setting { self.with_room(letter, place, deed) } else { deed }))
    }

    /// A deed in a conversation in which nothing was said yet: its session is made for it.
    fn with_room(&self, letter: &Letter, place: &Place, deed: Deed) -> Deed {
        let id = SessionId::new(self.next_id());
        let begun = Session::begun(place.key.clone(), id, place.agent.clone(), self.now());
        let session = Session { address: Some(letter.address.clone()), ..begun };
        Box::new(move |tx| {
            sessions::ensure(tx, &session)?;
            deed(tx)
        })
    }

    /// The deeds of all agents that answer here, as one.
    async fn all_answered(&self, mut targets: Vec<Target>, order: &Order<'_>) -> Result<Deed> {
        if ANSWERS.contains(&order.command.name) {
            let asked = self.asked_in(order.rest).await?;
            targets.retain(|target| asked.as_ref().is_none_or(|session| *session == target.session));
            targets.truncate(1);
        }
        let mut deeds = Vec::new();
        for target in targets {
            deeds.push((self.answered(&target.session, order).await?, target.agent));
        }
        if deeds.is_empty() {
            return Ok(say("This was not asked here."));
        }
        Ok(Box::new(move |tx| {
            let (mut lines, mut after) = (Vec::new(), Vec::new());
            for (deed, agent) in &deeds {
                let done = deed(tx)?;
                lines.push(format!("{agent}: {}", done.sentence()));
                after.extend(done.after);
            }
            Ok(Done { said: Ok(lines.join("\n")), after })
        }))
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

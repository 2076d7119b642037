//! Commands that come by a channel. They act on the sessions they concern; where these are several, on each.

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::command::{CallerRole, ChatCommand, RequiredRole, parse};
use polyclaw_domain::id::SessionId;
use polyclaw_domain::session::Session;
use polyclaw_store::approvals::StoredApproval;
use polyclaw_store::sessions;

use super::concern::own;
use super::refusal;
use super::route::{Place, Target, group};
use crate::command::{Given, Order, answerer};
use crate::core::Engine;
use crate::deed::{Deed, Done, say};
use crate::error::Result;

/// Commands that set something a session keeps: it is made for them.
const SETTING: [&str; 5] = ["agent", "model", "session", "focus", "subagents"];
const ANSWERS: [&str; 2] = ["approve", "deny"];

impl Engine {
    /// What a command comes to; `None` if the letter is a message.
    pub(super) async fn ordered(&self, letter: &InboundMessage, place: &Place) -> Result<Option<Deed>> {
        if let Some(line) = parse(&letter.text) {
            let order = self.order(letter, place, line);
            let concerned = self.concerned(letter, place, &order).await?;
            return self.obeyed(letter, place, (concerned, &order)).await.map(Some);
        }
        let Some((named, line)) = self.named_command(letter, place).await? else { return Ok(None) };
        let order = self.order(letter, place, line);
        if !self.may_reach(&order.reachable, &named.agent).await? {
            return Ok(Some(say(refusal(&named.agent))));
        }
        let concerned = vec![Target::new(named.key.clone(), named.agent.clone())];
        self.obeyed(letter, &named, (concerned, &order)).await.map(Some)
    }

    fn order<'a>(
        &self,
        letter: &'a InboundMessage,
        place: &Place,
        (command, rest): (&'static ChatCommand, &'a str),
    ) -> Order<'a> {
        let speaker = self.settings().reception.speaker(&letter.context);
        let given = Given { address: &letter.address, platform_id: Some(&letter.platform_id) };
        let by = answerer(speaker, &letter.address);
        let reachable = self.reachable(letter, place);
        let authority = self.settings().reception.authority(&letter.context);
        Order { command, rest, speaker, by, place: Some(given), reachable, authority }
    }

    /// The sessions a command without a name in front concerns.
    async fn concerned(
        &self,
        letter: &InboundMessage,
        place: &Place,
        order: &Order<'_>,
    ) -> Result<Vec<Target>> {
        let name = order.command.name;
        let here = Target::new(own(place, name), place.agent.clone());
        if order.command.is_general {
            return Ok(vec![here]);
        }
        let several = group(&self.settings().reception, &letter.context);
        if ANSWERS.contains(&name) {
            let asked = self.asked(order.rest).await?;
            return Ok(asking(order, asked, (here, several)));
        }
        let is_begun = several.is_some() || place.session.is_some();
        let mut targets = several.unwrap_or_else(|| vec![here]);
        let own: Vec<_> = targets.iter().map(|target| target.session.clone()).collect();
        // Who is focused on another session begins that one anew, and nothing else.
        let is_focused = place.session.as_ref().is_some_and(|session| session.focus.is_some());
        let beside = match name == "new" && is_focused {
            true => Vec::new(),
            false => self.beside(name, letter, &own).await?,
        };
        if !is_begun && !beside.is_empty() {
            // Nothing was said in the session the conversation would have: there is nothing to tell of it.
            targets.clear();
        }
        targets.extend(beside);
        Ok(targets)
    }

    /// The deeds on all sessions a command concerns, as one.
    async fn obeyed(
        &self,
        letter: &InboundMessage,
        place: &Place,
        (concerned, order): (Vec<Target>, &Order<'_>),
    ) -> Result<Deed> {
        let (command, speaker) = (order.command, order.speaker);
        tracing::info!(command = command.name, session.key = %place.key, ?speaker, "a command came");
        let mut deeds = Vec::new();
        for target in concerned {
            deeds.push((self.answered(&target.session, order).await?, target));
        }
        let deed = joined(deeds);
        let reach = command.required_role_for(order.rest);
        let is_setting =
            SETTING.contains(&command.name) && reach != RequiredRole::Anyone && speaker.may_run(reach);
        Ok(if is_setting { self.with_room(letter, place, deed) } else { deed })
    }

    /// A deed in a conversation in which nothing was said yet: its session is made for it.
    fn with_room(&self, letter: &InboundMessage, place: &Place, deed: Deed) -> Deed {
        let id = SessionId::new(self.next_id());
        let begun = Session::new_for_person(place.key.clone(), id, place.agent.clone(), self.now());
        let session = Session { address: Some(letter.address.clone()), ..begun };
        Box::new(move |tx| {
            sessions::ensure(tx, &session)?;
            deed(tx)
        })
    }
}

/// The session whose question is answered: the one that sent it to this very address, whichever agent's it is. What is
/// asked of owners they answer wherever they are. Of any other question it is one of the conversation's own sessions, and
/// the answer is judged there.
fn asking(
    order: &Order<'_>,
    asked: Option<StoredApproval>,
    own: (Target, Option<Vec<Target>>),
) -> Vec<Target> {
    let (here, several) = own;
    let mut targets = several.unwrap_or_else(|| vec![here.clone()]);
    if let Some(asked) = asked {
        let is_here = match &asked.origin {
            Some(origin) => order.place.is_some_and(|place| place.address == origin),
            None => order.speaker == CallerRole::Owner,
        };
        if is_here {
            let agent = asked.session.agent_id().unwrap_or(here.agent);
            return vec![Target::new(asked.session, agent)];
        }
        if targets.len() > 1 {
            targets.retain(|target| target.session == asked.session);
        }
    }
    targets.truncate(1);
    targets
}

/// One deed as it is; of several, each is told under the name of its agent.
fn joined(mut deeds: Vec<(Deed, Target)>) -> Deed {
    match deeds.len() {
        0 => say("This was not asked here."),
        1 => deeds.remove(0).0,
        _ => Box::new(move |tx| {
            let (mut lines, mut after) = (Vec::new(), Vec::new());
            for (deed, target) in &deeds {
                let done = deed(tx)?;
                lines.push(format!("{}: {}", target.agent, done.sentence()));
                after.extend(done.after);
            }
            Ok(Done { said: Ok(lines.join("\n")), after })
        }),
    }
}

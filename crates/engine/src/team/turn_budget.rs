//! The number of turns a team may have without input from a person. When it is used up, the team waits and people are
//! notified.

use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::{TeamMessageId, TurnId};
use polyclaw_domain::locale::Locale;
use polyclaw_domain::team::{LEAD_NAME, RUNTIME_NAME, Team};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_store::outbox::{self, OutboxMessage};
use polyclaw_store::{Tx, events, ingress, sessions, team_messages, teams};
use serde::Serialize;
use serde_json::json;

use super::team_event;
use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::reply_text;

/// How many turns a team has had since a person last wrote to its lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnBudget {
    pub used: u32,
    pub limit: u32,
    /// A turn of the team waits for a person.
    pub is_waiting: bool,
}

impl TurnBudget {
    pub fn is_spent(self) -> bool {
        self.used >= self.limit
    }
}

pub(super) fn load_turn_budget(
    tx: &mut Tx<'_>,
    team: &Team,
    limit: u32,
) -> polyclaw_store::Result<TurnBudget> {
    let used = ingress::get_automatic_turns(tx, &team.trace)?;
    Ok(TurnBudget { used, limit, is_waiting: teams::find_waiting_turn(tx, team)?.is_some() })
}

impl Engine {
    /// Notifies the lead and its people, once per budget, that the team waits for them.
    pub(super) async fn notify_budget_spent(&self, team: &Team) -> Result<()> {
        let (wanted, limit) = (team.clone(), self.settings().teams.automatic_turns);
        let id = TeamMessageId::new(format!("{}-spent-{}", team.id, team.trace));
        let known = id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let is_known = team_messages::get(tx, &known)?.is_some();
            let budget = load_turn_budget(tx, &wanted, limit)?;
            Ok((!is_known && budget.is_spent()).then_some(teams::find_waiting_turn(tx, &wanted)?).flatten())
        };
        let Some(turn) = self.db().read(read).await? else { return Ok(()) };
        let text_in = |locale| reply_text::notice::team_budget_spent(locale, &team.name, limit);
        // Agents read English.
        let content = text_in(Locale::English);
        let message = self.new_team_message(team, RUNTIME_NAME, LEAD_NAME, TeamMessageKind::Task, content);
        let message = TeamMessage { id, ..message };
        let text = text_in(self.session_locale(&team.lead).await);
        let (engine, wanted, about, reply) = (self.clone(), team.clone(), turn.clone(), text.clone());
        let write = move |tx: &mut Tx<'_>| {
            if !team_messages::insert_once(tx, &message)? {
                return Ok(false);
            }
            let data = json!({ "team": wanted.name, "change": "turn_budget_spent", "limit": limit });
            events::record(tx, &team_event(EventKind::TeamChanged, &wanted, data), engine.now())?;
            send_to_people(tx, &engine, (&wanted, &about), &reply)?;
            Ok(true)
        };
        if self.write_with_retry(write).await? {
            let change = json!({ "team": team.name, "change": "turn_budget_spent", "limit": limit });
            self.hub.publish(&team.lead, FrameKind::Notice { turn_id: turn, text });
            self.hub.publish(&team.lead, FrameKind::Team { change });
            self.outbox_wake.notify_one();
        }
        Ok(())
    }
}

fn send_to_people(
    tx: &mut Tx<'_>,
    engine: &Engine,
    (team, turn): (&Team, &TurnId),
    text: &str,
) -> polyclaw_store::Result<()> {
    let Some(lead) = sessions::get(tx, &team.lead)? else { return Ok(()) };
    let policy =
        DeliveryPolicy { requested: true, session_delivers: lead.delivers, session_sends: lead.sends };
    for (n, address) in team.reply_to.iter().filter(|address| !address.is_pull_channel()).enumerate() {
        if let Ok(outgoing) = apply_gate(Some(address.clone()), policy, text.to_owned()) {
            let times = (engine.now(), engine.settings().delivery_ttl_ms);
            outbox::push(tx, &OutboxMessage::new_notice((&team.lead, turn), n, &outgoing, times))?;
        }
    }
    Ok(())
}

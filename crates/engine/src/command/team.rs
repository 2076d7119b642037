//! `/team`: what teams are doing, in a chat.

use polyclaw_domain::key::SessionKey;
use polyclaw_domain::mail::LetterKind;
use polyclaw_domain::team::{EVERYBODY, MemberState, TeamStatus};
use polyclaw_store::{Tx, teams};

use crate::core::Engine;
use crate::error::Result;
use crate::team::{Actor, MemberPlan, Outgoing};

impl Engine {
    /// One team whole, or a line for each; or a message to somebody in one.
    pub(super) async fn team_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        let operator = Actor::Operator { call: self.next_id() };
        if let Some(message) = rest.strip_prefix("send ") {
            return self.team_send(session, &operator, message.trim()).await;
        }
        if let Some(plan) = rest.strip_prefix("plan ") {
            return self.team_plan(session, &operator, plan.trim()).await;
        }
        let name = rest;
        if !name.is_empty() {
            return Ok(self.team_view(&operator, name).await?.for_people());
        }
        let mut lines = Vec::new();
        for team in self.teams(false).await? {
            let view = self.team_view(&operator, &team.name).await?;
            let working = view.members.iter().filter(|standing| standing.is_working).count();
            lines.push(format!(
                "{} ({}): {} member(s), {working} at work; {}{}",
                team.name,
                team.status.as_str(),
                view.members.len(),
                view.counts.line(),
                view.turns.line().map(|line| format!("; {line}")).unwrap_or_default()
            ));
        }
        Ok(if lines.is_empty() { "There is no team.".to_owned() } else { lines.join("\n") })
    }

    /// `[team] <member> <text>`: the team may be left out where this session leads one.
    async fn team_send(&self, session: &SessionKey, operator: &Actor, rest: &str) -> Result<String> {
        const USAGE: &str = "Say to whom: /team send [team] <member, lead or all> <text>.";
        let mut words = rest.splitn(3, ' ');
        let (Some(first), Some(second)) = (words.next(), words.next()) else { return Ok(USAGE.to_owned()) };
        let named = self.teams(false).await?.into_iter().any(|team| team.name == first);
        let own = self.led_team(session).await?;
        let (team, to, text) = match (named, own) {
            (true, _) => (first.to_owned(), second, words.next().unwrap_or_default().to_owned()),
            (false, Some(own)) => (own, first, rest[first.len()..].trim().to_owned()),
            (false, None) => return Ok(USAGE.to_owned()),
        };
        let is_broadcast = to == EVERYBODY;
        let outgoing = Outgoing {
            kind: if is_broadcast { LetterKind::Broadcast } else { LetterKind::Message },
            to: (!is_broadcast).then(|| to.to_owned()),
            content: text,
            summary: None,
            request_id: None,
            approve: None,
            reason: None,
        };
        let sent = self.send_letter(operator, &team, outgoing).await?;
        Ok(format!("Sent to {}.", sent.recipients.join(", ")))
    }

    /// `[team] <member>` shows a plan; `approve` or `reject` with a text answers it.
    async fn team_plan(&self, session: &SessionKey, operator: &Actor, rest: &str) -> Result<String> {
        const USAGE: &str = "Say whose: /team plan [team] <member> [approve | reject <what to change>].";
        let first = rest.split(' ').next().unwrap_or_default();
        let named = self.teams(false).await?.into_iter().any(|team| team.name == first);
        let (team, rest) = match (named, self.led_team(session).await?) {
            (true, _) => (first.to_owned(), rest[first.len()..].trim()),
            (false, Some(own)) => (own, rest),
            (false, None) => return Ok(USAGE.to_owned()),
        };
        let mut words = rest.splitn(3, ' ');
        let Some(member) = words.next().filter(|member| !member.is_empty()) else {
            return Ok(USAGE.to_owned());
        };
        let approve = match words.next() {
            None => {
                let plan = self.member_plan(operator, &team, member).await?;
                return Ok(plan_text(member, plan));
            }
            Some("approve") => true,
            Some("reject") => false,
            Some(_) => return Ok(USAGE.to_owned()),
        };
        let outgoing = Outgoing {
            kind: LetterKind::PlanApprovalResponse,
            to: Some(member.to_owned()),
            content: words.next().unwrap_or_default().to_owned(),
            summary: None,
            request_id: None,
            approve: Some(approve),
            reason: None,
        };
        self.send_letter(operator, &team, outgoing).await?;
        Ok(match approve {
            true => format!("{member} may begin."),
            false => format!("{member} is asked for another plan."),
        })
    }

    /// The newest team that a session leads.
    async fn led_team(&self, session: &SessionKey) -> Result<Option<String>> {
        let lead = session.clone();
        let led = self.db().read(move |tx| teams::led_by(tx, &lead)).await?;
        let open = led.into_iter().rfind(|team| team.status != TeamStatus::Shutdown);
        Ok(open.map(|team| team.name))
    }

    /// The session of a member of a team that a session leads.
    pub(super) async fn member_session(&self, lead: &SessionKey, name: &str) -> Result<Option<SessionKey>> {
        let (lead, name) = (lead.clone(), name.to_owned());
        let read = move |tx: &mut Tx<'_>| {
            for team in teams::led_by(tx, &lead)?.iter().filter(|team| team.status != TeamStatus::Shutdown) {
                let member = teams::member(tx, &team.id, &name)?;
                if let Some(member) = member.filter(|member| member.state == MemberState::Active) {
                    return Ok(Some(member.session));
                }
            }
            Ok(None)
        };
        Ok(self.db().read(read).await?)
    }
}

fn plan_text(member: &str, plan: Option<MemberPlan>) -> String {
    match plan {
        Some(MemberPlan { content: Some(content), .. }) => {
            format!("{content}\n\nAnswer with /team plan {member} approve, or reject and what to change.")
        }
        Some(_) => format!("{member} has not sent a plan yet. Until one is approved it can only read."),
        None => format!("{member} needs no approval."),
    }
}

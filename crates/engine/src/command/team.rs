//! `/team`: shows teams and writes to their members from a chat.

use polyclaw_domain::sanitize;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{EVERYBODY_NAME, MemberState, PlanApproval, TeamMember, TeamRefusal, TeamStatus};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_store::{Tx, teams};

use super::count_with_unit;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::team::{MemberPlan, OutgoingTeamMessage, TeamActor, TeamSnapshot};

impl Engine {
    /// Shows one team in full or a line for each, or sends a message to a member.
    pub(super) async fn team_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        match self.team_answer(session, rest).await {
            Err(Error::Team(TeamRefusal::Unknown(name))) => {
                Ok(format!("There is no team '{name}'. /team lists the teams."))
            }
            Err(Error::Team(TeamRefusal::NotAMember(name))) => {
                Ok(format!("'{name}' is not a member of that team. /team <team> lists its members."))
            }
            answer => answer,
        }
    }

    async fn team_answer(&self, session: &SessionKey, rest: &str) -> Result<String> {
        let operator = TeamActor::Operator { call: self.next_id() };
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("send", message) => return self.team_send(session, &operator, message.trim()).await,
            ("plan", plan) => return self.team_plan(session, &operator, plan.trim()).await,
            _ => {}
        }
        let name = rest;
        if !name.is_empty() {
            return Ok(self.team_snapshot(&operator, name).await?.to_text());
        }
        let mut lines = Vec::new();
        for team in self.list_teams(false).await? {
            let view = self.team_snapshot(&operator, &team.name).await?;
            lines.push(team_line(&view));
        }
        Ok(if lines.is_empty() { "There is no team.".to_owned() } else { lines.join("\n") })
    }

    /// `[team] <member> <text>`: the team is optional if this session leads one.
    async fn team_send(&self, session: &SessionKey, operator: &TeamActor, rest: &str) -> Result<String> {
        const TEAM_SEND_USAGE: &str = "Say to whom: /team send [team] <member, lead or all> <text>.";
        let (team, line) = match self.addressed_team(session, rest).await? {
            Addressed::Team { name, line } => (name, line),
            Addressed::Ambiguous(words) => return Ok(words),
            Addressed::Nobody => return Ok(TEAM_SEND_USAGE.to_owned()),
        };
        let Some((to, text)) = line.split_once(' ') else { return Ok(TEAM_SEND_USAGE.to_owned()) };
        let is_broadcast = to == EVERYBODY_NAME;
        let outgoing = OutgoingTeamMessage {
            kind: if is_broadcast { TeamMessageKind::Broadcast } else { TeamMessageKind::Message },
            to: (!is_broadcast).then(|| to.to_owned()),
            content: text.trim().to_owned(),
            summary: None,
            request_id: None,
            approve: None,
            reason: None,
        };
        let sent = self.send_team_message(operator, &team, outgoing).await?;
        Ok(format!("Sent to {}.", sent.recipients.join(", ")))
    }

    /// `[team] <member>` shows a plan; `approve` or `reject` with a text decides on it.
    async fn team_plan(&self, session: &SessionKey, operator: &TeamActor, rest: &str) -> Result<String> {
        const TEAM_PLAN_USAGE: &str =
            "Say whose: /team plan [team] <member> [approve | reject <what to change>].";
        let (team, line) = match self.addressed_team(session, rest).await? {
            Addressed::Team { name, line } => (name, line),
            Addressed::Ambiguous(words) => return Ok(words),
            Addressed::Nobody => return Ok(TEAM_PLAN_USAGE.to_owned()),
        };
        let mut words = line.splitn(3, ' ');
        let Some(member) = words.next().filter(|member| !member.is_empty()) else {
            return Ok(TEAM_PLAN_USAGE.to_owned());
        };
        let approve = match words.next() {
            None => {
                let plan = self.member_plan(operator, &team, member).await?;
                return Ok(plan_text((&team, member), plan));
            }
            Some("approve") => true,
            Some("reject") => false,
            Some(_) => return Ok(TEAM_PLAN_USAGE.to_owned()),
        };
        let outgoing = OutgoingTeamMessage {
            kind: TeamMessageKind::PlanApprovalResponse,
            to: Some(member.to_owned()),
            content: words.next().unwrap_or_default().to_owned(),
            summary: None,
            request_id: None,
            approve: Some(approve),
            reason: None,
        };
        self.send_team_message(operator, &team, outgoing).await?;
        Ok(match approve {
            true => format!("{member} may begin."),
            false => format!("{member} is asked for another plan."),
        })
    }

    /// Finds the team that a line addresses: the one named first, or a team led by this session that has the named
    /// member.
    async fn addressed_team<'a>(&self, session: &SessionKey, line: &'a str) -> Result<Addressed<'a>> {
        let first = line.split(' ').next().unwrap_or_default();
        if first.is_empty() {
            return Ok(Addressed::Nobody);
        }
        if self.list_teams(false).await?.iter().any(|team| team.name == first) {
            return Ok(Addressed::Team { name: first.to_owned(), line: line[first.len()..].trim() });
        }
        let (lead, wanted) = (session.clone(), first.to_owned());
        let teams = self.db().read(move |tx| teams_with(tx, &lead, &wanted)).await?;
        Ok(match teams.as_slice() {
            [] => Addressed::Nobody,
            [name] => Addressed::Team { name: name.clone(), line },
            _ => Addressed::Ambiguous(format!(
                "You lead several teams: {}. Say which one, before '{first}'.",
                teams.join(", ")
            )),
        })
    }

    /// The session of an active member of a team that this session leads.
    pub(super) async fn member_session(&self, lead: &SessionKey, name: &str) -> Result<Option<SessionKey>> {
        let (lead, name) = (lead.clone(), name.to_owned());
        let read = move |tx: &mut Tx<'_>| {
            let mut found = Vec::new();
            for team in teams::list_led_by(tx, &lead)? {
                if team.status == TeamStatus::Shutdown {
                    continue;
                }
                let member = teams::get_member(tx, &team.id, &name)?;
                let active = member.filter(|member| member.state == MemberState::Active);
                found.extend(active.map(|member| (team.name, member.session)));
            }
            Ok(found)
        };
        let mut found = self.db().read(read).await?;
        if found.len() > 1 {
            let lines = found.iter().map(|(team, key)| format!("{key} (team {team})"));
            let which = lines.collect::<Vec<_>>().join(", ");
            return Err(Error::InvalidState(format!(
                "several of your teams have a member of this name: give the session key of the one you mean, {which}"
            )));
        }
        Ok(found.pop().map(|(_, session)| session))
    }
}

/// Summary line of a team.
fn team_line(view: &TeamSnapshot) -> String {
    let working = view.members.iter().filter(|status| status.is_working).count();
    let is_waiting = |member: &TeamMember| {
        member.state == MemberState::Active && matches!(member.plan, Some(PlanApproval::Submitted { .. }))
    };
    let plans = match view.members.iter().filter(|status| is_waiting(&status.member)).count() {
        0 => String::new(),
        1 => "; 1 plan waits for approval".to_owned(),
        more => format!("; {more} plans wait for approval"),
    };
    let spent = match (view.turns.is_spent(), view.turns.is_waiting) {
        (false, _) => String::new(),
        (true, false) => format!("; all {} automatic turns are used", view.turns.limit),
        (true, true) => {
            format!("; all {} automatic turns are used: write to its lead, and it goes on", view.turns.limit)
        }
    };
    format!(
        "{} ({}): {}, {working} at work; {}{plans}{spent}",
        view.team.name,
        view.team.status.as_str(),
        count_with_unit(view.members.len(), "member"),
        view.counts.summary_line(),
    )
}

/// The addressee of a line after `/team send` or `/team plan`.
enum Addressed<'a> {
    /// The line names someone in this team.
    Team {
        name: String,
        line: &'a str,
    },
    /// Several teams match; holds the reply.
    Ambiguous(String),
    Nobody,
}

/// Teams led by a session that have an active member of this name. If there is none, all teams it leads: the name may
/// be `lead` or `all`, and a wrong name is reported by the team.
fn teams_with(tx: &mut Tx<'_>, lead: &SessionKey, name: &str) -> polyclaw_store::Result<Vec<String>> {
    let (mut led, mut with) = (Vec::new(), Vec::new());
    for team in teams::list_led_by(tx, lead)?.into_iter().filter(|team| team.status != TeamStatus::Shutdown) {
        let members = teams::list_members(tx, &team.id)?;
        let is_meant = |member: &TeamMember| member.name == name || member.session.as_str() == name;
        if members.iter().any(|member| member.state == MemberState::Active && is_meant(member)) {
            with.push(team.name.clone());
        }
        led.push(team.name);
    }
    Ok(if with.is_empty() { led } else { with })
}

fn plan_text((team, member): (&str, &str), plan: Option<MemberPlan>) -> String {
    match plan {
        Some(MemberPlan { content: Some(content), .. }) => {
            let content = sanitize::visible_controls(&content);
            format!(
                "{content}\n\nAnswer with /team plan {team} {member} approve, or reject and what to change."
            )
        }
        Some(_) => format!("{member} has not sent a plan yet. Until one is approved it can only read."),
        None => format!("{member} needs no approval."),
    }
}

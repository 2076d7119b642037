//! `/team`: shows teams and writes to their members from a chat.

use polyclaw_domain::locale::Locale;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{EVERYBODY_NAME, MemberState, TeamMember, TeamRefusal, TeamStatus};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_store::{Tx, teams};

use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::reply_text::team as texts;
use crate::team::{OutgoingTeamMessage, TeamActor};

impl Engine {
    /// Shows one team in full or a line for each, or sends a message to a member.
    pub(super) async fn team_command(
        &self,
        session: &SessionKey,
        rest: &str,
        locale: Locale,
    ) -> Result<String> {
        match self.team_answer(session, rest, locale).await {
            Err(Error::Team(TeamRefusal::Unknown(name))) => Ok(texts::unknown_team(locale, &name)),
            Err(Error::Team(TeamRefusal::NotAMember(name))) => Ok(texts::not_a_member(locale, &name)),
            answer => answer,
        }
    }

    async fn team_answer(&self, session: &SessionKey, rest: &str, locale: Locale) -> Result<String> {
        let operator = TeamActor::Operator { call: self.next_id() };
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("send", message) => {
                return self.team_send((session, locale), &operator, message.trim()).await;
            }
            ("plan", plan) => return self.team_plan((session, locale), &operator, plan.trim()).await,
            _ => {}
        }
        let name = rest;
        if !name.is_empty() {
            return Ok(self.team_snapshot(&operator, name).await?.to_text(locale));
        }
        let mut lines = Vec::new();
        for team in self.list_teams(false).await? {
            let view = self.team_snapshot(&operator, &team.name).await?;
            lines.push(texts::team_line(locale, &view));
        }
        Ok(if lines.is_empty() { texts::no_teams(locale) } else { lines.join("\n") })
    }

    /// `[team] <member> <text>`: the team is optional if this session leads one.
    async fn team_send(
        &self,
        (session, locale): (&SessionKey, Locale),
        operator: &TeamActor,
        rest: &str,
    ) -> Result<String> {
        let (team, line) = match self.addressed_team(session, rest).await? {
            Addressed::Team { name, line } => (name, line),
            Addressed::Ambiguous { teams, member } => {
                return Ok(texts::several_teams(locale, &teams, member));
            }
            Addressed::Nobody => return Ok(texts::send_usage(locale)),
        };
        let Some((to, text)) = line.split_once(' ') else { return Ok(texts::send_usage(locale)) };
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
        Ok(texts::message_sent(locale, &sent.recipients))
    }

    /// `[team] <member>` shows a plan; `approve` or `reject` with a text decides on it.
    async fn team_plan(
        &self,
        (session, locale): (&SessionKey, Locale),
        operator: &TeamActor,
        rest: &str,
    ) -> Result<String> {
        let (team, line) = match self.addressed_team(session, rest).await? {
            Addressed::Team { name, line } => (name, line),
            Addressed::Ambiguous { teams, member } => {
                return Ok(texts::several_teams(locale, &teams, member));
            }
            Addressed::Nobody => return Ok(texts::plan_usage(locale)),
        };
        let mut words = line.splitn(3, ' ');
        let Some(member) = words.next().filter(|member| !member.is_empty()) else {
            return Ok(texts::plan_usage(locale));
        };
        let approve = match words.next() {
            None => {
                let plan = self.member_plan(operator, &team, member).await?;
                return Ok(texts::plan_text(locale, (&team, member), plan.as_ref()));
            }
            Some("approve") => true,
            Some("reject") => false,
            Some(_) => return Ok(texts::plan_usage(locale)),
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
        Ok(texts::plan_decided(locale, member, approve))
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
            _ => Addressed::Ambiguous { teams, member: first },
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
            return Err(StateConflict::AmbiguousMember(found).into());
        }
        Ok(found.pop().map(|(_, session)| session))
    }
}

/// The addressee of a line after `/team send` or `/team plan`.
enum Addressed<'a> {
    /// The line names someone in this team.
    Team {
        name: String,
        line: &'a str,
    },
    /// This session leads several teams, and the line names only a member.
    Ambiguous {
        teams: Vec<String>,
        member: &'a str,
    },
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

//! What a turn of somebody in a team is shown beside its conversation: mail, and the state of the team. Both are in its
//! prompts only. The commit of the turn's end says that the mail was read.

use std::collections::HashSet;

use polyclaw_domain::id::LetterId;
use polyclaw_domain::job::{JobState, Lane};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::mail::Letter;
use polyclaw_domain::team::state::Reader;
use polyclaw_domain::team::{LEAD, MemberState, Team, TeamRole, TeamStatus};
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{Claim, End};
use polyclaw_store::{Tx, jobs, letters, sessions, teams};

use super::desk::fitting;
use super::keep::unless_ended;
use super::post::note_undeliverable;
use super::wake::wake;
use crate::core::Engine;
use crate::error::Result;
use crate::ingress::Fresh;
use crate::prompt::Context;
use crate::settings::Settings;
use crate::turn::{Driven, Halt, check_claim};

/// Letters that are looked at together: the rest come with the next turn.
const MOST: usize = 50;

/// In which teams, and under which name, a session gets mail.
type Names = Vec<(Team, String)>;

fn names(tx: &mut Tx<'_>, claim: &Claim) -> polyclaw_store::Result<Names> {
    let mut names: Names = Vec::new();
    for team in teams::led_by(tx, &claim.session)? {
        names.push((team, LEAD.to_owned()));
    }
    if let Some(member) = teams::member_of(tx, &claim.session)?.filter(|one| one.state != MemberState::Closed)
        && let Some(team) = teams::get(tx, &member.team)?
    {
        names.push((team, member.name));
    }
    Ok(names)
}

impl Context {
    /// Looks for mail before a model call, and at the team before the first.
    pub async fn look_at_team(&mut self, engine: &Engine, claim: &Claim) -> Driven<()> {
        let Some(role) = self.session.team_role else { return Ok(()) };
        let is_laid = std::mem::replace(&mut self.desk.is_laid, true);
        if !is_laid {
            self.lay(engine, claim, role).await.map_err(Halt::Lost)?;
            self.recall_answered(engine, claim).await.map_err(Halt::Lost)?;
        }
        let wanted = claim.clone();
        let due = engine.db().read(move |tx| due(tx, &wanted)).await.map_err(|e| Halt::Lost(e.into()))?;
        // Where no mail is, nobody counts how much room there is.
        if self.desk.holds(&due) {
            return Ok(());
        }
        let (owned, room, now) = (claim.clone(), self.mail_tokens(engine), engine.now());
        if !self.desk.holds(&fitting(due, &self.desk.answered, room)) {
            let answered = self.desk.answered.clone();
            let write = move |tx: &mut Tx<'_>| show_due(tx, &owned, (&answered, room), now);
            self.desk.letters = engine.persist(write).await.map_err(Halt::Lost)?;
        }
        Ok(())
    }

    /// What an earlier life of this turn had shown when it was answered.
    async fn recall_answered(&mut self, engine: &Engine, claim: &Claim) -> Result<()> {
        let Some(step) = self.last_step() else { return Ok(()) };
        let (turn, at) = (claim.turn.clone(), step.created_at);
        let shown = engine.db().read(move |tx| letters::shown_before(tx, &turn, at)).await?;
        self.desk.answered = shown.into_iter().collect();
        Ok(())
    }

    /// What was made in this turn is there for its next step.
    pub fn take_role(&mut self, engine: &Engine, role: TeamRole) {
        self.session.team_role = Some(role);
        self.scope.team_role = Some(role);
        self.look_for_tools(engine);
    }

    async fn lay(&mut self, engine: &Engine, claim: &Claim, role: TeamRole) -> Result<()> {
        if role == TeamRole::Lead && claim.has_person {
            let (lead, trace, now) = (claim.session.clone(), claim.trace.clone(), engine.now());
            let asked =
                self.addresses().into_iter().filter(|(_, wanted)| *wanted).map(|(address, _)| address);
            let reply_to: Vec<_> = asked.collect();
            let write = move |tx: &mut Tx<'_>| {
                teams::set_asked(tx, &lead, &trace, &reply_to)?;
                free_held(tx, &lead)?;
                teams::retry_led_by(tx, &lead, now).map(drop)
            };
            engine.db().write(write).await?;
            engine.lanes.wake(Lane::Teammate);
            engine.look_after_teams();
        }
        let wanted = claim.clone();
        for (team, name) in engine.db().read(move |tx| names(tx, &wanted)).await? {
            if team.status != TeamStatus::Shutdown {
                let reader = if name == LEAD { Reader::Lead } else { Reader::Member(&name) };
                let view = engine.view(team).await.map(Some).or_else(unless_ended)?;
                self.desk.state.extend(view.map(|view| view.block(reader)));
            }
        }
        Ok(())
    }
}

/// A person has spoken to the lead: members that had caused each other too many turns go on.
fn free_held(tx: &mut Tx<'_>, lead: &SessionKey) -> polyclaw_store::Result<()> {
    for team in teams::led_by(tx, lead)? {
        for member in teams::members(tx, &team.id)? {
            let load = jobs::load(tx, &member.session)?;
            if let Some(turn) = &load.queued {
                jobs::resume(tx, turn, load.running.is_some())?;
            }
        }
    }
    Ok(())
}

/// What this turn shows already, and what has come since.
fn due(tx: &mut Tx<'_>, claim: &Claim) -> polyclaw_store::Result<Vec<Letter>> {
    let mut due = Vec::new();
    for (team, name) in names(tx, claim)? {
        due.extend(letters::due(tx, &team.id, &name, &claim.turn, MOST)?);
    }
    Ok(due)
}

/// From here on the turn's prompts hold what is due. The teams' rows are taken first: a name that is given to another
/// session meanwhile takes its letters along, and then nothing is due here.
fn show_due(
    tx: &mut Tx<'_>,
    claim: &Claim,
    (answered, room): (&HashSet<LetterId>, usize),
    now: Millis,
) -> polyclaw_store::Result<Vec<Letter>> {
    sessions::lock(tx, &claim.session)?;
    check_claim(tx, claim)?;
    for (team, _) in names(tx, claim)? {
        teams::lock(tx, &team.id)?;
    }
    let due = fitting(due(tx, claim)?, answered, room);
    due.iter().try_for_each(|letter| letters::show(tx, &letter.id, &claim.turn, now))?;
    Ok(due)
}

/// What the end of a turn means to the teams of its session, in the transaction that ends it. Returns the lane in which
/// its next turn is ready, where mail has come that no prompt has held.
pub(crate) fn end_turn(
    tx: &mut Tx<'_>,
    (claim, end): (&Claim, &End),
    is_idle: bool,
    (fresh, settings): (&Fresh, &Settings),
) -> polyclaw_store::Result<Option<Lane>> {
    let ended_well = end.state == JobState::Done;
    for letter in letters::close(tx, &claim.turn, ended_well.then_some(fresh.now))? {
        if let Some(team) = teams::get(tx, &letter.team)? {
            note_undeliverable(tx, &team, std::slice::from_ref(&letter), fresh.now)?;
        }
    }
    let names = names(tx, claim)?;
    if ended_well {
        names.iter().try_for_each(|(team, name)| teams::forget_failures(tx, &team.id, name))?;
    }
    if !is_idle || end.state == JobState::Steered {
        return Ok(None);
    }
    for (team, name) in names.iter().filter(|_| ended_well) {
        if is_worth_a_turn(tx, team, name)?
            && let Some(lane) = wake(tx, team, &claim.session, fresh, settings)?
        {
            return Ok(Some(lane));
        }
    }
    let ended_badly = end.state == JobState::Failed;
    // After a turn that failed mail waits: showing it again at once could fail for ever. The keeper tries it later.
    for (team, name) in names.iter().filter(|_| ended_badly) {
        if team.status != TeamStatus::Shutdown || is_worth_a_turn(tx, team, name)? {
            teams::note_failure(tx, &team.id, name, end.error_code.unwrap_or("unknown"), fresh.now)?;
        }
    }
    teams::note_ended(tx, &claim.session, &claim.turn, ended_badly, fresh.now)?;
    Ok(None)
}

/// Whether mail waits that a turn is to be begun for. Notices that somebody is idle are worth one only where nobody is
/// at work.
pub(super) fn is_worth_a_turn(tx: &mut Tx<'_>, team: &Team, name: &str) -> polyclaw_store::Result<bool> {
    let (letters, idle) = letters::waiting(tx, &team.id, name)?;
    let may_rest = idle > 0 && team.status == TeamStatus::Active;
    Ok(letters > 0 || may_rest && teams::at_work(tx, &team.id)?.is_empty())
}

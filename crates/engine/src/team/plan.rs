//! Plan approval: a member sends its plan to the lead, who approves it or asks for changes. The answer and the member's
//! new permissions are stored in one transaction.

use polyclaw_domain::id::uuid_for_call;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::team::{LEAD_NAME, MemberState, PlanApproval, Team, TeamMember, TeamRefusal};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_store::{Tx, team_messages, teams};

use super::actor::{TeamActor, TeamCaller};
use super::messages::{
    OutgoingTeamMessage, PreparedTeamMessage, TeamMessageReceipt, lock_recipients, store_messages,
};
use crate::core::Engine;
use crate::error::{Error, Result};

/// A plan that waits for an answer or still has to be written.
#[derive(Clone, Debug)]
pub struct MemberPlan {
    pub approval: PlanApproval,
    /// The submitted plan.
    pub content: Option<String>,
}

impl Engine {
    /// Returns the state of a member's plan; `None` if none needs approval.
    pub async fn member_plan(&self, actor: &TeamActor, team: &str, name: &str) -> Result<Option<MemberPlan>> {
        let caller = self.reader(actor, team).await?;
        let (id, wanted) = (caller.team.id.clone(), name.to_owned());
        let read = move |tx: &mut Tx<'_>| {
            let Some(member) = teams::get_member(tx, &id, &wanted)? else { return Ok(None) };
            let Some(approval) = member.plan else { return Ok(Some(None)) };
            let content = match approval.request_id() {
                Some(request) => {
                    team_messages::find_plan_request(tx, &id, request)?.map(|message| message.content)
                }
                None => None,
            };
            Ok(Some(Some(MemberPlan { approval, content })))
        };
        let found = self.db().read(read).await?;
        found.ok_or_else(|| TeamRefusal::NotAMember(quote_safely(name)).into())
    }

    /// Sends a member's plan to the lead. Only one may be open, so that a looping model cannot fill the mailbox.
    pub(super) async fn submit_plan(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        outgoing: OutgoingTeamMessage,
    ) -> Result<TeamMessageReceipt> {
        let Some(member) = &caller.member else {
            return Err(TeamRefusal::NotAMember(LEAD_NAME.to_owned()).into());
        };
        let request_id = uuid_for_call(&format!("{}-plan", actor.call_id()));
        let message = TeamMessage {
            request_id: Some(request_id.clone()),
            ..self.message_to(actor, caller, &outgoing, LEAD_NAME)
        };
        let next = Some(PlanApproval::Submitted { request_id });
        let is_due = move |found: &TeamMember| match found.plan {
            Some(PlanApproval::Required) => Ok(()),
            Some(PlanApproval::Submitted { .. }) => {
                Err(TeamRefusal::Message("your plan already waits for the lead's approval: end your turn"))
            }
            None => Err(TeamRefusal::NoPlan(found.name.clone())),
        };
        self.store_plan_change(&caller.team, member.clone(), (next, message), is_due).await
    }

    /// Sends the lead's answer. Without a request id it answers the open plan.
    pub(super) async fn answer_plan(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        outgoing: OutgoingTeamMessage,
    ) -> Result<TeamMessageReceipt> {
        caller.require_lead()?;
        let approve = outgoing.approve.ok_or(TeamRefusal::Message("approve is missing"))?;
        let name = outgoing.to.clone().ok_or(TeamRefusal::Message("recipient is missing"))?;
        let member = self.active_member(&caller.team, &name).await?;
        let request = match (&outgoing.request_id, &member.plan) {
            (Some(given), _) => given.clone(),
            (None, Some(PlanApproval::Submitted { request_id })) => request_id.clone(),
            (None, _) => return Err(TeamRefusal::NoPlan(member.name).into()),
        };
        let feedback = match outgoing.content.trim().is_empty() {
            true => outgoing.reason.clone().unwrap_or_default(),
            false => outgoing.content.clone(),
        };
        if !approve && feedback.trim().is_empty() {
            return Err(TeamRefusal::Message(
                "content is missing: if you reject a plan, say what must change",
            )
            .into());
        }
        let content = match approve {
            true => format!("Your plan is approved. Start now. {feedback}"),
            false => format!("Your plan is not approved. Revise it and submit it again. {feedback}"),
        };
        let outgoing = OutgoingTeamMessage { content, request_id: Some(request.clone()), ..outgoing };
        let message = self.message_to(actor, caller, &outgoing, &member.name);
        let next = (!approve).then_some(PlanApproval::Required);
        let is_due = move |found: &TeamMember| match found.plan.as_ref().and_then(PlanApproval::request_id) {
            Some(open) if open == request => Ok(()),
            _ => Err(TeamRefusal::UnknownRequest(quote_safely(&request))),
        };
        self.store_plan_change(&caller.team, member, (next, message), is_due).await
    }

    async fn active_member(&self, team: &Team, name: &str) -> Result<TeamMember> {
        let (id, wanted) = (team.id.clone(), name.to_owned());
        let mut members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        members.retain(|one| one.state == MemberState::Active);
        let found = members.into_iter().find(|one| one.name == wanted || one.session.as_str() == wanted);
        found.ok_or_else(|| TeamRefusal::NotAMember(quote_safely(name)).into())
    }

    /// Stores a message together with the plan state it sets. A repeated call finds its message and changes nothing.
    async fn store_plan_change(
        &self,
        team: &Team,
        member: TeamMember,
        (next, message): (Option<PlanApproval>, TeamMessage),
        is_due: impl Fn(&TeamMember) -> std::result::Result<(), TeamRefusal> + Clone + Send + Sync + 'static,
    ) -> Result<TeamMessageReceipt> {
        let receipt = TeamMessageReceipt {
            message_ids: vec![message.id.clone()],
            recipients: vec![message.to.clone()],
            request_id: message.request_id.clone(),
            lost: Vec::new(),
        };
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let copies = vec![message.clone()];
        let posts: Vec<PreparedTeamMessage> = vec![self.prepare_message(message)];
        let write = move |tx: &mut Tx<'_>| {
            lock_recipients(tx, &wanted, &posts)?;
            teams::lock_team(tx, &wanted.id)?;
            if team_messages::get(tx, &posts[0].message.id)?.is_some() {
                return Ok(Ok(Vec::new()));
            }
            let found = teams::get_member(tx, &wanted.id, &member.name)?;
            // The name may belong to another session by now.
            let Some(found) = found.filter(|found| found.session == member.session) else {
                return Ok(Err(Error::from(TeamRefusal::NotAMember(member.name.clone()))));
            };
            if let Err(refused) = is_due(&found) {
                return Ok(Err(refused.into()));
            }
            teams::set_plan_approval(tx, &wanted.id, &member.name, next.as_ref())?;
            store_messages(tx, &wanted, &posts, &settings, now).map(Ok)
        };
        let ready = self.write_with_retry(write).await??;
        self.wake_recipients(team, ready, copies).await;
        self.write_team_files(team).await?;
        Ok(receipt)
    }
}

/// Whether a message changes the tools of its recipient.
pub(super) fn changes_tools(message: &TeamMessage) -> bool {
    message.kind == TeamMessageKind::PlanApprovalResponse
}

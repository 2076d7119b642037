//! Conversions to the response types of teams.

use polyclaw_api::teams::{
    FailureStreakView, JoinedMemberView, MemberShutdownView, MemberView, SentTeamMessageView,
    TaskLogEntryView, TeamDetail, TeamShutdownView, TeamTaskView, TeamTurnsView,
};
use polyclaw_engine::team::{
    MemberShutdownOutcome, SpawnedTeammate, TeamMessageReceipt, TeamShutdownStatus, TeamSnapshot, TurnBudget,
};
use polyclaw_store::tasks::TaskEvent;

pub fn team_detail(view: TeamSnapshot) -> TeamDetail {
    let TurnBudget { used, limit, is_waiting } = view.turns;
    TeamDetail {
        lead_status: view.lead_status().to_owned(),
        team: view.team.into(),
        members: view.members.into_iter().map(MemberView::from).collect(),
        failure_streak: view.lead_failure_streak.map(FailureStreakView::from),
        is_lead_lost: view.is_lead_lost,
        lead_unread: view.lead_unread,
        counts: view.counts,
        turns: TeamTurnsView { used, limit, is_waiting },
        open: view.open.into_iter().map(TeamTaskView::from).collect(),
        ended: view.ended.into_iter().map(TeamTaskView::from).collect(),
    }
}

pub fn joined_member_view(spawned: SpawnedTeammate) -> JoinedMemberView {
    JoinedMemberView {
        name: spawned.name,
        session_key: spawned.session_key.to_string(),
        inherited: spawned.inherited.into_iter().map(|no| no.0).collect(),
    }
}

pub fn sent_team_message_view(receipt: TeamMessageReceipt) -> SentTeamMessageView {
    let ids = receipt.message_ids.into_iter().map(String::from).collect();
    SentTeamMessageView { message_ids: ids, recipients: receipt.recipients, lost: receipt.lost }
}

pub fn task_log_entry_view(event: TaskEvent) -> TaskLogEntryView {
    TaskLogEntryView {
        seq: event.seq,
        task_id: event.task.0,
        change: event.kind.as_str().to_owned(),
        by: event.actor,
        data: event.data,
        created_at: event.created_at,
    }
}

pub fn team_shutdown_view(ended: TeamShutdownStatus) -> TeamShutdownView {
    let member = |MemberShutdownOutcome { name, request_id, answer }: MemberShutdownOutcome| {
        MemberShutdownView { name, request_id, answer }
    };
    TeamShutdownView {
        status: ended.status.as_str().to_owned(),
        members: ended.members.into_iter().map(member).collect(),
    }
}

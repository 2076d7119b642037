//! `TeamCreate`, `TeammateSpawn`, `TeamShutdown` and `TeamStatus`.

use std::collections::HashMap;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::team::state::MemberStatus;
use polyclaw_store::messages;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolCallResult, ToolInvocation};
use crate::core::Engine;
use crate::error::Error;
use crate::team::{NewMember, NewTeam};
use crate::toolbox::ToolRefusal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamCreateArguments {
    /// Lower-case letters, digits, '_' and '-'.
    team_name: String,
    /// What the team is for.
    description: Option<String>,
    /// What kind of agents the team has.
    agent_type: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnTeammateArguments {
    team_name: String,
    /// Member name, used for messages and tasks.
    name: String,
    /// The agent to run. Defaults to yourself.
    agent_id: Option<String>,
    /// provider/model, to override the agent's own.
    model: Option<String>,
    /// First task, with everything the member needs to know. Without it the member waits for messages.
    task: Option<String>,
    /// A few words for people.
    role: Option<String>,
    /// Capabilities, for tasks that require one.
    capabilities: Option<Vec<String>>,
    /// Give the name of an active member to a new session.
    #[serde(default)]
    replace: bool,
    /// Restrict it to reading until you approve the plan it sends you.
    #[serde(default)]
    plan_mode_required: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamShutdownArguments {
    team_name: String,
    /// Reason, shown to every member.
    reason: Option<String>,
    /// Stop all members immediately. Only if a person asked for it.
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TeamStatusArguments {
    team_name: String,
}

pub(super) async fn create_team(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TeamCreateArguments,
) -> ToolCallResult {
    let new = NewTeam {
        name: given.team_name,
        description: given.description.unwrap_or_default(),
        agent_type: given.agent_type.unwrap_or_else(|| "general-purpose".to_owned()),
        lead: asked.scope.session.clone(),
        turn: Some(asked.turn.clone()),
    };
    let team = engine.create_team(&asked.team_actor(), new).await?;
    Ok(json!({ "team_id": team.id, "team_name": team.name, "lead_session_key": team.lead }).to_string())
}

pub(super) async fn spawn_teammate(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: SpawnTeammateArguments,
) -> ToolCallResult {
    let agent = given.agent_id.as_deref().map(AgentId::parse).transpose();
    let model = given.model.as_deref().map(ModelRef::parse).transpose();
    let new = NewMember {
        name: given.name,
        agent: agent.map_err(|error| ToolRefusal(error.to_string()))?,
        model: model.map_err(|error| ToolRefusal(error.to_string()))?,
        task: given.task,
        role: given.role,
        capabilities: given.capabilities.unwrap_or_default(),
        replaces: given.replace,
        plan_mode_required: given.plan_mode_required,
    };
    let spawned = engine.spawn_teammate(&asked.team_actor(), &given.team_name, new).await?;
    Ok(json!(spawned).to_string())
}

/// Whether a person asked in this turn. Only then may a team be stopped by force, not in turns started by members or
/// cron jobs.
async fn has_person(engine: &Engine, asked: ToolInvocation<'_>) -> Result<bool, ToolRefusal> {
    let turn = asked.turn.clone();
    let stored = engine.db().read(move |tx| messages::list_by_turn(tx, &turn)).await.map_err(Error::from)?;
    Ok(stored.iter().any(|line| line.role == MessageRole::User && line.origin.is_person()))
}

pub(super) async fn shut_down_team(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TeamShutdownArguments,
) -> ToolCallResult {
    if given.force && !has_person(engine, asked).await? {
        return Err(ToolRefusal(
            "Only a person can force a shutdown. Ask them, or leave it to `polyclaw teams shutdown --force`."
                .to_owned(),
        ));
    }
    let reason = given.reason.unwrap_or_default();
    let ended = engine.shut_down_team(&asked.team_actor(), &given.team_name, &reason, given.force).await?;
    Ok(json!(ended).to_string())
}

/// Returns the submitted plans that wait for approval, for a lead that no longer has the messages.
async fn waiting_plans(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    team: &str,
    members: &[MemberStatus],
) -> std::result::Result<HashMap<String, String>, ToolRefusal> {
    let mut plans = HashMap::new();
    for status in members.iter().filter(|status| status.member.plan.is_some()) {
        let name = &status.member.name;
        let plan = engine.member_plan(&asked.team_actor(), team, name).await?;
        plans.extend(plan.and_then(|plan| plan.content).map(|content| (name.clone(), content)));
    }
    Ok(plans)
}

pub(super) async fn team_status(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: TeamStatusArguments,
) -> ToolCallResult {
    let view = engine.team_snapshot(&asked.team_actor(), &given.team_name).await?;
    let plans = waiting_plans(engine, asked, &given.team_name, &view.members).await?;
    let members: Vec<Value> = view
        .members
        .iter()
        .map(|status| {
            json!({ "name": status.member.name, "role": status.member.role, "session_key": status.member.session,
                "status": status.status_word(), "tasks": status.tasks, "failure_streak": status.failures, "plan": status.member.plan,
                "plan_content": plans.get(&status.member.name),
                "last_active_at": status.member.last_active_at.to_string() })
        })
        .collect();
    let done = view.counts.completed + view.counts.failed;
    Ok(json!({
        "team": view.team.name, "status": view.team.status, "members": members, "tasks": view.counts,
        "progress": format!("{done} of {} ended", view.counts.total_count()),
    })
    .to_string())
}

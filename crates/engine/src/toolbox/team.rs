//! Team tools. Each is listed under one name, and its snake_case name is an alias (`domain/team/tools.rs`).

mod members;
mod messages;
mod tasks;

use polyclaw_domain::id::id_for_call;
use polyclaw_domain::team::{TeamRole, tools};
use polyclaw_domain::tool::{ToolEffect, ToolScope, ToolSpec, arguments};
use schemars::JsonSchema;

use super::ToolCallResult;
use super::engine_tool::{EngineTool, ToolInvocation};
use crate::core::Engine;
use crate::settings::EngineSettings;
use crate::team::TeamActor;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeamTool {
    Create,
    Spawn,
    Shutdown,
    Status,
    TaskCreate,
    TaskList,
    TaskClaim,
    TaskUpdate,
    TaskComplete,
    Send,
}

impl EngineTool for TeamTool {
    const ALL: &'static [Self] = &[
        Self::Create,
        Self::Spawn,
        Self::Shutdown,
        Self::Status,
        Self::TaskCreate,
        Self::TaskList,
        Self::TaskClaim,
        Self::TaskUpdate,
        Self::TaskComplete,
        Self::Send,
    ];

    fn spec(self) -> ToolSpec {
        match self {
            Self::Create => idempotent_spec::<members::TeamCreateArguments>(
                tools::TEAM_CREATE,
                "Creates a team that you lead, with a task list and mailboxes. Use it for work that several agents \
                 can do in parallel.",
            ),
            Self::Spawn => idempotent_spec::<members::SpawnTeammateArguments>(
                tools::TEAMMATE_SPAWN,
                "Adds a member to your team. A member has its own session, works on tasks and receives messages. If \
                 you give the name of a lost member, the new member replaces it and takes over its tasks.",
            ),
            Self::Shutdown => idempotent_spec::<members::TeamShutdownArguments>(
                tools::TEAM_SHUTDOWN,
                "Shuts down your team. Every member is asked first and may object. force stops all members \
                 immediately; use it only if a person asked you to.",
            ),
            Self::Status => arguments::build_tool_spec::<members::TeamStatusArguments>(
                tools::TEAM_STATUS,
                "Shows the team: members and their activity, task counts by state, and progress.",
            ),
            Self::TaskCreate => idempotent_spec::<tasks::TaskCreateArguments>(
                tools::TASK_CREATE,
                "Adds a task to the team's task list. It can be claimed after all tasks in dependsOn are completed. \
                 The runtime runs verify before the task counts as completed.",
            ),
            Self::TaskList => arguments::build_tool_spec::<tasks::TaskListArguments>(
                tools::TASK_LIST,
                "Lists tasks, newest first, with their owners and the tasks that block them.",
            ),
            Self::TaskClaim => idempotent_spec::<tasks::TaskClaimArguments>(
                tools::TASK_CLAIM,
                "Claims a task for you. Without task_id, it claims the oldest available task. Nobody else can claim \
                 the task while you work on it.",
            ),
            Self::TaskUpdate => idempotent_spec::<tasks::TaskUpdateArguments>(
                tools::TASK_UPDATE,
                "Marks a task as started (in_progress), gives it back (released), or adds a note. The lead can also \
                 change its dependencies.",
            ),
            Self::TaskComplete => idempotent_spec::<tasks::TaskCompleteArguments>(
                tools::TASK_COMPLETE,
                "Ends a task that you hold, as completed or failed. The lead is notified, and tasks that depend on \
                 a completed task become available. The lead can also end tasks that nobody holds.",
            ),
            Self::Send => idempotent_spec::<messages::SendMessageArguments>(
                tools::SEND_MESSAGE,
                "Sends a message to a teammate, or to all teammates (broadcast). The team sees nothing else that \
                 you write. It also answers shutdown requests (shutdown_response), submits a plan to the lead \
                 (plan_approval_request) and answers a submitted plan (plan_approval_response).",
            ),
        }
    }

    fn is_offered(self, _: &EngineSettings, scope: &ToolScope) -> bool {
        let role = scope.team_role;
        match self {
            // A session that cannot spawn could have no members.
            Self::Create => role != Some(TeamRole::Member) && scope.spawns,
            Self::Spawn | Self::Shutdown => role == Some(TeamRole::Lead),
            _ => role.is_some(),
        }
    }

    async fn perform(self, engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
        let given = &asked.call.arguments;
        match self {
            Self::Create => members::create_team(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Spawn => members::spawn_teammate(engine, asked, arguments::parse_arguments(given)?).await,
            Self::Shutdown => {
                members::shut_down_team(engine, asked, arguments::parse_arguments(given)?).await
            }
            Self::Status => members::team_status(engine, asked, arguments::parse_arguments(given)?).await,
            Self::TaskCreate => tasks::create_task(engine, asked, arguments::parse_arguments(given)?).await,
            Self::TaskList => tasks::list(engine, asked, arguments::parse_arguments(given)?).await,
            Self::TaskClaim => tasks::claim_task(engine, asked, arguments::parse_arguments(given)?).await,
            Self::TaskUpdate => tasks::update_task(engine, asked, arguments::parse_arguments(given)?).await,
            Self::TaskComplete => {
                tasks::complete_task(engine, asked, arguments::parse_arguments(given)?).await
            }
            Self::Send => messages::send_message(engine, asked, arguments::parse_arguments(given)?).await,
        }
    }
}

/// Builds a tool spec whose calls can be repeated safely after a crash.
fn idempotent_spec<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec { effect: ToolEffect::Idempotent, ..arguments::build_tool_spec::<A>(name, description) }
}

impl ToolInvocation<'_> {
    /// Returns the actor of this call. A repeated call is the same operation.
    fn team_actor(&self) -> TeamActor {
        let act = id_for_call(self.turn, &self.call.id);
        TeamActor::Session { key: self.scope.session.clone(), turn: self.turn.clone(), call: act }
    }
}

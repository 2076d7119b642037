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
                "Makes a team that you lead, with a list of tasks and mailboxes. Use it for work that several agents do side \
                 by side.",
            ),
            Self::Spawn => idempotent_spec::<members::SpawnTeammateArguments>(
                tools::TEAMMATE_SPAWN,
                "Adds a member to your team: a session of its own that works on tasks and gets mail. With the name of one that \
                 is lost, it replaces it and gets its tasks.",
            ),
            Self::Shutdown => idempotent_spec::<members::TeamShutdownArguments>(
                tools::TEAM_SHUTDOWN,
                "Ends your team: every member is asked and may object. force stops all at once, where a person asked you to.",
            ),
            Self::Status => arguments::build_tool_spec::<members::TeamStatusArguments>(
                tools::TEAM_STATUS,
                "Shows the team: members and what they do, tasks by state, progress.",
            ),
            Self::TaskCreate => idempotent_spec::<tasks::TaskCreateArguments>(
                tools::TASK_CREATE,
                "Adds a task to the team's list. It can be claimed once everything in dependsOn is completed. verify is checked \
                 by the runtime before it counts as completed.",
            ),
            Self::TaskList => arguments::build_tool_spec::<tasks::TaskListArguments>(
                tools::TASK_LIST,
                "Lists tasks, the newest first, with who has them and what they wait for.",
            ),
            Self::TaskClaim => idempotent_spec::<tasks::TaskClaimArguments>(
                tools::TASK_CLAIM,
                "Takes a task for yourself; without task_id the oldest that is free. Nobody else can take it while you work.",
            ),
            Self::TaskUpdate => idempotent_spec::<tasks::TaskUpdateArguments>(
                tools::TASK_UPDATE,
                "Says that you began a task (in_progress), gives it back (released), or leaves a note. The lead also changes what it \
                 waits for.",
            ),
            Self::TaskComplete => idempotent_spec::<tasks::TaskCompleteArguments>(
                tools::TASK_COMPLETE,
                "Ends a task you hold, as completed or failed. The lead is told; what waited for it is free. The lead also ends what \
                 nobody holds.",
            ),
            Self::Send => idempotent_spec::<messages::SendMessageArguments>(
                tools::SEND_MESSAGE,
                "Writes to a teammate, or to all (broadcast). Nobody in the team sees anything else you say. Also answers \
                 requests to stop (shutdown_response), sends a plan to the lead (plan_approval_request) and answers it \
                 (plan_approval_response).",
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

//! The MCP tools by name.

use std::sync::Arc;

use polyclaw_domain::sanitize;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::{ApiRefusal, InstanceApi};
use super::{conversations, tasks};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

type McpToolResult = Result<String, ApiRefusal>;

pub fn list_tools() -> Vec<Tool> {
    vec![
        tool_definition::<conversations::AskAgentArguments>(
            "ask_agent",
            "Sends a message to an agent and returns its answer.",
            false,
        ),
        tool_definition::<conversations::SendToAgentArguments>(
            "send_message",
            "Sends a message to an agent and returns immediately. The message is stored and will be answered, even \
             after a crash.",
            false,
        ),
        tool_definition::<conversations::WaitForTurnArguments>(
            "wait_for_turn",
            "Waits for the answer to a sent message.",
            true,
        ),
        tool_definition::<NoArguments>("list_agents", "Lists the agents and their purposes.", true),
        tool_definition::<conversations::ListSessionsArguments>(
            "list_sessions",
            "Lists the newest conversations.",
            true,
        ),
        tool_definition::<conversations::ReadHistoryArguments>(
            "read_history",
            "Lists the newest messages of a conversation, oldest first.",
            true,
        ),
        tool_definition::<NoArguments>("list_teams", "Lists the active teams.", true),
        tool_definition::<tasks::ListTasksArguments>("list_tasks", "Lists the tasks of a team.", true),
        tool_definition::<tasks::CreateTaskArguments>(
            "create_task",
            "Adds a task to a team. Members that can claim it are notified.",
            false,
        ),
        tool_definition::<tasks::ClaimTaskArguments>(
            "claim_task",
            "Claims a task on behalf of a member of the team.",
            false,
        ),
        tool_definition::<tasks::CompleteTaskArguments>(
            "complete_task",
            "Completes or fails a task. Tasks that waited for its completion can then be claimed.",
            false,
        ),
    ]
}

pub async fn call_tool<A: InstanceApi>(api: &A, name: &str, arguments: Value) -> McpToolResult {
    match name {
        "ask_agent" => conversations::ask_agent(api, parse_arguments(arguments)?).await,
        "send_message" => conversations::send_message(api, parse_arguments(arguments)?).await,
        "wait_for_turn" => conversations::wait_for_turn(api, parse_arguments(arguments)?).await,
        "list_agents" => {
            let NoArguments {} = parse_arguments(arguments)?;
            conversations::list_agents(api).await
        }
        "list_sessions" => conversations::list_sessions(api, parse_arguments(arguments)?).await,
        "read_history" => conversations::read_history(api, parse_arguments(arguments)?).await,
        "list_teams" => {
            let NoArguments {} = parse_arguments(arguments)?;
            tasks::list_teams(api).await
        }
        "list_tasks" => tasks::list_tasks(api, parse_arguments(arguments)?).await,
        "create_task" => tasks::create_task(api, parse_arguments(arguments)?).await,
        "claim_task" => tasks::claim_task(api, parse_arguments(arguments)?).await,
        "complete_task" => tasks::complete_task(api, parse_arguments(arguments)?).await,
        _ => Err(ApiRefusal::invalid_arguments(format!(
            "unknown tool {:?}",
            sanitize::to_single_line(name, 80)
        ))),
    }
}

fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ApiRefusal> {
    T::deserialize(&arguments).map_err(|error| {
        ApiRefusal::invalid_arguments(format!(
            "invalid arguments: {}",
            sanitize::to_single_line(&error.to_string(), 300)
        ))
    })
}

/// Formats a result as JSON text.
pub(super) fn result_text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn tool_definition<T: JsonSchema>(name: &'static str, description: &'static str, is_read_only: bool) -> Tool {
    let mut schema = schemars::schema_for!(T).to_value();
    let fields = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut tool = Tool::new(name, description, Arc::new(fields));
    tool.annotations = Some(ToolAnnotations::new().read_only(is_read_only));
    tool
}

//! The tools, by name.

use std::sync::Arc;

use polyclaw_domain::sanitize;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::{Api, Refusal};
use super::{talk, tasks};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

type Done = Result<String, Refusal>;

pub fn list() -> Vec<Tool> {
    vec![
        tool::<talk::AskAgent>("ask_agent", "Says something to an agent and returns its answer.", false),
        tool::<talk::SendMessage>(
            "send_message",
            "Says something to an agent and returns at once: it is kept, and answered whatever happens.",
            false,
        ),
        tool::<talk::WaitForTurn>("wait_for_turn", "Waits for the answer to a message that was sent.", true),
        tool::<Nothing>("list_agents", "The agents there are, and what each is for.", true),
        tool::<talk::ListSessions>("list_sessions", "The newest conversations.", true),
        tool::<talk::ReadHistory>(
            "read_history",
            "The newest messages of a conversation, oldest first.",
            true,
        ),
        tool::<Nothing>("list_teams", "The teams that are at work.", true),
        tool::<tasks::ListTasks>("list_tasks", "The tasks of a team.", true),
        tool::<tasks::CreateTask>(
            "create_task",
            "Adds a task to a team's list; whoever can take it is told.",
            false,
        ),
        tool::<tasks::ClaimTask>("claim_task", "Takes a task up in the name of a member of the team.", false),
        tool::<tasks::CompleteTask>("complete_task", "Ends a task; what waited for it becomes free.", false),
    ]
}

pub async fn call<A: Api>(api: &A, name: &str, arguments: Value) -> Done {
    match name {
        "ask_agent" => talk::ask(api, read(arguments)?).await,
        "send_message" => talk::send(api, read(arguments)?).await,
        "wait_for_turn" => talk::wait(api, read(arguments)?).await,
        "list_agents" => {
            let Nothing {} = read(arguments)?;
            talk::agents(api).await
        }
        "list_sessions" => talk::sessions(api, read(arguments)?).await,
        "read_history" => talk::history(api, read(arguments)?).await,
        "list_teams" => {
            let Nothing {} = read(arguments)?;
            tasks::teams(api).await
        }
        "list_tasks" => tasks::list(api, read(arguments)?).await,
        "create_task" => tasks::create(api, read(arguments)?).await,
        "claim_task" => tasks::claim(api, read(arguments)?).await,
        "complete_task" => tasks::complete(api, read(arguments)?).await,
        _ => Err(Refusal::unfit(format!("there is no tool {:?} here", sanitize::to_single_line(name, 80)))),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Refusal> {
    T::deserialize(&arguments).map_err(|error| {
        Refusal::unfit(format!(
            "the arguments do not fit: {}",
            sanitize::to_single_line(&error.to_string(), 300)
        ))
    })
}

/// What a list or an object looks like to whoever called.
pub(super) fn shown(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn tool<T: JsonSchema>(name: &'static str, description: &'static str, is_read_only: bool) -> Tool {
    let mut schema = schemars::schema_for!(T).to_value();
    let fields = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut tool = Tool::new(name, description, Arc::new(fields));
    tool.annotations = Some(ToolAnnotations::new().read_only(is_read_only));
    tool
}

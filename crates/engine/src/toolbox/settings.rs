//! Tools with which a model manages models, agents and its own todo list.

use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};

use super::engine_tool::{EngineTool, ToolInvocation};
use super::{ToolCallResult, ToolRefusal, agent_config, agents, models, todo};
use crate::core::Engine;

#[derive(Clone, Copy)]
pub(crate) enum SettingsTool {
    ModelsList,
    SetModel,
    AgentsList,
    SetAgent,
    Create,
    Update,
    Todo,
}

impl EngineTool for SettingsTool {
    const ALL: &'static [Self] = &[
        Self::ModelsList,
        Self::SetModel,
        Self::AgentsList,
        Self::SetAgent,
        Self::Create,
        Self::Update,
        Self::Todo,
    ];

    fn spec(self) -> ToolSpec {
        match self {
            Self::ModelsList => arguments::build_tool_spec::<models::ModelsListArguments>(
                "models_list",
                "Lists the available models as provider/model, with their state.",
            ),
            Self::SetModel => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<models::SessionSetModelArguments>(
                    "session_set_model",
                    "Switches this session to another model from the next turn on. 'default' restores the agent's \
                     own model.",
                )
            },
            Self::AgentsList => arguments::build_tool_spec::<agents::AgentsListArguments>(
                "agents_list",
                "Lists all agents: id, name, purpose, and which one answers in this session.",
            ),
            Self::SetAgent => ToolSpec {
                effect: ToolEffect::Idempotent,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<agents::SessionSetAgentArguments>(
                    "session_set_agent",
                    "Switches this session to another agent from the next turn on, with that agent's model, tools \
                     and skills.",
                )
            },
            Self::Create => ToolSpec {
                effect: ToolEffect::Effect,
                risk: ToolRisk::High,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<agent_config::AgentCreateArguments>(
                    "agent_create",
                    "Creates a new agent. A person sees its permissions and must approve them.",
                )
            },
            Self::Update => ToolSpec {
                effect: ToolEffect::Effect,
                risk: ToolRisk::High,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<agent_config::AgentUpdateArguments>(
                    "agent_update",
                    "Updates an agent that was created at run time. A person sees its new permissions and must \
                     approve them.",
                )
            },
            Self::Todo => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<todo::TodoArguments>(
                    "todo",
                    "Maintains your todo list for this session. With items, it replaces the whole list. Without \
                     items, it returns the current list.",
                )
            },
        }
    }

    async fn approval_question(
        self,
        engine: &Engine,
        scope: &ToolScope,
        call: &ToolCall,
    ) -> Result<Option<String>, ToolRefusal> {
        let given = &call.arguments;
        match self {
            Self::SetAgent => {
                agents::approval_question(engine, scope, arguments::parse_arguments(given)?).await
            }
            Self::Create => {
                agent_config::create_question(engine, arguments::parse_arguments(given)?).await.map(Some)
            }
            Self::Update => {
                agent_config::update_question(engine, arguments::parse_arguments(given)?).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn perform(
        self,
        engine: &Engine,
        ToolInvocation { scope, call, .. }: ToolInvocation<'_>,
    ) -> ToolCallResult {
        let given = &call.arguments;
        match self {
            Self::ModelsList => models::list(engine, arguments::parse_arguments(given)?).await,
            Self::SetModel => models::set_model(engine, scope, arguments::parse_arguments(given)?).await,
            Self::AgentsList => {
                let agents::AgentsListArguments {} = arguments::parse_arguments(given)?;
                agents::list(engine, scope).await
            }
            Self::SetAgent => agents::set_agent(engine, scope, arguments::parse_arguments(given)?).await,
            Self::Create => agent_config::create_agent(engine, arguments::parse_arguments(given)?).await,
            Self::Update => agent_config::update_agent(engine, arguments::parse_arguments(given)?).await,
            Self::Todo => todo::run(engine, scope, arguments::parse_arguments(given)?).await,
        }
    }
}

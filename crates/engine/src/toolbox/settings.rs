//! What the engine lets a model do with models, agents and its own list.

use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};

use super::own::{Asked, OwnTool};
use super::{Done, Refused, agents, draft, models, todo};
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

impl OwnTool for SettingsTool {
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
            Self::ModelsList => arguments::build_tool_spec::<models::List>(
                "models_list",
                "Lists the models that can be used, as provider/model, with their state.",
            ),
            Self::SetModel => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<models::Set>(
                    "session_set_model",
                    "Uses another model in this session from the next turn on. 'default' goes back to the agent's own.",
                )
            },
            Self::AgentsList => arguments::build_tool_spec::<agents::List>(
                "agents_list",
                "Lists the agents there are: id, name, what each is for, and which one answers in this session.",
            ),
            Self::SetAgent => ToolSpec {
                effect: ToolEffect::Idempotent,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<agents::Set>(
                    "session_set_agent",
                    "Lets another agent answer in this session from the next turn on, with its own model, tools and skills.",
                )
            },
            Self::Create => ToolSpec {
                effect: ToolEffect::Effect,
                risk: ToolRisk::High,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<draft::Draft>(
                    "agent_create",
                    "Makes a new agent. A person is shown what it may do and must agree.",
                )
            },
            Self::Update => ToolSpec {
                effect: ToolEffect::Effect,
                risk: ToolRisk::High,
                consent: ToolConsent::ByCall,
                ..arguments::build_tool_spec::<draft::Update>(
                    "agent_update",
                    "Changes an agent that was made at run time. A person is shown what it may do then and must agree.",
                )
            },
            Self::Todo => ToolSpec {
                effect: ToolEffect::Idempotent,
                ..arguments::build_tool_spec::<todo::Arguments>(
                    "todo",
                    "Keeps your list of things to do in this session. With items it replaces the whole list; without, it \
                     shows it.",
                )
            },
        }
    }

    async fn asks(
        self,
        engine: &Engine,
        scope: &ToolScope,
        call: &ToolCall,
    ) -> Result<Option<String>, Refused> {
        let given = &call.arguments;
        match self {
            Self::SetAgent => agents::asks(engine, scope, arguments::parse_arguments(given)?).await,
            Self::Create => draft::asks_to_create(engine, arguments::parse_arguments(given)?).await.map(Some),
            Self::Update => draft::asks_to_update(engine, arguments::parse_arguments(given)?).await.map(Some),
            _ => Ok(None),
        }
    }

    async fn perform(self, engine: &Engine, Asked { scope, call, .. }: Asked<'_>) -> Done {
        let given = &call.arguments;
        match self {
            Self::ModelsList => models::list(engine, arguments::parse_arguments(given)?).await,
            Self::SetModel => models::set(engine, scope, arguments::parse_arguments(given)?).await,
            Self::AgentsList => {
                let agents::List {} = arguments::parse_arguments(given)?;
                agents::list(engine, scope).await
            }
            Self::SetAgent => agents::set(engine, scope, arguments::parse_arguments(given)?).await,
            Self::Create => draft::create(engine, arguments::parse_arguments(given)?).await,
            Self::Update => draft::update(engine, arguments::parse_arguments(given)?).await,
            Self::Todo => todo::run(engine, scope, arguments::parse_arguments(given)?).await,
        }
    }
}

//! Tools that change what the engine knows, and the join of all toolboxes into the one list that is filtered.

mod agents;
mod draft;
pub(crate) mod family;
pub mod memory;
mod models;
pub(crate) mod team;
mod todo;

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::tool::{
    Consent, Effect, Progress, Question, Risk, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox, arguments,
};

use crate::core::{Engine, Inner};
use crate::error::Error;

/// Several toolboxes as one. Where two have a tool of one name, the first one's is meant.
pub struct Toolboxes(Vec<Arc<dyn Toolbox>>);

impl Toolboxes {
    pub fn new(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self(boxes)
    }

    fn owner(&self, scope: &ToolScope, name: &str) -> Option<&Arc<dyn Toolbox>> {
        self.0.iter().find(|toolbox| toolbox.list(scope).iter().any(|tool| tool.name == name))
    }
}

impl Toolbox for Toolboxes {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let mut listed: Vec<Arc<ToolSpec>> = Vec::new();
        for tool in self.0.iter().flat_map(|toolbox| toolbox.list(scope)) {
            if !listed.iter().any(|known| known.name == tool.name) {
                listed.push(tool);
            }
        }
        listed
    }

    fn gather<'a>(&'a self, scope: &'a ToolScope) -> Option<Pending<'a, ()>> {
        let waits: Vec<_> = self.0.iter().filter_map(|toolbox| toolbox.gather(scope)).collect();
        (!waits.is_empty()).then(|| {
            Box::pin(async move {
                join_all(waits).await;
            }) as Pending<'a, ()>
        })
    }

    fn question<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> Pending<'a, Question> {
        match self.owner(scope, &call.name) {
            Some(toolbox) => toolbox.question(scope, call),
            None => Box::pin(std::future::ready(Question::None)),
        }
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        match self.owner(scope, &call.name) {
            Some(toolbox) => toolbox.run(scope, turn, call, progress),
            None => {
                Box::pin(std::future::ready(ToolOutcome::error(format!("There is no tool '{}'.", call.name))))
            }
        }
    }
}

/// What the engine lets a model do with models, agents and its own list.
pub(crate) struct EngineTools {
    /// The engine owns its tools, so they must not own it.
    engine: Weak<Inner>,
    tools: Vec<(Kind, Arc<ToolSpec>)>,
}

#[derive(Clone, Copy)]
enum Kind {
    ModelsList,
    SetModel,
    AgentsList,
    SetAgent,
    Create,
    Update,
    Todo,
}

impl Kind {
    const ALL: [Self; 7] = [
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
            Self::ModelsList => arguments::spec::<models::List>(
                "models_list",
                "Lists the models that can be used, as provider/model, with their state.",
            ),
            Self::SetModel => ToolSpec {
                effect: Effect::Idempotent,
                ..arguments::spec::<models::Set>(
                    "session_set_model",
                    "Uses another model in this session from the next turn on. 'default' goes back to the agent's own.",
                )
            },
            Self::AgentsList => arguments::spec::<agents::List>(
                "agents_list",
                "Lists the agents there are: id, name, what each is for, and which one answers in this session.",
            ),
            Self::SetAgent => ToolSpec {
                effect: Effect::Idempotent,
                consent: Consent::ByCall,
                ..arguments::spec::<agents::Set>(
                    "session_set_agent",
                    "Lets another agent answer in this session from the next turn on, with its own model, tools and skills.",
                )
            },
            Self::Create => ToolSpec {
                effect: Effect::Effect,
                risk: Risk::High,
                consent: Consent::ByCall,
                ..arguments::spec::<draft::Draft>(
                    "agent_create",
                    "Makes a new agent. A person is shown what it may do and must agree.",
                )
            },
            Self::Update => ToolSpec {
                effect: Effect::Effect,
                risk: Risk::High,
                consent: Consent::ByCall,
                ..arguments::spec::<draft::Update>(
                    "agent_update",
                    "Changes an agent that was made at run time. A person is shown what it may do then and must agree.",
                )
            },
            Self::Todo => ToolSpec {
                effect: Effect::Idempotent,
                ..arguments::spec::<todo::Arguments>(
                    "todo",
                    "Keeps your list of things to do in this session. With items it replaces the whole list; without, it \
                     shows it.",
                )
            },
        }
    }
}

type Done = std::result::Result<String, Refused>;

/// Why a call did nothing, as the model is told.
pub(crate) struct Refused(String);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(match error.hint() {
            Some(hint) => format!("{error} ({}): {hint}", error.code()),
            None => format!("{error} ({})", error.code()),
        })
    }
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("The arguments do not fit: {error}"))
    }
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Refused> for ToolOutcome {
    fn from(Refused(text): Refused) -> Self {
        Self::error(text)
    }
}

impl EngineTools {
    pub fn new(engine: Weak<Inner>) -> Self {
        Self { engine, tools: Kind::ALL.map(|kind| (kind, Arc::new(kind.spec()))).into() }
    }

    fn find(&self, call: &ToolCall) -> Option<(Kind, Engine)> {
        let (kind, _) = self.tools.iter().find(|(_, spec)| spec.name == call.name)?;
        Some((*kind, Engine::from(self.engine.upgrade()?)))
    }
}

async fn perform(engine: &Engine, kind: Kind, scope: &ToolScope, call: &ToolCall) -> Done {
    let given = &call.arguments;
    match kind {
        Kind::ModelsList => models::list(engine, arguments::read(given)?).await,
        Kind::SetModel => models::set(engine, scope, arguments::read(given)?).await,
        Kind::AgentsList => {
            let agents::List {} = arguments::read(given)?;
            agents::list(engine, scope).await
        }
        Kind::SetAgent => agents::set(engine, scope, arguments::read(given)?).await,
        Kind::Create => draft::create(engine, arguments::read(given)?).await,
        Kind::Update => draft::update(engine, arguments::read(given)?).await,
        Kind::Todo => todo::run(engine, scope, arguments::read(given)?).await,
    }
}

/// What a person is asked about the call, if anything.
async fn asks(
    engine: &Engine,
    kind: Kind,
    scope: &ToolScope,
    call: &ToolCall,
) -> std::result::Result<Option<String>, Refused> {
    let given = &call.arguments;
    match kind {
        Kind::SetAgent => agents::asks(engine, scope, arguments::read(given)?).await,
        Kind::Create => draft::asks_to_create(engine, arguments::read(given)?).await.map(Some),
        Kind::Update => draft::asks_to_update(engine, arguments::read(given)?).await.map(Some),
        _ => Ok(None),
    }
}

impl Toolbox for EngineTools {
    fn list(&self, _: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.tools.iter().map(|(_, spec)| Arc::clone(spec)).collect()
    }

    fn question<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> Pending<'a, Question> {
        Box::pin(async move {
            let Some((kind, engine)) = self.find(call) else { return Question::None };
            match asks(&engine, kind, scope, call).await {
                Ok(Some(words)) => Question::Ask(words),
                Ok(None) => Question::None,
                Err(refused) => Question::Refuse(refused.into()),
            }
        })
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        _: &'a TurnId,
        call: &'a ToolCall,
        _: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        Box::pin(async move {
            let Some((kind, engine)) = self.find(call) else {
                return ToolOutcome::error("The engine has ended.");
            };
            perform(&engine, kind, scope, call).await.map_or_else(ToolOutcome::from, ToolOutcome::ok)
        })
    }
}

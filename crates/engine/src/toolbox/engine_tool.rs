//! A toolbox of the engine's own tools: the parts that all of them share.

use std::sync::{Arc, Weak};

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolOutcome, ToolQuestion, ToolScope, ToolSpec, Toolbox,
};

use super::{ToolCallResult, ToolRefusal};
use crate::core::{Engine, Inner};
use crate::settings::EngineSettings;

/// A tool call and its turn.
#[derive(Clone, Copy)]
pub(crate) struct ToolInvocation<'a> {
    pub scope: &'a ToolScope,
    pub turn: &'a TurnId,
    pub call: &'a ToolCall,
}

/// The tools of one toolbox, one variant each.
pub(crate) trait EngineTool: Copy + Send + Sync + 'static {
    const ALL: &'static [Self];

    fn spec(self) -> ToolSpec;

    /// Whether the tool is offered at all; `false` if it could never do anything. The policy filters the rest per
    /// session.
    fn is_offered(self, _: &EngineSettings, _: &ToolScope) -> bool {
        true
    }

    /// Returns the approval question for the call, if it needs one.
    fn approval_question(
        self,
        _: &Engine,
        _: &ToolScope,
        _: &ToolCall,
    ) -> impl Future<Output = Result<Option<String>, ToolRefusal>> + Send {
        std::future::ready(Ok(None))
    }

    fn perform(
        self,
        engine: &Engine,
        asked: ToolInvocation<'_>,
    ) -> impl Future<Output = ToolCallResult> + Send;
}

pub(crate) struct EngineToolbox<T> {
    /// Weak, because the engine owns its tools.
    engine: Weak<Inner>,
    tools: Vec<(T, Arc<ToolSpec>)>,
}

impl<T: EngineTool> EngineToolbox<T> {
    pub fn new(engine: Weak<Inner>) -> Self {
        Self { engine, tools: T::ALL.iter().map(|tool| (*tool, Arc::new(tool.spec()))).collect() }
    }

    fn find_tool(&self, call: &ToolCall) -> Option<(T, Engine)> {
        let (tool, _) = self.tools.iter().find(|(_, spec)| spec.name == call.name)?;
        Some((*tool, Engine::from(self.engine.upgrade()?)))
    }
}

impl<T: EngineTool> Toolbox for EngineToolbox<T> {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let Some(engine) = self.engine.upgrade().map(Engine::from) else { return Vec::new() };
        let settings = engine.settings();
        let offered = self.tools.iter().filter(|(tool, _)| tool.is_offered(&settings, scope));
        offered.map(|(_, spec)| Arc::clone(spec)).collect()
    }

    fn assess_call<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, ToolQuestion> {
        Box::pin(async move {
            let Some((tool, engine)) = self.find_tool(call) else { return ToolQuestion::None };
            match tool.approval_question(&engine, scope, call).await {
                Ok(Some(words)) => ToolQuestion::Ask(words),
                Ok(None) => ToolQuestion::None,
                Err(refused) => ToolQuestion::Refuse(refused.into()),
            }
        })
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        _: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let Some((tool, engine)) = self.find_tool(call) else {
                return ToolOutcome::error("The engine has stopped.");
            };
            tool.perform(&engine, ToolInvocation { scope, turn, call })
                .await
                .map_or_else(ToolOutcome::from, ToolOutcome::ok)
        })
    }
}

//! Tools that change the engine's state, and the registry that merges all toolboxes into the one list that is filtered.

mod agent_config;
mod agents;
pub(crate) mod cron;
pub(crate) mod engine_tool;
pub mod memory;
pub(crate) mod message;
mod models;
pub(crate) mod settings;
pub(crate) mod subagents;
pub(crate) mod team;
mod todo;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolOutcome, ToolQuestion, ToolScope, ToolSpec, Toolbox,
};

use crate::error::Error;

/// Several toolboxes as one. If two have a tool of the same name, the first one wins.
pub struct ToolRegistry(Vec<Arc<dyn Toolbox>>);

impl ToolRegistry {
    pub fn new(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self(boxes)
    }

    fn find_toolbox(&self, scope: &ToolScope, name: &str) -> Option<&Arc<dyn Toolbox>> {
        self.0.iter().find(|toolbox| toolbox.list_tools(scope).iter().any(|tool| tool.name == name))
    }
}

impl Toolbox for ToolRegistry {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let mut listed: Vec<Arc<ToolSpec>> = Vec::new();
        for tool in self.0.iter().flat_map(|toolbox| toolbox.list_tools(scope)) {
            if !listed.iter().any(|known| known.name == tool.name) {
                listed.push(tool);
            }
        }
        listed
    }

    fn wait_until_ready<'a>(&'a self, scope: &'a ToolScope) -> Option<BoxFuture<'a, ()>> {
        let waits: Vec<_> = self.0.iter().filter_map(|toolbox| toolbox.wait_until_ready(scope)).collect();
        (!waits.is_empty()).then(|| {
            Box::pin(async move {
                join_all(waits).await;
            }) as BoxFuture<'a, ()>
        })
    }

    fn assess_call<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, ToolQuestion> {
        match self.find_toolbox(scope, &call.name) {
            Some(toolbox) => toolbox.assess_call(scope, call),
            None => Box::pin(std::future::ready(ToolQuestion::None)),
        }
    }

    fn written_files<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        match self.find_toolbox(scope, &call.name) {
            Some(toolbox) => toolbox.written_files(scope, call),
            None => Box::pin(std::future::ready(Vec::new())),
        }
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        match self.find_toolbox(scope, &call.name) {
            Some(toolbox) => toolbox.run(scope, turn, call, progress),
            None => {
                Box::pin(std::future::ready(ToolOutcome::error(format!("There is no tool '{}'.", call.name))))
            }
        }
    }
}

type ToolCallResult = std::result::Result<String, ToolRefusal>;

/// The reason why a call was rejected, as shown to the model.
pub(crate) struct ToolRefusal(String);

impl From<Error> for ToolRefusal {
    fn from(error: Error) -> Self {
        Self(match error.hint() {
            Some(hint) => format!("{error} ({}): {hint}", error.code()),
            None => format!("{error} ({})", error.code()),
        })
    }
}

impl From<serde_json::Error> for ToolRefusal {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("Invalid arguments: {error}"))
    }
}

impl From<String> for ToolRefusal {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<ToolRefusal> for ToolOutcome {
    fn from(ToolRefusal(text): ToolRefusal) -> Self {
        Self::error(text)
    }
}

//! Tools that change what the engine knows, and the one toolbox that joins several.

use std::sync::Arc;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::tool::{Progress, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

pub mod memory;

/// Several toolboxes as one. Names are unique; where two have the same, the first has it.
pub struct Joined(Vec<Arc<dyn Toolbox>>);

impl Joined {
    pub fn new(boxes: Vec<Arc<dyn Toolbox>>) -> Self {
        Self(boxes)
    }
}

impl Toolbox for Joined {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let mut listed: Vec<Arc<ToolSpec>> = Vec::new();
        for tool in self.0.iter().flat_map(|tools| tools.list(scope)) {
            if listed.iter().all(|known| known.name != tool.name) {
                listed.push(tool);
            }
        }
        listed
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        let has = |tools: &&Arc<dyn Toolbox>| tools.list(scope).iter().any(|tool| tool.name == call.name);
        match self.0.iter().find(has) {
            Some(tools) => tools.run(scope, turn, call, progress),
            None => {
                let answer = ToolOutcome::error(format!("There is no tool '{}' here.", call.name));
                Box::pin(std::future::ready(answer))
            }
        }
    }
}

//! Ports that a reload replaces: a call under way keeps what it began with, the next one gets the new.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::provider::{ModelInfo, ModelRef, Prompt, Provider, ProviderError, Reply, Sink};
use polyclaw_domain::tool::{Progress, Question, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

pub struct Current<T>(RwLock<Arc<T>>);

impl<T> Current<T> {
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    pub fn replace(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }

    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Provider> Provider for Current<T> {
    fn stream<'a>(
        &'a self,
        candidates: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: Sink<'a>,
    ) -> Pending<'a, Result<Reply, ProviderError>> {
        let now = self.get();
        Box::pin(async move { now.stream(candidates, prompt, sink).await })
    }

    fn models(&self) -> Pending<'_, Vec<ModelInfo>> {
        let now = self.get();
        Box::pin(async move { now.models().await })
    }
}

impl<T: Toolbox> Toolbox for Current<T> {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.get().list(scope)
    }

    fn question<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> Pending<'a, Question> {
        let now = self.get();
        Box::pin(async move { now.question(scope, call).await })
    }

    fn written_files<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> Pending<'a, Vec<PathBuf>> {
        let now = self.get();
        Box::pin(async move { now.written_files(scope, call).await })
    }

    fn gather<'a>(&'a self, scope: &'a ToolScope) -> Option<Pending<'a, ()>> {
        let now = self.get();
        let is_needed = now.gather(scope).is_some();
        let wait = async move {
            if let Some(gathering) = now.gather(scope) {
                gathering.await;
            }
        };
        is_needed.then(|| Box::pin(wait) as Pending<'a, ()>)
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        let now = self.get();
        Box::pin(async move { now.run(scope, turn, call, progress).await })
    }
}

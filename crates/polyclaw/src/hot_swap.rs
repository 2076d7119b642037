//! Ports that a reload replaces. A running call keeps the old value; the next call gets the new one.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::provider::{
    DeltaSink, ModelInfo, ModelProvider, ModelRef, ModelReply, Prompt, ProviderError,
};
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolOutcome, ToolQuestion, ToolScope, ToolSpec, Toolbox,
};

pub struct HotSwap<T>(ArcSwap<T>);

impl<T> HotSwap<T> {
    pub fn new(value: T) -> Self {
        Self(ArcSwap::from_pointee(value))
    }

    pub fn replace(&self, value: T) {
        self.0.store(Arc::new(value));
    }

    pub fn get(&self) -> Arc<T> {
        self.0.load_full()
    }
}

impl<T: ModelProvider> ModelProvider for HotSwap<T> {
    fn stream_reply<'a>(
        &'a self,
        candidates: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        let now = self.get();
        Box::pin(async move { now.stream_reply(candidates, prompt, sink).await })
    }

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        let now = self.get();
        Box::pin(async move { now.list_models().await })
    }
}

impl<T: Toolbox> Toolbox for HotSwap<T> {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.get().list_tools(scope)
    }

    fn assess_call<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, ToolQuestion> {
        let now = self.get();
        Box::pin(async move { now.assess_call(scope, call).await })
    }

    fn written_files<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        let now = self.get();
        Box::pin(async move { now.written_files(scope, call).await })
    }

    fn wait_until_ready<'a>(&'a self, scope: &'a ToolScope) -> Option<BoxFuture<'a, ()>> {
        let now = self.get();
        let is_needed = now.wait_until_ready(scope).is_some();
        let wait = async move {
            if let Some(gathering) = now.wait_until_ready(scope) {
                gathering.await;
            }
        };
        is_needed.then(|| Box::pin(wait) as BoxFuture<'a, ()>)
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        let now = self.get();
        Box::pin(async move { now.run(scope, turn, call, progress).await })
    }
}

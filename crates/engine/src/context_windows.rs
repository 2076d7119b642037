//! Learned context windows of models that rejected prompts within their configured window.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::provider::ModelRef;

use crate::core::Engine;

#[derive(Default)]
pub(crate) struct ContextWindows(Mutex<HashMap<ModelRef, usize>>);

impl ContextWindows {
    fn lock(&self) -> MutexGuard<'_, HashMap<ModelRef, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the size of a prompt that the model accepted after rejecting longer ones.
    pub fn record_window(&self, model: &ModelRef, window: usize) {
        self.lock().insert(model.clone(), window);
    }

    /// Clears the learned windows after a config reload.
    pub fn clear(&self) {
        self.lock().clear();
    }
}

impl Engine {
    /// The configured window, or the learned one if it is smaller.
    pub(crate) fn context_window(&self, model: &ModelRef) -> usize {
        let stated = self.settings().context_window(model);
        self.context_windows.lock().get(model).map_or(stated, |found| stated.min(*found))
    }
}

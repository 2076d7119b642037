//! Windows of models that turned out smaller than they were taken to be: what one refused, it is not sent again.

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

    /// It took a prompt of this size after it had refused longer ones.
    pub fn record_window(&self, model: &ModelRef, window: usize) {
        self.lock().insert(model.clone(), window);
    }

    /// The config may say better now.
    pub fn clear(&self) {
        self.lock().clear();
    }
}

impl Engine {
    /// As the config says, or as it was found to be.
    pub(crate) fn context_window(&self, model: &ModelRef) -> usize {
        let stated = self.settings().context_window(model);
        self.context_windows.lock().get(model).map_or(stated, |found| stated.min(*found))
    }
}

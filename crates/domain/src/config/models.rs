//! `[models."<provider>/<model>"]`: what is known about single models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name;
use super::providers::{Provider, check_model};
use super::report::Report;
use crate::provider::ModelRef;

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// How many tokens the model takes, prompt and answer together. History is compacted before it is full.
    #[schemars(range(min = 1024))]
    pub context_window: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self { context_window: 128_000 }
    }
}

pub(super) fn check(
    models: &BTreeMap<String, Model>,
    providers: &BTreeMap<String, Provider>,
    report: &mut Report,
) {
    for key in models.keys() {
        let path = name::join("models", key);
        match ModelRef::parse(key) {
            Ok(model) => check_model(&model, &path, providers, report),
            Err(error) => report.error(&path, error.to_string(), ""),
        }
    }
}

//! `[models."<provider>/<model>"]`: what is known about single models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name;
use super::providers::{Provider, check_model};
use super::report::Report;
use crate::budget::Price;
use crate::provider::ModelRef;

/// What is known about one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// How many tokens the model takes, prompt and answer together. History is compacted before it is full.
    #[schemars(range(min = 1024))]
    pub context_window: u64,
    /// Dollars for a million tokens of prompt. With `output_usd_per_million` it makes costs known; 0 for a model that
    /// costs nothing.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_usd_per_million: Option<f64>,
    /// Dollars for a million tokens of answer.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_usd_per_million: Option<f64>,
    /// Dollars for a million tokens of prompt that the provider had kept. Like other prompt if left out.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_usd_per_million: Option<f64>,
}

impl Model {
    /// `None`: nobody said what it costs.
    pub fn price(&self) -> Option<Price> {
        Some(Price {
            input: self.input_usd_per_million?,
            output: self.output_usd_per_million?,
            cached: self.cached_usd_per_million,
        })
    }

    fn check(&self, path: &str, report: &mut Report) {
        let given = [self.input_usd_per_million, self.output_usd_per_million, self.cached_usd_per_million];
        if self.price().is_none() && given.iter().any(Option::is_some) {
            let message = "a price needs input_usd_per_million and output_usd_per_million";
            report.error(path, message, "give both; 0 is a price, too");
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            context_window: 128_000,
            input_usd_per_million: None,
            output_usd_per_million: None,
            cached_usd_per_million: None,
        }
    }
}

pub(super) fn check(
    models: &BTreeMap<String, Model>,
    providers: &BTreeMap<String, Provider>,
    report: &mut Report,
) {
    for (key, model) in models {
        let path = name::join("models", key);
        model.check(&path, report);
        match ModelRef::parse(key) {
            Ok(model) => check_model(&model, &path, providers, report),
            Err(error) => report.error(&path, error.to_string(), ""),
        }
    }
}

//! `[models."<provider>/<model>"]`: properties of single models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key_names;
use super::providers::{ProviderConfig, check_model};
use super::report::ConfigReport;
use crate::budget::ModelPrice;
use crate::provider::ModelRef;

/// Properties of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Context window in tokens, prompt and answer together. History is compacted before it is full.
    #[schemars(range(min = 1024))]
    pub context_window: u64,
    /// US dollars per million prompt tokens. Set it together with `output_usd_per_million` to track costs; 0 for a free
    /// model.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_usd_per_million: Option<f64>,
    /// US dollars per million answer tokens.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_usd_per_million: Option<f64>,
    /// US dollars per million cached prompt tokens. Defaults to `input_usd_per_million`.
    #[schemars(range(min = 0.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_usd_per_million: Option<f64>,
}

impl ModelConfig {
    /// Returns the price. `None` if it is not configured.
    pub fn price(&self) -> Option<ModelPrice> {
        Some(ModelPrice {
            input: self.input_usd_per_million?,
            output: self.output_usd_per_million?,
            cached: self.cached_usd_per_million,
        })
    }

    fn report_errors(&self, path: &str, report: &mut ConfigReport) {
        let given = [self.input_usd_per_million, self.output_usd_per_million, self.cached_usd_per_million];
        if self.price().is_none() && given.iter().any(Option::is_some) {
            let message = "a price needs both input_usd_per_million and output_usd_per_million";
            report.add_error(path, message, "set both; 0 is a valid price");
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            context_window: 128_000,
            input_usd_per_million: None,
            output_usd_per_million: None,
            cached_usd_per_million: None,
        }
    }
}

pub(super) fn check_models(
    models: &BTreeMap<String, ModelConfig>,
    providers: &BTreeMap<String, ProviderConfig>,
    report: &mut ConfigReport,
) {
    for (key, model) in models {
        let path = key_names::join_key("models", key);
        model.report_errors(&path, report);
        match ModelRef::parse(key) {
            Ok(model) => check_model(&model, &path, providers, report),
            Err(error) => report.add_error(&path, error.to_string(), ""),
        }
    }
}

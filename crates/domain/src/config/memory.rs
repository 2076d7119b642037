//! `[memory]`: how memories are found by what they mean.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::providers::{EMBEDDED_PROVIDER, ProviderConfig, check_model};
use super::report::ConfigReport;
use crate::provider::ModelRef;

/// How memories are found by what they mean. Who remembers what is each agent's `context_policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// The model that makes embeddings, as `provider/model`: every memory and every question is sent there. Without it
    /// the embedded one is used if its weights are on this machine (`polyclaw model pull all-minilm-l6-v2`), and with
    /// neither memories are found by their words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<ModelRef>,
    /// How many numbers that model gives for a text. Needed with `embeddings`.
    #[schemars(range(min = 1, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// The most memory that vectors take while they are searched, in MiB. 128 hold about 330,000 memories; of more,
    /// the newest are found by what they mean and the others by their words.
    #[schemars(range(min = 1, max = 65_536))]
    pub cache_mb: u32,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { embeddings: None, dimensions: None, cache_mb: 128 }
    }
}

impl MemoryConfig {
    pub(super) fn report_errors(
        &self,
        providers: &BTreeMap<String, ProviderConfig>,
        report: &mut ConfigReport,
    ) {
        let Some(model) = &self.embeddings else { return };
        check_model(model, "memory.embeddings", providers, report);
        if self.dimensions.is_none() && model.provider != EMBEDDED_PROVIDER {
            let hint = "text-embedding-3-small gives 1536, nomic-embed-text 768";
            report.add_error("memory.embeddings", "dimensions must say how long its vectors are", hint);
        }
    }
}

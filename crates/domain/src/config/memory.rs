//! `[memory]`: settings of the vector search in memories.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::providers::{EMBEDDED_PROVIDER, ProviderConfig, check_model};
use super::report::ConfigReport;
use crate::provider::ModelRef;

/// Settings of the vector search in memories. Each agent's `context_policy` sets what it remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// The embedding model, as `provider/model`: all memories and queries are sent there. If omitted, the embedded one
    /// is used if its weights are on this machine (`polyclaw model pull all-minilm-l6-v2`); without either, only
    /// keyword search is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<ModelRef>,
    /// Vector dimensions of that model. Required with `embeddings`.
    #[schemars(range(min = 1, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Maximum memory for vectors during a search, in MiB. 128 MiB hold about 330,000 memories; beyond that, only the
    /// newest are in the vector search and the others are found by keywords.
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
            report.add_error(
                "memory.embeddings",
                "dimensions must be set to the length of the model's vectors",
                hint,
            );
        }
    }
}
